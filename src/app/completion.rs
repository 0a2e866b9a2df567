//! What Tab offers for words that the application knows: commands, settings, sessions.

use crate::commands::{Argument, TABLE};
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

    fn sessions(&self) -> Vec<Candidate> {
        // A list that can't be read offers nothing; /list says why.
        self.store
            .ids()
            .unwrap_or_default()
            .into_iter()
            .map(Candidate::new)
            .collect()
    }
}

impl Complete for Words {
    fn candidates(&self, line: &str, cursor: usize) -> Vec<Candidate> {
        let Some(before) = line
            .get(..cursor)
            .and_then(|before| before.strip_prefix('/'))
        else {
            return Vec::new();
        };
        let all = match before.split_once(' ') {
            None => commands(),
            Some((word, argument)) if !argument.contains(' ') => {
                match TABLE
                    .iter()
                    .find(|entry| entry.words.contains(&word))
                    .map(|entry| entry.argument)
                {
                    Some(Argument::Session) => self.sessions(),
                    Some(Argument::Key) => keys(),
                    _ => Vec::new(),
                }
            }
            Some(_) => Vec::new(),
        };
        let word = before.rsplit(' ').next().unwrap_or_default();
        let word = if before.contains(' ') {
            word.to_owned()
        } else {
            format!("/{word}")
        };
        all.into_iter()
            .filter(|candidate| candidate.text.starts_with(&word))
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
