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

    /// Notes that `inserted` was typed at byte `at`. What is typed in one go, up to the end of a
    /// word, is one change.
    pub(super) fn record_typing(&mut self, at: usize, inserted: &str, cursor: usize) {
        let begins_word = inserted.chars().next().is_some_and(|c| !c.is_whitespace());
        let goes_on = self
            .typing
            .is_some_and(|last| !(last.is_whitespace() && begins_word));
        match self.changes.last_mut() {
            Some(last) if goes_on && last.at + last.inserted == at => {
                last.inserted += inserted.len();
            }
            _ => self.record(at, "", inserted, cursor),
        }
        self.typing = inserted.chars().next_back();
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
