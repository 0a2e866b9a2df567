//! Finding sessions: listing them and resolving what a person typed (SPEC E5, E6).
//!
//! Reads names and heads of files only.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::file::{self, Damage, Meta};
use super::time::Timestamp;
use crate::error::{Error, Result};

/// The extension of session files, with the dot.
const EXTENSION: &str = ".json";

/// How wide ids are in the list: as wide as those that the program gives, `MD5-N`.
const ID_COLUMNS: usize = 34;

/// How many candidates of an ambiguous id an error names.
const CANDIDATES: usize = 20;

/// One session of the list.
#[derive(Debug)]
pub struct Entry {
    /// The file's name without its extension; what `/load` takes.
    pub id: String,
    /// Whether it is the current project's own session.
    pub own: bool,
    /// What it says about itself, or why it can't be read.
    pub meta: std::result::Result<Meta, Damage>,
    /// When it was written last; the file's own time where the content does not say.
    pub updated: Timestamp,
}

impl Entry {
    /// Its line in `/list`, not yet made harmless for a terminal.
    pub fn line(&self) -> String {
        let mark = if self.own { '*' } else { ' ' };
        let mut line = format!("{mark} {:ID_COLUMNS$}  {}  ", self.id, self.updated.short());
        let _ = match &self.meta {
            Ok(meta) => {
                let plural = if meta.count == 1 { "" } else { "s" };
                let about = if meta.summary.is_empty() {
                    &meta.title
                } else {
                    &meta.summary
                };
                write!(line, "{:3} message{plural:1}  {about}", meta.count)
            }
            Err(damage) => write!(line, "unreadable: {damage}"),
        };
        line.truncate(line.trim_end().len());
        line
    }
}

/// What an id or the beginning of one stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The session of this id.
    One(String),
    /// Several begin that way; their ids in alphabetical order.
    Ambiguous(Vec<String>),
    /// None does.
    None,
}

impl Found {
    /// The one id, or an error that says why `text` names none.
    pub fn one(self, text: &str) -> Result<String> {
        match self {
            Self::One(id) => Ok(id),
            Self::Ambiguous(ids) => {
                let more = ids.len().saturating_sub(CANDIDATES);
                let mut list = ids;
                list.truncate(CANDIDATES);
                let mut message = format!(
                    "`{text}` is the beginning of several sessions: {}",
                    list.join(", ")
                );
                if more > 0 {
                    let _ = write!(message, " and {more} more");
                }
                Err(Error::Session {
                    message,
                    hint: Some("give more letters of the one you mean".into()),
                })
            }
            Self::None => Err(not_found(text)),
        }
    }
}

/// The error for an id that no session has.
pub(super) fn not_found(id: &str) -> Error {
    Error::Session {
        message: format!("there is no session `{id}`"),
        hint: Some("`/list` shows them all".into()),
    }
}

/// Whether `name` can be a session's id: letters, digits, `.`, `_`, `-`, not beginning with a dot,
/// at most 200 of them (SPEC E4). Such a name can't leave the directory.
pub(super) fn is_valid_id(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=200).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(allowed)
}

/// The file of the session `id`.
pub(super) fn path_of(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}{EXTENSION}"))
}

/// The ids of all sessions, in alphabetical order. A directory that isn't there has none.
pub(super) fn ids(directory: &Path) -> Result<Vec<String>> {
    let failed = |error| Error::io("list the sessions in", directory, error);
    let names = match fs::read_dir(directory) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut ids = Vec::new();
    for name in names {
        let name = name.map_err(failed)?.file_name();
        // A name that is no UTF-8 can't be typed either.
        let id = name.to_str().and_then(|name| name.strip_suffix(EXTENSION));
        ids.extend(
            id.filter(|id| !id.is_empty() && !id.starts_with('.'))
                .map(str::to_owned),
        );
    }
    ids.sort_unstable();
    Ok(ids)
}

/// All sessions, newest first; `own` is the project's id.
pub(super) fn list(directory: &Path, own: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = ids(directory)?
        .into_iter()
        .map(|id| entry(directory, id, own))
        .collect();
    entries.sort_by_key(|entry| Reverse(entry.updated));
    Ok(entries)
}

/// What `text` stands for among `ids`: the session of that very id before any that begin with it.
pub(super) fn find(ids: Vec<String>, text: &str) -> Found {
    if text.is_empty() {
        return Found::None;
    }
    let mut begun = ids.into_iter().filter(|id| id.starts_with(text)).peekable();
    match begun.next() {
        None => Found::None,
        Some(id) if id == text || begun.peek().is_none() => Found::One(id),
        Some(first) => Found::Ambiguous(std::iter::once(first).chain(begun).collect()),
    }
}

/// The number `N` of `STEM-N`.
pub(super) fn aside_number(id: &str, stem: &str) -> Option<u32> {
    let digits = id.strip_prefix(stem)?.strip_prefix('-')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    plain.then(|| digits.parse().ok())?
}

pub(super) fn entry(directory: &Path, id: String, own: &str) -> Entry {
    let path = path_of(directory, &id);
    let meta = file::read_meta(&path);
    let updated = meta.as_ref().map_or_else(
        |_| {
            let modified = fs::metadata(&path).and_then(|metadata| metadata.modified());
            modified.map(Timestamp::from).unwrap_or_default()
        },
        |meta| meta.updated,
    );
    Entry {
        own: id == own,
        id,
        meta,
        updated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e4_names_that_could_leave_the_directory_or_confuse_are_refused() {
        let long = "x".repeat(200);
        for name in ["a", "A.b_c-9", "-", "0", &long] {
            assert!(is_valid_id(name), "{name:?}");
        }
        let longer = "x".repeat(201);
        for name in [
            "",
            ".",
            "..",
            ".a",
            "a/b",
            "../x",
            "a\\b",
            "a b",
            "a\n",
            "a\0",
            "é",
            "\u{1b}[2J",
            &longer,
        ] {
            assert!(!is_valid_id(name), "{name:?}");
        }
    }

    #[test]
    fn e6_the_exact_id_comes_before_a_unique_beginning() {
        let ids = || ["a", "ab", "abc", "b-1"].map(String::from).to_vec();
        let one = |id: &str| Found::One(id.to_owned());
        assert_eq!(find(ids(), "a"), one("a"));
        assert_eq!(find(ids(), "ab"), one("ab"));
        assert_eq!(find(ids(), "abc"), one("abc"));
        assert_eq!(find(ids(), "b"), one("b-1"));
        assert_eq!(find(ids(), "abcd"), Found::None);
        assert_eq!(find(ids(), ""), Found::None);
        assert_eq!(
            find(ids()[1..].to_vec(), "a"),
            Found::Ambiguous(vec!["ab".into(), "abc".into()])
        );
    }

    #[test]
    fn e6_an_ambiguous_beginning_lists_the_candidates() {
        let ids: Vec<_> = (10..40).map(|number| format!("x{number}")).collect();
        let error = find(ids.clone(), "x1").one("x1").unwrap_err().to_string();
        assert!(ids[..10].iter().all(|id| error.contains(id)), "{error}");
        let error = find(ids, "x").one("x").unwrap_err().to_string();
        assert!(error.ends_with("x29 and 10 more"), "{error}");
        let error = Found::None.one("y").unwrap_err();
        assert_eq!(error.to_string(), "there is no session `y`");
    }

    #[test]
    fn e3_only_plain_numbers_tell_what_was_kept_aside() {
        let cases = [
            ("foo-1", Some(1)),
            ("foo-23", Some(23)),
            ("foo", None),
            ("foo-", None),
            ("foo-01", None),
            ("foo-0", None),
            ("foo-+1", None),
            ("foo-1-1", None),
            ("foo-99999999999", None),
            ("food-1", None),
            ("fo-1", None),
        ];
        for (id, number) in cases {
            assert_eq!(aside_number(id, "foo"), number, "{id}");
        }
    }

    #[test]
    fn e5_the_list_is_newest_first_and_names_what_it_cannot_read() {
        let directory = tempfile::tempdir().unwrap();
        let write =
            |name: &str, content: &str| fs::write(directory.path().join(name), content).unwrap();
        write(
            "old.json",
            r#"{"title":"t","summary":"about old","updated":"2020-01-02T03:04:05Z","count":1,"messages":[{"role":"user"}]}"#,
        );
        write(
            "own.json",
            r#"{"title":"the title","summary":"","updated":"2021-01-02T03:04:05Z","count":12,"messages":[]}"#,
        );
        write("bad.json", "{");
        write(".hidden.json", "{}");
        write(".1.tmp", "");
        write("notes.txt", "");
        fs::create_dir(directory.path().join("dir.json")).unwrap();

        let entries = list(directory.path(), "own").unwrap();
        let lines: Vec<_> = entries.iter().map(Entry::line).collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines[..2]
                .iter()
                .any(|line| line.starts_with("  bad  ")
                    && line.contains("unreadable: not valid JSON"))
        );
        assert!(
            lines[..2].iter().any(|line| line.starts_with("  dir  ")
                && line.ends_with("unreadable: not a regular file"))
        );
        assert_eq!(
            lines[2],
            "* own                                 2021-01-02 03:04 UTC   12 messages  the title"
        );
        assert_eq!(
            lines[3],
            "  old                                 2020-01-02 03:04 UTC    1 message   about old"
        );
    }

    #[test]
    fn e5_a_directory_that_is_not_there_has_no_sessions() {
        let directory = tempfile::tempdir().unwrap();
        assert!(list(&directory.path().join("x"), "own").unwrap().is_empty());
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(list(&directory.path().join("file"), "own").is_err());
    }
}
