//! A server on loopback that answers at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

/// A request for an answer, as it arrived.
pub(crate) struct Arrival {
    /// When its first byte was there.
    pub(crate) at: Instant,
    /// Its body.
    pub(crate) body: Vec<u8>,
}

/// How a request is answered: it is told the request's number, counted from 0, and where to write.
type Answer = dyn Fn(usize, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// The running server.
pub(crate) struct Server {
    port: u16,
    arrivals: Receiver<Arrival>,
}

impl Server {
    /// Starts a server that answers all requests with the same bytes.
    pub(crate) fn repeating(answer: Vec<u8>) -> Self {
        Self::start(move |_, stream| stream.write_all(&answer))
    }

    /// Starts a server that answers the requests one after the other with these.
    pub(crate) fn scripted(answers: Vec<Vec<u8>>) -> Self {
        Self::start(move |number, stream| stream.write_all(&answers[number]))
    }

    /// Starts a server that answers as it is told.
    pub(crate) fn start(
        answer: impl Fn(usize, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, arrivals) = channel();
        let answer: Arc<Answer> = Arc::new(answer);
        let count = Arc::new(Mutex::new(0));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, count, sender) = (answer.clone(), count.clone(), sender.clone());
                // A client that leaves early is its own business.
                thread::spawn(move || {
                    let _ = serve(stream, &answer, &count, &sender);
                });
            }
        });
        Self { port, arrivals }
    }

    /// The endpoint to be configured.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The next request that came or comes.
    pub(crate) fn arrival(&self) -> Arrival {
        self.arrivals.recv().unwrap()
    }

    /// Forgets the requests that nobody asked for.
    pub(crate) fn forget_arrivals(&self) {
        while self.arrivals.try_recv().is_ok() {}
    }
}

fn serve(
    mut stream: TcpStream,
    answer: &Arc<Answer>,
    count: &Mutex<usize>,
    arrivals: &Sender<Arrival>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while !reader.fill_buf()?.is_empty() {
        let at = Instant::now();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let length = head
            .to_ascii_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        if head.starts_with("GET ") {
            stream.write_all(&whole(&json!({"object": "list", "data": []})))?;
            continue;
        }
        let number = {
            let mut count = count.lock().unwrap();
            *count += 1;
            *count - 1
        };
        let _ = arrivals.send(Arrival { at, body });
        answer(number, &mut stream)?;
    }
    Ok(())
}

/// An answer of JSON.
fn whole(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
    format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The head of a streamed answer.
pub(crate) fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        .into()
}

/// One event of a streamed answer, in an HTTP chunk of its own.
pub(crate) fn event(data: &str) -> Vec<u8> {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

/// The event that brings a piece of text.
pub(crate) fn text_event(text: &str) -> Vec<u8> {
    event(&choice(&json!({ "content": text }), &Value::Null).to_string())
}

/// What ends a streamed answer.
pub(crate) fn stream_end(reason: &str) -> Vec<u8> {
    let mut end = event(&choice(&json!({}), &json!(reason)).to_string());
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100});
    let mut last = choice(&json!({}), &Value::Null);
    last["choices"] = json!([]);
    last["usage"] = usage;
    end.extend(event(&last.to_string()));
    end.extend(event("[DONE]"));
    end.extend(b"0\r\n\r\n");
    end
}

/// A whole streamed answer of text in pieces.
pub(crate) fn stream<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut answer = stream_head();
    for piece in pieces {
        answer.extend(text_event(piece));
    }
    answer.extend(stream_end("stop"));
    answer
}

/// A whole streamed answer that calls `shell_exec`.
pub(crate) fn shell_call(command: &str) -> Vec<u8> {
    let arguments = json!({ "command": command }).to_string();
    let call = json!({"tool_calls": [{
        "index": 0, "id": "call_1", "type": "function",
        "function": {"name": "shell_exec", "arguments": arguments},
    }]});
    let mut answer = stream_head();
    answer.extend(event(&choice(&call, &Value::Null).to_string()));
    answer.extend(stream_end("tool_calls"));
    answer
}

fn choice(delta: &Value, reason: &Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    })
}
