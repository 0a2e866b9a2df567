//! What goes to standard error: the status, retries, notices, warnings and errors (SPEC A6).
//!
//! Owns the status line that comes and goes in place. Whoever uses it first ends the line that is
//! open on standard output.

use std::io::Write;
use std::time::Duration;

use crate::error::Error;
use crate::render::theme::Role;
use crate::render::{Look, Stream};
use crate::sanitize::{Redactor, screen_line};

const STATUS: &str = "...requesting...";
/// Back to the first column, and the row erased.
const ERASE_ROW: &str = "\r\x1b[K";

/// Standard error as the person sees it.
pub(super) struct Messages<E> {
    stream: Stream<E>,
    terminal: bool,
    redactor: Redactor,
    status_shown: bool,
}

impl<E: Write> Messages<E> {
    pub(super) fn new(err: E, terminal: bool, color: bool, redactor: Redactor) -> Self {
        Self {
            stream: Stream::new(err, color),
            terminal,
            redactor,
            status_shown: false,
        }
    }

    /// Shows things differently from now on.
    pub(super) fn set_look(&mut self, look: &Look) {
        self.clear_status();
        self.terminal = look.error_terminal;
        self.redactor = look.redactor.clone();
        self.stream.page.set_color(look.error_color);
    }

    /// Shows that a request is under way: in place on a terminal of `width` columns.
    pub(super) fn show_status(&mut self, width: usize) {
        if self.status_shown {
            return;
        }
        if self.terminal {
            // A wrapped status could not be erased.
            let status = STATUS.get(..width).unwrap_or(STATUS);
            self.stream.put(status, Role::Status.style());
            self.stream.page.lift_pen();
            self.status_shown = true;
        } else {
            self.stream.put_line(STATUS, Role::Status.style());
        }
        self.stream.flush();
    }

    /// Takes the status away where it is shown in place.
    pub(super) fn clear_status(&mut self) {
        if self.status_shown {
            self.status_shown = false;
            self.stream.page.control(ERASE_ROW);
            self.stream.page.line_erased();
            self.stream.flush();
        }
    }

    /// Says that the request failed and is made again after `delay`.
    pub(super) fn retrying(&mut self, attempt: usize, of: usize, delay: Duration, reason: &str) {
        let seconds = delay.as_secs_f64();
        // At most three decimals; Display leaves out what is zero.
        let seconds = (seconds * 1000.0).round() / 1000.0;
        self.failure(&format!("{reason}; retry {attempt} of {of} in {seconds} s"));
    }

    /// Tells something; nothing failed.
    pub(super) fn notice(&mut self, text: &str) {
        self.put(text, Role::Plain);
    }

    /// Tells of something that went wrong without ending the run.
    pub(super) fn warning(&mut self, text: &str) {
        self.failure(&format!("warning: {text}"));
    }

    /// Tells why something did not happen, and what helps.
    pub(super) fn error(&mut self, error: &Error) {
        if matches!(error, Error::Cancelled) {
            return;
        }
        self.failure(&format!("error: {error}"));
        if let Some(hint) = error.hint() {
            self.failure(&format!("hint: {hint}"));
        }
    }

    /// Tells that the person interrupted the turn.
    pub(super) fn interrupted(&mut self) {
        self.put("interrupted", Role::Plain);
    }

    fn failure(&mut self, text: &str) {
        self.put(text, Role::Failure);
    }

    fn put(&mut self, text: &str, role: Role) {
        self.clear_status();
        let text = screen_line(&self.redactor.mask(text));
        self.stream.put_line(&text, role.style());
        self.stream.flush();
    }
}
