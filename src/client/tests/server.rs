//! A server that plays a script: one list of steps for each request it gets.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long a test waits for something that should happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// One thing the server does.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Sends bytes as they are.
    Send(Vec<u8>),
    /// Waits a moment.
    Pause(Duration),
    /// Sends the bytes again and again, with the pause between, until the client goes away.
    Repeat(Vec<u8>, Duration),
    /// Says and does nothing until the client goes away.
    Hold,
    /// Closes the connection.
    Close,
}

/// A request that came.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    /// Which connection it came on, counted from 0.
    pub(super) connection: usize,
    /// The request line and the headers, in lower case but for their values.
    pub(super) head: String,
    pub(super) body: String,
}

impl Recorded {
    pub(super) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub(super) struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Recorded>>>,
    gone: Receiver<()>,
}

impl Server {
    /// Serves `script` on a loopback port; when it is used up, connections are closed unanswered.
    pub(super) fn start(script: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let script = Arc::new(Mutex::new(VecDeque::from(script)));
        let (sender, gone) = channel();
        let recorded = Arc::clone(&requests);
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (recorded, script, sender) =
                    (Arc::clone(&recorded), Arc::clone(&script), sender.clone());
                thread::spawn(move || {
                    let _ = serve(&stream.unwrap(), connection, &recorded, &script, &sender);
                });
            }
        });
        Self {
            port,
            requests,
            gone,
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().unwrap().clone()
    }

    pub(super) fn bodies(&self) -> Vec<String> {
        self.requests()
            .into_iter()
            .map(|request| request.body)
            .collect()
    }

    /// Waits until the client has gone away from a step that lasts until then.
    pub(super) fn wait_until_gone(&self) {
        self.gone.recv_timeout(PATIENCE).unwrap();
    }
}

fn serve(
    stream: &TcpStream,
    connection: usize,
    recorded: &Mutex<Vec<Recorded>>,
    script: &Mutex<VecDeque<Vec<Step>>>,
    gone: &Sender<()>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some((head, body)) = read_request(&mut reader)? {
        recorded.lock().unwrap().push(Recorded {
            connection,
            head,
            body,
        });
        let Some(steps) = script.lock().unwrap().pop_front() else {
            return Ok(());
        };
        for step in steps {
            match step {
                Step::Send(bytes) => writer.write_all(&bytes)?,
                Step::Pause(time) => thread::sleep(time),
                Step::Repeat(bytes, pause) => {
                    while writer.write_all(&bytes).is_ok() {
                        thread::sleep(pause);
                    }
                    let _ = gone.send(());
                }
                Step::Hold => {
                    let _ = reader.read(&mut [0; 1]);
                    let _ = gone.send(());
                }
                Step::Close => return Ok(()),
            }
        }
    }
    Ok(())
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<(String, String)>> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((head, String::from_utf8(body).unwrap())))
}

/// An answer with a length, on a connection that is kept.
pub(super) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Step {
    let mut text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text.push_str("\r\n");
    text.push_str(body);
    Step::Send(text.into_bytes())
}

/// The head of a stream in HTTP chunks.
pub(super) fn stream_head() -> Step {
    Step::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// One HTTP chunk.
pub(super) fn chunk(text: &str) -> Step {
    Step::Send(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

/// One event in an HTTP chunk of its own.
pub(super) fn event(data: &str) -> Step {
    chunk(&format!("data: {data}\n\n"))
}

/// A piece of the answer's text.
pub(super) fn text(text: &str) -> Step {
    event(&serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string())
}

/// The end of an answer: finish, `[DONE]`, and the end of the body.
pub(super) fn end() -> Vec<Step> {
    vec![
        event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#),
        event("[DONE]"),
        Step::Send(b"0\r\n\r\n".to_vec()),
    ]
}

/// A whole answer that says `words`.
pub(super) fn says(words: &str) -> Vec<Step> {
    let mut steps = vec![stream_head(), text(words)];
    steps.extend(end());
    steps
}
