//! What follows from the settings: the look of the screen, the client's, the tools, the prompt.

use std::io::{self, IsTerminal};
use std::path::Path;

use crate::client::Settings;
use crate::config::Config;
use crate::prompt::{self, Facts};
use crate::render::{self, Look, Screen};
use crate::sanitize::Redactor;
use crate::session::{Store, Timestamp};
use crate::shell::Limits;
use crate::term;
use crate::tools::{Registry, Tool, shell_exec::ShellExec, write_file::WriteFile};

use super::Start;

/// The columns to lay out for where there is no terminal and no `COLUMNS`.
const DEFAULT_WIDTH: usize = 80;

/// The screen for the streams of the process.
pub(super) fn screen(start: &Start, config: &Config) -> Box<dyn Screen> {
    let variable = start.variable;
    render::text::set_joining(render::text::joins(
        variable("TERM_PROGRAM").as_deref(),
        variable("TERM").as_deref(),
    ));
    let is_terminal = io::stdout().is_terminal();
    let columns = variable("COLUMNS").and_then(|columns| columns.parse().ok());
    let columns = columns.filter(|columns| *columns > 0);
    let width = move || {
        if is_terminal {
            term::size().0
        } else {
            columns.unwrap_or(DEFAULT_WIDTH)
        }
    };
    render::screen(
        io::stdout(),
        io::stderr(),
        look(start, config),
        Box::new(width),
    )
}

/// How things are shown (SPEC B3, F6, F8).
pub(super) fn look(start: &Start, config: &Config) -> Look {
    let variable = start.variable;
    let dumb = variable("TERM").as_deref() == Some("dumb");
    let colorless = dumb || variable("NO_COLOR").is_some() || variable("BANTAM_NO_COLOR").is_some();
    let colored = |terminal: bool| match config.color() {
        _ if colorless => false,
        "always" => true,
        "never" => false,
        _ => terminal,
    };
    let terminal = io::stdout().is_terminal() && !dumb;
    let error_terminal = io::stderr().is_terminal() && !dumb;
    Look {
        terminal,
        error_terminal,
        color: colored(terminal),
        error_color: colored(error_terminal),
        markdown: match config.markdown() {
            "always" => true,
            "never" => false,
            _ => terminal,
        },
        quiet: start.quiet,
        redactor: redactor(config),
    }
}

/// What the client has to know.
pub fn client(config: &Config) -> Settings {
    Settings {
        endpoint: config.endpoint().into(),
        model: config.model().into(),
        api_key: config.api_key().map(|(key, _)| key.into()),
        headers: config.headers(),
        parameters: config.parameters(),
        stream: config.stream(),
        timeout: config.timeout(),
    }
}

/// What commands of the model and of the person are held to.
pub(super) fn limits(config: &Config, store: &Store) -> Limits {
    Limits {
        timeout: config.shell_timeout(),
        output_chars: config.tool_output_limit(),
        spill_dir: store.artifacts(),
        redactor: redactor(config),
    }
}

/// The tools that the model gets.
pub fn tools(config: &Config, store: &Store) -> Registry {
    let tools: Vec<Box<dyn Tool>> = vec![
        Box::new(ShellExec::new(limits(config, store))),
        Box::new(WriteFile::new()),
    ];
    Registry::new(tools, config.sanitize_args(), redactor(config))
}

/// The system message of a run that begins now in `directory`; `interactive` says whether a person
/// is there to answer.
pub fn system_prompt(directory: &Path, interactive: bool, config: &Config) -> String {
    let today = Timestamp::now().to_string();
    prompt::system(&Facts {
        directory: &directory.to_string_lossy(),
        date: today.get(..10).unwrap_or(&today),
        shell_timeout: config.shell_timeout().as_secs(),
        interactive,
        tools_dir: config.tools_dir(),
    })
}

fn redactor(config: &Config) -> Redactor {
    let headers = config.headers().into_iter().map(|(_, value)| value);
    Redactor::new(config.api_key().map(|(key, _)| key), headers)
}
