//! The changes of a text, so that they can be taken back one by one.
//!
//! Pure. Only what changed is kept, so that a key costs the same in a long text.

/// One change: at byte `at`, `removed` gave way to `inserted` bytes.
#[derive(Debug)]
pub(super) struct Change {
    /// Where it was, in bytes.
    pub(super) at: usize,
    /// What was there before.
    pub(super) removed: String,
    /// How many bytes are there now.
    pub(super) inserted: usize,
    /// Where the cursor was before.
    pub(super) cursor: usize,
}

/// The changes so far.
#[derive(Debug, Default)]
pub(super) struct Undo {
    changes: Vec<Change>,
    /// The last character that was typed, while the last change may still grow by more.
    typing: Option<char>,
}

impl Undo {
    /// Notes that `removed` gave way to `inserted` at byte `at`.
    pub(super) fn record(&mut self, at: usize, removed: &str, inserted: &str, cursor: usize) {
        self.changes.push(Change {
            at,
            removed: removed.to_owned(),
            inserted: inserted.len(),
            cursor,
        });
        self.typing = None;
    }

    /// Notes that `typed` was typed at byte `at`, in one piece or in many: up to the end of a word it
    /// is one change.
    pub(super) fn record_typing(&mut self, at: usize, typed: &str) {
        for (offset, c) in typed.char_indices() {
            let at = at + offset;
            let last = self.changes.last();
            let joins = last.is_some_and(|last| last.at + last.inserted == at);
            let goes_on = |last: char| !last.is_whitespace() || c.is_whitespace();
            if !joins || !self.typing.is_some_and(goes_on) {
                self.record(at, "", "", at);
            }
            if let Some(last) = self.changes.last_mut() {
                last.inserted += c.len_utf8();
            }
            self.typing = Some(c);
        }
    }

    /// Takes the last change out.
    pub(super) fn pop(&mut self) -> Option<Change> {
        self.typing = None;
        self.changes.pop()
    }

    /// Has the next change begin anew, whatever was typed before.
    pub(super) fn end_typing(&mut self) {
        self.typing = None;
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.changes.clear();
        self.typing = None;
    }
}
