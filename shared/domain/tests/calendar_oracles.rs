//! Our calendar against other libraries, wherever their meaning is the same; and, measured, where it isn't.
//!
//! croner without a zone is asked about UTC: it knows all of `L`, `W` and `#`, and joins the day fields as we do.
//!
//! `cron` and `chrono-tz` are asked in a zone of the world, between two changes of its clocks, about schedules that
//! mean the same there: a second's field is put before and one day field at most is restricted (`cron` takes both
//! restricted as "and"), weekdays are written as names (`cron` counts Sunday as 1), and `L`, `W` and `#` don't occur.
//! Gaps and overlaps are left out, because `cron` loses the first and disorders the second; so are instants at which
//! `chrono-tz`, whose rules are those of 2025b, has another offset.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use std::cmp::Ordering;
use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;
use croner::errors::CronError;
use croner::{CivilDateTime, Cron, CronDateTime, Resolution, Weekday};
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;
use shardcron_domain::calendar::{Calendar, Dst, ZoneRules};
use shardcron_domain::time::ScheduledTime;

fn time(second: i64) -> ScheduledTime {
    ScheduledTime::from_second(second).unwrap()
}

fn calendar(schedule: &str, zone: &str) -> Calendar {
    let zone = ZoneRules::bundled().zone(zone).unwrap();
    Calendar::new(schedule, &zone, Dst::default(), time(0)).unwrap_or_else(|error| panic!("{schedule}: {error}"))
}

/// chrono's time without a zone, for croner.
#[derive(Clone, Debug)]
struct Naive(NaiveDateTime);

impl CronDateTime for Naive {
    fn to_civil(&self) -> CivilDateTime {
        let (date, time) = (self.0.date(), self.0.time());
        let parts = (date.year(), date.month(), date.day(), time.hour(), time.minute(), time.second());
        CivilDateTime::from_ymd_hms_opt(parts.0, parts.1, parts.2, parts.3, parts.4, parts.5).unwrap()
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(self.0.weekday().num_days_from_sunday())
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let date = chrono::NaiveDate::from_ymd_opt(civil.year(), civil.month(), civil.day());
        let time = date.and_then(|date| date.and_hms_opt(civil.hour(), civil.minute(), civil.second()));
        time.map(|time| Resolution::Single(Self(time))).ok_or(CronError::InvalidDate)
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add_signed(TimeDelta::seconds(seconds)).map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

fn field(first: u16, last: u16) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => (1..=last - first).prop_map(|step| format!("*/{step}")),
        2 => (first..=last).prop_map(|value| value.to_string()),
        2 => (first..=last, first..=last).prop_map(|(a, b)| format!("{a},{b}")),
        2 => (first..=last, first..=last, 1..=last - first)
            .prop_map(|(a, b, step)| format!("{}-{}/{step}", a.min(b), a.max(b))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn croner_without_a_zone_agrees_in_utc(
        minute in field(0, 59),
        hour in field(0, 23),
        day in prop_oneof![3 => field(1, 31), 2 => select(vec!["L", "LW", "15W", "1W,20", "31W,L"]).prop_map(str::to_owned)],
        month in field(1, 12),
        weekday in prop_oneof![
            3 => field(0, 7),
            2 => select(vec!["MON", "FRI-SUN", "5#5", "MON#1,FRI", "FRI#L", "0L"]).prop_map(str::to_owned)
        ],
        at in 631_152_000..4_449_513_600_i64,
    ) {
        let schedule = format!("{minute} {hour} {day} {month} {weekday}");
        // `*/1` is no star to croner, and the week has eight values there.
        prop_assume!(day != "*/1" && weekday != "*/1");
        let utc = ZoneRules::bundled().zone("UTC").unwrap();
        let Ok(ours) = Calendar::new(&schedule, &utc, Dst::default(), time(0)) else {
            let cron = Cron::from_str(&schedule).unwrap();
            let start = Naive(DateTime::<Utc>::from_timestamp(at, 0).unwrap().naive_utc());
            prop_assert!(cron.find_next_occurrence(&start, false).is_err(), "{schedule} fires");
            return Ok(());
        };
        let cron = Cron::from_str(&schedule).unwrap();
        let (mut theirs, mut last) = (Naive(DateTime::<Utc>::from_timestamp(at, 0).unwrap().naive_utc()), time(at));
        for _ in 0..10 {
            theirs = cron.find_next_occurrence(&theirs, false).unwrap();
            last = ours.after(last).unwrap();
            prop_assert_eq!(last.as_second(), theirs.0.and_utc().timestamp(), "{}", schedule);
        }
        for _ in 0..10 {
            theirs = cron.find_previous_occurrence(&theirs, false).unwrap();
            last = ours.before(last).unwrap();
            prop_assert_eq!(last.as_second(), theirs.0.and_utc().timestamp(), "{}", schedule);
        }
    }

    #[test]
    fn cron_and_chrono_tz_agree_between_two_changes_of_a_zone(
        minute in field(0, 59),
        hour in field(0, 23),
        days in prop_oneof![
            field(1, 31).prop_map(|day| (day, "*".to_owned())),
            select(vec!["MON", "SUN,WED", "TUE-FRI", "SAT"]).prop_map(|weekday| ("*".to_owned(), weekday.to_owned())),
        ],
        month in field(1, 12),
        zone in select(chrono_tz::TZ_VARIANTS.to_vec()),
        // 1990 to 2050.
        at in 631_152_000..2_524_608_000_i64,
    ) {
        let name = zone.name();
        let Ok(known) = ZoneRules::bundled().zone(name) else { return Ok(()) };
        let fields = format!("{minute} {hour} {} {month} {}", days.0, days.1);
        let Ok(ours) = Calendar::new(&fields, &known, Dst::default(), time(0)) else { return Ok(()) };
        let theirs = cron::Schedule::from_str(&format!("0 {fields}")).unwrap();
        let start = DateTime::<Utc>::from_timestamp(at, 0).unwrap().with_timezone(&zone);
        // A day on either side of a change belongs to it.
        let timestamp = |second: i64| Timestamp::from_second(second).unwrap();
        let change = |second: i64| {
            known.time_zone().following(timestamp(second)).next().map_or(i64::MAX, |next| next.timestamp().as_second())
        };
        prop_assume!(change(at - 86_400) > at);
        let end = change(at).saturating_sub(86_400);
        let mut last = time(at);
        for next in theirs.after(&start).take(10) {
            let second = next.timestamp();
            if second >= end || !same_offset(&known, zone, second) {
                break;
            }
            last = ours.after(last).unwrap();
            prop_assert_eq!(last.as_second(), second, "{} {}", fields, name);
        }
    }
}

/// Whether `chrono-tz` and the calendar's rules have the same offset in `zone` at this second.
fn same_offset(known: &shardcron_domain::calendar::Zone, zone: Tz, second: i64) -> bool {
    use chrono::Offset;
    let ours = known.time_zone().to_offset(Timestamp::from_second(second).unwrap()).seconds();
    let theirs = DateTime::<Utc>::from_timestamp(second, 0).unwrap().with_timezone(&zone);
    ours == theirs.offset().fix().local_minus_utc()
}

/// The next `count` times of `cron` after `after`, in UTC.
fn of_cron(schedule: &str, zone: Tz, after: &str, count: usize) -> Vec<String> {
    let start = DateTime::parse_from_rfc3339(after).unwrap().with_timezone(&zone);
    let schedule = cron::Schedule::from_str(schedule).unwrap();
    let text = |time: DateTime<Tz>| time.with_timezone(&Utc).format("%Y-%m-%dT%H:%M:%SZ").to_string();
    schedule.after(&start).take(count).map(text).collect()
}

fn of_ours(schedule: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let calendar = calendar(schedule, zone);
    let first = calendar.after(after.parse().unwrap());
    std::iter::successors(first, |&time| calendar.after(time)).take(count).map(|time| time.to_string()).collect()
}

/// Why `cron` is an oracle and no part of the calendar.
#[test]
fn cron_means_something_else_by_five_fields_weekdays_days_gaps_and_overlaps() {
    use chrono_tz::America::New_York;
    assert!(cron::Schedule::from_str("0 2 * * *").is_err(), "it reads no five fields");

    let year = "2026-01-01T00:00:00Z";
    assert_eq!(of_cron("0 0 0 * * 1", Tz::UTC, year, 1), ["2026-01-04T00:00:00Z"], "1 is Sunday to it");
    assert_eq!(of_ours("0 0 * * 1", "UTC", year, 1), ["2026-01-05T00:00:00Z"]);

    assert_eq!(of_cron("0 0 0 13 * Fri", Tz::UTC, year, 1), ["2026-02-13T00:00:00Z"], "it joins with and");
    assert_eq!(of_ours("0 0 13 * Fri", "UTC", year, 1), ["2026-01-02T00:00:00Z"]);

    let spring = "2025-03-08T12:00:00Z";
    assert_eq!(of_cron("0 30 2 * * *", New_York, spring, 1), ["2025-03-10T06:30:00Z"], "it loses the day");
    assert_eq!(of_ours("30 2 * * *", "America/New_York", spring, 1), ["2025-03-09T07:00:00Z"]);

    let autumn = "2025-11-02T05:00:00Z";
    let theirs = of_cron("0 30,45 1 * * *", New_York, autumn, 4);
    let order = ["2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z", "2025-11-02T05:45:00Z", "2025-11-02T06:45:00Z"];
    assert_eq!(theirs, order, "it goes back in time");
}

/// Why `chrono-tz` is an oracle and no part of the calendar.
#[test]
fn chrono_tz_is_an_hour_off_where_the_rules_changed_since_2025b() {
    assert_eq!(chrono_tz::IANA_TZDB_VERSION, "2025b");
    let second = "2026-12-01T00:00:00Z".parse::<Timestamp>().unwrap().as_second();
    for name in ["America/Vancouver", "America/Edmonton", "America/Winnipeg", "America/Havana", "Africa/Casablanca"] {
        let zone = ZoneRules::bundled().zone(name).unwrap();
        assert!(!same_offset(&zone, name.parse().unwrap(), second), "{name}");
    }
    let same = chrono_tz::TZ_VARIANTS
        .iter()
        .filter(|zone| ZoneRules::bundled().zone(zone.name()).is_ok_and(|known| same_offset(&known, **zone, second)));
    assert!(same.count() > 550, "and right nearly everywhere else");
}

/// Why our own reading stands before croner.
#[test]
fn croner_reads_what_must_be_refused_and_refuses_what_must_be_read() {
    let next = |schedule: &str, after: &str| {
        let start = Naive(DateTime::parse_from_rfc3339(after).unwrap().naive_utc());
        let next = Cron::from_str(schedule).unwrap().find_next_occurrence(&start, false);
        next.ok().map(|next| next.0.and_utc().format("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    let utc = ZoneRules::bundled().zone("UTC").unwrap();
    let year = "2026-01-01T00:00:00Z";
    for wrong in ["1,,2 * * * *", ", * * * *", "*/90 * * * *", "0 0 * * L", "0 0 30 2 *"] {
        assert!(Cron::from_str(wrong).is_ok(), "{wrong}");
        assert!(Calendar::new(wrong, &utc, Dst::default(), time(0)).is_err(), "{wrong}");
    }
    assert_eq!(next("0 0 * * L", year), None, "it never fires");
    assert!(Cron::from_str("5/15 * * * *").is_err());
    assert_eq!(of_ours("5/15 * * * *", "UTC", year, 1), ["2026-01-01T00:05:00Z"]);

    let every_day = next("0 0 */1 * 1", year);
    assert_eq!(every_day.unwrap(), "2026-01-02T00:00:00Z", "`*/1` restricts");
    assert_eq!(of_ours("0 0 */1 * 1", "UTC", year, 1), ["2026-01-05T00:00:00Z"]);

    let last_day = "2026-01-30T12:00:00Z";
    assert_eq!(next("0 0 L,LW * *", last_day).unwrap(), "2026-02-27T00:00:00Z", "the L is lost");
    assert_eq!(of_ours("0 0 L,LW * *", "UTC", last_day, 1), ["2026-01-31T00:00:00Z"]);

    assert_eq!(next("0 0 1 1 *", "5000-01-01T00:00:00Z"), None, "its years end");
    assert_eq!(of_ours("0 0 1 1 *", "UTC", "5000-01-01T00:00:00Z", 1), ["5001-01-01T00:00:00Z"]);
}

/// Why the transitions before an instant are found by going forward.
#[test]
fn jiff_goes_backwards_past_a_transition_that_it_knows_going_forward() {
    let zone = ZoneRules::bundled().zone("America/Ciudad_Juarez").unwrap();
    let (autumn, spring): (Timestamp, Timestamp) =
        ("2022-11-01T00:00:00Z".parse().unwrap(), "2023-01-01T00:00:00Z".parse().unwrap());
    let forward = zone.time_zone().following(autumn).next().unwrap().timestamp();
    assert_eq!(forward.to_string(), "2022-11-30T06:00:00Z");
    let backward = zone.time_zone().preceding(spring).next().unwrap().timestamp();
    assert_eq!(backward.to_string(), "2022-11-06T08:00:00Z", "which never was: the offset is the same around it");
    let offset = |second: i64| zone.time_zone().to_offset(Timestamp::from_second(second).unwrap());
    assert_eq!(offset(backward.as_second() - 1), offset(backward.as_second()));
}
