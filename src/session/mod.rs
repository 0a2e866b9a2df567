//! Sessions: conversations on disk, one file each under `~/.bantam/sessions` (SPEC E1–E7).
//!
//! The [`Store`] knows which conversation is the current one, by a random identity that stays with it
//! wherever its file goes, and sees to it that nothing is ever overwritten but an earlier state of
//! the same conversation. It owns the files; it knows nothing of the screen, and whatever fails is an
//! error that leaves the files as they were.

mod directory;
mod file;
mod list;
mod save;
#[cfg(test)]
mod tests;
mod time;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};

use crate::error::{Error, Result};
use crate::message::Conversation;
use crate::repair::{self, Repairs};
use file::one_line;
use list::is_valid_id;
use save::Written;

pub use file::{Damage, Meta};
pub use list::{Entry, Found};
pub use time::Timestamp;

/// How a turn ends whose end was never saved.
const TURN_BROKEN_OFF: &str = "(This turn broke off before an answer came.)";

/// The session files, and which of them the current conversation belongs to.
#[derive(Debug)]
pub struct Store {
    /// `None` where no home directory is known.
    directory: Option<PathBuf>,
    project: String,
    cwd: String,
    current: Current,
}

/// The conversation that is being held.
#[derive(Debug, Default)]
struct Current {
    identity: String,
    /// The identities of the conversations that it grew out of.
    ancestors: Vec<String>,
    /// The session that it is saved to.
    target: String,
    created: Timestamp,
    /// Where it is known before the first save; empty: the first line of its first prompt.
    title: String,
    summary: String,
    /// What was written last.
    written: Option<Written>,
}

/// What a save did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Saved {
    /// The session that was written; `None` if there was nothing to save or nothing new.
    pub id: Option<String>,
    /// Under which id what was there before is kept now, if it was something else.
    pub kept_aside: Option<String>,
}

/// A session that was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The id it was loaded by.
    pub id: String,
    /// What its file says about it.
    pub meta: Meta,
    /// Its conversation, made valid. The system message is still the saved one.
    pub conversation: Conversation,
    /// What that took.
    pub repairs: Repairs,
}

impl Store {
    /// The sessions under `home`, for a conversation in the directory `cwd`. Touches no file.
    pub fn open(home: Option<&Path>, cwd: &Path) -> Self {
        let project = hex(&Md5::digest(cwd.as_os_str().as_encoded_bytes()));
        let mut store = Self {
            directory: home.map(|home| home.join(".bantam").join("sessions")),
            project,
            cwd: cwd.to_string_lossy().into_owned(),
            current: Current::default(),
        };
        store.begin();
        store
    }

    /// The id of the project's own session: the MD5 of its directory's path.
    pub fn project_id(&self) -> &str {
        &self.project
    }

    /// Where tools may keep what is too long for the conversation (SPEC D6).
    pub fn artifacts(&self) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?;
        Some(directory.join(format!("{}-artifacts", self.project)))
    }

    /// The title of the current conversation, `conversation`: the first line of its first prompt,
    /// also of one that a compaction has replaced.
    pub fn title(&self, conversation: &Conversation) -> String {
        if self.current.title.is_empty() {
            file::title(conversation)
        } else {
            self.current.title.clone()
        }
    }

    /// Sets the current conversation's summary, which the next save writes.
    pub fn set_summary(&mut self, summary: &str) {
        self.current.summary = one_line(summary);
    }

    /// From now on another conversation is held, a new one: at the start and after `/clear`.
    pub fn begin(&mut self) {
        self.current = Current {
            identity: new_identity(),
            target: self.project.clone(),
            created: Timestamp::now(),
            ..Current::default()
        };
    }

    /// From now on the compacted form of the current conversation is held: a new one of the same title.
    pub fn begin_compacted(&mut self) {
        let written = self.current.written.take();
        let title = written.map_or_else(
            || std::mem::take(&mut self.current.title),
            |written| written.title().to_owned(),
        );
        self.begin();
        self.current.title = title;
    }

    /// From now on the loaded conversation goes on as the project's own: `/continue`, `--resume`.
    pub fn resume(&mut self, session: &Session) {
        self.current = Current {
            identity: session.meta.identity.clone(),
            target: self.project.clone(),
            created: session.meta.created.unwrap_or_else(Timestamp::now),
            title: session.meta.title.clone(),
            summary: session.meta.summary.clone(),
            ..Current::default()
        };
        if self.current.identity.is_empty() {
            self.descend();
        }
    }

    /// From now on a copy of the loaded conversation is held; its own file stays as it was: `/load`.
    pub fn branch(&mut self, session: &Session) {
        self.resume(session);
        if session.id != self.project {
            self.descend();
        }
    }

    /// Gives the current conversation a new identity: it goes on apart from where it came from.
    fn descend(&mut self) {
        let parent = std::mem::replace(&mut self.current.identity, new_identity());
        self.current.ancestors.push(parent);
    }

    /// From now on the loaded conversation goes on in its own file: `--resume=ID` with a prompt file.
    pub fn resume_in_place(&mut self, session: &Session) {
        self.resume(session);
        self.current.target.clone_from(&session.id);
    }

    /// Saves the current conversation, which is held with `model`, to its file: the project's, as a
    /// rule. `sync` makes it outlive a loss of power. One without a prompt is not saved at all.
    pub fn save(&mut self, conversation: &Conversation, model: &str, sync: bool) -> Result<Saved> {
        let target = self.current.target.clone();
        self.save_to(&target, conversation, model, sync)
    }

    /// Saves a copy of the current conversation as `name` (SPEC E4).
    pub fn save_named(
        &mut self,
        name: &str,
        conversation: &Conversation,
        model: &str,
    ) -> Result<Saved> {
        if !is_valid_id(name) {
            return Err(Error::Session {
                message: format!("`{name}` cannot be the name of a session"),
                hint: Some(
                    "use up to 200 letters, digits, `.`, `_` and `-`, and no dot at the beginning"
                        .into(),
                ),
            });
        }
        self.save_to(name, conversation, model, true)
    }

    /// All sessions, newest first.
    pub fn list(&self) -> Result<Vec<Entry>> {
        list::list(self.directory("list the sessions")?, &self.project)
    }

    /// The ids of all sessions, in alphabetical order.
    pub fn ids(&self) -> Result<Vec<String>> {
        list::ids(self.directory("list the sessions")?)
    }

    /// What an id or the beginning of one stands for.
    pub fn find(&self, text: &str) -> Result<Found> {
        self.ids().map(|ids| list::find(ids, text))
    }

    /// The project's own session, or else the newest of those that were kept aside from it.
    pub fn find_project(&self) -> Result<Found> {
        if self.ids()?.contains(&self.project) {
            return Ok(Found::One(self.project.clone()));
        }
        let aside = self.newest_other()?;
        Ok(aside.map_or(Found::None, |entry| Found::One(entry.id)))
    }

    /// The project's newest conversation beside the current one: the project's own session or one
    /// that was kept aside.
    pub fn newest_other(&self) -> Result<Option<Entry>> {
        let directory = self.directory("look for the project's sessions")?;
        let mut newest: Option<Entry> = None;
        for id in list::ids(directory)? {
            let own = id == self.project;
            if !own && list::aside_number(&id, &self.project).is_none() {
                continue;
            }
            let entry = list::entry(directory, id, &self.project);
            // A damaged file is worth naming only where it is the one that is looked for.
            let other = entry.meta.as_ref().map_or(own, |meta| {
                meta.count > 0 && meta.identity != self.current.identity
            });
            let newer = newest.as_ref().is_none_or(|best| {
                entry.updated > best.updated || (own && entry.updated == best.updated)
            });
            if other && newer {
                newest = Some(entry);
            }
        }
        Ok(newest)
    }

    /// Loads the session of exactly this id and makes its conversation valid (SPEC E7).
    pub fn load(&self, id: &str) -> Result<Session> {
        let directory = self.directory("load a session")?;
        if id.contains(['/', '\\', '\0']) {
            return Err(list::not_found(id));
        }
        let path = list::path_of(directory, id);
        let stored = file::read(&path).map_err(|damage| match damage {
            Damage::Io(error) if error.kind() == io::ErrorKind::NotFound => list::not_found(id),
            damage => Error::Session {
                message: format!("cannot load the session `{id}`: {damage}"),
                hint: Some(format!("{} is left as it is", path.display())),
            },
        })?;
        let mut conversation = stored.conversation;
        let repairs = repair::repair(&mut conversation);
        repair::close_turn(&mut conversation, TURN_BROKEN_OFF);
        Ok(Session {
            id: id.to_owned(),
            meta: stored.meta,
            conversation,
            repairs,
        })
    }

    /// Where the sessions are, to `purpose`.
    fn directory(&self, purpose: &str) -> Result<&Path> {
        self.directory.as_deref().ok_or_else(|| Error::Session {
            message: format!("cannot {purpose}: the home directory is unknown"),
            hint: Some("set the environment variable HOME".into()),
        })
    }
}

/// A random identity of 32 hex digits.
fn new_identity() -> String {
    // Keyed hashes under random keys of the process, a different one for each.
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
