//! Time in the models: a true clock of few values, and readers of it that may be wrong.

use shardcron_domain::time::{Duration, Millis, Reading};

/// One tick of the true clock: longer than a lease and a pause after a failure, so that each tick ends them.
pub const TICK: Duration = Duration(10_000);

/// How long a lease lasts.
pub const LEASE: Duration = Duration(5_000);

/// What a clock reads that is `skew` ticks ahead of the true one, and doesn't know it.
#[must_use]
pub fn reading(tick: i8, skew: i8) -> Reading {
    Reading::exact(Millis(TICK.0 * (i64::from(tick) + i64::from(skew))))
}

/// The first tick at which something due at `at` is past, and later than now.
#[must_use]
pub fn tick_after(at: Millis, now: i8) -> i8 {
    let tick = i8::try_from(at.0.div_euclid(TICK.0) + 1).unwrap_or(i8::MAX);
    tick.max(now + 1)
}
