//! `rate(...)`: every so many minutes, hours or days of elapsed time.

use super::CalendarError;
use crate::time::ScheduledTime;

/// The times `start + k * period` for k >= 1.
///
/// `start` isn't one of them: a job that is made or edited doesn't run at once because of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    start: i64,
    /// In seconds; positive.
    period: i64,
}

impl Rate {
    /// # Errors
    /// When the first time lies beyond the year 9999, so that the rate can never fire.
    pub(super) fn new(start: ScheduledTime, period: i64) -> Result<Self, CalendarError> {
        let rate = Self { start: start.as_second(), period };
        match rate.start.checked_add(period).map(ScheduledTime::from_second) {
            Some(Ok(_)) => Ok(rate),
            _ => Err(CalendarError {
                field: "schedule",
                reason: "rate: it can never fire: its first time lies beyond the year 9999".to_owned(),
                hint: Some("take a shorter period".to_owned()),
            }),
        }
    }

    /// The first time at or after second `at`, if it can be counted.
    pub(super) fn first(self, at: i64) -> Option<i64> {
        let elapsed = at.saturating_sub(self.start);
        let periods = elapsed.div_euclid(self.period) + i64::from(elapsed.rem_euclid(self.period) != 0);
        periods.max(1).checked_mul(self.period)?.checked_add(self.start)
    }

    /// The last time at or before second `at`.
    pub(super) fn last(self, at: i64) -> Option<i64> {
        let periods = at.saturating_sub(self.start).div_euclid(self.period);
        (periods >= 1).then(|| self.start + periods * self.period)
    }
}
