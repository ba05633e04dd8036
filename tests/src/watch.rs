//! What is to hold of slots and backfills after each write, kept up write by write, so that it costs what was written.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use shardcron_domain::backfill::BackfillId;
use shardcron_domain::ids::InstanceId;
use shardcron_domain::instance::{Instance, InstanceStatus, Origin, WaitingFor};
use shardcron_domain::invariants::g7_holder_works;
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_domain::slot::{Slot, SlotKey};
use shardcron_domain::time::{Duration, Millis};
use shardcron_store::hooked::Operation;
use shardcron_store::memory::MemoryStore;
use shardcron_store::{Item, ItemKey, Store};

/// Watches slots and backfills.
#[derive(Debug, Default)]
pub struct Watch {
    instances: BTreeMap<InstanceId, Instance>,
    slots: BTreeMap<SlotKey, Slot>,
    limits: BTreeMap<BackfillId, (usize, Option<u32>)>,
    /// When each backfill began or retried an instance.
    begun: BTreeMap<BackfillId, Vec<Millis>>,
    active: BTreeMap<BackfillId, usize>,
    /// The most instances that each backfill has had at work at once.
    pub most_active: BTreeMap<BackfillId, usize>,
}

/// An item as it stands: the memory store answers at once.
#[must_use]
pub fn item(store: &MemoryStore, key: &ItemKey) -> Option<Item> {
    match pin!(store.get(key)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(item)) => item,
        _ => panic!("the memory store answers at once"),
    }
}

impl Watch {
    /// Starts anew from what is there: after a test has changed items by hand.
    pub fn reset(&mut self, items: impl Iterator<Item = Item>) {
        (self.instances, self.slots) = (BTreeMap::new(), BTreeMap::new());
        (self.active, self.begun) = (BTreeMap::new(), BTreeMap::new());
        self.catch_up(items, Millis(i64::MIN / 2));
    }

    /// Takes note of writes that nobody has told of: those that arrived late.
    pub fn catch_up(&mut self, items: impl Iterator<Item = Item>, now: Millis) {
        let (backfills, others): (Vec<Item>, Vec<Item>) = items.partition(|item| matches!(item, Item::Backfill(_)));
        for item in backfills.into_iter().chain(others) {
            self.take(item, now);
        }
    }

    /// Takes note of a write, and says what doesn't hold after it.
    pub fn note(&mut self, store: &MemoryStore, operation: &Operation, now: Millis) -> Vec<String> {
        let keys = operation.written();
        let mut broken = Vec::new();
        let mut slots: Vec<SlotKey> = Vec::new();
        // Backfills first: an instance is counted by what its backfill says.
        for key in keys.iter().filter(|key| matches!(key, ItemKey::Backfill(..))).chain(&keys) {
            match item(store, key) {
                Some(Item::Shard(shard)) => self.shard(&shard, &mut broken),
                Some(item) => slots.extend(self.take(item, now)),
                None => {}
            }
        }
        slots.sort();
        slots.dedup();
        slots.iter().for_each(|key| self.slot(key, &mut broken));
        for (id, (max, rate)) in &self.limits {
            let active = self.active.get(id).copied().unwrap_or(0);
            if active > *max {
                broken.push(format!("backfill {id} has {active} at work, and may have {max}"));
            }
            let last_minute = |at: &&Millis| now.since(**at) < Duration::from_secs(60);
            let begun = self.begun.get(id).map_or(0, |begun| begun.iter().filter(last_minute).count());
            if rate.is_some_and(|rate| begun > rate as usize) {
                broken.push(format!("backfill {id} began {begun} in a minute, and may begin {rate:?}"));
            }
        }
        broken
    }

    /// The slots that the item is about.
    fn take(&mut self, item: Item, now: Millis) -> Vec<SlotKey> {
        match item {
            Item::Slot(slot) => {
                let key = slot.key.clone();
                self.slots.insert(key.clone(), slot);
                vec![key]
            }
            Item::Backfill(backfill) => {
                let request = &backfill.request;
                self.limits.insert(backfill.id.clone(), (request.max_active as usize, request.per_minute));
                Vec::new()
            }
            Item::Instance(instance) => {
                let before = self.instances.insert(instance.id.clone(), (*instance).clone());
                self.count(before.as_ref(), &instance, now);
                before.into_iter().chain([*instance]).filter_map(|instance| instance.slot).collect()
            }
            _ => Vec::new(),
        }
    }

    fn count(&mut self, before: Option<&Instance>, after: &Instance, now: Millis) {
        let at_work = |instance: &Instance| match &instance.origin {
            Origin::Backfill { id } if !instance.status.is_terminal() => Some(id.clone()),
            _ => None,
        };
        let (was, is) = (before.and_then(at_work), at_work(after));
        if was == is {
            return;
        }
        if let Some(id) = was {
            *self.active.entry(id).or_default() -= 1;
        }
        if let Some(id) = is {
            let active = self.active.entry(id.clone()).or_default();
            *active += 1;
            let most = self.most_active.entry(id.clone()).or_default();
            *most = (*most).max(*active);
            self.begun.entry(id).or_default().push(now);
        }
    }

    /// No shard is at work, or even open, for an instance of a slot that isn't its holder.
    fn shard(&self, shard: &Shard, broken: &mut Vec<String>) {
        let Some(instance) = self.instances.get(&shard.key.run.instance) else { return };
        let Some(key) = &instance.slot else { return };
        let holds = self.slots.get(key).is_some_and(|slot| slot.holder.as_ref() == Some(&instance.id));
        if matches!(shard.status, ShardStatus::Leased(_)) && !holds && !instance.status.is_terminal() {
            broken.push(format!("G7: {} is leased, and its instance doesn't hold {key}", shard.key));
        }
    }

    fn slot(&self, key: &SlotKey, broken: &mut Vec<String>) {
        let slot = self.slots.get(key);
        let came = || self.instances.values().filter(|instance| instance.slot.as_ref() == Some(key));
        if !slot.is_none_or(|slot| g7_holder_works(slot, came())) {
            broken.push(format!(
                "G7: one that isn't the holder of {slot:?} is at work: {:?}",
                came().collect::<Vec<_>>()
            ));
        }
        for instance in came() {
            let holds = slot.is_some_and(|slot| slot.holder.as_ref() == Some(&instance.id));
            let waits = slot.map_or(0, |slot| slot.waiting.iter().filter(|id| **id == instance.id).count());
            let wrong = match &instance.status {
                InstanceStatus::Waiting(WaitingFor::Slot) => holds || waits != 1,
                // One that waited is off the slot as soon as it is replaced, or once it has ended.
                InstanceStatus::Stopping(_) => holds && waits > 0,
                status if status.is_terminal() => holds || waits > 0,
                _ => !holds || waits > 0,
            };
            if wrong {
                broken.push(format!("G7: {} is {:?}, and {key} is {slot:?}", instance.id, instance.status));
            }
        }
    }
}
