//! The storage clock: the store's own `Date`, carried forward on the local monotonic clock.
//!
//! Each answer of the store bounds the difference between its clock and ours: its `Date`, which counts whole seconds,
//! was written between the moment that we sent the request and the moment that the answer came. What all answers since
//! the last anchoring say together is the intersection of those bounds, which narrows as answers come in at different
//! fractions of a second. When an answer contradicts the rest (the store's clock was set, or ours stood still while
//! the process was frozen), everything older is dropped.
//!
//! The machine's own wall clock is not used, so that its skew doesn't matter.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use shardcron_domain::limits::LEASE_MAX;
use shardcron_domain::time::{Duration, Millis, Reading, ScheduledTime};
use shardcron_engine::ports::Clock;
use shardcron_store::dynamo::DateObserver;

/// Nanoseconds of the store's clock minus nanoseconds of ours: between these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    least: i128,
    most: i128,
}

const NANOS_PER_MILLI: i128 = 1_000_000;
const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// How fast two clocks may drift apart: a hundred parts in a million, well above what NTP-disciplined machines show.
const DRIFT_PER_MILLION: i128 = 100;

#[derive(Debug)]
struct Bounds {
    offset: Option<Offset>,
    /// Our clock at the last observation: from there on, drift widens the bounds.
    seen: i128,
    /// The next answer replaces the bounds, whatever they are.
    anew: bool,
}

/// The storage clock. Anchored by the first answer of the store; see [`StorageClock::anchor_anew`].
#[derive(Debug)]
pub struct StorageClock {
    started: Instant,
    bounds: Mutex<Bounds>,
}

impl Default for StorageClock {
    fn default() -> Self {
        Self::new()
    }
}

impl StorageClock {
    /// A clock that isn't anchored yet.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where the monotonic clock is read")]
    pub fn new() -> Self {
        Self { started: Instant::now(), bounds: Mutex::new(Bounds { offset: None, seen: 0, anew: false }) }
    }

    /// Lets the next answer of the store anchor the clock anew. For the start of an invocation: a function's process
    /// may have been frozen since the last, and its monotonic clock with it. Until that answer, readings stay as they
    /// are: others may be reading this clock.
    pub fn anchor_anew(&self) {
        self.bounds.lock().unwrap_or_else(PoisonError::into_inner).anew = true;
    }

    /// Whether an answer of the store has been seen.
    #[must_use]
    pub fn is_anchored(&self) -> bool {
        self.bounds.lock().unwrap_or_else(PoisonError::into_inner).offset.is_some()
    }

    #[expect(clippy::disallowed_methods, reason = "this is where the monotonic clock is read")]
    fn monotonic(&self) -> i128 {
        Instant::now().duration_since(self.started).as_nanos() as i128
    }

    fn reading_at(&self, ours: i128) -> Reading {
        let bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(offset) = bounds.offset else {
            // Nothing is known: a reading that nothing is surely before or after.
            return Reading { at: Millis(0), uncertainty: Duration(i64::MAX / 4) };
        };
        let drift = drift(ours - bounds.seen);
        let (least, most) = (ours + offset.least - drift, ours + offset.most + drift);
        let at = (least + most) / 2;
        let half = (most - least + 1) / 2;
        Reading {
            at: Millis((at / NANOS_PER_MILLI) as i64),
            uncertainty: Duration(((half + NANOS_PER_MILLI - 1) / NANOS_PER_MILLI) as i64),
        }
    }
}

/// Time passed on the machine's monotonic clock since it was made: for a person who waits, never for a decision.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where the monotonic clock is read")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// The machine's wall clock, in whole seconds: for a command that asks what comes next and has no store to ask the
/// time. Nothing is ever decided by it.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is where the wall clock is read")]
pub fn wall_clock() -> ScheduledTime {
    let now = Timestamp::now();
    ScheduledTime::floor(Millis(now.as_millisecond())).unwrap_or_else(|_| unreachable!("the year is below 10000"))
}

fn drift(passed: i128) -> i128 {
    passed.max(0) * DRIFT_PER_MILLION / 1_000_000
}

/// What one answer says about the difference of the clocks.
fn bounds_of(date: Timestamp, sent: i128, received: i128) -> Offset {
    let second = i128::from(date.as_second()) * NANOS_PER_SECOND;
    // The store wrote `second`, meaning some instant of it, at some moment between `sent` and `received` of our clock.
    Offset { least: second - received, most: second + NANOS_PER_SECOND - sent }
}

impl DateObserver for StorageClock {
    fn mark(&self) -> u64 {
        u64::try_from(self.monotonic()).unwrap_or(u64::MAX)
    }

    fn observe(&self, date: &str, sent: u64, received: u64) {
        let Ok(date) = rfc2822::DateTimeParser::new().parse_timestamp(date) else { return };
        let (sent, received) = (i128::from(sent), i128::from(received));
        if received - sent > i128::from(LEASE_MAX.0) * NANOS_PER_MILLI {
            return;
        }
        let new = bounds_of(date, sent, received);
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        let joined = bounds.offset.filter(|_| !bounds.anew).map(|old| {
            let drift = drift(received - bounds.seen);
            Offset { least: (old.least - drift).max(new.least), most: (old.most + drift).min(new.most) }
        });
        bounds.offset = Some(joined.filter(|joined| joined.least <= joined.most).unwrap_or(new));
        bounds.seen = bounds.seen.max(received);
        bounds.anew = false;
    }
}

#[async_trait]
impl Clock for StorageClock {
    fn now(&self) -> Reading {
        self.reading_at(self.monotonic())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the port")]
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration.to_std()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A store whose clock is 1,000 s ahead of ours: the `Date` of an answer written at our time `ours`.
    fn date_at(ours: u64) -> String {
        let at = Timestamp::from_nanosecond(i128::from(ours) + 1_000 * NANOS_PER_SECOND).unwrap();
        let whole = Timestamp::from_second(at.as_second()).unwrap();
        rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&whole).unwrap()
    }

    #[test]
    fn the_true_time_lies_within_the_uncertainty_and_answers_narrow_it() {
        let clock = StorageClock::new();
        let mut widths = Vec::new();
        for step in 0..40u64 {
            let written = step * 137_000_000;
            clock.observe(&date_at(written), written.saturating_sub(3_000_000), written + 5_000_000);
            let ours = i128::from(written) + 20_000_000;
            let reading = clock.reading_at(ours);
            let truth = Millis(((ours + 1_000 * NANOS_PER_SECOND) / NANOS_PER_MILLI) as i64);
            assert!(reading.earliest() <= truth && truth <= reading.latest(), "{step}: {reading:?} {truth:?}");
            widths.push(reading.uncertainty.0);
        }
        assert!(widths[0] >= 500 && widths[0] <= 510, "{widths:?}");
        assert!(*widths.last().unwrap() < 100, "{widths:?}");
    }

    #[test]
    fn an_answer_that_contradicts_the_rest_anchors_the_clock_anew() {
        let clock = StorageClock::new();
        clock.observe(&date_at(SECOND), SECOND, SECOND);
        // The process was frozen for an hour, and its monotonic clock with it.
        let later = date_at(3_601 * SECOND);
        clock.observe(&later, 2 * SECOND, 2 * SECOND);
        let reading = clock.reading_at(i128::from(2 * SECOND));
        let truth = Millis((3_601 + 1_000) * 1_000);
        assert!(reading.earliest() <= truth && truth <= reading.latest(), "{reading:?}");
    }

    #[test]
    fn a_clock_without_an_anchor_is_sure_of_nothing() {
        let clock = StorageClock::new();
        assert!(!clock.now().is_surely_after(Millis(0)));
        assert!(!clock.now().is_surely_before(Millis(4_000_000_000_000)));
        clock.observe(&date_at(SECOND), SECOND, SECOND);
        assert!(clock.is_anchored());
    }

    #[test]
    fn an_invocation_starts_from_its_own_first_answer() {
        let clock = StorageClock::new();
        for step in 1..40u64 {
            clock.observe(&date_at(step * 137_000_000), step * 137_000_000, step * 137_000_000);
        }
        clock.anchor_anew();
        clock.observe(&date_at(8 * SECOND), 8 * SECOND, 8 * SECOND);
        assert_eq!(clock.reading_at(i128::from(8 * SECOND)).uncertainty, Duration(500));
    }
}
