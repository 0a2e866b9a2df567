//! What the settings in force mean, each by its type.
//!
//! Values are checked when they are set; what cannot be read nevertheless counts as nothing.

use std::str::FromStr;
use std::time::Duration;

use super::{Config, Source, keys};
use crate::address::without_credentials;

impl Config {
    /// The value in force of a key for which an empty one means the default.
    fn value(&self, name: &str) -> &str {
        match self.get(name) {
            Some((value, _)) if !value.is_empty() => value,
            _ => keys::default(name),
        }
    }

    fn number<T: FromStr + Default>(&self, name: &str) -> T {
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
}
