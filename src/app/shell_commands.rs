//! Commands that the person runs: `!CMD` and `!!CMD` (SPEC D8).

use std::io::{self, IsTerminal};

use crate::error::{Error, Result};
use crate::message::Message;
use crate::shell::{self, Outcome};

use super::{App, settings};

impl App {
    /// Runs a command that the conversation does not learn of; its exit code.
    pub async fn shell(&mut self, command: &str) -> u8 {
        self.screen.end_line();
        let code = if has_terminal() {
            self.run_on_terminal(command)
        } else {
            let outcome = self.run_captured(command).await;
            outcome.map(|outcome| outcome.end.code())
        };
        self.screen.end_line();
        match code {
            Ok(code) => u8::try_from(code & 0xff).unwrap_or(1),
            Err(error) => self.fail(&error),
        }
    }

    /// Runs a command like the model's, and lets the conversation know.
    pub(super) async fn shell_into_conversation(&mut self, command: &str) -> u8 {
        self.screen.end_line();
        match self.run_captured(command).await {
            Ok(Outcome { text, .. }) => {
                let text = format!("I ran: {command}\n\nIts output:\n{text}");
                self.conversation.push(Message::user(&text));
                self.save(true);
                0
            }
            Err(error) => self.fail(&error),
        }
    }

    fn run_on_terminal(&mut self, command: &str) -> Result<i32> {
        let run = || shell::run_on_terminal(command);
        let code = match self.source.terminal() {
            Some(terminal) => terminal.hand_over(run),
            None => run(),
        };
        let code = code.map_err(|error| Error::io("run the command", command, error))?;
        // On a line of its own even when the command left the cursor within one.
        self.screen.line(&format!("\nexit: {code}"));
        Ok(code)
    }

    async fn run_captured(&mut self, command: &str) -> Result<Outcome> {
        let turn = self.start.signals.begin_turn();
        let limits = settings::limits(&self.config, &self.store);
        let screen = &mut self.screen;
        let mut show = |chunk: &str| {
            screen.command_output(chunk);
            if screen.closed() {
                turn.token().cancel();
            }
        };
        shell::run(command, &limits, turn.token(), &mut show)
            .await
            .map_err(|error| Error::io("run the command", command, error))
    }
}

/// Whether commands can be given a terminal.
fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}
