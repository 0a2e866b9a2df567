//! Completion: what Tab makes of the word before the cursor.
//!
//! Commands, settings and sessions come from a [`Complete`] that is handed in; paths are added here.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::render::text::{clusters, columns};
use crate::sanitize::screen_line;

/// More entries of a directory are not looked at: the key would take too long.
const LARGEST_DIRECTORY: usize = 10_000;

/// One thing that the word before the cursor can become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What takes the word's place.
    pub text: String,
    /// What the list of candidates says about it; may be empty.
    pub note: String,
}

impl Candidate {
    /// A candidate that needs no explanation.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            note: String::new(),
        }
    }
}

/// What knows the words that can be completed (commands, settings, sessions); paths are added here.
pub trait Complete: Send + Sync {
    /// What the word that ends at `cursor` (a byte offset) can become. The word begins behind the
    /// last blank before the cursor.
    fn candidates(&self, line: &str, cursor: usize) -> Vec<Candidate>;
}

/// Knows no words.
pub(super) struct Nothing;

impl Complete for Nothing {
    fn candidates(&self, _line: &str, _cursor: usize) -> Vec<Candidate> {
        Vec::new()
    }
}

/// What can be made of the word before the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// Put this in the place of the word.
    Replace(Range<usize>, String),
    /// These are possible, and they have nothing more in common.
    Choose(Vec<Candidate>),
    /// Nothing is known.
    Nothing,
}

/// Completes words.
pub(super) struct Completer {
    /// Knows the words that are no paths.
    pub(super) words: Arc<dyn Complete>,
    /// What `~/` stands for.
    pub(super) home: Option<PathBuf>,
}

impl Completer {
    /// Completes the word in `text` that ends at `cursor`.
    pub(super) fn complete(&self, text: &str, cursor: usize) -> Completion {
        let before = text.get(..cursor).unwrap_or_default();
        let start = before
            .char_indices()
            .rfind(|(_, c)| c.is_whitespace())
            .map_or(0, |(at, c)| at + c.len_utf8());
        let word = before.get(start..).unwrap_or_default();
        let mut candidates = self.words.candidates(text, cursor);
        if candidates.is_empty() && (!word.is_empty() || text.starts_with('!')) {
            candidates = self.paths(word);
        }
        candidates.retain(|candidate| !candidate.text.contains(char::is_control));
        candidates.sort_by(|a, b| a.text.cmp(&b.text));
        candidates.dedup_by(|a, b| a.text == b.text);
        match candidates.as_slice() {
            [] => Completion::Nothing,
            [only] => {
                let is_open = only.text.ends_with(['/', '=']);
                let is_apart = text.get(cursor..).is_some_and(|rest| rest.starts_with(' '));
                let space = if is_open || is_apart { "" } else { " " };
                Completion::Replace(start..cursor, format!("{}{space}", only.text))
            }
            several => match common_prefix(several) {
                prefix if prefix.len() > word.len() && prefix.starts_with(word) => {
                    Completion::Replace(start..cursor, prefix.to_owned())
                }
                _ => Completion::Choose(candidates),
            },
        }
    }

    /// The files whose path begins with `word`, directories with a slash behind them.
    fn paths(&self, word: &str) -> Vec<Candidate> {
        let (at, path) = match word.strip_prefix('@') {
            Some(path) => ("@", path),
            None => ("", word),
        };
        let (directory, name) = match path.rfind('/') {
            Some(slash) => path.split_at(slash + 1),
            None => ("", path),
        };
        let Ok(entries) = fs::read_dir(self.real_directory(directory)) else {
            return Vec::new();
        };
        entries
            .take(LARGEST_DIRECTORY)
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let found = entry.file_name().into_string().ok()?;
                let hidden = found.starts_with('.') && !name.starts_with('.');
                if hidden || !found.starts_with(name) {
                    return None;
                }
                let slash = if entry.path().is_dir() { "/" } else { "" };
                Some(Candidate::new(format!("{at}{directory}{found}{slash}")))
            })
            .collect()
    }

    fn real_directory(&self, directory: &str) -> PathBuf {
        match (directory.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if directory.is_empty() => Path::new(".").to_owned(),
            _ => Path::new(directory).to_owned(),
        }
    }
}

/// What all candidates begin with.
fn common_prefix(candidates: &[Candidate]) -> &str {
    let Some((first, rest)) = candidates.split_first() else {
        return "";
    };
    let mut prefix = first.text.as_str();
    for candidate in rest {
        let common = clusters(prefix)
            .zip(clusters(&candidate.text))
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len())
            .sum();
        prefix = prefix.get(..common).unwrap_or_default();
    }
    prefix
}

/// The candidates as rows of at most `width` columns, no more than `most`: side by side where they
/// need no explanation.
pub(super) fn listed(candidates: &[Candidate], width: usize, most: usize) -> Vec<String> {
    let names: Vec<String> = candidates
        .iter()
        .map(|candidate| screen_line(&shown_part(&candidate.text)))
        .collect();
    let widest = names.iter().map(|name| columns(name)).max().unwrap_or(0);
    let padded = |name: &str| format!("{name}{}", " ".repeat(widest - columns(name)));
    let mut rows: Vec<String> = if candidates.iter().all(|one| one.note.is_empty()) {
        let per_row = ((width + 2) / (widest + 2)).max(1);
        names
            .chunks(per_row)
            .map(|row| {
                row.iter()
                    .map(|name| padded(name))
                    .collect::<Vec<_>>()
                    .join("  ")
            })
            .collect()
    } else {
        let notes = candidates.iter().map(|one| screen_line(&one.note));
        names
            .iter()
            .zip(notes)
            .map(|(name, note)| format!("{}  {note}", padded(name)))
            .collect()
    };
    if rows.len() > most {
        let left_out = rows.len() - most + 1;
        rows.truncate(most.saturating_sub(1));
        rows.push(format!("({left_out} more rows)"));
    }
    for row in &mut rows {
        row.truncate(row.trim_end().len());
    }
    rows
}

/// The last component of a path, the whole of anything else: the directory is on the line already.
fn shown_part(text: &str) -> String {
    let end = text.strip_suffix('/').unwrap_or(text);
    match end.rfind('/') {
        Some(slash) if slash > 0 => text.get(slash + 1..).unwrap_or(text).to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words(&'static [&'static str]);

    impl Complete for Words {
        fn candidates(&self, line: &str, cursor: usize) -> Vec<Candidate> {
            self.0
                .iter()
                .filter(|word| word.starts_with(&line[..cursor]))
                .map(|word| Candidate::new(*word))
                .collect()
        }
    }

    fn completer(home: Option<&Path>) -> Completer {
        Completer {
            words: Arc::new(Words(&[
                "/clear",
                "/compact",
                "/cont",
                "/continue",
                "/list",
            ])),
            home: home.map(Path::to_owned),
        }
    }

    fn complete(text: &str) -> Completion {
        completer(None).complete(text, text.len())
    }

    fn replaced(completion: Completion) -> String {
        match completion {
            Completion::Replace(_, with) => with,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn f1_tab_completes_as_far_as_it_is_clear() {
        assert_eq!(complete("/li"), Completion::Replace(0..3, "/list ".into()));
        assert_eq!(complete("/con"), Completion::Replace(0..4, "/cont".into()));
        assert!(matches!(complete("/c"), Completion::Choose(all) if all.len() == 4));
        assert_eq!(complete("/x"), Completion::Nothing);
        assert_eq!(complete("no_such_file"), Completion::Nothing);
        let within = completer(None).complete("/li plan", 3);
        assert_eq!(within, Completion::Replace(0..3, "/list".into()));
    }

    #[test]
    fn f1_tab_completes_paths() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("source")).unwrap();
        for name in [
            "source/main.rs",
            "source/mod.rs",
            "notes",
            "日本",
            ".hidden",
            "bad\nname",
        ] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let root = directory.path().to_str().unwrap();
        let completer = completer(Some(directory.path()));
        let complete = |text: &str| completer.complete(text, text.len());
        assert_eq!(
            complete(&format!("see {root}/so")),
            Completion::Replace(4..4 + root.len() + 3, format!("{root}/source/"))
        );
        assert_eq!(replaced(complete("~/so")), "~/source/");
        assert_eq!(replaced(complete("@~/source/ma")), "@~/source/main.rs ");
        assert_eq!(replaced(complete("~/source/")), "~/source/m");
        assert_eq!(replaced(complete("~/日")), "~/日本 ");
        assert_eq!(replaced(complete("~/.h")), "~/.hidden ");
        assert_eq!(complete("~/bad"), Completion::Nothing);
        assert_eq!(complete("~/none/x"), Completion::Nothing);
        assert!(matches!(complete("~/"), Completion::Choose(all) if all.len() == 3));
    }

    #[test]
    fn f1_the_list_fits_the_screen() {
        let names = ["~/a/one", "~/a/three/", "~/a/日本"];
        let candidates: Vec<Candidate> = names.map(Candidate::new).into();
        assert_eq!(listed(&candidates, 80, 10), ["one     three/  日本"]);
        assert_eq!(listed(&candidates, 14, 10), ["one     three/", "日本"]);
        assert_eq!(listed(&candidates, 5, 2), ["one", "(2 more rows)"]);
        let noted = Candidate {
            text: "1a2b".into(),
            note: "a \x1b[31mred\nsummary".into(),
        };
        assert_eq!(listed(&[noted], 80, 10), ["1a2b  a red summary"]);
    }
}
