//! Programs that are measured, the directories they run in, and what they cost.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use tempfile::TempDir;

/// The program itself, as `cargo bench` built it.
pub(crate) const BANTAM: &str = env!("CARGO_BIN_EXE_bantam");

const MODEL: &str = "figures";

/// A home and working directory of its own, configured for one endpoint.
pub(crate) struct Place {
    directory: TempDir,
    endpoint: String,
}

impl Place {
    /// A place whose configuration names this endpoint.
    pub(crate) fn new(endpoint: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = format!("endpoint={endpoint}\nmodel={MODEL}\napi_key=\n");
        fs::write(directory.path().join(".bantam.cfg"), config).unwrap();
        fs::write(directory.path().join("prompt"), "Go on.").unwrap();
        Self {
            directory,
            endpoint: endpoint.to_owned(),
        }
    }

    /// Home and working directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// bantam on the prompt file.
    pub(crate) fn one_shot(&self) -> Command {
        let mut command = self.command(BANTAM);
        command.arg("prompt");
        command
    }

    /// curl with the same request, or nearly so.
    pub(crate) fn curl(&self) -> Command {
        let url = format!("{}/chat/completions", self.endpoint);
        let mut command = self.command("curl");
        command.args(["-sN", "-H", "Content-Type: application/json"]);
        command.args(["-d", r#"{"model":"figures","messages":[]}"#, &url]);
        command
    }

    /// A peer on a prompt.
    pub(crate) fn peer(&self, peer: &Path) -> Command {
        let mut command = self.command(peer.to_str().unwrap());
        command
            .arg("Go on.")
            .env("OPENAI_BASE_URL", &self.endpoint)
            .env("OPENAI_API_KEY", "none")
            .env("OPENAI_MODEL", MODEL);
        command
    }

    /// Any program, in this place and in an environment with nothing more than it needs.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

/// A peer's name for the table.
pub(crate) fn name(peer: &Path) -> String {
    PathBuf::from(peer.file_name().unwrap())
        .display()
        .to_string()
}

/// Measures the CPU time, of user and system, of the children that end and are waited for.
pub(crate) struct CpuTime(Duration);

impl CpuTime {
    /// Begins to measure.
    pub(crate) fn start() -> Self {
        Self(Self::of_all())
    }

    /// What has been spent since.
    pub(crate) fn spent(&self) -> Duration {
        Self::of_all().saturating_sub(self.0)
    }

    fn of_all() -> Duration {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        [usage.user_time(), usage.system_time()]
            .map(|time| {
                let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
                Duration::from_micros(u64::try_from(micros).unwrap())
            })
            .iter()
            .sum()
    }
}

/// What a run cost: CPU time, and time from start to end.
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// Runs a program to its end, its output going into a pipe.
pub(crate) fn run(command: &mut Command) -> Cost {
    let cpu = CpuTime::start();
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut buffer = vec![0; 1 << 16];
    while output.read(&mut buffer).unwrap() > 0 {}
    let status = child.wait().unwrap();
    assert!(status.success(), "{command:?}: {status}");
    Cost {
        cpu: cpu.spent(),
        wall: start.elapsed(),
    }
}

/// The proportional share of memory that a process has now, in bytes.
pub(crate) fn memory_now(process: u32) -> u64 {
    kilobytes(process, "smaps_rollup", "Pss:")
}

/// The most memory that a process ever had resident, in bytes.
pub(crate) fn memory_peak(process: u32) -> u64 {
    kilobytes(process, "status", "VmHWM:")
}

fn kilobytes(process: u32, file: &str, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .unwrap();
    let number: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    number * 1024
}
