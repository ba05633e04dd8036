//! The guarantees, after each step; and how far a run has come.

use std::cmp::Reverse;

use shardcron_domain::instance::Instance;
use shardcron_domain::invariants::{
    g1_one_identity, g2_answered_once, g7_holder_works, g8_stopped_never_succeeds, g10_finished_is_final,
};

use super::{Planner, SlotModel, State, Worker};
use crate::guarantee::Guarantee::{Ends, G1, G2, G7, G8, G10};

impl SlotModel {
    pub(super) fn watch(&self, before: &State, after: &mut State) {
        let mut broken = after.broken;
        let instances: Vec<Instance> = after.instances.values().map(|instance| (**instance).clone()).collect();
        broken.unless(g1_one_identity(&after.made), G1);
        broken.unless(g2_answered_once(&instances, &after.skips), G2);
        let came = instances.iter().filter(|instance| instance.slot.is_some());
        broken.unless(after.slot.as_ref().is_none_or(|slot| g7_holder_works(slot, came)), G7);
        for (at, former) in &before.instances {
            let now = &after.instances[at];
            broken.unless(g8_stopped_never_succeeds(former, now), G8);
            broken.unless(g10_finished_is_final(former, now), G10);
        }
        broken.unless(self.rank(before) < self.rank(after), Ends);
        after.broken = broken;
    }

    /// How far a run has come. Each step goes further, so that no state is met twice in a run, and each run ends.
    fn rank(&self, state: &State) -> (u8, u64, i64, Reverse<usize>) {
        /// What a process is about to write would be refused: it can only read again, or give up.
        const LOST: usize = 100;
        let spent = self.budget.all - state.budget.all;
        let instances: u64 = state.instances.values().map(|instance| instance.version.0).sum();
        let writes = instances + state.job.version.0 + state.slot.as_ref().map_or(0, |slot| slot.version.0);
        let lost = |is: bool| if is { LOST } else { 0 };
        let planners = state.planners.iter().map(|planner| match planner {
            Planner::Idle => 50,
            Planner::Planning(_, _, known, _, puts) => 40 - known.len() + lost(!self.holds(state, puts)),
            Planner::Triggering(puts) => 40 + lost(!self.holds(state, puts)),
        });
        let is_stale = |held: &Instance| {
            let is_over = held.lease.as_ref().is_some_and(|lease| !lease.is_valid(state.clock()));
            is_over || state.instances[&held.id.at].version != held.version
        };
        let workers = state.workers.iter().map(|worker| match worker {
            Worker::Idle => 50,
            Worker::Working(held) => 40 + lost(is_stale(held)),
            Worker::Ending(before, _) => 30 + 2 * lost(is_stale(before)),
            Worker::Passing(before, _, puts) => 20 + lost(!self.holds(state, puts)) + lost(is_stale(before)),
        });
        (spent, writes, state.now, Reverse(planners.sum::<usize>() + workers.sum::<usize>() + state.late.len()))
    }
}
