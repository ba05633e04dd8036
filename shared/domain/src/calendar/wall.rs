//! Wall-clock times: what croner enumerates, in civil time and without a zone.
//!
//! A wall-clock time is a number of seconds: the one that its date and time of day would have in UTC. So the mapping
//! to an instant is a subtraction of the zone's offset.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDate, CivilDateTime, CivilTime, Cron, CronDateTime, Resolution, Weekday};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::CalendarError;
use super::schedule::CronSchedule;

/// The wall-clock times of a cron expression.
#[derive(Clone, Debug)]
pub(super) struct WallClock {
    /// The times are those of all of these together.
    crons: Vec<Cron>,
    /// Whether the expression has a year field.
    years: bool,
}

/// The Gregorian calendar repeats, weekdays included, every 400 years.
const CYCLE: i64 = 146_097 * 86_400;
/// 2000-01-01T00:00:00, where the cycle that croner is asked about begins.
const CYCLE_START: i64 = 946_684_800;
/// From the first second of 1970 to the last of 2199: where an expression with a year field has its times.
const YEARS: RangeInclusive<i64> = 0..=7_258_118_399;

impl WallClock {
    /// # Errors
    /// When no date matches the expression, so that it can never fire.
    pub(super) fn new(cron: &CronSchedule) -> Result<Self, CalendarError> {
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Required).build();
        let crons = cron.patterns.iter().map(|pattern| parser.parse(pattern)).collect::<Result<_, _>>();
        // Croner reads all that is canonical; should it ever not, that is told rather than hidden.
        let crons = crons.map_err(|error| CalendarError {
            field: "schedule",
            reason: format!("the cron engine doesn't read it: {error}"),
            hint: None,
        })?;
        let wall = Self { crons, years: cron.has_years };
        if wall.at_or_after(*YEARS.start()).is_none() {
            return Err(cron.never());
        }
        Ok(wall)
    }

    /// The first wall-clock time of the expression that isn't before `at`.
    pub(super) fn at_or_after(&self, at: i64) -> Option<i64> {
        let (at, shift) = if self.years { (at.max(*YEARS.start()), 0) } else { into_cycle(at) };
        if self.years && at > *YEARS.end() {
            return None;
        }
        // An error of croner's is the end of its search.
        let next = |cron: &Cron| cron.find_next_occurrence(&Wall(at), true).ok();
        self.crons.iter().filter_map(next).map(|wall| wall.0 + shift).min()
    }

    /// The last wall-clock time of the expression that isn't after `at`.
    pub(super) fn at_or_before(&self, at: i64) -> Option<i64> {
        let (at, shift) = if self.years { (at.min(*YEARS.end()), 0) } else { into_cycle(at) };
        if self.years && at < *YEARS.start() {
            return None;
        }
        let previous = |cron: &Cron| cron.find_previous_occurrence(&Wall(at), true).ok();
        self.crons.iter().filter_map(previous).map(|wall| wall.0 + shift).max()
    }
}

/// Where in the cycle from 2000 on `at` lies, and what to add to an answer. Croner knows the years 1 to 5000 only; an
/// expression without a year field has the same times in each cycle, so that neither end of croner's years can bite.
fn into_cycle(at: i64) -> (i64, i64) {
    let shift = (at - CYCLE_START).div_euclid(CYCLE) * CYCLE;
    (at - shift, shift)
}

/// A wall-clock time as croner searches over it: every time of day exists, and exists once.
#[derive(Clone, Copy, Debug)]
struct Wall(i64);

impl Wall {
    fn date_time(self) -> DateTime {
        // Croner is asked about years within 1600 and 2800 only, far from the ends of what jiff represents.
        Offset::UTC.to_datetime(Timestamp::from_second(self.0).unwrap_or_default())
    }

    fn of(civil: CivilDateTime) -> Option<Self> {
        let year = i16::try_from(civil.year()).ok()?;
        let small = |n: u32| i8::try_from(n).ok();
        let (month, day) = (small(civil.month())?, small(civil.day())?);
        let (hour, minute, second) = (small(civil.hour())?, small(civil.minute())?, small(civil.second())?);
        let date_time = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
        Offset::UTC.to_timestamp(date_time).ok().map(|at| Self(at.as_second()))
    }
}

impl CronDateTime for Wall {
    fn to_civil(&self) -> CivilDateTime {
        let at = self.date_time();
        let part = |n: i8| u32::from(n.unsigned_abs());
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(i32::from(at.year()), part(at.month()), part(at.day())),
            CivilTime::from_parts_unchecked(part(at.hour()), part(at.minute()), part(at.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        // 1970-01-01 was a Thursday, which is 4.
        let weekday = (self.0.div_euclid(86_400) + 4).rem_euclid(7);
        Weekday::from_days_from_sunday(u32::try_from(weekday).unwrap_or_default())
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        Self::of(civil).map(Resolution::Single).ok_or(CronError::InvalidDate)
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(seconds).map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_second()
    }

    #[test]
    fn the_constants_are_the_dates_they_claim_to_be() {
        assert_eq!(second("2000-01-01T00:00:00Z"), CYCLE_START);
        assert_eq!(second("2400-01-01T00:00:00Z"), CYCLE_START + CYCLE);
        assert_eq!(second("1970-01-01T00:00:00Z"), *YEARS.start());
        assert_eq!(second("2199-12-31T23:59:59Z"), *YEARS.end());
    }

    #[test]
    fn a_wall_clock_time_survives_the_way_to_croner_and_back() {
        for text in ["1600-02-29T23:59:59Z", "1970-01-01T00:00:00Z", "2026-12-31T12:34:56Z", "2799-03-01T00:00:00Z"] {
            let wall = Wall(second(text));
            assert_eq!(Wall::of(wall.to_civil()).unwrap().0, wall.0, "{text}");
            let weekday = wall.date_time().weekday().to_sunday_zero_offset();
            assert_eq!(wall.civil_weekday().num_days_from_sunday(), u32::from(weekday.unsigned_abs()), "{text}");
        }
    }
}
