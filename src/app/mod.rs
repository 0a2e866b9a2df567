//! The application: one prompt or command from start to end.
//!
//! Owns what a conversation needs to go on: settings, the agent, the conversation and its file, the
//! screen and, where there is one, the terminal.

mod carry_out;
mod completion;
mod input;
mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::agent::{Agent, End, Turn};
use crate::client::{BACKOFF, Client, Network};
use crate::commands::{self, Parsed};
use crate::config::{Config, Environment};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::message::{Conversation, Message};
use crate::render::Screen;
use crate::session::Store;
use crate::shell::{self, End as ShellEnd};
use crate::signals::{INTERRUPTED, Signals};
use crate::usage::TurnUsage;
use input::Source;

/// How the program is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A person at a terminal.
    Interactive,
    /// Prompts from a pipe, one a line.
    Piped,
    /// One prompt from a file.
    OneShot,
}

/// Everything that `main` knows and the application does not find out by itself.
pub struct Start {
    /// How the program is used.
    pub mode: Mode,
    /// Whether only the last answer is to be shown.
    pub quiet: bool,
    /// Settings of the command line.
    pub overrides: Vec<(String, String)>,
    /// Whether the conversation is kept in session files.
    pub keep: bool,
    /// The working directory.
    pub directory: PathBuf,
    /// The home directory, if there is one.
    pub home: Option<PathBuf>,
    /// A variable of the environment, if it is set and not empty.
    pub variable: fn(&str) -> Option<String>,
    /// What interrupts and ends it.
    pub signals: Signals,
}

/// What the person does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The program ends.
    Quit,
    /// It goes on; the exit code is for the case that nothing follows.
    Continue(u8),
}

/// The application.
pub struct App {
    start: Start,
    config: Config,
    agent: Agent<Client>,
    conversation: Conversation,
    store: Store,
    screen: Box<dyn Screen>,
    source: Source,
    /// The context window that the server tells; 0 as long as it has not.
    window: Arc<AtomicU64>,
    /// The figures of the last turn, as long as they describe the conversation as it is.
    usage: Option<TurnUsage>,
    /// At how many percent the person last declined to compact.
    declined_at: Option<f64>,
}

/// The page that `--help` prints (SPEC A5).
pub fn help_page() -> String {
    format!(
        "bantam {}: an AI agent for the terminal\n\n{}\n{}",
        env!("CARGO_PKG_VERSION"),
        include_str!("help.txt"),
        commands::help()
    )
}

impl App {
    /// Reads the settings and gets everything ready. Nothing is sent yet.
    pub fn open(start: Start) -> Result<Self> {
        let environment = Environment {
            api_key: (start.variable)("OPENAI_API_KEY"),
            tools_dir: (start.variable)("BANTAM_TOOLS_DIR"),
        };
        let mut config = Config::load(&start.directory, start.overrides.clone(), environment)?;
        let network = Network::from_env(&start.variable)?;
        let store = Store::open(start.home.clone(), &start.directory);
        let mut screen = settings::screen(&start, &config);
        for warning in config.take_warnings() {
            screen.event(Event::Warning(&warning));
        }
        let agent = Agent {
            model: Client::new(settings::client(&config), network, BACKOFF),
            tools: settings::tools(&config, &store),
            max_iterations: config.max_iterations(),
        };
        let conversation = Conversation::new(&settings::system_prompt(&start, &config));
        let source = Source::open(start.mode)?;
        let window = Arc::default();
        let mut app =
            Self { start, config, agent, conversation, store, screen, source, window, usage: None, declined_at: None };
        app.open_terminal();
        Ok(app)
    }

    /// Whether a person sits at a terminal.
    pub fn is_interactive(&self) -> bool {
        self.start.mode == Mode::Interactive
    }

    /// Runs one line of input: a slash command, a shell command or a prompt.
    pub async fn submit(&mut self, line: &str) -> Next {
        let text = line.trim();
        if text.is_empty() {
            return Next::Continue(0);
        }
        if let Some(command) = text.strip_prefix("!!") {
            return Next::Continue(self.shell_into_conversation(command).await);
        }
        if let Some(command) = text.strip_prefix('!') {
            // In the loop a command's exit code is shown, not the loop's own.
            self.shell(command).await;
            return Next::Continue(0);
        }
        match commands::parse(text) {
            Parsed::Command(command) => self.carry_out(command).await,
            Parsed::Wrong(error) => Next::Continue(self.fail(&error)),
            Parsed::Prompt => Next::Continue(self.prompt(text).await),
        }
    }

    /// Takes one prompt to its answer, tells its usage and saves the conversation; the exit code.
    pub async fn prompt(&mut self, text: &str) -> u8 {
        let message = Message::user(text);
        let turn = self.run_turn(message.clone()).await;
        let retry = match &turn.end {
            End::Failed(error) if error.is_context_length() && self.is_interactive() => {
                self.screen.error(error);
                self.make_room_for(message, &turn).await
            }
            _ => None,
        };
        let turn = match retry {
            Some(message) => self.run_turn(message).await,
            None => turn,
        };
        if turn.taken_back {
            self.source.recall(text);
        }
        let code = self.report(&turn);
        if code == 0 {
            self.offer_compaction().await;
        }
        code
    }

    async fn run_turn(&mut self, prompt: Message) -> Turn {
        self.screen.end_line();
        let interrupts = self.start.signals.turn();
        self.begin_discovery();
        let Self { agent, conversation, screen, store, start, config, .. } = self;
        let mut warned = false;
        let mut save = |conversation: &Conversation| {
            if !start.keep || warned {
                return;
            }
            if let Err(error) = store.save(conversation, config.model(), false) {
                warned = true;
                start_warning(&error);
            }
        };
        agent.run_turn(conversation, prompt, screen.as_mut(), interrupts.token(), &mut save).await
    }
}
