//! The configuration: one file of the working directory, what the command line sets above it, and
//! what the environment adds below it (SPEC B). Owns the file; nobody else reads or writes it.

pub mod file;
pub mod keys;
pub mod spelling;
mod typed;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
        if without_credentials(config.endpoint()) != config.endpoint() {
            let warning = "the name and password in the endpoint are not sent; \
                           header.Authorization sets what is";
            config.warnings.push(warning.into());
        }
        Ok(config)
    }

    fn read_file(&mut self) -> Result<()> {
        let Some((name, bytes)) = self.find_file()? else {
            return Ok(());
        };
        self.file = Some(name);
        if std::str::from_utf8(&bytes).is_err() {
            self.warnings.push(format!(
                "{name}: some of it is not UTF-8; check the values there"
            ));
        }
        self.take_entries(name, &String::from_utf8_lossy(&bytes))?;
        self.warn_of_readers(name);
        Ok(())
    }

    /// The name and content of the file that counts, if there is one.
    fn find_file(&self) -> Result<Option<(&'static str, Vec<u8>)>> {
        for name in [OWN_FILE, MODEL_FILE] {
            let path = self.dir.join(name);
            match fs::read(&path) {
                Ok(bytes) => return Ok(Some((name, bytes))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("read the configuration", path, error)),
            }
        }
        Ok(None)
    }

    fn take_entries(&mut self, name: &str, text: &str) -> Result<()> {
        for entry in file::parse(text) {
            let at = format!("{name}:{}", entry.line);
            let Some(key) = entry.key else {
                self.warnings
                    .push(format!("{at}: no `=` in this line, ignored"));
                continue;
            };
            match keys::check(&key, &entry.value) {
                Ok(()) => self.entries.push((key, entry.value)),
                Err(wrong) if keys::is_unbuilt(&key) => {
                    return Err(Error::Config {
                        message: format!("{at}: {wrong}"),
                        hint: Some("an option that did nothing would be false safety".into()),
                    });
                }
                Err(wrong) => {
                    let fallback = match keys::default(&key) {
                        "" => String::new(),
                        default => format!("; {default} is used"),
                    };
                    self.warnings.push(format!("{at}: {wrong}{fallback}"));
                }
            }
        }
        Ok(())
    }

    /// Warns where others can read a key (SPEC B9).
    fn warn_of_readers(&mut self, name: &str) {
        let is_key = |(key, value): &(String, String)| is_secret(key) && !value.is_empty();
        if self.entries.iter().any(is_key) && file::is_open_to_others(&self.dir.join(name)) {
            self.warnings.push(format!(
                "{name} holds a key and others can read it (chmod 600 {name})"
            ));
        }
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
        let environment = &self.environment;
        let (above_file, below_file) = match name {
            "bantam_tools_dir" => (filled(environment.tools_dir.as_deref()), None),
            "api_key" => (None, filled(environment.api_key.as_deref())),
            _ => (None, None),
        };
        let by_default = || {
            let known = keys::find(name).filter(|key| key.kind != Kind::Unbuilt);
            known.map(|key| (key.default, Source::Default))
        };
        last(&self.overrides, name)
            .map(|value| (value, Source::CommandLine))
            .or(above_file.map(|value| (value, Source::Environment)))
            .or(last(&self.entries, name).map(|value| (value, Source::File)))
            .or(below_file.map(|value| (value.trim(), Source::Environment)))
            .or_else(by_default)
    }

    /// What the file and then the command line set, in their order: of two equal keys the last counts.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.entries.iter().chain(&self.overrides);
        pairs.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The HTTP headers to add to each request, in order.
    pub fn headers(&self) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> = Vec::new();
        for (key, value) in self.pairs() {
            let Some(name) = key.strip_prefix(HEADER_PREFIX) else {
                continue;
            };
            headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                headers.push((name.into(), value.into()));
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
        let mut parameters = Map::new();
        for (key, value) in defaults.chain(self.pairs()) {
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
        let Some((name, bytes)) = self.find_file()? else {
            return Ok(String::new());
        };
        String::from_utf8(bytes).map_err(|error| {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            Error::io("read the configuration", self.dir.join(name), error)
        })
    }

    /// All settings in force, as `/cfg` shows them: the keys of the table, then the other ones.
    pub fn shown(&self) -> Vec<(String, String)> {
        let known = keys::KEYS
            .iter()
            .filter(|key| key.kind != Kind::Unbuilt)
            .map(|key| key.name);
        let mut names: Vec<&str> = known.collect();
        for (key, _) in self.pairs() {
            if !names.contains(&key) {
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

/// The value of the last of the pairs with this key.
fn last<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let pair = pairs.iter().rfind(|(key, _)| key == name);
    pair.map(|(_, value)| value.as_str())
}

fn filled(variable: Option<&str>) -> Option<&str> {
    variable.filter(|value| !value.is_empty())
}

/// Whether the value of `name` is not to be shown nor recorded (SPEC B9, F4).
pub fn is_secret(name: &str) -> bool {
    name.starts_with(HEADER_PREFIX) || keys::find(name).is_some_and(|key| key.kind == Kind::Secret)
}

/// The same of a name as it was typed: a slip of the fingers makes a secret no less of one.
pub fn is_probably_secret(name: &str) -> bool {
    is_secret(name) || keys::misspelled(name).is_some_and(is_secret)
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
