//! Time and chance: the one place where these tests read a clock, sleep, or look at the environment.
#![expect(clippy::disallowed_methods, reason = "the tests' clock, sleep and seed are read here and nowhere else")]

use std::time::{Duration, Instant};

/// How long a command may take that has nothing to wait for, on a machine that is busy with other tests.
pub(crate) const SOON: Duration = Duration::from_secs(180);

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(5);

/// Waits until `found` gives something, and fails when that takes longer than `deadline`.
pub(crate) fn eventually<T>(what: &str, deadline: Duration, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(started.elapsed() < deadline, "{what}: not after {deadline:?}");
        std::thread::sleep(POLL);
    }
}

/// Waits until `found` is true or `time` is over; whether it was found.
pub(crate) fn within(time: Duration, mut found: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if found() {
            return true;
        }
        let Some(left) = time.checked_sub(started.elapsed()) else { return false };
        std::thread::sleep(POLL.min(left));
    }
}

/// The seed of a test that draws: `SHARDCRON_TEST_SEED`, or one that is always the same. Printed, and so shown when
/// the test fails.
pub(crate) fn seed(of: &str) -> u64 {
    let seed = std::env::var("SHARDCRON_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_260_830);
    println!("{of}: SHARDCRON_TEST_SEED={seed}");
    seed
}
