//! A worker at a shard: claim, look at the instance, commit, report. One batch; the model of the shard has the rest.

use std::sync::Arc;

use shardcron_domain::group::DoneShard;
use shardcron_domain::ids::{ShardId, WriteId};
use shardcron_domain::instance::{FailReason, InstanceStatus, Outcome};
use shardcron_domain::lease::Claimer;
use shardcron_domain::shard::{Claim, Counts, Fault as WorkFault, FaultKind, FenceReason, Shard, ShardStatus, Stamp};

use super::{InstanceModel, Phase, State, place_of};
use crate::clock::reading;
use crate::fault::Fault;

impl InstanceModel {
    /// Whether a worker could claim a shard; and whether it is time for that, by the true clock and by where the instance
    /// stands: a claim before that runs gives the shard back at once.
    pub(super) fn is_claimable(&self, state: &State, who: usize, shard: &Shard) -> Option<bool> {
        let claim = |claimer: &Claimer| matches!(shard.claim(claimer), Claim::Claimed(_) | Claim::Exhausted(_));
        let claimer = self.claimer(state, who, shard.version);
        let by_true_clock = Claimer { now: reading(state.now, 0), ..claimer.clone() };
        let instance = &state.instance;
        let current = instance.run() == shard.key.run && instance.attempt == shard.attempt;
        let waits = matches!(instance.status, InstanceStatus::Sharding | InstanceStatus::Finalizing) && current;
        claim(&claimer).then(|| !waits && claim(&by_true_clock))
    }

    /// Claims a shard that was read a moment ago: a claim of an older reading would be refused.
    pub(super) fn take(&self, state: &mut State, who: usize, run: usize, number: usize) {
        let Some(shard) = state.runs[run].shards[number].clone() else { return };
        let (next, ours) = match shard.claim(&self.claimer(state, who, shard.version)) {
            Claim::Claimed(next) => (Arc::new(*next), true),
            Claim::Exhausted(next) => (Arc::new(*next), false),
            _ => return,
        };
        state.runs[run].shards[number] = Some(Arc::clone(&next));
        if ours {
            state.workers[who].phase = Phase::Look(next);
        }
    }

    /// The instance is read after the claim.
    pub(super) fn look(&self, state: &mut State, who: usize) {
        let Phase::Look(held) = state.workers[who].phase.clone() else { return };
        let instance = Arc::clone(&state.instance);
        let current = instance.run() == held.key.run && instance.attempt == held.attempt;
        let stamp = self.stamp(state, who, held.version);
        let next = match instance.status {
            InstanceStatus::Running if current => {
                state.workers[who].phase = Phase::Work(held);
                return;
            }
            InstanceStatus::Sharding | InstanceStatus::Finalizing if current => held.release(&stamp).ok(),
            _ => held.fence(FenceReason::Superseded, held.attempt, &stamp.write_id),
        };
        self.write_shard(state, who, &held, next, Phase::Idle);
    }

    /// The batch is committed, and with it the shard is done.
    pub(super) fn commit(&self, state: &mut State, who: usize) {
        let Phase::Work(held) = state.workers[who].phase.clone() else { return };
        let stamp = self.stamp(state, who, held.version);
        let counts = Counts { input: 1, output: 1, rejected: 0 };
        let next = held.commit(&stamp, held.range, counts, None, true).ok();
        let done = next.clone().map(Arc::new).map_or(Phase::Idle, Phase::ToGroup);
        self.write_shard(state, who, &held, next, done);
    }

    /// The batch fails.
    pub(super) fn fail_batch(&self, state: &mut State, who: usize) {
        let Phase::Work(held) = state.workers[who].phase.clone() else { return };
        let stamp = self.stamp(state, who, held.version);
        let fault = WorkFault::new(FaultKind::Retryable, "a batch failed");
        let next = held.fail(&stamp, fault, self.backoff_limit, 999).ok();
        self.write_shard(state, who, &held, next, Phase::Idle);
    }

    /// An owner's write, on condition of token, version and a valid lease.
    fn write_shard(&self, state: &mut State, who: usize, held: &Shard, next: Option<Shard>, then: Phase) {
        let at = self.clock(state, who).at;
        let place = place_of(held.key.run.generation);
        let slot = &mut state.runs[place].shards[held.key.shard.number() as usize];
        let holds = slot.as_ref().is_some_and(|found| {
            let is_leased = matches!(&found.status, ShardStatus::Leased(lease) if lease.until > at);
            (found.token, found.version) == (held.token, held.version) && is_leased
        });
        state.workers[who].phase = match next {
            Some(next) if holds => {
                *slot = Some(Arc::new(next));
                then
            }
            _ => Phase::Idle,
        };
    }

    /// The group's set gets the shard.
    pub(super) fn report(&self, state: &mut State, who: usize) {
        let Phase::ToGroup(shard) = state.workers[who].phase.clone() else { return };
        self.add_to_group(state, &shard);
        state.workers[who].phase = Phase::ToInstance(shard);
    }

    pub(super) fn add_to_group(&self, state: &mut State, shard: &Shard) {
        let place = place_of(shard.key.run.generation);
        let Some(group) = &mut state.runs[place].group else { return };
        let Some(mut done) = DoneShard::of(shard) else { return };
        if self.fault == Some(Fault::CounterForSet) && group.done.contains(&done) {
            // One more, whoever it was.
            done.shard = ShardId::numbered(90 + group.done.len() as u32);
        }
        let group = Arc::make_mut(group);
        if group.done.insert(done) {
            group.version = group.version.next();
        }
    }

    /// A full group goes to the instance's set.
    pub(super) fn report_group(&self, state: &mut State, who: usize) {
        let Phase::ToInstance(shard) = state.workers[who].phase.clone() else { return };
        self.add_full_group(state, place_of(shard.key.run.generation));
        state.workers[who].phase = Phase::Idle;
    }

    pub(super) fn add_full_group(&self, state: &mut State, run: usize) {
        let Some(group) = state.runs[run].group.clone() else { return };
        let is_new = group.run == state.instance.run() && !state.instance.groups_done.contains(&group.no);
        if group.is_full() && is_new {
            let instance = Arc::make_mut(&mut state.instance);
            instance.groups_done.insert(group.no);
            instance.version = instance.version.next();
        }
    }

    /// A failed shard stops its instance.
    pub(super) fn stop_for_failed_shard(&self, state: &mut State) {
        let failed = state.run().all().find_map(|shard| match &shard.status {
            ShardStatus::Failed(fault) => Some((shard.key.shard.to_string(), fault.clone())),
            _ => None,
        });
        let Some((shard, fault)) = failed else { return };
        let stamp = Stamp { write_id: WriteId("failed shard".into()), now: reading(state.now, 0) };
        if let Ok(next) = state.instance.stop(Outcome::Failed(FailReason::Shard { shard, fault }), &stamp) {
            state.instance = Arc::new(next);
        }
    }
}
