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
        let mut line = format!("{mark} {}  {}  ", self.id, self.updated.short());
        let _ = match &self.meta {
            Ok(meta) => {
                let plural = if meta.count == 1 { "" } else { "s" };
                let about = if meta.summary.is_empty() {
                    &meta.title
                } else {
                    &meta.summary
                };
                write!(line, "{} message{plural}  {about}", meta.count)
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
pub fn is_valid_id(name: &str) -> bool {
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
