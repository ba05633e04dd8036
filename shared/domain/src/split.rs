//! When a shard is worth cutting, and where.
//!
//! A shard is slow when, at the pace that its owner has seen, what is unread would take long after it has been worked on
//! for long. Both are measured by the lease: within one, a cut would cost more writes than it saves time. The owner keeps
//! the first half of the unread rest and goes on; whoever claims the other half sees its own pace, and may cut again, so
//! that the number of executors doubles as long as there are idle ones.

use crate::boundary::Position;
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

/// Whether the unread rest is worth cutting for an owner with a lease of this length: it has worked for half of one, and
/// the rest would take two.
#[must_use]
pub fn is_slow(seen: Seen, lease: Duration) -> bool {
    let worked = u128::from(seen.worked.0.unsigned_abs());
    let lease = u128::from(lease.0.unsigned_abs());
    // worked / done * unread >= 2 * lease, without a division.
    seen.worked.0 > 0
        && seen.unread > 1
        && worked * 2 >= lease
        && worked * u128::from(seen.unread) >= 2 * lease * u128::from(seen.done)
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
