//! Runs commands: in a session of their own with their output captured ([`run`]), or with the
//! terminal handed over ([`run_on_terminal`]).
//!
//! Owns every child process of the program. Knows nothing of models, tools and screens: output
//! goes to a closure, the fate of a command into an [`Outcome`].

mod capture;
#[cfg(unix)]
#[path = "shell/unix.rs"]
mod os;
#[cfg(windows)]
#[path = "shell/windows.rs"]
mod os;
mod process;
mod spill;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::sanitize::Redactor;
use capture::Capture;
use os::Group;
use process::{BLOCK, Process, QUEUE, Started, TICK, after, check, start};

/// How long output is waited for once the shell has ended (SPEC D5).
const DRAIN: Duration = Duration::from_millis(200);
/// How long an interrupted command may take to end before the prompt is back without it.
const INTERRUPT: Duration = Duration::from_millis(40);
/// How long an output has to pause before its unfinished line is shown.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the terminal stays handed over when its command was ended by a key: the same signal
/// may still be on its way to us.
const SETTLE: Duration = Duration::from_millis(50);
/// The exit codes that INT and QUIT lead to.
const ENDED_BY_KEY: [i32; 2] = [128 + 2, 128 + 3];

/// Who has the terminal.
static TERMINAL: Mutex<Terminal> = Mutex::new(Terminal::Ours);

/// What a command may use up.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long it may run.
    pub timeout: Duration,
    /// How many characters of its output are kept, counted after sanitising; 0 is no limit.
    pub output_chars: usize,
    /// Where the whole of a longer output goes; without it, the middle is lost.
    pub spill_dir: Option<PathBuf>,
    /// Masks what nobody is to see.
    pub redactor: Redactor,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this exit code; 128 and the number of the signal that ended it.
    Exited(i32),
    /// It was ended after this time.
    TimedOut(Duration),
    /// The person interrupted it.
    Interrupted,
}

impl End {
    /// The exit code that tells of it, as a shell would.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::TimedOut(_) => 124,
            Self::Interrupted => 130,
        }
    }
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its output, sanitised, masked and cut, then how it ended (SPEC D3, D4, D6).
    pub text: String,
    /// How it ended.
    pub end: End,
}

/// Runs `command` with the shell, in the current directory, without input or terminal.
///
/// `on_output` gets everything the person should see while it happens: the output, sanitised and
/// masked but not cut, and how the command ended. Soon after `cancel` is cancelled the command is
/// asked to end and what there is of its output is returned; so it is when the future is dropped.
///
/// # Errors
///
/// When the command could not be started, with a message fit for the model.
pub async fn run(
    command: &str,
    limits: &Limits,
    cancel: &CancellationToken,
    on_output: &mut dyn FnMut(&str),
) -> io::Result<Outcome> {
    let capture = Capture::new(limits, on_output);
    if cancel.is_cancelled() {
        return Ok(outcome(capture, End::Interrupted));
    }
    let Started {
        process,
        output,
        pipe,
    } = start(command)?;
    let mut running = Running {
        process,
        output,
        open: true,
        capture,
    };
    let deadline = after(limits.timeout);
    let end = match running.until_exit(deadline, cancel).await? {
        Woken::Exited(status) => {
            running.process.release();
            running.drain(DRAIN, Some(cancel)).await;
            End::Exited(os::exit_code(status))
        }
        Woken::Deadline => {
            running.time_out(cancel).await;
            End::TimedOut(limits.timeout)
        }
        Woken::Cancelled => {
            running.interrupt().await;
            End::Interrupted
        }
    };
    if running.open && !matches!(end, End::Interrupted) {
        // Without a reader what was left behind could not write to the end. If this fails, it can
        // as long as this program runs.
        let _ = os::keep_reading(pipe);
    }
    Ok(outcome(running.capture, end))
}

/// Runs `command` with the shell on the terminal this process has, and waits for it.
///
/// The command gets standard input and output and stays in this process's group, so that job
/// control suspends both. INT and QUIT from the keyboard are meant for it alone: whoever handles
/// signals asks [`terminal_is_handed_over`]. Returns its exit code.
///
/// # Errors
///
/// When the command could not be started or waited for.
pub fn run_on_terminal(command: &str) -> io::Result<i32> {
    check(command)?;
    let _handed_over = HandedOver::begin();
    let (mut child, _script) = os::start(command, |mut shell| shell.spawn())?;
    *terminal() = Terminal::HandedOver(Group::led_by(child.id()));
    let code = os::exit_code(child.wait()?);
    if ENDED_BY_KEY.contains(&code) {
        thread::sleep(SETTLE);
    }
    Ok(code)
}

/// Whether a command has the terminal: an interrupt from the keyboard is not meant for us then.
pub fn terminal_is_handed_over() -> bool {
    matches!(*terminal(), Terminal::HandedOver(_))
}

/// Ends all commands that are running: they are asked to end, and killed after `grace`. One that
/// has the terminal is asked only: it may have to give it back.
///
/// For the end of the program, from any thread; commands that are waited for elsewhere may be
/// reported as failed afterwards.
pub fn end_running(grace: Duration) {
    end_command_on_terminal();
    process::end_all(grace);
}

fn end_command_on_terminal() {
    if let Terminal::HandedOver(Some(command)) = *terminal() {
        command.terminate_leader();
    }
}

/// What a command that is waited for came to.
enum Woken {
    Exited(ExitStatus),
    Deadline,
    Cancelled,
}

/// A command that runs, and what takes its output in.
struct Running<'a> {
    process: Process,
    output: mpsc::Receiver<Vec<u8>>,
    /// Whether more output may come.
    open: bool,
    capture: Capture<'a>,
}

impl Running<'_> {
    /// Takes output in until the shell ends or has to.
    ///
    /// The output comes last: there may be always more of it.
    async fn until_exit(
        &mut self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> io::Result<Woken> {
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(Woken::Cancelled),
                () = sleep_until(deadline) => return Ok(Woken::Deadline),
                status = self.process.wait() => return Ok(Woken::Exited(status?)),
                block = self.output.recv(), if self.open => self.take(block),
                () = sleep(PAUSE), if self.capture.has_moved() => self.capture.show_open_line(),
            }
        }
    }

    fn take(&mut self, block: Option<Vec<u8>>) {
        match block {
            Some(bytes) => self.capture.push(&bytes),
            None => self.open = false,
        }
    }

    /// Takes in what was written before now, waiting for it no longer than `patience`.
    async fn drain(&mut self, patience: Duration, cancel: Option<&CancellationToken>) {
        let deadline = after(patience);
        // Where the output is shown slowly, this much may be on its way beyond that time.
        let mut on_the_way = (QUEUE + 2) * BLOCK;
        while self.open && on_the_way > 0 {
            let late = Instant::now() >= deadline;
            let until = if late { after(TICK) } else { deadline };
            tokio::select! {
                biased;
                () = cancelled(cancel), if !late => return,
                block = self.output.recv() => {
                    let length = block.as_ref().map_or(0, Vec::len);
                    on_the_way = on_the_way.saturating_sub(if late { length } else { 0 });
                    self.take(block);
                }
                () = sleep_until(until) => if late { return },
            }
        }
    }

    /// Ends the command because its time is up.
    async fn time_out(&mut self, cancel: &CancellationToken) {
        let kill_at = self.process.terminate();
        let mut over = self.until_over(kill_at, Some(cancel)).await;
        if !over && !cancel.is_cancelled() {
            self.process.kill();
            over = self.until_over(after(DRAIN), Some(cancel)).await;
        }
        if over {
            self.process.release();
            self.drain(DRAIN, Some(cancel)).await;
        }
    }

    /// Ends the command because the person wants the prompt back; what takes longer than a moment
    /// goes on in the background.
    async fn interrupt(&mut self) {
        self.process.terminate();
        if self.until_over(after(INTERRUPT), None).await {
            self.process.release();
            self.drain(TICK, None).await;
        }
    }

    /// Takes output in until the whole group is gone, or the deadline is there. Says which.
    async fn until_over(&mut self, deadline: Instant, cancel: Option<&CancellationToken>) -> bool {
        loop {
            if self.process.is_over() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            tokio::select! {
                biased;
                () = cancelled(cancel) => return false,
                () = sleep(TICK) => {}
                block = self.output.recv(), if self.open => self.take(block),
            }
        }
    }
}

async fn cancelled(cancel: Option<&CancellationToken>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Ends the captured output with how the command ended.
fn outcome(capture: Capture<'_>, end: End) -> Outcome {
    let closing = match end {
        End::Exited(code) => format!("\n\nexit: {code}"),
        End::TimedOut(limit) => format!(
            "\n\ntimed out: ended after {} s. Give a larger timeout_s if it needs more time, or \
             run it in the background (COMMAND >LOG 2>&1 &).\n\nexit: 124",
            limit.as_secs_f64()
        ),
        End::Interrupted => "\n\ninterrupted by the user".to_owned(),
    };
    Outcome {
        text: capture.finish(&closing),
        end,
    }
}

/// Who has the terminal.
enum Terminal {
    Ours,
    /// A command, once it is started.
    HandedOver(Option<Group>),
}

fn terminal() -> MutexGuard<'static, Terminal> {
    TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, the terminal is not ours.
struct HandedOver;

impl HandedOver {
    fn begin() -> Self {
        *terminal() = Terminal::HandedOver(None);
        Self
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        *terminal() = Terminal::Ours;
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
