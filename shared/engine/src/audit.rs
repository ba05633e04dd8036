//! Audit and explain: what the calendar expected against what the table has.

use std::collections::BTreeMap;

use serde::Serialize;
use shardcron_domain::ids::{InstanceId, JobName};
use shardcron_domain::instance::SkipReason;
use shardcron_domain::invariants::g2_unanswered;
use shardcron_domain::job::CatchUp;
use shardcron_domain::limits::{AUDIT_TIMES_MAX, SETTLE_PAUSE, TICKING};
use shardcron_domain::plan::{Job, SkippedRange};
use shardcron_domain::time::ScheduledTime;
use shardcron_store::{Item, ItemKey};

use crate::Engine;
use crate::error::{EngineError, inconsistent};

/// The account of a job's scheduled times in a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// Times that the calendar says, under the specs in force then.
    pub expected: u64,
    /// Those with an instance, by its state's name.
    pub instances: BTreeMap<&'static str, u64>,
    /// Those with a recorded skip and no instance, by its reason.
    pub skipped: BTreeMap<String, u64>,
    /// Those that have passed too short a time ago to be called missing, or that are held back until a full queue has
    /// room, since all are to be caught up.
    pub pending: u64,
    /// Those with neither: unanswered for.
    pub missing: Vec<ScheduledTime>,
}

/// Why a time of a job ran, waited, was skipped or is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// In a word: `ran`, `running`, `waiting`, `failed`, `skipped`, `missing`, `future`, `pending`, `notOfCalendar`.
    pub verdict: &'static str,
    /// In a sentence.
    pub reason: String,
    /// The row that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

impl Engine {
    /// Compares the calendar with the table for times in `[from, to)`.
    ///
    /// # Errors
    /// [`EngineError::NoJob`]; [`EngineError::TooLong`] over [`AUDIT_TIMES_MAX`] times; errors of the store.
    pub async fn audit(&self, name: &JobName, from: ScheduledTime, to: ScheduledTime) -> Result<Audit, EngineError> {
        let job = self.job(name).await?.ok_or_else(|| EngineError::NoJob(name.clone()))?;
        self.audit_of(&job, from, to).await
    }

    /// The same, of a job as it was read.
    pub(crate) async fn audit_of(
        &self,
        job: &Job,
        from: ScheduledTime,
        to: ScheduledTime,
    ) -> Result<Audit, EngineError> {
        let audit = self.audit_once(job, from, to).await?;
        if audit.missing.is_empty() {
            return Ok(audit);
        }
        // The rows of a planning step become visible one by one: what was only coming isn't missing.
        self.clock.sleep(SETTLE_PAUSE).await;
        self.audit_once(job, from, to).await
    }

    async fn audit_once(&self, job: &Job, from: ScheduledTime, to: ScheduledTime) -> Result<Audit, EngineError> {
        let now = self.clock.now();
        let to = to.min(ScheduledTime::from_second(now.earliest().0.div_euclid(1000) + 1).map_err(inconsistent)?);
        let history = self.history(job).await?;
        let mut expected = Vec::new();
        let mut at = ScheduledTime::from_second(from.as_second() - 1).map_err(inconsistent)?;
        while let Some(next) = history.after(at, false).filter(|next| *next < to) {
            if expected.len() == AUDIT_TIMES_MAX {
                return Err(EngineError::TooLong { what: format!("the range has over {AUDIT_TIMES_MAX} times") });
            }
            expected.push(next);
            at = next;
        }
        let mut audit = Audit { expected: expected.len() as u64, ..Audit::default() };
        let mut answered = std::collections::BTreeSet::new();
        for instance in self.instances_between(&job.name, from, to).await? {
            if expected.binary_search(&instance.id.at).is_ok() {
                *audit.instances.entry(instance.status.name()).or_default() += 1;
                answered.insert(instance.id.at);
            }
        }
        let skips = self.skips_over(job, from, to).await?;
        for time in expected.iter().filter(|time| !answered.contains(time)) {
            if let Some(skip) = skips.iter().find(|skip| skip.from <= *time && *time <= skip.to) {
                *audit.skipped.entry(reason_name(skip.reason)).or_default() += 1;
            }
        }
        let held_back = self.is_held_back(job).await?;
        for time in g2_unanswered(expected.into_iter(), &answered, &skips) {
            if time > job.planned_through && (held_back || now.at.since(time.millis()) < TICKING) {
                audit.pending += 1;
            } else {
                audit.missing.push(time);
            }
        }
        Ok(audit)
    }

    /// Whether planning of a job stands still until those that wait for its slot are fewer.
    async fn is_held_back(&self, job: &Job) -> Result<bool, EngineError> {
        let Some(key) = &job.overlap.slot else { return Ok(false) };
        if job.deleted_at.is_some() || self.spec(job, job.spec).await?.spec.catch_up != CatchUp::All {
            return Ok(false);
        }
        let slot = self.store.get(&ItemKey::Slot(key.clone())).await?;
        // Not only while it is full: between two ticks it may have got room.
        Ok(matches!(slot, Some(Item::Slot(slot)) if !slot.waiting.is_empty()))
    }

    /// The runs of skips that touch `[from, to)`.
    async fn skips_over(
        &self,
        job: &Job,
        from: ScheduledTime,
        to: ScheduledTime,
    ) -> Result<Vec<SkippedRange>, EngineError> {
        // A run that begins before the range may reach into it.
        let mut skips: Vec<SkippedRange> = self.store.skip_at(&job.name, from).await?.into_iter().collect();
        let mut after = None;
        loop {
            let page = self.store.skips(&job.name, from, to, after).await?;
            skips.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(skips);
            }
        }
    }

    /// Says why a time of a job ran, waits, was skipped or is missing, and which row says so.
    ///
    /// # Errors
    /// [`EngineError::NoJob`]; errors of the store.
    pub async fn explain(&self, name: &JobName, at: ScheduledTime) -> Result<Explanation, EngineError> {
        let job = self.job(name).await?.ok_or_else(|| EngineError::NoJob(name.clone()))?;
        let id = InstanceId { job: name.clone(), at };
        let row = |key: String| Some(format!("JOB#{name} / {key}"));
        if let Some(instance) = self.instance(&id).await? {
            return Ok(explain_instance(&instance, row(format!("INST#{at}"))));
        }
        if let Some(skip) = self.store.skip_at(name, at).await? {
            let reason = format!(
                "it was skipped ({}), one of {} times from {} to {}, under version {} of the spec",
                reason_name(skip.reason),
                skip.count,
                skip.from,
                skip.to,
                skip.spec
            );
            return Ok(Explanation { verdict: "skipped", reason, row: row(format!("SKIP#{}", skip.from)) });
        }
        let history = self.history(&job).await?;
        let just_before = ScheduledTime::from_second(at.as_second() - 1).map_err(inconsistent)?;
        if history.after(just_before, false) != Some(at) {
            let near = |time: Option<ScheduledTime>| time.map_or_else(|| "none".to_owned(), |time| time.to_string());
            let (before, after) = (history.before(at, false), history.after(at, false));
            let reason = format!(
                "it isn't a time that the calendar said while the job was there; the nearest are {} and {}",
                near(before),
                near(after)
            );
            return Ok(Explanation { verdict: "notOfCalendar", reason, row: None });
        }
        let now = self.clock.now();
        let (verdict, reason) = if at.millis() > now.at {
            ("future", "it is still to come".to_owned())
        } else if at > job.planned_through {
            let planned = job.planned_through;
            (
                "pending",
                format!("it has passed, and the planner hasn't come to it yet: it has planned through {planned}"),
            )
        } else {
            ("missing", "it was planned, and its row is gone: somebody took it away".to_owned())
        };
        Ok(Explanation { verdict, reason, row: row("JOB".to_owned()) })
    }
}

fn explain_instance(instance: &shardcron_domain::instance::Instance, row: Option<String>) -> Explanation {
    use shardcron_domain::instance::{InstanceStatus, Origin, WaitingFor};
    let (verdict, state) = match &instance.status {
        InstanceStatus::Waiting(WaitingFor::Slot) => ("waiting", "waits for its slot".to_owned()),
        InstanceStatus::Waiting(WaitingFor::Ready) => ("waiting", "waits for its input to be ready".to_owned()),
        InstanceStatus::Succeeded => ("ran", "ran and succeeded".to_owned()),
        InstanceStatus::Failed(reason) => ("failed", format!("failed: {}", reason.describe())),
        InstanceStatus::Cancelled { by } => ("cancelled", format!("was cancelled by {by}")),
        InstanceStatus::Replaced { by } => ("replaced", format!("was replaced by {by}")),
        status => ("running", format!("is {}", status.name())),
    };
    let origin = match &instance.origin {
        Origin::Schedule => "the planner wrote it down".to_owned(),
        Origin::Trigger => "it was triggered".to_owned(),
        Origin::Backfill { id } => format!("backfill {id} began it"),
    };
    let skipped = instance
        .skipped
        .map_or_else(String::new, |reason| format!(", after it had been skipped ({})", reason_name(reason)));
    let planned = instance.planned_at;
    Explanation { verdict, reason: format!("it {state}; {origin} at {planned}{skipped}"), row }
}

/// A reason's name, as rows and commands show it.
#[must_use]
pub fn reason_name(reason: SkipReason) -> String {
    reason.name()
}
