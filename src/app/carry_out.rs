//! Carrying out slash commands: which does what, and those about settings and models. Those about
//! sessions are in `sessions`, `/compact` is in `compaction`.

use crate::commands::{self, Command};
use crate::error::Result;

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
        let turn = self.start.signals.begin_turn();
        let models = self.agent.model.models(turn.token()).await?;
        for model in models {
            let mark = if model == self.config.model() {
                '*'
            } else {
                ' '
            };
            self.screen.line(&format!("{mark} {model}"));
        }
        Ok(())
    }
}
