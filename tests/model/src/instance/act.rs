//! What can happen in a state, and what comes of it.

use std::sync::Arc;

use shardcron_domain::ids::{SpecVersion, WriteId};
use shardcron_domain::instance::{InstanceStatus, Outcome};
use shardcron_domain::shard::{ShardStatus, Stamp};

use super::steps::Call;
use super::{Command, Cut, InstanceModel, Phase, Run, State, WORKERS};
use crate::clock::reading;
use crate::fault::Fault;
use crate::guarantee::Checked;

/// A step. The first number says which worker makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is named by what it is")]
pub enum Action {
    TakeStep(usize),
    TakeStepEarly(usize),
    ClaimStep(usize),
    ClaimStepUnheard(usize),
    Call(usize),
    CallUnheard(usize),
    ReadAfterNoAnswer(usize),
    FailStep(usize),
    /// A shard is claimed: of which generation, and which.
    TakeShard(usize, usize, usize),
    TakeShardEarly(usize, usize, usize),
    LookAtInstance(usize),
    Commit(usize),
    FailBatch(usize),
    ReportToGroup(usize),
    ReportToInstance(usize),
    ReportAgain(usize, usize, usize),
    Crash(usize),
    Mend,
    StopForFailedShard,
    IssueCancel,
    IssueRetry,
    IssueRerun,
    Deliver(Command),
    InputChanges,
    Tick,
}

/// So many ticks are enough for any run; one that needs more goes nowhere.
const TICKS_MAX: i8 = 30;

impl InstanceModel {
    pub(super) fn enabled(&self, state: &State, actions: &mut Vec<Action>) {
        let budget = state.budget;
        let alike = state.skew[0] == state.skew[1] && state.workers[0] == state.workers[1];
        let workers = 0..if alike { 1 } else { WORKERS };
        for who in workers.clone() {
            self.goes_on(state, who, actions);
        }
        let is_idle = state.workers.iter().all(|worker| worker.phase == Phase::Idle);
        let is_running = state.instance.status == InstanceStatus::Running;
        if is_running && state.run().all().any(|shard| matches!(shard.status, ShardStatus::Failed(_))) {
            actions.push(Action::StopForFailedShard);
        }
        if is_idle && is_running && self.mended(state) != *state {
            actions.push(Action::Mend);
        }
        let mut commands = state.commands.clone();
        commands.dedup();
        actions.extend(commands.into_iter().map(Action::Deliver));
        let waits = actions.is_empty() && !Self::has_ended(state) && state.now < TICKS_MAX;
        if waits || (!is_idle && budget.pauses > 0) {
            actions.push(Action::Tick);
        }
        if budget.all == 0 {
            return;
        }
        for who in workers {
            self.without_cause(state, who, actions);
        }
        let is_terminal = state.instance.status.is_terminal();
        let may = [
            (budget.cancels > 0 && !is_terminal, Action::IssueCancel),
            (budget.retries > 0 && is_terminal, Action::IssueRetry),
            (budget.reruns > 0 && is_terminal, Action::IssueRerun),
            (budget.changes > 0, Action::InputChanges),
        ];
        actions.extend(may.into_iter().filter_map(|(may, action)| may.then_some(action)));
    }

    /// What a worker does by itself.
    fn goes_on(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        match &state.workers[who].phase {
            Phase::Idle => {
                match self.is_due(state, who) {
                    Some(true) => actions.push(Action::TakeStep(who)),
                    Some(false) if state.budget.early > 0 => actions.push(Action::TakeStepEarly(who)),
                    _ => {}
                }
                let shards = state.runs.iter().enumerate().flat_map(|(run, all)| {
                    all.shards
                        .iter()
                        .enumerate()
                        .filter_map(move |(number, shard)| Some((run, number, shard.as_ref()?)))
                });
                for (run, number, shard) in shards {
                    match self.is_claimable(state, who, shard) {
                        Some(true) => actions.push(Action::TakeShard(who, run, number)),
                        Some(false) if state.budget.early > 0 => {
                            actions.push(Action::TakeShardEarly(who, run, number));
                        }
                        _ => {}
                    }
                }
            }
            Phase::Claiming(_) => actions.push(Action::ClaimStep(who)),
            Phase::At(..) => actions.push(Action::Call(who)),
            Phase::Unsure(..) => actions.push(Action::ReadAfterNoAnswer(who)),
            Phase::Look(_) => actions.push(Action::LookAtInstance(who)),
            Phase::Work(_) => actions.push(Action::Commit(who)),
            Phase::ToGroup(_) => actions.push(Action::ReportToGroup(who)),
            Phase::ToInstance(_) => actions.push(Action::ReportToInstance(who)),
        }
    }

    /// What happens to a worker without cause.
    fn without_cause(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        let budget = state.budget;
        let phase = &state.workers[who].phase;
        if *phase != Phase::Idle && budget.crashes > 0 {
            actions.push(Action::Crash(who));
        }
        let writes = |call: &Call| {
            matches!(call, Call::Sharded(_) | Call::NotFull | Call::Publishing(_) | Call::Succeeded | Call::End)
        };
        match phase {
            Phase::Idle if budget.reports > 0 => {
                let place = state.place();
                for (number, shard) in state.run().shards.iter().enumerate() {
                    if shard.as_ref().is_some_and(|shard| shard.status == ShardStatus::Done) {
                        actions.push(Action::ReportAgain(who, place, number));
                    }
                }
            }
            Phase::Claiming(_) if budget.unheard > 0 => actions.push(Action::ClaimStepUnheard(who)),
            Phase::At(held, call) => {
                if budget.unheard > 0 && writes(call) {
                    actions.push(Action::CallUnheard(who));
                }
                if budget.failures > 0 && held.lease.is_some() {
                    actions.push(Action::FailStep(who));
                }
            }
            Phase::Work(_) if budget.failures > 0 => actions.push(Action::FailBatch(who)),
            _ => {}
        }
    }

    /// The state after the sweep has reported what is done.
    fn mended(&self, state: &State) -> State {
        let mut next = state.clone();
        let done = state.run().group.as_ref().map(|group| group.done.clone()).unwrap_or_default();
        for shard in state.run().all() {
            if !done.iter().any(|done| done.shard == shard.key.shard) {
                self.add_to_group(&mut next, shard);
            }
        }
        let place = next.place();
        self.add_full_group(&mut next, place);
        next
    }

    pub(super) fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::TakeStep(who) | Action::TakeStepEarly(who) => {
                if matches!(action, Action::TakeStepEarly(_)) {
                    state.budget.spend(|budget| &mut budget.early);
                }
                let read = Arc::clone(&state.instance);
                state.workers[who].phase = Phase::Claiming(read);
            }
            Action::ClaimStep(who) => self.claim(state, who, true),
            Action::ClaimStepUnheard(who) => self.claim(state, who, false),
            Action::Call(who) => self.call(state, who, true),
            Action::CallUnheard(who) => self.call(state, who, false),
            Action::ReadAfterNoAnswer(who) => self.check(state, who),
            Action::FailStep(who) => {
                state.budget.spend(|budget| &mut budget.failures);
                self.fail(state, who);
            }
            Action::TakeShard(who, run, number) => self.take(state, who, run, number),
            Action::TakeShardEarly(who, run, number) => {
                state.budget.spend(|budget| &mut budget.early);
                self.take(state, who, run, number);
            }
            Action::LookAtInstance(who) => self.look(state, who),
            Action::Commit(who) => self.commit(state, who),
            Action::FailBatch(who) => {
                state.budget.spend(|budget| &mut budget.failures);
                self.fail_batch(state, who);
            }
            Action::ReportToGroup(who) => self.report(state, who),
            Action::ReportToInstance(who) => self.report_group(state, who),
            Action::ReportAgain(who, run, number) => {
                state.budget.spend(|budget| &mut budget.reports);
                let shard = state.runs[run].shards[number].clone();
                state.workers[who].phase = shard.map_or(Phase::Idle, Phase::ToGroup);
            }
            Action::Crash(who) => {
                state.budget.spend(|budget| &mut budget.crashes);
                state.workers[who].lives += 1;
                state.workers[who].phase = Phase::Idle;
            }
            Action::Mend => *state = self.mended(state),
            Action::StopForFailedShard => self.stop_for_failed_shard(state),
            Action::IssueCancel => {
                state.budget.spend(|budget| &mut budget.cancels);
                self.issue(state, Command::Cancel);
            }
            Action::IssueRetry => {
                state.budget.spend(|budget| &mut budget.retries);
                self.issue(state, Command::Retry);
            }
            Action::IssueRerun => {
                state.budget.spend(|budget| &mut budget.reruns);
                self.issue(state, Command::Rerun);
            }
            Action::Deliver(command) => self.deliver(state, command),
            Action::InputChanges => {
                state.budget.spend(|budget| &mut budget.changes);
                state.listing = if state.listing == Cut::One { Cut::Two } else { Cut::One };
            }
            Action::Tick => {
                if state.workers.iter().any(|worker| worker.phase != Phase::Idle) {
                    state.budget.spend(|budget| &mut budget.pauses);
                }
                state.now += 1;
            }
        }
    }

    /// A command about the instance as it is now, to be delivered twice.
    fn issue(
        &self,
        state: &mut State,
        command: fn(shardcron_domain::ids::Generation, shardcron_domain::ids::Attempt) -> Command,
    ) {
        let command = command(state.instance.generation, state.instance.attempt);
        state.commands.extend([command, command]);
    }

    /// A command acts on the generation and attempt that it names, and on no other.
    fn deliver(&self, state: &mut State, command: Command) {
        if let Some(place) = state.commands.iter().position(|one| *one == command) {
            state.commands.remove(place);
        }
        let (Command::Cancel(generation, attempt)
        | Command::Retry(generation, attempt)
        | Command::Rerun(generation, attempt)) = command;
        let instance = Arc::clone(&state.instance);
        if (instance.generation, instance.attempt) != (generation, attempt) {
            return;
        }
        let stamp = Stamp { write_id: WriteId(format!("command@{}", instance.version)), now: reading(state.now, 0) };
        let next = match command {
            Command::Cancel(..) => instance.stop(Outcome::Cancelled { by: "somebody".into() }, &stamp),
            Command::Retry(..) => instance.retried(&stamp, None, false).map(|mut next| {
                if self.fault == Some(Fault::RetryKeepsAttempt) {
                    next.attempt = instance.attempt;
                }
                next
            }),
            Command::Rerun(..) => instance.rerun(&stamp, SpecVersion::FIRST, None, false),
        };
        if let Ok(next) = next {
            if next.generation > instance.generation {
                state.runs.push(Run::default());
            }
            state.instance = Arc::new(next);
        }
    }
}
