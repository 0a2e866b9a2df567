//! The figures, one function each.

mod editor;
mod memory;
mod size;
mod start;
mod stream;
mod turn;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::process::{self, Place};
use super::server::Server;
use super::table::{Row, median, ms};

/// Takes a figure, of these peers too where that makes sense.
type Take = fn(&[PathBuf]) -> Vec<Row>;

/// All figures by name, in the order of the table.
pub(crate) const ALL: [(&str, Take); 12] = [
    ("start: first request", start::first_request),
    ("start: one-shot CPU", start::one_shot_cpu),
    ("start: prompt", start::prompt),
    ("stream: pipe", stream::into_a_pipe),
    ("stream: terminal", stream::on_a_terminal),
    ("stream: delay", stream::delay),
    ("turn: step", turn::step),
    ("memory", memory::memory),
    ("size: binary and first request", size::binary_and_request),
    ("editor: key", editor::key),
    ("editor: paste", editor::paste),
    ("size: list", size::list),
];

/// One time as a multiple of another.
fn ratio(ours: Duration, floor: Duration) -> f64 {
    ours.as_secs_f64() / floor.as_secs_f64()
}

/// Medians of bantam, of curl as the floor, and of the peers.
struct Medians {
    ours: Duration,
    floor: Duration,
    peers: Vec<(String, String)>,
}

impl Medians {
    /// Measures them all in turns, so often, each run in a place of its own and answered the same.
    fn take(
        runs: usize,
        answer: Vec<u8>,
        peers: &[PathBuf],
        measure: impl Fn(&Server, Command) -> Duration,
    ) -> Self {
        let server = Server::repeating(answer);
        let mut ours = Vec::new();
        let mut floor = Vec::new();
        let mut of_peers = vec![Vec::new(); peers.len()];
        let measure = |command: &dyn Fn(&Place) -> Command| {
            let place = Place::new(&server.endpoint());
            let time = measure(&server, command(&place));
            server.forget_arrivals();
            time
        };
        for _ in 0..runs {
            ours.push(measure(&Place::one_shot));
            floor.push(measure(&Place::curl));
            for (peer, times) in peers.iter().zip(&mut of_peers) {
                times.push(measure(&|place: &Place| place.peer(peer)));
            }
        }
        let named = peers.iter().zip(&mut of_peers);
        let named = named.map(|(peer, times)| (process::name(peer), ms(median(times))));
        Self {
            ours: median(&mut ours),
            floor: median(&mut floor),
            peers: named.collect(),
        }
    }

    /// The row of the table, the goal being so many times the floor at most.
    fn row(self, what: &'static str, goal: &'static str, most: f64) -> Row {
        let ratio = ratio(self.ours, self.floor);
        Row {
            what,
            ours: ms(self.ours),
            floor: Some(("curl", ms(self.floor))),
            ratio: Some(ratio),
            goal,
            met: ratio <= most,
            peers: self.peers,
        }
    }
}
