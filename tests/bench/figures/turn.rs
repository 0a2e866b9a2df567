//! What one step of the loop takes.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::ratio;
use crate::process::{self, Place};
use crate::server::{Server, shell_call, stream};
use crate::table::{Row, median, ms};

const STEPS: usize = 50;
const ROUNDS: usize = 5;

/// From one request to the next, a trivial command in between, beside starting `sh` alone.
pub(super) fn step(_: &[PathBuf]) -> Vec<Row> {
    let (mut steps, mut shells) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        steps.extend(turn());
        shells.extend((0..STEPS).map(|_| shell()));
    }
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

/// The times between the requests of one long turn.
fn turn() -> Vec<Duration> {
    let mut answers = vec![shell_call("true"); STEPS];
    answers.push(stream(["Done."]));
    let server = Server::scripted(answers);
    let place = Place::new(&server.endpoint());
    process::run(&mut place.one_shot());
    let arrivals: Vec<Instant> = (0..=STEPS).map(|_| server.arrival().at).collect();
    arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn shell() -> Duration {
    let start = Instant::now();
    let mut shell = Command::new("sh");
    shell.args(["-c", "true"]).stdin(Stdio::null());
    assert!(shell.status().unwrap().success());
    start.elapsed()
}
