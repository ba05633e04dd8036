//! Checkpoints: what of a shard is reliably done.

use serde::{Deserialize, Serialize};

use crate::boundary::{Position, Range};
use crate::limits::CHECKPOINT_RANGES_MAX;

/// A contiguous prefix, plus the finished ranges beyond the first gap.
///
/// The prefix never skips a gap (G6): it moves over a finished range only when that range begins where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Everything of the shard before this is done.
    pub prefix: Position,
    /// Finished ranges beyond the first gap, in order, none touching another; at most
    /// [`CHECKPOINT_RANGES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Range>,
}

/// Why a finished range doesn't fit a checkpoint. Each is a fault of the executor, not of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Part of it is done already: committing it would count records twice.
    #[error("{0} is done already, at least in part")]
    Overlap(Range),
    /// It lies outside the shard.
    #[error("{0} lies outside the shard")]
    Outside(Range),
    /// There is no room for another range beyond the gap; the gap must close first.
    #[error("no room for another finished range beyond the gap")]
    Full,
}

impl Checkpoint {
    /// Nothing of the shard is done.
    #[must_use]
    pub fn start(range: Range) -> Self {
        Self { prefix: range.from(), ranges: Vec::new() }
    }

    /// Whether all of the shard is done.
    #[must_use]
    pub fn is_complete(&self, shard: Range) -> bool {
        self.prefix == shard.to()
    }

    /// The checkpoint with `done` added.
    ///
    /// # Errors
    /// [`CheckpointError`]; the checkpoint stays as it was.
    pub fn with(&self, done: Range, shard: Range) -> Result<Self, CheckpointError> {
        if !shard.spans(done.from()) || !shard.spans(done.to()) {
            return Err(CheckpointError::Outside(done));
        }
        let overlaps = |own: &Range| done.from() < own.to() && own.from() < done.to();
        if done.from() < self.prefix || self.ranges.iter().any(overlaps) {
            return Err(CheckpointError::Overlap(done));
        }
        let mut ranges = self.ranges.clone();
        let place = ranges.partition_point(|own| own.from() < done.from());
        ranges.insert(place, done);
        let mut next = Self { prefix: self.prefix, ranges: Vec::new() };
        for range in ranges {
            if range.from() == next.prefix {
                next.prefix = range.to();
                continue;
            }
            match next.ranges.last().map(|last| (last.from(), last.to())) {
                Some((from, to)) if to == range.from() => {
                    next.ranges.pop();
                    next.ranges.push(Range::new(from, range.to()).map_err(|_| CheckpointError::Overlap(done))?);
                }
                _ => next.ranges.push(range),
            }
        }
        if next.ranges.len() > CHECKPOINT_RANGES_MAX {
            return Err(CheckpointError::Full);
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(from: i64, to: i64) -> Range {
        Range::new(Position::Key(from), Position::Key(to)).unwrap()
    }

    #[test]
    fn the_prefix_waits_for_the_gap_to_close() {
        let shard = keys(0, 100);
        let gap = Checkpoint::start(shard).with(keys(10, 20), shard).unwrap();
        assert_eq!(gap.prefix, Position::Key(0));
        let closed = gap.with(keys(0, 10), shard).unwrap();
        assert_eq!(closed, Checkpoint { prefix: Position::Key(20), ranges: vec![] });
    }

    #[test]
    fn what_is_done_is_not_done_again() {
        let shard = keys(0, 100);
        let done = Checkpoint::start(shard).with(keys(0, 10), shard).unwrap();
        assert_eq!(done.with(keys(5, 15), shard), Err(CheckpointError::Overlap(keys(5, 15))));
        assert_eq!(done.with(keys(90, 101), shard), Err(CheckpointError::Outside(keys(90, 101))));
    }

    proptest! {
        /// Whatever the order in which the pieces of a shard finish, each is taken once, the prefix never passes a
        /// piece that isn't done, and at the end the shard is complete.
        #[test]
        fn pieces_in_any_order_complete_the_shard(order in Just((0..8i64).collect::<Vec<_>>()).prop_shuffle()) {
            let shard = keys(0, 80);
            let mut checkpoint = Checkpoint::start(shard);
            let mut done = Vec::new();
            for piece in order {
                checkpoint = checkpoint.with(keys(piece * 10, piece * 10 + 10), shard).unwrap();
                done.push(piece);
                let prefix = (0..).take_while(|piece| done.contains(piece)).count() as i64 * 10;
                prop_assert_eq!(checkpoint.prefix, Position::Key(prefix));
            }
            prop_assert!(checkpoint.is_complete(shard));
            prop_assert!(checkpoint.ranges.is_empty());
        }
    }
}
