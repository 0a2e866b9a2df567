//! What the application does with session files: saving, listing, loading, compacting.

use crate::agent::Agent;
use crate::compact;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::message::Message;
use crate::session::{Found, Session};
use crate::usage::{TurnUsage, Usage};

use super::{App, Mode};

/// By how many points the usage has to grow before a declined compaction is offered again.
const OFFER_AGAIN: f64 = 10.0;

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
        let text = id.unwrap_or(self.store.project_id()).to_owned();
        let found = self.store.find(&text)?;
        if found == Found::None && self.start.mode != Mode::OneShot {
            let what = id.map_or("this directory has no session yet".into(), |id| {
                format!("no session `{id}`")
            });
            self.screen
                .event(Event::Notice(&format!("{what}; a new conversation begins")));
            return Ok(());
        }
        let session = self.store.load(&found.one(&text)?)?;
        if self.start.mode == Mode::OneShot {
            self.store.resume_in_place(&session);
        } else if session.id == self.store.project_id() {
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

    /// Offers to compact when the context is fairly full: a person is asked once a turn (SPEC E9).
    pub(super) async fn offer_compaction(&mut self) {
        let Some(usage) = self.usage.filter(|_| self.is_interactive()) else {
            return;
        };
        let threshold = self.config.compact_at();
        let percent = usage.percent(self.context_window());
        #[allow(clippy::cast_precision_loss)] // a percentage
        let due = threshold > 0 && percent >= threshold as f64;
        if due
            && self
                .declined_at
                .is_none_or(|declined| percent >= declined + OFFER_AGAIN)
        {
            if !self.ask_to_compact(&usage).await {
                self.declined_at = Some(percent);
            } else if let Err(error) = self.compact(None).await {
                self.fail(&error);
            }
        }
    }

    async fn ask_to_compact(&mut self, usage: &TurnUsage) -> bool {
        let window = self.context_window();
        let mark = if usage.context_estimated { "~" } else { "" };
        let question = format!(
            "Context usage is at {:.1}% ({mark}{} / {window} tokens). Compact conversation? [Y/n]: ",
            usage.percent(window),
            usage.context,
        );
        self.screen.end_line();
        self.source.confirm(&question, true).await
    }

    /// After a conversation turned out too long for the model: asks, compacts, and hands over the
    /// prompt to try again with (SPEC E9).
    pub(super) async fn make_room(&mut self, prompt: &str, taken_back: bool) -> Option<Message> {
        let bytes =
            serde_json::to_string(self.conversation.messages()).map_or(0, |text| text.len());
        let mut usage = TurnUsage::default();
        usage.add(Usage::estimate(bytes + prompt.len(), 0));
        if !self.ask_to_compact(&usage).await {
            return None;
        }
        if let Err(error) = self.compact(None).await {
            self.fail(&error);
            return None;
        }
        if taken_back {
            return Some(Message::user(prompt));
        }
        // The request is in the summary's message, word for word: it is what is tried again.
        let summary = self.conversation.last().cloned()?;
        self.conversation.truncate(1);
        Some(summary)
    }

    /// Replaces the conversation by its summary; an error leaves it as it was (SPEC E8).
    pub(super) async fn compact(&mut self, focus: Option<&str>) -> Result<()> {
        let interrupts = self.start.signals.turn();
        let window = self.context_window();
        let Agent { model, tools, .. } = &mut self.agent;
        let compacted = compact::compact(
            model,
            tools.specs(),
            &self.conversation,
            focus,
            window,
            self.screen.as_mut(),
            interrupts.token(),
        )
        .await;
        let compacted = compacted.inspect_err(|error| {
            let notice = match error {
                Error::Cancelled => {
                    "interrupted: the conversation is not compacted and is as it was"
                }
                _ => "the conversation could not be compacted and is as it was",
            };
            self.screen.event(Event::Warning(notice));
        })?;
        self.save(true);
        self.conversation = compacted;
        self.store.begin_compacted();
        self.forget_usage();
        self.save(true);
        self.screen
            .event(Event::Notice("the conversation was compacted to a summary"));
        Ok(())
    }
}
