//! Stretches of constant offset: what a zone's time line is cut into by its transitions.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::dst::{Gap, Overlap, Policy};

/// More than two offsets of any zone can differ, in seconds: jiff's offsets are under 26 hours either way.
pub(super) const REACH: i64 = 2 * 26 * 3_600;

/// The greatest jump forward, in seconds, that is a gap to fill.
const GREATEST_GAP: i64 = 3 * 3_600;

/// Before and after any transition, and far enough from the ends of `i64` to add offsets to.
const EVER: Range<i64> = i64::MIN / 4..i64::MAX / 4;

/// The time between two transitions of a zone. Instants and wall-clock times are seconds; within a stretch they
/// differ by its offset.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// The instants from its first transition (included) to its second (not included).
    pub(super) instants: Range<i64>,
    /// Wall clock minus instant.
    pub(super) offset: i64,
    /// The wall-clock times that its first transition skips, where they are to be made up for at its first instant.
    pub(super) gap: Option<Range<i64>>,
    /// The wall-clock times in it that don't run, because an equal one in another stretch does.
    pub(super) shadowed: Vec<Range<i64>>,
}

impl Stretch {
    /// The stretch of `zone` that holds the instant `at`.
    pub(super) fn around(zone: &TimeZone, policy: Policy, at: i64) -> Self {
        let start = last_transition(zone, at);
        let end = next_transition(zone, at);
        let offset = offset(zone, at);
        let mut stretch = Self { instants: start..end, offset, gap: None, shadowed: Vec::new() };
        if policy.gap == Gap::Next && start != EVER.start {
            let skipped = start + self::offset(zone, start - 1)..start + offset;
            if !skipped.is_empty() && skipped.end - skipped.start <= GREATEST_GAP {
                stretch.gap = Some(skipped);
            }
        }
        match policy.overlap {
            Overlap::Both => {}
            Overlap::First => stretch.shadow_of_earlier(zone),
            Overlap::Last => stretch.shadow_of_later(zone),
        }
        stretch
    }

    /// Its wall-clock times.
    pub(super) fn wall(&self) -> Range<i64> {
        self.instants.start + self.offset..self.instants.end + self.offset
    }

    /// The range of shadowed times that holds `wall`.
    pub(super) fn shadow(&self, wall: i64) -> Option<&Range<i64>> {
        self.shadowed.iter().find(|range| range.contains(&wall))
    }

    fn shadow_of_earlier(&mut self, zone: &TimeZone) {
        let mut end = self.instants.start;
        while end != EVER.start && end > self.instants.start - REACH {
            let start = last_transition(zone, end - 1);
            self.shadow_by(start..end, offset(zone, end - 1));
            end = start;
        }
    }

    fn shadow_of_later(&mut self, zone: &TimeZone) {
        let mut start = self.instants.end;
        while start != EVER.end && start < self.instants.end + REACH {
            let end = next_transition(zone, start);
            self.shadow_by(start..end, offset(zone, start));
            start = end;
        }
    }

    fn shadow_by(&mut self, instants: Range<i64>, offset: i64) {
        let own = self.wall();
        let range = (instants.start + offset).max(own.start)..(instants.end + offset).min(own.end);
        if !range.is_empty() {
            self.shadowed.push(range);
        }
    }
}

/// The last transition at or before `at`.
///
/// jiff's transitions backwards (1.0.2) take the zone's rule for the future to hold at the last transition of its
/// table already, and so name one before it that never was, or miss the last itself, for the zones where the two
/// differ (America/Ciudad_Juarez at the end of 2022). Its transitions forward are right, and what it misses is few:
/// so the walk goes forward from its answer.
fn last_transition(zone: &TimeZone, at: i64) -> i64 {
    let before = zone.preceding(timestamp(at + 1)).next();
    let mut last = before.map_or(EVER.start, |transition| transition.timestamp().as_second());
    loop {
        let next = next_transition(zone, last);
        if next > at {
            return last;
        }
        last = next;
    }
}

/// The first transition after `at`.
fn next_transition(zone: &TimeZone, at: i64) -> i64 {
    zone.following(timestamp(at)).next().map_or(EVER.end, |transition| transition.timestamp().as_second())
}

fn offset(zone: &TimeZone, at: i64) -> i64 {
    i64::from(zone.to_offset(timestamp(at)).seconds())
}

/// The instant at this second, or the nearest that jiff represents.
fn timestamp(second: i64) -> Timestamp {
    let nearest = if second < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_second(second).unwrap_or(nearest)
}
