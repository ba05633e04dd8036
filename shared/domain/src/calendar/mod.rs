//! Schedules, zones and the scheduled times they give.
//!
//! A [`Calendar`] is a schedule in a zone under a [`Dst`] policy. It answers four questions about instants
//! ([`after`](Calendar::after), [`before`](Calendar::before), [`contains`](Calendar::contains),
//! [`between`](Calendar::between)), never reads a clock, and gives the same answers on every machine, because the
//! zone rules come from [`ZoneRules`] and never from the system.
//!
//! # How it works
//!
//! Five steps, each in a file of its own:
//!
//! 1. `schedule` tells the dialects apart and `field` reads each cron field: it refuses what is wrong, saying which
//!    field and why, and writes what is right in one canonical form (plain lists of numbers).
//! 2. `wall` hands that form to croner, which enumerates *wall-clock* times, without any zone.
//! 3. `stretch` cuts the zone's time line at its transitions into stretches of one offset. Within a stretch, wall
//!    clock and time line run in step, so mapping one to the other is an addition.
//! 4. `enumerate` walks the stretches in order. Both copies of a repeated hour come out by themselves, each in its
//!    own stretch, and a wall-clock time in a gap is in none; the [`Dst`] policy takes away copies, and adds the
//!    first instant after a gap. Because the walk follows the time line, its times are strictly increasing,
//!    whatever the zone does.
//! 5. `rate` is for `rate(...)`, which has nothing to do with wall clocks.

mod dst;
mod enumerate;
mod field;
mod rate;
mod schedule;
mod stretch;
mod wall;
mod zone;

use std::iter::FusedIterator;

use crate::time::ScheduledTime;

pub use self::dst::{Dst, Gap, Overlap};
pub use self::zone::{ClockChange, Zone, ZoneRules};

use self::dst::Policy;
use self::enumerate::Walk;
use self::rate::Rate;
use self::schedule::Schedule;
use self::wall::WallClock;

/// Why a schedule, a zone name or a DST policy was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}{}", Hint(.hint))]
pub struct CalendarError {
    /// The job's field that is wrong: `schedule` or `timeZone`.
    pub field: &'static str,
    /// What is wrong with it. For a cron expression it names the cron field (`minute`, `day-of-week`, ...).
    pub reason: String,
    /// What to write instead, where that is known.
    pub hint: Option<String>,
}

/// A hint as the end of an error's line.
struct Hint<'a>(&'a Option<String>);

impl std::fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// The scheduled times of a job: a schedule, in a zone, under a DST policy.
///
/// Scheduled times are whole seconds (whole minutes wherever the zone's offset is one), strictly increasing, and
/// lie in the years 0000 to 9999.
///
/// # Dialects
///
/// * Kubernetes' five fields, `minute hour day-of-month month day-of-week`, with lists, ranges, steps, names, `?`,
///   `L`, `W`, `#`, and the words `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly`.
/// * EventBridge's `cron(minute hour day-of-month month day-of-week year)`: Sunday is 1, and exactly one of the day
///   fields is `?`. Its years are 1970 to 2199, also where the year is `*`: there is no time in any other.
/// * EventBridge's `rate(value unit)`: the times are `start + k * period` for k = 1, 2, 3... in elapsed time.
///   `start` itself is not one of them, and the DST policy has no effect.
///
/// # Which day
///
/// With day-of-month and day-of-week both restricted, either matches. A field that is `*`, `*/1` or `?` is
/// unrestricted; `1-31` isn't.
#[derive(Clone, Debug)]
pub struct Calendar {
    schedule: String,
    zone: Zone,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Rate(Rate),
    Cron { wall: WallClock, policy: Policy },
}

impl Calendar {
    /// The calendar of `schedule` in `zone`. `start` is the job's start instant, from which `rate(...)` counts.
    ///
    /// # Errors
    /// [`CalendarError`] with the field `schedule` when the expression isn't in one of the dialects, or can never
    /// fire: no date matches it, none of its times exists in the zone under this policy, or the first of a rate
    /// lies beyond the year 9999.
    pub fn new(schedule: &str, zone: &Zone, dst: Dst, start: ScheduledTime) -> Result<Self, CalendarError> {
        let kind = match Schedule::parse(schedule)? {
            Schedule::Rate(period) => Kind::Rate(Rate::new(start, period)?),
            Schedule::Cron(cron) => {
                let policy = Policy::of(dst, cron.starred);
                Kind::Cron { wall: WallClock::new(&cron)?, policy }
            }
        };
        let calendar = Self { schedule: schedule.to_owned(), zone: zone.clone(), kind };
        if calendar.first(i64::MIN).is_none() {
            return Err(CalendarError {
                field: "schedule",
                reason: format!(
                    "it can never fire: every time of `{schedule}` falls in a gap of {zone}, where clocks skip it"
                ),
                hint: Some("take another time of day, or set dst.gap to next".to_owned()),
            });
        }
        Ok(calendar)
    }

    /// The first scheduled time strictly after `t`, or `None` when there is none up to the year 9999.
    #[must_use]
    pub fn after(&self, t: ScheduledTime) -> Option<ScheduledTime> {
        self.first(t.as_second() + 1)
    }

    /// The last scheduled time strictly before `t`, or `None` when there is none from the year 0000 on (for a
    /// rate: from its start on).
    ///
    /// It is the inverse of [`after`](Self::after): `before(after(t)) == t` for every scheduled time `t` that has
    /// a successor.
    #[must_use]
    pub fn before(&self, t: ScheduledTime) -> Option<ScheduledTime> {
        let at = t.as_second() - 1;
        let second = match &self.kind {
            Kind::Rate(rate) => rate.last(at),
            Kind::Cron { wall, policy } => Walk::new(wall, &self.zone, *policy, at).last(at),
        };
        second.and_then(|second| ScheduledTime::from_second(second).ok())
    }

    /// Whether `t` is a scheduled time.
    #[must_use]
    pub fn contains(&self, t: ScheduledTime) -> bool {
        self.first(t.as_second()) == Some(t)
    }

    /// The scheduled times from `from` (included) to `to` (not included), in order. Empty when `to <= from`.
    #[must_use]
    pub fn between(&self, from: ScheduledTime, to: ScheduledTime) -> Between<'_> {
        let from = from.as_second();
        let source = match &self.kind {
            Kind::Rate(rate) => Source::Rate(*rate),
            Kind::Cron { wall, policy } => Source::Cron(Walk::new(wall, &self.zone, *policy, from)),
        };
        Between { source, from, to: to.as_second() }
    }

    /// The zone in which the schedule is read.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The schedule as it was given.
    #[must_use]
    pub fn schedule(&self) -> &str {
        &self.schedule
    }

    /// Whether the schedule is `rate(...)`, so that its times hang on the job's start instant.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        matches!(self.kind, Kind::Rate(_))
    }

    /// The first scheduled time that isn't before second `at`.
    fn first(&self, at: i64) -> Option<ScheduledTime> {
        let at = at.max(enumerate::FIRST_SECOND);
        let second = match &self.kind {
            Kind::Rate(rate) => rate.first(at),
            Kind::Cron { wall, policy } => Walk::new(wall, &self.zone, *policy, at).first(at),
        };
        second.and_then(|second| ScheduledTime::from_second(second).ok())
    }
}

/// The scheduled times of a range, in order. Made by [`Calendar::between`].
///
/// It keeps its place in the zone's transitions, so a step costs less than a call of [`Calendar::after`].
#[derive(Clone, Debug)]
pub struct Between<'a> {
    source: Source<'a>,
    /// The first second not looked at yet.
    from: i64,
    to: i64,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    Rate(Rate),
    Cron(Walk<'a>),
}

impl Iterator for Between<'_> {
    type Item = ScheduledTime;

    fn next(&mut self) -> Option<ScheduledTime> {
        if self.from >= self.to {
            return None;
        }
        let second = match &mut self.source {
            Source::Rate(rate) => rate.first(self.from),
            Source::Cron(walk) => walk.first(self.from),
        };
        let found = second.filter(|&second| second < self.to);
        self.from = found.map_or(self.to, |second| second + 1);
        found.and_then(|second| ScheduledTime::from_second(second).ok())
    }
}

impl FusedIterator for Between<'_> {}
