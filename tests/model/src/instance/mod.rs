//! The instance: fan-out, done sets, finalize, publish; cancel, deadline, stop; retry and rerun.
//!
//! Two workers, each of which takes up a step of the instance or one of its shards whenever there is one to take up: so
//! messages are lost, repeated and reordered at will. A shard is one batch; the model of the shard has the rest. Commands
//! are delivered twice, and late. After `engine/src/step.rs`, `fan_out.rs`, `done.rs`, `finalize.rs`, `stop.rs` and
//! `command.rs`.

mod act;
mod shards;
mod steps;
mod watch;

use std::sync::Arc;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::certificate::Certificate;
use shardcron_domain::group::Group;
use shardcron_domain::ids::{Attempt, Generation, InstanceId, SpecVersion, WriteId};
use shardcron_domain::instance::{Instance, Origin, Window};
use shardcron_domain::shard::Shard;
use shardcron_domain::time::{Duration, ScheduledTime};
use stateright::{Model, Property};

use crate::clock::reading;
use crate::fault::Fault;
use crate::guarantee::{Broken, Checked, properties};

pub use self::act::Action;
pub use self::steps::Phase;

/// How many workers there are.
pub const WORKERS: usize = 2;

/// How often each thing may happen that needs no cause, and how many of them in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// All of them together.
    pub all: u8,
    /// A worker stops, and forgets all.
    pub crashes: u8,
    /// A write of a step is applied and its answer lost.
    pub unheard: u8,
    /// Time passes while somebody is at work.
    pub pauses: u8,
    /// A step or a shard fails.
    pub failures: u8,
    /// A step or a shard is taken up before its time: by a clock that is wrong, or before the instance runs.
    pub early: u8,
    /// The input changes.
    pub changes: u8,
    /// Somebody cancels.
    pub cancels: u8,
    /// Somebody retries.
    pub retries: u8,
    /// Somebody reruns.
    pub reruns: u8,
    /// A done shard is reported again.
    pub reports: u8,
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
pub struct InstanceModel {
    /// The job's `activeDeadlineSeconds`.
    pub deadline: Option<Duration>,
    /// The job's `backoffLimit`.
    pub backoff_limit: u32,
    /// What may happen.
    pub budget: Budget,
    /// By how many ticks each worker's clock is ahead of the true one, in each of the beginnings.
    pub skews: Vec<[i8; WORKERS]>,
    /// The rule that is taken away, if one is.
    pub fault: Option<Fault>,
}

/// How the input is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Into one shard.
    One,
    /// Into two.
    Two,
}

impl Cut {
    /// The digest of a manifest that says so.
    #[must_use]
    pub fn digest(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
        }
    }

    /// The ranges of the shards.
    #[must_use]
    pub fn ranges(self) -> Vec<Range> {
        match self {
            Self::One => vec![range(0, 2)],
            Self::Two => vec![range(0, 1), range(1, 2)],
        }
    }
}

/// What there is of one generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Run {
    /// The manifest.
    pub manifest: Option<Cut>,
    /// The group.
    pub group: Option<Arc<Group>>,
    /// The shards, by number.
    pub shards: [Option<Arc<Shard>>; 2],
}

impl Run {
    /// The shards that there are.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Shard>> {
        self.shards.iter().flatten()
    }
}

/// What somebody asks for, of the generation and attempt that are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// To stop it.
    Cancel(Generation, Attempt),
    /// Another attempt.
    Retry(Generation, Attempt),
    /// Another generation.
    Rerun(Generation, Attempt),
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Worker {
    /// Where it is.
    pub phase: Phase,
    /// How often it has crashed.
    pub lives: u8,
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The true clock.
    pub now: i8,
    /// The clocks that are wrong.
    pub skew: [i8; WORKERS],
    /// The instance.
    pub instance: Arc<Instance>,
    /// Its generations.
    pub runs: Vec<Run>,
    /// How the input would be cut if it were listed now.
    pub listing: Cut,
    /// The certificate in its place.
    pub certificate: Option<Arc<Certificate>>,
    /// The workers.
    pub workers: [Worker; WORKERS],
    /// Commands on their way.
    pub commands: Vec<Command>,
    /// What may still happen.
    pub budget: Budget,
    /// What was broken.
    pub broken: Broken,
}

/// All of the input.
fn whole() -> Range {
    range(0, 2)
}

fn range(from: i64, to: i64) -> Range {
    Range::new(Position::Key(from), Position::Key(to)).unwrap_or_else(|error| unreachable!("{error}"))
}

impl State {
    /// The generation that the instance is at.
    fn run(&self) -> &Run {
        &self.runs[self.place()]
    }

    fn place(&self) -> usize {
        place_of(self.instance.generation)
    }
}

/// A generation's place among the runs.
fn place_of(generation: Generation) -> usize {
    generation.0 as usize - 1
}

impl Model for InstanceModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let at = ScheduledTime::from_second(0).unwrap_or_else(|error| unreachable!("{error}"));
        let job = "job".parse().unwrap_or_else(|error| unreachable!("{error}"));
        let window = Window { start: at, end: at };
        let write_id = WriteId("plan".into());
        let now = reading(0, 0).at;
        let id = InstanceId { job, at };
        let instance = Instance::planned(id, SpecVersion::FIRST, Origin::Schedule, window, now, write_id);
        let begin = |skew| State {
            now: 0,
            skew,
            instance: Arc::new(instance.clone()),
            runs: vec![Run::default()],
            listing: Cut::Two,
            certificate: None,
            workers: Default::default(),
            commands: Vec::new(),
            budget: self.budget,
            broken: Broken::default(),
        };
        self.skews.iter().copied().map(begin).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.act(&mut next, action);
        next.commands.sort_unstable();
        self.watch(state, &mut next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = properties();
        all.extend(watch::of_interest());
        all
    }
}

impl Checked for InstanceModel {
    fn broken(state: &State) -> Broken {
        state.broken
    }

    fn has_ended(state: &State) -> bool {
        // A fan-out that was paused through the end, and crashed after it, can leave a shard open. That is no work to be
        // done: whoever claims it fences it, and until a retry nobody has to.
        state.instance.status.is_terminal()
    }
}
