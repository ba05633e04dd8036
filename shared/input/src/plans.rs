//! The cut of a boundary into shards: which objects, keys or items each has.

use shardcron_domain::boundary::{ObjectPosition, Position, Range};
use shardcron_domain::ids::ShardId;
use shardcron_domain::limits;
use shardcron_objects::{ObjectMeta, Root};

use crate::manifest::{BoundaryKind, ManifestObject, ShardPlan};

/// A boundary with its cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The whole.
    pub boundary: BoundaryKind,
    /// What a shard was to have at most: bytes, keys or items.
    pub target: u64,
    /// The shards, in order.
    pub plans: Vec<ShardPlan>,
}

/// An object of a listing, and the offsets at which it may be cut, in order: places within it where a record begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuttable {
    /// The object.
    pub object: ObjectMeta,
    /// Where to cut it.
    pub cuts: Vec<u64>,
}

impl From<ObjectMeta> for Cuttable {
    fn from(object: ObjectMeta) -> Self {
        Self { object, cuts: Vec::new() }
    }
}

/// Cuts objects, in the order of their keys, into shards.
///
/// Those that follow each other share a shard as long as they have no more than `target` bytes together and aren't more
/// than [`limits::SHARD_OBJECTS_MAX`]; a larger one has a shard of its own, together with the empty ones after it, or one
/// for each piece between its cuts. Each object belongs to a shard, also an empty one.
#[must_use]
pub fn cut_objects(root: Root, objects: Vec<Cuttable>, target: u64) -> Cut {
    let count = objects.len() as u32;
    let all = objects.iter().fold(0, |sum: u64, one| sum.saturating_add(one.object.size));
    let mut plans = Plans::default();
    let mut open: Vec<ManifestObject> = Vec::new();
    let mut bytes = 0_u64;
    // `zip` ends before an index that doesn't fit, which `list_objects` refuses long before.
    for (index, Cuttable { object: ObjectMeta { key, size, etag }, cuts }) in (0..u32::MAX).zip(objects) {
        let is_over = size > 0 && bytes.checked_add(size).is_none_or(|sum| sum > target);
        if is_over || open.len() == limits::SHARD_OBJECTS_MAX {
            plans.close(&mut open);
            bytes = 0;
        }
        let object = ManifestObject { index, key, size, etag };
        if cuts.is_empty() {
            bytes = bytes.saturating_add(size);
            open.push(object);
        } else {
            plans.close(&mut open);
            plans.pieces(&object, &cuts);
            bytes = 0;
        }
    }
    plans.close(&mut open);
    let boundary = BoundaryKind::Objects { root, objects: count, bytes: all };
    Cut { boundary, target, plans: plans.0 }
}

/// Cuts a range of keys, from `from` up to but without `to`, into shards of `target` keys; of more where these would be
/// more than [`limits::BOUNDARY_SHARDS_MAX`].
#[must_use]
pub fn cut_keys(from: i64, to: i64, target: u64) -> Cut {
    let keys = to.abs_diff(from.min(to));
    let target = target.max(1).max(keys.div_ceil(limits::BOUNDARY_SHARDS_MAX));
    let mut plans = Plans::default();
    let mut at = from;
    while at < to {
        let next = at.checked_add_unsigned(target).map_or(to, |next| next.min(to));
        plans.push(range_of(Position::Key(at), Position::Key(next)), Vec::new(), Vec::new());
        at = next;
    }
    Cut { boundary: BoundaryKind::Keys { from, to: to.max(from) }, target, plans: plans.0 }
}

/// Cuts a list into shards of `target` items.
#[must_use]
pub fn cut_items(items: &[String], target: u64) -> Cut {
    let target = target.max(1);
    let mut plans = Plans::default();
    let mut at = 0;
    for run in items.chunks(usize::try_from(target).unwrap_or(usize::MAX)) {
        let next = at + run.len() as u32;
        plans.push(range_of(Position::Item(at), Position::Item(next)), Vec::new(), run.to_vec());
        at = next;
    }
    Cut { boundary: BoundaryKind::Items { items: at }, target, plans: plans.0 }
}

#[derive(Default)]
struct Plans(Vec<ShardPlan>);

impl Plans {
    fn push(&mut self, range: Range, objects: Vec<ManifestObject>, items: Vec<String>) {
        let id = ShardId::numbered(self.0.len() as u32);
        self.0.push(ShardPlan { id, range, objects, items });
    }

    fn close(&mut self, open: &mut Vec<ManifestObject>) {
        let (Some(first), Some(last)) = (open.first(), open.last()) else { return };
        let range = objects_range(first.index, last.index + 1);
        self.push(range, std::mem::take(open), Vec::new());
    }

    fn pieces(&mut self, object: &ManifestObject, cuts: &[u64]) {
        let start = ObjectPosition::start_of(object.index);
        let inner = cuts.iter().map(|cut| ObjectPosition::within(object.index, *cut));
        let ends = inner.chain([ObjectPosition::start_of(object.index + 1)]);
        let mut from = start;
        for to in ends {
            self.push(range_of(Position::Object(from), Position::Object(to)), vec![object.clone()], Vec::new());
            from = to;
        }
    }
}

pub(crate) fn objects_range(from: u32, to: u32) -> Range {
    let place = |object| Position::Object(ObjectPosition::start_of(object));
    range_of(place(from), place(to))
}

pub(crate) fn range_of(from: Position, to: Position) -> Range {
    #[expect(clippy::expect_used, reason = "callers count up, and both ends are of one kind")]
    Range::new(from, to).expect("a range between two places in order")
}
