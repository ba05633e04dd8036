//! Backfill: the planning of a past range on request, at a pace that the user sets.
//!
//! A backfill is an item of its own, and each step of it one transaction on its version: the instances that it begins
//! and where it has come to. So it goes on after a crash, two sweeps can't begin more than one, and its limits hold
//! under races.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{JobName, NameError, Version, WriteId};
use crate::instance::SkipReason;
use crate::limits::{BACKFILL_ACTIVE_MAX, BACKFILL_IDLE_LOOK, BACKFILL_PER_MINUTE_MAX, BACKFILL_STEP_MAX};
use crate::shard::Counts;
use crate::time::{Duration, Millis, ScheduledTime};

/// A backfill's id, unique in its job. Characters of a job's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BackfillId(String);

impl BackfillId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BackfillId {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse::<JobName>()?;
        Ok(Self(text))
    }
}

impl FromStr for BackfillId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::try_from(text.to_owned())
    }
}

impl From<BackfillId> for String {
    fn from(id: BackfillId) -> Self {
        id.0
    }
}

impl fmt::Display for BackfillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which times of the range a backfill begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Only {
    /// Those without an instance: skipped ones, and ones from before the job was there.
    #[default]
    Missing,
    /// Those that failed: they are retried.
    Failed,
    /// Both.
    All,
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// The oldest first.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
}

/// Where a backfill stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BackfillStatus {
    /// It goes on.
    Running,
    /// It begins nothing until it is resumed; what it began goes on.
    Paused,
    /// It begins nothing any more. An end once what it began has ended.
    Cancelled,
    /// All times are answered for and all that it began succeeded. An end.
    Succeeded,
    /// All times are answered for, and some of what it began failed. An end.
    PartiallyFailed,
}

/// What a user asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillRequest {
    /// The first time that belongs to the range.
    pub from: ScheduledTime,
    /// The first that no longer does.
    pub to: ScheduledTime,
    /// Which times.
    pub only: Only,
    /// In which order.
    pub order: Order,
    /// Instances at work at the same time: 1 to [`BACKFILL_ACTIVE_MAX`].
    pub max_active: u32,
    /// Instances begun in any minute: 1 to [`BACKFILL_PER_MINUTE_MAX`]; `None` for no limit.
    pub per_minute: Option<u32>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BackfillError {
    /// The range is empty.
    #[error("--to ({to}) must be after --from ({from})")]
    Range {
        /// Its start.
        from: ScheduledTime,
        /// Its end.
        to: ScheduledTime,
    },
    /// `max_active` is out of bounds.
    #[error("--max-active is 1 to {BACKFILL_ACTIVE_MAX}, and {0} was asked for")]
    MaxActive(u32),
    /// `per_minute` is out of bounds.
    #[error("--per-minute is 1 to {BACKFILL_PER_MINUTE_MAX}, and {0} was asked for")]
    PerMinute(u32),
}

impl BackfillRequest {
    /// Checks the bounds.
    ///
    /// # Errors
    /// [`BackfillError`].
    pub fn check(&self) -> Result<(), BackfillError> {
        if self.to <= self.from {
            return Err(BackfillError::Range { from: self.from, to: self.to });
        }
        if !(1..=BACKFILL_ACTIVE_MAX).contains(&self.max_active) {
            return Err(BackfillError::MaxActive(self.max_active));
        }
        match self.per_minute {
            Some(rate) if !(1..=BACKFILL_PER_MINUTE_MAX).contains(&rate) => Err(BackfillError::PerMinute(rate)),
            _ => Ok(()),
        }
    }
}

/// The account of a backfill: what became of the times of its range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reconciliation {
    /// Times of the range, so far.
    pub expected: u64,
    /// Instances that it began or retried.
    pub begun: u64,
    /// Of these, times that had been skipped before.
    pub were_skipped: u64,
    /// Times of the range that are recorded as skips, begun or left out, by the reason's name.
    pub skipped: BTreeMap<String, u64>,
    /// Times whose instance was there already, done or at work, and was left alone.
    pub already_there: u64,
    /// Times that it left out, since only failed ones (or only missing ones) were asked for.
    pub left_out: u64,
    /// Of those begun, the succeeded.
    pub succeeded: u64,
    /// Of those begun, the failed, cancelled or replaced.
    pub failed: u64,
    /// Records of the succeeded.
    pub counts: Counts,
}

impl Reconciliation {
    /// Counts a time that is recorded as a skip, if it is.
    pub fn note_skipped(&mut self, reason: Option<SkipReason>) {
        if let Some(reason) = reason {
            *self.skipped.entry(reason.name()).or_default() += 1;
        }
    }
}

/// A backfill as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    /// The job.
    pub job: JobName,
    /// Its id.
    pub id: BackfillId,
    /// What was asked for.
    pub request: BackfillRequest,
    /// Where it stands.
    pub status: BackfillStatus,
    /// The last time that it went through; absent at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<ScheduledTime>,
    /// Whether it has gone through all.
    pub exhausted: bool,
    /// The times of the instances that it began and that haven't been seen to end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub active: BTreeSet<ScheduledTime>,
    /// When it began the instances of the last minute; kept only with a rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun_at: Vec<Millis>,
    /// The account.
    pub account: Reconciliation,
    /// When it was asked for.
    pub created_at: Millis,
    /// When the sweep should look at it again; absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_look: Option<Millis>,
    /// +1 at each write.
    pub version: Version,
    /// Of the last write.
    pub write_id: WriteId,
}

/// What the rate counts as a minute. A beginning's time is read before its write lands; with a second more than a minute,
/// writes that land unevenly don't come closer together than the rate lets them.
const MINUTE: Duration = Duration::from_secs(61);

impl Backfill {
    /// A backfill that hasn't begun.
    #[must_use]
    pub fn new(job: JobName, id: BackfillId, request: BackfillRequest, now: Millis, write_id: WriteId) -> Self {
        Self {
            job,
            id,
            request,
            status: BackfillStatus::Running,
            cursor: None,
            exhausted: false,
            active: BTreeSet::new(),
            begun_at: Vec::new(),
            account: Reconciliation::default(),
            created_at: now,
            next_look: Some(now),
            version: Version::FIRST,
            write_id,
        }
    }

    /// How many instances it may begin now: by its limits and by what a transaction holds.
    #[must_use]
    pub fn room(&self, now: Millis) -> usize {
        if self.status != BackfillStatus::Running {
            return 0;
        }
        let active = (self.request.max_active as usize).saturating_sub(self.active.len());
        let rate = self.request.per_minute.map_or(usize::MAX, |rate| {
            let last_minute = self.begun_at.iter().filter(|at| now.since(**at) < MINUTE).count();
            (rate as usize).saturating_sub(last_minute)
        });
        active.min(rate).min(BACKFILL_STEP_MAX)
    }

    /// The backfill after a write; `now` drops what the rate no longer counts.
    #[must_use]
    pub fn changed(&self, now: Millis, write_id: &WriteId) -> Self {
        let mut next = Self { version: self.version.next(), write_id: write_id.clone(), ..self.clone() };
        next.begun_at.retain(|at| now.since(*at) < MINUTE);
        next
    }

    /// Notes an instance that it begins in this step.
    pub fn begin(&mut self, at: ScheduledTime, now: Millis, skipped: Option<SkipReason>) {
        self.account.begun += 1;
        self.account.were_skipped += u64::from(skipped.is_some());
        self.account.note_skipped(skipped);
        self.active.insert(at);
        if self.request.per_minute.is_some() {
            self.begun_at.push(now);
        }
    }

    /// Notes the end of an instance that it began.
    pub fn end(&mut self, at: ScheduledTime, succeeded: Option<Counts>) {
        if !self.active.remove(&at) {
            return;
        }
        match succeeded {
            Some(counts) => {
                self.account.succeeded += 1;
                self.account.counts = self.account.counts.plus(counts);
            }
            None => self.account.failed += 1,
        }
    }

    /// Ends it when there is nothing left to begin or to wait for.
    pub fn settle(&mut self, now: Millis, again: Duration) {
        let over = self.active.is_empty() && (self.exhausted || self.status == BackfillStatus::Cancelled);
        if !over {
            // A paused one that nothing of is at work has nothing to be looked at for; resuming it looks at once.
            let idle = self.status == BackfillStatus::Paused && self.active.is_empty();
            self.next_look = Some(now.plus(if idle { BACKFILL_IDLE_LOOK } else { again }));
            return;
        }
        self.next_look = None;
        if self.status != BackfillStatus::Cancelled {
            let failed = self.account.failed > 0;
            self.status = if failed { BackfillStatus::PartiallyFailed } else { BackfillStatus::Succeeded };
        }
    }

    /// Whether this is what it was asked for: its range is cut off at what had passed by then.
    #[must_use]
    pub fn is_of(&self, asked: &BackfillRequest) -> bool {
        let cut = BackfillRequest { to: self.request.to, ..asked.clone() };
        cut == self.request && self.request.to <= asked.to
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.next_look.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backfill(max_active: u32, per_minute: Option<u32>) -> Backfill {
        let at = |text: &str| text.parse().unwrap();
        let (only, order) = (Only::All, Order::Oldest);
        let (from, to) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
        let request = BackfillRequest { from, to, only, order, max_active, per_minute };
        Backfill::new("daily".parse().unwrap(), "b1".parse().unwrap(), request, Millis(0), WriteId("w".into()))
    }

    fn time(day: i64) -> ScheduledTime {
        ScheduledTime::from_second(1_767_225_600 + day * 86_400).unwrap()
    }

    #[test]
    fn neither_limit_is_exceeded_in_any_minute() {
        let mut backfill = backfill(5, Some(30));
        let mut begun = Vec::new();
        let mut day = 0;
        for second in 0..600 {
            let now = Millis(second * 1_000);
            // Each instance takes three seconds.
            for done in backfill.active.clone().into_iter().filter(|at| begun[at_day(*at)] + 3_000 <= now.0) {
                backfill.end(done, Some(Counts::default()));
            }
            let room = backfill.room(now);
            backfill = backfill.changed(now, &WriteId("w".into()));
            for _ in 0..room {
                backfill.begin(time(day), now, None);
                begun.push(now.0);
                day += 1;
            }
            assert!(backfill.active.len() <= 5);
            assert!(begun.iter().filter(|at| now.0 - **at < 60_000).count() <= 30);
        }
        assert!(begun.len() > 250, "the rate is used: {}", begun.len());
    }

    fn at_day(at: ScheduledTime) -> usize {
        ((at.as_second() - 1_767_225_600) / 86_400) as usize
    }

    #[test]
    fn a_paused_one_begins_nothing_and_a_cancelled_one_ends_when_its_instances_have() {
        let mut backfill = backfill(5, None);
        backfill.begin(time(0), Millis(0), None);
        backfill.status = BackfillStatus::Paused;
        assert_eq!(backfill.room(Millis(0)), 0);
        backfill.status = BackfillStatus::Cancelled;
        backfill.settle(Millis(0), Duration(1));
        assert!(!backfill.is_over());
        backfill.end(time(0), None);
        backfill.settle(Millis(0), Duration(1));
        assert!(backfill.is_over());
        assert_eq!(backfill.status, BackfillStatus::Cancelled);
    }
}
