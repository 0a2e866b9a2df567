//! When a conversation is compacted, and what becomes of it then (SPEC E8, E9).

use crate::agent::{Agent, End, Turn};
use crate::compact;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::message::Message;
use crate::usage::{TurnUsage, Usage};

use super::App;

/// By how many points the usage has to grow before a declined compaction is offered again.
const OFFER_AGAIN: f64 = 10.0;

impl App {
    /// Offers to compact when the context is fairly full: a person is asked once a turn (SPEC E9).
    pub(super) async fn offer_compaction(&mut self) {
        let Some(usage) = self.usage.filter(|_| self.is_interactive()) else {
            return;
        };
        let threshold = self.config.compact_at();
        let percent = usage.percent(self.context_window());
        #[allow(clippy::cast_precision_loss)] // a percentage
        let is_full = threshold > 0 && percent >= threshold as f64;
        let is_declined = self
            .declined_at
            .is_some_and(|declined| percent < declined + OFFER_AGAIN);
        if !is_full || is_declined {
            return;
        }
        if !self.ask_to_compact(&usage).await {
            self.declined_at = Some(percent);
        } else if let Err(error) = self.compact(None).await {
            self.fail(&error);
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

    /// After a turn failed because the conversation is too long for the model: asks, compacts and
    /// tries again (SPEC E9). What the turn came to in the end.
    pub(super) async fn try_again_compacted(&mut self, prompt: &str, failed: Turn) -> Turn {
        let stopped = Turn {
            end: End::Stopped,
            ..failed
        };
        let bytes =
            serde_json::to_string(self.conversation.messages()).map_or(0, |text| text.len());
        let mut usage = TurnUsage::default();
        usage.add(Usage::estimate(bytes + prompt.len(), 0));
        if !self.ask_to_compact(&usage).await {
            return stopped;
        }
        if let Err(error) = self.compact(None).await {
            self.fail(&error);
            return stopped;
        }
        if stopped.taken_back {
            return self.run_turn(Message::user(prompt)).await;
        }
        // The summary's message has the request, word for word: it is what is tried again. It is
        // also all that is left of the conversation, and stays whatever comes of that.
        let Some(summary) = self.conversation.pop() else {
            return stopped;
        };
        let mut turn = self.run_turn(summary.clone()).await;
        if std::mem::take(&mut turn.taken_back) {
            self.conversation.push(summary);
        }
        turn
    }

    /// Replaces the conversation by its summary; an error leaves it as it was (SPEC E8).
    pub(super) async fn compact(&mut self, focus: Option<&str>) -> Result<()> {
        let turn = self.start.signals.begin_turn();
        let window = self.context_window();
        let Agent { model, tools, .. } = &mut self.agent;
        let compacted = compact::compact(
            model,
            tools.specs(),
            &self.conversation,
            focus,
            window,
            self.screen.as_mut(),
            turn.token(),
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
