//! What the scripted server answers: heads, steps of a body, and the ways in which it may end.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::gate::Gate;

/// How often a thread that holds a connection looks whether the test is over.
pub(super) const TICK: Duration = Duration::from_millis(10);

enum Step {
    Write(Vec<u8>),
    Hold(Gate),
    Pause(Duration),
}

#[derive(Clone, Copy, PartialEq)]
enum Framing {
    Chunked,
    Length,
    /// No head and no framing: the steps are the bytes on the wire.
    Raw,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The body ends and the connection can be used again.
    Keep,
    /// The body ends and the connection with it, as a header announced.
    Close,
    /// The body ends and the connection with it, against all announcements.
    CloseSilently,
    /// The connection ends in the middle of the body.
    Cut,
    /// The connection is reset in the middle of the body.
    Reset,
    /// Nothing more comes, and the connection stays open.
    Stall,
}

/// One answer of the script: a head, steps, and how it ends.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    framing: Framing,
    steps: Vec<Step>,
    end: End,
    byte_by_byte: bool,
    line_end: &'static str,
}

impl Reply {
    fn new(status: u16, content_type: &str, framing: Framing) -> Self {
        Self {
            status,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            framing,
            steps: Vec::new(),
            end: End::Keep,
            byte_by_byte: false,
            line_end: "\n",
        }
    }

    /// An event stream, to be filled.
    pub(crate) fn stream() -> Self {
        Self::new(200, "text/event-stream", Framing::Chunked)
    }

    /// A body of any kind.
    pub(crate) fn body(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::new(status, content_type, Framing::Length).raw(body)
    }

    /// A JSON body with status 200.
    pub(crate) fn json(body: &Value) -> Self {
        Self::body(200, "application/json", body.to_string())
    }

    /// An error in the shape of most servers.
    pub(crate) fn error(status: u16, message: &str) -> Self {
        Self::error_json(
            status,
            &json!({"error": {"message": message, "type": "error", "code": null}}),
        )
    }

    /// An error with a body of its own.
    pub(crate) fn error_json(status: u16, body: &Value) -> Self {
        Self::body(status, "application/json", body.to_string())
    }

    /// Bytes on the wire in place of HTTP; without any, the connection just ends.
    pub(crate) fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        let reply = Self::new(0, "", Framing::Raw).raw(bytes);
        Self {
            end: End::Cut,
            ..reply
        }
    }

    /// The connection ends before anything is answered.
    pub(crate) fn hang_up() -> Self {
        Self::bytes("")
    }

    /// The connection is reset before anything is answered.
    pub(crate) fn reset_at_once() -> Self {
        Self::bytes("").reset()
    }

    /// The request is read and nothing comes of it.
    pub(crate) fn silence() -> Self {
        Self::bytes("").stall()
    }

    /// An event of any text.
    pub(crate) fn event(self, text: &str) -> Self {
        let line_end = self.line_end;
        self.raw(format!("data: {text}{line_end}{line_end}"))
    }

    /// A comment.
    pub(crate) fn comment(self, text: &str) -> Self {
        let line_end = self.line_end;
        self.raw(format!(": {text}{line_end}{line_end}"))
    }

    /// Bytes of the body as they are.
    pub(crate) fn raw(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.steps.push(Step::Write(bytes.as_ref().to_vec()));
        self
    }

    /// Waits here until the test opens the gate.
    pub(crate) fn hold(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Hold(gate.clone()));
        self
    }

    /// Waits here, for tests of the program's own limits.
    pub(crate) fn pause(mut self, duration: Duration) -> Self {
        self.steps.push(Step::Pause(duration));
        self
    }

    // How it is sent.

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Says something else about what the body is.
    pub(crate) fn content_type(mut self, value: &str) -> Self {
        value.clone_into(&mut self.headers[0].1);
        self
    }

    /// Ends the lines of the events that follow with CRLF.
    pub(crate) fn crlf(mut self) -> Self {
        self.line_end = "\r\n";
        self
    }

    /// Sends each byte of the body on its own.
    pub(crate) fn byte_by_byte(mut self) -> Self {
        self.byte_by_byte = true;
        self
    }

    /// Closes the connection after the body, and says so.
    pub(crate) fn close(self) -> Self {
        self.header("Connection", "close").ending(End::Close)
    }

    /// Closes the connection after the body without having said so.
    pub(crate) fn close_silently(self) -> Self {
        self.ending(End::CloseSilently)
    }

    /// Ends the connection without ending the body.
    pub(crate) fn cut(self) -> Self {
        self.ending(End::Cut)
    }

    /// Resets the connection without ending the body.
    pub(crate) fn reset(self) -> Self {
        self.ending(End::Reset)
    }

    /// Sends nothing more, leaving body and connection open.
    pub(crate) fn stall(self) -> Self {
        self.ending(End::Stall)
    }

    fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    // Sending it.

    fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if self.framing == Framing::Chunked {
            head.push_str("Transfer-Encoding: chunked\r\n");
        } else {
            let length: usize = self.steps.iter().map(Step::length).sum();
            // A body that is to break off must have promised more.
            let missing = usize::from(matches!(self.end, End::Cut | End::Reset | End::Stall));
            let _ = write!(head, "Content-Length: {}\r\n", length + missing);
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// Sends it all; tells whether the connection can be used again.
    pub(crate) fn send(
        self,
        stream: &mut TcpStream,
        stopped: impl Fn() -> bool + Copy,
    ) -> io::Result<bool> {
        if self.framing != Framing::Raw {
            stream.write_all(&self.head())?;
        }
        for step in &self.steps {
            match step {
                Step::Write(bytes) if self.byte_by_byte => {
                    for byte in bytes {
                        self.write(stream, &[*byte])?;
                    }
                }
                Step::Write(bytes) => self.write(stream, bytes)?,
                Step::Hold(gate) => gate.pass(stopped),
                Step::Pause(duration) => thread::sleep(*duration),
            }
        }
        if self.end == End::Stall {
            wait_for_hang_up(stream, stopped)?;
        }
        let ended = matches!(self.end, End::Keep | End::Close | End::CloseSilently);
        if ended && self.framing == Framing::Chunked {
            stream.write_all(b"0\r\n\r\n")?;
        }
        Ok(self.end == End::Keep)
    }

    /// Whether the connection is to be reset after it.
    pub(crate) fn resets(&self) -> bool {
        self.end == End::Reset
    }

    fn write(&self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.framing == Framing::Chunked {
            let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
            framed.extend_from_slice(bytes);
            framed.extend_from_slice(b"\r\n");
            stream.write_all(&framed)
        } else {
            stream.write_all(bytes)
        }
    }
}

impl Step {
    fn length(&self) -> usize {
        match self {
            Self::Write(bytes) => bytes.len(),
            Self::Hold(_) | Self::Pause(_) => 0,
        }
    }
}

fn wait_for_hang_up(stream: &TcpStream, stopped: impl Fn() -> bool) -> io::Result<()> {
    stream.set_read_timeout(Some(TICK))?;
    while !stopped() {
        match stream.peek(&mut [0]) {
            Ok(0) => break,
            Ok(_) => thread::sleep(TICK),
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
