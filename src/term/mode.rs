//! The modes of the terminal, and giving it back.
//!
//! Owns the only copy of the modes that the terminal was found in. [`restore`] may come from any
//! thread at any time (a signal, a panic); until a [`resume`] nothing here touches the terminal then.

use std::io;
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::source::Waker;

const PASTE_ON: &str = "\x1b[?2004h";
const PASTE_OFF: &str = "\x1b[?2004l";

/// What the terminal does with what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// As it was found: for other programs.
    Found,
    /// While nobody reads: nothing is echoed, everything is kept, Ctrl+C is a signal. Output is as
    /// usual.
    Quiet,
    /// While a prompt is edited: every key comes as it is. Output is as usual.
    Editing,
}

/// Whose the terminal is at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Ours.
    Ours,
    /// Given back for the time being: the mode is only noted, and nothing is written.
    GivenBack,
    /// Given back, but the program goes on in the background: ours again once that is over, which
    /// nobody tells.
    Away,
    /// Ours again, but others may have written: nobody knows where the cursor is, and nothing is
    /// written until whoever draws a prompt has been told.
    Regained,
}

/// The terminal while we use it.
struct Held {
    platform: platform::Found,
    mode: Mode,
    dumb: bool,
    claim: Claim,
    pasting: bool,
    /// How many rows of a prompt are below the cursor, while one is on the screen.
    below: Option<usize>,
    /// Tells whoever edits that the terminal was out of our hands.
    waker: Waker,
}

static TERMINAL: Mutex<Option<Held>> = Mutex::new(None);

fn terminal() -> MutexGuard<'static, Option<Held>> {
    TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the terminal over, in quiet mode. A dumb one gets no escape sequence and edits its lines
/// itself. A panic gives it back before it prints its text.
pub(super) fn take(dumb: bool, waker: Waker) -> io::Result<()> {
    static PANIC_HOOK: Once = Once::new();
    let platform = platform::Found::read()?;
    *terminal() = Some(Held {
        platform,
        mode: Mode::Found,
        dumb,
        claim: Claim::Ours,
        pasting: false,
        below: None,
        waker,
    });
    PANIC_HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            print(panic);
        }));
    });
    enter(Mode::Quiet);
    Ok(())
}

/// Changes the mode.
pub(super) fn enter(mode: Mode) {
    if let Some(held) = terminal().as_mut() {
        held.mode = mode;
        held.below = None;
        match held.claim {
            Claim::Regained => held.claim = Claim::Ours,
            Claim::Away if platform::is_foreground() => {
                held.claim = Claim::Ours;
                held.pasting = false;
            }
            _ => {}
        }
        held.apply();
    }
}

/// Whether others may have written since we did; from now on we write again.
pub(super) fn take_regained() -> bool {
    terminal().as_mut().is_some_and(|held| {
        let regained = held.claim == Claim::Regained;
        if regained {
            held.claim = Claim::Ours;
        }
        regained
    })
}

/// Whether the terminal may be read: to try it from the background would stop the program.
pub(super) fn is_ours() -> bool {
    let is_held = |held: &Held| {
        held.mode != Mode::Found && matches!(held.claim, Claim::Ours | Claim::Regained)
    };
    terminal().as_ref().is_some_and(is_held) && platform::is_foreground()
}

/// Writes what makes the screen show a prompt, of which so many rows are below the cursor then.
pub(super) fn write_prompt(text: &str, rows_below: usize) {
    // Noted first: whoever gives the terminal back meanwhile leaves rather too many rows than too few.
    if let Some(held) = terminal().as_mut() {
        held.below = Some(rows_below);
    }
    write(text);
}

/// Gives the terminal back as it was found, with the cursor below what is on the screen. Harmless
/// when there is nothing to give back, and from any thread.
pub fn restore() {
    if let Some(held) = terminal().as_mut()
        && matches!(held.claim, Claim::Ours | Claim::Regained)
    {
        if let Some(below) = held.below.take() {
            platform::write_soon(&"\r\n".repeat(below + 1));
        }
        held.give_back();
    }
}

/// Takes the terminal again after the program was stopped and goes on. In the background, where the
/// system would stop it for that, nothing happens; it is told again when it comes to the front. What
/// another program runs in is not ours to change.
pub fn resume() {
    if let Some(held) = terminal().as_mut()
        && held.mode != Mode::Found
    {
        let is_back = matches!(held.claim, Claim::GivenBack | Claim::Away);
        if !platform::is_foreground() {
            if is_back {
                held.claim = Claim::Away;
            }
            return;
        }
        if is_back {
            held.claim = Claim::Regained;
        }
        held.pasting = false;
        held.apply();
        held.waker.tell_continued();
    }
}

/// Passes a Ctrl+C that came as a signal on to the prompt.
pub fn interrupt() {
    if let Some(held) = terminal().as_ref() {
        held.waker.tell_interrupted();
    }
}

/// The terminal's columns and rows; 80 and 24 where it doesn't tell.
pub fn size() -> (usize, usize) {
    let (columns, rows) = platform::size().unwrap_or_default();
    let known = |size: u16, default| {
        if size == 0 {
            default
        } else {
            usize::from(size)
        }
    };
    (known(columns, 80), known(rows, 24))
}

/// Writes to the terminal, in one piece where it takes it; not while it is given back. There is nobody
/// to tell of a failure: a terminal that vanished is noticed by who reads from it.
pub(super) fn write(text: &str) {
    let is_ours = |held: &Held| held.claim == Claim::Ours;
    if terminal().as_ref().is_some_and(is_ours) {
        platform::write(text.as_bytes());
    }
}

/// Asks the system to stop us and whoever runs along with us (the script that started us), as Ctrl+Z
/// does elsewhere. What is to be done for it happens where the signal arrives.
pub(super) fn ask_to_stop() {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, kill_current_process_group};
        let _ = kill_current_process_group(Signal::TSTP);
    }
}

impl Held {
    fn apply(&mut self) {
        if matches!(self.claim, Claim::GivenBack | Claim::Away) || !platform::is_foreground() {
            return;
        }
        if self.mode == Mode::Found {
            self.platform.let_output_go_on();
        }
        let pasting = self.mode != Mode::Found && !self.dumb;
        if pasting != self.pasting {
            platform::write_soon(if pasting { PASTE_ON } else { PASTE_OFF });
            self.pasting = pasting;
        }
        self.platform.set(self.mode, self.dumb);
    }

    fn give_back(&mut self) {
        let mode = std::mem::replace(&mut self.mode, Mode::Found);
        self.apply();
        self.mode = mode;
        self.claim = Claim::GivenBack;
    }
}

#[cfg(unix)]
mod platform {
    use std::io;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::process::getpgrp;
    use rustix::stdio::{stdin, stdout};
    use rustix::termios::{
        InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
        tcgetpgrp, tcgetwinsize, tcsetattr,
    };

    use super::Mode;

    /// How long a terminal that takes no output is waited for.
    const PATIENCE: Duration = Duration::from_millis(100);

    pub(super) struct Found(Termios);

    impl Found {
        pub(super) fn read() -> io::Result<Self> {
            Ok(Self(tcgetattr(stdin())?))
        }

        /// Sets a mode; a failure means that the terminal is gone.
        pub(super) fn set(&self, mode: Mode, dumb: bool) {
            let mut modes = self.0.clone();
            if mode != Mode::Found {
                modes
                    .output_modes
                    .insert(OutputModes::OPOST | OutputModes::ONLCR);
            }
            match mode {
                Mode::Found => {}
                Mode::Editing if dumb => {}
                Mode::Quiet if dumb => {
                    modes
                        .local_modes
                        .remove(LocalModes::ECHO | LocalModes::ECHONL);
                    modes.local_modes.insert(LocalModes::NOFLSH);
                }
                Mode::Quiet => {
                    take_keys_as_they_are(&mut modes);
                    // Ctrl+C throws away what was typed before it otherwise.
                    modes
                        .local_modes
                        .insert(LocalModes::ISIG | LocalModes::NOFLSH);
                }
                Mode::Editing => {
                    take_keys_as_they_are(&mut modes);
                    modes.local_modes.remove(LocalModes::ISIG);
                    modes.input_modes.remove(InputModes::IXON);
                }
            }
            let _ = tcsetattr(stdin(), OptionalActions::Now, &modes);
        }

        /// Ends a stop by Ctrl+S, so that what is written last is not waited for.
        pub(super) fn let_output_go_on(&self) {
            let mut modes = self.0.clone();
            modes.input_modes.remove(InputModes::IXON);
            let _ = tcsetattr(stdin(), OptionalActions::Now, &modes);
        }
    }

    /// No lines, no echo, Enter as it is typed (otherwise it would be Ctrl+J).
    fn take_keys_as_they_are(modes: &mut Termios) {
        modes
            .input_modes
            .remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP);
        modes.local_modes.remove(
            LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::IEXTEN,
        );
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    }

    pub(super) fn is_foreground() -> bool {
        // A terminal that is not our controlling one tells nothing and stops nobody.
        tcgetpgrp(stdin()).map_or(true, |group| group == getpgrp())
    }

    pub(super) fn size() -> Option<(u16, u16)> {
        let size = tcgetwinsize(stdout())
            .or_else(|_| tcgetwinsize(stdin()))
            .ok()?;
        Some((size.ws_col, size.ws_row))
    }

    pub(super) fn write(mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match rustix::io::write(stdout(), bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let _ = poll(
                        &mut [PollFd::from_borrowed_fd(stdout(), PollFlags::OUT)],
                        None,
                    );
                }
                Err(_) => return,
            }
        }
    }

    /// Writes if the terminal takes it within a moment.
    pub(super) fn write_soon(text: &str) {
        let patience = Timespec::try_from(PATIENCE).unwrap_or_default();
        let mut terminal = [PollFd::from_borrowed_fd(stdout(), PollFlags::OUT)];
        if poll(&mut terminal, Some(&patience)).is_ok_and(|ready| ready > 0) {
            write(text.as_bytes());
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io::{self, Write};

    use crossterm::terminal;

    use super::Mode;

    pub(super) struct Found;

    impl Found {
        pub(super) fn read() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn set(&self, mode: Mode, dumb: bool) {
            let _ = match mode {
                Mode::Editing if !dumb => terminal::enable_raw_mode(),
                _ => terminal::disable_raw_mode(),
            };
        }

        pub(super) fn let_output_go_on(&self) {}
    }

    pub(super) fn is_foreground() -> bool {
        true
    }

    pub(super) fn size() -> Option<(u16, u16)> {
        terminal::size().ok()
    }

    pub(super) fn write(bytes: &[u8]) {
        let mut out = io::stdout().lock();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    pub(super) fn write_soon(text: &str) {
        write(text.as_bytes());
    }
}
