//! Checkpoints: what of a shard is reliably done.

use serde::{Deserialize, Serialize};

use crate::boundary::{Position, Range};
use crate::limits::CHECKPOINT_RANGES_MAX;

/// A contiguous prefix, plus the finished ranges beyond the first gap.
///
/// The prefix never skips a gap (G6): it moves over a finished range only when that range begins where it stands.
///
/// Stored as one text of its positions in order, each as its distance from the one before where that is shorter
/// (`o3:1048576:20133 +65536:100 +70000:99`): a shard is paid for by its size at each of its writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Checkpoint {
    /// Everything of the shard before this is done.
    pub prefix: Position,
    /// Finished ranges beyond the first gap, in order, none touching another; at most
    /// [`CHECKPOINT_RANGES_MAX`].
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

    /// Beyond this nothing is done.
    #[must_use]
    pub fn done_to(&self) -> Position {
        self.ranges.last().map_or(self.prefix, Range::to)
    }

    /// What of the shard is still to be done, in order.
    #[must_use]
    pub fn gaps(&self, shard: Range) -> Vec<Range> {
        let mut gaps = Vec::new();
        let mut from = self.prefix;
        let ends = self.ranges.iter().map(|range| (range.from(), range.to()));
        for (to, next) in ends.chain([(shard.to(), shard.to())]) {
            // In order by construction; a range that isn't would be one that a reader can't make.
            gaps.extend(Range::new(from, to).ok().filter(|gap| !gap.is_empty()));
            from = next;
        }
        gaps
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

impl From<Checkpoint> for String {
    fn from(checkpoint: Checkpoint) -> Self {
        let mut text = checkpoint.prefix.to_text(None);
        let mut last = checkpoint.prefix;
        for position in checkpoint.ranges.iter().flat_map(|range| [range.from(), range.to()]) {
            text.push(' ');
            text.push_str(&position.to_text(Some(last)));
            last = position;
        }
        text
    }
}

/// Why a text isn't a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` isn't a checkpoint")]
pub struct CheckpointTextError(String);

impl TryFrom<String> for Checkpoint {
    type Error = CheckpointTextError;
    fn try_from(text: String) -> Result<Self, CheckpointTextError> {
        let read = || {
            let mut positions: Vec<Position> = Vec::new();
            for part in text.split(' ') {
                positions.push(Position::from_text(part, positions.last().copied())?);
            }
            let (prefix, ends) = positions.split_first()?;
            let pairs = ends.chunks(2).map(|pair| match pair {
                [from, to] => Range::new(*from, *to).ok(),
                _ => None,
            });
            Some(Self { prefix: *prefix, ranges: pairs.collect::<Option<_>>()? })
        };
        read().ok_or_else(|| CheckpointTextError(text.clone()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::boundary::ObjectPosition;

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

    #[test]
    fn what_is_to_be_done_is_what_lies_between() {
        let shard = keys(0, 100);
        let checkpoint = Checkpoint { prefix: Position::Key(10), ranges: vec![keys(20, 30), keys(40, 100)] };
        assert_eq!(checkpoint.gaps(shard), [keys(10, 20), keys(30, 40)]);
        assert_eq!(Checkpoint::start(shard).gaps(shard), [shard]);
        assert_eq!(Checkpoint::start(keys(5, 5)).gaps(keys(5, 5)), []);
        assert_eq!(checkpoint.done_to(), Position::Key(100));
    }

    #[test]
    fn its_text_has_distances() {
        let object = |object, offset, line| Position::Object(ObjectPosition { object, offset, line });
        let range = Range::new(object(3, 1_114_112, 20_233), object(4, 5, 1)).unwrap();
        let checkpoint = Checkpoint { prefix: object(3, 1_048_576, 20_133), ranges: vec![range] };
        let text = String::from(checkpoint.clone());
        assert_eq!(text, "o3:1048576:20133 +65536:100 o4:5:1");
        let read = Checkpoint::try_from(text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{checkpoint:?}"), "lines too");
        assert_eq!(String::from(Checkpoint { prefix: Position::Key(-7), ranges: vec![keys(3, 9)] }), "k-7 +10 +6");
        for bad in ["", "x", "o3:1", "k1 +5", "k5 +-1 +2", "i7 k8 k9", "+1", "k9223372036854775807 +1 +1", "o1:2:3:4"] {
            assert!(Checkpoint::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    proptest! {
        /// A text is read as what was written.
        #[test]
        fn a_text_is_read_as_what_was_written(steps in prop::collection::vec((0..3u32, 0..5u64, 0..9u64), 1..17)) {
            let mut at = ObjectPosition::start_of(0);
            let mut positions = Vec::new();
            for (objects, bytes, lines) in steps {
                at = match objects {
                    0 => ObjectPosition { offset: at.offset + bytes, line: at.line + lines, ..at },
                    more => ObjectPosition { object: at.object + more, offset: bytes, line: lines },
                };
                positions.push(Position::Object(at));
            }
            let ranges = positions[1..].chunks_exact(2).map(|pair| Range::new(pair[0], pair[1]).unwrap()).collect();
            let checkpoint = Checkpoint { prefix: positions[0], ranges };
            let read = Checkpoint::try_from(String::from(checkpoint.clone())).unwrap();
            prop_assert_eq!(format!("{read:?}"), format!("{checkpoint:?}"));
        }

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
