//! What the store in memory holds, and what its readers see of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use shardcron_domain::ids::WriteId;

use crate::table::index_entry;
use crate::{Item, ItemKey, Put};

/// The items, and what readers don't see of them yet.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) items: BTreeMap<ItemKey, Item>,
    /// Applied transactions, oldest first.
    pub(super) applied: VecDeque<(WriteId, Vec<Put>)>,
    /// What each kind of read of an index sees next, where they lag.
    pub(super) lagging: Option<[Vec<Item>; 3]>,
    /// Transactions that no query has met yet, where queries see halves.
    pub(super) unseen: Option<Vec<Half>>,
    /// How many times a query has seen half of one.
    pub(super) halves_seen: usize,
}

/// The items of a transaction that a query which meets it doesn't see yet, as they were before it.
type Half = BTreeMap<ItemKey, Option<Item>>;

impl State {
    /// Writes an item. From then on everybody sees it.
    pub(super) fn write(&mut self, key: ItemKey, item: Item) {
        for half in self.unseen.iter_mut().flatten() {
            half.remove(&key);
        }
        self.items.insert(key, item);
    }

    /// Writes the items of a transaction, of which the first query to meet it sees every second one.
    pub(super) fn write_all(&mut self, puts: Vec<(ItemKey, Item)>) {
        let first_seen = self.applied.len() % 2;
        let hidden = puts.iter().skip(first_seen).step_by(2).map(|(key, _)| key);
        let half: Half = hidden.map(|key| (key.clone(), self.items.get(key).cloned())).collect();
        for (key, item) in puts {
            self.write(key, item);
        }
        if let Some(unseen) = &mut self.unseen {
            unseen.push(half);
        }
    }

    /// What a query sees from `start` on, as long as `of` takes it, up to `limit` and whether there is more.
    pub(super) fn query<T>(
        &mut self,
        start: Bound<ItemKey>,
        limit: usize,
        of: impl Fn(&Item) -> Option<T>,
    ) -> (Vec<(ItemKey, T)>, bool) {
        let mut found = Vec::new();
        let mut met = BTreeSet::new();
        let mut is_more = false;
        for (key, item) in self.items.range((start, Bound::Unbounded)) {
            let Some(entry) = of(item) else { break };
            if found.len() == limit {
                is_more = true;
                break;
            }
            let half = self.unseen.iter().flatten().position(|half| half.contains_key(key));
            let entry = match half {
                None => Some(entry),
                Some(place) => {
                    met.insert(place);
                    self.unseen.as_ref().and_then(|unseen| unseen[place][key].as_ref()).and_then(&of)
                }
            };
            found.extend(entry.map(|entry| (key.clone(), entry)));
        }
        if let Some(unseen) = &mut self.unseen {
            // What it has met is whole for the next one.
            self.halves_seen += met.len();
            let mut place = 0..;
            unseen.retain(|half| !place.next().is_some_and(|place| met.contains(&place)) && !half.is_empty());
        }
        (found, is_more)
    }
}

/// A kind of read of an index.
#[derive(Clone, Copy, Debug)]
pub(super) enum IndexRead {
    DueJobs,
    OpenInstances,
    OpenBackfills,
}

/// The items that stand in an index.
pub(super) fn indexed(items: &BTreeMap<ItemKey, Item>) -> Vec<Item> {
    items.values().filter(|item| index_entry(item).is_some()).cloned().collect()
}
