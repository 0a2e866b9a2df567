//! `MicroBantam`: the same agent on one page, to be read from top to bottom.
//!
//! What any agent needs (settings, a client, tools, a screen) is bantam's; what makes it an agent
//! stands here: the loop, the commands, the sessions. It leaves out what makes a program
//! comfortable: streaming, colour, a line editor, retries, compaction.
//!
//! ```text
//! cargo run --example mb               # prompts and commands, one a line
//! cargo run --example mb prompt.txt    # one prompt
//! ```

use std::io::{self, IsTerminal, Write};
use std::{env, fs, path::PathBuf, process};

use bantam::client::{Client, Network};
use bantam::config::{Config, Environment};
use bantam::model::{Model, Request};
use bantam::render::{self, Look, Screen};
use bantam::session::{Store, Timestamp};
use bantam::tools::{Context, Registry};
use bantam::{app::settings, message::Message};
use tokio_util::sync::CancellationToken;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const HELP: &str = "/save [ID]  /list  /load ID  /cfg [KEY [VALUE]]  /clear  /help  /quit";
/// What servers say of an assistant message that a broken stream once left empty.
const REFUSED: &str = "content or tool_calls must be set";

struct Agent {
    config: Config,
    client: Client,
    tools: Registry,
    messages: Vec<Message>,
    store: Store,
    screen: Box<dyn Screen>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Err(error) = run().await {
        let _ = writeln!(io::stderr(), "error: {error}");
        process::exit(1);
    }
}

async fn run() -> Result {
    let mut agent = Agent::new()?;
    match env::args_os().nth(1) {
        Some(file) => agent.turn(fs::read_to_string(file)?.trim_end()).await,
        None => agent.converse().await,
    }
}

impl Agent {
    fn new() -> Result<Self> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let (api_key, tools_dir) = (variable("OPENAI_API_KEY"), variable("BANTAM_TOOLS_DIR"));
        let environment = Environment { api_key, tools_dir };
        let dir = env::current_dir()?;
        let config = Config::load(&dir, vec![("stream".into(), "false".into())], environment)?;
        let store = Store::open(dirs::home_dir().as_deref(), &dir);
        let system = settings::system_prompt(&dir, env::args_os().len() == 1, &config);
        let network = Network::from_env(&variable)?;
        let look = Look {
            error_terminal: io::stderr().is_terminal(),
            ..Look::default()
        };
        Ok(Self {
            client: Client::new(settings::client(&config), network, &[]),
            tools: settings::tools(&config, &store),
            messages: vec![Message::system(&system)],
            screen: render::screen(io::stdout(), io::stderr(), look, Box::new(|| 80)),
            config,
            store,
        })
    }

    /// Takes prompts and commands, one a line, until the input ends.
    async fn converse(&mut self) -> Result {
        let mut lines = io::stdin().lines();
        loop {
            if io::stdin().is_terminal() {
                write!(io::stderr(), "> ")?;
            }
            let line = lines.next().unwrap_or_else(|| Ok("/quit".into()))?;
            if let Err(error) = self.obey(line.trim()).await {
                writeln!(io::stderr(), "error: {error}")?;
            }
            self.save("autosave")?;
            if line.trim() == "/quit" {
                return Ok(());
            }
        }
    }

    async fn obey(&mut self, line: &str) -> Result {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "" | "/quit" => (),
            "/help" => self.screen.line(HELP),
            "/clear" => self.messages.truncate(1),
            "/cfg" => self.configure(rest)?,
            "/save" => self.save(rest)?,
            "/load" => self.messages = self.store.load(rest)?.conversation.messages().to_vec(),
            "/list" => self.screen.line(&self.store.ids()?.join("\n")),
            _ => self.turn(line).await?,
        }
        Ok(())
    }

    /// Takes one prompt: asks the model and runs what it calls, until it calls nothing more.
    async fn turn(&mut self, prompt: &str) -> Result {
        let cancel = &CancellationToken::new();
        self.messages.push(Message::user(prompt));
        for _ in 0..self.config.max_iterations() {
            let (messages, tools) = (&self.messages[..], self.tools.specs());
            let request = Request { messages, tools };
            let reply = self.client.complete(request, &mut *self.screen, cancel);
            let message = match reply.await {
                Err(error) if error.to_string().contains(REFUSED) => {
                    let is_answer = |old: &Message| old.role() == "assistant";
                    let last = self.messages.iter().rposition(is_answer);
                    self.messages.remove(last.ok_or(error)?);
                    continue;
                }
                reply => reply?.message,
            };
            self.messages.push(message.clone());
            for call in message.tool_calls() {
                self.screen
                    .line(&format!("[tool call: {}({})]", call.name, call.arguments));
                let on_output = &mut |_: &str| ();
                let context = Context { cancel, on_output };
                let output = self.tools.call(call.name, call.arguments, context).await;
                self.screen
                    .line(&format!("[tool result: {}]\n{}", call.name, output.text));
                self.messages.push(Message::tool(call.id, &output.text));
            }
            if message.tool_calls().is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn configure(&mut self, line: &str) -> Result {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        if !value.is_empty() {
            self.config.set(key, value)?;
            self.client.configure(settings::client(&self.config));
            self.tools = settings::tools(&self.config, &self.store);
        }
        let value = self.config.shown_value(key).unwrap_or_default();
        self.screen.line(&format!("{key}={value}"));
        Ok(())
    }

    /// Saves under a name that isn't taken, or to the one file that is written every time.
    fn save(&self, id: &str) -> Result {
        let now = Timestamp::now().to_string().replace(':', "");
        let id = if id.is_empty() { &now } else { id };
        let (mut path, mut number) = (file(id)?, 0);
        while id != "autosave" && path.exists() {
            number += 1;
            path = file(&format!("{id}-{number}"))?;
        }
        Ok(fs::write(path, serde_json::to_vec(&self.messages)?)?)
    }
}

/// The file of a session, whose ID may be no path.
fn file(id: &str) -> Result<PathBuf> {
    let home = dirs::home_dir().ok_or("no home directory")?;
    let directory = home.join(".bantam/sessions");
    fs::create_dir_all(&directory)?;
    let name = PathBuf::from(format!("{id}.json"));
    Ok(directory.join(name.file_name().ok_or("no name")?))
}
