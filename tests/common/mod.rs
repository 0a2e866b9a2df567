//! What the tests share: a scripted server, runs of the real binary, a scripted model.
//!
//! Nothing here knows what any single test is about, and nothing here sleeps: whoever waits, waits
//! for a condition, with a [`DEADLINE`].

use std::time::Duration;

pub(crate) mod capture;
pub(crate) mod chat;
pub(crate) mod cli;
pub(crate) mod gate;
pub(crate) mod model;
pub(crate) mod output;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod pty;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod server;
pub(crate) mod tls;

/// How long anything may take before the test fails. Generous, for machines under load: it bounds
/// what hangs and measures nothing.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
