//! What the application does with sessions: saving, listing, loading, beginning anew.

use crate::agent::Agent;
use crate::compact;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::message::Conversation;
use crate::session::{Found, Session};

use super::{App, Mode};

impl App {
    /// Saves the conversation to its file; a failure is told once and stops nothing (SPEC E2).
    pub(super) fn save(&mut self, sync: bool) {
        if !self.start.keep {
            return;
        }
        if let Err(error) = self
            .store
            .save(&self.conversation, self.config.model(), sync)
        {
            self.warn_of_save(&error);
        }
    }

    pub(super) fn warn_of_save(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.save_failed, true) {
            self.screen.event(Event::Warning(&format!(
                "the conversation is not saved: {error}"
            )));
        }
    }

    /// Goes on with a saved conversation from the start on (SPEC A3): the project's, or the session
    /// `id`. That there is none is an error only where a prompt file was to continue it.
    pub fn resume(&mut self, id: Option<&str>) -> Result<()> {
        let found = match id {
            Some(id) => self.store.find(id)?,
            None => self.store.find_project()?,
        };
        let what = id.map_or("of this directory".to_owned(), |id| format!("`{id}`"));
        if found == Found::None && self.start.mode != Mode::OneShot {
            let notice = format!("there is no session {what}; a new conversation begins");
            self.screen.event(Event::Notice(&notice));
            return Ok(());
        }
        let wanted = id.unwrap_or(self.store.project_id());
        let session = self.store.load(&found.one(wanted)?)?;
        if self.start.mode == Mode::OneShot {
            self.store.resume_in_place(&session);
        } else if id.is_none() || session.id == self.store.project_id() {
            self.store.resume(&session);
        } else {
            self.store.branch(&session);
        }
        self.take_over(session);
        Ok(())
    }

    /// Makes a loaded conversation the current one and says what there is to know about it.
    pub(super) fn take_over(&mut self, session: Session) {
        let Session {
            id,
            meta,
            mut conversation,
            repairs,
        } = session;
        conversation.set_system_prompt(&self.system_prompt());
        let count = conversation.messages().len().saturating_sub(1);
        self.conversation = conversation;
        self.forget_usage();
        self.screen.event(Event::Notice(&format!(
            "going on with session {id} ({count} messages)"
        )));
        if !repairs.is_empty() {
            self.screen.event(Event::Notice(&format!(
                "the conversation had to be mended: {repairs}"
            )));
        }
        let model = self.config.model();
        if !meta.model.is_empty() && meta.model != model {
            self.screen.event(Event::Notice(&format!(
                "it was held with {}; {model} goes on",
                meta.model
            )));
        }
        self.save(true);
    }

    /// After the conversation was replaced, the old figures say nothing about it.
    pub(super) fn forget_usage(&mut self) {
        self.usage = None;
        self.declined_at = None;
    }

    /// Starts over; the conversation so far stays in its file.
    pub(super) fn clear(&mut self) {
        self.save(true);
        self.conversation = Conversation::new(&self.system_prompt());
        self.store.begin();
        self.forget_usage();
        self.screen
            .event(Event::Notice("a new conversation begins"));
    }

    pub(super) fn list(&mut self, most: usize) -> Result<()> {
        let sessions = self.store.list()?;
        if sessions.is_empty() {
            self.screen.line("no sessions yet");
        }
        for session in sessions.iter().take(most) {
            self.screen.line(&session.line());
        }
        Ok(())
    }

    pub(super) fn load(&mut self, id: &str) -> Result<()> {
        let id = self.store.find(id)?.one(id)?;
        let session = self.store.load(&id)?;
        self.save(true);
        self.store.branch(&session);
        self.take_over(session);
        Ok(())
    }

    pub(super) fn continue_project(&mut self) -> Result<()> {
        let Some(entry) = self.store.newest_other()? else {
            let message = "this directory has no other conversation to go on with".into();
            return Err(Error::Session {
                message,
                hint: Some("/list shows all sessions".into()),
            });
        };
        let session = self.store.load(&entry.id)?;
        self.save(true);
        self.store.resume(&session);
        self.take_over(session);
        Ok(())
    }

    /// Saves first, for what follows may fail; then has the model say in a line what it is about
    /// (SPEC E4).
    pub(super) async fn save_as(&mut self, name: Option<&str>) -> Result<()> {
        let name = name.unwrap_or(self.store.project_id()).to_owned();
        if !self.conversation.has_prompt() {
            self.screen
                .event(Event::Notice("there is nothing to save yet"));
            return Ok(());
        }
        let saved = self
            .store
            .save_named(&name, &self.conversation, self.config.model())?;
        if let Some(aside) = saved.kept_aside {
            self.screen.event(Event::Notice(&format!(
                "the conversation that was there is kept as {aside}"
            )));
        }
        self.screen.line(&format!("saved as {name}"));
        let summary = match self.summary_line().await {
            Ok(line) => line,
            Err(error) => {
                if !matches!(error, Error::Cancelled) {
                    self.screen.event(Event::Notice(&error.to_string()));
                }
                self.store.title(&self.conversation)
            }
        };
        self.store.set_summary(&summary);
        self.store
            .save_named(&name, &self.conversation, self.config.model())?;
        self.screen.line(&summary);
        Ok(())
    }

    async fn summary_line(&mut self) -> Result<String> {
        let turn = self.start.signals.begin_turn();
        let Agent { model, tools, .. } = &mut self.agent;
        let screen = self.screen.as_mut();
        compact::summary_line(
            model,
            tools.specs(),
            &self.conversation,
            screen,
            turn.token(),
        )
        .await
    }
}
