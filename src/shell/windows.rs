//! Shells and process trees as Windows has them.

use std::io::{self, PipeReader};
use std::os::windows::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};

/// `CREATE_NEW_PROCESS_GROUP`: a Ctrl+C of the console does not reach the command.
const NEW_PROCESS_GROUP: u32 = 0x0000_0200;

/// Nothing on Windows: the command line takes 32,767 characters, and longer commands fail.
#[derive(Debug)]
pub(super) struct Script;

/// Has `spawn` start `text` with `cmd`, which reads its command line by rules of its own.
pub(super) fn start<C>(
    text: &str,
    spawn: impl Fn(Command) -> io::Result<C>,
) -> io::Result<(C, Option<Script>)> {
    let mut command = Command::new("cmd");
    command.arg("/C").raw_arg(text);
    Ok((spawn(command)?, None))
}

/// Keeps the console's Ctrl+C away from the command.
pub(super) fn detach(command: &mut Command) {
    command.creation_flags(NEW_PROCESS_GROUP);
}

/// Nothing to do: a write to a pipe without a reader fails here, but kills nobody.
pub(super) fn keep_reading(_pipe: PipeReader) -> io::Result<()> {
    Ok(())
}

/// The exit code.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(1)
}

/// The tree of processes below a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group(u32);

impl Group {
    /// The tree whose root is the process `id`.
    pub(super) fn led_by(id: u32) -> Option<Self> {
        Some(Self(id))
    }

    /// Ends the processes: console programs know no request to end.
    pub(super) fn terminate(self) {
        self.kill();
    }

    /// Ends the processes: there is no way to end one alone here.
    pub(super) fn terminate_leader(self) {
        self.kill();
    }

    /// Ends the processes.
    pub(super) fn kill(self) {
        let id = self.0.to_string();
        let mut command = Command::new("taskkill");
        command.args(["/T", "/F", "/PID", &id]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // It fails where there is nobody left, which is what is wanted.
        let _ = command.stderr(Stdio::null()).status();
    }

    /// Windows does not tell; what `terminate` reached is gone.
    pub(super) fn is_gone(self) -> bool {
        true
    }

    /// Nothing to do: processes need no reaping.
    pub(super) fn reap(self) {}
}
