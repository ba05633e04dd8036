//! Waiting, stopping, ending and beginning again.

use std::collections::BTreeSet;

use super::{Instance, InstanceError, InstanceStatus, Origin, Outcome, WaitingFor};
use crate::ids::{Attempt, SpecVersion, WriteId};
use crate::limits::RESEND_DOUBLINGS_MAX;
use crate::shard::Stamp;
use crate::slot::SlotKey;
use crate::time::{Duration, Millis, Reading};

impl Instance {
    pub(super) fn stopping(&self, outcome: Outcome, now: Reading, write_id: &WriteId) -> Self {
        let mut next = self.changed(write_id);
        next.token = self.token.next();
        next.status = InstanceStatus::Stopping(outcome);
        next.lease = None;
        next.not_before = None;
        next.next_look = Some(now.at);
        next
    }

    /// It is to be stopped, and to end as `outcome` says. Its token goes up, so that no step of it can write.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`] from Publishing on: it is too late.
    pub fn stop(&self, outcome: Outcome, stamp: &Stamp) -> Result<Self, InstanceError> {
        match self.status {
            InstanceStatus::Waiting(_)
            | InstanceStatus::Planned
            | InstanceStatus::Sharding
            | InstanceStatus::Running
            | InstanceStatus::Finalizing => Ok(self.stopping(outcome, stamp.now, &stamp.write_id)),
            _ => Err(self.illegal("be stopped")),
        }
    }

    /// An instance of the schedule under another version of the spec; `None` once it has been started, or when it is
    /// under that one, or was asked for under its own.
    #[must_use]
    pub fn respecified(&self, stamp: &Stamp, spec: SpecVersion) -> Option<Self> {
        let unstarted = matches!(self.status, InstanceStatus::Planned | InstanceStatus::Waiting(_));
        if !unstarted || self.origin != Origin::Schedule || self.started_at.is_some() || self.spec == spec {
            return None;
        }
        let mut next = self.changed(&stamp.write_id);
        next.spec = spec;
        Some(next)
    }

    /// What it waited for has come: from Waiting to Planned.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`] when it doesn't wait for that.
    pub fn come(&self, what: WaitingFor, stamp: &Stamp) -> Result<Self, InstanceError> {
        if self.status != InstanceStatus::Waiting(what) {
            return Err(self.illegal("leave its wait"));
        }
        let mut next = self.changed(&stamp.write_id);
        next.status = InstanceStatus::Planned;
        next.next_look = Some(stamp.now.at);
        Ok(next)
    }

    /// It waits for its input, from Planned; with `again`, when to look for that.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`].
    pub fn wait_for_input(&self, stamp: &Stamp, again: Duration) -> Result<Self, InstanceError> {
        if !matches!(self.status, InstanceStatus::Planned | InstanceStatus::Waiting(WaitingFor::Ready)) {
            return Err(self.illegal("wait for its input"));
        }
        let mut next = self.changed(&stamp.write_id);
        next.status = InstanceStatus::Waiting(WaitingFor::Ready);
        next.next_look = Some(stamp.now.at.plus(again));
        Ok(next)
    }

    /// Another attempt, on the results that it has: from Failed or Cancelled to Sharding, and fan-out does the rest.
    /// `slot` is the slot that it holds now, if its job has one; with `waits`, it waits for that first.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`]; [`InstanceError::Unannounced`].
    pub fn retried(&self, stamp: &Stamp, slot: Option<SlotKey>, waits: bool) -> Result<Self, InstanceError> {
        if !matches!(self.status, InstanceStatus::Failed(_) | InstanceStatus::Cancelled { .. }) {
            return Err(self.illegal("be retried"));
        }
        self.told()?;
        let mut next = self.begun_again(stamp, slot);
        next.attempt = self.attempt.next();
        next.status = if waits { InstanceStatus::Waiting(WaitingFor::Slot) } else { InstanceStatus::Sharding };
        Ok(next)
    }

    /// Another generation, from scratch and under this version of the spec: from any end to Planned.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`]; [`InstanceError::Unannounced`].
    pub fn rerun(
        &self,
        stamp: &Stamp,
        spec: SpecVersion,
        slot: Option<SlotKey>,
        waits: bool,
    ) -> Result<Self, InstanceError> {
        if !self.status.is_terminal() {
            return Err(self.illegal("be rerun"));
        }
        self.told()?;
        let mut next = self.begun_again(stamp, slot);
        next.generation = self.generation.next();
        next.attempt = Attempt::FIRST;
        next.status = if waits { InstanceStatus::Waiting(WaitingFor::Slot) } else { InstanceStatus::Planned };
        next.spec = spec;
        next.boundary = None;
        next.groups_done = BTreeSet::new();
        next.started_at = None;
        Ok(next)
    }

    /// A new run takes away what remembers the announcement of the last one's end, so that must be over.
    fn told(&self) -> Result<(), InstanceError> {
        if self.is_unannounced() { Err(InstanceError::Unannounced { instance: self.id.clone() }) } else { Ok(()) }
    }

    fn begun_again(&self, stamp: &Stamp, slot: Option<SlotKey>) -> Self {
        let mut next = self.step_over(stamp);
        next.token = self.token.next();
        next.begun_at = Some(stamp.now.at);
        next.ended_at = None;
        next.deadline = None;
        next.counts = None;
        next.seen_done = 0;
        next.next_look = Some(stamp.now.at);
        next.slot = slot;
        next
    }

    /// No shard is open any more: from Stopping to its end.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`].
    pub fn ended(&self, stamp: &Stamp) -> Result<Self, InstanceError> {
        let InstanceStatus::Stopping(outcome) = &self.status else { return Err(self.illegal("end")) };
        let mut next = self.changed(&stamp.write_id);
        next.status = match outcome.clone() {
            Outcome::Failed(reason) => InstanceStatus::Failed(reason),
            Outcome::Cancelled { by } => InstanceStatus::Cancelled { by },
            Outcome::Replaced { by } => InstanceStatus::Replaced { by },
        };
        next.ended_at = Some(stamp.now.at);
        next.next_look = None;
        Ok(next)
    }

    /// Its end, to be announced: the sweep looks at it again at `look`, unless that was done by then.
    ///
    /// An ended instance that stands in the open index is one whose end hasn't been announced. So the write of the
    /// outcome is what remembers the announcement, and nothing beside it can be lost.
    #[must_use]
    pub fn to_be_announced(mut self, look: Millis) -> Self {
        self.next_look = Some(look);
        self
    }

    /// Whether it has ended and nobody has announced that.
    #[must_use]
    pub fn is_unannounced(&self) -> bool {
        self.status.is_terminal() && self.next_look.is_some()
    }

    /// Whether both are the end of the same generation and attempt.
    #[must_use]
    pub fn is_same_end(&self, other: &Self) -> bool {
        self.generation == other.generation && self.attempt == other.attempt
    }

    /// Its end has been announced.
    ///
    /// # Errors
    /// [`InstanceError::Illegal`] when it hasn't ended.
    pub fn announced(&self, write_id: &WriteId) -> Result<Self, InstanceError> {
        if !self.status.is_terminal() {
            return Err(self.illegal("be announced"));
        }
        let mut next = self.changed(write_id);
        next.next_look = None;
        next.resends = 0;
        next.resend_at = None;
        Ok(next)
    }

    /// Whether messages about shards that nobody works on may be sent again.
    #[must_use]
    pub fn may_resend(&self, now: Reading) -> bool {
        self.resend_at.is_none_or(|at| now.at >= at)
    }

    /// The sweep has looked and found nothing to end: when to look again. `done` is how many shards are done now,
    /// `resent` whether messages about waiting shards were sent, `held_until` when the first lease on a shard ends.
    ///
    /// The pause before such messages are sent again doubles each time that nothing has moved since, so that a long
    /// queue isn't flooded; the end of a lease and of the deadline are looked at when they come.
    #[must_use]
    pub fn looked(
        &self,
        stamp: &Stamp,
        resend_after: Duration,
        done: u32,
        resent: bool,
        held_until: Option<Millis>,
    ) -> Self {
        let now = stamp.now.at;
        let mut next = self.changed(&stamp.write_id);
        if resent {
            next.resends = if done > self.seen_done { 0 } else { (self.resends + 1).min(RESEND_DOUBLINGS_MAX) };
            next.seen_done = done;
            next.resend_at = Some(now.plus(resend_after.times(1 << next.resends)));
        }
        let again = next.resend_at.filter(|at| *at > now).unwrap_or(now.plus(resend_after));
        // A lease counts as over only beyond the clock's uncertainty.
        let held = held_until.map(|until| until.plus(stamp.now.uncertainty).plus(Duration::from_millis(1)));
        let ends = [held, self.deadline].into_iter().flatten().filter(|end| *end > now);
        next.next_look = Some(ends.fold(again, Millis::min));
        next
    }
}
