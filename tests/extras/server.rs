//! A server on loopback that answers as its script says: one reply a connection, in order.
//!
//! It knows HTTP just well enough for curl, and nothing of what it carries.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// What one request was.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// The path with its query, as it stood in the request line.
    pub(super) target: String,
    headers: Vec<(String, String)>,
    /// The body's bytes as text.
    pub(super) body: String,
}

impl Request {
    /// A header's value, the name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(key, _)| key == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }

    fn read(stream: &TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).expect("a request line");
        let target = line.split(' ').nth(1).expect("a target").to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a header");
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self {
            target,
            headers,
            body: String::new(),
        };
        let length = request
            .header("content-length")
            .map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body");
        request.body = String::from_utf8(body).expect("the body is UTF-8");
        request
    }
}

/// What one request is answered with.
pub(super) enum Reply {
    /// These bytes, then the connection is closed.
    Close(String),
    /// These bytes, then the connection is held open until the client goes.
    Hold(String),
    /// Looks around while the client waits, then answers as the inner reply says.
    Look(Box<dyn FnOnce() + Send>, Box<Reply>),
}

impl Reply {
    /// An answer with its status, its type and its body.
    pub(super) fn http(status: &str, content_type: &str, body: &str) -> Self {
        Self::Close(format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        ))
    }

    /// A good answer of JSON.
    pub(super) fn json(body: &Value) -> Self {
        Self::http("200 OK", "application/json", &body.to_string())
    }

    fn send(self, mut stream: TcpStream) {
        match self {
            Self::Close(bytes) => {
                // A client that has seen enough may be gone already.
                let _ = stream.write_all(bytes.as_bytes());
            }
            Self::Hold(bytes) => {
                let _ = stream.write_all(bytes.as_bytes());
                let _ = stream.read(&mut [0]);
            }
            Self::Look(look, reply) => {
                look();
                reply.send(stream);
            }
        }
    }
}

/// The running server. It lives as long as the test process; unused replies are forgotten.
pub(super) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server that gives these replies and refuses connections afterwards.
    pub(super) fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("the port's address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let replies: Vec<Reply> = replies.into_iter().collect();
        thread::spawn(move || {
            for reply in replies {
                let (stream, _) = listener.accept().expect("a connection");
                let request = Request::read(&stream);
                seen.lock().expect("the list of requests").push(request);
                reply.send(stream);
            }
        });
        Self { address, requests }
    }

    /// The server's URL with this path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What has been asked so far.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("the list of requests").clone()
    }
}
