//! The walk along a zone's time line, from one scheduled time to the next or to the one before.

use jiff::Timestamp;

use super::dst::Policy;
use super::stretch::{REACH, Stretch};
use super::wall::WallClock;
use super::zone::Zone;

/// 0000-01-01T00:00:00Z, the first second that can be a scheduled time.
pub(super) const FIRST_SECOND: i64 = -62_167_219_200;

/// A place on the time line. Instants and wall-clock times are seconds.
///
/// Two answers are kept between steps: the stretch, and the last answer about the wall clock. The second is what
/// makes rare schedules cheap: a wall-clock time eight years away is found once, and then the stretches up to it
/// are passed over rather than searched.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    wall: &'a WallClock,
    zone: &'a Zone,
    policy: Policy,
    stretch: Stretch,
    /// `(from, to)`: the first wall-clock time of the schedule at or after `from` is `to` (`i64::MAX`: none).
    ahead: Option<(i64, i64)>,
    /// `(from, to)`: the last wall-clock time of the schedule at or before `from` is `to` (`i64::MIN`: none).
    behind: Option<(i64, i64)>,
}

impl<'a> Walk<'a> {
    /// A walk that begins near the instant `at`.
    pub(super) fn new(wall: &'a WallClock, zone: &'a Zone, policy: Policy, at: i64) -> Self {
        let stretch = Stretch::around(zone.time_zone(), policy, at);
        Self { wall, zone, policy, stretch, ahead: None, behind: None }
    }

    /// The first scheduled instant at or after `at`, which must not lie before the stretch that the walk is in.
    ///
    /// Each turn of the loop leaves a stretch for a later one, and there are under three a year.
    pub(super) fn first(&mut self, mut at: i64) -> Option<i64> {
        let last = Timestamp::MAX.as_second();
        loop {
            if at > last {
                return None;
            }
            if !self.stretch.instants.contains(&at) {
                self.stretch = Stretch::around(self.zone.time_zone(), self.policy, at);
            }
            if let Some(found) = self.first_in_stretch(at) {
                return (found <= last).then_some(found);
            }
            at = self.next_stretch()?;
        }
    }

    /// The last scheduled instant at or before `at`, which must not lie after the stretch that the walk is in.
    pub(super) fn last(&mut self, mut at: i64) -> Option<i64> {
        loop {
            if at < FIRST_SECOND {
                return None;
            }
            if !self.stretch.instants.contains(&at) {
                self.stretch = Stretch::around(self.zone.time_zone(), self.policy, at);
            }
            if let Some(found) = self.last_in_stretch(at) {
                return (found >= FIRST_SECOND).then_some(found);
            }
            at = self.previous_stretch()?;
        }
    }

    fn first_in_stretch(&mut self, at: i64) -> Option<i64> {
        if at == self.stretch.instants.start
            && let Some(gap) = self.stretch.gap.clone()
            && gap.contains(&self.wall_from(gap.start))
        {
            return Some(at);
        }
        let mut from = at + self.stretch.offset;
        loop {
            let wall = self.wall_from(from);
            if wall >= self.stretch.wall().end {
                return None;
            }
            match self.stretch.shadow(wall) {
                Some(shadow) => from = shadow.end,
                None => return Some(wall - self.stretch.offset),
            }
        }
    }

    fn last_in_stretch(&mut self, at: i64) -> Option<i64> {
        let start = self.stretch.wall().start;
        let mut from = at + self.stretch.offset;
        while from >= start {
            let wall = self.wall_back_from(from);
            if wall < start {
                break;
            }
            match self.stretch.shadow(wall) {
                Some(shadow) => from = shadow.start - 1,
                None => return Some(wall - self.stretch.offset),
            }
        }
        let gap = self.stretch.gap.clone()?;
        gap.contains(&self.wall_back_from(gap.end - 1)).then_some(self.stretch.instants.start)
    }

    /// Where to go on after a stretch without an answer: at the next one, or nearer to the next wall-clock time.
    ///
    /// Wall-clock times of later stretches lie at most [`REACH`] before the end of this one, and those of instants
    /// before `to - REACH` lie before `to`. So if none of the schedule's lies in `from..to`, and that range is
    /// wide enough on both sides, no stretch on the way can hold one, nor its gap.
    fn next_stretch(&mut self) -> Option<i64> {
        let (from, to) = self.ahead.unwrap_or((i64::MAX, i64::MIN));
        let (end, wall_end) = (self.stretch.instants.end, self.stretch.wall().end);
        if from <= wall_end - REACH && to > wall_end + 2 * REACH {
            return (to != i64::MAX).then_some(to - REACH);
        }
        Some(end)
    }

    /// The mirror image of [`next_stretch`](Self::next_stretch).
    fn previous_stretch(&mut self) -> Option<i64> {
        let (from, to) = self.behind.unwrap_or((i64::MIN, i64::MAX));
        let (start, wall_start) = (self.stretch.instants.start, self.stretch.wall().start);
        if from >= wall_start + REACH && to < wall_start - 2 * REACH {
            return (to != i64::MIN).then_some(to + REACH);
        }
        Some(start - 1)
    }

    /// The schedule's first wall-clock time at or after `from`; `i64::MAX` if there is none.
    fn wall_from(&mut self, from: i64) -> i64 {
        match self.ahead {
            Some((asked, answer)) if (asked..=answer).contains(&from) => answer,
            _ => {
                let answer = self.wall.at_or_after(from).unwrap_or(i64::MAX);
                self.ahead = Some((from, answer));
                answer
            }
        }
    }

    /// The schedule's last wall-clock time at or before `from`; `i64::MIN` if there is none.
    fn wall_back_from(&mut self, from: i64) -> i64 {
        match self.behind {
            Some((asked, answer)) if (answer..=asked).contains(&from) => answer,
            _ => {
                let answer = self.wall.at_or_before(from).unwrap_or(i64::MIN);
                self.behind = Some((from, answer));
                answer
            }
        }
    }
}
