//! Planning: scheduled times are written down before anything runs.

use shardcron_domain::ids::{InstanceId, JobName};
use shardcron_domain::instance::{Instance, Origin};
use shardcron_domain::limits::TICK_JOBS_MAX;
use shardcron_domain::plan::{Job, PlanStep, calendar_window, plan_step};
use shardcron_domain::time::ScheduledTime;
use shardcron_queue::{Outgoing, QueueName};
use shardcron_store::{Guard, Item, ItemKey, ItemOutcome, Put, Transacted, Written};

use crate::Engine;
use crate::apply::{LoadedSpec, inconsistent};
use crate::error::EngineError;
use crate::events::{self, Event};
use crate::messages::InstanceMessage;
use crate::ports::fresh_write_id;
use crate::write::Patience;
use shardcron_domain::certificate::InstanceName;
use shardcron_domain::time::Duration;

/// What planning came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// Instances written down.
    pub instances: usize,
    /// Scheduled times recorded as skipped.
    pub skipped: u64,
}

/// What a planning step met.
enum Stepped {
    /// It was written.
    Applied { more: bool, planned: Planned },
    /// Nothing has passed.
    UpToDate,
    /// Somebody else planned meanwhile: look again.
    Raced,
}

impl Engine {
    /// One tick: plans all jobs whose next time has come, the earliest first. A job that can't be planned is told of,
    /// and keeps no other from being planned.
    ///
    /// # Errors
    /// Errors of the store on reading the due index.
    pub async fn plan_due(&self) -> Result<Planned, EngineError> {
        let now = ScheduledTime::floor(self.clock.now().earliest()).map_err(inconsistent)?;
        let mut total = Planned::default();
        for (_, name) in self.store.due_jobs(now, TICK_JOBS_MAX).await? {
            match self.plan_job(&name).await {
                Ok(planned) => {
                    total.instances += planned.instances;
                    total.skipped += planned.skipped;
                }
                Err(error) => {
                    self.events
                        .emit(Event::new(events::TROUBLE).with("job", name.as_str()).with("error", error.full_text()));
                }
            }
        }
        Ok(total)
    }

    /// Plans one job up to now.
    ///
    /// # Errors
    /// Errors of the store; a spec that can't be read any more.
    pub async fn plan_job(&self, name: &JobName) -> Result<Planned, EngineError> {
        let mut total = Planned::default();
        loop {
            let Some(job) = self.job(name).await? else { return Ok(total) };
            let spec = self.spec(&job, job.spec).await?;
            match self.plan_once(&job, &spec).await? {
                Stepped::Applied { more, planned } => {
                    total.instances += planned.instances;
                    total.skipped += planned.skipped;
                    if !more {
                        return Ok(total);
                    }
                }
                Stepped::UpToDate => return Ok(total),
                Stepped::Raced => {}
            }
        }
    }

    async fn plan_once(&self, job: &Job, spec: &LoadedSpec) -> Result<Stepped, EngineError> {
        let reading = self.clock.now();
        let now = ScheduledTime::floor(reading.earliest()).map_err(inconsistent)?;
        let id = fresh_write_id(&*self.random);
        let Some(step) = plan_step(job, spec.spec.catch_up, &spec.calendar, now, &id) else {
            return Ok(Stepped::UpToDate);
        };
        let mut instances: Vec<Instance> = step
            .instances
            .iter()
            .map(|(at, window)| {
                let id = InstanceId { job: job.name.clone(), at: *at };
                let write_id = fresh_write_id(&*self.random);
                Instance::planned(id, job.spec, Origin::Schedule, *window, reading.at, write_id)
            })
            .collect();
        loop {
            let puts = plan_puts(job, &step, &instances);
            // A step that leaves out what it found there is another request, with a token of its own.
            let token = fresh_write_id(&*self.random);
            match self.transact(puts, &token, Patience::Tries).await? {
                Transacted::Applied => break,
                Transacted::Refused(outcomes) => {
                    if !matches!(outcomes[0], ItemOutcome::Held) {
                        return Ok(Stepped::Raced);
                    }
                    let before = instances.len();
                    let mut outcome = outcomes[1..].iter();
                    // Somebody triggered it before its time was planned: it is there, and that answers for the time.
                    instances.retain(|_| matches!(outcome.next(), Some(ItemOutcome::Held)));
                    if instances.len() == before {
                        return Ok(Stepped::Raced);
                    }
                }
            }
        }
        for instance in &instances {
            let late = reading.at.since(instance.id.at.millis());
            self.events.emit(Event::of_instance(events::PLANNED, &instance.id).with("scheduleDelayMs", late.0));
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
        self.tell_instances(instances.iter().map(|instance| instance.id.clone())).await;
        let planned = Planned { instances: instances.len(), skipped: step.skips.iter().map(|skip| skip.count).sum() };
        Ok(Stepped::Applied { more: step.more, planned })
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

    /// The instance of a job at a calendar time that has come: the one that is there, or a new one. The flag tells
    /// whether it is new.
    ///
    /// # Errors
    /// [`EngineError::NoJob`], [`EngineError::NotOfCalendar`], [`EngineError::Future`]; errors of the store.
    pub async fn ensure_instance(&self, name: &JobName, at: ScheduledTime) -> Result<(Instance, bool), EngineError> {
        let id = InstanceId { job: name.clone(), at };
        if let Some(found) = self.instance(&id).await? {
            return Ok((found, false));
        }
        let job = self.job(name).await?.ok_or_else(|| EngineError::NoJob(name.clone()))?;
        let spec = self.spec(&job, job.spec).await?;
        if !spec.calendar.contains(at) {
            return Err(not_of_calendar(&job, &spec, at));
        }
        let now = self.clock.now();
        if !now.is_surely_after(at.millis()) {
            return Err(EngineError::Future { job: name.clone(), at });
        }
        let window = calendar_window(&job, &spec.calendar, at);
        let write_id = fresh_write_id(&*self.random);
        let instance = Instance::planned(id, job.spec, Origin::Trigger, window, now.at, write_id);
        match self.put(Item::Instance(Box::new(instance.clone())), Guard::Absent, Patience::Tries).await? {
            Written::Lost(found) => match *found {
                Item::Instance(found) => Ok((*found, false)),
                other => Err(inconsistent(format!("{} stands where an instance should", other.key()))),
            },
            Written::Applied | Written::Missing => {
                self.events.emit(Event::of_instance(events::PLANNED, &instance.id).with("trigger", true));
                self.tell_instances(std::iter::once(instance.id.clone())).await;
                Ok((instance, true))
            }
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

fn plan_puts(job: &Job, step: &PlanStep, instances: &[Instance]) -> Vec<Put> {
    let mut puts = vec![Put { item: Item::Job(step.job.clone()), guard: Guard::Version(job.version) }];
    puts.extend(
        instances.iter().map(|instance| Put { item: Item::Instance(Box::new(instance.clone())), guard: Guard::Absent }),
    );
    puts.extend(step.skips.iter().map(|skip| Put { item: Item::Skip(skip.clone()), guard: Guard::Absent }));
    puts
}

fn not_of_calendar(job: &Job, spec: &LoadedSpec, at: ScheduledTime) -> EngineError {
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
