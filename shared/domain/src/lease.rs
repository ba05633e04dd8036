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

/// The pause before the next attempt: exponential with full jitter (AWS Architecture Blog, "Exponential Backoff And
/// Jitter", 2015), from [`crate::limits::BACKOFF_BASE`], at most [`crate::limits::BACKOFF_MAX`].
///
/// `failures` counts from 1; `random` is uniform over all of `u64`.
#[must_use]
pub fn backoff(failures: u32, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(30);
    let ceiling = crate::limits::BACKOFF_BASE.0.saturating_mul(1 << doublings).min(crate::limits::BACKOFF_MAX.0);
    Duration((random % (ceiling.unsigned_abs() + 1)) as i64)
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

    #[test]
    fn backoff_doubles_up_to_its_bound() {
        use crate::limits::{BACKOFF_BASE, BACKOFF_MAX};
        assert!(backoff(1, u64::MAX) <= BACKOFF_BASE);
        assert_eq!(backoff(3, BACKOFF_BASE.0.unsigned_abs() * 4), BACKOFF_BASE.times(4));
        for failures in [20, 31, 64, u32::MAX] {
            assert!(backoff(failures, u64::MAX - 1) <= BACKOFF_MAX);
        }
    }
}
