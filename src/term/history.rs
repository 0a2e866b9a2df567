//! What was submitted before: in memory, in a file, and the way through it.
//!
//! Must not know the screen or the keys.

use std::collections::BTreeMap;
use std::path::Path;

use super::editor::cleaned;
use super::history_file::{HistoryFile, KEPT};

/// The history, the oldest entry first.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: Vec<String>,
    file: Option<HistoryFile>,
}

impl History {
    /// Reads the history at `path`. What keeps it from being kept there comes along as a warning.
    pub(super) fn open(path: Option<&Path>) -> (Self, Option<String>) {
        let mut history = Self::default();
        let Some(path) = path else {
            return (history, None);
        };
        match HistoryFile::open(path) {
            Ok((file, entries)) => {
                let recent = entries.len().saturating_sub(KEPT);
                let entries = entries.iter().skip(recent).map(|entry| cleaned(entry));
                history.entries = entries.collect();
                history.file = Some(file);
                (history, None)
            }
            Err(error) => (history, Some(without_file(&error))),
        }
    }

    /// Adds what was submitted, unless it is blank or the same as the last entry. Returns a warning
    /// when the file can't be written; it is not tried again.
    pub(super) fn add(&mut self, entry: &str) -> Option<String> {
        if entry.trim().is_empty() || !self.remember(entry) {
            return None;
        }
        let error = self.file.as_mut()?.append(entry).err()?;
        self.file = None;
        Some(without_file(&error))
    }

    /// Makes a text the newest entry, in memory only: it came to nothing.
    pub(super) fn recall(&mut self, text: &str) {
        if self
            .entries
            .last()
            .is_none_or(|last| last.trim() != text.trim())
        {
            self.remember(text);
        }
    }

    /// Adds an entry in memory; false if it is the last one already.
    fn remember(&mut self, entry: &str) -> bool {
        if self.entries.last().is_some_and(|last| last == entry) {
            return false;
        }
        if self.entries.len() >= KEPT {
            self.entries.remove(0);
        }
        self.entries.push(entry.to_owned());
        true
    }

    /// The entries, the oldest first.
    pub(super) fn entries(&self) -> &[String] {
        &self.entries
    }

    /// A walk that begins at a text which is not in the history yet.
    pub(super) fn walk(&self) -> Walk {
        Walk {
            at: self.entries.len(),
            changed: BTreeMap::new(),
        }
    }
}

fn without_file(error: &crate::error::Error) -> String {
    format!("{error}; what you type is only remembered until the end")
}

/// Where a prompt is in the history. What was changed on the way, the draft included, is there again
/// when one comes back to it.
#[derive(Debug, Default)]
pub(super) struct Walk {
    at: usize,
    changed: BTreeMap<usize, String>,
}

impl Walk {
    /// Leaves `text` for the entry before it.
    pub(super) fn older<'a>(&'a mut self, history: &'a History, text: &str) -> Option<&'a str> {
        let at = self.at.checked_sub(1)?;
        self.go(at, history, text)
    }

    /// Leaves `text` for the entry after it, in the end for the draft.
    pub(super) fn newer<'a>(&'a mut self, history: &'a History, text: &str) -> Option<&'a str> {
        if self.at >= history.entries.len() {
            return None;
        }
        self.go(self.at + 1, history, text)
    }

    fn go<'a>(&'a mut self, at: usize, history: &'a History, text: &str) -> Option<&'a str> {
        if history
            .entries
            .get(self.at)
            .is_none_or(|entry| entry != text)
        {
            self.changed.insert(self.at, text.to_owned());
        }
        self.at = at;
        match self.changed.get(&at) {
            Some(changed) => Some(changed),
            None => history.entries.get(at).map(String::as_str),
        }
    }

    /// Whether it stands at an entry of the history, rather than at the draft.
    pub(super) fn is_at_entry(&self, history: &History) -> bool {
        self.at < history.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(entries: &[&str]) -> History {
        let mut history = History::default();
        for entry in entries {
            history.add(entry);
        }
        history
    }

    #[test]
    fn f4_blank_entries_and_repetitions_are_left_out() {
        assert_eq!(history(&["A", "B", "B", " ", ""]).entries(), ["A", "B"]);
        assert_eq!(history(&["A", "B", "A"]).entries(), ["A", "B", "A"]);
    }

    #[test]
    fn f1_the_draft_and_changed_entries_come_back_on_the_way_down() {
        let history = history(&["one", "two"]);
        let mut walk = history.walk();
        assert_eq!(walk.older(&history, "draft"), Some("two"));
        assert_eq!(walk.older(&history, "two, changed"), Some("one"));
        assert_eq!(walk.older(&history, "one"), None);
        assert_eq!(walk.newer(&history, "one"), Some("two, changed"));
        assert_eq!(walk.newer(&history, "two, changed"), Some("draft"));
        assert_eq!(walk.newer(&history, "draft"), None);
        assert_eq!(history.entries(), ["one", "two"]);
    }

    #[test]
    fn f4_a_file_that_cannot_be_used_is_a_warning_once() {
        let directory = tempfile::tempdir().unwrap();
        let (mut history, warning) = History::open(Some(directory.path()));
        assert!(warning.is_some());
        assert_eq!(history.add("x"), None);
        assert_eq!(history.entries(), ["x"]);
    }

    #[test]
    fn f4_control_characters_of_the_file_do_not_reach_the_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        std::fs::write(&path, "a\x1b[31mb\n").unwrap();
        let (history, warning) = History::open(Some(&path));
        assert_eq!(warning, None);
        assert_eq!(history.entries(), ["a[31mb"]);
    }
}
