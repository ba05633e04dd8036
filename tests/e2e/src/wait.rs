//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

/// How long an instance may take that has nothing to wait for but a busy machine and an emulator's pollers.
pub const SOON: Duration = Duration::from_secs(120);

/// How often a condition is looked at that costs a process.
const POLL: Duration = Duration::from_millis(250);

/// How often one is looked at of which a moment mustn't be missed.
const POLL_CLOSELY: Duration = Duration::from_millis(10);

/// Waits until `found` gives something, and fails when that takes longer than `deadline`.
pub fn eventually<T>(what: &str, deadline: Duration, found: impl FnMut() -> Option<T>) -> T {
    poll(what, deadline, POLL, found)
}

/// The same, for what is there for a moment only.
pub fn closely<T>(what: &str, deadline: Duration, found: impl FnMut() -> Option<T>) -> T {
    poll(what, deadline, POLL_CLOSELY, found)
}

fn poll<T>(what: &str, deadline: Duration, pause: Duration, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(started.elapsed() < deadline, "{what}: not after {deadline:?}");
        std::thread::sleep(pause);
    }
}

/// Lets this much time pass: for samples that are apart.
pub(crate) fn pass(time: Duration) {
    std::thread::sleep(time);
}
