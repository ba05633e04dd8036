//! What transactions under way hold: whoever meets one of their items is turned away with a conflict.
//!
//! DynamoDB cancels a transaction, and refuses a single write, that meets an item of a transaction under way
//! (`TransactionConflictException`); its stand-ins let one wait for the other. A holder that says nothing more keeps
//! nothing: the service, not the client, ends a transaction.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shardcron_domain::time::Millis;

use crate::ItemKey;

/// The items that are held.
#[derive(Debug, Default)]
pub struct Holds {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<ItemKey, Hold>,
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    by: Holder,
    /// Exclusive.
    until: Millis,
}

/// A transaction that holds items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(u64);

impl Holds {
    /// Holds all of these items for a transaction, from `now` until before `until`. `None`, and nothing is held for it,
    /// when one of them is another's.
    pub fn take(&self, keys: &[ItemKey], now: Millis, until: Millis) -> Option<Holder> {
        let mut state = self.state();
        state.held.retain(|_, hold| hold.until > now);
        if keys.iter().any(|key| state.held.contains_key(key)) {
            return None;
        }
        state.taken += 1;
        let by = Holder(state.taken);
        state.held.extend(keys.iter().map(|key| (key.clone(), Hold { by, until })));
        Some(by)
    }

    /// Whether a transaction, another than `own`, holds one of these items.
    #[must_use]
    pub fn is_met(&self, keys: &[ItemKey], own: Option<Holder>, now: Millis) -> bool {
        let state = self.state();
        let is_anothers = |hold: &Hold| Some(hold.by) != own && hold.until > now;
        keys.iter().any(|key| state.held.get(key).is_some_and(is_anothers))
    }

    /// This transaction is over.
    pub fn release(&self, holder: Holder) {
        self.state().held.retain(|_, hold| hold.by != holder);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<ItemKey> {
        names.iter().map(|name| ItemKey::Job(name.parse().unwrap())).collect()
    }

    #[test]
    fn who_meets_an_item_of_a_transaction_under_way_is_turned_away_until_that_is_over() {
        let holds = Holds::default();
        let first = holds.take(&keys(&["a", "b"]), Millis(0), Millis(10)).unwrap();
        assert_eq!(holds.take(&keys(&["b", "c"]), Millis(5), Millis(15)), None);
        assert!(!holds.is_met(&keys(&["c"]), None, Millis(5)), "who was turned away holds nothing");
        assert!(holds.is_met(&keys(&["a"]), None, Millis(5)));
        assert!(!holds.is_met(&keys(&["a"]), Some(first), Millis(5)), "nobody meets itself");
        holds.release(first);
        assert!(holds.take(&keys(&["b", "c"]), Millis(5), Millis(15)).is_some());
    }

    #[test]
    fn a_hold_ends_by_itself() {
        let holds = Holds::default();
        assert!(holds.take(&keys(&["a"]), Millis(0), Millis(10)).is_some());
        assert!(holds.is_met(&keys(&["a"]), None, Millis(9)));
        assert!(!holds.is_met(&keys(&["a"]), None, Millis(10)));
        assert!(holds.take(&keys(&["a"]), Millis(10), Millis(20)).is_some());
    }
}
