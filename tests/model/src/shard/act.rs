//! What can happen in a state, and what comes of it.

use std::sync::Arc;

use shardcron_domain::group::DoneShard;
use shardcron_domain::ids::WriteId;
use shardcron_domain::instance::{FailReason, InstanceStatus, Outcome};
use shardcron_domain::shard::{FenceReason, ShardStatus, Stamp};

use super::{Answer, EXECUTORS, Mail, Phase, Rows, ShardModel, Stage, State, Stopper};
use crate::clock::reading;
use crate::fault::Fault;

/// A step. The first number says which executor makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is named by what it is")]
pub enum Action {
    Deliver(usize, Mail),
    DeliverAndRepeat(usize, Mail),
    Lose(Mail),
    Claim(usize, Answer),
    LookAtInstance(usize, Answer),
    ReadRows(usize, Rows),
    /// The rows never come to agree with the shard that it holds: another has gone on with it.
    GiveUpReading(usize),
    Commit(usize, i64, Answer),
    CommitNothing(usize, Answer),
    Split(usize, i64, Answer),
    SecondHalf(usize),
    Heartbeat(usize, Answer),
    Release(usize, Answer),
    Fail(usize, Answer),
    ReadAfterNoAnswer(usize),
    Resend(usize),
    Report(usize),
    Crash(usize),
    /// A write that got no answer applies, or is refused.
    Land(usize),
    Cancel,
    StopForFailedShard,
    ListShards,
    Fence,
    End,
    StopperCrash,
    Tick,
    Sweep,
    Finalize,
}

impl ShardModel {
    pub(super) fn enabled(&self, state: &State, actions: &mut Vec<Action>) {
        if state.finished {
            return;
        }
        let budget = state.budget;
        let mut mails = state.mail.clone();
        mails.dedup();
        // Two executors of whom neither has done anything are one and the same.
        let alike = state.skew[0] == state.skew[1] && state.executors[0] == state.executors[1];
        for who in 0..if alike { 1 } else { EXECUTORS } {
            self.enabled_for(state, who, &mails, actions);
        }
        for mail in mails {
            if budget.losses > 0 {
                actions.push(Action::Lose(mail));
            }
        }
        actions.extend((0..state.late.len()).map(Action::Land));
        let has_failed = state.shards.iter().any(|shard| matches!(shard.status, ShardStatus::Failed(_)));
        if state.is_running() && state.stopper == Stopper::Idle {
            if budget.cancels > 0 {
                actions.push(Action::Cancel);
            }
            if has_failed {
                actions.push(Action::StopForFailedShard);
            }
            if state.is_full() {
                actions.push(Action::Finalize);
            }
        }
        match &state.stopper {
            Stopper::Idle => {}
            Stopper::Listing => actions.push(Action::ListShards),
            Stopper::Fencing(_) => actions.push(Action::Fence),
            Stopper::Ending => actions.push(Action::End),
        }
        if state.stopper != Stopper::Idle && budget.crashes > 0 {
            actions.push(Action::StopperCrash);
        }
        let is_quiet = state.is_quiet();
        let is_held = state.executors.iter().any(|executor| executor.phase != Phase::Idle);
        if (is_quiet && !state.mail.is_empty()) || (is_held && budget.pauses > 0) {
            actions.push(Action::Tick);
        }
        // Where the sweep would do what another action does, it does nothing else.
        let has_work = match state.instance.status {
            InstanceStatus::Running => !has_failed && !state.is_full(),
            _ => !state.instance.status.is_terminal(),
        };
        if is_quiet && state.mail.is_empty() && has_work {
            actions.push(Action::Sweep);
        }
    }

    fn enabled_for(&self, state: &State, who: usize, mails: &[Mail], actions: &mut Vec<Action>) {
        let budget = state.budget;
        let mut answers = vec![Answer::Heard];
        answers.extend((budget.unheard > 0).then_some(Answer::Unheard));
        answers.extend((budget.late > 0).then_some(Answer::Late));
        let each = |action: fn(usize, Answer) -> Action| answers.iter().map(move |answer| action(who, *answer));
        let phase = &state.executors[who].phase;
        if *phase != Phase::Idle && budget.crashes > 0 {
            actions.push(Action::Crash(who));
        }
        match phase {
            Phase::Idle => {
                for mail in mails.iter().filter(|mail| mail.visible <= state.now) {
                    actions.push(Action::Deliver(who, *mail));
                    if budget.repeats > 0 {
                        actions.push(Action::DeliverAndRepeat(who, *mail));
                    }
                }
            }
            Phase::Claiming(_) => actions.extend(each(Action::Claim)),
            Phase::Holding(_, Stage::Look) if state.is_running() => {
                actions.push(Action::LookAtInstance(who, Answer::Heard));
            }
            Phase::Holding(_, Stage::Look) => actions.extend(each(Action::LookAtInstance)),
            Phase::Holding(held, Stage::Open) => {
                let readable = self.readable(state, who, held);
                if readable.is_empty() {
                    actions.push(Action::GiveUpReading(who));
                }
                actions.extend(readable.into_iter().map(|rows| Action::ReadRows(who, rows)));
            }
            Phase::Holding(held, Stage::Work(_)) => {
                let in_flight = self.in_flight(held);
                if in_flight.is_empty() {
                    actions.extend(each(Action::CommitNothing));
                }
                for key in in_flight {
                    actions.extend(answers.iter().map(|answer| Action::Commit(who, key, *answer)));
                }
                // These are paid for, and so is a lost answer.
                let answers = if budget.all > 1 { &answers[..] } else { &answers[..1] };
                let each = |action: fn(usize, Answer) -> Action| answers.iter().map(move |answer| action(who, *answer));
                if budget.splits > 0 {
                    for at in self.cuts(state, who, held) {
                        actions.extend(answers.iter().map(|answer| Action::Split(who, at, *answer)));
                    }
                }
                if budget.heartbeats > 0 {
                    actions.extend(each(Action::Heartbeat));
                }
                if budget.releases > 0 {
                    actions.extend(each(Action::Release));
                }
                if budget.failures > 0 {
                    actions.extend(each(Action::Fail));
                }
            }
            Phase::Unsure(_) => actions.push(Action::ReadAfterNoAnswer(who)),
            Phase::Resending(_) => actions.push(Action::Resend(who)),
            Phase::Reporting => actions.push(Action::Report(who)),
            Phase::Half(..) => actions.push(Action::SecondHalf(who)),
        }
    }

    pub(super) fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Deliver(who, mail) => {
                take(state, mail);
                self.deliver(state, who, mail);
            }
            Action::DeliverAndRepeat(who, mail) => {
                state.budget.spend(|budget| &mut budget.repeats);
                self.deliver(state, who, mail);
            }
            Action::Lose(mail) => {
                state.budget.spend(|budget| &mut budget.losses);
                take(state, mail);
            }
            Action::Claim(who, answer) => self.claim(state, who, answer),
            Action::LookAtInstance(who, answer) => self.look(state, who, answer),
            Action::ReadRows(who, rows) => self.open(state, who, rows),
            Action::GiveUpReading(who) => self.fail(state, who, Answer::Heard),
            Action::Commit(who, key, answer) => self.commit(state, who, key, answer),
            Action::CommitNothing(who, answer) => self.close(state, who, answer),
            Action::Split(who, at, answer) => {
                state.budget.spend(|budget| &mut budget.splits);
                self.split(state, who, at, answer);
            }
            Action::SecondHalf(who) => self.second_half(state, who),
            Action::Heartbeat(who, answer) => {
                state.budget.spend(|budget| &mut budget.heartbeats);
                self.heartbeat(state, who, answer);
            }
            Action::Release(who, answer) => {
                state.budget.spend(|budget| &mut budget.releases);
                self.release(state, who, answer);
            }
            Action::Fail(who, answer) => {
                state.budget.spend(|budget| &mut budget.failures);
                self.fail(state, who, answer);
            }
            Action::ReadAfterNoAnswer(who) => self.check(state, who),
            Action::Resend(who) => self.resend(state, who),
            Action::Report(who) => self.report(state, who),
            Action::Crash(who) => {
                state.budget.spend(|budget| &mut budget.crashes);
                state.executors[who].lives += 1;
                self.gives_up(state, who);
            }
            Action::Land(place) => {
                let request = state.late.remove(place);
                self.apply(state, &request);
            }
            Action::Cancel => {
                state.budget.spend(|budget| &mut budget.cancels);
                self.stop(state, Outcome::Cancelled { by: "somebody".into() });
            }
            Action::StopForFailedShard => {
                let failed = state.shards.iter().find_map(|shard| match &shard.status {
                    ShardStatus::Failed(fault) => Some((shard.key.shard.to_string(), fault.clone())),
                    _ => None,
                });
                if let Some((shard, fault)) = failed {
                    self.stop(state, Outcome::Failed(FailReason::Shard { shard, fault }));
                }
            }
            Action::ListShards => {
                let attempt = state.instance.attempt;
                let mut open = state.shards.clone();
                open.retain(|shard| shard.is_open_for(attempt));
                let is_over = open.is_empty() || self.fault == Some(Fault::EndBeforeFence);
                state.stopper = if is_over { Stopper::Ending } else { Stopper::Fencing(open) };
            }
            Action::Fence => self.fence(state),
            Action::End => {
                if let Ok(next) = state.instance.ended(&stopper_stamp(state, "end")) {
                    state.instance = Arc::new(next);
                }
                state.stopper = Stopper::Idle;
            }
            Action::StopperCrash => {
                state.budget.spend(|budget| &mut budget.crashes);
                state.stopper = Stopper::Idle;
            }
            Action::Tick => {
                if !state.is_quiet() {
                    state.budget.spend(|budget| &mut budget.pauses);
                }
                state.now += 1;
            }
            Action::Sweep => self.sweep(state),
            Action::Finalize => state.finished = true,
        }
    }

    fn stop(&self, state: &mut State, outcome: Outcome) {
        if let Ok(next) = state.instance.stop(outcome, &stopper_stamp(state, "stop")) {
            state.instance = Arc::new(next);
            state.stopper = Stopper::Listing;
        }
    }

    /// Fences one of the shards that were read, as long as it is open.
    fn fence(&self, state: &mut State) {
        let Stopper::Fencing(mut todo) = state.stopper.clone() else { return };
        let Some(read) = todo.pop() else { return };
        let attempt = state.instance.attempt;
        let write_id = WriteId(format!("fence@{}", read.version));
        if let Some(mut next) = read.fence(FenceReason::Stopping, attempt, &write_id) {
            if self.fault == Some(Fault::FenceKeepsToken) {
                next.token = read.token;
            }
            let place = state.shards.iter().position(|shard| shard.key == read.key).unwrap_or_default();
            if !self.put(state, place, next, read.version) {
                todo.push(Arc::clone(&state.shards[place]));
            }
        }
        let looks_once = self.fault == Some(Fault::LooksOnce);
        state.stopper = match todo.is_empty() {
            false => Stopper::Fencing(todo),
            true if looks_once => Stopper::Ending,
            true => Stopper::Listing,
        };
    }

    /// A sweep, a while after the last.
    fn sweep(&self, state: &mut State) {
        state.now += 1;
        if matches!(state.instance.status, InstanceStatus::Stopping(_)) {
            state.stopper = Stopper::Listing;
            return;
        }
        for (place, shard) in state.shards.iter().enumerate() {
            if shard.status == ShardStatus::Done {
                state.group.done.extend(DoneShard::of(shard));
            } else if shard.status.is_open() {
                state.mail.push(Mail { shard: place, visible: state.now });
            }
        }
    }
}

fn stopper_stamp(state: &State, what: &str) -> Stamp {
    Stamp { write_id: WriteId(what.to_owned()), now: reading(state.now, 0) }
}

fn take(state: &mut State, mail: Mail) {
    if let Some(place) = state.mail.iter().position(|one| *one == mail) {
        state.mail.remove(place);
    }
}
