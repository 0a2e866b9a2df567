//! Rows of the table, and the numbers in them.

use std::fmt;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// The table's first two lines.
pub(crate) const HEAD: &str = "\
    | what | bantam | floor | ratio | goal | met | peers |\n\
    |---|---|---|---|---|---|---|";

/// One figure: what was measured, beside what it is held against.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    /// Our value as it is to be read.
    pub(crate) ours: String,
    /// What was measured beside it, and its value.
    pub(crate) floor: Option<(&'static str, String)>,
    /// Ours divided by the floor.
    pub(crate) ratio: Option<f64>,
    /// The goal in words.
    pub(crate) goal: &'static str,
    pub(crate) met: bool,
    /// The peers' names and values.
    pub(crate) peers: Vec<(String, String)>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let floor = self
            .floor
            .as_ref()
            .map(|(name, value)| format!("{name} {value}"));
        let ratio = self.ratio.map(|ratio| format!("{ratio:.2}"));
        let peers: Vec<String> = self
            .peers
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        write!(
            f,
            "| {} | {} | {} | {} | {} | {} | {} |",
            self.what,
            self.ours,
            floor.unwrap_or_default(),
            ratio.unwrap_or_default(),
            self.goal,
            if self.met { "yes" } else { "no" },
            peers.join(", "),
        )
    }
}

/// A time in milliseconds.
pub(crate) fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

/// A size in megabytes.
#[allow(clippy::cast_precision_loss)] // sizes are far below 2^52
pub(crate) fn mb(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

/// The value in the middle.
pub(crate) fn median(values: &mut [Duration]) -> Duration {
    percentile(values, 50)
}

/// The value that so many percent of all don't exceed.
pub(crate) fn percentile(values: &mut [Duration], percent: usize) -> Duration {
    values.sort_unstable();
    values[(values.len() * percent / 100).min(values.len() - 1)]
}

/// Where and when this was measured.
pub(crate) fn machine() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut models = processors
        .lines()
        .filter(|line| line.starts_with("model name"))
        .filter_map(|line| line.split_once(": "))
        .map(|(_, model)| model);
    let cores = models.clone().count();
    let model = models.next().unwrap_or("an unknown processor");
    let said = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output();
        output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        )
    };
    format!(
        "Measured on {cores} × {model}, Linux {}, {}.",
        said("uname", "-r"),
        said("date", "+%Y-%m-%d")
    )
}
