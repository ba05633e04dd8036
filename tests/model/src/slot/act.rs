//! What can happen in a state, and what comes of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::ids::{InstanceId, Owner, SpecVersion, Version, WriteId};
use shardcron_domain::instance::{Boundary, Instance, InstanceStatus, Origin, Outcome, StepClaim, WaitingFor};
use shardcron_domain::lease::Claimer;
use shardcron_domain::plan::{Admission, Job, PlanContext, PlanStep, admit, calendar_window, plan_step};
use shardcron_domain::shard::{Counts, Stamp};
use shardcron_domain::slot::Slot;
use shardcron_domain::time::{Duration, ScheduledTime};

use super::{SlotModel, State, Transaction, existing, minute};
use crate::clock::LEASE;
use crate::fault::Fault;

/// What stands for a slot that isn't written yet.
const NO_SLOT: Version = Version(0);

/// A planner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Planner {
    /// It waits for a tick.
    #[default]
    Idle,
    /// It has read, and is about to write; this is what it has read, the times that it knows to have an instance, and when.
    Planning(Arc<Job>, Option<Arc<Slot>>, BTreeSet<ScheduledTime>, i64, Transaction),
    /// Somebody asks for an instance: it has read, and is about to write.
    Triggering(Transaction),
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Worker {
    /// It takes up whatever is there.
    #[default]
    Idle,
    /// It is at work on the instance, as it last wrote it.
    Working(Arc<Instance>),
    /// It is about to read the slot, and to end the instance so.
    Ending(Arc<Instance>, Arc<Instance>),
    /// It has read the slot, and is about to write the end.
    Passing(Arc<Instance>, Arc<Instance>, Transaction),
}

/// A step. The number says which planner or worker makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is named by what it is")]
pub enum Action {
    ReadToPlan(usize),
    ReadToTrigger,
    WritePlan(usize),
    WritePlanLate(usize),
    PlannerCrash(usize),
    Begin(usize, ScheduledTime),
    ToPublishing(usize),
    TakeEnd(usize, ScheduledTime),
    ReadSlot(usize),
    WriteEnd(usize),
    WriteEndLate(usize),
    WorkerCrash(usize),
    Cancel(ScheduledTime),
    Land(usize),
    Tick,
}

impl SlotModel {
    pub(super) fn enabled(&self, state: &State, actions: &mut Vec<Action>) {
        let budget = state.budget;
        let alike = state.planners[0] == state.planners[1];
        for who in 0..if alike { 1 } else { 2 } {
            if state.planners[who] == Planner::Idle {
                if self.read_to_plan(state, state.job.clone(), state.slot.clone(), BTreeSet::new(), state.now).is_some()
                {
                    actions.push(Action::ReadToPlan(who));
                }
            } else {
                actions.push(Action::WritePlan(who));
                actions.extend((budget.late > 0).then_some(Action::WritePlanLate(who)));
                actions.extend((budget.crashes > 0).then_some(Action::PlannerCrash(who)));
            }
        }
        if budget.triggers > 0 && state.planners[1] == Planner::Idle && self.trigger(state).is_some() {
            actions.push(Action::ReadToTrigger);
        }
        let alike = state.workers[0] == state.workers[1];
        for who in 0..if alike { 1 } else { 2 } {
            match &state.workers[who] {
                Worker::Idle => {
                    for instance in state.instances.values() {
                        match &instance.status {
                            InstanceStatus::Stopping(_) => actions.push(Action::TakeEnd(who, instance.id.at)),
                            _ if self.claim(state, who, instance).is_some() => {
                                actions.push(Action::Begin(who, instance.id.at));
                            }
                            _ => {}
                        }
                    }
                }
                Worker::Working(_) => actions.push(Action::ToPublishing(who)),
                Worker::Ending(..) => actions.push(Action::ReadSlot(who)),
                Worker::Passing(..) => {
                    actions.push(Action::WriteEnd(who));
                    actions.extend((budget.late > 0).then_some(Action::WriteEndLate(who)));
                }
            }
            if state.workers[who] != Worker::Idle && budget.crashes > 0 {
                actions.push(Action::WorkerCrash(who));
            }
        }
        actions.extend((0..state.late.len()).map(Action::Land));
        if state.now < self.times || (actions.is_empty() && self.is_leased(state)) {
            actions.push(Action::Tick);
        }
        if budget.cancels > 0 {
            let stops = |instance: &&Arc<Instance>| self.stopped(state, instance).is_some();
            actions.extend(state.instances.values().filter(stops).map(|instance| Action::Cancel(instance.id.at)));
        }
    }

    fn is_leased(&self, state: &State) -> bool {
        state.instances.values().any(|instance| instance.lease.is_some() && !instance.status.is_terminal())
    }

    fn stopped(&self, state: &State, instance: &Instance) -> Option<Instance> {
        let write_id = WriteId(format!("cancel@{}", instance.version));
        let stamp = Stamp { write_id, now: state.clock() };
        instance.stop(Outcome::Cancelled { by: "somebody".into() }, &stamp).ok()
    }

    /// What a planner would write, from what it has read.
    fn read_to_plan(
        &self,
        state: &State,
        job: Arc<Job>,
        slot: Option<Arc<Slot>>,
        mut existing: BTreeSet<ScheduledTime>,
        now: i64,
    ) -> Option<Planner> {
        let write_id = WriteId(format!("plan {now} {} {}", job.version, existing.len()));
        let key = job.overlap.slot.clone();
        let free = key.map(|key| Slot { version: NO_SLOT, ..Slot::free(key, WriteId(String::new())) });
        let seen = slot.as_deref().cloned().or(free);
        loop {
            let context = PlanContext {
                job: &job,
                spec: &self.spec,
                catch_up: self.spec.catch_up,
                calendar: &self.calendar,
                overlap: &job.overlap,
                slot: seen.as_ref(),
                existing: &existing,
                now: minute(now.min(self.times)),
                write_id: &write_id,
            };
            let step = plan_step(&context)?;
            let known = step.instances.iter().find(|new| step.replaced.iter().any(|id| id.at == new.at));
            if let Some(known) = known {
                existing.insert(known.at);
                continue;
            }
            let transaction = self.plan_puts(state, &job, slot.as_deref(), &step);
            return Some(Planner::Planning(job, slot, existing, now, transaction));
        }
    }

    fn plan_puts(&self, state: &State, job: &Job, slot: Option<&Slot>, step: &PlanStep) -> Transaction {
        let mut puts = Transaction {
            job: Some((Arc::new(step.job.clone()), job.version)),
            slot: step.slot.clone().map(|next| (Arc::new(next), slot.map(|slot| slot.version))),
            skips: step.skips.clone(),
            ..Transaction::default()
        };
        for new in &step.instances {
            let id = InstanceId { job: job.name.clone(), at: new.at };
            let instance = self.new_instance(state, job, id, Origin::Schedule, new.waits);
            puts.instances.push((Arc::new(instance), None));
        }
        if let Some(by) = step.instances.last() {
            let by = InstanceId { job: job.name.clone(), at: by.at };
            self.replace(state, &step.replaced, &by, &mut puts);
        }
        puts
    }

    fn new_instance(&self, state: &State, job: &Job, id: InstanceId, origin: Origin, waits: bool) -> Instance {
        let window = calendar_window(job, &self.calendar, id.at);
        let write_id = WriteId("new".into());
        let mut instance = Instance::planned(id, SpecVersion::FIRST, origin, window, state.clock().at, write_id);
        instance.slot = job.overlap.slot.clone();
        if waits && self.fault != Some(Fault::ReplacerStartsAtOnce) {
            instance.status = InstanceStatus::Waiting(WaitingFor::Slot);
        }
        instance
    }

    fn replace(&self, state: &State, replaced: &[InstanceId], by: &InstanceId, puts: &mut Transaction) {
        let stamp = Stamp { write_id: WriteId("replaced".into()), now: state.clock() };
        for id in replaced {
            let Some(instance) = state.instances.get(&id.at) else { continue };
            if let Ok(next) = instance.stop(Outcome::Replaced { by: by.clone() }, &stamp) {
                puts.instances.push((Arc::new(next), Some(instance.version)));
            }
        }
    }

    /// What a trigger of the latest time would write: an instance that comes to the slot as a scheduled one would.
    fn trigger(&self, state: &State) -> Option<Transaction> {
        let at = minute(state.now.min(self.times));
        let id = InstanceId { job: state.job.name.clone(), at };
        if state.instances.contains_key(&at) {
            return None;
        }
        let key = state.job.overlap.slot.clone()?;
        let write_id = WriteId(format!("trigger {}", state.now));
        let free = Slot { version: NO_SLOT, ..Slot::free(key, WriteId(String::new())) };
        let slot = state.slot.as_deref().cloned().unwrap_or(free);
        let (next, waits, replaced) = match admit(&slot, state.job.overlap.policy, &id, &write_id) {
            Admission::Holds(next) => (next, false, Vec::new()),
            Admission::Waits(next) => (next, true, Vec::new()),
            Admission::Replaces(next, replaced) => (next, true, replaced),
            Admission::Refused | Admission::Full => return None,
        };
        let instance = self.new_instance(state, &state.job, id.clone(), Origin::Trigger, waits);
        let mut puts = Transaction {
            instances: vec![(Arc::new(instance), None)],
            slot: Some((Arc::new(next), state.slot.as_ref().map(|slot| slot.version))),
            ..Transaction::default()
        };
        self.replace(state, &replaced, &id, &mut puts);
        Some(puts)
    }

    /// The claim of an instance's step; or that it is stopped.
    fn claim(&self, state: &State, who: usize, instance: &Instance) -> Option<Instance> {
        let name = format!("{who}@{}", instance.version);
        let claimer = Claimer {
            owner: Owner(name.clone()),
            write_id: WriteId(name),
            now: state.clock(),
            lease: LEASE,
            backoff_limit: 1,
        };
        match instance.claim(&claimer, None) {
            StepClaim::Claimed(_, next) | StepClaim::Stopped(next) => Some(*next),
            _ => None,
        }
    }

    /// From a claimed step to Publishing, at one go: there are no shards here.
    fn to_publishing(&self, state: &State, who: usize, held: &Instance) -> Option<Instance> {
        let stamp = |of: &Instance| Stamp { write_id: WriteId(format!("{who}@{}", of.version)), now: state.clock() };
        let mut held = held.clone();
        if held.status == InstanceStatus::Sharding {
            let nothing = Position::Key(0);
            let whole = Range::new(nothing, nothing).ok()?;
            let boundary =
                Boundary { manifest: "m".into(), digest: "d".into(), shards: 0, objects: 0, bytes: 0, whole };
            held = held.sharded(&stamp(&held), boundary, Duration::ZERO).ok()?;
            held = self.claim(state, who, &held)?;
        }
        if held.status == InstanceStatus::Finalizing {
            held = held.publishing(&stamp(&held), Counts::default()).ok()?;
        }
        (held.status == InstanceStatus::Publishing).then_some(held)
    }

    /// The end of an instance, and the slot passed on, from what is read now.
    fn pass_on(&self, state: &State, before: &Instance, next: &Arc<Instance>) -> Transaction {
        let mut puts =
            Transaction { instances: vec![(Arc::clone(next), Some(before.version))], ..Transaction::default() };
        let Some(slot) = state.slot.as_deref().filter(|_| next.slot.is_some()) else { return puts };
        let write_id = WriteId(format!("pass {}", slot.version));
        let stamp = Stamp { write_id: write_id.clone(), now: state.clock() };
        let Some((mut passed, mut holder)) = slot.without(&next.id, &write_id) else { return puts };
        while let Some(candidate) = holder.take() {
            let instance = state.instances.get(&candidate.at);
            match instance.and_then(|instance| Some((instance, instance.come(WaitingFor::Slot, &stamp).ok()?))) {
                Some((found, planned)) => puts.instances.push((Arc::new(planned), Some(found.version))),
                None => (passed, holder) = passed.without(&candidate, &write_id).unwrap_or((passed, None)),
            }
        }
        passed.version = slot.version.next();
        puts.slot = Some((Arc::new(passed), Some(slot.version)));
        puts
    }

    pub(super) fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::ReadToPlan(who) => {
                let (job, slot) = (Arc::clone(&state.job), state.slot.clone());
                let read = self.read_to_plan(state, job, slot, BTreeSet::new(), state.now);
                state.planners[who] = read.unwrap_or_default();
            }
            Action::ReadToTrigger => {
                state.budget.spend(|budget| &mut budget.triggers);
                state.planners[1] = self.trigger(state).map_or(Planner::Idle, Planner::Triggering);
            }
            Action::WritePlan(who) => self.write_plan(state, who),
            Action::WritePlanLate(who) => {
                state.budget.spend(|budget| &mut budget.late);
                let (Planner::Planning(.., puts) | Planner::Triggering(puts)) =
                    std::mem::take(&mut state.planners[who])
                else {
                    return;
                };
                state.late.push(puts);
            }
            Action::PlannerCrash(who) => {
                state.budget.spend(|budget| &mut budget.crashes);
                state.planners[who] = Planner::Idle;
            }
            Action::Begin(who, at) => {
                let Some(next) = self.claim(state, who, &state.instances[&at]) else { return };
                let next = Arc::new(next);
                state.instances.insert(at, Arc::clone(&next));
                let is_claimed = next.lease.is_some();
                state.workers[who] = if is_claimed { Worker::Working(next) } else { Worker::Idle };
            }
            Action::ToPublishing(who) => {
                let Worker::Working(held) = std::mem::take(&mut state.workers[who]) else { return };
                let at = held.id.at;
                let is_ours = state.instances[&at].version == held.version;
                let Some(next) = self.to_publishing(state, who, &held).filter(|_| is_ours) else { return };
                let stamp = Stamp { write_id: WriteId(format!("{who}@{}", next.version)), now: state.clock() };
                let next = Arc::new(next);
                state.instances.insert(at, Arc::clone(&next));
                if let Ok(end) = next.succeeded(&stamp) {
                    state.workers[who] = Worker::Ending(next, Arc::new(end));
                }
            }
            Action::TakeEnd(who, at) => {
                let before = Arc::clone(&state.instances[&at]);
                let stamp = Stamp { write_id: WriteId(format!("end@{}", before.version)), now: state.clock() };
                if let Ok(end) = before.ended(&stamp) {
                    state.workers[who] = Worker::Ending(before, Arc::new(end));
                }
            }
            Action::ReadSlot(who) => {
                let Worker::Ending(before, next) = state.workers[who].clone() else { return };
                let puts = self.pass_on(state, &before, &next);
                state.workers[who] = Worker::Passing(before, next, puts);
            }
            Action::WriteEnd(who) => {
                let Worker::Passing(before, next, puts) = std::mem::take(&mut state.workers[who]) else { return };
                if !self.apply(state, &puts) && state.instances[&before.id.at].version == before.version {
                    // The slot, or who waits for it, has changed: it is read anew.
                    state.workers[who] = Worker::Ending(before, next);
                }
            }
            Action::WriteEndLate(who) => {
                state.budget.spend(|budget| &mut budget.late);
                let Worker::Passing(_, _, puts) = std::mem::take(&mut state.workers[who]) else { return };
                state.late.push(puts);
            }
            Action::WorkerCrash(who) => {
                state.budget.spend(|budget| &mut budget.crashes);
                state.workers[who] = Worker::Idle;
            }
            Action::Cancel(at) => {
                state.budget.spend(|budget| &mut budget.cancels);
                if let Some(next) = self.stopped(state, &state.instances[&at]) {
                    state.instances.insert(at, Arc::new(next));
                }
            }
            Action::Land(place) => {
                let puts = state.late.remove(place);
                self.apply(state, &puts);
            }
            Action::Tick => state.now += 1,
        }
    }

    fn write_plan(&self, state: &mut State, who: usize) {
        match std::mem::take(&mut state.planners[who]) {
            Planner::Idle => {}
            Planner::Triggering(puts) => {
                self.apply(state, &puts);
            }
            Planner::Planning(job, slot, mut known, now, puts) => {
                if self.apply(state, &puts) {
                    return;
                }
                // Somebody asked for it before its time was planned: it is there, and that answers for the time.
                let new = puts.instances.iter().filter(|(_, version)| version.is_none());
                let there = existing(state, new.map(|(instance, _)| instance.id.at));
                if self.job_holds(state, &puts) && !there.is_subset(&known) {
                    known.extend(there);
                    state.planners[who] = self.read_to_plan(state, job, slot, known, now).unwrap_or_default();
                }
            }
        }
    }
}
