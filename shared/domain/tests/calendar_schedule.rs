//! The dialects: what is read, as what, and what is refused, with which field and which way out.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use shardcron_domain::calendar::{Calendar, CalendarError, Dst, ZoneRules};
use shardcron_domain::time::ScheduledTime;

fn at(text: &str) -> ScheduledTime {
    text.parse().unwrap()
}

fn read(schedule: &str) -> Result<Calendar, CalendarError> {
    let zone = ZoneRules::bundled().zone("UTC")?;
    Calendar::new(schedule, &zone, Dst::default(), at("2026-01-01T00:00:00Z"))
}

fn next(schedule: &str, after: &str, count: usize) -> Vec<String> {
    let calendar = read(schedule).unwrap_or_else(|error| panic!("{schedule}: {error}"));
    let times = std::iter::successors(calendar.after(at(after)), |&time| calendar.after(time));
    times.take(count).map(|time| time.to_string()).collect()
}

/// The days of the first `count` times after 2026-01-01, for schedules that run at midnight.
fn days(schedule: &str, count: usize) -> Vec<String> {
    let strip = |time: String| time.strip_suffix("T00:00:00Z").unwrap_or_else(|| panic!("{time}")).to_owned();
    next(schedule, "2026-01-01T00:00:00Z", count).into_iter().map(strip).collect()
}

#[test]
fn two_ways_of_writing_a_schedule_give_the_same_times() {
    let same = [
        ("*/1 * * * *", "* * * * *"),
        ("0-59 * * * *", "* * * * *"),
        ("5/15 * * * *", "5,20,35,50 * * * *"),
        ("00 09 01 01 *", "0 9 1 1 *"),
        ("0/60 * * * *", "0 * * * *"),
        ("10-20/60 * * * *", "10 * * * *"),
        ("*/20,7 * * * *", "0,7,20,40 * * * *"),
        ("*,5 * * * *", "* * * * *"),
        ("30,10,20 * * * *", "10,20,30 * * * *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * SUN", "0 0 * * 0"),
        ("0 0 * * FRI-SUN", "0 0 * * 5,6,0"),
        ("0 0 * * fri-Sun", "0 0 * * 5-7"),
        ("0 0 * * SUN-SUN", "0 0 * * 0"),
        ("0 0 * * SUN-TUE", "0 0 * * 0-2"),
        ("0 0 * * 7-7", "0 0 * * 0"),
        ("0 0 * * 1-7/2", "0 0 * * 0,1,3,5"),
        ("0 0 * * */2", "0 0 * * 0,2,4,6"),
        ("0 0 * * 0-7/2", "0 0 * * 0,2,4,6"),
        ("0 0 * * SUN/3", "0 0 * * 0,3,6"),
        ("0 0 * * mon/2", "0 0 * * 1,3,5"),
        ("0 0 * jan,MAR-may *", "0 0 * 1,3,4,5 *"),
        ("0 0 1 NOV/1 *", "0 0 1 11,12 *"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 */1 * MON", "0 0 * * 1"),
        ("0 0 10 * */1", "0 0 10 * *"),
        ("0 0 l * *", "0 0 L * *"),
        ("0 0 lw * *", "0 0 LW * *"),
        ("0 0 * * 5L", "0 0 * * FRI#L"),
        ("0 0 * * friL", "0 0 * * 5#L"),
        ("0 0 * * fri-sun", "0 0 * * 5-7"),
        ("0 0 l,lw,15w * mon#l", "0 0 L,LW,15W * MON#L"),
        ("cron(0 0 ? * l *)", "cron(0 0 ? * L *)"),
        ("0 0 * * 7L", "0 0 * * 0L"),
        ("0 0 * * 7#2", "0 0 * * SUN#2"),
        ("  0   0 * * *\t", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@hourly", "0 * * * *"),
        ("@monthly", "0 0 1 * *"),
        ("cron(0 0 ? * 1 *)", "0 0 * * 0"),
        ("cron(0 0 ? * 7 *)", "0 0 * * 6"),
        ("cron(0 0 ? * L *)", "0 0 * * 6"),
        ("cron(0 0 ? * FRI-SUN *)", "0 0 * * 5-7"),
        ("cron(0 0 ? * MON-FRI *)", "0 0 * * 1-5"),
        ("cron(0 0 ? * 2-6 *)", "0 0 * * 1-5"),
        ("cron(0 0 ? * 6#3 *)", "0 0 * * 5#3"),
        ("cron(0 0 ? * 6L *)", "0 0 * * 5L"),
        ("cron(0 0 ? * 2/2 *)", "0 0 * * 1,3,5"),
        ("cron(0 0 L * ? *)", "0 0 L * *"),
        ("cron(0 0 3W * ? *)", "0 0 3W * *"),
        ("cron(0/10 * ? * MON-FRI *)", "*/10 * * * 1-5"),
        ("cron( 0 0 * * ? 1970-2199 )", "0 0 * * *"),
    ];
    for (one, other) in same {
        for after in ["2026-01-01T00:00:00Z", "2027-12-30T12:34:56Z"] {
            assert_eq!(next(one, after, 40), next(other, after, 40), "{one} and {other}");
        }
    }
}

#[test]
fn days_that_differ_from_month_to_month() {
    assert_eq!(days("0 0 L * *", 3), ["2026-01-31", "2026-02-28", "2026-03-31"]);
    assert_eq!(days("0 0 LW * *", 3), ["2026-01-30", "2026-02-27", "2026-03-31"]);
    // 1 February 2026 is a Sunday, 1 August a Saturday: the month isn't left.
    assert_eq!(next("0 0 1W * *", "2026-01-31T00:00:00Z", 1), ["2026-02-02T00:00:00Z"]);
    assert_eq!(next("0 0 1W * *", "2026-07-31T00:00:00Z", 1), ["2026-08-03T00:00:00Z"]);
    // 31 May 2026 is a Sunday; only months of 31 days have a 31W.
    assert_eq!(days("0 0 31W * *", 4), ["2026-01-30", "2026-03-31", "2026-05-29", "2026-07-31"]);
    assert_eq!(days("0 0 1,L * *", 4), ["2026-01-31", "2026-02-01", "2026-02-28", "2026-03-01"]);
    // 31 January 2026 is a Saturday: the last day and the last weekday are two.
    assert_eq!(days("0 0 L,LW * *", 4), ["2026-01-30", "2026-01-31", "2026-02-27", "2026-02-28"]);
    assert_eq!(days("0 0 LW,15W * *", 3), ["2026-01-15", "2026-01-30", "2026-02-16"]);
    assert_eq!(days("0 0 L,15W * *", 3), ["2026-01-15", "2026-01-31", "2026-02-16"]);
    assert_eq!(days("0 0 * * 5#3", 3), ["2026-01-16", "2026-02-20", "2026-03-20"]);
    assert_eq!(days("0 0 * * MON#1,FRIL", 4), ["2026-01-05", "2026-01-30", "2026-02-02", "2026-02-27"]);
    // A fifth Sunday in February: leap years that begin on a Thursday.
    assert_eq!(days("0 0 * 2 SUN#5", 2), ["2032-02-29", "2060-02-29"]);
}

#[test]
fn with_both_day_fields_restricted_either_matches() {
    assert_eq!(days("0 0 15W * 1", 4), ["2026-01-05", "2026-01-12", "2026-01-15", "2026-01-19"]);
    assert_eq!(days("0 0 L * FRI#1", 3), ["2026-01-02", "2026-01-31", "2026-02-06"]);
    assert_eq!(days("0 0 */31 * 1", 4), ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26"]);
    assert_eq!(days("0 0 30 2 1", 2), ["2026-02-02", "2026-02-09"]);
    assert_eq!(days("0 0 L,LW * MON#1", 3), ["2026-01-05", "2026-01-30", "2026-01-31"]);
}

#[test]
fn rare_dates_are_found_however_far_away() {
    assert_eq!(next("0 0 29 2 *", "2096-03-01T00:00:00Z", 1), ["2104-02-29T00:00:00Z"]);
    assert_eq!(next("0 0 29 2 *", "2896-03-01T00:00:00Z", 1), ["2904-02-29T00:00:00Z"]);
    assert_eq!(next("0 0 29 2 *", "9896-03-01T00:00:00Z", 1), ["9904-02-29T00:00:00Z"]);
    let calendar = read("0 0 29 2 *").unwrap();
    assert_eq!(calendar.before(at("2104-02-29T00:00:00Z")), Some(at("2096-02-29T00:00:00Z")));
    assert_eq!(calendar.before(at("0000-03-01T00:00:00Z")), Some(at("0000-02-29T00:00:00Z")));
    assert_eq!(calendar.before(at("0000-02-29T00:00:00Z")), None);
    let far = read("cron(0 0 29 2 ? 2196)").unwrap();
    assert_eq!(far.after(at("1970-01-01T00:00:00Z")), Some(at("2196-02-29T00:00:00Z")));
    assert_eq!(far.after(at("2196-02-29T00:00:00Z")), None);
    assert_eq!(far.before(at("9999-01-01T00:00:00Z")), Some(at("2196-02-29T00:00:00Z")));
    assert_eq!(far.before(at("2196-02-29T00:00:00Z")), None);
}

#[test]
fn a_year_field_of_every_year_ends_where_one_of_numbers_does() {
    for year in ["*", "*/1", "1970-2199"] {
        let calendar = read(&format!("cron(0 0 1 * ? {year})")).unwrap();
        let (first, last) = (at("1970-01-01T00:00:00Z"), at("2199-12-01T00:00:00Z"));
        assert_eq!(calendar.before(first), None, "{year}");
        assert_eq!(calendar.after(at("0000-01-01T00:00:00Z")), Some(first), "{year}");
        assert_eq!(calendar.after(last), None, "{year}");
        assert_eq!(calendar.before(at("9999-01-01T00:00:00Z")), Some(last), "{year}");
    }
    let error = read("cron(0 0 31 2 ? *)").unwrap_err().reason;
    assert!(error.ends_with("no date has day-of-month `31` in month `2`"), "{error}");
}

#[test]
fn time_ends_with_the_year_9999() {
    for schedule in ["* * * * *", "0 0 1 * *", "@yearly", "rate(1 day)"] {
        let calendar = read(schedule).unwrap();
        let last = ScheduledTime::from_second(253_402_207_200).unwrap();
        assert_eq!(calendar.after(last), None, "{schedule}");
        assert!(calendar.before(last).is_some(), "{schedule}");
        let first = at("0000-01-01T00:00:00Z");
        assert_eq!(calendar.before(first), None, "{schedule}");
        assert!(calendar.after(first).is_some(), "{schedule}");
    }
}

#[test]
fn named_years_are_the_only_ones() {
    let calendar = read("cron(0 0 1 1 ? 2026,2030-2040/5)").unwrap();
    let years: Vec<_> = calendar
        .between(at("1900-01-01T00:00:00Z"), at("9000-01-01T00:00:00Z"))
        .map(|time| time.to_string()[..4].to_owned())
        .collect();
    assert_eq!(years, ["2026", "2030", "2035", "2040"]);
    assert_eq!(calendar.before(at("2026-01-01T00:00:00Z")), None);
}

#[test]
fn a_rate_counts_elapsed_time_from_the_start_and_leaves_the_start_out() {
    let zone = ZoneRules::bundled().zone("America/New_York").unwrap();
    let start = at("2025-03-08T06:30:10Z");
    let calendar = Calendar::new("rate(12 hours)", &zone, Dst::default(), start).unwrap();
    assert!(calendar.is_rate());
    // Over the day of 23 hours.
    let times: Vec<_> = calendar.between(start, at("2025-03-09T18:30:11Z")).map(|time| time.to_string()).collect();
    assert_eq!(times, ["2025-03-08T18:30:10Z", "2025-03-09T06:30:10Z", "2025-03-09T18:30:10Z"]);
    assert!(!calendar.contains(start));
    assert!(calendar.contains(at("2025-03-09T06:30:10Z")));
    assert!(!calendar.contains(at("2025-03-09T06:30:11Z")));
    assert_eq!(calendar.after(at("2000-01-01T00:00:00Z")), Some(at("2025-03-08T18:30:10Z")));
    assert_eq!(calendar.before(at("2025-03-08T18:30:10Z")), None);
    assert_eq!(calendar.before(at("2025-03-08T18:30:11Z")), Some(at("2025-03-08T18:30:10Z")));
    assert_eq!(next("rate(1 day)", "2026-01-01T00:00:00Z", 1), ["2026-01-02T00:00:00Z"]);
    assert_eq!(next("rate(1 minute)", "2026-01-01T00:00:00Z", 1), ["2026-01-01T00:01:00Z"]);
}

/// The schedules that are refused, with what their error says: a part of the reason, a part of the hint.
const REFUSED: &[(&str, &str, &str)] = &[
    ("", "empty", "five fields"),
    ("   ", "empty", "five fields"),
    ("*", "1 field,", "five fields"),
    ("* * * *", "4 fields", "five fields"),
    ("0 10 * * 5 *", "six fields", "cron(...)"),
    ("0 0 9 * * MON-FRI", "six fields", "cron(...)"),
    ("0 0 9 * * ? 2026", "7 fields", "five fields"),
    ("* * * * * * * *", "8 fields", "five fields"),
    ("@Daily", "lower case", "@daily"),
    ("@DAILY", "lower case", "@daily"),
    ("@daily 0 0 * * *", "stands alone", "take either"),
    ("@every 5m", "@every", "rate("),
    ("@every", "@every", "rate("),
    ("@reboot", "@reboot", "five fields"),
    ("@fortnightly", "isn't one of the words", "five fields"),
    ("TZ=UTC 0 0 * * *", "zone", "timeZone"),
    ("CRON_TZ=Asia/Tokyo 0 0 * * *", "zone", "timeZone"),
    ("\u{ff10}\u{ff10} 0 * * *", "ASCII", "ASCII"),
    ("\u{660} 0 * * *", "ASCII", "ASCII"),
    ("0\u{a0}0 * * *", "ASCII", "ASCII"),
    ("60 * * * *", "minute: `60`", ""),
    ("99999999999999999999 * * * *", "minute:", ""),
    ("+5 * * * *", "minute: `+5`", ""),
    ("-5 * * * *", "minute: the range `-5`", ""),
    ("5- * * * *", "minute: the range `5-`", ""),
    ("1-2-3 * * * *", "minute: `2-3`", ""),
    ("5.5 * * * *", "minute: `5.5`", ""),
    ("*5 * * * *", "minute: `*5`", ""),
    ("** * * * *", "minute: `**`", ""),
    ("1/2/3 * * * *", "minute: the step", ""),
    ("/5 * * * *", "minute: ``", ""),
    ("*/ * * * *", "minute: the step", ""),
    ("*/0 * * * *", "minute: the step of `*/0` is 0", ""),
    ("*/90 * * * *", "minute: the step of `*/90` is over 60", ""),
    ("5/61 * * * *", "minute: the step", ""),
    ("0 */25 * * *", "hour: the step of `*/25` is over 24", ""),
    ("0 0 */32 * *", "day-of-month: the step", ""),
    ("0 0 1 */13 *", "month: the step", ""),
    ("0 0 * * */8", "day-of-week: the step of `*/8` is over 7", ""),
    ("1,,2 * * * *", "minute: `1,,2` has an empty list item", "comma"),
    (", * * * *", "minute: `,` has an empty list item", "comma"),
    ("0 0 1, * *", "day-of-month: `1,` has an empty list item", "comma"),
    ("H * * * *", "minute: `H`", ""),
    ("0~30 * * * *", "minute: `0~30`", ""),
    ("? 12 * * *", "minute: `?` stands only in a day field", "*"),
    ("0 ? * * *", "hour: `?`", "*"),
    ("0 0 1 ? *", "month: `?`", "*"),
    ("0 0 ?,5 * *", "day-of-month: `?` stands alone", ""),
    ("0 0 ?/2 * *", "day-of-month: `?` stands alone", ""),
    ("0 0 *,5 * MON", "day-of-month: `*` in the list", "alone"),
    ("0 24 * * *", "hour: `24`", ""),
    ("0 0 0 * *", "day-of-month: `0`", ""),
    ("0 0 32 * *", "day-of-month: `32`", ""),
    ("0 0 0W * *", "day-of-month: `0`", ""),
    ("0 0 32W * *", "day-of-month: `32`", ""),
    ("0 0 W * *", "day-of-month: ``", ""),
    ("0 0 1-5W * *", "day-of-month: `1-5`", ""),
    ("0 0 L-3 * *", "day-of-month: `L-3` isn't supported", ""),
    ("0 0 L/2 * *", "day-of-month: `L/2` isn't supported", ""),
    ("0 0 5L * *", "day-of-month: `5L`", ""),
    ("0 0 5#2 * *", "day-of-month: `5#2`", ""),
    ("L * * * *", "minute: `L`", ""),
    ("0 15W * * *", "hour: `15W`", ""),
    ("0 0 * 0 *", "month: `0`", ""),
    ("0 0 * 13 *", "month: `13`", ""),
    ("0 0 * Foo *", "month: `Foo`", ""),
    ("0 0 * june *", "month: `june`", "JUN"),
    ("0 0 l-3 * *", "day-of-month: `l-3` isn't supported", ""),
    ("0 0 * * sat-mon", "day-of-week: the range `sat-mon` runs backwards", "sat-6,0-mon"),
    ("0 0 * * l", "day-of-week: `l` needs a weekday", "5L"),
    ("0 0 * * mon#6", "day-of-week: `mon#6`", ""),
    ("0 0 * MON *", "month: `MON`", ""),
    ("0 0 * JUNE *", "month: `JUNE`", "JUN"),
    ("0 0 * DEC-JAN *", "month: the range `DEC-JAN` runs backwards", "DEC-12,1-JAN"),
    ("0 0 * * 8", "day-of-week: `8`", ""),
    ("0 0 * * MONDAY", "day-of-week: `MONDAY`", "MON"),
    ("0 0 * * JAN", "day-of-week: `JAN`", ""),
    ("0 0 * * 5-0", "day-of-week: the range `5-0` runs backwards", "5-7"),
    ("0 0 * * SAT-MON", "day-of-week: the range `SAT-MON` runs backwards", "SAT-6,0-MON"),
    ("0 0 * * 7-2", "day-of-week: the range `7-2` runs backwards", "write 0-2"),
    ("0 0 * * 7-MON", "day-of-week: the range `7-MON` runs backwards", "write 0-MON"),
    ("0 0 * * 7-0", "day-of-week: the range `7-0` runs backwards", "write 0"),
    ("0 0 * * 7/2", "day-of-week: `7/2`", "Sunday as 0"),
    ("0 0 * * L", "day-of-week: `L` needs a weekday", "5L"),
    ("0 0 * * MON#0", "day-of-week: `MON#0`", ""),
    ("0 0 * * MON#6", "day-of-week: `MON#6`", ""),
    ("0 0 * * MON#1#2", "day-of-week: `MON#1#2`", ""),
    ("0 0 * * #1", "day-of-week: ``", ""),
    ("0 0 * * 1-5#2", "day-of-week: `1-5`", ""),
    ("0 0 * * 1-5L", "day-of-week: `1-5`", ""),
    ("0 0 * * 5W", "day-of-week: `5W`", ""),
    ("0 0 * * +MON", "day-of-week: `+MON`", ""),
    ("50-10 * * * *", "minute: the range `50-10` runs backwards", "50-59,0-10"),
    ("0 22-4 * * *", "hour: the range `22-4` runs backwards", "22-23,0-4"),
    ("0 0 30 2 *", "never fire: no date has day-of-month `30` in month `2`", ""),
    ("0 0 31 4,6,9,11 *", "never fire: no date has day-of-month `31` in month", ""),
    ("0 0 30W 2 *", "never fire", ""),
    ("cron(0 0 29 2 ? 2027)", "in year `2027`", ""),
    ("cron(0 0 ? 2 1#5 2026)", "never fire", ""),
    ("cron(0 9 * * * *)", "day-of-month, day-of-week: EventBridge needs `?`", "?"),
    ("cron(0 9 1 * 2 *)", "day-of-month, day-of-week: EventBridge needs `?`", "?"),
    ("cron(0 9 ? * ? *)", "day-of-month, day-of-week: EventBridge allows `?`", "*"),
    ("cron(0 9 * * ?)", "5 fields", "year"),
    ("cron(0 0 9 * * ? *)", "7 fields", "year"),
    ("cron()", "0 fields", "year"),
    ("cron(0 9 * * ? *", "isn't closed", "cron(...)"),
    ("cron(0 9 * * ? *) x", "isn't closed", "cron(...)"),
    ("CRON(0 9 * * ? *)", "lower case", "cron(...)"),
    ("cron (0 9 * * ? *)", "lower case", "cron(...)"),
    ("cron(0 9 ? * 0 *)", "day-of-week: `0` isn't in 1 to 7", ""),
    ("cron(0 9 ? * 8 *)", "day-of-week: `8` isn't in 1 to 7", ""),
    ("cron(0 9 ? * 3#1,6#3 *)", "day-of-week: EventBridge allows one `#`", ""),
    ("cron(0 9 * * ? 1969)", "year: `1969` isn't in 1970 to 2199", ""),
    ("cron(0 9 * * ? 2200)", "year: `2200`", ""),
    ("cron(0 9 * * ? ?)", "year: `?`", ""),
    ("at(2026-01-01T00:00:00)", "isn't a schedule", "trigger"),
    ("every(5 minutes)", "isn't a schedule", ""),
    ("rate()", "rate:", "rate(5 minutes)"),
    ("rate(5)", "rate:", "rate(5 minutes)"),
    ("rate(5 minutes", "isn't closed", "rate(...)"),
    ("rate(5 minute)", "rate: the unit", "rate(5 minutes)"),
    ("rate(1 hours)", "rate: the unit", "rate(1 hour)"),
    ("rate(0 minutes)", "rate: `0`", ""),
    ("rate(-5 minutes)", "rate: `-5`", ""),
    ("rate(1.5 hours)", "rate: `1.5`", ""),
    ("rate(5 Minutes)", "rate: `Minutes`", ""),
    ("rate(30 seconds)", "rate: `seconds`", ""),
    ("rate(2 weeks)", "rate: `weeks`", ""),
    ("rate(5 minutess)", "rate: `minutess`", ""),
    ("rate(9999999999999999999999 days)", "rate: it can never fire", "shorter"),
    ("rate(3000000 days)", "rate: it can never fire", "shorter"),
];

#[test]
fn what_is_wrong_is_refused_with_the_field_the_reason_and_a_way_out() {
    let wrong: Vec<_> = REFUSED
        .iter()
        .filter_map(|&(schedule, reason, hint)| match read(schedule) {
            Ok(_) => Some(format!("`{schedule}` isn't refused")),
            Err(error) => {
                let told = error.field == "schedule"
                    && error.reason.contains(reason)
                    && (hint.is_empty() || error.hint.as_ref().is_some_and(|given| given.contains(hint)));
                (!told).then(|| format!("`{schedule}`: {error:?}"))
            }
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_overlong_schedule_is_refused() {
    let schedule = format!("{} * * * *", vec!["1"; 600].join(","));
    assert!(read(&schedule).unwrap_err().reason.contains("bytes"));
}

#[test]
fn a_schedule_whose_every_time_is_skipped_is_refused_in_that_zone_alone() {
    use shardcron_domain::calendar::Gap;
    let zone = ZoneRules::bundled().zone("America/New_York").unwrap();
    let schedule = "cron(30 2 9 3 ? 2025)";
    let start = at("2025-01-01T00:00:00Z");
    let error = Calendar::new(schedule, &zone, Dst { gap: Some(Gap::Skip), overlap: None }, start).unwrap_err();
    assert!(error.reason.contains("never fire") && error.reason.contains("America/New_York"), "{error}");
    let calendar = Calendar::new(schedule, &zone, Dst::default(), start).unwrap();
    assert_eq!(calendar.after(start), Some(at("2025-03-09T07:00:00Z")));
    assert!(read(schedule).is_ok());
}

#[test]
fn an_error_reads_as_one_line() {
    let error = read("0 0 * JUNE *").unwrap_err();
    assert_eq!(
        error.to_string(),
        "schedule: month: `JUNE` isn't a number from 1 to 12 or a name of three letters; write JUN"
    );
}

#[test]
fn a_calendar_says_what_it_was_made_of() {
    let calendar = read(" @daily ").unwrap();
    assert_eq!(calendar.schedule(), " @daily ");
    assert_eq!(calendar.zone().name(), "UTC");
    assert_eq!(calendar.zone().to_string(), "UTC");
    assert!(!calendar.is_rate());
}
