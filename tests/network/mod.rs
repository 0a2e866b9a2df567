//! Bad networks (SPEC C3, C4, B9, B10).

use crate::common::cli::Running;

mod limits;
mod proxies;
mod retries;

/// A host that no resolver knows.
const NOWHERE: &str = "endpoint=http://bantam.invalid/v1";

/// Interrupts a run that is about to try again, and checks that it was.
#[track_caller]
fn interrupt_in_back_off(run: Running, reason: &str) {
    run.wait_for_stderr(reason);
    run.interrupt();
    run.finish().code(130);
}
