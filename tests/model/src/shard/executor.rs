//! An executor: what it holds, and each of its calls to the store.

use std::sync::Arc;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::group::DoneShard;
use shardcron_domain::ids::{Owner, WriteId};
use shardcron_domain::instance::InstanceStatus;
use shardcron_domain::lease::Claimer;
use shardcron_domain::shard::{Claim, Counts, Fault as WorkFault, FaultKind, FenceReason, Shard, ShardStatus};
use shardcron_domain::time::Reading;

use super::store::{Guard, add_child, write_rows};
use super::{Mail, Request, Rows, ShardModel, State, range};
use crate::clock::{LEASE, reading, tick_after};
use crate::fault::Fault;

/// What the pause after a failure is drawn from.
const RANDOM: u64 = 999;

/// How many batches of a shard are in flight at once.
const IN_FLIGHT: usize = 2;

/// What becomes of a write's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It is heard.
    Heard,
    /// The write was applied, and the answer is lost.
    Unheard,
    /// There is no answer, and the write applies at some later time.
    Late,
}

/// What an owner is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Read the instance.
    Look,
    /// Read its rows.
    Open,
    /// Commit; these are the rows in its memory.
    Work(Rows),
}

/// Where an executor is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It waits for a message.
    #[default]
    Idle,
    /// It has read the shard, and is about to claim it.
    Claiming(Arc<Shard>),
    /// It has the shard, as it last wrote it.
    Holding(Arc<Shard>, Stage),
    /// It has had no answer, and is about to read.
    Unsure(Box<Request>),
    /// It has read that the write wasn't applied, and is about to send the same again.
    Resending(Box<Request>),
    /// The shard is done, and it is about to say so.
    Reporting,
    /// Under a fault: the second of two writes that ought to be one.
    Half(Box<Request>, Rows),
}

/// An executor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Executor {
    /// Where it is.
    pub phase: Phase,
    /// The shard that its message is about.
    pub shard: usize,
    /// How often it has crashed: what it draws is never drawn again.
    pub lives: u8,
}

impl Executor {
    /// What names a write that replaces `shard`: no other request has the same, since one writer sends one write in the
    /// place of a version.
    pub(super) fn write_id(&self, who: usize, shard: &Shard) -> WriteId {
        WriteId(format!("{who}.{}@{}", self.lives, shard.version))
    }
}

impl ShardModel {
    pub(super) fn clock(&self, state: &State, who: usize) -> Reading {
        reading(state.now, state.skew[who])
    }

    fn claim_of(&self, state: &State, who: usize, read: &Shard) -> Claim {
        let write_id = state.executors[who].write_id(who, read);
        let unlimited = self.fault == Some(Fault::BackoffIgnored);
        let mut claim = read.claim(&Claimer {
            owner: Owner(write_id.0.clone()),
            write_id,
            now: self.clock(state, who),
            lease: LEASE,
            backoff_limit: if unlimited { u32::MAX } else { self.backoff_limit },
        });
        if let (Claim::Claimed(next), Some(Fault::ClaimKeepsToken)) = (&mut claim, self.fault) {
            next.token = read.token;
        }
        claim
    }

    /// A message comes: the shard is read. What can't be claimed now comes again later.
    pub(super) fn deliver(&self, state: &mut State, who: usize, mail: Mail) {
        state.executors[who].shard = mail.shard;
        let read = Arc::clone(&state.shards[mail.shard]);
        self.come_to(state, who, read);
    }

    /// Decides on a shard that was read: to claim it, to let the message come again, or to report that it is done.
    pub(super) fn come_to(&self, state: &mut State, who: usize, read: Arc<Shard>) {
        let claim = self.claim_of(state, who, &read);
        let (shard, now) = (state.executors[who].shard, state.now);
        let mut later = |at| state.mail.push(Mail { shard, visible: at });
        state.executors[who].phase = match claim {
            Claim::Claimed(_) | Claim::Exhausted(_) => Phase::Claiming(read),
            Claim::Held { until, .. } => {
                later(tick_after(until, now));
                Phase::Idle
            }
            Claim::NotBefore(at) => {
                later(tick_after(at, now));
                Phase::Idle
            }
            Claim::Closed if read.status == ShardStatus::Done => Phase::Reporting,
            Claim::Closed | Claim::PastDeadline => Phase::Idle,
        };
    }

    /// The claim is written.
    pub(super) fn claim(&self, state: &mut State, who: usize, answer: Answer) {
        let Phase::Claiming(read) = state.executors[who].phase.clone() else { return };
        let next = match self.claim_of(state, who, &read) {
            Claim::Claimed(next) | Claim::Exhausted(next) => next,
            _ => return self.come_to(state, who, read),
        };
        let request = Request {
            shard: state.executors[who].shard,
            next: Arc::new(*next),
            guard: Guard::Version(read.version),
            rows: None,
            child: None,
            after: Stage::Look,
        };
        self.send(state, who, request, answer);
    }

    /// The instance is read after the claim: a cancel may have come between. Whether the shard is let go.
    pub(super) fn look(&self, state: &mut State, who: usize, answer: Answer) {
        let Phase::Holding(held, _) = state.executors[who].phase.clone() else { return };
        let instance = Arc::clone(&state.instance);
        let current = (instance.generation, instance.attempt) == (held.key.run.generation, held.attempt);
        if instance.status == InstanceStatus::Running && current {
            state.executors[who].phase = Phase::Holding(held, Stage::Open);
            return;
        }
        let why = match instance.status {
            InstanceStatus::Stopping(_) => FenceReason::Stopping,
            _ => FenceReason::Superseded,
        };
        let write_id = state.executors[who].write_id(who, &held);
        if let Some(next) = held.fence(why, held.attempt, &write_id) {
            self.write(state, who, &held, next, None, Stage::Look, answer);
        }
    }

    /// The rows that a reader may take for the shard's: those that agree with its counts.
    pub(super) fn readable(&self, state: &State, who: usize, held: &Shard) -> Vec<Rows> {
        let shard = state.executors[who].shard;
        let settled = |rows: &Rows| {
            let records: u32 = rows.results.iter().map(|times| u32::from(*times)).sum();
            u64::from(records) == held.counts.output || self.fault == Some(Fault::RowsUnsettled)
        };
        let mut all = vec![state.rows[shard], state.former[shard]];
        all.dedup();
        all.retain(settled);
        all
    }

    /// Its rows are read, as one reader sees them.
    pub(super) fn open(&self, state: &mut State, who: usize, rows: Rows) {
        if let Phase::Holding(held, _) = state.executors[who].phase.clone() {
            state.executors[who].phase = Phase::Holding(held, Stage::Work(rows));
        }
    }

    /// The records whose batches are in flight: the first that aren't done.
    pub(super) fn in_flight(&self, held: &Shard) -> Vec<i64> {
        let is_open = |key: &i64| {
            let at = Position::Key(*key);
            let done = held.checkpoint.ranges.iter().any(|range| range.from() <= at && at < range.to());
            held.range.spans(at) && at != held.range.to() && held.checkpoint.prefix <= at && !done
        };
        (0..self.records).filter(is_open).take(IN_FLIGHT).collect()
    }

    /// A batch is done, and committed with its rows.
    pub(super) fn commit(&self, state: &mut State, who: usize, key: i64, answer: Answer) {
        let Phase::Holding(held, Stage::Work(mut rows)) = state.executors[who].phase.clone() else { return };
        let place = usize::try_from(key).unwrap_or(usize::MAX);
        let rejected = self.rejected == Some(key);
        if rejected {
            rows.rejects[place] = 1;
        } else {
            rows.results[place] += 1;
        }
        let counts = Counts { input: 1, output: u64::from(!rejected), rejected: u64::from(rejected) };
        let done = range(key, key + 1);
        let last = self.in_flight(&held) == [key];
        let stamp = self.stamp(state, who, &held);
        let Ok(mut next) = held.commit(&stamp, done, counts, None, last) else { return self.gives_up(state, who) };
        if self.fault == Some(Fault::GapSkipped) && held.range.spans(done.to()) {
            next.checkpoint.prefix = done.to();
            next.checkpoint.ranges.clear();
        }
        match self.fault {
            Some(Fault::CheckpointFirst) => {
                let request = self.owners(state, who, &held, next, None, Stage::Work(rows));
                if self.apply(state, &request) {
                    state.executors[who].phase = Phase::Half(Box::new(request), rows);
                }
            }
            Some(Fault::ResultFirst) => {
                let request = self.owners(state, who, &held, next, None, Stage::Work(rows));
                write_rows(state, request.shard, rows);
                state.executors[who].phase = Phase::Half(Box::new(request), rows);
            }
            _ => self.write(state, who, &held, next, Some(rows), Stage::Work(rows), answer),
        }
    }

    /// Under a fault: the second of two writes.
    pub(super) fn second_half(&self, state: &mut State, who: usize) {
        let Phase::Half(request, rows) = state.executors[who].phase.clone() else { return };
        if let Some(child) = &request.child {
            add_child(state, child);
            self.heard(state, who, &request, true);
        } else if self.fault == Some(Fault::CheckpointFirst) {
            write_rows(state, request.shard, rows);
            self.heard(state, who, &request, true);
        } else {
            self.send(state, who, *request, Answer::Heard);
        }
    }

    /// What is left when a split has taken the rest: the shard is done.
    pub(super) fn close(&self, state: &mut State, who: usize, answer: Answer) {
        let Phase::Holding(held, stage) = state.executors[who].phase.clone() else { return };
        let nothing = Range::new(held.range.to(), held.range.to()).unwrap_or(held.range);
        match held.commit(&self.stamp(state, who, &held), nothing, Counts::default(), None, true) {
            Ok(next) => self.write(state, who, &held, next, None, stage, answer),
            Err(_) => self.gives_up(state, who),
        }
    }

    /// The places where it can be cut.
    pub(super) fn cuts(&self, state: &State, who: usize, held: &Shard) -> Vec<i64> {
        let stamp = self.stamp(state, who, held);
        (0..self.records).filter(|key| held.split(&stamp, Position::Key(*key)).is_ok()).collect()
    }

    /// The rest of it, from `at` on, is cut off.
    pub(super) fn split(&self, state: &mut State, who: usize, at: i64, answer: Answer) {
        let Phase::Holding(held, stage) = state.executors[who].phase.clone() else { return };
        let Ok((parent, child)) = held.split(&self.stamp(state, who, &held), Position::Key(at)) else { return };
        let mut request = self.owners(state, who, &held, parent, None, stage);
        request.child = Some(Arc::new(child));
        if self.fault == Some(Fault::SplitInTwoWrites) {
            let parent = Request { child: None, ..request.clone() };
            if self.apply(state, &parent) {
                let rows = Rows::default();
                state.executors[who].phase = Phase::Half(Box::new(request), rows);
            }
            return;
        }
        self.send(state, who, request, answer);
    }

    pub(super) fn heartbeat(&self, state: &mut State, who: usize, answer: Answer) {
        let Phase::Holding(held, stage) = state.executors[who].phase.clone() else { return };
        match held.heartbeat(&self.stamp(state, who, &held)) {
            Ok(next) => self.write(state, who, &held, next, None, stage, answer),
            Err(_) => self.gives_up(state, who),
        }
    }

    pub(super) fn release(&self, state: &mut State, who: usize, answer: Answer) {
        let Phase::Holding(held, stage) = state.executors[who].phase.clone() else { return };
        match held.release(&self.stamp(state, who, &held)) {
            Ok(next) => self.write(state, who, &held, next, None, stage, answer),
            Err(_) => self.gives_up(state, who),
        }
    }

    pub(super) fn fail(&self, state: &mut State, who: usize, answer: Answer) {
        let Phase::Holding(held, stage) = state.executors[who].phase.clone() else { return };
        let fault = WorkFault::new(FaultKind::Retryable, "a batch failed");
        match held.fail(&self.stamp(state, who, &held), fault, self.backoff_limit, RANDOM) {
            Ok(next) => self.write(state, who, &held, next, None, stage, answer),
            Err(_) => self.gives_up(state, who),
        }
    }

    /// The group's set gets the shard.
    pub(super) fn report(&self, state: &mut State, who: usize) {
        let shard = state.executors[who].shard;
        state.group.done.extend(DoneShard::of(&state.shards[shard]));
        state.executors[who].phase = Phase::Idle;
    }
}
