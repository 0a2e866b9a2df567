//! How fast it is there: the first request, a whole short run, the prompt.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Medians, ratio};
use crate::process::{self, Place};
use crate::pty::Pty;
use crate::server::{Server, stream};
use crate::table::{Row, median, ms};

/// How many runs a median is taken of.
const RUNS: usize = 30;

/// Start to first request on the wire, beside curl's.
pub(super) fn first_request(peers: &[PathBuf]) -> Vec<Row> {
    let medians = Medians::take(RUNS, stream(["Done."]), peers, |server, mut command| {
        let start = Instant::now();
        process::run(&mut command);
        server.arrival().at.duration_since(start)
    });
    let goal = "at most 0.5 × curl's";
    vec![medians.row("start to first request on the wire", goal, 0.5)]
}

/// The CPU time of a run with one short answer, beside curl's.
pub(super) fn one_shot_cpu(peers: &[PathBuf]) -> Vec<Row> {
    let medians = Medians::take(RUNS, stream(["Done."]), peers, |_, mut command| {
        process::run(&mut command).cpu
    });
    vec![medians.row("one-shot run, CPU", "at most 0.7 × curl's", 0.7)]
}

/// Start to an empty prompt on a terminal, beside `/bin/true`.
pub(super) fn prompt(_: &[PathBuf]) -> Vec<Row> {
    let server = Server::repeating(stream(["Done."]));
    let place = Place::new(&server.endpoint());
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        ours.push(Pty::start(&place.command(process::BANTAM)).prompt());
        floor.push(process::run(&mut Command::new("true")).wall);
    }
    let (ours, floor) = (median(&mut ours), median(&mut floor));
    vec![Row {
        what: "start to prompt ready",
        ours: ms(ours),
        floor: Some(("true", ms(floor))),
        ratio: Some(ratio(ours, floor)),
        goal: "under 6 ms",
        met: ours < Duration::from_millis(6),
        peers: Vec::new(),
    }]
}
