//! Planning: scheduled times are written down before anything runs.

use std::collections::BTreeSet;

use shardcron_domain::certificate::InstanceName;
use shardcron_domain::ids::{InstanceId, JobName, Version, WriteId};
use shardcron_domain::instance::{Instance, InstanceStatus, Origin, Outcome, WaitingFor};
use shardcron_domain::job::CatchUp;
use shardcron_domain::limits::OPEN_LOOK_MAX;
use shardcron_domain::overlap::{Seen, comes_into_force, has_settled, unslotted_at};
use shardcron_domain::plan::{Job, NewInstance, Overlap, PlanContext, PlanStep, plan_step};
use shardcron_domain::slot::Slot;
use shardcron_domain::time::{Duration, Millis, ScheduledTime};
use shardcron_queue::{Outgoing, QueueName};
use shardcron_store::{Guard, Item, ItemKey, ItemOutcome, Put, Transacted};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::{EngineError, inconsistent};
use crate::events::{self, Event};
use crate::messages::InstanceMessage;
use crate::ports::{fresh_write_id, stamp};
use crate::write::Patience;

/// What planning came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// Instances written down.
    pub instances: usize,
    /// Scheduled times recorded as skipped.
    pub skipped: u64,
    /// Scheduled times of the recent past that nothing answers for, of the job that was looked at for that.
    pub missed: u64,
    /// Whether times that have passed are still to be planned, and can be at once.
    pub more: bool,
}

impl Planned {
    /// Adds what one step came to.
    pub(crate) fn add(&mut self, step: Self) {
        self.instances += step.instances;
        self.skipped += step.skipped;
    }
}

/// What a planning step met.
pub(crate) enum Stepped {
    /// It was written.
    Applied { more: bool, planned: Planned },
    /// Nothing has passed.
    UpToDate,
    /// Somebody else planned meanwhile: look again.
    Raced,
}

impl Engine {
    /// Plans one job up to now.
    ///
    /// # Errors
    /// Errors of the store; a spec that can't be read any more.
    pub async fn plan_job(&self, name: &JobName) -> Result<Planned, EngineError> {
        self.plan_job_as(name, None, None).await
    }

    /// Plans one job up to and with `through` at least, or up to now: what is about a time of the past needs that time
    /// to be planned, and not all that a job far behind has after it.
    ///
    /// # Errors
    /// As [`Engine::plan_job`].
    pub(crate) async fn plan_job_through(
        &self,
        name: &JobName,
        through: Option<ScheduledTime>,
    ) -> Result<Planned, EngineError> {
        self.plan_job_as(name, through, None).await
    }

    /// As [`Engine::plan_job_through`]; with a `catch_up` that counts in the place of the spec's.
    pub(crate) async fn plan_job_as(
        &self,
        name: &JobName,
        through: Option<ScheduledTime>,
        catch_up: Option<CatchUp>,
    ) -> Result<Planned, EngineError> {
        let mut total = Planned::default();
        loop {
            match self.plan_step_of(name, through, catch_up).await? {
                Stepped::Applied { more, planned } => {
                    total.add(planned);
                    if !more {
                        return Ok(total);
                    }
                }
                Stepped::UpToDate => return Ok(total),
                Stepped::Raced => {}
            }
        }
    }

    /// One planning step of a job, unless it is planned through `through` already.
    pub(crate) async fn plan_step_of(
        &self,
        name: &JobName,
        through: Option<ScheduledTime>,
        catch_up: Option<CatchUp>,
    ) -> Result<Stepped, EngineError> {
        let Some(job) = self.job(name).await? else { return Ok(Stepped::UpToDate) };
        if job.deleted_at.is_some() || through.is_some_and(|through| through <= job.planned_through) {
            return Ok(Stepped::UpToDate);
        }
        let spec = self.spec(&job, job.spec).await?;
        self.plan_once(&job, &spec, catch_up.unwrap_or(spec.spec.catch_up)).await
    }

    async fn plan_once(&self, job: &Job, spec: &LoadedSpec, catch_up: CatchUp) -> Result<Stepped, EngineError> {
        let reading = self.clock.now();
        let now = ScheduledTime::floor(reading.earliest()).map_err(inconsistent)?;
        let (overlap, former) = self.overlap_in_force(job, spec).await?;
        let slot = self.slot_of(&overlap).await?;
        let mut existing = BTreeSet::new();
        loop {
            // A step that leaves out what it found there is another request, with an id of its own.
            let write_id = fresh_write_id(&*self.random);
            let context = PlanContext {
                job,
                spec: &spec.spec,
                catch_up,
                calendar: &spec.calendar,
                overlap: &overlap,
                slot: slot.as_ref(),
                existing: &existing,
                now,
                write_id: &write_id,
            };
            let Some(step) = plan_step(&context) else {
                self.mend_next_fire(job, spec).await?;
                return Ok(Stepped::UpToDate);
            };
            // The slot knows an instance that this step would make: the job was read before it was planned or asked for.
            let known = |new: &NewInstance| step.replaced.iter().any(|id| id.job == job.name && id.at == new.at);
            if let Some(known) = step.instances.iter().find(|new| known(new)) {
                existing.insert(known.at);
                continue;
            }
            let write = self.plan_puts(job, &step, slot.as_ref(), former.as_ref()).await?;
            match self.transact(write.puts, &write_id, Patience::Tries).await? {
                Transacted::Applied => {
                    self.tell_planned(job, &step, &write.started).await;
                    let skipped = step.skips.iter().map(|skip| skip.count).sum();
                    return Ok(Stepped::Applied {
                        more: step.more,
                        planned: Planned { instances: step.instances.len(), skipped, ..Planned::default() },
                    });
                }
                Transacted::Refused(outcomes) => {
                    // Somebody triggered it before its time was planned: it is there, and that answers for the time.
                    let there = step.instances.iter().zip(&outcomes[1..]).filter_map(|(instance, outcome)| {
                        (!matches!(outcome, ItemOutcome::Held)).then_some(instance.at)
                    });
                    let before = existing.len();
                    existing.extend(there);
                    if !matches!(outcomes[0], ItemOutcome::Held) || existing.len() == before {
                        return Ok(Stepped::Raced);
                    }
                }
            }
        }
    }

    /// Writes a job's next time anew where the zone's rules say another one by now. What has been planned stays: times
    /// are instants, and planning goes on from the last one.
    async fn mend_next_fire(&self, job: &Job, spec: &LoadedSpec) -> Result<(), EngineError> {
        let next_fire = spec.calendar.after(job.planned_through);
        if next_fire == job.next_fire || job.deleted_at.is_some() {
            return Ok(());
        }
        let write_id = fresh_write_id(&*self.random);
        let next = Job { next_fire, version: job.version.next(), write_id, ..job.clone() };
        self.put(next.into(), Guard::Version(job.version), Patience::Tries).await?;
        Ok(())
    }

    /// Writes the next time of every job anew where the zones' rules say another one by now: for a start with newer
    /// rules, after which a job might else be looked at only when the old ones say so. Reads all jobs. A job that can't
    /// be read any more is told of, and keeps no other from being mended.
    ///
    /// # Errors
    /// Errors of the store on reading the jobs.
    pub async fn mend_all_next_fires(&self) -> Result<(), EngineError> {
        for job in self.all_jobs().await?.into_iter().filter(|job| job.deleted_at.is_none()) {
            let mended = match self.spec(&job, job.spec).await {
                Ok(spec) => self.mend_next_fire(&job, &spec).await,
                Err(error) => Err(error),
            };
            if let Err(error) = mended {
                self.tell_trouble_with(&job.name, &error);
            }
        }
        Ok(())
    }

    /// What one planning step writes: the job first, then the instances, in the order of the step.
    async fn plan_puts(
        &self,
        job: &Job,
        step: &PlanStep,
        slot: Option<&Slot>,
        former: Option<&Slot>,
    ) -> Result<PlanWrite, EngineError> {
        let now = self.clock.now();
        let makes = !step.instances.is_empty();
        let unslotted_at = unslotted_at(job.unslotted_at, &step.job.overlap, makes, now);
        let next = Job { unslotted_at, ..step.job.clone() };
        let mut puts = vec![Put { item: next.into(), guard: Guard::Version(job.version) }];
        let mut started = Vec::new();
        for new in &step.instances {
            let id = InstanceId { job: job.name.clone(), at: new.at };
            let write_id = fresh_write_id(&*self.random);
            let mut instance = Instance::planned(id, job.spec, Origin::Schedule, new.window, now.at, write_id);
            instance.slot = step.job.overlap.slot.clone();
            if new.waits {
                instance.status = InstanceStatus::Waiting(WaitingFor::Slot);
            } else {
                started.push(instance.id.clone());
            }
            puts.push(Put { item: instance.into(), guard: Guard::Absent });
        }
        puts.extend(step.skips.iter().map(|skip| Put { item: Item::Skip(skip.clone()), guard: Guard::Absent }));
        if let Some(next) = &step.slot {
            puts.push(slot_put(next, slot));
        }
        if let Some(former) = former {
            // Written as it is: nobody may come to the former slot while its policy ends.
            let same = former.changed(&fresh_write_id(&*self.random));
            puts.push(slot_put(&same, Some(former)));
        }
        if let Some(by) = step.instances.last() {
            let by = InstanceId { job: job.name.clone(), at: by.at };
            puts.extend(self.replacing_puts(&step.replaced, &by).await?);
        }
        Ok(PlanWrite { puts, started })
    }

    /// Stops these instances in the same transaction as their replacer is written in; one that is publishing, or has
    /// ended, is let be.
    pub(crate) async fn replacing_puts(
        &self,
        replaced: &[InstanceId],
        by: &InstanceId,
    ) -> Result<Vec<Put>, EngineError> {
        let mut puts = Vec::new();
        for id in replaced {
            let Some(instance) = self.instance(id).await? else { continue };
            let outcome = Outcome::Replaced { by: by.clone() };
            if let Ok(next) = instance.stop(outcome, &stamp(&*self.clock, &*self.random)) {
                puts.push(Put { item: next.into(), guard: Guard::Version(instance.version) });
            }
        }
        Ok(puts)
    }

    async fn tell_planned(&self, job: &Job, step: &PlanStep, started: &[InstanceId]) {
        let now = self.clock.now().at;
        for new in &step.instances {
            let id = InstanceId { job: job.name.clone(), at: new.at };
            let late = now.since(new.at.millis());
            self.events.emit(
                Event::of_instance(events::PLANNED, &id)
                    .with("scheduleDelayMs", late.0.max(0))
                    .with("waits", new.waits),
            );
        }
        for skip in &step.skips {
            self.events.emit(
                Event::new(events::SKIPPED)
                    .with("job", job.name.as_str())
                    .with("from", skip.from.to_string())
                    .with("to", skip.to.to_string())
                    .with("count", skip.count)
                    .with("reason", format!("{:?}", skip.reason)),
            );
        }
        self.tell_instances(started.iter().chain(&step.replaced).cloned()).await;
    }

    /// The overlap policy that an instance comes to run under: the spec's, once no instance of the job is open under the
    /// former one; until then the former. With the former slot, if this is what leaves it.
    pub(crate) async fn overlap_in_force(
        &self,
        job: &Job,
        spec: &LoadedSpec,
    ) -> Result<(Overlap, Option<Slot>), EngineError> {
        let wanted = Overlap::of(&spec.spec);
        if wanted == job.overlap || (wanted.slot.is_some() && wanted.slot == job.overlap.slot) {
            // Another policy on the same slot sees the same holder.
            return Ok((wanted, None));
        }
        match self.slot_of(&job.overlap).await? {
            None if wanted.slot.is_some() => {
                // Read after the job was: what is made later is refused by its version.
                let now = self.clock.now();
                let begins = has_settled(job.unslotted_at, now)
                    && comes_into_force(job.unslotted_at, now, self.unslotted_of(&job.name).await?);
                Ok((if begins { wanted } else { job.overlap.clone() }, None))
            }
            None => Ok((wanted, None)),
            Some(former) => {
                let ours = |id: &InstanceId| id.job == job.name;
                let open = former.holder.iter().chain(&former.waiting).any(ours);
                if open { Ok((job.overlap.clone(), None)) } else { Ok((wanted, Some(former))) }
            }
        }
    }

    /// What the open index shows of a job's instances without a slot, each confirmed by a consistent read. Those of
    /// backfills never have one, and are let be.
    async fn unslotted_of(&self, name: &JobName) -> Result<Seen, EngineError> {
        let open = self.store.open_instances(Millis(i64::MAX), OPEN_LOOK_MAX).await?;
        let is_whole = open.len() < OPEN_LOOK_MAX;
        for (_, id) in open.into_iter().filter(|(_, id)| id.job == *name) {
            let is_unslotted = |instance: &Instance| {
                let backfilled = matches!(instance.origin, Origin::Backfill { .. });
                !instance.status.is_terminal() && instance.slot.is_none() && !backfilled
            };
            if self.instance(&id).await?.as_ref().is_some_and(is_unslotted) {
                return Ok(Seen::Open);
            }
        }
        Ok(if is_whole { Seen::NoneOpen } else { Seen::CutOff })
    }

    /// Reads a policy's slot; one that nobody has written yet is free.
    pub(crate) async fn slot_of(&self, overlap: &Overlap) -> Result<Option<Slot>, EngineError> {
        let Some(key) = &overlap.slot else { return Ok(None) };
        match self.store.get(&ItemKey::Slot(key.clone())).await? {
            Some(Item::Slot(slot)) => Ok(Some(self.mend_slot(slot).await?)),
            // Version 0 stands for no item: the first write of it is conditioned on that.
            _ => Ok(Some(Slot { version: NO_SLOT, ..Slot::free(key.clone(), WriteId(String::new())) })),
        }
    }

    /// Sends a message for each of these instances. A message is a hint: one that can't be sent is only told of.
    pub(crate) async fn tell_instances(&self, ids: impl Iterator<Item = InstanceId>) {
        let messages: Vec<Outgoing> = ids
            .filter_map(|id| serde_json::to_string(&InstanceMessage { instance: InstanceName(id) }).ok())
            .map(|body| Outgoing { body, delay: Duration::ZERO })
            .collect();
        if messages.is_empty() {
            return;
        }
        if let Err(error) = self.queue.send(QueueName::Instances, messages).await {
            self.events.emit(Event::new(events::TROUBLE).with("error", error.to_string()));
        }
    }

    /// The latest calendar time of a job that has come.
    ///
    /// # Errors
    /// [`EngineError::NoJob`], [`EngineError::NothingDue`]; errors of the store.
    pub async fn latest_due(&self, name: &JobName) -> Result<ScheduledTime, EngineError> {
        let job = self.job(name).await?.ok_or_else(|| EngineError::NoJob(name.clone()))?;
        let spec = self.spec(&job, job.spec).await?;
        let now = ScheduledTime::floor(self.clock.now().earliest()).map_err(inconsistent)?;
        spec.calendar.before(now).ok_or_else(|| EngineError::NothingDue {
            job: name.clone(),
            first: spec.calendar.after(now).map_or_else(|| "never".to_owned(), |first| first.to_string()),
        })
    }

    /// Reads an instance.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>, EngineError> {
        match self.store.get(&ItemKey::Instance(id.clone())).await? {
            Some(Item::Instance(instance)) => Ok(Some(*instance)),
            _ => Ok(None),
        }
    }
}

/// The version of a slot that isn't written yet.
const NO_SLOT: Version = Version(0);

/// Puts a slot in the place of the one that was read.
pub(crate) fn slot_put(next: &Slot, before: Option<&Slot>) -> Put {
    let guard = match before {
        Some(before) if before.version != NO_SLOT => Guard::Version(before.version),
        _ => Guard::Absent,
    };
    Put { item: next.clone().into(), guard }
}

/// What a planning step writes, and which instances can start at once.
struct PlanWrite {
    puts: Vec<Put>,
    started: Vec<InstanceId>,
}

pub(crate) fn not_of_calendar(job: &Job, spec: &LoadedSpec, at: ScheduledTime) -> EngineError {
    let near: Vec<String> = [spec.calendar.before(at), spec.calendar.after(at)]
        .into_iter()
        .flatten()
        .map(|time| {
            time.timestamp()
                .to_zoned_datetime(spec.zone().time_zone().clone())
                .strftime("%Y-%m-%dT%H:%M:%S%:z")
                .to_string()
        })
        .collect();
    EngineError::NotOfCalendar {
        job: job.name.clone(),
        at,
        schedule: spec.spec.schedule.clone(),
        zone: spec.spec.time_zone.clone(),
        near: near.join(" and "),
    }
}
