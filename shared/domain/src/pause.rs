//! Pauses before another try: exponential, with full jitter (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).

use crate::limits::{BACKOFF_BASE, BACKOFF_MAX};
use crate::time::Duration;

/// Anything from nothing up to `base`, doubled so often, and up to `most`. So that those who failed together don't try again
/// together.
///
/// `random` is uniform over all of `u64`.
#[must_use]
pub fn full_jitter(base: Duration, doublings: u32, most: Duration, random: u64) -> Duration {
    // 30 doublings of a millisecond are twelve days: beyond any `most`.
    let ceiling = base.0.saturating_mul(1 << doublings.min(30)).clamp(0, most.0.max(0));
    Duration((random % (ceiling.unsigned_abs() + 1)) as i64)
}

/// The pause of a shard or step before its next attempt, from [`BACKOFF_BASE`], at most [`BACKOFF_MAX`].
///
/// `failures` counts from 1; `random` is uniform over all of `u64`.
#[must_use]
pub fn backoff(failures: u32, random: u64) -> Duration {
    full_jitter(BACKOFF_BASE, failures.saturating_sub(1), BACKOFF_MAX, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_bound() {
        assert!(backoff(1, u64::MAX) <= BACKOFF_BASE);
        assert_eq!(backoff(3, BACKOFF_BASE.0.unsigned_abs() * 4), BACKOFF_BASE.times(4));
        for failures in [20, 31, 64, u32::MAX] {
            assert!(backoff(failures, u64::MAX - 1) <= BACKOFF_MAX);
        }
    }

    #[test]
    fn jitter_is_full() {
        let of = |random| full_jitter(Duration(10), 2, Duration(1_000), random);
        assert_eq!([of(0), of(39), of(40), of(41)], [Duration(0), Duration(39), Duration(40), Duration(0)]);
        for most in [Duration(0), Duration(-1)] {
            assert_eq!(full_jitter(Duration(10), u32::MAX, most, u64::MAX), Duration::ZERO);
        }
    }
}
