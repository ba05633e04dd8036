//! Leases: the right to work on a shard (or a step of an instance) for a while, held by one owner at a time.
//!
//! A lease saves work; it doesn't guard data. What guards data is the fencing token that each claim raises and the
//! store checks: an owner whose lease is over by its own clock but not yet by others', or the other way round, can
//! only waste an attempt.

use serde::{Deserialize, Serialize};

use crate::ids::{Owner, WriteId};
use crate::time::{Duration, Millis, Reading};

/// An owner and a deadline.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// Who holds it.
    pub owner: Owner,
    /// When it ends unless renewed.
    pub until: Millis,
    /// How long each renewal makes it; kept, so that a reader with another setting judges by the holder's.
    #[serde(rename = "len")]
    pub length: Duration,
}

impl Lease {
    /// When its holder renews it: a third of it has passed since it was written, so that two more renewals can fail before
    /// it ends.
    #[must_use]
    pub fn renewal_due(&self) -> Millis {
        self.until.plus(Duration(-(self.length.0 / 3) * 2))
    }

    /// Whether it is over, beyond the uncertainty of the reading.
    ///
    /// One that ends further ahead than any renewal could have set it (its length and the uncertainty of both clocks)
    /// was written by a clock that was wrong, and counts as over too: nobody could be waited for that long.
    #[must_use]
    pub fn is_over(&self, now: Reading) -> bool {
        let too_far = now.latest().plus(self.length).plus(now.uncertainty.times(2));
        now.is_surely_after(self.until) || self.until > too_far
    }

    /// When it was taken or last renewed.
    #[must_use]
    pub fn renewed_at(&self) -> Millis {
        self.until.plus(Duration(-self.length.0))
    }

    /// Whether its holder may still act on it: it surely hasn't ended.
    #[must_use]
    pub fn is_valid(&self, now: Reading) -> bool {
        now.is_surely_before(self.until)
    }
}

/// Who wants to claim, when, and on what terms.
#[derive(Clone, Debug)]
pub struct Claimer {
    /// A fresh owner id.
    pub owner: Owner,
    /// A fresh write id.
    pub write_id: WriteId,
    /// The storage clock.
    pub now: Reading,
    /// The length of the lease to take.
    pub lease: Duration,
    /// The job's `backoffLimit`: failures beyond it end the shard (Kubernetes Job `.spec.backoffLimit`).
    pub backoff_limit: u32,
}

impl Claimer {
    /// The lease that a claim takes now.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease { owner: self.owner.clone(), until: self.now.at.plus(self.lease), length: self.lease }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(until: i64) -> Lease {
        Lease { owner: Owner("a".into()), until: Millis(until), length: Duration(5_000) }
    }

    #[test]
    fn a_lease_is_over_only_beyond_the_uncertainty() {
        let now = |at| Reading { at: Millis(at), uncertainty: Duration(500) };
        assert!(!lease(10_000).is_over(now(10_500)));
        assert!(lease(10_000).is_over(now(10_501)));
        assert!(lease(10_000).is_valid(now(9_499)));
        assert!(!lease(10_000).is_valid(now(9_500)));
    }

    #[test]
    fn a_lease_from_a_wrong_clock_does_not_hold_for_ever() {
        let now = Reading { at: Millis(10_000), uncertainty: Duration(500) };
        assert!(!lease(15_000 + 1_500).is_over(now));
        assert!(lease(15_000 + 1_501).is_over(now));
    }
}
