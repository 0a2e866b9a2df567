//! The application: one prompt or command from start to end.
//!
//! Owns what a conversation needs to go on: settings, the agent, the conversation and its file, the
//! screen and, where there is one, the terminal.

mod carry_out;
mod compaction;
mod completion;
mod input;
mod sessions;
pub mod settings;
mod shell_commands;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::agent::{Agent, End, Turn};
use crate::client::{BACKOFF, Client, Network};
use crate::commands::{self, Command};
use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::message::{Conversation, Message};
use crate::render::Screen;
use crate::session::Store;
use crate::signals::{INTERRUPTED, Signals};
use crate::term::Terminal;
use crate::trust::Destination;
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

/// What the application does not find out by itself.
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

/// What follows a line of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The program ends.
    Quit,
    /// It goes on; this would be the exit code if nothing followed.
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
    /// Whether the person knows already that the conversation can't be saved.
    save_failed: bool,
}

/// The page that `--help` prints: all of it fits a screen of 80 by 24 (SPEC A5).
pub fn help_page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (page, commands) = (include_str!("help.txt"), commands::overview());
    format!("bantam {version}: an AI agent for the terminal\n\n{page}{commands}")
}

impl App {
    /// Reads the settings and gets everything ready. Nothing is sent yet.
    pub fn open(start: Start) -> Result<Self> {
        let environment = config::Environment {
            api_key: (start.variable)("OPENAI_API_KEY"),
            tools_dir: (start.variable)("BANTAM_TOOLS_DIR"),
        };
        let mut config = Config::load(&start.directory, start.overrides.clone(), environment)?;
        let network = Network::from_env(&start.variable)?;
        let store = Store::open(start.home.as_deref(), &start.directory);
        let mut screen = settings::screen(&start, &config);
        for warning in config.take_warnings() {
            screen.event(Event::Warning(&warning));
        }
        if start.home.is_none() && start.keep {
            let warning = "HOME is not set: the conversation and the history are not saved";
            screen.event(Event::Warning(warning));
        }
        let source = match start.mode {
            Mode::Interactive => input::open_terminal(&start, &config, screen.as_mut())?,
            Mode::Piped => Source::pipe(),
            Mode::OneShot => Source::Nothing,
        };
        Ok(Self {
            agent: Agent {
                model: Client::new(settings::client(&config), network, BACKOFF),
                tools: settings::tools(&config, &store),
                max_iterations: config.max_iterations(),
            },
            conversation: Conversation::new(&settings::system_prompt(
                &start.directory,
                start.mode == Mode::Interactive,
                &config,
            )),
            window: Arc::default(),
            usage: None,
            declined_at: None,
            // Without a home that was said above.
            save_failed: start.home.is_none(),
            start,
            config,
            store,
            screen,
            source,
        })
    }

    /// The system message as it has to be now.
    fn system_prompt(&self) -> String {
        settings::system_prompt(&self.start.directory, self.is_interactive(), &self.config)
    }

    /// Whether a person sits at a terminal.
    pub fn is_interactive(&self) -> bool {
        self.start.mode == Mode::Interactive
    }

    /// Says what runs and where it sends the conversation, and asks whether the key may go there
    /// (SPEC B9). To be called once, before anything is sent.
    pub async fn greet(&mut self) {
        if self.is_interactive() {
            let (version, model) = (env!("CARGO_PKG_VERSION"), self.config.model());
            let from = self.config.file().unwrap_or("defaults");
            let endpoint = self.config.shown_endpoint();
            self.screen.line(&format!(
                "bantam {version}: {model} at {endpoint} ({from}); /help lists the commands"
            ));
        }
        self.check_destination().await;
        self.discover_window();
    }

    async fn check_destination(&mut self) {
        let Some(destination) = Destination::in_question(&self.config) else {
            return;
        };
        let home = self.start.home.clone();
        if destination.is_trusted(home.as_deref()) {
            return;
        }
        let endpoint = self.config.shown_endpoint();
        if !self.is_interactive() {
            let warning =
                format!("the key of OPENAI_API_KEY goes to {endpoint}, which nobody has confirmed");
            self.screen.event(Event::Warning(&warning));
            return;
        }
        let question = format!("May the key of OPENAI_API_KEY go to {endpoint}? [y/N]: ");
        self.screen.end_line();
        if !self.source.confirm(&question, false).await {
            self.config.forget_environment_key();
            self.apply_settings();
        } else if let Some(Err(error)) = home.map(|home| destination.trust(&home)) {
            self.screen
                .event(Event::Warning(&format!("cannot remember that: {error}")));
        }
    }

    /// The next line of input; `None` when there is none, when the program is to end, or when
    /// nobody can see any more what it does.
    pub async fn read_line(&mut self) -> Option<String> {
        self.screen.end_line();
        if self.screen.closed() {
            return None;
        }
        let line = self.source.next(self.start.signals.stop()).await;
        if let Some(warning) = self.source.terminal().and_then(Terminal::take_warning) {
            self.screen.event(Event::Warning(&warning));
        }
        line
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
            // In the loop a command's exit code is shown, not made the loop's own.
            self.shell(command).await;
            return Next::Continue(0);
        }
        match Command::parse(text) {
            Some(Ok(command)) => self.carry_out(command).await,
            Some(Err(error)) => Next::Continue(self.fail(&error)),
            None => Next::Continue(self.prompt(text).await),
        }
    }

    /// Takes one prompt to its answer, tells its usage and saves the conversation; the exit code.
    pub async fn prompt(&mut self, text: &str) -> u8 {
        let mut turn = self.run_turn(Message::user(text)).await;
        if let End::Failed(error) = &turn.end
            && error.is_context_length()
            && self.is_interactive()
            && self.conversation.has_prompt()
        {
            self.screen.error(error);
            turn = self.try_again_compacted(text, turn).await;
        }
        if turn.taken_back {
            self.source.recall(text);
        }
        let code = self.report(&turn);
        self.save(true);
        if code == 0 {
            self.offer_compaction().await;
        }
        code
    }

    /// Has the agent work on a prompt, saving as it goes.
    async fn run_turn(&mut self, prompt: Message) -> Turn {
        self.screen.end_line();
        let interrupts = self.start.signals.begin_turn();
        let Self {
            agent,
            conversation,
            screen,
            store,
            start,
            config,
            ..
        } = self;
        let mut failure = None;
        let mut save = |conversation: &Conversation| {
            if start.keep {
                failure = store
                    .save(conversation, config.model(), false)
                    .err()
                    .or(failure.take());
            }
        };
        let turn = agent
            .run_turn(
                conversation,
                prompt,
                screen.as_mut(),
                interrupts.token(),
                &mut save,
            )
            .await;
        if let Some(error) = failure {
            self.warn_of_save(&error);
        }
        turn
    }

    /// Tells how a turn ended and what it used; the exit code.
    fn report(&mut self, turn: &Turn) -> u8 {
        self.screen.end_line();
        if let Some(usage) = turn.usage {
            let line = usage.line(self.config.model(), self.context_window());
            self.screen.event(Event::Usage(&line));
            self.usage = Some(usage);
        }
        match &turn.end {
            End::Answered => 0,
            End::Stopped => 1,
            End::Interrupted if self.screen.closed() => 0,
            End::Interrupted => INTERRUPTED,
            End::Failed(error) => self.fail(error),
        }
    }

    /// Shows an error; the exit code that goes with it.
    pub fn fail(&mut self, error: &Error) -> u8 {
        if matches!(error, Error::Cancelled) {
            return INTERRUPTED;
        }
        self.screen.end_line();
        self.screen.error(error);
        1
    }

    /// Saves what is not saved yet and writes out what is not written yet; the exit code.
    pub fn close(&mut self, code: u8) -> u8 {
        self.save(true);
        match self.screen.finish() {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
            Err(error) => self
                .fail(&Error::io("write to", "standard output", error))
                .max(code),
            Ok(()) => code,
        }
    }

    /// The context window in tokens, as far as it is known by now.
    fn context_window(&self) -> u64 {
        match self.window.load(Ordering::Relaxed) {
            0 => self
                .agent
                .model
                .stated_window()
                .unwrap_or(self.config.context_window()),
            discovered => discovered,
        }
    }

    /// Asks the server for the context window, beside everything else (SPEC B8).
    fn discover_window(&mut self) {
        let known = Arc::new(AtomicU64::new(0));
        self.window = Arc::clone(&known);
        let answer = self.agent.model.discover_window();
        tokio::spawn(async move {
            if let Some(window) = answer.await {
                known.store(window, Ordering::Relaxed);
            }
        });
    }

    /// Has everything follow the settings after one of them changed.
    fn apply_settings(&mut self) {
        self.agent.model.configure(settings::client(&self.config));
        self.agent.tools = settings::tools(&self.config, &self.store);
        self.agent.max_iterations = self.config.max_iterations();
        let look = settings::look(&self.start, &self.config);
        if let Some(terminal) = self.source.terminal() {
            terminal.set_color(look.color);
        }
        self.screen.set_look(look);
    }
}
