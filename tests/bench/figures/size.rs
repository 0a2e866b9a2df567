//! How big things are: the binary, the first request, the list of many sessions.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{self, Place};
use crate::server::{Server, stream};
use crate::table::{Row, mb, ms};

const SESSIONS: usize = 1000;
const SESSION_BYTES: usize = 100_000;

/// The size of the binary, and what system prompt and tools take of the first request.
pub(super) fn binary_and_request(_: &[PathBuf]) -> Vec<Row> {
    let binary = fs::metadata(process::BANTAM).unwrap().len();

    let server = Server::repeating(stream(["Done."]));
    let place = Place::new(&server.endpoint());
    process::run(&mut place.one_shot());
    let request: Value = serde_json::from_slice(&server.arrival().body).unwrap();
    let overhead = request["messages"][0].to_string().len() + request["tools"].to_string().len();

    let row = |what, ours, goal, met| Row {
        what,
        ours,
        floor: None,
        ratio: None,
        goal,
        met,
        peers: Vec::new(),
    };
    vec![
        row("the binary", mb(binary), "under 4 MB", binary < 4_000_000),
        row(
            "first request, system prompt and tools",
            format!("{overhead} bytes"),
            "under 2,500 bytes",
            overhead < 2500,
        ),
    ]
}

/// `/list` of a thousand sessions: time and peak memory.
pub(super) fn list(_: &[PathBuf]) -> Vec<Row> {
    let server = Server::repeating(stream(["Done."]));
    let place = Place::new(&server.endpoint());
    let directory = place.path().join(".bantam/sessions");
    fs::create_dir_all(&directory).unwrap();
    for number in 0..SESSIONS {
        let id = format!("session-{number:04}");
        fs::write(directory.join(format!("{id}.json")), session(&id)).unwrap();
    }

    let mut command = place.command(process::BANTAM);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    // What it prints to this shows that it is there, which is not to be measured here.
    input.write_all(b"/cfg model\n").unwrap();
    output.read_line(&mut String::new()).unwrap();
    let start = Instant::now();
    input.write_all(b"/list\n").unwrap();
    let mut listed = 0;
    while listed < SESSIONS {
        let mut line = String::new();
        assert!(
            output.read_line(&mut line).unwrap() > 0,
            "only {listed} sessions"
        );
        listed += usize::from(line.contains("session-"));
    }
    let time = start.elapsed();
    let memory = process::memory_peak(child.id());
    drop(input);
    assert!(child.wait().unwrap().success());
    vec![Row {
        what: "`/list` of 1,000 sessions of 100 KB",
        ours: format!("{}, {}", ms(time), mb(memory)),
        floor: None,
        ratio: None,
        goal: "under 100 ms, 20 MB",
        met: time < Duration::from_millis(100) && memory < 20_000_000,
        peers: Vec::new(),
    }]
}

fn session(id: &str) -> String {
    let message = |role: &str, text: &str| json!({"role": role, "content": text});
    let mut messages = vec![message("system", "You are an agent.")];
    for _ in 0..10 {
        messages.push(message("user", "What is this about?"));
        messages.push(message("assistant", &"words ".repeat(SESSION_BYTES / 60)));
    }
    json!({
        "id": id, "cwd": "/somewhere", "model": "m", "title": "What is this about?",
        "summary": "Nothing much.", "conversation": id, "created": "2026-01-01T00:00:00Z",
        "updated": "2026-01-01T00:00:00Z", "count": messages.len(), "messages": messages,
    })
    .to_string()
}
