//! The text in an editor of the person's choice (Ctrl+X Ctrl+E).
//!
//! The terminal must have been given back before. The text goes through a file that only its owner
//! can read and that is gone afterwards.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::private;
use crate::shell;

/// What everyone has who has set neither `VISUAL` nor `EDITOR`.
const DEFAULT_EDITOR: &str = "vi";

/// Has `editor`, a shell command, edit `text`. Returns the text it leaves, without the newline that
/// editors add at the end, or why there is none.
pub(super) fn edit(text: &str, editor: Option<&str>) -> Result<String, String> {
    let editor = editor.unwrap_or(DEFAULT_EDITOR);
    let failed = |error: io::Error| format!("the text could not be edited: {error}");
    let file = TemporaryFile::create(text).map_err(failed)?;
    let command = format!("{editor} {}", quoted(&file.0));
    match shell::run_on_terminal(&command).map_err(failed)? {
        0 => {
            let edited = fs::read(&file.0).map_err(failed)?;
            let edited = String::from_utf8_lossy(&edited);
            let end = edited.strip_suffix('\n').unwrap_or(&edited);
            Ok(end.strip_suffix('\r').unwrap_or(end).to_owned())
        }
        code => Err(format!(
            "{editor} failed with exit code {code}; the text is as it was"
        )),
    }
}

struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn create(text: &str) -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bantam-{}-{count}.md", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Never a file that someone else has put there.
        let mut file = private::create_new(&path)?;
        let created = Self(path);
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        Ok(created)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A path as one word for the shell.
#[cfg(unix)]
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(not(unix))]
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_the_editor_gets_the_text_in_a_file_that_is_gone_afterwards() {
        let edited = edit("a\nb", Some("sed -i 's/b/it'\"'\"'s c/'"));
        assert_eq!(edited.as_deref(), Ok("a\nit's c"));
        let edited = edit("", Some("f() { echo \"$1\" > \"$1\"; }; f"));
        assert!(!Path::new(&edited.unwrap()).exists());
    }

    #[test]
    fn f1_a_failing_editor_leaves_the_text_alone() {
        assert!(
            edit("a", Some("false"))
                .unwrap_err()
                .contains("exit code 1")
        );
        assert!(edit("a", Some("/nowhere/editor")).is_err());
    }
}
