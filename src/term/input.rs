//! What comes in: keys, signals of the terminal, and calls from the application.
//!
//! Owns the reading end of the terminal. Keeps what is typed between two prompts; knows which keys came together, which tells a
//! typed Enter from one inside a paste (SPEC F2).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::keys::Typed;
use super::mode;
use super::source::Source;

/// Keys that come closer together were not typed by hand one by one.
const BURST: Duration = Duration::from_millis(10);

/// So many bytes at once are no word from an input method or a macro, but a paste: its next piece may
/// take a little longer.
const PASTE_SIZE: usize = 256;

/// How long the next piece of a paste may take.
const PASTE_PAUSE: Duration = Duration::from_millis(150);

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// Something was typed.
    Typed(Typed),
    /// The application has something to say.
    Woken,
    /// The terminal has another size.
    Resized,
    /// The terminal is ours again after the program was stopped.
    Continued,
    /// Ctrl+C as a signal.
    Interrupted,
    /// Ctrl+D, where the terminal edits the lines.
    #[cfg_attr(not(unix), allow(dead_code, reason = "a console tells of it as a key"))]
    End,
    /// The terminal vanished.
    Gone,
}

/// What the terminal and the system bring, in order.
pub(super) struct Input {
    source: Source,
    queue: VecDeque<Typed>,
    /// What was typed before a question; it belongs to the prompt after it.
    parked: VecDeque<Typed>,
    /// When the last bytes came.
    arrived: Instant,
    /// How many bytes of text came at once with what was given out last, it included.
    burst: usize,
    /// Whether what was given out last came together with something before it.
    in_burst: bool,
    /// Whether the next key begins something new, a while after the one before it.
    fresh: bool,
}

impl Input {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            queue: VecDeque::new(),
            parked: VecDeque::new(),
            arrived: Instant::now(),
            burst: 0,
            in_burst: false,
            fresh: true,
        }
    }

    /// Waits for the next event. Reads the terminal.
    pub(super) fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.source.take_flag() {
                return event;
            }
            if let Some(typed) = self.queue.pop_front() {
                self.note_given_out(&typed);
                return Event::Typed(typed);
            }
            if let Some(event) = self.fill(None) {
                return event;
            }
        }
    }

    /// Forgets what is over now, but not what was typed: a Ctrl+C at a run, a size that is asked for
    /// anyway.
    pub(super) fn forget_flags(&mut self) {
        self.source.forget_flags();
    }

    /// Whether more is there to be taken in before anything needs to be drawn.
    pub(super) fn is_pending(&mut self) -> bool {
        !self.queue.is_empty() || Source::is_readable(Duration::ZERO)
    }

    /// Whether the Enter that was given out last stands in the middle of something that came at once
    /// (a paste, lines typed ahead) and is not the person's wish to submit.
    pub(super) fn goes_on(&mut self) -> bool {
        let pause = if self.burst < PASTE_SIZE {
            BURST
        } else {
            PASTE_PAUSE
        };
        if self.queue.is_empty() && self.in_burst && Source::is_readable(pause) {
            self.fill(Some(Duration::ZERO));
        }
        !self.queue.is_empty()
    }

    fn note_given_out(&mut self, typed: &Typed) {
        self.in_burst = !std::mem::take(&mut self.fresh);
        if !self.in_burst {
            self.burst = 0;
        }
        self.burst += match typed {
            Typed::Text(text) | Typed::Paste(text) => text.len(),
            Typed::Key(_) => 1,
        };
    }

    /// Whether text came at once with what was given out last, only tabs between: then a tab is no
    /// key that someone pressed, but part of a paste.
    pub(super) fn text_follows(&self) -> bool {
        let tab = Typed::Key(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE));
        let next = self.queue.iter().find(|typed| **typed != tab);
        matches!(next, Some(Typed::Text(_)))
    }

    /// Sets aside what was typed so far, for [`Input::unpark`].
    pub(super) fn park(&mut self) {
        self.take_in();
        self.parked.append(&mut self.queue);
    }

    /// Puts what was set aside back, in front.
    pub(super) fn unpark(&mut self) {
        self.parked.append(&mut self.queue);
        std::mem::swap(&mut self.parked, &mut self.queue);
    }

    /// Reads what was typed while the terminal edited lines itself: its Enter is a line feed.
    pub(super) fn take_in_lines(&mut self) {
        let before = self.queue.len();
        self.take_in();
        let line_feed = KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL);
        let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        for typed in self.queue.iter_mut().skip(before) {
            if *typed == Typed::Key(line_feed) {
                *typed = Typed::Key(enter);
            }
        }
    }

    /// Takes in what is typed while nobody asks for it, until something else happens: a full buffer of
    /// the system's would take no Ctrl+C either. False where the terminal is not to be read.
    pub(super) fn rest(&mut self) -> bool {
        if Source::KEEPS_ALL || self.source.wait() && !mode::is_ours() {
            return false;
        }
        let event = self.fill(Some(Duration::ZERO));
        !matches!(event, Some(Event::End | Event::Gone))
    }

    /// Reads all that is there.
    fn take_in(&mut self) {
        while self.source.is_unfinished() || Source::is_readable(Duration::ZERO) {
            let patience = self.source.patience();
            if let Some(Event::End | Event::Gone) = self.fill(Some(patience)) {
                return;
            }
        }
    }

    /// Reads once, waiting for it.
    fn fill(&mut self, timeout: Option<Duration>) -> Option<Event> {
        let event = self.source.read(&mut self.queue, timeout);
        if self.arrived.elapsed() >= BURST {
            self.fresh = true;
        }
        self.arrived = Instant::now();
        event
    }
}
