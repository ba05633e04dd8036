//! A tick of the planner: which of the due jobs it takes on, and in which order.

use crate::ids::JobName;
use crate::limits::TICK_BEHIND_SHARE;
use crate::time::ScheduledTime;

/// The due jobs that a tick takes on, at most `most`, in the order of their first steps: those that are the least
/// behind come first, so that regular times wait for nobody's catching up.
///
/// Where more are due than it takes on, one place in [`TICK_BEHIND_SHARE`] is for those that are the furthest behind:
/// however many are punctual, these get on too.
#[must_use]
pub fn taken_on(mut due: Vec<(ScheduledTime, JobName)>, most: usize) -> Vec<JobName> {
    due.sort_by(|(one, name), (other, next)| other.cmp(one).then_with(|| name.cmp(next)));
    if due.len() > most {
        let furthest_behind = due.split_off(due.len() - most / TICK_BEHIND_SHARE);
        due.truncate(most - furthest_behind.len());
        due.extend(furthest_behind);
    }
    due.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(seconds: impl IntoIterator<Item = i64>) -> Vec<(ScheduledTime, JobName)> {
        let job = |second: i64| (ScheduledTime::from_second(second).unwrap(), format!("job-{second}").parse().unwrap());
        seconds.into_iter().map(job).collect()
    }

    fn names(seconds: impl IntoIterator<Item = i64>) -> Vec<JobName> {
        due(seconds).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn the_least_behind_come_first() {
        assert_eq!(taken_on(due([1, 5, 3]), 3), names([5, 3, 1]));
        assert_eq!(taken_on(due([]), 3), names([]));
    }

    #[test]
    fn of_too_many_a_tenth_are_those_furthest_behind() {
        assert_eq!(taken_on(due(0..100), 20), names((82..100).rev().chain([1, 0])));
        assert_eq!(taken_on(due(0..100), 5), names((95..100).rev()));
    }
}
