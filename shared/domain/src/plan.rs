//! Planning: which scheduled times become instances, and which become skips, in one step of one job.

use serde::{Deserialize, Serialize};

use crate::calendar::Calendar;
use crate::ids::{JobName, SpecVersion, Version, WriteId};
use crate::instance::{SkipReason, Window};
use crate::job::CatchUp;
use crate::limits::{PLAN_INSTANCES_MAX, PLAN_TIMES_MAX};
use crate::time::{Millis, ScheduledTime};

/// A job as the store holds it: what planning has come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its name.
    pub name: JobName,
    /// The version of its spec in force.
    pub spec: SpecVersion,
    /// SHA-256 of that spec, in hex: applying the same one again changes nothing.
    pub spec_digest: String,
    /// Its start instant, from which `rate(...)` counts.
    pub start: ScheduledTime,
    /// Every scheduled time up to and with this one is answered for.
    pub planned_through: ScheduledTime,
    /// Where the last calendar window ended; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_through: Option<ScheduledTime>,
    /// The next scheduled time; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_fire: Option<ScheduledTime>,
    /// +1 at each write.
    pub version: Version,
    /// Of the last write.
    pub write_id: WriteId,
}

/// A version of a job's spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecRecord {
    /// The job.
    pub job: JobName,
    /// Which version.
    pub version: SpecVersion,
    /// From when it counts: scheduled times after this are under it.
    pub since: ScheduledTime,
    /// When it was applied.
    pub applied_at: Millis,
    /// The spec, as JSON.
    pub spec: String,
    /// The directory that relative paths in it are relative to.
    pub base: String,
}

/// A run of scheduled times without a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRange {
    /// The job.
    pub job: JobName,
    /// The first of them.
    pub from: ScheduledTime,
    /// The last of them.
    pub to: ScheduledTime,
    /// How many.
    pub count: u64,
    /// Why.
    pub reason: SkipReason,
    /// The version of the spec that they stood under.
    pub spec: SpecVersion,
}

/// What one planning step writes, in one transaction on the job's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// Instances to put, in order.
    pub instances: Vec<(ScheduledTime, Window)>,
    /// Skips to record.
    pub skips: Vec<SkippedRange>,
    /// The job afterwards.
    pub job: Job,
    /// Whether times that have passed are still to be planned.
    pub more: bool,
}

/// Plans the scheduled times after `job.planned_through` and up to `now`, as far as one step goes.
///
/// Each calendar time has a window from the calendar time before it, run or skipped, so that windows tile. `None`
/// when nothing has passed.
#[must_use]
pub fn plan_step(
    job: &Job,
    catch_up: CatchUp,
    calendar: &Calendar,
    now: ScheduledTime,
    id: &WriteId,
) -> Option<PlanStep> {
    let mut times = Vec::new();
    let mut more = false;
    let mut at = job.planned_through;
    while let Some(next) = calendar.after(at).filter(|next| *next <= now) {
        let full = times.len() == PLAN_TIMES_MAX || (catch_up == CatchUp::All && times.len() == PLAN_INSTANCES_MAX);
        if full {
            more = true;
            break;
        }
        times.push(next);
        at = next;
    }
    let last = *times.last()?;
    // Unless all are caught up, only the latest runs; and it isn't in this step when more are to come.
    let runs_from = match catch_up {
        CatchUp::All => 0,
        CatchUp::Latest | CatchUp::None => times.len() - usize::from(!more),
    };
    let mut window_start = job.window_through.or_else(|| calendar.before(times[0])).unwrap_or(job.start);
    let mut instances = Vec::new();
    for (place, time) in times.iter().enumerate() {
        if place >= runs_from {
            instances.push((*time, Window { start: window_start, end: *time }));
        }
        window_start = *time;
    }
    let skips = match times[..runs_from] {
        [] => Vec::new(),
        [from, ..] => vec![SkippedRange {
            job: job.name.clone(),
            from,
            to: times[runs_from - 1],
            count: runs_from as u64,
            reason: SkipReason::CatchUp,
            spec: job.spec,
        }],
    };
    let job = Job {
        planned_through: last,
        window_through: Some(last),
        next_fire: calendar.after(last),
        version: job.version.next(),
        write_id: id.clone(),
        ..job.clone()
    };
    Some(PlanStep { instances, skips, job, more })
}

/// The window of an instance that somebody asks for by its calendar time.
#[must_use]
pub fn calendar_window(job: &Job, calendar: &Calendar, at: ScheduledTime) -> Window {
    Window { start: calendar.before(at).unwrap_or(job.start.min(at)), end: at }
}
