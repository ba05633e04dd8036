//! The split of a slow shard: its owner keeps half of what is unread, and anybody takes the other half.

use shardcron_domain::boundary::{ObjectPosition, Position, Range};
use shardcron_domain::ids::GroupNo;
use shardcron_domain::instance::Instance;
use shardcron_domain::limits::{SPLIT_CHILDREN_MAX, SPLIT_GROUPS_LOOKED_AT_MAX};
use shardcron_domain::split::{Seen, is_slow, middle, pause_between_looks};
use shardcron_domain::time::Millis;
use shardcron_input::{ManifestObject, record_start};
use shardcron_store::{Item, ItemKey};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::batch::Progress;
use crate::error::EngineError;
use crate::events::{self, Event};
use crate::held::HeldShard;
use crate::ports::stamp;
use crate::reading::{Input, InputKind};

/// How fast a shard goes, as its owner has seen since its claim.
pub(crate) struct Pace {
    began: Millis,
    done: u64,
    next_look: Millis,
}

impl Pace {
    pub(crate) fn begin(now: Millis) -> Self {
        Self { began: now, done: 0, next_look: now }
    }
}

impl Input {
    /// How much of the input lies in a range: bytes as stored, keys or items.
    fn extent(&self, range: Range) -> u64 {
        match (range.from(), range.to()) {
            (Position::Key(from), Position::Key(to)) => to.abs_diff(from),
            (Position::Item(from), Position::Item(to)) => u64::from(to - from),
            (Position::Object(from), Position::Object(to)) => {
                let bytes = self.plan.objects.iter().map(|object| bytes_within(object, from, to));
                bytes.fold(0, u64::saturating_add)
            }
            _ => 0,
        }
    }

    /// A place near the middle of a range at which a record is known to begin; `None` where there is none within.
    async fn middle(&self, range: Range) -> Result<Option<Position>, EngineError> {
        let (Position::Object(from), Position::Object(to)) = (range.from(), range.to()) else {
            return Ok(middle(range.from(), range.to()));
        };
        let mut half = self.extent(range) / 2;
        let mut objects = self.plan.objects.iter().map(|object| (object, bytes_within(object, from, to)));
        let found = objects.find(|(_, bytes)| match half.checked_sub(*bytes) {
            Some(rest) if rest > 0 => {
                half = rest;
                false
            }
            _ => true,
        });
        let Some((object, _)) = found else { return Ok(None) };
        let is_within = |at: &ObjectPosition| from < *at && *at < to;
        let start = if object.index == from.object { from.offset } else { 0 };
        let inner = match &self.kind {
            InputKind::Objects { objects, root, format, .. } => {
                record_start(&**objects, root, object, format, start.saturating_add(half)).await?
            }
            InputKind::Keys(_) | InputKind::Items => None,
        };
        let ends = [ObjectPosition::start_of(object.index + 1), ObjectPosition::start_of(object.index)];
        Ok(inner.into_iter().chain(ends).find(is_within).map(Position::Object))
    }
}

/// Bytes of an object that lie between two places. Of a compressed one the places count what it holds, and its size what
/// is stored: then it is an estimate.
fn bytes_within(object: &ManifestObject, from: ObjectPosition, to: ObjectPosition) -> u64 {
    let start = match object.index.cmp(&from.object) {
        std::cmp::Ordering::Less => return 0,
        std::cmp::Ordering::Equal => from.offset,
        std::cmp::Ordering::Greater => 0,
    };
    let end = match object.index.cmp(&to.object) {
        std::cmp::Ordering::Less => object.size,
        std::cmp::Ordering::Equal => to.offset.min(object.size),
        std::cmp::Ordering::Greater => 0,
    };
    end.saturating_sub(start)
}

impl Engine {
    /// Cuts the shard when it is slow and somebody could take a part of it. `done` was just committed.
    pub(crate) async fn split_if_slow(
        &self,
        held: &mut HeldShard,
        instance: &Instance,
        spec: &LoadedSpec,
        progress: &mut Progress,
        (pace, done): (&mut Pace, Range),
    ) -> Result<(), EngineError> {
        let now = self.clock.now();
        let lease = self.settings.lease;
        let pieces = progress.pieces();
        let input = pieces.input();
        pace.done = pace.done.saturating_add(input.extent(done));
        // Where something beyond it is done already, a former owner's batch, nothing can be cut off.
        let unread = pieces.unread().filter(|unread| spec.spec.shards.split && unread.to() == held.shard.range.to());
        let Some(unread) = unread else { return Ok(()) };
        let seen = Seen { worked: now.at.since(pace.began), done: pace.done, unread: input.extent(unread) };
        if now.at < pace.next_look || held.shard.children >= SPLIT_CHILDREN_MAX || !is_slow(seen, lease) {
            return Ok(());
        }
        pace.next_look = now.at.plus(pause_between_looks(lease));
        let look = async {
            if !self.has_idle_executors(instance, spec).await? {
                return Ok(None);
            }
            input.middle(unread).await
        };
        let Some(at) = self.keeping(held, look).await?? else { return Ok(()) };
        let (parent, child) = held.shard.split(&stamp(&*self.clock, &*self.random), at)?;
        let key = child.key.clone();
        held.write_with_child(self, parent, child).await?;
        pieces.end_at(at)?;
        self.events.emit(
            Event::of_shard(events::SPLIT, &held.shard.key)
                .with("child", key.shard.as_str())
                .with("at", at.to_string()),
        );
        self.tell_shards(instance, std::iter::once(key)).await;
        Ok(())
    }

    /// Whether fewer shards are open than the job may have worked on at once. It decides nothing but whether a cut is worth
    /// while, so that what changes meanwhile is of no consequence.
    async fn has_idle_executors(&self, instance: &Instance, spec: &LoadedSpec) -> Result<bool, EngineError> {
        let Some(now) = self.instance(&instance.id).await? else { return Ok(false) };
        let groups = now.boundary.as_ref().map_or(0, |boundary| boundary.groups());
        let unfinished: Vec<GroupNo> = (0..groups).map(GroupNo).filter(|no| !now.groups_done.contains(no)).collect();
        if unfinished.len() as u32 > SPLIT_GROUPS_LOOKED_AT_MAX {
            return Ok(false);
        }
        let mut open = 0;
        for no in unfinished {
            if let Some(Item::Group(group)) = self.store.get(&ItemKey::Group(now.run(), no)).await? {
                open += group.open_at_least();
            }
        }
        Ok(open < spec.spec.parallelism)
    }
}
