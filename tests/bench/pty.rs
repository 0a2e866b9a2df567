//! A program at a terminal of its own.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Nothing takes that long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(120);

const ROWS: u16 = 40;
const COLUMNS: u16 = 100;

/// The running program. Its output is collected by a thread, with the times at which it came.
pub(crate) struct Pty {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    output: Receiver<(Instant, Vec<u8>)>,
    screen: vt100::Parser,
    started: Instant,
    // Closed when this goes, which hangs the terminal up.
    _master: Box<dyn MasterPty + Send>,
}

impl Pty {
    /// Starts a program.
    pub(crate) fn start(command: &Command) -> Self {
        let size = PtySize {
            rows: ROWS,
            cols: COLUMNS,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        builder.cwd(command.get_current_dir().unwrap());

        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            // The end of the program shows as an error here.
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if sender
                    .send((Instant::now(), buffer[..length].to_vec()))
                    .is_err()
                {
                    break;
                }
            }
        });
        let started = Instant::now();
        Self {
            child: pair.slave.spawn_command(builder).unwrap(),
            writer: pair.master.take_writer().unwrap(),
            output,
            screen: vt100::Parser::new(ROWS, COLUMNS, 0),
            started,
            _master: pair.master,
        }
    }

    /// The program's process.
    pub(crate) fn process(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Types.
    pub(crate) fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    /// The next piece of output with the time at which it came; none at the program's end.
    pub(crate) fn next(&self) -> Option<(Instant, Vec<u8>)> {
        match self.output.recv_timeout(DEADLINE) {
            Ok(piece) => Some(piece),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the program hangs"),
        }
    }

    /// Waits for an empty prompt; how long that took since the start.
    pub(crate) fn prompt(&mut self) -> Duration {
        loop {
            let (at, bytes) = self.next().expect("a prompt");
            self.screen.process(&bytes);
            let screen = self.screen.screen();
            let (row, column) = screen.cursor_position();
            let line = screen.rows(0, COLUMNS).nth(row.into()).unwrap_or_default();
            if column == 2 && line.starts_with('>') {
                return at - self.started;
            }
        }
    }

    /// Waits until `text` has come out; when that was, and how many bytes came until then.
    pub(crate) fn until(&self, text: &str) -> (Instant, usize) {
        let mut seen = Vec::new();
        let mut looked = 0;
        loop {
            let (at, bytes) = self.next().expect("more output");
            seen.extend(bytes);
            if seen[looked..]
                .windows(text.len())
                .any(|window| window == text.as_bytes())
            {
                return (at, seen.len());
            }
            looked = seen.len().saturating_sub(text.len());
        }
    }

    /// Waits until nothing has come for a while; how many bytes came until then.
    pub(crate) fn settle(&self) -> usize {
        let mut count = 0;
        while let Ok((_, bytes)) = self.output.recv_timeout(Duration::from_millis(100)) {
            count += bytes.len();
        }
        count
    }

    /// Reads everything to the program's end.
    pub(crate) fn finish(mut self) {
        while self.next().is_some() {}
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
