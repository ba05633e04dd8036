//! The shard: claim, pause, takeover, commit with lost answers, parallel batches, failure, release, split, fence.
//!
//! Two executors, told by messages; one shard of a few records, each a batch of its own, of which two are in flight and
//! finish in any order; one process that stops the instance; a sweep. After `engine/src/run_shard.rs`, `held.rs`,
//! `write.rs`, `done.rs` and `stop.rs`.

mod act;
mod executor;
mod store;
mod watch;
mod writes;

use std::collections::BTreeSet;
use std::sync::Arc;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::group::Group;
use shardcron_domain::ids::{Attempt, GroupNo, InstanceId, Owner, ShardId, ShardKey, SpecVersion, Version, WriteId};
use shardcron_domain::instance::{Boundary, Instance, InstanceStatus, Origin, StepClaim, Window};
use shardcron_domain::lease::Claimer;
use shardcron_domain::shard::{Shard, ShardStatus, Stamp};
use shardcron_domain::time::{Duration, ScheduledTime};
use stateright::{Model, Property};

use crate::clock::{LEASE, reading};
use crate::fault::Fault;
use crate::guarantee::{Broken, Checked, properties};

pub use self::act::Action;
pub use self::executor::{Answer, Executor, Phase, Stage};
pub use self::store::{Request, Rows};

/// How many executors there are.
pub const EXECUTORS: usize = 2;

/// How many records the shard has at most.
pub const RECORDS_MAX: usize = 4;

/// How often each thing may happen that needs no cause, and how many of them in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// All of them together.
    pub all: u8,
    /// A process stops, and forgets all.
    pub crashes: u8,
    /// A write is applied and its answer lost.
    pub unheard: u8,
    /// A write gets no answer, and applies at some later time.
    pub late: u8,
    /// Time passes while somebody is at work: a pause beyond the lease.
    pub pauses: u8,
    /// A message is delivered and stays.
    pub repeats: u8,
    /// A message is lost.
    pub losses: u8,
    /// A batch fails.
    pub failures: u8,
    /// An executor gives its shard back.
    pub releases: u8,
    /// An executor renews its lease.
    pub heartbeats: u8,
    /// Somebody cancels the instance.
    pub cancels: u8,
    /// An owner cuts its shard.
    pub splits: u8,
}

impl Budget {
    /// Each of them up to `all` times, and so many in one run.
    #[must_use]
    pub fn any(all: u8) -> Self {
        let once = all.min(1);
        Self {
            all,
            crashes: all,
            unheard: all,
            late: all,
            pauses: all,
            repeats: once,
            losses: once,
            failures: all,
            releases: once,
            heartbeats: once,
            cancels: once,
            splits: all,
        }
    }

    /// Spends one of what `kind` picks.
    fn spend(&mut self, kind: fn(&mut Self) -> &mut u8) {
        *kind(self) -= 1;
        self.all -= 1;
        if self.all == 0 {
            // What can't happen any more is all the same.
            *self = Self::default();
        }
    }
}

/// The model.
#[derive(Clone, Debug)]
pub struct ShardModel {
    /// How many records the shard has.
    pub records: i64,
    /// The record that is rejected, if one is.
    pub rejected: Option<i64>,
    /// The job's `backoffLimit`.
    pub backoff_limit: u32,
    /// What may happen.
    pub budget: Budget,
    /// By how many ticks each executor's clock is ahead of the true one, in each of the beginnings.
    pub skews: Vec<[i8; EXECUTORS]>,
    /// The rule that is taken away, if one is.
    pub fault: Option<Fault>,
}

/// A message about a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mail {
    /// Which shard.
    pub shard: usize,
    /// The tick from which it can be delivered.
    pub visible: i8,
}

/// Whoever stops the instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stopper {
    /// Nobody does.
    Idle,
    /// It has written Stopping, and is about to read the shards.
    Listing,
    /// It fences these, as it has read them; then it reads again.
    Fencing(Vec<Arc<Shard>>),
    /// It has found none open, and is about to write the end.
    Ending,
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The true clock.
    pub now: i8,
    /// The clocks that are wrong.
    pub skew: [i8; EXECUTORS],
    /// The instance.
    pub instance: Arc<Instance>,
    /// The shards, children after their parents.
    pub shards: Vec<Arc<Shard>>,
    /// The result rows of each.
    pub rows: Vec<Rows>,
    /// The rows of each before its last commit: what a reader may still see.
    pub former: Vec<Rows>,
    /// The group, with its done set.
    pub group: Group,
    /// The executors.
    pub executors: [Executor; EXECUTORS],
    /// Whoever stops the instance.
    pub stopper: Stopper,
    /// Messages, in no order.
    pub mail: Vec<Mail>,
    /// Writes on their way.
    pub late: Vec<Request>,
    /// What may still happen.
    pub budget: Budget,
    /// Whether finalize has found all done.
    pub finished: bool,
    /// What was broken.
    pub broken: Broken,
}

impl ShardModel {
    /// All that the shard has.
    fn whole(&self) -> Range {
        range(0, self.records)
    }

    fn beginning(&self, skew: [i8; EXECUTORS]) -> State {
        let instance = running_instance(self.whole());
        let key = ShardKey { run: instance.run(), shard: ShardId::numbered(0) };
        let shard = Shard::new(key, self.whole(), Attempt::FIRST, None, WriteId("fan-out".into()));
        State {
            now: 0,
            skew,
            shards: vec![Arc::new(shard)],
            rows: vec![Rows::default()],
            former: vec![Rows::default()],
            group: Group {
                run: instance.run(),
                no: GroupNo::FIRST,
                size: 1,
                done: BTreeSet::new(),
                page: String::new(),
                page_digest: String::new(),
                version: Version::FIRST,
                write_id: WriteId(String::new()),
            },
            executors: Default::default(),
            stopper: Stopper::Idle,
            mail: vec![Mail { shard: 0, visible: 0 }],
            late: Vec::new(),
            budget: self.budget,
            finished: false,
            instance: Arc::new(instance),
            broken: Broken::default(),
        }
    }
}

/// The range between two keys.
fn range(from: i64, to: i64) -> Range {
    Range::new(Position::Key(from), Position::Key(to)).unwrap_or_else(|error| unreachable!("{error}"))
}

/// An instance that has been fanned out to one shard.
fn running_instance(whole: Range) -> Instance {
    let at = ScheduledTime::from_second(0).unwrap_or_else(|error| unreachable!("{error}"));
    let job = "job".parse().unwrap_or_else(|error| unreachable!("{error}"));
    let window = Window { start: at, end: at };
    let now = reading(0, 0);
    let write = |id: &str| WriteId(id.to_owned());
    let id = InstanceId { job, at };
    let planned = Instance::planned(id, SpecVersion::FIRST, Origin::Schedule, window, now.at, write("plan"));
    let claimer =
        Claimer { owner: Owner("fan-out".into()), write_id: write("claim"), now, lease: LEASE, backoff_limit: 1 };
    let StepClaim::Claimed(_, held) = planned.claim(&claimer, None) else {
        unreachable!("a new instance can be claimed")
    };
    let boundary = Boundary { manifest: "m".into(), digest: "d".into(), shards: 1, objects: 1, bytes: 1, whole };
    let stamp = Stamp { write_id: write("sharded"), now };
    held.sharded(&stamp, boundary, Duration::ZERO).unwrap_or_else(|error| unreachable!("{error}"))
}

impl State {
    /// Whether finalize goes on: the set is full, and all shards are done that it reads then.
    fn is_full(&self) -> bool {
        self.group.is_full() && self.shards.iter().all(|shard| shard.status == ShardStatus::Done)
    }

    /// Whether nobody can do anything before time passes or the sweep comes.
    fn is_quiet(&self) -> bool {
        self.executors.iter().all(|executor| executor.phase == Phase::Idle)
            && self.stopper == Stopper::Idle
            && self.late.is_empty()
            && self.mail.iter().all(|mail| mail.visible > self.now)
    }

    fn is_running(&self) -> bool {
        self.instance.status == InstanceStatus::Running
    }
}

impl Model for ShardModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        self.skews.iter().map(|skew| self.beginning(*skew)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.act(&mut next, action);
        next.mail.sort_unstable();
        self.watch(state, &mut next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = properties();
        all.extend(watch::of_interest());
        all
    }
}

impl Checked for ShardModel {
    fn broken(state: &State) -> Broken {
        state.broken
    }

    fn has_ended(state: &State) -> bool {
        state.finished || state.instance.status.is_terminal()
    }
}
