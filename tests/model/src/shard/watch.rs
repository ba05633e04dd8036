//! The guarantees, after each step; and states that must be met, or the model says nothing.

use std::cmp::Reverse;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::invariants::{
    g3_cover, g4_one_owner, g5_each_once, g5_exact_effect, g6_checkpoint, g6_never_ahead, g8_limits,
    g8_stopped_never_succeeds, g9_commits_nothing, g9_stopped_is_fenced, g10_finished_is_final, g10_shard_is_final,
};
use shardcron_domain::shard::{Shard, ShardStatus};
use stateright::Property;

use super::{Executor, Phase, ShardModel, Stage, State, Stopper};
use crate::guarantee::Guarantee::{Ends, G3, G4, G5, G6, G8, G9, G10};

impl ShardModel {
    pub(super) fn watch(&self, before: &State, after: &mut State) {
        let mut broken = after.broken;
        let ranges: Vec<Range> = after.shards.iter().map(|shard| shard.range).collect();
        broken.unless(g3_cover(self.whole(), &ranges), G3);
        for (place, shard) in after.shards.iter().enumerate() {
            let shard: &Shard = shard;
            let rows = &after.rows[place];
            let results: u32 = rows.results.iter().map(|times| u32::from(*times)).sum();
            let rejects: u32 = rows.rejects.iter().map(|times| u32::from(*times)).sum();
            let all = (0..self.records).map(Position::Key).enumerate();
            let records = all.clone().filter(|(_, at)| is_in(shard.range, *at)).map(|(key, at)| (at, rows.times(key)));
            let strays = all.filter(|(_, at)| !is_in(shard.range, *at)).any(|(key, _)| rows.times(key) > 0);
            broken.unless(g5_exact_effect(shard, results.into(), rejects.into()), G5);
            broken.unless(g5_each_once(&shard.checkpoint, records.clone()) && !strays, G5);
            broken.unless(g6_never_ahead(&shard.checkpoint, records), G6);
            broken.unless(g8_limits(shard, self.backoff_limit), G8);
            let Some(former) = before.shards.get(place).map(|shard| &**shard) else { continue };
            if former != shard {
                broken.unless(g4_one_owner(former, shard), G4);
                broken.unless(g6_checkpoint(&former.checkpoint, &shard.checkpoint, shard.range), G6);
                broken.unless(g9_commits_nothing(&before.instance, former, shard), G9);
                broken.unless(g10_shard_is_final(former, shard), G10);
            }
        }
        let shards: Vec<Shard> = after.shards.iter().map(|shard| (**shard).clone()).collect();
        broken.unless(g9_stopped_is_fenced(&after.instance, &shards), G9);
        broken.unless(g8_stopped_never_succeeds(&before.instance, &after.instance), G8);
        broken.unless(g10_finished_is_final(&before.instance, &after.instance), G10);
        broken.unless(rank(self, before) < rank(self, after), Ends);
        after.broken = broken;
    }
}

/// How far a run has come. Each step goes further, so that no state is met twice in a run, and each run ends: what may
/// happen without cause is spent, items are written, time passes; else it is a step towards one of these.
fn rank(model: &ShardModel, state: &State) -> (u8, u64, i8, Reverse<usize>) {
    let spent = model.budget.all - state.budget.all;
    let shards: u64 = state.shards.iter().map(|shard| shard.version.0).sum();
    let writes = shards + state.instance.version.0 + state.group.done.len() as u64 + u64::from(state.finished);
    let stale = |shard: &Shard, at: usize| usize::from(shard.version != state.shards[at].version);
    let to_do = |executor: &Executor| match &executor.phase {
        Phase::Idle => 0,
        Phase::Reporting => 1,
        Phase::Half(..) | Phase::Resending(_) => 2,
        Phase::Unsure(_) => 3,
        Phase::Holding(_, Stage::Work(_)) => 4,
        Phase::Holding(_, Stage::Open) => 5,
        Phase::Holding(_, Stage::Look) => 6,
        Phase::Claiming(read) => 7 + stale(read, executor.shard),
    };
    let executors: usize = state.executors.iter().map(to_do).sum();
    let mails = state.mail.iter().filter(|mail| mail.visible <= state.now).count();
    let stopper = match &state.stopper {
        Stopper::Idle => 0,
        Stopper::Ending => 1,
        Stopper::Listing => 50,
        Stopper::Fencing(todo) => todo.iter().map(|read| 1 + 100 * stale(read, place_of(state, read))).sum(),
    };
    (spent, writes, state.now, Reverse(executors + 10 * mails + stopper + state.late.len()))
}

fn place_of(state: &State, read: &Shard) -> usize {
    state.shards.iter().position(|shard| shard.key == read.key).unwrap_or_default()
}

fn is_in(range: Range, at: Position) -> bool {
    range.from() <= at && at < range.to()
}

/// States that a model of this size must meet.
pub(super) fn of_interest() -> Vec<Property<ShardModel>> {
    vec![
        Property::sometimes("a shard is taken over", |_, state: &State| {
            state.shards.iter().any(|shard| shard.takeovers > 0)
        }),
        Property::sometimes("an owner is at work that isn't the owner any more", |_, state: &State| {
            state.executors.iter().any(|executor| {
                let held = match &executor.phase {
                    Phase::Holding(held, _) => held,
                    _ => return false,
                };
                held.token < state.shards[executor.shard].token
            })
        }),
        Property::sometimes("a range beyond a gap is done", |_, state: &State| {
            state.shards.iter().any(|shard| !shard.checkpoint.ranges.is_empty())
        }),
        Property::sometimes("all is done", |_, state: &State| state.finished),
        Property::sometimes("all is done by two owners", |_, state: &State| {
            state.finished && state.shards.iter().any(|shard| shard.takeovers > 0)
        }),
        Property::sometimes("all is done in two shards", |_, state: &State| state.finished && state.shards.len() == 2),
        Property::sometimes("a shard fails", |_, state: &State| {
            state.shards.iter().any(|shard| matches!(shard.status, ShardStatus::Failed(_)))
        }),
        Property::sometimes("the instance ends otherwise", |_, state: &State| state.instance.status.is_terminal()),
    ]
}
