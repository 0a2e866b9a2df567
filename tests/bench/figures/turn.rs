//! What one step of the loop takes.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::ratio;
use crate::process::{self, Place};
use crate::server::{Server, shell_call, stream};
use crate::table::{Row, median, ms};

const STEPS: usize = 50;

/// From one request to the next, a trivial command in between, beside starting `sh` alone.
pub(super) fn step(_: &[PathBuf]) -> Vec<Row> {
    let mut answers = vec![shell_call("true"); STEPS];
    answers.push(stream(["Done."]));
    let server = Server::scripted(answers);
    let place = Place::new(&server.endpoint());
    process::run(&mut place.one_shot());
    let mut last = server.arrival().at;
    let mut steps: Vec<Duration> = (0..STEPS)
        .map(|_| {
            let next = server.arrival().at;
            next - std::mem::replace(&mut last, next)
        })
        .collect();

    let mut shells: Vec<Duration> = (0..STEPS)
        .map(|_| {
            let start = Instant::now();
            let mut shell = Command::new("sh");
            shell.args(["-c", "true"]).stdin(Stdio::null());
            assert!(shell.status().unwrap().success());
            start.elapsed()
        })
        .collect();

    let (ours, floor) = (median(&mut steps), median(&mut shells));
    vec![Row {
        what: "one step of the loop (`shell_exec` of `true`)",
        ours: ms(ours),
        floor: Some(("sh", ms(floor))),
        ratio: Some(ratio(ours, floor)),
        goal: "under 3 ms",
        met: ours < Duration::from_millis(3),
        peers: Vec::new(),
    }]
}
