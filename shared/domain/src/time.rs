//! The two kinds of time that shardcron knows.
//!
//! [`ScheduledTime`] is what a calendar says: whole seconds, an identity. [`Millis`] is what a clock says: the
//! storage clock's reading, used for leases, backoff and deadlines. They never mix by accident, and no function
//! here reads a clock.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The instant at which the calendar says that a job runs. Whole seconds, UTC, years 0000 to 9999.
///
/// Its text form, `2026-08-29T16:00:00Z`, has one width, so that keys made of it sort in time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduledTime(Timestamp);

/// Why an instant can't be a scheduled time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The instant has a fraction of a second.
    #[error("{0} isn't a whole second; scheduled times are")]
    Fraction(String),
    /// The instant lies outside the years 0000 to 9999.
    #[error("{0} lies outside the years 0000 to 9999")]
    Range(String),
    /// The text isn't an RFC 3339 instant.
    #[error("`{0}` isn't a time such as 2026-08-30T00:00:00+08:00")]
    Syntax(String),
}

const FIRST_SECOND: i64 = -62_167_219_200; // 0000-01-01T00:00:00Z
const LAST_SECOND: i64 = 253_402_207_200; // what jiff can represent: 9999-12-30T22:00:00Z

impl ScheduledTime {
    /// The scheduled time at this number of seconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// [`TimeError::Range`] outside the years 0000 to 9999.
    pub fn from_second(second: i64) -> Result<Self, TimeError> {
        if !(FIRST_SECOND..=LAST_SECOND).contains(&second) {
            return Err(TimeError::Range(format!("second {second}")));
        }
        Timestamp::from_second(second).map(Self).map_err(|_| TimeError::Range(format!("second {second}")))
    }

    /// The scheduled time at this instant, which must be a whole second.
    ///
    /// # Errors
    /// [`TimeError::Fraction`] or [`TimeError::Range`].
    pub fn from_timestamp(at: Timestamp) -> Result<Self, TimeError> {
        if at.subsec_nanosecond() != 0 {
            return Err(TimeError::Fraction(at.to_string()));
        }
        Self::from_second(at.as_second())
    }

    /// The last whole second that isn't after `at`.
    ///
    /// # Errors
    /// [`TimeError::Range`] outside the years 0000 to 9999.
    pub fn floor(at: Millis) -> Result<Self, TimeError> {
        Self::from_second(at.0.div_euclid(1000))
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn as_second(self) -> i64 {
        self.0.as_second()
    }

    /// The same instant as jiff's type.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        self.0
    }

    /// The same instant on the storage clock.
    #[must_use]
    pub fn millis(self) -> Millis {
        Millis(self.0.as_second() * 1000)
    }
}

impl fmt::Display for ScheduledTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for ScheduledTime {
    type Err = TimeError;
    fn from_str(s: &str) -> Result<Self, TimeError> {
        let at: Timestamp = s.parse().map_err(|_| TimeError::Syntax(s.to_owned()))?;
        Self::from_timestamp(at)
    }
}

impl Serialize for ScheduledTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ScheduledTime {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z on the storage clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// This instant moved on by `duration` (negative: back); saturates.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// The time from `earlier` to this instant; negative when it lies before.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// A signed number of milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub i64);

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// This many seconds.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// This many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// This duration times `factor`; saturates.
    #[must_use]
    pub const fn times(self, factor: i64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// Whether it is no time at all.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// As std's unsigned duration; a negative one is zero.
    #[must_use]
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(if self.0 > 0 { self.0.unsigned_abs() } else { 0 })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1000, self.0.abs() % 1000)
    }
}

/// A reading of the storage clock: the true time lies within `uncertainty` of `at`.
///
/// The clock comes from the `Date` header of the store's answers, which counts whole seconds, carried forward on a
/// local monotonic clock; so a reading is never exact, and whoever decides by it says on which side it must be safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The best estimate.
    pub at: Millis,
    /// Half the width of the interval that holds the true time; not negative.
    pub uncertainty: Duration,
}

impl Reading {
    /// An exact reading, for tests and virtual time.
    #[must_use]
    pub const fn exact(at: Millis) -> Self {
        Self { at, uncertainty: Duration::ZERO }
    }

    /// Whether the true time is after `then`, whatever the uncertainty.
    #[must_use]
    pub fn is_surely_after(&self, then: Millis) -> bool {
        self.earliest() > then
    }

    /// Whether the true time is before `then`, whatever the uncertainty.
    #[must_use]
    pub fn is_surely_before(&self, then: Millis) -> bool {
        self.latest() < then
    }

    /// The earliest that the true time can be.
    #[must_use]
    pub fn earliest(&self) -> Millis {
        Millis(self.at.0.saturating_sub(self.uncertainty.0))
    }

    /// The latest that the true time can be.
    #[must_use]
    pub fn latest(&self) -> Millis {
        self.at.plus(self.uncertainty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduled_time_is_written_at_one_width_and_read_back() {
        for text in ["1969-12-31T23:59:59Z", "2026-08-29T16:00:00Z", "2104-02-29T00:00:00Z"] {
            let time: ScheduledTime = text.parse().unwrap();
            assert_eq!(time.to_string(), text);
            assert_eq!(time.to_string().len(), 20);
        }
        let zoned: ScheduledTime = "2026-08-30T00:00:00+08:00".parse().unwrap();
        assert_eq!(zoned.to_string(), "2026-08-29T16:00:00Z");
    }

    #[test]
    fn a_fraction_of_a_second_is_refused() {
        let refused = "2026-08-29T16:00:00.5Z".parse::<ScheduledTime>();
        assert!(matches!(refused, Err(TimeError::Fraction(_))), "{refused:?}");
    }

    #[test]
    fn a_reading_is_sure_only_beyond_its_uncertainty() {
        let reading = Reading { at: Millis(10_000), uncertainty: Duration(500) };
        assert!(reading.is_surely_after(Millis(9_499)));
        assert!(!reading.is_surely_after(Millis(9_500)));
        assert!(reading.is_surely_before(Millis(10_501)));
        assert!(!reading.is_surely_before(Millis(10_500)));
    }
}
