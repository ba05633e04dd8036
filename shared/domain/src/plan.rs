//! Planning: which scheduled times become instances, and which become skips, in one step of one job.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::calendar::Calendar;
use crate::ids::{InstanceId, JobName, SpecVersion, Version, WriteId};
use crate::instance::{SkipReason, Window};
use crate::job::{CatchUp, ConcurrencyPolicy, JobSpec};
use crate::limits::{ON_TIME, PLAN_INSTANCES_MAX, PLAN_TIMES_MAX, TICKING};
use crate::slot::{Slot, SlotKey};
use crate::time::{Duration, Millis, ScheduledTime};

/// A job as the store holds it: what planning has come to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// The next scheduled time; absent when there is none, or the job is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_fire: Option<ScheduledTime>,
    /// Since when it is suspended, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// When it was deleted, if it was. Its instances stay; applying it again makes it count from then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<ScheduledTime>,
    /// The overlap policy in force; an edit of it waits until no instance under the former one is open.
    #[serde(default)]
    pub overlap: Overlap,
    /// When an instance without a slot was last made, or may have been ([`crate::overlap`]); absent if none was, and
    /// under a policy with a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unslotted_at: Option<Millis>,
    /// +1 at each write.
    pub version: Version,
    /// Of the last write.
    pub write_id: WriteId,
}

/// That a job is suspended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Suspension {
    /// Times after this one are skipped.
    pub since: ScheduledTime,
    /// Why, in the words of whoever did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether its spec says so, rather than a command.
    #[serde(default)]
    pub by_spec: bool,
}

/// An overlap policy and the slot that it is kept by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Overlap {
    /// The policy.
    pub policy: ConcurrencyPolicy,
    /// The slot; none under Allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotKey>,
}

impl Overlap {
    /// What a spec asks for.
    #[must_use]
    pub fn of(spec: &JobSpec) -> Self {
        let slot = match (&spec.concurrency_policy, &spec.concurrency_key) {
            (ConcurrencyPolicy::Allow, _) => None,
            (_, Some(key)) => Some(SlotKey::Shared(key.clone())),
            (_, None) => Some(SlotKey::Job(spec.name.clone())),
        };
        Self { policy: spec.concurrency_policy, slot }
    }
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
    /// The spec, as JSON; empty where the job was deleted: from then on no times are expected.
    pub spec: String,
    /// The directory that relative paths in it are relative to.
    pub base: String,
}

/// A run of scheduled times without a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// What a planning step is decided from.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext<'a> {
    /// The job.
    pub job: &'a Job,
    /// Its spec in force.
    pub spec: &'a JobSpec,
    /// What becomes of times that were missed: what the spec says, or that none is caught up when the job is being stopped.
    pub catch_up: CatchUp,
    /// Its calendar.
    pub calendar: &'a Calendar,
    /// The overlap policy to plan under.
    pub overlap: &'a Overlap,
    /// The slot as it was read, under a policy that has one.
    pub slot: Option<&'a Slot>,
    /// Times that have an instance already: a trigger or a backfill was first.
    pub existing: &'a BTreeSet<ScheduledTime>,
    /// Now.
    pub now: ScheduledTime,
    /// The id of the step's write.
    pub write_id: &'a WriteId,
}

/// An instance to be written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInstance {
    /// Its scheduled time.
    pub at: ScheduledTime,
    /// Its window.
    pub window: Window,
    /// Whether it waits for the slot.
    pub waits: bool,
}

/// What one planning step writes, in one transaction on the job's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// Instances to put, in order.
    pub instances: Vec<NewInstance>,
    /// Skips to record.
    pub skips: Vec<SkippedRange>,
    /// The job afterwards.
    pub job: Job,
    /// The slot afterwards, if the step changes it.
    pub slot: Option<Slot>,
    /// Instances to be stopped, since the new one takes their place.
    pub replaced: Vec<InstanceId>,
    /// Whether times that have passed are still to be planned, and can be now.
    pub more: bool,
}

/// How an instance comes to a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It holds it from now on.
    Holds(Slot),
    /// It waits, and this is the slot with it.
    Waits(Slot),
    /// It waits, in the place of these: the holder is to be stopped, and those that waited are to end.
    Replaces(Slot, Vec<InstanceId>),
    /// The policy doesn't let it run beside the holder.
    Refused,
    /// The queue is full.
    Full,
}

/// Decides how an instance comes to a slot under a policy that has one.
#[must_use]
pub fn admit(slot: &Slot, policy: ConcurrencyPolicy, id: &InstanceId, write_id: &WriteId) -> Admission {
    let mut next = slot.changed(write_id);
    let Some(holder) = &slot.holder else {
        next.holder = Some(id.clone());
        return Admission::Holds(next);
    };
    match policy {
        ConcurrencyPolicy::Queue if slot.has_room() => {
            next.waiting.push(id.clone());
            Admission::Waits(next)
        }
        ConcurrencyPolicy::Queue => Admission::Full,
        ConcurrencyPolicy::Replace => {
            let mut replaced = vec![holder.clone()];
            // As many as fit the transaction; beyond it (after an edit from Queue) the next replacer comes to the rest.
            let most = next.waiting.len().min(PLAN_INSTANCES_MAX - 1);
            replaced.extend(next.waiting.drain(..most));
            next.waiting.push(id.clone());
            Admission::Replaces(next, replaced)
        }
        ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Allow => Admission::Refused,
    }
}

/// Plans the scheduled times after `job.planned_through` and up to `now`, as far as one step goes.
///
/// Each calendar time has a window from the calendar time before it, run or skipped, so that windows tile. `None`
/// when nothing has passed, or nothing of it can be planned yet (a full queue, with all to be caught up).
#[must_use]
pub fn plan_step(context: &PlanContext<'_>) -> Option<PlanStep> {
    let (times, mut more) = due(context);
    let first = *times.first()?;
    let job = context.job;
    let mut window_start = job.window_through.or_else(|| context.calendar.before(first)).unwrap_or(job.start);
    let mut slot = context.slot.cloned();
    let mut instances: Vec<NewInstance> = Vec::new();
    let mut replaced: Vec<InstanceId> = Vec::new();
    let mut skips = Skips::default();
    let mut last = None;
    // Under Replace only the latest of a step comes to the slot: those before it would be replaced by it at once.
    let latest = times.last().copied();
    for (place, at) in times.iter().copied().enumerate() {
        let window = Window { start: window_start, end: at };
        let verdict = if context.existing.contains(&at) { None } else { Some(verdict(context, &times, place, more)) };
        match verdict {
            None => skips.interrupt(),
            Some(Some(reason)) => skips.add(job, at, reason),
            Some(None) => {
                let id = InstanceId { job: job.name.clone(), at };
                let replaced_at_once = context.overlap.policy == ConcurrencyPolicy::Replace && Some(at) != latest;
                let admission = slot.as_ref().map(|slot| admit(slot, context.overlap.policy, &id, context.write_id));
                match admission {
                    _ if replaced_at_once => skips.add(job, at, SkipReason::Overlap),
                    None => {
                        skips.interrupt();
                        instances.push(NewInstance { at, window, waits: false });
                    }
                    Some(Admission::Holds(next)) => {
                        skips.interrupt();
                        slot = Some(next);
                        instances.push(NewInstance { at, window, waits: false });
                    }
                    Some(Admission::Waits(next)) => {
                        skips.interrupt();
                        slot = Some(next);
                        instances.push(NewInstance { at, window, waits: true });
                    }
                    Some(Admission::Replaces(next, gone)) => {
                        skips.interrupt();
                        slot = Some(next);
                        replaced.extend(gone);
                        instances.push(NewInstance { at, window, waits: true });
                    }
                    Some(Admission::Refused) => skips.add(job, at, SkipReason::Overlap),
                    Some(Admission::Full) if context.catch_up == CatchUp::All => {
                        // It isn't skipped: planning stops here until the queue has room.
                        more = false;
                        break;
                    }
                    Some(Admission::Full) => skips.add(job, at, SkipReason::QueueFull),
                }
            }
        }
        window_start = at;
        last = Some(at);
    }
    let last = last?;
    let slot = slot.filter(|slot| Some(slot) != context.slot).map(|mut slot| {
        // However many came to it, it is one write.
        slot.version = context.slot.map_or(Version::FIRST, |before| before.version.next());
        slot
    });
    let job = Job {
        planned_through: last,
        window_through: Some(last),
        next_fire: context.calendar.after(last),
        overlap: context.overlap.clone(),
        version: job.version.next(),
        write_id: context.write_id.clone(),
        ..job.clone()
    };
    Some(PlanStep { instances, skips: skips.done, job, slot, replaced, more })
}

/// The times of one step, and whether more have passed.
fn due(context: &PlanContext<'_>) -> (Vec<ScheduledTime>, bool) {
    let all_run = context.catch_up == CatchUp::All && context.job.suspended.is_none();
    let mut times = Vec::new();
    let mut run = 0;
    let mut at = context.job.planned_through;
    while let Some(next) = context.calendar.after(at).filter(|next| *next <= context.now) {
        let runs = all_run && !is_too_late(context, next);
        if times.len() == PLAN_TIMES_MAX || (runs && run == PLAN_INSTANCES_MAX) {
            return (times, true);
        }
        run += usize::from(runs);
        times.push(next);
        at = next;
    }
    (times, false)
}

/// Whether a time is too late by the job's `startingDeadlineSeconds`; on the edge it is, as in Kubernetes' CronJob
/// controller.
fn is_too_late(context: &PlanContext<'_>, at: ScheduledTime) -> bool {
    let late = context.now.millis().since(at.millis());
    context.spec.starting_deadline_seconds.is_some_and(|seconds| late >= Duration::from_secs(i64::from(seconds)))
}

/// Whether a time runs (`None`), or why it is skipped; the slot is another matter.
fn verdict(context: &PlanContext<'_>, times: &[ScheduledTime], place: usize, more: bool) -> Option<SkipReason> {
    let at = times[place];
    let late = |at: ScheduledTime| context.now.millis().since(at.millis());
    if context.job.suspended.as_ref().is_some_and(|suspension| at > suspension.since) {
        return Some(SkipReason::Suspended);
    }
    if is_too_late(context, at) {
        return Some(SkipReason::StartingDeadlineExceeded);
    }
    let is_latest = place + 1 == times.len() && !more;
    let was_ticking = !more && late(times[0]) < TICKING;
    let runs = match context.catch_up {
        CatchUp::All => true,
        CatchUp::Latest => is_latest || was_ticking,
        CatchUp::None => late(at) < ON_TIME || was_ticking,
    };
    (!runs).then_some(SkipReason::CatchUp)
}

/// Skips, with runs of one reason as one row.
#[derive(Default)]
struct Skips {
    done: Vec<SkippedRange>,
    interrupted: bool,
}

impl Skips {
    fn interrupt(&mut self) {
        self.interrupted = true;
    }

    fn add(&mut self, job: &Job, at: ScheduledTime, reason: SkipReason) {
        match self.done.last_mut() {
            Some(last) if last.reason == reason && !self.interrupted => {
                last.to = at;
                last.count += 1;
            }
            _ => self.done.push(SkippedRange {
                job: job.name.clone(),
                from: at,
                to: at,
                count: 1,
                reason,
                spec: job.spec,
            }),
        }
        self.interrupted = false;
    }
}

/// The window of an instance that somebody asks for by its calendar time.
#[must_use]
pub fn calendar_window(job: &Job, calendar: &Calendar, at: ScheduledTime) -> Window {
    Window { start: calendar.before(at).unwrap_or(job.start.min(at)), end: at }
}

#[cfg(test)]
mod tests;
