//! A worker at a step of the instance: each of its calls, in the engine's order.

use std::collections::BTreeSet;
use std::sync::Arc;

use shardcron_domain::certificate::{Certificate, InstanceName, ShardAccount, Standing, Totals};
use shardcron_domain::group::Group;
use shardcron_domain::ids::{GroupNo, Owner, ShardId, ShardKey, Version, WriteId};
use shardcron_domain::instance::{Boundary, Instance, Step, StepClaim};
use shardcron_domain::lease::Claimer;
use shardcron_domain::shard::{Fault as WorkFault, FaultKind, FenceReason, Shard, ShardStatus, Stamp};
use shardcron_domain::time::{Duration, Reading};

use super::{Cut, InstanceModel, State, place_of, whole};
use crate::clock::{LEASE, reading};
use crate::fault::Fault;

/// Where a worker is. The instance in it is as the worker last read or wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It takes up whatever is there.
    #[default]
    Idle,
    /// It has read the instance, and is about to claim the step that is due.
    Claiming(Arc<Instance>),
    /// It is at a step, and about to make this call.
    At(Arc<Instance>, Call),
    /// It has had no answer to the write of this instance, and is about to read; then this.
    Unsure(Arc<Instance>, Call),
    /// It has claimed a shard, and is about to read the instance.
    Look(Arc<Shard>),
    /// It works on a shard, and is about to commit.
    Work(Arc<Shard>),
    /// The shard is done, and it is about to say so to the group.
    ToGroup(Arc<Shard>),
    /// And to the instance, if the group is full.
    ToInstance(Arc<Shard>),
}

/// What a step does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Fan-out: read the manifest.
    ReadManifest,
    /// List the input.
    List,
    /// Put the manifest, if there is none.
    PutManifest(Cut),
    /// Put the group, if there is none.
    PutGroup(Cut),
    /// Put this shard, if there is none, and so on.
    PutShard(Cut, usize),
    /// A later attempt: read the shards, to open them anew.
    ReadForReopen(Cut),
    /// Open these anew.
    Reopen(Cut, Vec<Arc<Shard>>),
    /// Write Running.
    Sharded(Cut),
    /// Finalize or publish: read all shards.
    Account(Step),
    /// Write Publishing.
    Publishing(Arc<Certificate>),
    /// Not all are done: write Running.
    NotFull,
    /// Read what stands in the certificate's place.
    ReadPlace(Arc<Certificate>),
    /// Put the certificate, where this stood.
    PutCertificate(Arc<Certificate>, Option<Arc<Certificate>>),
    /// Write Succeeded.
    Succeeded,
    /// Stopping: read the shards.
    ReadForFence,
    /// Fence these.
    Fence(Vec<Arc<Shard>>),
    /// Write the end.
    End,
    /// Nothing: the step is over, or it was lost.
    Nothing,
}

impl InstanceModel {
    pub(super) fn clock(&self, state: &State, who: usize) -> Reading {
        reading(state.now, state.skew[who])
    }

    pub(super) fn claimer(&self, state: &State, who: usize, version: Version) -> Claimer {
        let name = format!("{who}.{}@{version}", state.workers[who].lives);
        Claimer {
            owner: Owner(name.clone()),
            write_id: WriteId(name),
            now: self.clock(state, who),
            lease: LEASE,
            backoff_limit: self.backoff_limit,
        }
    }

    pub(super) fn stamp(&self, state: &State, who: usize, version: Version) -> Stamp {
        let claimer = self.claimer(state, who, version);
        Stamp { write_id: claimer.write_id, now: claimer.now }
    }

    /// Whether there is a step to take up; and whether it is so by the true clock too.
    pub(super) fn is_due(&self, state: &State, who: usize) -> Option<bool> {
        let instance = self.as_seen(&state.instance);
        let is_due_at = |now: Reading| {
            let claimer = Claimer { now, ..self.claimer(state, who, instance.version) };
            let claim = instance.claim(&claimer, self.deadline);
            matches!(claim, StepClaim::Claimed(..) | StepClaim::Stopped(_)) || self.is_to_stop(state, now)
        };
        is_due_at(self.clock(state, who)).then(|| is_due_at(reading(state.now, 0)))
    }

    /// The instance, under a fault with a set that says too much.
    fn as_seen(&self, instance: &Arc<Instance>) -> Arc<Instance> {
        let mut seen = Arc::clone(instance);
        if self.fault == Some(Fault::PublishUnfinished) {
            Arc::make_mut(&mut seen).groups_done.insert(GroupNo::FIRST);
        }
        seen
    }

    fn is_to_stop(&self, state: &State, now: Reading) -> bool {
        use shardcron_domain::instance::InstanceStatus::{Publishing, Stopping};
        let instance = &state.instance;
        let past = instance.is_past_deadline(now);
        matches!(instance.status, Stopping(_))
            || (past && !instance.status.is_terminal() && instance.status != Publishing)
    }

    /// The claim is written; or that the instance is stopped.
    pub(super) fn claim(&self, state: &mut State, who: usize, heard: bool) {
        use shardcron_domain::instance::{FailReason, InstanceStatus, Outcome};
        let Phase::Claiming(read) = state.workers[who].phase.clone() else { return };
        if let InstanceStatus::Stopping(_) = read.status {
            state.workers[who].phase = Phase::At(read, Call::ReadForFence);
            return;
        }
        let claimer = self.claimer(state, who, read.version);
        if read.status != InstanceStatus::Publishing && read.is_past_deadline(claimer.now) {
            let stamp = Stamp { write_id: claimer.write_id, now: claimer.now };
            let Ok(next) = read.stop(Outcome::Failed(FailReason::DeadlineExceeded), &stamp) else {
                return self.drop_it(state, who);
            };
            return self.write(state, who, &read, next, Call::ReadForFence, heard);
        }
        let (next, call) = match self.as_seen(&read).claim(&claimer, self.deadline) {
            StepClaim::Claimed(Step::FanOut, next) if self.fault == Some(Fault::BoundaryNotFixed) => (next, Call::List),
            StepClaim::Claimed(Step::FanOut, next) => (next, Call::ReadManifest),
            StepClaim::Claimed(step, next) => (next, Call::Account(step)),
            StepClaim::Stopped(next) => (next, Call::ReadForFence),
            _ => return self.drop_it(state, who),
        };
        self.write(state, who, &read, *next, call, heard);
    }

    pub(super) fn drop_it(&self, state: &mut State, who: usize) {
        state.workers[who].phase = Phase::Idle;
    }

    /// Writes the instance on condition of the version that was read.
    fn write(&self, state: &mut State, who: usize, read: &Instance, next: Instance, then: Call, heard: bool) {
        let unconditioned = self.fault == Some(Fault::StepUnconditioned) && read.lease.is_some();
        let holds = state.instance.version == read.version || unconditioned;
        let next = Arc::new(next);
        if holds {
            state.instance = Arc::clone(&next);
        }
        state.workers[who].phase = match (heard, holds, then) {
            (false, _, then) => {
                state.budget.spend(|budget| &mut budget.unheard);
                Phase::Unsure(next, then)
            }
            (true, true, Call::Nothing) | (true, false, _) => Phase::Idle,
            (true, true, then) => Phase::At(next, then),
        };
    }

    /// No answer: the instance is read, and the same write would be refused if it isn't there.
    pub(super) fn check(&self, state: &mut State, who: usize) {
        let Phase::Unsure(written, then) = state.workers[who].phase.clone() else { return };
        let applied = written.write_id == state.instance.write_id && written.version <= state.instance.version;
        state.workers[who].phase = match then {
            _ if !applied => Phase::Idle,
            Call::Nothing => Phase::Idle,
            then => Phase::At(written, then),
        };
    }

    /// The step fails, for a reason that another try may mend.
    pub(super) fn fail(&self, state: &mut State, who: usize) {
        let Phase::At(held, _) = state.workers[who].phase.clone() else { return };
        let stamp = self.stamp(state, who, held.version);
        let fault = WorkFault::new(FaultKind::Retryable, "a step failed");
        match held.step_failed(&stamp, fault, self.backoff_limit, 999) {
            Ok(next) => self.write(state, who, &held, next, Call::Nothing, true),
            Err(_) => self.drop_it(state, who),
        }
    }

    /// The next call of the step.
    pub(super) fn call(&self, state: &mut State, who: usize, heard: bool) {
        let Phase::At(held, call) = state.workers[who].phase.clone() else { return };
        let stamp = self.stamp(state, who, held.version);
        let place = place_of(held.generation);
        let then = match call {
            Call::ReadManifest => match state.runs[place].manifest {
                Some(cut) if held.boundary.as_ref().is_some_and(|boundary| boundary.digest != cut.digest()) => {
                    return self.fail(state, who);
                }
                Some(cut) => Call::PutGroup(cut),
                None => Call::List,
            },
            Call::List => Call::PutManifest(state.listing),
            Call::PutManifest(cut) => {
                let manifest = &mut state.runs[place].manifest;
                if self.fault == Some(Fault::BoundaryNotFixed) {
                    *manifest = Some(cut);
                }
                Call::PutGroup(*manifest.get_or_insert(cut))
            }
            Call::PutGroup(cut) => {
                let group = || Arc::new(group_of(&held, cut));
                state.runs[place].group.get_or_insert_with(group);
                Call::PutShard(cut, 0)
            }
            Call::PutShard(cut, number) => {
                let range = cut.ranges()[number];
                let key = ShardKey { run: held.run(), shard: ShardId::numbered(number as u32) };
                let shard = Shard::new(key, range, held.attempt, held.deadline, WriteId("new".into()));
                state.runs[place].shards[number].get_or_insert_with(|| Arc::new(shard));
                match number + 1 < cut.ranges().len() {
                    true => Call::PutShard(cut, number + 1),
                    false if held.attempt.0 > 1 => Call::ReadForReopen(cut),
                    false => Call::Sharded(cut),
                }
            }
            Call::ReadForReopen(cut) => Call::Reopen(cut, state.runs[place].all().cloned().collect()),
            Call::Reopen(cut, mut todo) => match todo.pop() {
                None => Call::Sharded(cut),
                Some(read) => {
                    let next = self.reopened(&held, &read);
                    self.put_shard(state, &read, next, &mut todo);
                    Call::Reopen(cut, todo)
                }
            },
            Call::Sharded(cut) => {
                let next = held.sharded(&stamp, boundary_of(cut), Duration::ZERO);
                return self.written(state, who, &held, next.ok(), Call::Nothing, heard);
            }
            Call::Account(step) => {
                let shards: Vec<Shard> = state.runs[place].all().map(|shard| (**shard).clone()).collect();
                let done = shards.iter().all(|shard| shard.status == ShardStatus::Done);
                let trusts = matches!(self.fault, Some(Fault::PublishUnfinished | Fault::CounterForSet));
                let certificate = || Arc::new(certificate_of(&held, &shards));
                match step {
                    _ if !done && !trusts => Call::NotFull,
                    Step::Finalize => Call::Publishing(certificate()),
                    _ => Call::ReadPlace(certificate()),
                }
            }
            Call::NotFull => {
                let next = held.not_full(&stamp, BTreeSet::new());
                return self.written(state, who, &held, next.ok(), Call::Nothing, heard);
            }
            Call::Publishing(certificate) => {
                let next = held.publishing(&stamp, certificate.totals.counts());
                return self.written(state, who, &held, next.ok(), Call::ReadPlace(certificate), heard);
            }
            Call::ReadPlace(ours) => match &state.certificate {
                None => Call::PutCertificate(ours, None),
                Some(found) => match ours.standing_of(found) {
                    _ if self.fault == Some(Fault::CertificateOverwrites) => {
                        Call::PutCertificate(ours, Some(Arc::clone(found)))
                    }
                    Standing::Published => Call::Succeeded,
                    Standing::Replace => Call::PutCertificate(ours, Some(Arc::clone(found))),
                    Standing::Taken => return self.fail(state, who),
                },
            },
            Call::PutCertificate(ours, found) => {
                if state.certificate == found || self.fault == Some(Fault::CertificateOverwrites) {
                    state.certificate = Some(ours);
                    Call::Succeeded
                } else {
                    Call::ReadPlace(ours)
                }
            }
            Call::Succeeded => {
                let next = held.succeeded(&stamp);
                return self.written(state, who, &held, next.ok(), Call::Nothing, heard);
            }
            Call::ReadForFence => {
                let open: Vec<_> =
                    state.runs[place].all().filter(|shard| shard.is_open_for(held.attempt)).cloned().collect();
                if open.is_empty() { Call::End } else { Call::Fence(open) }
            }
            Call::Fence(mut todo) => {
                if let Some(read) = todo.pop() {
                    let next = read.fence(FenceReason::Stopping, held.attempt, &stamp.write_id);
                    self.put_shard(state, &read, next, &mut todo);
                }
                if todo.is_empty() { Call::ReadForFence } else { Call::Fence(todo) }
            }
            Call::End => {
                let next = held.ended(&stamp);
                return self.written(state, who, &held, next.ok(), Call::Nothing, heard);
            }
            Call::Nothing => return self.drop_it(state, who),
        };
        state.workers[who].phase = Phase::At(held, then);
    }

    fn written(&self, state: &mut State, who: usize, held: &Instance, next: Option<Instance>, then: Call, heard: bool) {
        match next {
            Some(next) => self.write(state, who, held, next, then, heard),
            None => self.drop_it(state, who),
        }
    }

    fn reopened(&self, held: &Instance, read: &Shard) -> Option<Shard> {
        let write_id = WriteId(format!("reopen {}", held.attempt));
        if self.fault == Some(Fault::DoneReopened) && read.status == ShardStatus::Done {
            let open = Shard { status: ShardStatus::Pending, ..read.clone() };
            return open.reopen(held.attempt, held.deadline, &write_id);
        }
        read.reopen(held.attempt, held.deadline, &write_id)
    }

    /// Puts a shard on condition of its version; one that has changed is to be looked at again.
    fn put_shard(&self, state: &mut State, read: &Shard, next: Option<Shard>, todo: &mut Vec<Arc<Shard>>) {
        let Some(next) = next else { return };
        let place = place_of(read.key.run.generation);
        let slot = &mut state.runs[place].shards[read.key.shard.number() as usize];
        match slot {
            Some(found) if found.version == read.version => *slot = Some(Arc::new(next)),
            Some(found) => todo.push(Arc::clone(found)),
            None => {}
        }
    }
}

fn boundary_of(cut: Cut) -> Boundary {
    let shards = cut.ranges().len() as u32;
    Boundary { manifest: "m".into(), digest: cut.digest().into(), shards, objects: 1, bytes: 1, whole: whole() }
}

fn group_of(held: &Instance, cut: Cut) -> Group {
    Group {
        run: held.run(),
        no: GroupNo::FIRST,
        size: cut.ranges().len() as u32,
        done: BTreeSet::new(),
        page: String::new(),
        page_digest: cut.digest().into(),
        version: Version::FIRST,
        write_id: WriteId("new".into()),
    }
}

fn certificate_of(held: &Instance, shards: &[Shard]) -> Certificate {
    let accounts: Vec<ShardAccount> = shards.iter().map(ShardAccount::of).collect();
    Certificate {
        instance: InstanceName(held.id.clone()),
        generation: held.generation,
        manifest_digest: held.boundary.as_ref().map_or_else(String::new, |boundary| boundary.digest.clone()),
        parts: Vec::new(),
        totals: Totals::of(&accounts),
        shards: accounts,
    }
}
