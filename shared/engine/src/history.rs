//! The history of a job's specs: which calendar said what, and when.

use shardcron_domain::ids::SpecVersion;
use shardcron_domain::job::JobSpec;
use shardcron_domain::plan::Job;
use shardcron_domain::time::ScheduledTime;
use shardcron_store::{Item, ItemKey};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::EngineError;

/// A spec and the span that it counts for: times after `since`, up to and with `until`.
struct Era {
    since: ScheduledTime,
    until: Option<ScheduledTime>,
    /// None while the job was deleted.
    spec: Option<LoadedSpec>,
}

/// All specs of a job, in the order of their versions.
pub(crate) struct History {
    eras: Vec<Era>,
}

impl Engine {
    pub(crate) async fn history(&self, job: &Job) -> Result<History, EngineError> {
        let mut eras: Vec<Era> = Vec::new();
        for number in SpecVersion::FIRST.0..=job.spec.0 {
            let key = ItemKey::Spec(job.name.clone(), SpecVersion(number));
            let Some(Item::Spec(record)) = self.store.get(&key).await? else {
                return Err(EngineError::Inconsistent(format!("{key} is missing")));
            };
            let spec = if record.spec.is_empty() {
                None
            } else {
                let spec = JobSpec::parse(&record.spec)?;
                let calendar = spec.calendar(&self.rules, job.start)?;
                Some(LoadedSpec { version: record.version, spec: spec.into(), calendar, base: record.base })
            };
            if let Some(last) = eras.last_mut() {
                last.until = Some(record.since);
            }
            eras.push(Era { since: record.since, until: None, spec });
        }
        Ok(History { eras })
    }
}

impl History {
    /// The first scheduled time after `at`, by the spec in force at it. With `before_the_first`, the first spec counts
    /// for all the time before it too: for a backfill of a time before the job was there.
    pub(crate) fn after(&self, at: ScheduledTime, before_the_first: bool) -> Option<ScheduledTime> {
        for (place, era) in self.eras.iter().enumerate() {
            if era.until.is_some_and(|until| until <= at) {
                continue;
            }
            let Some(spec) = &era.spec else { continue };
            let from = if place == 0 && before_the_first { at } else { at.max(era.since) };
            let next = spec.calendar.after(from);
            if let Some(next) = next.filter(|next| era.until.is_none_or(|until| *next <= until)) {
                return Some(next);
            }
        }
        None
    }

    /// The last scheduled time before `at`, likewise.
    pub(crate) fn before(&self, at: ScheduledTime, before_the_first: bool) -> Option<ScheduledTime> {
        for (place, era) in self.eras.iter().enumerate().rev() {
            let open = place == 0 && before_the_first;
            if era.since >= at && !open {
                continue;
            }
            let Some(spec) = &era.spec else { continue };
            // A time equal to `until` still belongs to the era: the search begins just behind it.
            let behind = era.until.and_then(|until| ScheduledTime::from_second(until.as_second() + 1).ok());
            let last = spec.calendar.before(behind.map_or(at, |behind| behind.min(at)));
            if let Some(last) = last.filter(|last| open || *last > era.since) {
                return Some(last);
            }
        }
        None
    }
}
