//! `bantam`, the program: what the command line asks for, from the first line to the exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bantam::app::{self, App, Mode, Next, Start};
use bantam::error::{Error, Result};
use bantam::sanitize::screen_line;
use bantam::signals::{self, Hooks, Signals};
use bantam::{config, render, shell, term};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

const USAGE_ERROR: u8 = 2;

/// The FILE that stands for standard input.
const STDIN: &str = "-";

/// What the command line asks for.
#[derive(Debug, Default)]
struct Options {
    file: Option<PathBuf>,
    quiet: bool,
    overrides: Vec<(String, String)>,
    resume: Resume,
}

/// Which session to go on with.
#[derive(Debug, Default, PartialEq, Eq)]
enum Resume {
    #[default]
    None,
    Project,
    Session(String),
}

enum Request {
    Run(Options),
    Print(String),
}

fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os().skip(1).collect()))
}

/// Runs the program with these arguments; its exit code (SPEC A4).
pub(crate) fn run(arguments: Vec<OsString>) -> u8 {
    let options = match parse(arguments) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Print(text)) => return print(&text),
        Err(wrong) => {
            let wrong = screen_line(&wrong.to_string());
            let _ = writeln!(io::stderr(), "error: {wrong}\nhint: bantam --help");
            return USAGE_ERROR;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let code = match runtime {
        Ok(runtime) => runtime.block_on(start(options)),
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: cannot start the runtime: {error}");
            1
        }
    };
    // Threads that wait for input would hold the program: it leaves through here, all being cleaned up.
    std::process::exit(i32::from(code));
}

fn parse(arguments: Vec<OsString>) -> std::result::Result<Request, lexopt::Error> {
    use lexopt::{Arg, ValueExt};

    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut may_be_id = false;
    while let Some(argument) = parser.next()? {
        let follows_resume = std::mem::replace(&mut may_be_id, false);
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Request::Print(app::help_page())),
            Arg::Short('V') | Arg::Long("version") => {
                return Ok(Request::Print(format!(
                    "bantam {}",
                    env!("CARGO_PKG_VERSION")
                )));
            }
            Arg::Short('q') | Arg::Long("quiet") => options.quiet = true,
            Arg::Short('c') => {
                let text = parser.value()?.string()?;
                let wrong = |wrong| format!("-c: {wrong}");
                options
                    .overrides
                    .push(config::parse_override(&text).map_err(wrong)?);
            }
            Arg::Long("resume") => {
                let id = parser.optional_value().map(ValueExt::string).transpose()?;
                may_be_id = id.is_none();
                options.resume = id.map_or(Resume::Project, Resume::Session);
            }
            Arg::Value(word) if follows_resume && !Path::new(&word).exists() && word != STDIN => {
                options.resume = Resume::Session(word.string()?);
            }
            Arg::Value(file) if options.file.is_none() => options.file = Some(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Request::Run(options))
}

/// Sets everything up and runs what was asked for.
async fn start(options: Options) -> u8 {
    let hooks = Hooks {
        end_commands: shell::end_running,
        is_handed_over: shell::terminal_is_handed_over,
        is_stuck: render::is_stuck,
        restore_terminal: term::restore,
        resume_terminal: term::resume,
        interrupt_prompt: term::interrupt,
    };
    let signals = match Signals::install(hooks) {
        Ok(signals) => signals,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: cannot listen to signals: {error}");
            return 1;
        }
    };
    let mode = match &options.file {
        Some(_) => Mode::OneShot,
        None if io::stdin().is_terminal() && io::stdout().is_terminal() => Mode::Interactive,
        None => Mode::Piped,
    };
    let code = match open(mode, &options, signals.clone()) {
        Ok(app) => in_mode(app, options.file, options.resume, signals.stop()).await,
        Err(error) => report(&error),
    };
    shell::end_running(signals::GRACE);
    signals.exit_code().unwrap_or(code)
}

fn open(mode: Mode, options: &Options, signals: Signals) -> Result<App> {
    let directory = working_directory()?;
    App::open(Start {
        mode,
        quiet: options.quiet,
        overrides: options.overrides.clone(),
        keep: mode != Mode::OneShot || options.resume != Resume::None,
        directory,
        home: dirs::home_dir(),
        variable: |name| std::env::var(name).ok().filter(|value| !value.is_empty()),
        signals,
    })
}

/// The directory the program was started in, even if it is gone by now: its commands will say so.
fn working_directory() -> Result<PathBuf> {
    std::env::current_dir().or_else(|error| {
        let named = std::env::var_os("PWD")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        named.ok_or_else(|| Error::io("find", "the working directory", error))
    })
}

async fn in_mode(
    mut app: App,
    file: Option<PathBuf>,
    resume: Resume,
    stop: &CancellationToken,
) -> u8 {
    if file.is_none() {
        app.greet().await;
    }
    let resumed = match resume {
        Resume::None => Ok(()),
        Resume::Project => app.resume(None),
        Resume::Session(id) => app.resume(Some(&id)),
    };
    let code = match (resumed, file) {
        (Err(error), _) => app.fail(&error),
        (Ok(()), Some(file)) => one_shot(&mut app, file, stop).await,
        (Ok(()), None) => repl(&mut app).await,
    };
    app.close(code)
}

/// One prompt, or one command, from a file.
async fn one_shot(app: &mut App, file: PathBuf, stop: &CancellationToken) -> u8 {
    let text = match prompt_from(file, stop).await {
        Ok(text) => text,
        Err(error) => return app.fail(&error),
    };
    if let Some(command) = text.strip_prefix('!') {
        return app.shell(command).await;
    }
    app.greet().await;
    app.prompt(&text).await
}

/// Prompts and commands, one after another, until there are no more.
async fn repl(app: &mut App) -> u8 {
    let mut code = 0;
    while let Some(line) = app.read_line().await {
        match app.submit(&line).await {
            Next::Quit => break,
            Next::Continue(outcome) => code = outcome,
        }
    }
    if app.is_interactive() { 0 } else { code }
}

/// Reads the prompt. What may be waited for, such as a pipe, is read on a thread of its own: a
/// signal must not wait (SPEC C11).
async fn prompt_from(file: PathBuf, stop: &CancellationToken) -> Result<String> {
    if file != Path::new(STDIN) && file.is_file() {
        return read_prompt(&file);
    }
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || sender.send(read_prompt(&file)));
    match stop.run_until_cancelled(receiver).await {
        Some(Ok(prompt)) => prompt,
        _ => Err(Error::Cancelled),
    }
}

/// The prompt that `file` holds; `-` is standard input (SPEC A2).
fn read_prompt(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = match file.to_str() {
        Some(STDIN) => io::stdin().lock().read_to_end(&mut bytes).map(drop),
        _ => std::fs::read(file).map(|content| bytes = content),
    };
    read.map_err(|error| {
        let looks_like_prompt =
            error.kind() == io::ErrorKind::NotFound && file.to_string_lossy().contains(' ');
        Error::Config {
            message: format!("cannot read the prompt from {}: {error}", file.display()),
            hint: looks_like_prompt
                .then(|| "a prompt can be piped in: echo \"…\" | bantam -".into()),
        }
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(&text)
        .trim_end_matches(['\n', '\r']);
    if text.trim().is_empty() {
        let message = format!("the prompt in {} is empty", file.display());
        return Err(Error::Config {
            message,
            hint: None,
        });
    }
    Ok(text.into())
}

/// Prints a page; the exit code. A closed pipe is no failure: whoever closed it has seen enough.
fn print(text: &str) -> u8 {
    match writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            report(&Error::io("write to", "standard output", error))
        }
        _ => 0,
    }
}

/// Tells of an error before there is a screen.
fn report(error: &Error) -> u8 {
    let _ = writeln!(io::stderr(), "error: {}", screen_line(&error.to_string()));
    if let Some(hint) = error.hint() {
        let _ = writeln!(io::stderr(), "hint: {}", screen_line(hint));
    }
    1
}
