//! The real binary at a terminal of its own: a pseudo-terminal whose screen the crate `vt100` draws.
//!
//! Tests type, and wait until the screen shows what they expect. Nothing here sleeps.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::DEADLINE;
use super::cli::Cli;
use super::process::wait_until;

/// What scrolls off the screen is kept, up to so many rows.
const SCROLLBACK: usize = 10_000;

/// A program at a terminal.
pub(crate) struct Pty {
    child: Box<dyn Child + Send + Sync>,
    // Before the master, so that a terminal that hangs up does so at once.
    writer: Option<Box<dyn Write + Send>>,
    master: Option<Box<dyn MasterPty + Send>>,
    reader: Option<JoinHandle<()>>,
    shared: Arc<(Mutex<Terminal>, Condvar)>,
    home: TempDir,
    directory: TempDir,
}

/// What the reading thread has seen.
struct Terminal {
    parser: vt100::Parser,
    raw: Vec<u8>,
    size: (u16, u16),
    /// No more is read: the terminal is to hang up.
    abandoned: bool,
    ended: bool,
}

/// The screen as a person sees it.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    /// The rows, without blanks at their ends.
    pub(crate) rows: Vec<String>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
}

impl Screen {
    /// The row that the cursor is in.
    pub(crate) fn line(&self) -> &str {
        self.rows.get(self.cursor.0).map_or("", String::as_str)
    }

    /// Whether any row contains this.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.rows.iter().any(|row| row.contains(text))
    }

    /// Whether the cursor stands behind the sign of an empty prompt.
    pub(crate) fn is_at_prompt(&self) -> bool {
        self.line() == ">" && self.cursor.1 == 2
    }

    /// The rows from the last one that begins with the prompt sign, without blank ones at the end.
    pub(crate) fn prompt(&self) -> Vec<&str> {
        let start = self.rows.iter().rposition(|row| row.starts_with('>'));
        let rows = &self.rows[start.unwrap_or(0)..];
        let filled = rows.iter().rposition(|row| !row.is_empty());
        let rows = &rows[..filled.map_or(0, |last| last + 1)];
        rows.iter().map(String::as_str).collect()
    }
}

impl Pty {
    /// Starts the run at a terminal of 80 columns and 24 rows.
    #[track_caller]
    pub(crate) fn start(run: Cli) -> Self {
        Self::with_size(run, 80, 24)
    }

    /// Starts the run at a terminal of this size.
    #[track_caller]
    pub(crate) fn with_size(run: Cli, columns: u16, rows: u16) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let command = run.command();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        builder.env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        builder.cwd(run.directory.path());
        let child = pair.slave.spawn_command(builder).unwrap();
        let known = |size: u16, default| if size == 0 { default } else { size };
        let (columns, rows) = (known(columns, 80), known(rows, 24));
        let shared = Arc::new((
            Mutex::new(Terminal {
                parser: vt100::Parser::new(rows, columns, SCROLLBACK),
                raw: Vec::new(),
                size: (columns, rows),
                abandoned: false,
                ended: false,
            }),
            Condvar::new(),
        ));
        let reader = pair.master.try_clone_reader().unwrap();
        Self {
            child,
            writer: Some(pair.master.take_writer().unwrap()),
            master: Some(pair.master),
            reader: Some(read_all(reader, Arc::clone(&shared))),
            shared,
            home: run.home,
            directory: run.directory,
        }
    }

    /// The home of the run.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The directory of the run.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Types, in one write.
    #[track_caller]
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        self.bytes(keys.as_bytes())
    }

    /// Types bytes, in one write.
    #[track_caller]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(bytes).unwrap();
        writer.flush().unwrap();
        self
    }

    /// Types a text, waits until it is echoed, and submits it.
    #[track_caller]
    pub(crate) fn submit(&mut self, text: &str) -> &mut Self {
        self.keys(text);
        self.wait("the text typed", |screen| screen.line().ends_with(text));
        self.keys("\r")
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, wanted: impl Fn(&Screen) -> bool) -> Screen {
        let ends_before = Instant::now() + DEADLINE;
        let mut terminal = locked(&self.shared);
        loop {
            let screen = terminal.screen();
            if wanted(&screen) {
                return screen;
            }
            let rest = ends_before.saturating_duration_since(Instant::now());
            assert!(
                !rest.is_zero() && !terminal.ended,
                "not on the screen: {what}\n{}",
                terminal.shown()
            );
            terminal = self.shared.1.wait_timeout(terminal, rest).unwrap().0;
        }
    }

    /// Waits until some row contains this.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> Screen {
        self.wait(text, |screen| screen.has(text))
    }

    /// Waits for an empty prompt.
    #[track_caller]
    pub(crate) fn wait_for_prompt(&self) -> Screen {
        self.wait("an empty prompt", Screen::is_at_prompt)
    }

    /// Waits until the prompt's rows are these, with the cursor in this row and column of them.
    #[track_caller]
    pub(crate) fn wait_for_text(&self, rows: &[&str], cursor: (usize, usize)) {
        self.wait(
            &format!("{rows:?} with the cursor at {cursor:?}"),
            |screen| {
                let start = screen.rows.iter().rposition(|row| row.starts_with('>'));
                screen.prompt() == rows
                    && screen.cursor == (start.unwrap_or(0) + cursor.0, cursor.1)
            },
        );
    }

    /// All bytes that came out so far.
    pub(crate) fn raw(&self) -> Vec<u8> {
        locked(&self.shared).raw.clone()
    }

    /// The whole transcript: what has scrolled off the screen and what is on it.
    pub(crate) fn transcript(&self) -> Vec<String> {
        locked(&self.shared).transcript()
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let mut terminal = locked(&self.shared);
        terminal.size = (columns, rows);
        terminal.parser.screen_mut().set_size(rows, columns);
        drop(terminal);
        self.master
            .as_ref()
            .unwrap()
            .resize(size(columns, rows))
            .unwrap();
    }

    /// The modes of the terminal, to be compared.
    pub(crate) fn modes(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        self.master.as_ref().unwrap().get_termios().unwrap()
    }

    /// Sends a signal to the program.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid())
            .ok()
            .and_then(Pid::from_raw)
            .unwrap();
        kill_process(pid, signal).expect("the program still runs");
    }

    /// Closes the terminal, as a window is closed. The program must be at its prompt, or printing.
    pub(crate) fn hang_up(&mut self) {
        locked(&self.shared).abandoned = true;
        // The reader waits for output, and only what comes from now on is sure to end it: an echo.
        self.keys("y");
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.writer = None;
        self.master = None;
    }

    /// Waits for the program's end; gives its exit code.
    #[track_caller]
    pub(crate) fn finish(&mut self) -> u32 {
        let mut status = None;
        let ended = wait_until(Instant::now() + DEADLINE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(ended, "it did not end:\n{}", locked(&self.shared).shown());
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status.unwrap().exit_code()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    fn rows(&self) -> impl Iterator<Item = String> {
        let rows = self.parser.screen().rows(0, self.size.0);
        rows.map(|row| row.trim_end().to_owned())
    }

    fn screen(&self) -> Screen {
        let (row, column) = self.parser.screen().cursor_position();
        Screen {
            rows: self.rows().collect(),
            cursor: (row.into(), column.into()),
        }
    }

    fn transcript(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        self.parser.screen_mut().set_scrollback(usize::MAX);
        for back in (1..=self.parser.screen().scrollback()).rev() {
            self.parser.screen_mut().set_scrollback(back);
            all.extend(self.rows().next());
        }
        self.parser.screen_mut().set_scrollback(0);
        all.extend(self.rows());
        all
    }

    fn shown(&self) -> String {
        let screen = self.screen();
        let rows = screen.rows.join("\n");
        let raw = String::from_utf8_lossy(&self.raw);
        let tail = raw.char_indices().rev().take(2000).last();
        let tail = &raw[tail.map_or(0, |(at, _)| at)..];
        format!("{rows}\ncursor: {:?}\nraw: {tail:?}", screen.cursor)
    }
}

/// What has been seen; a failed check of another thread's is no reason to fail as well.
fn locked(shared: &(Mutex<Terminal>, Condvar)) -> MutexGuard<'_, Terminal> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols: columns,
        ..PtySize::default()
    }
}

fn read_all(
    mut reader: Box<dyn Read + Send>,
    shared: Arc<(Mutex<Terminal>, Condvar)>,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        // The end of the program shows as an error here.
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            let mut terminal = locked(&shared);
            if terminal.abandoned {
                return;
            }
            terminal.parser.process(&buffer[..length]);
            terminal.raw.extend_from_slice(&buffer[..length]);
            shared.1.notify_all();
        }
        locked(&shared).ended = true;
        shared.1.notify_all();
    })
}
