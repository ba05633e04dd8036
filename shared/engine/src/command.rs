//! Commands: what people and programs ask of a job or an instance.
//!
//! One about an instance can name the generation and attempt that it is about, and does nothing to another. A trigger
//! ([`crate::trigger`]) is known by its time, and a backfill ([`crate::backfill`]) by its id. So each of these can be
//! delivered twice and acts once. The commands about a job say how it is to be: one delivered again makes it so again.

use shardcron_domain::backfill::{Backfill, BackfillRequest, Only, Order};
use shardcron_domain::ids::{Attempt, Generation, InstanceId, JobName, SpecVersion};
use shardcron_domain::instance::{Instance, InstanceStatus, Origin, Outcome, SkipReason};
use shardcron_domain::job::CatchUp;
use shardcron_domain::limits::{BACKFILL_ACTIVE_DEFAULT, RACES_MAX};
use shardcron_domain::plan::{Job, SkippedRange, SpecRecord, Suspension};
use shardcron_domain::time::ScheduledTime;
use shardcron_store::{Guard, Item, Put, Transacted, Written};

use crate::Engine;
use crate::error::{EngineError, inconsistent};
use crate::ports::{fresh_write_id, stamp};
use crate::slots::Admitted;
use crate::write::Patience;

/// The generation and attempt that a command is about; it does nothing to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expect {
    /// The generation.
    pub generation: Generation,
    /// The attempt.
    pub attempt: Attempt,
}

impl Expect {
    /// What an instance is at.
    #[must_use]
    pub fn of(instance: &Instance) -> Self {
        Self { generation: instance.generation, attempt: instance.attempt }
    }
}

impl Engine {
    /// Cancels an instance that hasn't ended, in the name of `by`. One that is cancelled already stays so.
    ///
    /// # Errors
    /// [`EngineError::NoInstance`], [`EngineError::Superseded`]; [`EngineError::Instance`] when it has ended
    /// otherwise, or is publishing.
    pub async fn cancel(&self, id: &InstanceId, expect: Option<Expect>, by: &str) -> Result<Instance, EngineError> {
        for round in 0..RACES_MAX {
            self.pause_after_races(round).await;
            let instance = self.expected(id, expect).await?;
            let cancelled = Outcome::Cancelled { by: by.to_owned() };
            let is_already = match &instance.status {
                InstanceStatus::Cancelled { .. } => true,
                InstanceStatus::Stopping(outcome) => matches!(outcome, Outcome::Cancelled { .. }),
                _ => false,
            };
            if is_already {
                return Ok(instance);
            }
            let next = instance.stop(cancelled, &stamp(&*self.clock, &*self.random))?;
            let put = self.put(next.clone().into(), Guard::Version(instance.version), Patience::Races);
            if put.await? == Written::Applied {
                self.emit_stopping(&next);
                self.finish_stopping(next).await?;
                return self.instance(id).await?.ok_or_else(|| EngineError::NoInstance(id.clone()));
            }
        }
        Err(EngineError::Unsettled { what: id.to_string(), last: None })
    }

    /// Begins another attempt of a failed or cancelled instance, on the results that it has.
    ///
    /// # Errors
    /// [`EngineError::NoInstance`], [`EngineError::Superseded`], [`EngineError::Instance`] when it hasn't failed or
    /// been cancelled, [`EngineError::Overlap`], [`EngineError::QueueFull`].
    pub async fn retry(&self, id: &InstanceId, expect: Option<Expect>) -> Result<Instance, EngineError> {
        self.begin_again(id, expect, |instance, stamp, _, admitted| {
            instance.retried(stamp, admitted.slot.clone(), admitted.waits)
        })
        .await
    }

    /// Begins an ended instance from scratch, as another generation and under the spec in force.
    ///
    /// # Errors
    /// As [`Engine::retry`].
    pub async fn rerun(&self, id: &InstanceId, expect: Option<Expect>) -> Result<Instance, EngineError> {
        self.begin_again(id, expect, |instance, stamp, spec, admitted| {
            instance.rerun(stamp, spec, admitted.slot.clone(), admitted.waits)
        })
        .await
    }

    async fn begin_again(
        &self,
        id: &InstanceId,
        expect: Option<Expect>,
        decide: impl Fn(
            &Instance,
            &shardcron_domain::shard::Stamp,
            SpecVersion,
            &Admitted,
        ) -> Result<Instance, shardcron_domain::instance::InstanceError>,
    ) -> Result<Instance, EngineError> {
        for round in 0..RACES_MAX {
            self.pause_after_races(round).await;
            let instance = self.expected(id, expect).await?;
            if instance.is_unannounced() {
                // With the new run, what remembers the end of the last one is gone.
                self.announce_end(&instance).await?;
                continue;
            }
            let job = self.live_job(&id.job).await?;
            let spec = self.spec(&job, job.spec).await?;
            let backfilled = matches!(instance.origin, Origin::Backfill { .. });
            let admitted = if backfilled {
                Admitted { slot: None, waits: false, puts: Vec::new(), replaced: Vec::new() }
            } else {
                // Refused by its state before it is refused by the slot.
                let free = Admitted { slot: None, waits: false, puts: Vec::new(), replaced: Vec::new() };
                decide(&instance, &stamp(&*self.clock, &*self.random), job.spec, &free)?;
                self.admission(&job, &spec, id).await?
            };
            let next = decide(&instance, &stamp(&*self.clock, &*self.random), job.spec, &admitted)?;
            let guard = Guard::Version(instance.version);
            if let Some(Written::Applied) = self.write_admitted(&next, guard, admitted).await? {
                return Ok(next);
            }
        }
        Err(EngineError::Unsettled { what: id.to_string(), last: None })
    }

    async fn expected(&self, id: &InstanceId, expect: Option<Expect>) -> Result<Instance, EngineError> {
        let instance = self.instance(id).await?.ok_or_else(|| EngineError::NoInstance(id.clone()))?;
        match expect {
            Some(expect) if expect != Expect::of(&instance) => Err(EngineError::Superseded {
                instance: id.clone(),
                generation: instance.generation,
                attempt: instance.attempt,
            }),
            _ => Ok(instance),
        }
    }

    /// A job that is there and not deleted.
    ///
    /// # Errors
    /// [`EngineError::NoJob`]; errors of the store.
    pub async fn live_job(&self, name: &JobName) -> Result<Job, EngineError> {
        let job = self.job(name).await?.filter(|job| job.deleted_at.is_none());
        job.ok_or_else(|| EngineError::NoJob(name.clone()))
    }

    /// Suspends a job: its times from now on are recorded as skips, and so are those that were missed before, whatever its
    /// `catchUp`. Instances that are at work go on.
    ///
    /// # Errors
    /// [`EngineError::NoJob`]; errors of the store.
    pub async fn suspend(&self, name: &JobName, note: Option<String>) -> Result<Job, EngineError> {
        self.change_job(name, Some(CatchUp::None), |job, now| {
            let suspension = Suspension { since: now, note: note.clone(), by_spec: false };
            job.suspended.is_none().then(|| Job { suspended: Some(suspension), ..job.clone() })
        })
        .await
        .map(|(_, after)| after)
    }

    /// Resumes a suspended job: its times from now on run again. Returns the suspension that ended, if there was one;
    /// the skips of its span stay recorded.
    ///
    /// # Errors
    /// [`EngineError::NoJob`]; errors of the store.
    pub async fn resume(&self, name: &JobName) -> Result<Option<(Suspension, ScheduledTime)>, EngineError> {
        let (before, after) = self
            .change_job(name, None, |job, _| job.suspended.is_some().then(|| Job { suspended: None, ..job.clone() }))
            .await?;
        Ok(before.suspended.map(|suspension| (suspension, after.planned_through)))
    }

    /// Resumes a suspended job, and catches up the span of its suspension as asked for: by a backfill, so that the
    /// times keep the reason for which they were skipped.
    ///
    /// # Errors
    /// As [`Engine::resume`] and [`Engine::backfill`].
    pub async fn resume_and_catch_up(
        &self,
        name: &JobName,
        catch_up: CatchUp,
    ) -> Result<(Option<Suspension>, Option<Backfill>), EngineError> {
        let Some((suspension, resumed)) = self.resume(name).await? else { return Ok((None, None)) };
        let job = self.live_job(name).await?;
        let history = self.history(&job).await?;
        let behind = ScheduledTime::from_second(resumed.as_second() + 1).map_err(inconsistent)?;
        let first = history.after(suspension.since, false).filter(|first| *first < behind);
        let last = history.before(behind, false).filter(|last| *last > suspension.since);
        let (Some(first), Some(last)) = (first, last) else { return Ok((Some(suspension), None)) };
        let from = match catch_up {
            CatchUp::None => return Ok((Some(suspension), None)),
            CatchUp::Latest => last,
            CatchUp::All => first,
        };
        let request = BackfillRequest {
            from,
            to: behind,
            only: Only::Missing,
            order: Order::Oldest,
            max_active: BACKFILL_ACTIVE_DEFAULT,
            per_minute: None,
        };
        let backfill = self.backfill(name, request).await?;
        Ok((Some(suspension), Some(backfill)))
    }

    /// Deletes a job: from now on no times of it are expected, and what was missed before is recorded as skips, whatever its
    /// `catchUp`. Its instances and their results stay, and applying it
    /// again makes it count from then.
    ///
    /// # Errors
    /// [`EngineError::NoJob`]; errors of the store.
    pub async fn delete(&self, name: &JobName) -> Result<(), EngineError> {
        for round in 0..RACES_MAX {
            self.pause_after_races(round).await;
            // Who deletes a job doesn't want it to catch up what was missed.
            let UpToNow { job, now: at, left } = self.planned_up_to_now(name, Some(CatchUp::None)).await?;
            let planned_through = job.planned_through.max(at);
            let next = Job {
                spec: job.spec.next(),
                spec_digest: String::new(),
                planned_through,
                next_fire: None,
                deleted_at: Some(planned_through),
                version: job.version.next(),
                write_id: fresh_write_id(&*self.random),
                ..job.clone()
            };
            let tombstone = SpecRecord {
                job: name.clone(),
                version: next.spec,
                since: planned_through,
                applied_at: self.clock.now().at,
                spec: String::new(),
                base: String::new(),
            };
            let token = next.write_id.clone();
            let mut puts = vec![
                Put { item: next.into(), guard: Guard::Version(job.version) },
                Put { item: Item::Spec(tombstone), guard: Guard::Absent },
            ];
            puts.extend(left.map(|skip| Put { item: Item::Skip(skip), guard: Guard::Absent }));
            if self.transact(puts, &token, Patience::Races).await? == Transacted::Applied {
                return Ok(());
            }
        }
        Err(EngineError::Unsettled { what: format!("job {name}"), last: None })
    }

    /// Plans up to now, with this catch-up if it isn't to be the spec's, and changes the job, on its version. `change` gives
    /// `None` when there is nothing to change. Returns the job before and after.
    async fn change_job(
        &self,
        name: &JobName,
        catch_up: Option<CatchUp>,
        change: impl Fn(&Job, ScheduledTime) -> Option<Job>,
    ) -> Result<(Job, Job), EngineError> {
        for round in 0..RACES_MAX {
            self.pause_after_races(round).await;
            let UpToNow { job, now, left } = self.planned_up_to_now(name, catch_up).await?;
            let Some(next) = change(&job, now) else { return Ok((job.clone(), job)) };
            let next = Job {
                planned_through: job.planned_through.max(now),
                version: job.version.next(),
                write_id: fresh_write_id(&*self.random),
                ..next
            };
            let token = next.write_id.clone();
            let mut puts = vec![Put { item: next.clone().into(), guard: Guard::Version(job.version) }];
            puts.extend(left.map(|skip| Put { item: Item::Skip(skip), guard: Guard::Absent }));
            if self.transact(puts, &token, Patience::Races).await? == Transacted::Applied {
                return Ok((job, next));
            }
        }
        Err(EngineError::Unsettled { what: format!("job {name}"), last: None })
    }

    /// Plans a job up to now, under what is in force, before that is changed. A `catch_up` counts in the place of the
    /// spec's: when a job is being stopped, what was missed is recorded and not run.
    ///
    /// Times that can't be planned now, since their queue is full and all are to be caught up, would be nobody's after
    /// the change: the caller records them as skips in its own write.
    pub(crate) async fn planned_up_to_now(
        &self,
        name: &JobName,
        catch_up: Option<CatchUp>,
    ) -> Result<UpToNow, EngineError> {
        let mut stood_at = None;
        for _ in 0..RACES_MAX {
            self.plan_job_as(name, None, catch_up).await?;
            let job = self.live_job(name).await?;
            let spec = self.spec(&job, job.spec).await?;
            let now = ScheduledTime::floor(self.clock.now().earliest()).map_err(inconsistent)?;
            let Some(from) = spec.calendar.after(job.planned_through).filter(|first| *first <= now) else {
                return Ok(UpToNow { job, now, left: None });
            };
            if stood_at == Some(job.planned_through) {
                let left =
                    spec.calendar.between(from, ScheduledTime::from_second(now.as_second() + 1).map_err(inconsistent)?);
                let (count, to) = left.fold((0, from), |(count, _), time| (count + 1, time));
                let (reason, spec) = (SkipReason::QueueFull, job.spec);
                let left = SkippedRange { job: name.clone(), from, to, count, reason, spec };
                return Ok(UpToNow { job, now, left: Some(left) });
            }
            stood_at = Some(job.planned_through);
        }
        Err(EngineError::Unsettled { what: format!("job {name}"), last: None })
    }
}

/// A job that is planned up to now.
pub(crate) struct UpToNow {
    /// The job.
    pub(crate) job: Job,
    /// Now.
    pub(crate) now: ScheduledTime,
    /// Times up to now that can't be planned, as the skips that they are to become.
    pub(crate) left: Option<SkippedRange>,
}
