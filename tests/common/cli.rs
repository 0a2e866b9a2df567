//! Runs of the real binary, each in a home and a directory of its own and without any environment
//! but PATH, and checks of what came of them.
//!
//! A run that does not end in time is killed and fails its test. Every failed check shows the whole
//! run: exit code, standard output and standard error.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::DEADLINE;
use super::capture::Captured;
pub(crate) use super::output::Output;
use super::output::shown;
use super::process::wait_until;
use super::server::Server;

/// The name of the file that [`Cli::prompt`] writes.
const PROMPT_FILE: &str = "prompt.txt";

/// A run to be: what it finds and what it is given.
pub(crate) struct Cli {
    program: PathBuf,
    pub(super) home: TempDir,
    pub(super) directory: TempDir,
    config: String,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Input,
    wrapper: Option<String>,
    lines_read: Option<usize>,
    deadline: Duration,
}

enum Input {
    Closed,
    Bytes(Vec<u8>),
    Open,
}

impl Cli {
    /// A run in an empty directory, with nothing on standard input.
    pub(crate) fn new() -> Self {
        Self {
            program: env!("CARGO_BIN_EXE_bantam").into(),
            home: TempDir::new().unwrap(),
            directory: TempDir::new().unwrap(),
            config: String::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            stdin: Input::Closed,
            wrapper: None,
            lines_read: None,
            deadline: DEADLINE,
        }
    }

    /// A run in the home and directory of an earlier one, its files as they are now.
    pub(crate) fn after(earlier: Output) -> Self {
        Self {
            home: earlier.home,
            directory: earlier.directory,
            ..Self::new()
        }
    }

    /// A run in a directory whose `model.cfg` names this server and the model `test-model`.
    pub(crate) fn against(server: &Server) -> Self {
        let endpoint = format!("endpoint={}", server.url());
        Self::new().config(&endpoint).config("model=test-model")
    }

    /// Runs another program, which keeps some of the same promises.
    pub(crate) fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// Adds lines to the `model.cfg` of the directory.
    pub(crate) fn config(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    /// Puts a file into the directory, parents included.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        put(&self.directory.path().join(path), content.as_ref());
        self
    }

    /// Puts a file into the home, parents included.
    pub(crate) fn home_file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        put(&self.home.path().join(path), content.as_ref());
        self
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub(crate) fn args<'a>(self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// Writes a prompt file and names it as an argument.
    pub(crate) fn prompt(self, text: &str) -> Self {
        self.file(PROMPT_FILE, text).arg(PROMPT_FILE)
    }

    /// Sets a variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Gives these bytes on standard input, then its end.
    pub(crate) fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = Input::Bytes(bytes.as_ref().to_vec());
        self
    }

    /// Gives these lines on standard input, then its end.
    pub(crate) fn lines<'a>(self, lines: impl IntoIterator<Item = &'a str>) -> Self {
        let text: String = lines.into_iter().flat_map(|line| [line, "\n"]).collect();
        self.stdin(text)
    }

    /// Gives a pipe on standard input that stays open until the test closes it.
    pub(crate) fn stdin_open(mut self) -> Self {
        self.stdin = Input::Open;
        self
    }

    /// Starts the program from a shell script, as `exec "$@"`, for what only a shell can set up
    /// (`umask`, `ulimit`, redirections).
    pub(crate) fn through(mut self, script: &str) -> Self {
        self.wrapper = Some(script.to_owned());
        self
    }

    /// Reads so many lines of standard output and then closes it, as `head` does.
    pub(crate) fn head(mut self, lines: usize) -> Self {
        self.lines_read = Some(lines);
        self
    }

    /// The directory of the run.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The home of the run.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(self) -> Output {
        self.start().finish()
    }

    /// Starts it.
    #[track_caller]
    pub(crate) fn start(self) -> Running {
        let mut command = self.command();
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take();
        if let Input::Bytes(bytes) = self.stdin {
            let mut pipe = stdin.take().unwrap();
            // Whoever does not read its input may close it.
            thread::spawn(move || {
                let _ = pipe.write_all(&bytes);
            });
        }
        let stdout = Captured::of(child.stdout.take().unwrap(), self.lines_read);
        let stderr = Captured::of(child.stderr.take().unwrap(), None);
        Running {
            child,
            stdin,
            stdout,
            stderr,
            home: self.home,
            directory: self.directory,
            ends_before: Instant::now() + self.deadline,
        }
    }

    pub(super) fn command(&self) -> Command {
        if !self.config.is_empty() {
            put(
                &self.directory.path().join("model.cfg"),
                self.config.as_bytes(),
            );
        }
        let mut command = match &self.wrapper {
            Some(script) => {
                let mut command = Command::new("sh");
                command.args(["-c", script, "sh"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command
            .args(&self.arguments)
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(match self.stdin {
                Input::Closed => Stdio::null(),
                Input::Bytes(_) | Input::Open => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

fn put(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A run that goes on.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Captured,
    stderr: Captured,
    home: TempDir,
    directory: TempDir,
    ends_before: Instant,
}

impl Running {
    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The directory of the run.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The home of the run.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Standard output so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until standard output contains this.
    #[track_caller]
    pub(crate) fn wait_for_stdout(&self, text: &str) {
        let found = self.stdout.wait_for(text, self.ends_before);
        assert!(found, "no {text:?} on standard output:\n{}", self.so_far());
    }

    /// Waits until standard error contains this.
    #[track_caller]
    pub(crate) fn wait_for_stderr(&self, text: &str) {
        let found = self.stderr.wait_for(text, self.ends_before);
        assert!(found, "no {text:?} on standard error:\n{}", self.so_far());
    }

    /// Waits until a file of the directory is there and not empty; gives its content.
    #[track_caller]
    pub(crate) fn wait_for_file(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        let mut content = String::new();
        let found = wait_until(self.ends_before, || {
            content = fs::read_to_string(&path).unwrap_or_default();
            !content.is_empty()
        });
        assert!(found, "no file {name}:\n{}", self.so_far());
        content
    }

    /// Writes to standard input.
    #[track_caller]
    pub(crate) fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Ends standard input.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends SIGINT.
    #[track_caller]
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends a signal.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program still runs");
    }

    /// The most memory it has had resident so far, in bytes.
    #[cfg(target_os = "linux")]
    #[track_caller]
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let kilobytes: u64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
            .expect("the kernel tells the peak");
        kilobytes * 1024
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Output {
        let ends_before = self.ends_before;
        let mut status = None;
        wait_until(ends_before, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let Some(status) = status else {
            panic!("it did not end:\n{}", self.so_far());
        };
        assert_eq!(status.signal(), None, "killed:\n{}", self.so_far());
        for (name, captured) in [("output", &self.stdout), ("error", &self.stderr)] {
            assert!(
                captured.wait_for_end(ends_before),
                "something still holds its standard {name}:\n{}",
                self.so_far()
            );
        }
        Output {
            code: status.code().unwrap(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            home: replace_directory(&mut self.home),
            directory: replace_directory(&mut self.directory),
        }
    }

    fn so_far(&self) -> String {
        shown("running", &self.stdout(), &self.stderr())
    }
}

/// Takes the directory out of something that has a destructor.
fn replace_directory(directory: &mut TempDir) -> TempDir {
    std::mem::replace(directory, TempDir::new().unwrap())
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
