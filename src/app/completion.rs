//! What Tab offers for words that the application knows: commands, settings, sessions.

use crate::commands::{self, Argument, TABLE};
use crate::config::keys::{KEYS, Kind};
use crate::session::Store;
use crate::term::{Candidate, Complete};

/// Knows the words of the application.
pub(super) struct Words {
    /// Reads the ids of sessions when they are asked for. Nothing is saved through it.
    store: Store,
}

impl Words {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    /// What the argument of a command can be.
    fn arguments(&self, command: &str) -> Vec<Candidate> {
        match commands::entry(command).map(|entry| entry.argument) {
            Some(Argument::Session) => self.sessions(),
            Some(Argument::Key) => keys(),
            Some(Argument::Text | Argument::None) | None => Vec::new(),
        }
    }

    fn sessions(&self) -> Vec<Candidate> {
        // A list that can't be read offers nothing; /list says why.
        let ids = self.store.ids().unwrap_or_default();
        ids.into_iter().map(Candidate::new).collect()
    }
}

impl Complete for Words {
    fn candidates(&self, line: &str, cursor: usize) -> Vec<Candidate> {
        let before = line.get(..cursor).and_then(|line| line.strip_prefix('/'));
        let Some(before) = before else {
            return Vec::new();
        };
        let (all, begun) = match before.split_once(' ') {
            None => (commands(), format!("/{before}")),
            Some((word, argument)) => (self.arguments(word), argument.to_owned()),
        };
        all.into_iter()
            .filter(|candidate| candidate.text.starts_with(&begun))
            .collect()
    }
}

fn commands() -> Vec<Candidate> {
    let words = TABLE
        .iter()
        .flat_map(|entry| entry.words.iter().map(move |word| (word, entry.help)));
    words
        .map(|(word, help)| Candidate {
            text: format!("/{word}"),
            note: help.into(),
        })
        .collect()
}

fn keys() -> Vec<Candidate> {
    let built = KEYS.iter().filter(|key| key.kind != Kind::Unbuilt);
    built
        .map(|key| Candidate {
            text: key.name.into(),
            note: key.help.into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_commands_keys_and_sessions_are_offered_where_they_fit() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join(".bantam/sessions");
        std::fs::create_dir_all(&sessions).unwrap();
        std::fs::write(sessions.join("plan.json"), "[]").unwrap();
        let words = Words::new(Store::open(Some(home.path()), home.path()));
        let texts = |line: &str| {
            words
                .candidates(line, line.len())
                .into_iter()
                .map(|candidate| candidate.text)
                .collect::<Vec<_>>()
        };
        assert_eq!(texts("/com"), ["/compact"]);
        assert_eq!(texts("/cfg shell_"), ["shell_timeout"]);
        assert_eq!(texts("/load p"), ["plan"]);
        assert_eq!(texts("load p"), Vec::<String>::new());
        assert_eq!(texts("/compact p"), Vec::<String>::new());
    }
}
