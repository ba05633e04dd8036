//! The leased steps of an instance: their claim, their end, their failure.

use std::collections::BTreeSet;

use super::{Boundary, FailReason, Instance, InstanceError, InstanceStatus, Outcome, Step, StepClaim};
use crate::ids::GroupNo;
use crate::lease::{Claimer, Lease};
use crate::pause::backoff;
use crate::shard::{Counts, Fault, FaultKind, Stamp};
use crate::time::{Duration, Reading};

impl Instance {
    /// Decides a claim of the step that is due. `active_deadline` is the job's `activeDeadlineSeconds`.
    #[must_use]
    pub fn claim(&self, claimer: &Claimer, active_deadline: Option<Duration>) -> StepClaim {
        let now = claimer.now;
        let Some(step) = self.status.step() else { return StepClaim::Nothing };
        if self.status == InstanceStatus::Running && !self.is_full() {
            return StepClaim::Nothing;
        }
        let taken_over = match &self.lease {
            None => false,
            Some(lease) if lease.is_over(now) => true,
            Some(lease) => return StepClaim::Held { until: lease.until },
        };
        if let Some(at) = self.not_before
            && now.earliest() < at
        {
            return StepClaim::NotBefore(at);
        }
        if step != Step::Publish && self.is_past_deadline(now) {
            return StepClaim::Stopped(Box::new(self.stopping(
                Outcome::Failed(FailReason::DeadlineExceeded),
                now,
                &claimer.write_id,
            )));
        }
        let mut next = self.changed(&claimer.write_id);
        next.token = self.token.next();
        next.not_before = None;
        if taken_over {
            next.takeovers += 1;
            next.failures += 1;
            let text = "the process that worked on it stopped without a word";
            let fault = next.last_fault.get_or_insert_with(|| Fault::new(FaultKind::Crash, text)).clone();
            if next.failures > claimer.backoff_limit && step != Step::Publish {
                let outcome = Outcome::Failed(FailReason::Step(fault));
                return StepClaim::Stopped(Box::new(self.stopping(outcome, now, &claimer.write_id)));
            }
        }
        next.started_at.get_or_insert(now.at);
        // Fixed at the first claim of each attempt.
        if next.deadline.is_none() && step == Step::FanOut {
            next.deadline = active_deadline.map(|seconds| now.at.plus(seconds));
        }
        next.status = match step {
            Step::FanOut => InstanceStatus::Sharding,
            Step::Finalize => InstanceStatus::Finalizing,
            Step::Publish => InstanceStatus::Publishing,
        };
        let lease = claimer.lease();
        next.next_look = Some(lease.until);
        next.lease = Some(lease);
        StepClaim::Claimed(step, Box::new(next))
    }

    /// Whether `activeDeadlineSeconds` are over, as far as the reading can tell.
    #[must_use]
    pub fn is_past_deadline(&self, now: Reading) -> bool {
        self.deadline.is_some_and(|deadline| !now.is_surely_before(deadline))
    }

    fn owned(&self, now: Reading, event: &'static str) -> Result<&Lease, InstanceError> {
        match &self.lease {
            Some(lease) if lease.is_valid(now) => Ok(lease),
            Some(lease) => Err(InstanceError::LeaseOver { instance: self.id.clone(), until: lease.until }),
            None => Err(self.illegal(event)),
        }
    }

    /// The step's lease, renewed.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn heartbeat(&self, stamp: &Stamp) -> Result<Self, InstanceError> {
        let lease = self.owned(stamp.now, "have its lease renewed")?;
        let until = stamp.now.at.plus(lease.length);
        let mut next = self.changed(&stamp.write_id);
        next.lease = Some(Lease { until, ..lease.clone() });
        next.next_look = Some(until);
        Ok(next)
    }

    /// Fan-out is over: the shards are written. From Sharding to Running.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn sharded(&self, stamp: &Stamp, boundary: Boundary, resend_after: Duration) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Sharding {
            return Err(self.illegal("have been cut into shards"));
        }
        self.owned(stamp.now, "have been cut into shards")?;
        let mut next = self.step_over(stamp);
        next.status = InstanceStatus::Running;
        next.boundary = Some(boundary);
        // Its messages are about to be sent.
        next.resend_at = Some(stamp.now.at.plus(resend_after));
        next.next_look = next.resend_at;
        Ok(next)
    }

    /// The lease given up, the failures forgotten.
    pub(super) fn step_over(&self, stamp: &Stamp) -> Self {
        let mut next = self.changed(&stamp.write_id);
        next.lease = None;
        next.not_before = None;
        next.failures = 0;
        next.last_fault = None;
        next.resends = 0;
        next.resend_at = None;
        next
    }

    /// Not all shards are done after all: from Finalizing back to Running, without the groups that aren't.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn not_full(&self, stamp: &Stamp, groups_done: BTreeSet<GroupNo>) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Finalizing {
            return Err(self.illegal("go back to its shards"));
        }
        self.owned(stamp.now, "go back to its shards")?;
        let mut next = self.step_over(stamp);
        next.status = InstanceStatus::Running;
        next.groups_done = groups_done;
        next.next_look = Some(stamp.now.at);
        Ok(next)
    }

    /// The parts are written: from Finalizing to Publishing, the point of no return, under the same lease.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn publishing(&self, stamp: &Stamp, counts: Counts) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Finalizing {
            return Err(self.illegal("be published"));
        }
        let mut next = self.heartbeat(stamp)?;
        next.status = InstanceStatus::Publishing;
        next.counts = Some(counts);
        next.failures = 0;
        Ok(next)
    }

    /// The certificate is there: from Publishing to Succeeded.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn succeeded(&self, stamp: &Stamp) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Publishing {
            return Err(self.illegal("succeed"));
        }
        self.owned(stamp.now, "succeed")?;
        let mut next = self.step_over(stamp);
        next.status = InstanceStatus::Succeeded;
        next.ended_at = Some(stamp.now.at);
        next.next_look = None;
        Ok(next)
    }

    /// The step's owner records a failure: a pause, or, when it is one too many or another try can't mend it,
    /// Stopping. In Publishing always a pause: from there it only goes forward.
    ///
    /// # Errors
    /// [`InstanceError`].
    pub fn step_failed(
        &self,
        stamp: &Stamp,
        fault: Fault,
        backoff_limit: u32,
        random: u64,
    ) -> Result<Self, InstanceError> {
        self.owned(stamp.now, "have a failed step")?;
        let failures = self.failures + 1;
        let hopeless = fault.kind == FaultKind::Input || failures > backoff_limit;
        if hopeless && self.status != InstanceStatus::Publishing {
            let outcome = Outcome::Failed(FailReason::Step(fault));
            return Ok(self.stopping(outcome, stamp.now, &stamp.write_id));
        }
        let mut next = self.changed(&stamp.write_id);
        let at = stamp.now.at.plus(backoff(failures, random));
        next.lease = None;
        next.failures = failures;
        next.last_fault = Some(fault);
        next.not_before = Some(at);
        next.next_look = Some(at);
        Ok(next)
    }
}
