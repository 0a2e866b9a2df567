//! The tool `write_file`: a whole file, or a splice by bytes (SPEC D1, D2).

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::file::{self, Target};
use super::{Context, Tool, ToolOutput};
use crate::model::BoxFuture;

const NAME: &str = "write_file";
const DESCRIPTION: &str = "Write a file; missing directories are created. Without offset and \
    del_bytes the file becomes content. With either one, del_bytes bytes from byte offset on are \
    replaced by content (0 where not given) and the rest stays.";

/// Writes files.
pub struct WriteFile {
    spec: Value,
}

/// Which bytes of a file give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Splice {
    offset: usize,
    del_bytes: usize,
}

impl WriteFile {
    /// Also sees to it that a limit on file sizes is an error, not the end of the program.
    pub fn new() -> Self {
        file::survive_size_limit();
        let spec = json!({"type": "function", "function": {
            "name": NAME,
            "description": DESCRIPTION,
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "content": {"type": "string"},
                    "offset": {"type": "integer"},
                    "del_bytes": {"type": "integer"},
                },
                "required": ["path", "content"],
            },
        }});
        Self { spec }
    }
}

impl Default for WriteFile {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for WriteFile {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self) -> &Value {
        &self.spec
    }

    fn literal_parameters(&self) -> &[&str] {
        &["content"]
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        context: Context<'a>,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match write(arguments, context.cancel).await {
                Ok(report) => ToolOutput::done(report),
                Err(message) => ToolOutput::error(message),
            }
        })
    }
}

async fn write(
    arguments: &Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let text = |name| arguments.get(name).and_then(Value::as_str);
    let name = text("path").unwrap_or_default();
    let content = text("content").unwrap_or_default().as_bytes();
    let splice = Splice::asked_for(arguments)?;
    let path = path(name, dirs::home_dir().as_deref())?;
    let failed = |error| format!("{name} was not written: {error}");

    let target = file::find(&path).map_err(failed)?;
    let verb = if target.exists() {
        "changed"
    } else {
        "created"
    };
    match (&target, splice) {
        (Target::Special(path), None) => {
            let written = file::write_special(path, content, cancel).await;
            written.map_err(failed)?;
            Ok(format!("wrote {} to {name}", bytes(content.len())))
        }
        (Target::Special(_), Some(_)) => Err(format!(
            "{name} is no regular file: it takes no offset and del_bytes"
        )),
        (_, None) => {
            file::replace(&target, content).map_err(failed)?;
            Ok(format!("{verb} {name}: {}", bytes(content.len())))
        }
        (_, Some(splice)) => {
            let mut whole = file::read(&target).map_err(failed)?;
            let range = splice.range(&whole, target.exists())?;
            let deleted = whole.splice(range, content.iter().copied()).count();
            file::replace(&target, &whole).map_err(failed)?;
            Ok(format!(
                "{verb} {name}: at byte {} deleted {deleted}, inserted {}; now {}",
                splice.offset,
                content.len(),
                bytes(whole.len())
            ))
        }
    }
}

fn bytes(count: usize) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

/// The file that the model means by `name`.
fn path(name: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    if name.is_empty() {
        return Err("the path is empty".to_owned());
    }
    if name.contains('\0') {
        return Err("the path contains a NUL character, which no file name can".to_owned());
    }
    if name.ends_with(std::path::is_separator) {
        return Err(format!(
            "{name} names a directory: a path to a file is needed"
        ));
    }
    let in_home = if name == "~" {
        Some("")
    } else {
        name.strip_prefix("~/")
    };
    match (in_home, home) {
        (None, _) => Ok(PathBuf::from(name)),
        // A second slash would make the rest a path from the root.
        (Some(rest), Some(home)) => Ok(home.join(rest.trim_start_matches('/'))),
        (Some(_), None) => Err("`~` cannot be resolved: no home directory is known".to_owned()),
    }
}

impl Splice {
    /// None where the whole file is to be replaced.
    fn asked_for(arguments: &Map<String, Value>) -> Result<Option<Self>, String> {
        let number = |name: &str| match arguments.get(name).and_then(Value::as_i64) {
            None => Ok(None),
            Some(number) if number < 0 => Err(format!(
                "the parameter `{name}` has to be at least 0, but is {number}"
            )),
            // What no address can reach is beyond the end of any file.
            Some(number) => Ok(Some(usize::try_from(number).unwrap_or(usize::MAX))),
        };
        Ok(match (number("offset")?, number("del_bytes")?) {
            (None, None) => None,
            (offset, del_bytes) => Some(Self {
                offset: offset.unwrap_or(0),
                del_bytes: del_bytes.unwrap_or(0),
            }),
        })
    }

    /// Which bytes of `old` that is, both ends within it and between characters.
    fn range(self, old: &[u8], exists: bool) -> Result<std::ops::Range<usize>, String> {
        if self.offset > old.len() {
            return Err(if exists {
                format!(
                    "offset {} is beyond the end: the file has {}",
                    self.offset,
                    bytes(old.len())
                )
            } else {
                format!(
                    "offset {} is beyond the end: the file does not exist",
                    self.offset
                )
            });
        }
        let end = self.offset.saturating_add(self.del_bytes).min(old.len());
        if let Ok(text) = std::str::from_utf8(old) {
            between_characters(text, self.offset, "offset")?;
            between_characters(text, end, "offset + del_bytes")?;
        }
        Ok(self.offset..end)
    }
}

fn between_characters(text: &str, at: usize, what: &str) -> Result<(), String> {
    if text.is_char_boundary(at) {
        return Ok(());
    }
    let before = (0..at).rev().find(|&at| text.is_char_boundary(at));
    let after = (at..text.len()).find(|&at| text.is_char_boundary(at));
    Err(format!(
        "{what} = {at} is inside a UTF-8 character, which goes from byte {} to {}: use one of \
         these",
        before.unwrap_or(0),
        after.unwrap_or(text.len())
    ))
}

#[cfg(test)]
mod tests;
