//! What a write may change, and how: the guarantees that are about an item before and after.

use std::collections::BTreeSet;

use shardcron_domain::ids::ShardKey;
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::invariants::{
    g4_one_owner, g6_checkpoint, g8_stopped_never_succeeds, g9_commits_nothing, g10_finished_is_final,
    g10_shard_is_final,
};
use shardcron_domain::outbox::{EffectState, OutboxRow};
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_store::{Item, ItemKey};

use crate::check::Snapshot;

/// A shard's item.
pub(crate) fn shard_of<'a>(items: &'a Snapshot, key: &ShardKey) -> Option<&'a Shard> {
    match items.get(&ItemKey::Shard(key.clone())) {
        Some(Item::Shard(shard)) => Some(shard),
        _ => None,
    }
}

/// The items that are new or other than before. None may be gone.
pub(crate) fn changed(before: &Snapshot, after: &Snapshot, broken: &mut Vec<String>) -> Vec<ItemKey> {
    let mut olds = before.iter().peekable();
    let mut changed = Vec::new();
    for (key, new) in after {
        while let Some((gone, _)) = olds.next_if(|(old, _)| *old < key) {
            broken.push(format!("{gone} is gone"));
        }
        if olds.next_if(|(old, _)| *old == key).is_none_or(|(_, old)| old != new) {
            changed.push(key.clone());
        }
    }
    broken.extend(olds.map(|(gone, _)| format!("{gone} is gone")));
    changed
}

/// G4, G6, G10 and the rest that is about one write: what may change, and how.
pub(crate) fn changes(changed: &[ItemKey], before: &Snapshot, after: &Snapshot, broken: &mut Vec<String>) {
    for key in changed {
        match (before.get(key), after.get(key)) {
            (Some(Item::Shard(old)), Some(Item::Shard(new))) => {
                shard_change(old, new, broken);
                let is_late = |instance: &Instance| !g9_commits_nothing(instance, old, new);
                if instance_of(before, &new.key).is_some_and(is_late) {
                    broken.push(format!("G9: {} was committed to, and its instance wasn't at work on it", new.key));
                }
            }
            (Some(Item::Instance(old)), Some(Item::Instance(new))) => instance_change(old, new, broken),
            (Some(Item::Effect(old)), Some(Item::Effect(new))) => effect_change(&old.row, &new.row, broken),
            (Some(Item::Spec(_) | Item::Skip(_) | Item::Attempt(_) | Item::Reject(_)), _) => {
                broken.push(format!("{key} is written once, and has changed"));
            }
            _ => {}
        }
        if let ItemKey::Effect(of, _) = key {
            effect_written(key, of, before, after, broken);
        }
        // Rows change only together with their shard's checkpoint, in its owner's write (G4, G5).
        let (ItemKey::Result(of, _) | ItemKey::Reject(of, _)) = key else { continue };
        let checkpoint = |items| shard_of(items, of).map(|shard| &shard.checkpoint);
        if checkpoint(before) == checkpoint(after) {
            broken.push(format!("G4: {key} was written and the checkpoint of its shard hasn't moved"));
        }
    }
}

fn instance_of<'a>(items: &'a Snapshot, key: &ShardKey) -> Option<&'a Instance> {
    match items.get(&ItemKey::Instance(key.run.instance.clone())) {
        Some(Item::Instance(instance)) => Some(instance),
        _ => None,
    }
}

/// Which shards of the manifest were opened when it was too late. A child of a split is never late: it appears with a
/// write of its parent's owner, and fencing has to find it.
pub(crate) fn note_late(late: &mut BTreeSet<ShardKey>, changed: &[ItemKey], before: &Snapshot, after: &Snapshot) {
    for key in changed {
        let ItemKey::Shard(key) = key else { continue };
        let is_open = |items| shard_of(items, key).is_some_and(|shard| shard.status.is_open());
        if !is_open(after) {
            late.remove(key);
        } else if !is_open(before) && !key.shard.is_child() {
            let goes_on = |instance: &Instance| {
                let is_stopped =
                    matches!(instance.status, InstanceStatus::Stopping(_)) || instance.status.is_terminal();
                !is_stopped && instance.run() == key.run
            };
            if !instance_of(before, key).is_some_and(goes_on) {
                late.insert(key.clone());
            }
        }
    }
}

fn instance_change(old: &Instance, new: &Instance, broken: &mut Vec<String>) {
    if !g10_finished_is_final(old, new) {
        broken.push(format!("G10: {} was {:?} and is {:?}", old.id, old.status, new.status));
    }
    if new.version != old.version.next() || new.token < old.token {
        broken.push(format!("{}: version or token went wrong: {old:?} became {new:?}", old.id));
    }
    let is_stopped = matches!(new.status, InstanceStatus::Stopping(_)) && new.status != old.status;
    let begins_again = (new.generation, new.attempt) != (old.generation, old.attempt);
    if (is_stopped || begins_again) && new.token <= old.token {
        broken.push(format!("G9: a stop and another attempt raise the token: {old:?} became {new:?}"));
    }
    if !g8_stopped_never_succeeds(old, new) {
        broken.push(format!("G8: {} was {:?} and is {:?}", old.id, old.status, new.status));
    }
    // Nor does it begin again before it has ended.
    if matches!(old.status, InstanceStatus::Stopping(_)) && begins_again {
        broken.push(format!("G8: {} was {:?} and is {:?}", old.id, old.status, new.status));
    }
}

fn shard_change(old: &Shard, new: &Shard, broken: &mut Vec<String>) {
    if !g4_one_owner(old, new) {
        broken.push(format!("G4: {old:?} became {new:?}"));
    }
    let is_fenced = old.status.is_open() && matches!(new.status, ShardStatus::Fenced(_));
    if (is_fenced || new.attempt != old.attempt) && new.token <= old.token {
        broken.push(format!("G4: a fence and another attempt raise the token: {old:?} became {new:?}"));
    }
    if !g6_checkpoint(&old.checkpoint, &new.checkpoint, new.range) {
        broken.push(format!("G6: {:?} became {:?}", old.checkpoint, new.checkpoint));
    }
    if !g10_shard_is_final(old, new) {
        broken.push(format!("G10: {} was {:?} and is {:?}", old.key, old.status, new.status));
    }
}

/// Effects are written in an owner's write of their shard, the new ones in its commit.
fn effect_written(key: &ItemKey, of: &ShardKey, before: &Snapshot, after: &Snapshot, broken: &mut Vec<String>) {
    let (Some(old), Some(now)) = (shard_of(before, of), shard_of(after, of)) else {
        broken.push(format!("{key} has no shard"));
        return;
    };
    if now.version == old.version || now.token != old.token {
        broken.push(format!("G4: {key} was written, and not by its shard's owner"));
    }
    if !before.contains_key(key) && now.checkpoint == old.checkpoint {
        broken.push(format!("G5: {key} is new and the checkpoint of its shard hasn't moved"));
    }
}

/// What an effect is never changes, and one that the target has stays so.
fn effect_change(old: &OutboxRow, new: &OutboxRow, broken: &mut Vec<String>) {
    let same = OutboxRow { state: new.state.clone(), ..old.clone() } == *new;
    if !same || matches!(old.state, EffectState::Sent { .. }) || new.state == EffectState::Pending {
        broken.push(format!("an effect went wrong: {old:?} became {new:?}"));
    }
}
