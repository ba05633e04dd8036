//! The guarantees, after each step; how far a run has come; and states that must be met, or the model says nothing.

use std::cmp::Reverse;
use std::sync::Arc;

use shardcron_domain::boundary::Range;
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::invariants::{
    g3_cover, g4_one_owner, g6_checkpoint, g8_limits, g8_stopped_never_succeeds, g9_commits_nothing,
    g10_finished_is_final, g10_shard_is_final, g11_accounts_for, g11_goes_forward, g11_published_is_whole,
};
use shardcron_domain::shard::{Shard, ShardStatus};
use stateright::Property;

use super::steps::Call;
use super::{InstanceModel, Phase, Run, State, place_of, whole};
use crate::guarantee::Broken;
use crate::guarantee::Guarantee::{Ends, G3, G4, G6, G8, G9, G10, G11};

impl InstanceModel {
    pub(super) fn watch(&self, before: &State, after: &mut State) {
        let mut broken = after.broken;
        let instance = &after.instance;
        broken.unless(g8_stopped_never_succeeds(&before.instance, instance), G8);
        broken.unless(g10_finished_is_final(&before.instance, instance), G10);
        if instance.boundary.is_some() {
            let ranges: Vec<Range> = after.run().all().map(|shard| shard.range).collect();
            broken.unless(g3_cover(whole(), &ranges), G3);
        }
        for (former, now) in before.runs.iter().zip(&after.runs) {
            for (former, now) in former.shards.iter().zip(&now.shards) {
                let (Some(former), Some(now)) = (former, now) else { continue };
                if former != now {
                    self.watch_shard(&before.instance, former, now, &mut broken);
                }
            }
        }
        self.watch_certificate(before, after, &mut broken);
        broken.unless(self.rank(before) < self.rank(after), Ends);
        after.broken = broken;
    }

    fn watch_shard(&self, instance: &Instance, former: &Shard, now: &Shard, broken: &mut Broken) {
        broken.unless(g4_one_owner(former, now), G4);
        broken.unless(g6_checkpoint(&former.checkpoint, &now.checkpoint, now.range), G6);
        broken.unless(g8_limits(now, self.backoff_limit), G8);
        broken.unless(g9_commits_nothing(instance, former, now), G9);
        broken.unless(g10_shard_is_final(former, now), G10);
    }

    fn watch_certificate(&self, before: &State, after: &State, broken: &mut Broken) {
        let instance = &after.instance;
        let Some(certificate) = &after.certificate else {
            return broken.unless(instance.status != InstanceStatus::Succeeded, G11);
        };
        let shards: Vec<Shard> =
            after.runs[place_of(certificate.generation)].all().map(|shard| (**shard).clone()).collect();
        broken.unless(g11_published_is_whole(certificate, instance, whole()), G11);
        broken.unless(g11_accounts_for(certificate, &shards), G11);
        if let Some(former) = &before.certificate {
            broken.unless(g11_goes_forward(former, certificate), G11);
        }
    }

    /// How far a run has come. Each step goes further, so that no state is met twice in a run, and each run ends: what may
    /// happen without cause is spent, items are written, time passes; else it is a step towards one of these.
    fn rank(&self, state: &State) -> (u8, u64, i8, Reverse<u64>) {
        let spent = self.budget.all - state.budget.all;
        let workers: u64 = (0..state.workers.len()).map(|who| self.to_do(state, who)).sum();
        let to_do = workers + 1_000 * state.commands.len() as u64;
        (spent, writes(state), state.now, Reverse(to_do))
    }

    fn to_do(&self, state: &State, who: usize) -> u64 {
        /// What a worker holds is another's by now, or its time is over: it can only give up.
        const LOST: u64 = 1_000;
        let now = self.clock(state, who);
        let lost = |is: bool| if is { LOST } else { 0 };
        let is_stale = |held: &Arc<Instance>| {
            held.version != state.instance.version || held.lease.as_ref().is_some_and(|lease| !lease.is_valid(now))
        };
        let is_lost = |held: &Arc<Shard>| {
            let is_valid = matches!(&held.status, ShardStatus::Leased(lease) if lease.is_valid(now));
            is_changed(state, held) || !is_valid
        };
        match &state.workers[who].phase {
            Phase::ToGroup(_) => 300,
            Phase::ToInstance(_) => 250,
            Phase::Idle => 200,
            Phase::Claiming(read) => 190 + lost(read.version != state.instance.version),
            Phase::Look(held) => 160 + lost(is_lost(held)),
            Phase::Work(held) => 159 + lost(is_lost(held)),
            Phase::Unsure(written, then) => {
                1 + of_call(state, then) + lost(written.write_id != state.instance.write_id || is_stale(written))
            }
            Phase::At(held, call) => of_call(state, call) + lost(is_stale(held)),
        }
    }
}

/// How many things have been written.
fn writes(state: &State) -> u64 {
    let of_run = |run: &Run| {
        let shards: u64 = run.all().map(|shard| shard.version.0).sum();
        shards + run.group.as_ref().map_or(0, |group| group.version.0) + u64::from(run.manifest.is_some())
    };
    let certificate = state.certificate.as_ref().map_or(0, |certificate| u64::from(certificate.generation.0));
    state.instance.version.0 + state.runs.iter().map(of_run).sum::<u64>() + certificate
}

fn of_call(state: &State, call: &Call) -> u64 {
    let stale = |todo: &[Arc<Shard>]| todo.iter().filter(|read| is_changed(state, read)).count() as u64;
    match call {
        Call::Nothing => 300,
        Call::ReadForFence => 150,
        Call::ReadManifest => 100,
        Call::List => 99,
        Call::PutManifest(_) => 98,
        Call::PutGroup(_) => 97,
        Call::PutShard(_, number) => 96 - *number as u64,
        Call::ReadForReopen(_) => 90,
        Call::Reopen(_, todo) => 50 + todo.len() as u64 + 10 * stale(todo),
        Call::Sharded(_) => 49,
        Call::Account(_) => 48,
        Call::Publishing(_) => 47,
        Call::PutCertificate(_, found) if *found != state.certificate => 147,
        Call::ReadPlace(_) => 46,
        Call::PutCertificate(..) => 45,
        Call::Succeeded => 44,
        Call::Fence(todo) => todo.len() as u64 + 200 * stale(todo),
        Call::NotFull | Call::End => 1,
    }
}

fn is_changed(state: &State, read: &Shard) -> bool {
    let found = &state.runs[place_of(read.key.run.generation)].shards[read.key.shard.number() as usize];
    found.as_ref().is_none_or(|found| found.version != read.version)
}

/// States that a model of this size must meet.
pub(super) fn of_interest() -> Vec<Property<InstanceModel>> {
    vec![
        Property::sometimes("it succeeds", |_, state: &State| state.instance.status == InstanceStatus::Succeeded),
        Property::sometimes("it ends otherwise", |_, state: &State| {
            state.instance.status.is_terminal() && state.instance.status != InstanceStatus::Succeeded
        }),
        Property::sometimes("a step is taken over", |_, state: &State| state.instance.takeovers > 0),
    ]
}
