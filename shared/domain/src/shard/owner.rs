//! What the owner of a shard may write: each write renews or gives up its lease, and raises the version.

use super::{Counts, Fault, FaultKind, Shard, ShardStatus, Snapshot};
use crate::boundary::{Position, Range};
use crate::checkpoint::CheckpointError;
use crate::ids::{ShardKey, Token, WriteId};
use crate::lease::Lease;
use crate::limits::SPLIT_CHILDREN_MAX;
use crate::pause::backoff;
use crate::time::{Duration, Millis, Reading};

/// Why an owner can't write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The shard isn't the owner's (any more).
    #[error("{shard} isn't ours: it is {status:?} under token {token}")]
    NotOwner {
        /// Which shard.
        shard: ShardKey,
        /// Where it stands.
        status: Box<ShardStatus>,
        /// Its token.
        token: Token,
    },
    /// The owner's lease may be over.
    #[error("our lease on {shard} ended at {until}")]
    LeaseOver {
        /// Which shard.
        shard: ShardKey,
        /// When it ended.
        until: Millis,
    },
    /// What was done doesn't fit the checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Counts that don't add up: each record is in the results or in the rejects.
    #[error("{0:?}: records in aren't records out and rejected")]
    Counts(Counts),
    /// The shard can't be done while part of it isn't.
    #[error("{0} isn't complete")]
    Incomplete(ShardKey),
    /// It can't be cut there: something beyond is done, or there is nothing on one side, or it was cut often enough.
    #[error("{shard} can't be cut at {at}")]
    Cut {
        /// Which shard.
        shard: ShardKey,
        /// Where.
        at: Position,
    },
    /// The shard can't be done while effects of it wait.
    #[error("effects of {0} wait in its outbox")]
    Undrained(ShardKey),
}

/// Who an owner is, as its writes name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// A fresh write id.
    pub write_id: WriteId,
    /// The storage clock.
    pub now: Reading,
}

impl Shard {
    /// The lease, if the reading says that its holder may still write.
    fn owned(&self, now: Reading) -> Result<&Lease, OwnerError> {
        match &self.status {
            ShardStatus::Leased(lease) if lease.is_valid(now) => Ok(lease),
            ShardStatus::Leased(lease) => Err(OwnerError::LeaseOver { shard: self.key.clone(), until: lease.until }),
            status => Err(OwnerError::NotOwner {
                shard: self.key.clone(),
                status: Box::new(status.clone()),
                token: self.token,
            }),
        }
    }

    /// The shard after a write of its owner, who has worked on it since the last one.
    fn worked(&self, stamp: &Stamp) -> Result<Self, OwnerError> {
        let lease = self.owned(stamp.now)?;
        let since_last = stamp.now.at.since(lease.renewed_at());
        let mut next = self.changed(&stamp.write_id);
        next.worked = Duration(self.worked.0.saturating_add(since_last.0.clamp(0, lease.length.0)));
        Ok(next)
    }

    fn renewed(&self, stamp: &Stamp) -> Result<Self, OwnerError> {
        let lease = self.owned(stamp.now)?;
        let lease = Lease { until: stamp.now.at.plus(lease.length), ..lease.clone() };
        let mut next = self.worked(stamp)?;
        next.status = ShardStatus::Leased(lease);
        Ok(next)
    }

    /// The owner's lease, renewed.
    ///
    /// # Errors
    /// [`OwnerError::NotOwner`], [`OwnerError::LeaseOver`].
    pub fn heartbeat(&self, stamp: &Stamp) -> Result<Self, OwnerError> {
        self.renewed(stamp)
    }

    /// A batch's progress: `done` is the range of its records, `counts` what became of them, `snapshot` where the
    /// shard's rows stand from now on, if they are no items. With `last`, the shard is done. Renews the lease, and ends
    /// the count of failures.
    ///
    /// # Errors
    /// [`OwnerError`]; also when `counts` don't add up, or `last` before the shard is complete.
    pub fn commit(
        &self,
        stamp: &Stamp,
        done: Range,
        counts: Counts,
        snapshot: Option<Snapshot>,
        last: bool,
    ) -> Result<Self, OwnerError> {
        if counts.input != counts.output + counts.rejected {
            return Err(OwnerError::Counts(counts));
        }
        let mut next = self.renewed(stamp)?;
        if !done.is_empty() {
            next.checkpoint = self.checkpoint.with(done, self.range)?;
            next.progressed = true;
            next.failures = 0;
            next.last_fault = None;
        }
        next.counts = self.counts.plus(counts);
        // Once the rows are in an object they stay in objects: items of before are no longer all of them.
        next.snapshot = snapshot.or_else(|| self.snapshot.clone());
        if last {
            if !next.checkpoint.is_complete(self.range) {
                return Err(OwnerError::Incomplete(self.key.clone()));
            }
            if !next.outbox.is_drained() {
                return Err(OwnerError::Undrained(self.key.clone()));
            }
            next.status = ShardStatus::Done;
        }
        Ok(next)
    }

    /// The owner gives it back unfinished, for somebody to go on at once.
    ///
    /// # Errors
    /// [`OwnerError::NotOwner`], [`OwnerError::LeaseOver`].
    pub fn release(&self, stamp: &Stamp) -> Result<Self, OwnerError> {
        let mut next = self.worked(stamp)?;
        next.status = ShardStatus::Pending;
        Ok(next)
    }

    /// The owner cuts it at `at`: what lies beyond becomes a child, which anybody can claim at once. Both are written in
    /// one transaction, the child on condition that there is none; so the leaves tile the boundary at each moment (G3).
    /// Renews the lease.
    ///
    /// # Errors
    /// [`OwnerError`]; [`OwnerError::Cut`] unless everything beyond `at` is still to be done, there is something on both
    /// sides, and the shard has fewer than [`SPLIT_CHILDREN_MAX`] children.
    pub fn split(&self, stamp: &Stamp, at: Position) -> Result<(Self, Self), OwnerError> {
        let refused = || OwnerError::Cut { shard: self.key.clone(), at };
        let done_to = self.checkpoint.done_to();
        let inside = done_to <= at && self.range.from() < at && at < self.range.to();
        if !inside || self.children >= SPLIT_CHILDREN_MAX {
            return Err(refused());
        }
        let mut parent = self.renewed(stamp)?;
        parent.children += 1;
        parent.range = Range::new(self.range.from(), at).map_err(|_| refused())?;
        let rest = Range::new(at, self.range.to()).map_err(|_| refused())?;
        let key = ShardKey { run: self.key.run.clone(), shard: self.key.shard.child(parent.children) };
        let child = Self::new(key, rest, self.attempt, self.deadline, stamp.write_id.clone());
        Ok((parent, child))
    }

    /// The owner records a failure and gives it back for after a pause; or it is one too many, or one that another
    /// try can't mend, and the shard has failed. `random` is uniform over all of `u64`.
    ///
    /// # Errors
    /// [`OwnerError::NotOwner`], [`OwnerError::LeaseOver`].
    pub fn fail(&self, stamp: &Stamp, fault: Fault, backoff_limit: u32, random: u64) -> Result<Self, OwnerError> {
        let mut next = self.worked(stamp)?;
        next.failures += 1;
        if fault.kind == FaultKind::Input || next.failures > backoff_limit {
            next.last_fault = None;
            next.status = ShardStatus::Failed(fault);
        } else {
            next.last_fault = Some(fault);
            next.status = ShardStatus::Pending;
            next.not_before = Some(stamp.now.at.plus(backoff(next.failures, random)));
        }
        Ok(next)
    }
}
