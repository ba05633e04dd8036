//! When an edited overlap policy comes into force, in place of one without a slot.
//!
//! A slot shows who is open under it, consistently. Under Allow there is none, and only the open index shows who is
//! open: some time later, and as far as it was read. So the job itself remembers when an instance without a slot was
//! last made. Whoever makes one writes the job in the same transaction, on condition of the version that it was decided
//! from: none can be made on the word of a policy that isn't in force any more.

use crate::limits::INDEX_SETTLES;
use crate::plan::{Job, Overlap};
use crate::time::{Millis, Reading};

/// What the open index, confirmed by consistent reads, shows of a job's instances without a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// None is open.
    NoneOpen,
    /// One is.
    Open,
    /// None was found, and the index was read only as far as its bound.
    CutOff,
}

/// Whether the open index shows by now whatever instance without a slot was made: surely [`INDEX_SETTLES`] after the
/// last one.
#[must_use]
pub fn has_settled(unslotted_at: Option<Millis>, now: Reading) -> bool {
    unslotted_at.is_none_or(|made| now.earliest().since(made) >= INDEX_SETTLES)
}

/// Whether a policy with a slot comes into force in place of one without; until then the former one counts.
#[must_use]
pub fn comes_into_force(unslotted_at: Option<Millis>, now: Reading, seen: Seen) -> bool {
    has_settled(unslotted_at, now) && seen == Seen::NoneOpen
}

/// What a job says of instances without a slot after a write under `overlap` that makes instances, or none: the latest
/// reading, since the write comes after it.
#[must_use]
pub fn unslotted_at(before: Option<Millis>, overlap: &Overlap, makes: bool, now: Reading) -> Option<Millis> {
    match (&overlap.slot, makes) {
        (Some(_), _) => None,
        (None, true) => before.max(Some(now.latest())),
        (None, false) => before,
    }
}

/// The same after an edit to a policy that is `wanted`. An edit away from one without a slot counts as such an instance:
/// it is decided after whatever was made before it, and by a clock that is read after that.
#[must_use]
pub fn unslotted_at_edit(before: &Job, wanted: &Overlap, now: Reading) -> Option<Millis> {
    unslotted_at(before.unslotted_at, &before.overlap, wanted.slot.is_some(), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::ConcurrencyPolicy;
    use crate::slot::SlotKey;
    use crate::time::Duration;

    fn forbid() -> Overlap {
        Overlap { policy: ConcurrencyPolicy::Forbid, slot: Some(SlotKey::Job("daily".parse().unwrap())) }
    }

    fn reading(at: i64, uncertainty: i64) -> Reading {
        Reading { at: Millis(at), uncertainty: Duration(uncertainty) }
    }

    #[test]
    fn a_slot_begins_when_the_index_has_surely_settled_and_shows_none() {
        let made = Some(Millis(1_000));
        let settled = 1_000 + INDEX_SETTLES.0;
        assert!(comes_into_force(made, reading(settled, 0), Seen::NoneOpen));
        assert!(!comes_into_force(made, reading(settled - 1, 0), Seen::NoneOpen));
        assert!(!comes_into_force(made, reading(settled, 1), Seen::NoneOpen), "the true time may be before it");
        assert!(comes_into_force(None, reading(0, 0), Seen::NoneOpen), "none was ever made");
        for seen in [Seen::Open, Seen::CutOff] {
            assert!(!comes_into_force(made, reading(settled, 0), seen), "{seen:?}");
            assert!(!comes_into_force(None, reading(settled, 0), seen), "{seen:?}");
        }
    }

    #[test]
    fn what_is_made_without_a_slot_is_remembered_by_the_latest_reading() {
        let allow = Overlap::default();
        assert_eq!(unslotted_at(None, &allow, true, reading(5, 2)), Some(Millis(7)));
        assert_eq!(unslotted_at(Some(Millis(9)), &allow, true, reading(5, 2)), Some(Millis(9)), "it never goes back");
        assert_eq!(unslotted_at(Some(Millis(9)), &allow, false, reading(50, 2)), Some(Millis(9)));
        assert_eq!(unslotted_at(Some(Millis(9)), &forbid(), true, reading(50, 2)), None);
    }
}
