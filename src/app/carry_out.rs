//! Carrying out slash commands.

use crate::agent::Agent;
use crate::commands::{self, Command};
use crate::compact;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::message::{Conversation, Message};

use super::{App, Next};

/// How many sessions `/resume` shows.
const NEWEST: usize = 20;

impl App {
    /// Does what a command says. A failure is told and leaves everything as it was.
    pub(super) async fn carry_out(&mut self, command: Command) -> Next {
        let done = match command {
            Command::Quit => return Next::Quit,
            Command::Help => {
                self.screen.line(&commands::help());
                Ok(())
            }
            Command::Clear => {
                self.clear();
                Ok(())
            }
            Command::Compact(focus) => self.compact(focus.as_deref()).await,
            Command::Save(name) => self.save_as(name.as_deref()).await,
            Command::Continue => self.continue_project(),
            Command::List => self.list(usize::MAX),
            Command::Resume(None) => self.list(NEWEST),
            Command::Load(id) | Command::Resume(Some(id)) => self.load(&id),
            Command::Cfg { key, value } => self.configure(key.as_deref(), value.as_deref()),
            Command::Models => self.list_models().await,
        };
        match done {
            Ok(()) => Next::Continue(0),
            Err(error) => Next::Continue(self.fail(&error)),
        }
    }

    fn clear(&mut self) {
        self.save(true);
        self.conversation = Conversation::new(&self.system_prompt());
        self.store.begin();
        self.forget_usage();
        self.screen
            .event(Event::Notice("a new conversation begins"));
    }

    fn configure(&mut self, key: Option<&str>, value: Option<&str>) -> Result<()> {
        let Some(key) = key else {
            for (key, value) in self.config.shown() {
                self.screen.line(&format!("{key}={value}"));
            }
            return Ok(());
        };
        if let Some(value) = value {
            self.config.set(key, value)?;
            self.apply_settings();
            if matches!(key, "model" | "endpoint" | "api_key") {
                self.discover_window();
            }
        }
        match self.config.shown_value(key) {
            Some(value) => self.screen.line(&format!("{key}={value}")),
            None => self.screen.line(&format!("{key} is not set")),
        }
        Ok(())
    }

    async fn list_models(&mut self) -> Result<()> {
        let interrupts = self.start.signals.turn();
        let models = self.agent.model.models(interrupts.token()).await?;
        for model in models {
            let mark = if model == self.config.model() {
                "* "
            } else {
                "  "
            };
            self.screen.line(&format!("{mark}{model}"));
        }
        Ok(())
    }

    fn list(&mut self, most: usize) -> Result<()> {
        let sessions = self.store.list()?;
        if sessions.is_empty() {
            self.screen.line("no sessions yet");
        }
        for session in sessions.iter().take(most) {
            self.screen.line(&session.line());
        }
        Ok(())
    }

    fn load(&mut self, id: &str) -> Result<()> {
        let id = self.store.find(id)?.one(id)?;
        let session = self.store.load(&id)?;
        self.save(true);
        self.store.branch(&session);
        self.take_over(session);
        Ok(())
    }

    fn continue_project(&mut self) -> Result<()> {
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
    async fn save_as(&mut self, name: Option<&str>) -> Result<()> {
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
                self.first_line()
            }
        };
        self.store.set_summary(&summary);
        self.store
            .save_named(&name, &self.conversation, self.config.model())?;
        self.screen.line(&summary);
        Ok(())
    }

    async fn summary_line(&mut self) -> Result<String> {
        let interrupts = self.start.signals.turn();
        let Agent { model, tools, .. } = &mut self.agent;
        let screen = self.screen.as_mut();
        compact::summary_line(
            model,
            tools.specs(),
            &self.conversation,
            screen,
            interrupts.token(),
        )
        .await
    }

    /// The first line of the first prompt: what stands for a summary where there is none.
    fn first_line(&self) -> String {
        let first = self
            .conversation
            .messages()
            .iter()
            .find(|message| message.role() == "user");
        first
            .map(Message::text)
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .into()
    }
}
