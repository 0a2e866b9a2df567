//! The extras: the shell scripts (SPEC H1), `MicroBantam` (H2) and the offline trial (H3), against
//! scripted servers on loopback.
//!
//! The scripts need curl and jq, the others have to be built: where something is missing a test is
//! skipped with a note, and fails where `CI` is set.
#![cfg(unix)]

mod context7;
mod mb;
mod offline;
mod server;
mod weather;
mod websearch;

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use server::Reply;

/// What a run of a script came to.
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    /// It went well and said nothing beside its output.
    #[track_caller]
    fn prints(&self, stdout: &str) {
        assert_eq!(
            (self.code, self.stdout.as_str(), self.stderr.as_str()),
            (0, stdout, "")
        );
    }

    /// It failed with this code and exactly one line on standard error that contains all of this.
    #[track_caller]
    fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert_eq!(self.stdout, "");
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} in {}", self.stderr);
        }
    }
}

/// A script to be run in an environment of its own.
struct Script {
    path: PathBuf,
    home: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Script {
    fn new(name: &str) -> Self {
        Self {
            path: Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("extras")
                .join(name),
            home: tempfile::tempdir().expect("a temporary directory"),
            variables: vec![("PATH", env::var("PATH").unwrap_or_default())],
        }
    }

    fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Leaves nothing to be found on the PATH but these programs.
    fn with_only(self, programs: &[&str]) -> Self {
        for program in programs {
            let path = find(program).expect("a program that every system has");
            symlink(path, self.home.path().join(program)).expect("a link");
        }
        let path = self.home.path().display().to_string();
        self.env("PATH", path)
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let output = Command::new(&self.path)
            .args(arguments)
            .env_clear()
            .env("HOME", self.home.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .expect("the script starts");
        Run {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// Whether the scripts can be tried here.
fn usable() -> bool {
    let missing: Vec<&str> = ["curl", "jq"]
        .into_iter()
        .filter(|program| find(program).is_none())
        .collect();
    if !missing.is_empty() {
        skip(&format!("{missing:?} not installed"));
    }
    missing.is_empty()
}

/// The program of an example, where it is built: `cargo test` does that, `cargo test --test` doesn't.
fn example(name: &str) -> Option<PathBuf> {
    let programs = Path::new(env!("CARGO_BIN_EXE_bantam")).parent()?;
    let path = programs.join("examples").join(name);
    if !path.exists() {
        skip(&format!("the example {name} is not built"));
        return None;
    }
    Some(path)
}

fn skip(reason: &str) {
    assert!(env::var_os("CI").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}

/// The answer to `initialize`, with a session.
fn welcome() -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": 1, "result": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"},
    }});
    let body = body.to_string();
    Reply::Close(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: session \"7\\\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// The answer to a notification.
fn accepted() -> Reply {
    Reply::Close("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".into())
}

/// A tool's result as the message with this id.
fn result(id: u64, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

/// The three replies of a session in which one call is answered so.
fn session(answer: Reply) -> [Reply; 3] {
    [welcome(), accepted(), answer]
}

#[test]
fn h1_both_mcp_scripts_carry_the_same_client() {
    let client = |name: &str| {
        let script = fs::read_to_string(Script::new(name).path).unwrap();
        let (_, rest) = script.split_once("# --- MCP over HTTP").unwrap();
        let (client, _) = rest.split_once("# --- End of MCP over HTTP").unwrap();
        client.to_owned()
    };
    assert_eq!(client("websearch"), client("context7"));
}

#[test]
fn h1_every_script_explains_itself_and_wrong_usage() {
    for name in ["websearch", "weather", "context7"] {
        for option in ["-h", "--help"] {
            let help = Script::new(name).with_only(&["cat"]).run(&[option]);
            assert_eq!((help.code, help.stderr.as_str()), (0, ""));
            assert!(help.stdout.starts_with(&format!("Usage: {name} ")));
        }
        let hint = format!("{name} --help");
        let script = Script::new(name).with_only(&[]);
        script.run(&["--wrong"]).fails(2, &["--wrong", &hint]);
    }
}

#[test]
fn h1_a_missing_program_is_named() {
    let has = ["cat", "sed", "awk", "tr", "od", "cut"];
    for (name, program, arguments) in [
        ("websearch", "curl", ["query"].as_slice()),
        ("weather", "curl", &[]),
        ("context7", "curl", &["resolve", "x"]),
    ] {
        let run = Script::new(name).with_only(&has).run(arguments);
        run.fails(1, &[program, "not installed"]);
    }
    if !usable() {
        return;
    }
    let has = ["cat", "sed", "awk", "tr", "od", "cut", "curl"];
    for (name, arguments) in [
        ("websearch", ["query"].as_slice()),
        ("weather", &["-j"]),
        ("context7", &["resolve", "x"]),
    ] {
        let run = Script::new(name).with_only(&has).run(arguments);
        run.fails(1, &["jq", "not installed"]);
    }
}
