//! How long the calendar takes. Nothing here asserts a time; the numbers are printed:
//!
//! ```text
//! cargo test --release -p shardcron-domain --bench calendar -- --nocapture --test-threads 1
//! ```

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use std::hint::black_box;
use std::time::Duration;

use shardcron_domain::calendar::{Calendar, Dst, ZoneRules};
use shardcron_domain::time::ScheduledTime;

fn at(text: &str) -> ScheduledTime {
    text.parse().unwrap()
}

fn calendar(schedule: &str, zone: &str) -> Calendar {
    let zone = ZoneRules::bundled().zone(zone).unwrap();
    Calendar::new(schedule, &zone, Dst::default(), at("2025-01-01T00:00:00Z")).unwrap()
}

/// The mean time of `times` calls.
fn mean<T>(times: u32, mut call: impl FnMut() -> T) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = std::time::Instant::now();
    for _ in 0..times {
        black_box(call());
    }
    start.elapsed() / times
}

#[test]
fn a_year_of_every_minute() {
    for (schedule, zone) in
        [("* * * * *", "UTC"), ("* * * * *", "America/New_York"), ("0-59 0-23 * * *", "Europe/London")]
    {
        let calendar = calendar(schedule, zone);
        let (from, to) = (at("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
        let count = calendar.between(from, to).count();
        let taken = mean(3, || calendar.between(from, to).count());
        println!("a year of `{schedule}` in {zone}: {count} times in {taken:.1?}");
    }
}

#[test]
fn one_step() {
    let cases = [
        ("* * * * *", "America/New_York", "2025-06-01T00:00:00Z"),
        ("30 2 * * *", "America/New_York", "2025-03-08T12:00:00Z"),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z"),
        ("0 0 29 2 *", "Europe/Berlin", "2096-03-01T00:00:00Z"),
        ("0 0 * 2 SUN#5", "Europe/Berlin", "2088-03-01T00:00:00Z"),
        ("cron(0 0 29 2 ? 2196)", "Europe/Berlin", "1970-01-01T00:00:00Z"),
    ];
    for (schedule, zone, from) in cases {
        let calendar = calendar(schedule, zone);
        let from = at(from);
        let to = calendar.after(from).unwrap();
        let after = mean(2_000, || calendar.after(from));
        let before = mean(2_000, || calendar.before(to));
        println!("`{schedule}` in {zone} from {from}: after {after:.1?} (at {to}), before {before:.1?}");
    }
}

#[test]
fn making_one() {
    for schedule in ["@daily", "*/15 9-17 * * MON-FRI", "0 0 29 2 *"] {
        let taken = mean(500, || calendar(schedule, "Europe/Berlin"));
        println!("making `{schedule}`: {taken:.1?}");
    }
    let zone = ZoneRules::bundled().zone("UTC").unwrap();
    let start = at("2025-01-01T00:00:00Z");
    let taken = mean(20, || Calendar::new("0 0 30 2 *", &zone, Dst::default(), start).is_err());
    println!("refusing `0 0 30 2 *`: {taken:.1?}");
}
