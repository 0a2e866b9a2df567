//! A point where the scripted server waits for the test.

use std::sync::{Arc, Condvar, Mutex};

use super::DEADLINE;
use super::reply::TICK;

/// A point in a reply where the server waits until the test lets it go on.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    reached: bool,
    open: bool,
}

impl Gate {
    /// A closed gate.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Lets the server through.
    pub(crate) fn open(&self) {
        self.0.0.lock().unwrap().open = true;
        self.0.1.notify_all();
    }

    /// Waits until everything before the gate has been sent.
    #[track_caller]
    pub(crate) fn wait(&self) {
        let state = self.0.0.lock().unwrap();
        let (state, timeout) = self
            .0
            .1
            .wait_timeout_while(state, DEADLINE, |state| !state.reached)
            .unwrap();
        drop(state);
        assert!(!timeout.timed_out(), "the server never came to this gate");
    }

    /// Waits here until it is open, or the test is over.
    pub(super) fn pass(&self, stopped: impl Fn() -> bool) {
        let mut state = self.0.0.lock().unwrap();
        state.reached = true;
        self.0.1.notify_all();
        while !state.open && !stopped() {
            state = self.0.1.wait_timeout(state, TICK).unwrap().0;
        }
    }
}
