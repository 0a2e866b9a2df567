//! bantam without network, key and model: `cargo run --example offline`.
//!
//! A small server on loopback plays the model from a script: it reasons, writes a file, runs it and
//! answers in Markdown. bantam itself is the real one. All that it writes, its home included, is in
//! a temporary directory. Arguments go to bantam: `cargo run --example offline -- --help`.

// Its `main` is of no use here.
#[allow(dead_code)]
#[path = "../src/main.rs"]
mod program;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, thread};

use serde_json::{Value, json};

/// Tells the process that its home and its directory are the temporary ones already.
const PREPARED: &str = "BANTAM_OFFLINE";

/// How long the model seems to think about a word.
const PACE: Duration = Duration::from_millis(12);

const SCRIPT: &str = r#"# Prints the prime numbers up to $1.
n=2
while [ "$n" -le "$1" ]; do
    d=2
    while [ $((d * d)) -le "$n" ] && [ $((n % d)) -ne 0 ]; do d=$((d + 1)); done
    [ $((d * d)) -le "$n" ] || printf '%s ' "$n"
    n=$((n + 1))
done
echo
"#;

const REPORT: &str = "\
## Done

I wrote `primes.sh` and ran it; above you see both, as *you* see them and as the model does. \
**Nothing of this came from a model**: a script plays it, but the agent, its two tools and \
the terminal are real.

| step | tool | what happened |
|---|---|---|
| 1 | `write_file` | the script was written into a temporary directory |
| 2 | `shell_exec` | it ran, and its output came back as the tool's result |
| 3 | | the model, seeing that, had nothing more to call |

Ask again for something else, or try:

1. `!cat primes.sh` runs a command without telling the model
2. `/help` lists the commands
3. Ctrl+J starts a new line, Ctrl+C interrupts, Ctrl+D leaves
";

const SLOW: &str = "for step in 1 2 3 4 5; do echo \"step $step of 5\"; sleep 1; done";

const NEXT: &str = "\
That was slow on purpose: **Ctrl+C** would have ended it, and the conversation would have gone on.

A real model needs two lines in a file `model.cfg` in your project's directory:

```
endpoint=http://127.0.0.1:8080/v1
model=whatever-your-server-calls-it
```

> A server that wants a key takes it from `OPENAI_API_KEY`, or from a line `api_key=...`.
";

fn main() -> ExitCode {
    let arguments = env::args_os().skip(1).collect();
    let code = match env::var_os(PREPARED) {
        None => prepare(arguments),
        Some(_) => open(arguments),
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "offline: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts this program once more, in a directory that is its home too.
fn prepare(arguments: Vec<OsString>) -> io::Result<u8> {
    let directory = tempfile::Builder::new()
        .prefix("bantam-offline-")
        .tempdir()?
        .keep();
    let mut again = Command::new(env::current_exe()?);
    again
        .args(arguments)
        .current_dir(&directory)
        .env("HOME", &directory)
        .env(PREPARED, "");
    // In place of this process, so that the shell goes on to wait for the one that has the terminal.
    #[cfg(unix)]
    return Err(std::os::unix::process::CommandExt::exec(&mut again));
    #[cfg(not(unix))]
    return Ok(again
        .status()?
        .code()
        .map_or(1, |code| code.try_into().unwrap_or(1)));
}

/// Starts the server and opens bantam against it.
fn open(arguments: Vec<OsString>) -> io::Result<u8> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let endpoint = format!("http://{}/v1", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away ends its connection, no more.
            thread::spawn(move || serve(&stream));
        }
    });
    if io::stdin().is_terminal() {
        let directory = env::current_dir()?;
        writeln!(
            io::stderr(),
            "No network, no model: a script answers, whatever you ask. Everything happens in {}.",
            directory.display()
        )?;
    }
    let settings = [&format!("endpoint={endpoint}"), "model=offline", "api_key="];
    let settings = settings.map(|setting| ["-c".into(), setting.into()]);
    let all = settings.into_iter().flatten().chain(arguments);
    Ok(program::run(all.collect()))
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let length = head
            .to_ascii_lowercase()
            .lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        if head.starts_with("GET ") {
            let model = json!({"id": "offline", "context_length": 32768});
            send(&mut writer, &json!({"object": "list", "data": [model]}))?;
        } else if request["stream"] == true {
            Answer::to(&request).stream(&mut writer, body.len())?;
        } else {
            send(&mut writer, &Answer::to(&request).whole(body.len()))?;
        }
    }
}

fn send(writer: &mut impl Write, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
    write!(writer, "{head}{}\r\n\r\n{body}", body.len())
}

/// What the script says next.
#[derive(Default)]
struct Answer {
    reasoning: &'static str,
    text: &'static str,
    /// A tool and its arguments.
    call: Option<(&'static str, Value)>,
}

impl Answer {
    /// The answer to a request: it depends on how many prompts there were, and how many results
    /// since the last one.
    fn to(request: &Value) -> Self {
        let messages = request["messages"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let is_prompt = |message: &&Value| message["role"] == "user";
        let prompts = messages.iter().filter(is_prompt).count();
        let results = messages.iter().rev().take_while(|m| !is_prompt(m));
        let results = results.filter(|message| message["role"] == "tool").count();
        let last = messages.iter().rfind(is_prompt);
        let prompt = last
            .and_then(|message| message["content"].as_str())
            .unwrap_or_default();
        if prompt.starts_with("You are now acting as a compaction engine") {
            return Self::text(
                "The person tried bantam offline; a script wrote and ran primes.sh.",
            );
        }
        if request.get("tools").is_none() {
            return Self::text("A trial without network");
        }
        match (prompts % 2, results) {
            (1, 0) => Self {
                reasoning: "Somebody tries me out. I had better show both tools: first I write a \
                    small script, then I run it.",
                text: "I'll write a script that finds prime numbers.",
                call: Some((
                    "write_file",
                    json!({"path": "primes.sh", "content": SCRIPT}),
                )),
            },
            (1, 1) => Self {
                text: "Now let's see whether it works.",
                call: Some(("shell_exec", json!({"command": "sh primes.sh 100"}))),
                ..Self::default()
            },
            (1, _) => Self::text(REPORT),
            (_, 0) => Self {
                reasoning: "Something slow this time, so that there is something to interrupt.",
                call: Some(("shell_exec", json!({"command": SLOW}))),
                ..Self::default()
            },
            _ => Self::text(NEXT),
        }
    }

    fn text(text: &'static str) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    fn calls(&self) -> Option<Value> {
        let (name, arguments) = self.call.as_ref()?;
        let function = json!({"name": name, "arguments": arguments.to_string()});
        Some(json!([{"index": 0, "id": "call_1", "type": "function", "function": function}]))
    }

    fn finish_reason(&self) -> &'static str {
        match self.call {
            Some(_) => "tool_calls",
            None => "stop",
        }
    }

    /// All at once.
    fn whole(&self, request_bytes: usize) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if let Some(calls) = self.calls() {
            message["tool_calls"] = calls;
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason()});
        json!({"model": "offline", "choices": [choice], "usage": self.usage(request_bytes)})
    }

    /// Word by word.
    fn stream(&self, writer: &mut impl Write, request_bytes: usize) -> io::Result<()> {
        let head = "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked";
        write!(writer, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n")?;
        for (key, text) in [
            ("reasoning_content", self.reasoning),
            ("content", self.text),
        ] {
            for word in text.split_inclusive(' ') {
                send_choice(writer, &json!({"delta": {key: word}}))?;
                thread::sleep(PACE);
            }
        }
        if let Some(calls) = self.calls() {
            send_choice(writer, &json!({"delta": {"tool_calls": calls}}))?;
        }
        send_choice(
            writer,
            &json!({"delta": {}, "finish_reason": self.finish_reason()}),
        )?;
        let usage = self.usage(request_bytes);
        send_event(writer, &json!({"choices": [], "usage": usage}).to_string())?;
        send_event(writer, "[DONE]")?;
        writer.write_all(b"0\r\n\r\n")
    }

    /// Figures that are about right: four bytes a token.
    fn usage(&self, request_bytes: usize) -> Value {
        let answer = self.reasoning.len() + self.text.len() + 20;
        json!({"prompt_tokens": request_bytes / 4, "completion_tokens": answer / 4})
    }
}

fn send_choice(writer: &mut impl Write, choice: &Value) -> io::Result<()> {
    let mut choice = choice.clone();
    choice["index"] = json!(0);
    send_event(
        writer,
        &json!({"model": "offline", "choices": [choice]}).to_string(),
    )
}

/// One event, in an HTTP chunk of its own.
fn send_event(writer: &mut impl Write, data: &str) -> io::Result<()> {
    let event = format!("data: {data}\n\n");
    write!(writer, "{:x}\r\n{event}\r\n", event.len())
}
