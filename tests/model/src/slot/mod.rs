//! Planning and the slot: two planners, a trigger, and two workers that begin and end instances, under each overlap policy.
//!
//! What a process reads before a transaction it reads at once: each item that is written is conditioned on what was read, so
//! that reading them one after another comes to the same. Instances have no shards here. After `engine/src/plan.rs`,
//! `slots.rs` and `command.rs`.

mod act;
mod transaction;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shardcron_domain::calendar::{Calendar, ZoneRules};
use shardcron_domain::ids::{InstanceId, SpecVersion, Version, WriteId};
use shardcron_domain::instance::{Instance, InstanceStatus};
use shardcron_domain::job::JobSpec;
use shardcron_domain::plan::{Job, Overlap, SkippedRange};
use shardcron_domain::slot::Slot;
use shardcron_domain::time::{Millis, Reading, ScheduledTime};
use stateright::{Model, Property};

use crate::fault::Fault;
use crate::guarantee::{Broken, Checked, properties};

pub use self::act::{Action, Planner, Worker};
pub use self::transaction::Transaction;

/// How often each thing may happen that needs no cause, and how many of them in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// All of them together.
    pub all: u8,
    /// A process stops, and forgets all.
    pub crashes: u8,
    /// A transaction gets no answer, and applies at some later time or is refused then.
    pub late: u8,
    /// Somebody asks for an instance at the latest time.
    pub triggers: u8,
    /// Somebody cancels one.
    pub cancels: u8,
}

impl Budget {
    fn spend(&mut self, kind: fn(&mut Self) -> &mut u8) {
        *kind(self) -= 1;
        self.all -= 1;
        if self.all == 0 {
            *self = Self::default();
        }
    }
}

/// The model.
#[derive(Clone, Debug)]
pub struct SlotModel {
    spec: Arc<JobSpec>,
    calendar: Arc<Calendar>,
    start: ScheduledTime,
    /// How many scheduled times there are, one a minute.
    pub times: i64,
    /// What may happen.
    pub budget: Budget,
    /// The rule that is taken away, if one is.
    pub fault: Option<Fault>,
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Minutes since the job's start, by the true clock.
    pub now: i64,
    /// The job.
    pub job: Arc<Job>,
    /// Its slot, once it is written.
    pub slot: Option<Arc<Slot>>,
    /// Its instances.
    pub instances: BTreeMap<ScheduledTime, Arc<Instance>>,
    /// Its skips.
    pub skips: Vec<SkippedRange>,
    /// The instances that were made, each time that one was.
    pub made: Vec<InstanceId>,
    /// The planners. The second one also does what somebody asks for.
    pub planners: [Planner; 2],
    /// The workers.
    pub workers: [Worker; 2],
    /// Transactions on their way.
    pub late: Vec<Transaction>,
    /// What may still happen.
    pub budget: Budget,
    /// What was broken.
    pub broken: Broken,
}

impl SlotModel {
    /// A model of a job of each minute, with this overlap policy and this catch-up.
    ///
    /// # Panics
    /// When that isn't a job.
    #[must_use]
    pub fn new(policy: &str, catch_up: &str, times: i64, budget: Budget) -> Self {
        let text = format!(
            r#"{{ "name": "job", "schedule": "* * * * *", "concurrencyPolicy": "{policy}", "catchUp": "{catch_up}",
                 "input": {{ "objects": "in/", "format": "csv" }}, "work": {{ "aggregate": {{ "count": true }} }},
                 "output": {{ "objects": "out/", "format": "csv" }} }}"#
        );
        let start = ScheduledTime::from_second(0).unwrap_or_else(|error| panic!("{error}"));
        let spec = JobSpec::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let calendar = spec.calendar(&ZoneRules::bundled(), start).unwrap_or_else(|error| panic!("{error}"));
        Self { spec: Arc::new(spec), calendar: Arc::new(calendar), start, times, budget, fault: None }
    }
}

/// The scheduled time of this minute.
fn minute(number: i64) -> ScheduledTime {
    ScheduledTime::from_second(60 * number).unwrap_or_else(|error| unreachable!("{error}"))
}

impl State {
    fn clock(&self) -> Reading {
        Reading::exact(Millis(60_000 * self.now))
    }
}

impl Model for SlotModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let job = Job {
            name: self.spec.name.clone(),
            spec: SpecVersion::FIRST,
            spec_digest: String::new(),
            start: self.start,
            planned_through: self.start,
            window_through: None,
            next_fire: self.calendar.after(self.start),
            suspended: None,
            deleted_at: None,
            overlap: Overlap::of(&self.spec),
            unslotted_at: None,
            version: Version::FIRST,
            write_id: WriteId(String::new()),
        };
        vec![State {
            now: 1,
            job: Arc::new(job),
            slot: None,
            instances: BTreeMap::new(),
            skips: Vec::new(),
            made: Vec::new(),
            planners: Default::default(),
            workers: Default::default(),
            late: Vec::new(),
            budget: self.budget,
            broken: Broken::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.act(&mut next, action);
        self.watch(state, &mut next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = properties();
        all.push(Property::sometimes("two have succeeded", |_, state: &State| {
            let succeeded = |instance: &&Arc<Instance>| instance.status == InstanceStatus::Succeeded;
            state.instances.values().filter(succeeded).count() == 2
        }));
        all
    }
}

impl Checked for SlotModel {
    fn broken(state: &State) -> Broken {
        state.broken
    }

    fn has_ended(state: &State) -> bool {
        let slot = state.slot.as_ref();
        state.instances.values().all(|instance| instance.status.is_terminal())
            && slot.is_none_or(|slot| slot.holder.is_none() && slot.waiting.is_empty())
    }
}

/// Which of the times have an instance.
fn existing(state: &State, times: impl Iterator<Item = ScheduledTime>) -> BTreeSet<ScheduledTime> {
    times.filter(|at| state.instances.contains_key(at)).collect()
}
