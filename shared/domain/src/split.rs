//! How large shards are: from the start, by what was learned of past runs, and later, when one is worth cutting.
//!
//! A shard is slow when, at the pace that its owner has seen, what is unread would take long after it has been worked on
//! for long. Both are measured by the lease: within one, a cut would cost more writes than it saves time. The owner keeps
//! the first half of the unread rest and goes on; whoever claims the other half sees its own pace, and may cut again, so
//! that the number of executors doubles as long as there are idle ones.

use crate::boundary::Position;
use crate::limits::{LEARNED_PART_MIN, SHARD_AIM};
use crate::time::Duration;

/// What an owner has seen of a shard since it claimed it, or since it last thought of cutting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How long it has worked.
    pub worked: Duration,
    /// How much it has done: bytes, keys or items.
    pub done: u64,
    /// How much lies beyond everything that is read.
    pub unread: u64,
}

/// A run of the job that has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastRun {
    /// How much its input was: bytes, keys or items.
    pub extent: u64,
    /// How long all its shards were worked on, together.
    pub worked: Duration,
}

/// How much a shard is to have: `most` is what the job says, and less where the past run was slow.
#[must_use]
pub fn shard_size(most: u64, past: Option<PastRun>) -> u64 {
    let Some(past) = past.filter(|past| past.worked.0 > 0 && past.extent > 0) else { return most };
    let aim = u128::from(SHARD_AIM.0.unsigned_abs());
    let learned = u128::from(past.extent) * aim / u128::from(past.worked.0.unsigned_abs());
    let least = (most / LEARNED_PART_MIN).max(1);
    u64::try_from(learned).unwrap_or(u64::MAX).clamp(least.min(most), most)
}

/// The part of a lease that an owner has worked before it thinks of cutting, and between two such thoughts: a half.
const LEASE_PART: i64 = 2;

/// Leases that the unread rest takes at least, for a cut to be worth its writes: one for each half.
const REST_LEASES: u128 = 2;

/// How long an owner works before it thinks of cutting, and between two such thoughts.
#[must_use]
pub const fn pause_between_looks(lease: Duration) -> Duration {
    Duration(lease.0 / LEASE_PART)
}

/// Whether the unread rest is worth cutting for an owner with a lease of this length: it has worked for half of one, and
/// the rest would take two.
#[must_use]
pub fn is_slow(seen: Seen, lease: Duration) -> bool {
    let worked = u128::from(seen.worked.0.unsigned_abs());
    let length = u128::from(lease.0.unsigned_abs());
    // worked / done * unread >= the leases, without a division.
    seen.worked.0 > 0
        && seen.unread > 1
        && seen.worked >= pause_between_looks(lease)
        && worked * u128::from(seen.unread) >= REST_LEASES * length * u128::from(seen.done)
}

/// The middle of a run of keys or items: where the second half begins. `None` for positions of objects, whose middle is a
/// matter of their bytes, and for runs of fewer than two.
#[must_use]
pub fn middle(from: Position, to: Position) -> Option<Position> {
    match (from, to) {
        (Position::Key(from), Position::Key(to)) => {
            let half = to.abs_diff(from) / 2;
            (from < to && half > 0).then(|| from.checked_add_unsigned(half)).flatten().map(Position::Key)
        }
        (Position::Item(from), Position::Item(to)) => {
            let half = to.checked_sub(from)? / 2;
            (half > 0).then_some(Position::Item(from + half))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn seen(seconds: i64, done: u64, unread: u64) -> Seen {
        Seen { worked: Duration::from_secs(seconds), done, unread }
    }

    #[test]
    fn a_shard_is_slow_when_it_was_long_and_will_be_long() {
        assert!(is_slow(seen(15, 10, 40), LEASE), "15 s for 10, 60 s for 40");
        assert!(!is_slow(seen(15, 10, 39), LEASE));
        assert!(!is_slow(seen(14, 1, 1_000_000), LEASE), "it has hardly begun");
        assert!(is_slow(seen(900, 0, 2), LEASE), "nothing in 15 minutes");
        assert!(!is_slow(seen(900, 1, 1), LEASE), "one record can't be cut");
        assert!(!is_slow(seen(900, 1, 0), LEASE));
        assert!(is_slow(seen(i64::MAX / 1000, u64::MAX, u64::MAX), LEASE), "no overflow");
    }

    #[test]
    fn a_slow_job_gets_smaller_shards() {
        let past = |extent, seconds| Some(PastRun { extent, worked: Duration::from_secs(seconds) });
        assert_eq!(shard_size(1_000, None), 1_000);
        assert_eq!(shard_size(1_000, past(10_000, 600)), 1_000, "60 s each as it is");
        assert_eq!(shard_size(1_000, past(10_000, 6_000)), 100, "600 s each as it was");
        assert_eq!(shard_size(1_000, past(10_000, 1)), 1_000, "never more than the job says");
        assert_eq!(shard_size(1_000, past(1, 1_000_000)), 15, "nor less than a 64th");
        assert_eq!(shard_size(1, past(1, 1_000_000)), 1);
        assert_eq!(shard_size(1_000, past(0, 5)), 1_000);
        assert_eq!(shard_size(u64::MAX, past(u64::MAX, i64::MAX / 1_000)), u64::MAX / LEARNED_PART_MIN);
    }

    #[test]
    fn the_middle_leaves_something_on_both_sides() {
        assert_eq!(middle(Position::Key(-10), Position::Key(10)), Some(Position::Key(0)));
        assert_eq!(middle(Position::Key(3), Position::Key(5)), Some(Position::Key(4)));
        assert_eq!(middle(Position::Key(3), Position::Key(4)), None);
        assert_eq!(middle(Position::Key(i64::MIN), Position::Key(i64::MAX)), Some(Position::Key(-1)));
        assert_eq!(middle(Position::Item(0), Position::Item(9)), Some(Position::Item(4)));
        assert_eq!(middle(Position::Item(5), Position::Item(5)), None);
        assert_eq!(middle(Position::Item(5), Position::Key(9)), None);
    }
}
