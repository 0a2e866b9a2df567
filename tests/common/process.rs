//! Processes that the program under test has left behind or should have ended.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::DEADLINE;

/// Polls until the condition holds; false when the time is up.
pub(crate) fn wait_until(ends_before: Instant, mut condition: impl FnMut() -> bool) -> bool {
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > ends_before {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process with this id is there (and no zombie).
pub(crate) fn is_running(pid: u32) -> bool {
    let state = if Path::new("/proc/self/stat").exists() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rfind(')').map_or("", |at| &stat[at + 1..]);
        after_name.trim().to_owned()
    } else {
        let told = Command::new("ps")
            .args(["-o", "stat=", "-p", &pid.to_string()])
            .output()
            .expect("ps runs");
        String::from_utf8_lossy(&told.stdout).trim().to_owned()
    };
    !state.is_empty() && !state.starts_with('Z')
}

/// Waits until the process is gone.
#[track_caller]
pub(crate) fn wait_for_end_of(pid: u32) {
    let gone = wait_until(Instant::now() + DEADLINE, || !is_running(pid));
    assert!(gone, "process {pid} still runs");
}

/// Ends a process that a test left behind on purpose.
pub(crate) fn end(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
