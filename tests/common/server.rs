//! A scripted server on loopback.
//!
//! It answers each POST with the next [`Reply`] of its script, `GET …/models` with an answer of its
//! own, and keeps what was asked, byte for byte. It can do what real servers do to clients: hold a
//! stream open between two chunks, cut or reset connections, send bytes one by one. When it is
//! dropped it fails the test if replies were left over, if more was asked than scripted, or if a
//! request broke the rules that every conversation must keep (SPEC C2, C6, C11).
//!
//! It knows HTTP and the chat completions dialect, and nothing of the program under test.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::json;

use super::DEADLINE;
pub(crate) use super::gate::Gate;
pub(crate) use super::reply::Reply;
pub(crate) use super::request::Request;
use super::request::{Exemptions, check_messages, check_stability};

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Reply>>,
    models: Mutex<Option<Box<dyn Fn() -> Reply + Send>>>,
    requests: Mutex<Vec<Request>>,
    unscripted: Mutex<Vec<String>>,
    asked: Condvar,
    stopped: AtomicBool,
    connections: Mutex<usize>,
}

/// The server; it ends, and checks what it was asked, when it is dropped.
pub(crate) struct Server {
    port: u16,
    shared: Arc<Shared>,
    exempt: Exemptions,
}

impl Server {
    /// A server that answers its POST requests with these replies, in this order.
    pub(crate) fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            script: Mutex::new(replies.into_iter().collect()),
            ..Shared::default()
        });
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &for_thread));
        Self {
            port,
            shared,
            exempt: Exemptions::default(),
        }
    }

    /// What `GET …/models` is answered with; an empty list where nothing is said.
    pub(crate) fn with_models(self, models: impl Fn() -> Reply + Send + 'static) -> Self {
        *self.shared.models.lock().unwrap() = Some(Box::new(models));
        self
    }

    /// Messages that were sent once may be missing or different in later requests.
    pub(crate) fn history_may_change(mut self) -> Self {
        self.exempt.history = true;
        self
    }

    /// Tools and parameters may differ between requests.
    pub(crate) fn parameters_may_change(mut self) -> Self {
        self.exempt.parameters = true;
        self
    }

    /// Not all replies need be asked for.
    pub(crate) fn replies_may_be_left(mut self) -> Self {
        self.exempt.leftovers = true;
        self
    }

    /// The endpoint to configure.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The port it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Adds replies to the end of the script.
    pub(crate) fn then(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.script.lock().unwrap().extend(replies);
    }

    /// The POST requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.everything()
            .into_iter()
            .filter(|request| request.method == "POST")
            .collect()
    }

    /// The POST request with this number, counted from 0.
    #[track_caller]
    pub(crate) fn request(&self, index: usize) -> Request {
        let requests = self.requests();
        match requests.get(index) {
            Some(request) => request.clone(),
            None => panic!("only {} requests came", requests.len()),
        }
    }

    /// The last POST request.
    #[track_caller]
    pub(crate) fn last_request(&self) -> Request {
        self.requests().pop().expect("at least one request")
    }

    /// All requests so far, of every method.
    pub(crate) fn everything(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until so many POST requests have come.
    #[track_caller]
    pub(crate) fn wait_for_requests(&self, count: usize) {
        self.wait_until(|requests| {
            requests.iter().filter(|one| one.method == "POST").count() >= count
        });
    }

    /// Waits until the requests so far, of every method, are as wanted.
    #[track_caller]
    pub(crate) fn wait_until(&self, wanted: impl Fn(&[Request]) -> bool) {
        let requests = self.shared.requests.lock().unwrap();
        let (requests, timeout) = self
            .shared
            .asked
            .wait_timeout_while(requests, DEADLINE, |requests| !wanted(requests))
            .unwrap();
        let paths: Vec<_> = requests.iter().map(|one| one.path.clone()).collect();
        drop(requests);
        assert!(!timeout.timed_out(), "the requests came to {paths:?} only");
    }

    /// Ends the server and checks what it was asked; gives the POST requests.
    #[track_caller]
    pub(crate) fn finish(self) -> Vec<Request> {
        self.check();
        self.requests()
    }

    #[track_caller]
    fn check(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let unscripted = std::mem::take(&mut *self.shared.unscripted.lock().unwrap());
        assert!(unscripted.is_empty(), "not in the script: {unscripted:#?}");
        let left = std::mem::take(&mut *self.shared.script.lock().unwrap()).len();
        assert!(
            left == 0 || self.exempt.leftovers,
            "{left} replies were never asked for; asked was {:#?}",
            self.requests()
                .iter()
                .map(|one| one.text().to_owned())
                .collect::<Vec<_>>()
        );
        let chats: Vec<_> = self
            .requests()
            .into_iter()
            .filter(|request| request.path.ends_with("/chat/completions"))
            .collect();
        for request in &chats {
            check_messages(&request.messages());
        }
        for pair in chats.windows(2) {
            check_stability(&pair[0], &pair[1], self.exempt);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let checked = self.shared.stopped.swap(true, Ordering::SeqCst);
        // The accepting thread wakes up and sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if !checked && !thread::panicking() {
            self.check();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // A client that hangs up is no fault of the server's.
            let _ = serve(&stream, &shared);
        });
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(1, stream.try_clone()?);
    let mut writer = stream.try_clone()?;
    let mut connection = None;
    loop {
        let Some(mut request) = read_request(&mut reader, stream)? else {
            return Ok(());
        };
        request.connection = *connection.get_or_insert_with(|| {
            let mut count = shared.connections.lock().unwrap();
            *count += 1;
            *count - 1
        });
        let has_body = !request.body.is_empty();
        let reply = next_reply(shared, &request);
        shared.requests.lock().unwrap().push(request);
        shared.asked.notify_all();
        let resets = reply.resets();
        if has_body && !resets {
            // The last byte of the body was only looked at.
            reader.read_exact(&mut [0])?;
        }
        let stopped = || shared.stopped.load(Ordering::SeqCst);
        if !reply.send(&mut writer, stopped)? {
            if !resets {
                let _ = stream.shutdown(Shutdown::Write);
            }
            // Closing with a byte unread resets the connection.
            return Ok(());
        }
    }
}

fn next_reply(shared: &Shared, request: &Request) -> Reply {
    if request.method == "GET" && request.path.ends_with("/models") {
        let models = shared.models.lock().unwrap();
        return match models.as_ref() {
            Some(models) => models(),
            None => Reply::models(&json!([])),
        };
    }
    if request.method == "POST" {
        if let Some(reply) = shared.script.lock().unwrap().pop_front() {
            return reply;
        }
        let told = format!("{} {}", request.path, request.text());
        shared.unscripted.lock().unwrap().push(told);
        return Reply::error(400, "this request is not in the script");
    }
    Reply::error(404, "no such route").close()
}

/// Reads one request, but leaves the last byte of its body where it is; none at the end of the
/// connection.
fn read_request(
    reader: &mut BufReader<TcpStream>,
    stream: &TcpStream,
) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let at = Instant::now();
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request {
        method,
        path,
        headers,
        body: Vec::new(),
        at,
        connection: 0,
    };
    let length: usize = request
        .header("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    if let Some(but_one) = length.checked_sub(1) {
        request.body.resize(but_one, 0);
        reader.read_exact(&mut request.body)?;
        let mut last = [0];
        if stream.peek(&mut last)? == 0 {
            return Ok(None);
        }
        request.body.extend(last);
    }
    Ok(Some(request))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::Value;

    use super::*;

    fn ask(stream: &mut TcpStream, body: &str) -> String {
        let length = body.len();
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"0\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
            answer.extend(byte);
        }
        String::from_utf8(answer).unwrap()
    }

    fn connect(server: &Server) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap()
    }

    fn body(messages: &Value) -> String {
        json!({"model": "m", "messages": messages, "stream": true}).to_string()
    }

    fn hello() -> String {
        body(&json!([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]))
    }

    #[test]
    fn one_connection_serves_several_requests_and_keeps_their_bytes() {
        let server = Server::start([Reply::answer("one"), Reply::answer("two").byte_by_byte()]);
        let mut stream = connect(&server);
        assert!(ask(&mut stream, &hello()).contains("one"));
        assert!(ask(&mut stream, &hello()).contains("1\r\nt\r\n1\r\nw\r\n1\r\no\r\n"));
        let requests = server.finish();
        assert_eq!(requests[1].text(), hello());
        assert_eq!((requests[0].connection, requests[1].connection), (0, 0));
    }

    #[test]
    fn a_reset_reaches_the_client_as_one() {
        let server = Server::start([Reply::reset_at_once(), Reply::hang_up()]);
        let mut first = connect(&server);
        let _ = ask(&mut first, &hello());
        let mut second = connect(&server);
        write!(second, "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
        assert_eq!(second.read(&mut [0]).unwrap(), 0, "an orderly end");
        let reset = first.take_error().unwrap().is_some()
            || first
                .write_all(b"x")
                .and_then(|()| first.write_all(b"x"))
                .is_err();
        assert!(reset);
    }

    #[test]
    fn a_gate_holds_a_stream_until_it_is_opened() {
        let gate = Gate::new();
        let server = Server::start([Reply::stream().text("a").hold(&gate).text("b").done()]);
        let mut stream = connect(&server);
        let client = thread::spawn(move || ask(&mut stream, &hello()));
        gate.wait();
        assert!(!client.is_finished());
        gate.open();
        assert!(client.join().unwrap().contains("[DONE]"));
        drop(server);
    }

    #[test]
    #[should_panic(expected = "1 replies were never asked for")]
    fn unused_replies_fail() {
        drop(Server::start([Reply::answer("never")]));
    }

    #[test]
    #[should_panic(expected = "not in the script")]
    fn requests_beyond_the_script_fail() {
        let server = Server::start([]);
        let mut stream = connect(&server);
        write!(
            stream,
            "POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}"
        )
        .unwrap();
        server.wait_for_requests(1);
        drop(server);
    }

    #[test]
    #[should_panic(expected = "calls without a result")]
    fn a_call_without_a_result_fails() {
        let server = Server::start([Reply::answer("")]);
        let call =
            json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let messages = json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "user", "content": "u"},
        ]);
        ask(&mut connect(&server), &body(&messages));
        drop(server);
    }

    #[test]
    #[should_panic(expected = "earlier messages changed")]
    fn a_history_that_changes_fails() {
        let server = Server::start([Reply::answer("a"), Reply::answer("b")]);
        ask(&mut connect(&server), &hello());
        let other = json!([{"role": "system", "content": "t"}, {"role": "user", "content": "u"}]);
        ask(&mut connect(&server), &body(&other));
        drop(server);
    }
}
