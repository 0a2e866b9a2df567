//! Shells, sessions and process groups as Unix has them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::private;

/// Longer commands go into a file: Linux takes 128 KiB for one argument, its NUL included.
const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

/// Finds a shell and has `spawn` start `text` with it. The script has to outlive the process.
pub(super) fn start<C>(
    text: &str,
    spawn: impl Fn(Command) -> io::Result<C>,
) -> io::Result<(C, Option<Script>)> {
    let script = if text.len() > LONGEST_ARGUMENT {
        Some(Script::write(text)?)
    } else {
        None
    };
    for shell in shells() {
        let mut command = Command::new(shell);
        match &script {
            Some(script) => command.arg(&script.path),
            None => command.arg("-c").arg(text),
        };
        match spawn(command) {
            Err(error) if is_no_program(&error) => {}
            result => return Ok((result?, script)),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "no shell found: neither `sh` on PATH nor $PREFIX/bin/sh, /system/bin/sh or /bin/sh",
    ))
}

/// Where a shell may be, best first. Android has no `/bin/sh`.
fn shells() -> Vec<OsString> {
    let mut shells = vec![OsString::from("sh")];
    shells.extend(env::var_os("PREFIX").map(|prefix| Path::new(&prefix).join("bin/sh").into()));
    shells.extend(["/system/bin/sh", "/bin/sh"].map(OsString::from));
    shells
}

fn is_no_program(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
    )
}

/// A command too long for an argument, in a file for as long as this lives.
#[derive(Debug)]
pub(super) struct Script {
    path: PathBuf,
}

impl Script {
    fn write(text: &str) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("bantam-{}-{number}.sh", std::process::id());
            let path = env::temp_dir().join(name);
            match private::create_new(&path) {
                Ok(mut file) => {
                    let script = Self { path };
                    file.write_all(text.as_bytes())?;
                    return Ok(script);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // A file that stays behind in the directory for temporary files harms nobody.
        let _ = fs::remove_file(&self.path);
    }
}

/// Puts the command into a session of its own: with only a process group, a child that opens
/// `/dev/tty` would be stopped, and wait for ever.
pub(super) fn detach(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec and calls nothing but `setsid`, which is
    // async-signal-safe; it neither allocates nor takes a lock.
    #[allow(unsafe_code, reason = "std has no safe way to start a session")]
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(drop).map_err(io::Error::from));
    }
}

/// Has the output of processes that were left behind read for as long as they write, beyond the
/// end of this program: a write to a pipe without a reader would kill them.
pub(super) fn keep_reading(pipe: PipeReader) -> io::Result<()> {
    let mut reader = Command::new("cat");
    reader.stdin(pipe).current_dir("/");
    reader.stdout(Stdio::null()).stderr(Stdio::null());
    detach(&mut reader);
    // The runtime takes care of children that nobody waits for.
    tokio::process::Command::from(reader).spawn().map(drop)
}

/// The exit code as a shell would tell it: 128 and the number of the signal that ended it.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).unwrap_or(1)
}

/// The process group of a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group(Pid);

impl Group {
    /// The group that the process `id` leads.
    pub(super) fn led_by(id: u32) -> Option<Self> {
        Pid::from_raw(i32::try_from(id).ok()?).map(Self)
    }

    /// Asks the processes to end; one that was stopped is woken up for it.
    pub(super) fn terminate(self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Asks the leader alone to end: for a process that leads no group of its own.
    pub(super) fn terminate_leader(self) {
        // It fails where it is gone, which is what is wanted.
        let _ = rustix::process::kill_process(self.0, Signal::TERM);
        let _ = rustix::process::kill_process(self.0, Signal::CONT);
    }

    /// Ends the processes.
    pub(super) fn kill(self) {
        self.signal(Signal::KILL);
    }

    fn signal(self, signal: Signal) {
        // It fails where there is nobody left, which is what is wanted.
        let _ = rustix::process::kill_process_group(self.0, signal);
    }

    /// Whether there is nobody left that runs. The leader counts until it has been waited for.
    pub(super) fn is_gone(self) -> bool {
        let exists = rustix::process::test_kill_process_group(self.0).is_ok();
        let has_leader = || rustix::process::test_kill_process(self.0).is_ok();
        !exists || (!has_leader() && self.consists_of_zombies())
    }

    /// Whether what is left has ended and merely was not waited for: where nobody does that, as in
    /// many containers, it stays for ever.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn consists_of_zombies(self) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else {
            return false;
        };
        let is_alive = |process: fs::DirEntry| {
            let is_process = process
                .file_name()
                .as_encoded_bytes()
                .iter()
                .all(u8::is_ascii_digit);
            is_process
                && fs::read(process.path().join("stat"))
                    .is_ok_and(|stat| self.has_living_member(&stat))
        };
        !processes.flatten().any(is_alive)
    }

    /// Whether `stat` is of a process of this group that runs: `PID (NAME) STATE PARENT GROUP …`.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn has_living_member(self, stat: &[u8]) -> bool {
        let text = String::from_utf8_lossy(stat);
        let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut fields = after_name.split_ascii_whitespace();
        let state = fields.next();
        let group = fields.nth(1).and_then(|group| group.parse::<i32>().ok());
        group == Some(self.0.as_raw_nonzero().get()) && !matches!(state, Some("Z" | "X"))
    }

    /// Elsewhere the system's first process waits for everything.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn consists_of_zombies(self) -> bool {
        false
    }

    /// Forgets the leader if it has ended, without waiting. Only for when nobody waits for it.
    pub(super) fn reap(self) {
        let _ = rustix::process::waitpid(Some(self.0), WaitOptions::NOHANG);
    }
}

#[cfg(test)]
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_not_waited_for_does_not_count_as_running() {
        let group = Group::led_by(77).unwrap();
        for (stat, lives) in [
            ("80 (sleep) S 1 77 77 0", true),
            ("80 (sleep) Z 1 77 77 0", false),
            ("80 (sleep) S 77 78 77 0", false),
            ("80 (odd) Z 1 77) R 1 77 77 0", true),
            ("80 (sleep", false),
            ("", false),
        ] {
            assert_eq!(group.has_living_member(stat.as_bytes()), lives, "{stat}");
        }
    }
}
