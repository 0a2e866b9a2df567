//! The configuration: one file of the working directory, what the command line sets above it, and
//! what the environment adds below it (SPEC B). Owns the file; nobody else reads or writes it.

pub mod file;
pub mod keys;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::address::without_credentials;
use crate::error::{Error, Result};
use crate::sanitize;
use keys::{HEADER_PREFIX, Key, Kind};

/// The file that changes are written to, and that is read first.
pub const OWN_FILE: &str = ".bantam.cfg";
/// The file that is read where there is no [`OWN_FILE`].
pub const MODEL_FILE: &str = "model.cfg";

/// What the environment says about settings, read once at the start.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `OPENAI_API_KEY`: the key where the file has none.
    pub api_key: Option<String>,
    /// `BANTAM_TOOLS_DIR`: goes before the file's `bantam_tools_dir`.
    pub tools_dir: Option<String>,
}

/// Where a value in force comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    CommandLine,
    /// The configuration file.
    File,
    /// The environment.
    Environment,
    /// The table of keys.
    Default,
}

/// The settings in force.
#[derive(Debug, Clone)]
pub struct Config {
    dir: PathBuf,
    file: Option<&'static str>,
    entries: Vec<(String, String)>,
    overrides: Vec<(String, String)>,
    environment: Environment,
    warnings: Vec<String>,
}

impl Config {
    /// Reads the configuration of `dir`; `overrides` come from the command line and win.
    ///
    /// A line that can't be used is a warning (see [`Config::take_warnings`]); a file that can't be
    /// read or a setting for something that isn't built is an error.
    pub fn load(
        dir: &Path,
        overrides: Vec<(String, String)>,
        environment: Environment,
    ) -> Result<Self> {
        let dir = dir.to_owned();
        let mut config = Self {
            dir,
            file: None,
            entries: vec![],
            overrides,
            environment,
            warnings: vec![],
        };
        config.read_file()?;
        Ok(config)
    }

    fn read_file(&mut self) -> Result<()> {
        for name in [OWN_FILE, MODEL_FILE] {
            let path = self.dir.join(name);
            match fs::read(&path) {
                Ok(bytes) => {
                    self.file = Some(name);
                    if std::str::from_utf8(&bytes).is_err() {
                        self.warnings.push(format!(
                            "{name}: some of it is not UTF-8; check the values there"
                        ));
                    }
                    return self.take_entries(name, &String::from_utf8_lossy(&bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("read the configuration", path, error)),
            }
        }
        Ok(())
    }

    fn take_entries(&mut self, name: &str, text: &str) -> Result<()> {
        for entry in file::parse(text) {
            let at = format!("{name}:{}", entry.line);
            let Some(key) = entry.key else {
                self.warnings
                    .push(format!("{at}: no `=` in this line, ignored"));
                continue;
            };
            let unbuilt = keys::find(&key).is_some_and(|key| key.kind == Kind::Unbuilt);
            match keys::check(&key, &entry.value) {
                Ok(()) => self.entries.push((key, entry.value)),
                Err(wrong) if unbuilt => {
                    let hint = Some("an option that did nothing would be false safety".into());
                    return Err(Error::Config {
                        message: format!("{at}: {wrong}"),
                        hint,
                    });
                }
                Err(wrong) => {
                    let fallback = keys::find(&key).filter(|key| !key.default.is_empty());
                    let fallback = fallback
                        .map(|key| format!("; {} is used", key.default))
                        .unwrap_or_default();
                    self.warnings.push(format!("{at}: {wrong}{fallback}"));
                }
            }
        }
        let keyed = self
            .entries
            .iter()
            .any(|(key, value)| is_secret(key) && !value.is_empty());
        if keyed && file::is_open_to_others(&self.dir.join(name)) {
            self.warnings.push(format!(
                "{name} holds a key and others can read it (chmod 600 {name})"
            ));
        }
        Ok(())
    }

    /// Goes on without the environment's key (SPEC B9).
    pub fn forget_environment_key(&mut self) {
        self.environment.api_key = None;
    }

    /// The warnings of reading, once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The name of the file the settings came from, if there was one.
    pub fn file(&self) -> Option<&'static str> {
        self.file
    }

    /// The directory whose settings these are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The value in force and where it comes from; `None` where the key is unknown and unset.
    pub fn get(&self, name: &str) -> Option<(&str, Source)> {
        let last = |pairs: &'_ [(String, String)]| pairs.iter().rposition(|(key, _)| key == name);
        if let Some(index) = last(&self.overrides) {
            return Some((&self.overrides[index].1, Source::CommandLine));
        }
        let environment =
            |value: &'_ Option<String>| value.as_deref().is_some_and(|value| !value.is_empty());
        if name == "bantam_tools_dir" && environment(&self.environment.tools_dir) {
            return self
                .environment
                .tools_dir
                .as_deref()
                .map(|dir| (dir, Source::Environment));
        }
        if let Some(index) = last(&self.entries) {
            return Some((&self.entries[index].1, Source::File));
        }
        if name == "api_key" && environment(&self.environment.api_key) {
            return self
                .environment
                .api_key
                .as_deref()
                .map(|key| (key.trim(), Source::Environment));
        }
        keys::find(name)
            .filter(|key| key.kind != Kind::Unbuilt)
            .map(|key| (key.default, Source::Default))
    }

    /// The value in force of a key of the table; an empty one means its default but for keys that are
    /// forwarded, secret, or off when empty.
    fn value(&self, name: &str) -> &str {
        match self.get(name) {
            Some(("", _)) => keys::find(name).map_or("", |key| key.default),
            Some((value, _)) => value,
            None => "",
        }
    }

    fn number<T: std::str::FromStr + Default>(&self, name: &str) -> T {
        self.value(name).parse().unwrap_or_default()
    }

    fn seconds(&self, name: &str) -> Duration {
        // A time that does not fit is as good as for ever.
        Duration::try_from_secs_f64(self.number(name)).unwrap_or(Duration::MAX)
    }

    /// The base URL, without trailing slashes.
    pub fn endpoint(&self) -> &str {
        self.value("endpoint").trim_end_matches('/')
    }

    /// The base URL to show: credentials in it are left out.
    pub fn shown_endpoint(&self) -> String {
        without_credentials(self.endpoint())
    }

    /// The model's name; empty where it was set so.
    pub fn model(&self) -> &str {
        self.get("model").map_or("", |(value, _)| value)
    }

    /// The key and where it comes from; none where it is set to nothing.
    pub fn api_key(&self) -> Option<(&str, Source)> {
        self.get("api_key").filter(|(key, _)| !key.is_empty())
    }

    /// Whether answers are streamed.
    pub fn stream(&self) -> bool {
        self.value("stream") != "false"
    }

    /// The time to the first byte, and between two.
    pub fn timeout(&self) -> Duration {
        self.seconds("timeout")
    }

    /// How long a command may run.
    pub fn shell_timeout(&self) -> Duration {
        self.seconds("shell_timeout")
    }

    /// How many requests a turn may take.
    pub fn max_iterations(&self) -> usize {
        self.number("max_al_iterations")
    }

    /// The context window in tokens, where the server does not tell.
    pub fn context_window(&self) -> u64 {
        self.number("context_window")
    }

    /// At how many percent of the window to offer a compaction; 0 for never.
    pub fn compact_at(&self) -> u64 {
        self.number("compact_at")
    }

    /// How many characters of a tool's output the model gets; 0 for all.
    pub fn tool_output_limit(&self) -> usize {
        self.number("tool_output_limit")
    }

    /// Whether tool arguments are sanitised.
    pub fn sanitize_args(&self) -> bool {
        self.value("sanitize_args") != "false"
    }

    /// The directory of extra tools, if one is set.
    pub fn tools_dir(&self) -> Option<&str> {
        self.get("bantam_tools_dir")
            .map(|(dir, _)| dir)
            .filter(|dir| !dir.is_empty())
    }

    /// `auto`, `always` or `never`.
    pub fn color(&self) -> &str {
        self.value("color")
    }

    /// `auto`, `always` or `never`.
    pub fn markdown(&self) -> &str {
        self.value("markdown")
    }

    /// The HTTP headers to add to each request, in order.
    pub fn headers(&self) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> = Vec::new();
        for (key, value) in self.entries.iter().chain(&self.overrides) {
            let Some(name) = key.strip_prefix(HEADER_PREFIX) else {
                continue;
            };
            headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                headers.push((name.into(), value.clone()));
            }
        }
        headers
    }

    /// What goes into the request beside the model, `stream` and what the program makes itself: the
    /// defaults first, then the file's keys in its order, then the command line's.
    pub fn parameters(&self) -> Map<String, Value> {
        let forwarded = |key: &&Key| key.forwarded && !matches!(key.name, "model" | "stream");
        let defaults = keys::KEYS
            .iter()
            .filter(forwarded)
            .map(|key| (key.name, key.default));
        let set = self
            .entries
            .iter()
            .chain(&self.overrides)
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let mut parameters = Map::new();
        for (key, value) in defaults.chain(set) {
            let internal = keys::find(key).is_some_and(|known| !forwarded(&known));
            if !internal && !key.starts_with(HEADER_PREFIX) {
                parameters.insert(key.into(), Value::String(value.into()));
            }
        }
        parameters.retain(|_, value| value.as_str() != Some(""));
        for (key, value) in &mut parameters {
            *value = keys::request_value(key, value.as_str().unwrap_or_default());
        }
        parameters
    }

    /// Sets `name` to `value` for now and for later: in [`OWN_FILE`], which starts as a copy of
    /// [`MODEL_FILE`] where only that exists, so that no setting is lost (SPEC B7).
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let refused = |message: String| Error::Config {
            message,
            hint: None,
        };
        if name.contains(['=', '\n', '\r']) || name.trim() != name || name.starts_with('#') {
            return Err(refused(format!(
                "`{}` is no key",
                sanitize::screen_line(name)
            )));
        }
        let value = value.trim();
        if value.contains(['\n', '\r']) {
            return Err(refused(format!("`{name}` takes one line")));
        }
        keys::check_entered(name, value).map_err(refused)?;
        let text = self.text_to_change()?;
        let path = self.dir.join(OWN_FILE);
        file::write(&path, &file::set(&text, name, value))
            .map_err(|error| Error::io("write", path, error))?;
        self.file = Some(OWN_FILE);
        self.overrides.retain(|(key, _)| key != name);
        self.entries.push((name.into(), value.into()));
        Ok(())
    }

    /// The text of the file that counts, as it is now: another instance may have changed it.
    fn text_to_change(&self) -> Result<String> {
        for name in [OWN_FILE, MODEL_FILE] {
            let path = self.dir.join(name);
            match fs::read_to_string(&path) {
                Ok(text) => return Ok(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("read the configuration", path, error)),
            }
        }
        Ok(String::new())
    }

    /// All settings in force, as `/cfg` shows them: the keys of the table, then the other ones.
    pub fn shown(&self) -> Vec<(String, String)> {
        let known = keys::KEYS
            .iter()
            .filter(|key| key.kind != Kind::Unbuilt)
            .map(|key| key.name);
        let mut names: Vec<&str> = known.collect();
        for (key, _) in self.entries.iter().chain(&self.overrides) {
            if !names.contains(&key.as_str()) {
                names.push(key);
            }
        }
        names
            .into_iter()
            .filter_map(|name| Some((name.into(), self.shown_value(name)?)))
            .collect()
    }

    /// The value in force as it may be shown: a key is masked.
    pub fn shown_value(&self, name: &str) -> Option<String> {
        let (value, _) = self.get(name)?;
        Some(match name {
            _ if value.is_empty() => String::new(),
            "endpoint" => without_credentials(value),
            _ if is_secret(name) => sanitize::masked(value),
            _ => value.into(),
        })
    }
}

/// Whether the value of `name` is not to be shown nor recorded (SPEC B9, F4).
pub fn is_secret(name: &str) -> bool {
    name.starts_with(HEADER_PREFIX) || keys::find(name).is_some_and(|key| key.kind == Kind::Secret)
}

/// The setting that `KEY=VALUE` on the command line stands for; if it can't be used, why.
pub fn parse_override(text: &str) -> std::result::Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("takes KEY=VALUE")?;
    let (key, value) = (key.trim(), value.trim());
    keys::check_entered(key, value)?;
    Ok((key.into(), value.into()))
}

#[cfg(test)]
mod tests;
