//! Boundaries, shard ranges and positions: what of the input a shard has, and how far it has come.
//!
//! A boundary is the exact input of an instance, frozen once at fan-out. It is of one kind (objects, keys, a list of
//! items), and so are the positions in it. Ranges are half-open: `from` belongs to them, `to` doesn't, so that ranges
//! tile when each begins where the one before ends.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// A place between two records of a boundary.
///
/// Positions of one boundary are all of one kind; [`Position::partial_cmp`] is `None` across kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Position {
    /// In the objects of a manifest.
    Object(ObjectPosition),
    /// Before this key of an integer range.
    Key(i64),
    /// Before this item of a list, from 0.
    Item(u32),
}

/// A place between two records in a run of objects.
///
/// The end of an object is written as the start of the next one, so that a place has one name. `line` is what a
/// person needs to find the place; it follows from the rest and takes no part in comparisons.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ObjectPosition {
    /// The object's place in the manifest, from 0.
    #[serde(rename = "o")]
    pub object: u32,
    /// Bytes of the object's content (after decompression) before this place.
    #[serde(rename = "b")]
    pub offset: u64,
    /// Lines of the content before this place; [`LINE_UNKNOWN`] where nobody has counted.
    #[serde(rename = "l", default = "line_unknown", skip_serializing_if = "is_line_unknown")]
    pub line: u64,
}

/// The line of a place that nobody has counted up to, such as a cut within an object.
pub const LINE_UNKNOWN: u64 = u64::MAX;

fn line_unknown() -> u64 {
    LINE_UNKNOWN
}

fn is_line_unknown(line: &u64) -> bool {
    *line == LINE_UNKNOWN
}

impl ObjectPosition {
    /// The start of the object at this place of the manifest.
    #[must_use]
    pub const fn start_of(object: u32) -> Self {
        Self { object, offset: 0, line: 0 }
    }

    /// A place within an object that was found without counting lines.
    #[must_use]
    pub const fn within(object: u32, offset: u64) -> Self {
        Self { object, offset, line: LINE_UNKNOWN }
    }

    /// The line that begins here, from 1; 0 where it isn't known.
    #[must_use]
    pub const fn line_number(&self) -> u64 {
        match self.line.checked_add(1) {
            Some(number) => number,
            None => 0,
        }
    }
}

impl PartialEq for ObjectPosition {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ObjectPosition {}

impl Hash for ObjectPosition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.object, self.offset).hash(state);
    }
}

impl PartialOrd for ObjectPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectPosition {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.object, self.offset).cmp(&(other.object, other.offset))
    }
}

impl Position {
    /// The position as a short text: `o3:1048576:20133` (object, byte, line), `k7`, `i7`. After `before`, which it doesn't
    /// precede, its distance from that where they are in one object or of one kind: `+65536:100`, `+10`.
    pub(crate) fn to_text(self, before: Option<Self>) -> String {
        match (self, before) {
            (Self::Object(at), Some(Self::Object(last))) if at.object == last.object && at.line >= last.line => {
                format!("+{}:{}", at.offset.saturating_sub(last.offset), at.line - last.line)
            }
            (Self::Object(at), _) => format!("o{}:{}:{}", at.object, at.offset, at.line),
            // Two keys can be further apart than one of their kind counts.
            (Self::Key(key), Some(Self::Key(last))) if key.checked_sub(last).is_some() => format!("+{}", key - last),
            (Self::Key(key), _) => format!("k{key}"),
            (Self::Item(item), Some(Self::Item(last))) => format!("+{}", item.saturating_sub(last)),
            (Self::Item(item), _) => format!("i{item}"),
        }
    }

    /// Reads what [`Position::to_text`] writes; `None` for anything else.
    pub(crate) fn from_text(text: &str, before: Option<Self>) -> Option<Self> {
        let (kind, rest) = text.split_at_checked(1)?;
        let position = match (kind, before) {
            ("o", _) => {
                let (object, rest) = rest.split_once(':')?;
                let (offset, line) = rest.split_once(':')?;
                let (object, offset) = (object.parse().ok()?, offset.parse().ok()?);
                Self::Object(ObjectPosition { object, offset, line: line.parse().ok()? })
            }
            ("k", _) => Self::Key(rest.parse().ok()?),
            ("i", _) => Self::Item(rest.parse().ok()?),
            ("+", Some(Self::Object(last))) => {
                let (bytes, lines) = rest.split_once(':')?;
                let offset = last.offset.checked_add(bytes.parse().ok()?)?;
                Self::Object(ObjectPosition { offset, line: last.line.checked_add(lines.parse().ok()?)?, ..last })
            }
            ("+", Some(Self::Key(last))) => Self::Key(last.checked_add(rest.parse().ok()?)?),
            ("+", Some(Self::Item(last))) => Self::Item(last.checked_add(rest.parse().ok()?)?),
            _ => return None,
        };
        before.is_none_or(|last| last <= position).then_some(position)
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Object(a), Self::Object(b)) => Some(a.cmp(b)),
            (Self::Key(a), Self::Key(b)) => Some(a.cmp(b)),
            (Self::Item(a), Self::Item(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(at) => write!(f, "object {} byte {}", at.object, at.offset),
            Self::Key(key) => write!(f, "key {key}"),
            Self::Item(item) => write!(f, "item {item}"),
        }
    }
}

/// A half-open run of a boundary: from `from`, up to but without `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "UncheckedRange")]
pub struct Range {
    from: Position,
    to: Position,
}

#[derive(Deserialize)]
struct UncheckedRange {
    from: Position,
    to: Position,
}

impl TryFrom<UncheckedRange> for Range {
    type Error = RangeError;
    fn try_from(range: UncheckedRange) -> Result<Self, RangeError> {
        Self::new(range.from, range.to)
    }
}

/// Why two positions don't make a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The end lies before the start.
    #[error("a range can't end ({1}) before it starts ({0})")]
    Reversed(Position, Position),
    /// The ends are of different kinds of input.
    #[error("a range can't start in one kind of input ({0}) and end in another ({1})")]
    Mixed(Position, Position),
}

impl Range {
    /// The range between two positions of one kind.
    ///
    /// # Errors
    /// [`RangeError`] when `to` lies before `from`, or is of another kind.
    pub fn new(from: Position, to: Position) -> Result<Self, RangeError> {
        match from.partial_cmp(&to) {
            None => Err(RangeError::Mixed(from, to)),
            Some(Ordering::Greater) => Err(RangeError::Reversed(from, to)),
            Some(_) => Ok(Self { from, to }),
        }
    }

    /// The first position that belongs to the range.
    #[must_use]
    pub fn from(&self) -> Position {
        self.from
    }

    /// The first position that no longer belongs to it.
    #[must_use]
    pub fn to(&self) -> Position {
        self.to
    }

    /// Whether nothing can be in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Whether `position` lies in the range or at its end: where a checkpoint of it can stand.
    #[must_use]
    pub fn spans(&self, position: Position) -> bool {
        self.from <= position && position <= self.to
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} .. {})", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_refuses_reversed_and_mixed_ends() {
        let start = Position::Object(ObjectPosition::start_of(3));
        let later = Position::Object(ObjectPosition { object: 3, offset: 10, line: 1 });
        assert!(Range::new(start, later).is_ok());
        assert_eq!(Range::new(later, start), Err(RangeError::Reversed(later, start)));
        assert_eq!(Range::new(start, Position::Key(9)), Err(RangeError::Mixed(start, Position::Key(9))));
    }

    #[test]
    fn a_stored_range_is_checked_when_it_is_read() {
        let read: Result<Range, _> = serde_json::from_str(r#"{"from":{"key":5},"to":{"key":4}}"#);
        assert!(read.is_err());
    }

    #[test]
    fn the_line_takes_no_part_in_the_order() {
        let a = ObjectPosition { object: 1, offset: 7, line: 2 };
        let b = ObjectPosition { object: 1, offset: 7, line: 0 };
        assert_eq!(a, b);
    }
}
