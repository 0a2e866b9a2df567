//! The signals the program answers to, on a thread of their own: a task of the runtime could not run
//! while a write to a stopped terminal blocks.
//!
//! Owns the signal handlers and the token of the turn under way. It knows nothing of terminal and
//! commands: what to do for them is handed in as [`Hooks`].

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Exit code of a program that was interrupted (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// How long the program may take to end by itself before it is ended.
const PATIENCE: Duration = Duration::from_millis(900);
/// When to look whether it can at all.
const FIRST_LOOK: Duration = Duration::from_millis(60);

/// How long commands get between being asked to end and being ended, when the program ends.
pub const GRACE: Duration = Duration::from_millis(100);

/// What the thread does for the owners of terminal and commands.
#[derive(Debug, Clone, Copy)]
pub struct Hooks {
    /// Ends running commands, at the latest after the time given.
    pub end_commands: fn(Duration),
    /// Whether a command has the terminal: keys that send signals are meant for it then (SPEC D8).
    pub is_handed_over: fn() -> bool,
    /// Whether the main thread waits for a reader of its output that may never read.
    pub is_stuck: fn() -> bool,
    /// Gives the terminal back.
    pub restore_terminal: fn(),
    /// Takes the terminal again after the program was stopped.
    pub resume_terminal: fn(),
    /// Tells the prompt of an interrupt that no turn is there for.
    pub interrupt_prompt: fn(),
}

/// A handle to what signals have asked for.
#[derive(Debug, Clone)]
pub struct Signals {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    turn: Mutex<Option<CancellationToken>>,
    stop: CancellationToken,
    exit_code: AtomicU8,
    interactive: AtomicBool,
}

/// A turn that SIGINT interrupts, for as long as this lives.
#[derive(Debug)]
pub struct TurnGuard {
    shared: Arc<Shared>,
    token: CancellationToken,
}

impl Signals {
    /// Installs the handlers. A second call would have no effect on the first.
    pub fn install(hooks: Hooks) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            turn: Mutex::new(None),
            stop: CancellationToken::new(),
            exit_code: AtomicU8::new(0),
            interactive: AtomicBool::new(false),
        });
        system::listen(Arc::clone(&shared), hooks)?;
        Ok(Self { shared })
    }

    /// Says that a person sits at the prompt: SIGINT then ends no more than a turn.
    pub fn set_interactive(&self) {
        self.shared.interactive.store(true, Ordering::Relaxed);
    }

    /// Begins a turn: its token is cancelled by SIGINT and by whatever ends the program.
    pub fn begin_turn(&self) -> TurnGuard {
        let token = self.shared.stop.child_token();
        self.shared.set_turn(Some(token.clone()));
        TurnGuard {
            shared: Arc::clone(&self.shared),
            token,
        }
    }

    /// Cancelled when the program is to end.
    pub fn stop(&self) -> &CancellationToken {
        &self.shared.stop
    }

    /// The exit code that a signal asks for, if one asked for the end.
    pub fn exit_code(&self) -> Option<u8> {
        Some(self.shared.exit_code.load(Ordering::SeqCst)).filter(|code| *code != 0)
    }
}

impl TurnGuard {
    /// What to wait for.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        self.shared.set_turn(None);
    }
}

impl Shared {
    fn set_turn(&self, turn: Option<CancellationToken>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    /// SIGINT: ends the turn; the program too where nobody sits at a prompt, or at the second time.
    fn interrupt(self: &Arc<Self>, hooks: Hooks) {
        let turn = self
            .turn
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if turn.as_ref().is_some_and(CancellationToken::is_cancelled) {
            leave(hooks, INTERRUPTED);
        }
        match turn {
            // That ends the turn too. Were the turn ended first, a new one could begin before.
            _ if !self.interactive.load(Ordering::Relaxed) => self.end(INTERRUPTED, hooks),
            Some(turn) => turn.cancel(),
            None => (hooks.interrupt_prompt)(),
        }
    }

    /// Asks the program to end with `code`, and sees to it that it does.
    fn end(self: &Arc<Self>, code: u8, hooks: Hooks) {
        if self
            .exit_code
            .compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst)
            .is_err()
        {
            leave(hooks, code);
        }
        self.stop.cancel();
        std::thread::spawn(move || {
            std::thread::sleep(FIRST_LOOK);
            if !(hooks.is_stuck)() {
                std::thread::sleep(PATIENCE.saturating_sub(FIRST_LOOK));
            }
            leave(hooks, code);
        });
    }
}

/// Ends the program from here, for its main thread can't or is too slow.
fn leave(hooks: Hooks, code: u8) -> ! {
    (hooks.end_commands)(GRACE);
    (hooks.restore_terminal)();
    std::process::exit(i32::from(code));
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::sync::Arc;

    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    use super::{Hooks, Shared};

    pub(super) fn listen(shared: Arc<Shared>, hooks: Hooks) -> io::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT])?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                for signal in signals.forever() {
                    match signal {
                        SIGINT | SIGQUIT | SIGCONT if (hooks.is_handed_over)() => {}
                        SIGTSTP if (hooks.is_handed_over)() => stop(),
                        SIGINT => shared.interrupt(hooks),
                        SIGTSTP => {
                            (hooks.restore_terminal)();
                            stop();
                            (hooks.resume_terminal)();
                        }
                        SIGCONT => (hooks.resume_terminal)(),
                        fatal => shared.end(
                            128_u8.saturating_add(u8::try_from(fatal).unwrap_or(0)),
                            hooks,
                        ),
                    }
                }
            })?;
        Ok(())
    }

    /// Stops the whole process until SIGCONT. Should that fail, it just goes on.
    fn stop() {
        let _ = emulate_default_handler(SIGTSTP);
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::sync::Arc;

    use super::{Hooks, Shared};

    /// Ctrl+C, by the runtime's console handler, on a small runtime of its own.
    pub(super) fn listen(shared: Arc<Shared>, hooks: Hooks) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                runtime.block_on(async {
                    while tokio::signal::ctrl_c().await.is_ok() {
                        shared.interrupt(hooks);
                    }
                });
            })?;
        Ok(())
    }
}
