//! Whether the key of the environment may go where a directory's configuration sends it (SPEC B9).
//!
//! Whoever writes that file decides where conversation and key go, so a person is asked once. Owns
//! the file of the answers, `~/.bantam/trusted`: a JSON array `[directory, endpoint]` a line.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use reqwest::Url;

use crate::address::is_loopback;
use crate::config::{Config, Source};
use crate::private;

/// Where a key would go that nobody was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    directory: String,
    endpoint: String,
}

impl Destination {
    /// Where `config` sends the environment's key, if a person ought to know: not for a key or an
    /// endpoint they named themselves, nor for this machine.
    pub fn in_question(config: &Config) -> Option<Self> {
        let from_environment = matches!(config.api_key(), Some((_, Source::Environment)));
        let named = matches!(config.get("endpoint"), Some((_, Source::CommandLine)));
        if !from_environment || named || is_local(config.endpoint()) {
            return None;
        }
        let directory = config.dir().to_string_lossy().into_owned();
        Some(Self {
            directory,
            endpoint: config.endpoint().into(),
        })
    }

    /// Whether the person has agreed before, by the file in `home`.
    pub fn is_trusted(&self, home: Option<&Path>) -> bool {
        let text = home
            .map(|home| fs::read_to_string(file(home)).unwrap_or_default())
            .unwrap_or_default();
        text.lines().any(|line| line == self.line())
    }

    /// Remembers that the person agreed.
    pub fn trust(&self, home: &Path) -> io::Result<()> {
        let path = file(home);
        if let Some(dir) = path.parent() {
            private::create_dir(dir)?;
        }
        private::options()
            .append(true)
            .create(true)
            .open(path)?
            .write_all(format!("{}\n", self.line()).as_bytes())
    }

    fn line(&self) -> String {
        serde_json::json!([self.directory, self.endpoint]).to_string()
    }
}

fn file(home: &Path) -> PathBuf {
    home.join(".bantam").join("trusted")
}

/// Whether requests to `endpoint` stay on this machine.
fn is_local(endpoint: &str) -> bool {
    Url::parse(endpoint).is_ok_and(|url| is_loopback(&url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, parse_override};

    fn config(text: Option<&str>, overrides: &[&str], key: Option<&str>) -> Config {
        let dir = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            fs::write(dir.path().join("model.cfg"), text).unwrap();
        }
        let overrides = overrides
            .iter()
            .map(|text| parse_override(text).unwrap())
            .collect();
        let environment = Environment {
            api_key: key.map(Into::into),
            tools_dir: None,
        };
        Config::load(dir.path(), overrides, environment).unwrap()
    }

    #[test]
    fn b9_only_the_environments_key_to_an_endpoint_nobody_named_is_in_question() {
        let far = Some("endpoint=https://far.example/v1");
        let key = Some("sk-environment");
        for (expected, config) in [
            (true, config(far, &[], key)),
            (true, config(None, &[], key)),
            (true, config(Some("model=m"), &[], key)),
            (false, config(far, &[], None)),
            (
                false,
                config(
                    Some("endpoint=https://far.example/v1\napi_key=sk-own"),
                    &[],
                    key,
                ),
            ),
            (
                false,
                config(Some("endpoint=http://127.0.0.1:8080/v1"), &[], key),
            ),
            (
                true,
                config(Some("endpoint=http://far.example\\@127.0.0.1/v1"), &[], key),
            ),
            (false, config(far, &["endpoint=https://mine.example"], key)),
        ] {
            assert_eq!(
                Destination::in_question(&config).is_some(),
                expected,
                "{config:?}"
            );
        }
    }

    #[test]
    fn b9_an_answer_is_remembered_for_directory_and_endpoint() {
        let home = tempfile::tempdir().unwrap();
        let destination = |endpoint: &str| Destination {
            directory: "/a \"b\"".into(),
            endpoint: endpoint.into(),
        };
        destination("https://x").trust(home.path()).unwrap();
        assert!(destination("https://x").is_trusted(Some(home.path())));
        assert!(!destination("https://y").is_trusted(Some(home.path())));
        assert!(!destination("https://x").is_trusted(None));
    }
}
