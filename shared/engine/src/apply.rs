//! Applying a job: its spec becomes a version of its own, from now on.

use std::sync::Arc;

use serde::Serialize;
use shardcron_domain::calendar::{Calendar, Zone};
use shardcron_domain::digest;
use shardcron_domain::ids::{JobName, SpecVersion, Version};
use shardcron_domain::instance::Instance;
use shardcron_domain::job::{CatchUp, JobSpec};
use shardcron_domain::limits::RACES_MAX;
use shardcron_domain::location::Location;
use shardcron_domain::overlap::unslotted_at_edit;
use shardcron_domain::plan::{Job, Overlap, SpecRecord, Suspension};
use shardcron_domain::time::ScheduledTime;
use shardcron_store::{Guard, Item, ItemKey, Put, Transacted};

use crate::Engine;
use crate::error::{EngineError, inconsistent};
use crate::ports::fresh_write_id;
use crate::write::Patience;

/// What applying came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Applied {
    /// The job is new.
    Created,
    /// It was deleted, and is there again, from now on.
    CreatedAgain,
    /// It has a new version of its spec, from now on.
    Changed,
    /// It had this very spec already.
    Unchanged,
}

/// A job's spec under a version, ready to use.
#[derive(Clone)]
pub struct LoadedSpec {
    /// The version.
    pub version: SpecVersion,
    /// The spec.
    pub spec: Arc<JobSpec>,
    /// Its calendar.
    pub calendar: Calendar,
    /// What relative paths are relative to.
    pub base: String,
}

impl Applied {
    /// What another spec than that of the job as it stands comes to.
    fn over(before: Option<&Job>) -> Self {
        match before {
            None => Self::Created,
            Some(job) if job.deleted_at.is_some() => Self::CreatedAgain,
            Some(_) => Self::Changed,
        }
    }
}

impl LoadedSpec {
    /// The job's zone.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        self.calendar.zone()
    }

    /// Where the job's output stands.
    ///
    /// # Errors
    /// When what is stored isn't a location any more.
    pub fn output(&self) -> Result<Location, EngineError> {
        Location::parse(&self.spec.output.objects, &self.base)
            .map_err(|error| EngineError::Inconsistent(error.to_string()))
    }
}

impl Engine {
    /// Checks a job file's text: everything that [`Engine::apply`] checks, without the table.
    ///
    /// # Errors
    /// [`EngineError::Spec`], naming the field.
    pub fn check(&self, text: &str) -> Result<JobSpec, EngineError> {
        let spec = JobSpec::parse(text)?;
        spec.calendar(&self.rules, ScheduledTime::floor(self.clock.now().at).map_err(inconsistent)?)?;
        self.works.for_job(&spec)?;
        Ok(spec)
    }

    /// Applies a job file's text; `base` is the absolute directory that its relative paths are relative to.
    ///
    /// Times that have passed are first planned under the spec that was in force; the new one counts from now on, for
    /// a new job as for a changed one.
    ///
    /// # Errors
    /// [`EngineError::Spec`], naming the field; errors of the store.
    pub async fn apply(&self, text: &str, base: &str) -> Result<(JobSpec, Applied), EngineError> {
        let spec = self.check(text)?;
        spec.check_places(base)?;
        let canonical = spec.to_json();
        let digest = spec_digest(&spec, base);
        for round in 0..RACES_MAX {
            self.pause_after_races(round).await;
            let (before, now, left) = match self.job(&spec.name).await? {
                None => (None, ScheduledTime::floor(self.clock.now().earliest()).map_err(inconsistent)?, None),
                Some(job) if job.spec_digest == digest => return Ok((spec, Applied::Unchanged)),
                Some(job) if job.deleted_at.is_some() => {
                    let now = ScheduledTime::floor(self.clock.now().earliest()).map_err(inconsistent)?;
                    (Some(job), now, None)
                }
                Some(_) => {
                    let stopping = spec.suspend.then_some(CatchUp::None);
                    let up = self.planned_up_to_now(&spec.name, stopping).await?;
                    // Somebody may have applied this very file meanwhile.
                    if up.job.spec_digest == digest {
                        return Ok((spec, Applied::Unchanged));
                    }
                    (Some(up.job), up.now, up.left)
                }
            };
            let (job, applied) = self.next_version(&spec, before.as_ref(), &digest, now)?;
            let record = SpecRecord {
                job: spec.name.clone(),
                version: job.spec,
                since: job.planned_through,
                applied_at: self.clock.now().at,
                spec: canonical.clone(),
                base: base.to_owned(),
            };
            let guard = before.map_or(Guard::Absent, |before| Guard::Version(before.version));
            let token = job.write_id.clone();
            let mut puts =
                vec![Put { item: Item::Job(job), guard }, Put { item: Item::Spec(record), guard: Guard::Absent }];
            puts.extend(left.map(|skip| Put { item: Item::Skip(skip), guard: Guard::Absent }));
            if let Transacted::Applied = self.transact(puts, &token, Patience::Races).await? {
                return Ok((spec, applied));
            }
        }
        Err(EngineError::Unsettled { what: format!("job {}", spec.name), last: None })
    }

    /// What [`Engine::apply`] would come to now; nothing is written.
    ///
    /// # Errors
    /// As [`Engine::apply`].
    pub async fn would_apply(&self, text: &str, base: &str) -> Result<(JobSpec, Applied), EngineError> {
        let spec = self.check(text)?;
        spec.check_places(base)?;
        let digest = spec_digest(&spec, base);
        let applied = match self.job(&spec.name).await? {
            Some(job) if job.spec_digest == digest => Applied::Unchanged,
            before => Applied::over(before.as_ref()),
        };
        Ok((spec, applied))
    }

    fn next_version(
        &self,
        spec: &JobSpec,
        before: Option<&Job>,
        digest: &str,
        now: ScheduledTime,
    ) -> Result<(Job, Applied), EngineError> {
        let start = before.map_or(now, |job| job.start);
        let calendar = spec.calendar(&self.rules, start)?;
        let planned_through = before.map_or(now, |job| job.planned_through.max(now));
        let job = Job {
            name: spec.name.clone(),
            spec: before.map_or(SpecVersion::FIRST, |job| job.spec.next()),
            spec_digest: digest.to_owned(),
            start,
            planned_through,
            window_through: before.and_then(|job| job.window_through),
            next_fire: calendar.after(planned_through),
            suspended: self.suspension(spec, before, planned_through),
            deleted_at: None,
            // A new job's policy counts at once; an edited one when no instance under the former is open.
            overlap: before.map_or_else(|| Overlap::of(spec), |job| job.overlap.clone()),
            unslotted_at: before.and_then(|job| unslotted_at_edit(job, &Overlap::of(spec), self.clock.now())),
            version: before.map_or(Version::FIRST, |job| job.version.next()),
            write_id: fresh_write_id(&*self.random),
        };
        Ok((job, Applied::over(before)))
    }

    /// A spec that says `suspend` suspends the job; one that doesn't ends only what a spec began.
    fn suspension(&self, spec: &JobSpec, before: Option<&Job>, since: ScheduledTime) -> Option<Suspension> {
        let current = before.filter(|job| job.deleted_at.is_none()).and_then(|job| job.suspended.clone());
        match current {
            Some(current) if spec.suspend || !current.by_spec => Some(current),
            _ => spec.suspend.then_some(Suspension { since, note: None, by_spec: true }),
        }
    }

    /// Reads a job.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn job(&self, name: &JobName) -> Result<Option<Job>, EngineError> {
        match self.store.get(&ItemKey::Job(name.clone())).await? {
            Some(Item::Job(job)) => Ok(Some(job)),
            _ => Ok(None),
        }
    }

    /// Reads a version of a job's spec.
    ///
    /// # Errors
    /// [`EngineError::NoJob`]; errors of the store; a spec that can't be read any more.
    pub async fn spec(&self, job: &Job, version: SpecVersion) -> Result<LoadedSpec, EngineError> {
        let key = ItemKey::Spec(job.name.clone(), version);
        let Some(Item::Spec(record)) = self.store.get(&key).await? else {
            return Err(EngineError::Inconsistent(format!("{key} is missing")));
        };
        let spec = JobSpec::parse(&record.spec)?;
        let calendar = spec.calendar(&self.rules, job.start)?;
        Ok(LoadedSpec { version, spec: Arc::new(spec), calendar, base: record.base })
    }

    /// Reads the spec that an instance runs under.
    ///
    /// # Errors
    /// As [`Engine::spec`].
    pub async fn spec_of(&self, instance: &Instance) -> Result<LoadedSpec, EngineError> {
        let name = &instance.id.job;
        let job = self.job(name).await?.ok_or_else(|| EngineError::NoJob(name.clone()))?;
        self.spec(&job, instance.spec).await
    }
}

/// What tells one spec from another: its canonical text, and what its relative paths are relative to.
fn spec_digest(spec: &JobSpec, base: &str) -> String {
    digest::of(format!("{base}\n{}", spec.to_json()))
}
