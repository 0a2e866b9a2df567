//! Saving the current conversation, and what becomes of what was there before (SPEC E2, E3).
//!
//! A file may be replaced only by a later state of its own conversation: by what this process wrote
//! there last, or by something that begins with all that is there. Anything else is kept aside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};

use super::directory::{self, Stamp, Temporary};
use super::file::{self, Meta};
use super::list;
use super::time::Timestamp;
use super::{Current, Saved, Store};
use crate::error::{Error, Result};
use crate::message::{Conversation, Message};
use crate::repair;

/// What this process has written last for the current conversation.
#[derive(Debug, Clone)]
pub(super) struct Written {
    /// The file that it became.
    stamp: Stamp,
    meta: Meta,
    digest: [u8; 16],
    synced: bool,
    /// The id under which what it took the place of is kept.
    displaced: Option<String>,
}

impl Written {
    /// The conversation's title.
    pub(super) fn title(&self) -> &str {
        &self.meta.title
    }
}

/// What is in the place that a conversation is to be saved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    /// Nothing, or nothing that anybody said.
    Nothing,
    /// What this process has written last.
    Ours,
    /// An earlier state of the conversation.
    Earlier,
    /// A later state of it, which another process has written.
    Later,
    /// The same conversation, but gone on elsewhere.
    Drifted,
    /// Another conversation, or something that can't be read.
    Other,
}

/// What of the current conversation was kept aside.
#[derive(Debug, Default)]
struct Kept {
    /// Files of earlier states, which are not needed when the present one is saved.
    earlier: Vec<PathBuf>,
    /// Whether there is a state that the present one has not grown out of.
    drifted: bool,
}

impl Store {
    pub(super) fn save_to(
        &mut self,
        id: &str,
        conversation: &Conversation,
        model: &str,
        sync: bool,
    ) -> Result<Saved> {
        if !conversation.has_prompt() {
            self.withdraw()?;
            return Ok(Saved::default());
        }
        let directory = self.directory("save the session")?.to_owned();
        directory::prepare(&directory)?;
        let lock = directory::lock(&directory)?;
        let path = list::path_of(&directory, id);
        let is_target = id == self.current.target;

        let there = self.look(&path, is_target, conversation);
        if there == There::Later
            || there == There::Ours && self.is_saved(&path, conversation, model, sync)?
        {
            return Ok(Saved::default());
        }
        let mut kept = Kept::default();
        if there != There::Ours {
            lock.sweep(&directory);
            kept = self.kept_aside(&directory, id, conversation);
        }
        if is_target && (there == There::Drifted || kept.drifted) {
            self.descend();
        }
        let meta = self.meta(conversation, model, Timestamp::now());
        let bytes = serialise(id, &meta, conversation, &path)?;
        let kept_aside = replace(&directory, id, &bytes, there, sync)?;
        for earlier in kept.earlier {
            // Where that fails the conversation is in two files, and nothing is lost.
            let _ = fs::remove_file(earlier);
        }
        if is_target {
            let displaced = self.current.written.take().and_then(|last| last.displaced);
            self.current.written = Stamp::of(&path).map(|stamp| Written {
                stamp,
                meta,
                digest: Md5::digest(&bytes).into(),
                synced: sync,
                displaced: kept_aside.clone().or(displaced),
            });
        }
        Ok(Saved {
            id: Some(id.to_owned()),
            kept_aside,
        })
    }

    /// Removes what was written of a conversation whose only prompt was taken back, and puts what it
    /// had taken the place of there again.
    fn withdraw(&mut self) -> Result<()> {
        let Some(written) = self.current.written.take() else {
            return Ok(());
        };
        let directory = self.directory("save the session")?.to_owned();
        let _lock = directory::lock(&directory)?;
        let path = list::path_of(&directory, &self.current.target);
        if Stamp::of(&path) == Some(written.stamp) {
            fs::remove_file(&path)
                .map_err(|error| Error::io("remove the session", &path, error))?;
            let displaced = written.displaced.map(|id| list::path_of(&directory, &id));
            if let Some(displaced) = displaced.filter(|displaced| !is_missing(displaced)) {
                directory::move_file(&displaced, &path)?;
            }
        }
        Ok(())
    }

    /// What is at `path`, seen from the current conversation.
    fn look(&self, path: &Path, is_target: bool, conversation: &Conversation) -> There {
        let stamp = Stamp::of(path);
        let ours = self.current.written.as_ref().map(|written| written.stamp);
        if is_target && ours.is_some() && stamp == ours {
            return There::Ours;
        }
        if stamp.is_none() && is_missing(path) {
            return There::Nothing;
        }
        match file::read(path) {
            Ok(stored) if !stored.conversation.has_prompt() => There::Nothing,
            Ok(stored)
                if self.current.descends_from(&stored.meta.identity)
                    && is_beginning(&stored.conversation, conversation) =>
            {
                There::Earlier
            }
            Ok(stored) if stored.meta.identity != self.current.identity => There::Other,
            Ok(stored) if is_target && is_beginning(conversation, &stored.conversation) => {
                There::Later
            }
            Ok(_) => There::Drifted,
            Err(_) => There::Other,
        }
    }

    /// Whether the file at `path`, which is ours, says all this already; synced where it has to be.
    fn is_saved(
        &mut self,
        path: &Path,
        conversation: &Conversation,
        model: &str,
        sync: bool,
    ) -> Result<bool> {
        let Some(written) = &self.current.written else {
            return Ok(false);
        };
        let meta = self.meta(conversation, model, written.meta.updated);
        if meta != written.meta {
            return Ok(false);
        }
        let bytes = serialise(&self.current.target, &meta, conversation, path)?;
        if Md5::digest(&bytes).as_slice() != written.digest {
            return Ok(false);
        }
        if sync && !written.synced {
            directory::sync_file(path)?;
        }
        if let Some(written) = &mut self.current.written {
            written.synced |= sync;
        }
        Ok(true)
    }

    fn meta(&self, conversation: &Conversation, model: &str, updated: Timestamp) -> Meta {
        Meta {
            cwd: self.cwd.clone(),
            model: model.to_owned(),
            title: self.title(conversation),
            summary: self.current.summary.clone(),
            identity: self.current.identity.clone(),
            created: Some(self.current.created),
            updated,
            count: file::count(conversation),
        }
    }

    /// What of the current conversation was kept aside while another one had the place of the
    /// session `id`.
    fn kept_aside(&self, directory: &Path, id: &str, conversation: &Conversation) -> Kept {
        let ours = self.current.written.as_ref().map(|written| written.stamp);
        let mut kept = Kept::default();
        for aside in asides(directory, id) {
            let path = list::path_of(directory, &aside);
            let meta = file::read_meta(&path);
            if meta.is_ok_and(|meta| meta.identity == self.current.identity) {
                let earlier = ours.is_some() && Stamp::of(&path) == ours
                    || file::read(&path)
                        .is_ok_and(|stored| is_beginning(&stored.conversation, conversation));
                if earlier {
                    kept.earlier.push(path);
                } else {
                    kept.drifted = true;
                }
            }
        }
        kept
    }
}

impl Current {
    /// Whether the current conversation is, or grew out of, the one of this identity.
    fn descends_from(&self, identity: &str) -> bool {
        self.identity == identity || self.ancestors.iter().any(|parent| parent == identity)
    }
}

/// Puts `bytes` in the place of the session `id`; the id under which what was there is kept, if it
/// has to be.
fn replace(
    directory: &Path,
    id: &str,
    bytes: &[u8],
    there: There,
    sync: bool,
) -> Result<Option<String>> {
    let temporary = Temporary::write(directory, bytes, sync)?;
    let kept_aside = match there {
        There::Drifted | There::Other => Some(keep_aside(directory, id)?),
        There::Nothing | There::Ours | There::Earlier | There::Later => None,
    };
    temporary.place(&list::path_of(directory, id))?;
    if sync {
        directory::sync_names(directory);
    }
    Ok(kept_aside)
}

fn serialise(id: &str, meta: &Meta, conversation: &Conversation, path: &Path) -> Result<Vec<u8>> {
    file::write(id, meta, conversation)
        .map_err(|error| Error::io("write the session", path, io::Error::other(error)))
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether `whole` begins with all that was said in `part`. The system message does not count, and
/// a part that was loaded and repaired is still the beginning of what it became.
fn is_beginning(part: &Conversation, whole: &Conversation) -> bool {
    let whole = said(whole);
    whole.starts_with(said(part)) || {
        let mut repaired = part.clone();
        !repair::repair(&mut repaired).is_empty() && whole.starts_with(said(&repaired))
    }
}

/// The messages behind the system message.
fn said(conversation: &Conversation) -> &[Message] {
    match conversation.messages() {
        [first, rest @ ..] if first.role() == "system" => rest,
        all => all,
    }
}

/// The ids `STEM-N` that are in use.
fn asides(directory: &Path, stem: &str) -> Vec<String> {
    let mut ids = list::ids(directory).unwrap_or_default();
    ids.retain(|id| list::aside_number(id, stem).is_some());
    ids
}

/// Moves the session `id` to `id-N`: to where an earlier state of the same conversation is kept, or
/// else to the first number that is free.
fn keep_aside(directory: &Path, id: &str) -> Result<String> {
    let path = list::path_of(directory, id);
    let asides = asides(directory, id);
    let earlier = file::read(&path).ok().and_then(|stored| {
        let replaced = |aside: &&String| {
            let kept = file::read(&list::path_of(directory, aside));
            kept.is_ok_and(|kept| {
                !kept.meta.identity.is_empty()
                    && kept.meta.identity == stored.meta.identity
                    && is_beginning(&kept.conversation, &stored.conversation)
            })
        };
        asides.iter().find(replaced).cloned()
    });
    let free = || {
        let candidates = (1..=u32::MAX).map(|number| format!("{id}-{number}"));
        candidates
            .into_iter()
            .find(|candidate| !asides.contains(candidate))
            .unwrap_or_default()
    };
    let aside = earlier.unwrap_or_else(free);
    directory::move_file(&path, &list::path_of(directory, &aside))?;
    Ok(aside)
}
