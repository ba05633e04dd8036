//! The golden calendar: every row of `data/calendar.jsonl` is a right answer.
//!
//! A row is refused (schedule or zone), or gives the times that follow an instant, or those of a range with their
//! number. Where a row says nothing about `dst`, the schedule's own defaults are meant.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]

use serde::Deserialize;
use shardcron_domain::calendar::{Calendar, CalendarError, Dst, ZoneRules};
use shardcron_domain::time::ScheduledTime;

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    id: String,
    schedule: String,
    time_zone: String,
    #[serde(default)]
    dst: Dst,
    #[serde(default)]
    refused: bool,
    after: Option<ScheduledTime>,
    next: Option<Vec<ScheduledTime>>,
    from: Option<ScheduledTime>,
    to: Option<ScheduledTime>,
    count: Option<usize>,
    first: Option<Vec<ScheduledTime>>,
    why: String,
}

fn rows() -> Vec<Row> {
    let rows = include_str!("data/calendar.jsonl").lines();
    rows.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))).collect()
}

fn calendar(row: &Row) -> Result<Calendar, CalendarError> {
    let zone = ZoneRules::bundled().zone(&row.time_zone)?;
    Calendar::new(&row.schedule, &zone, row.dst, ScheduledTime::from_second(0).unwrap())
}

/// What is wrong with the answers to a row, if anything.
fn fault(row: &Row) -> Option<String> {
    let calendar = match (calendar(row), row.refused) {
        (Err(error), true) => {
            let told = matches!(error.field, "schedule" | "timeZone") && !error.reason.is_empty();
            return (!told).then(|| format!("refused without a reason: {error:?}"));
        }
        (Err(error), false) => return Some(format!("refused: {error}")),
        (Ok(_), true) => return Some("not refused".to_owned()),
        (Ok(calendar), false) => calendar,
    };
    if let (Some(after), Some(next)) = (row.after, &row.next) {
        let mut at = after;
        for &expected in next {
            let got = calendar.after(at);
            if got != Some(expected) {
                return Some(format!("after {at}: {got:?}, not {expected}"));
            }
            if !calendar.contains(expected) {
                return Some(format!("{expected} isn't contained"));
            }
            at = expected;
        }
        // The way back, down to the first of them.
        for pair in next.windows(2).rev() {
            let got = calendar.before(pair[1]);
            if got != Some(pair[0]) {
                return Some(format!("before {}: {got:?}, not {}", pair[1], pair[0]));
            }
        }
        return None;
    }
    let (Some(from), Some(to), Some(count), Some(first)) = (row.from, row.to, row.count, &row.first) else {
        return Some("the row asks for nothing".to_owned());
    };
    let got: Vec<_> = calendar.between(from, to).collect();
    if got.len() != count {
        return Some(format!("{} times from {from} to {to}, not {count}", got.len()));
    }
    (!got.starts_with(first)).then(|| format!("they begin {:?}, not {first:?}", got.iter().take(first.len())))
}

#[test]
fn every_row_is_answered_right() {
    let rows = rows();
    assert!(rows.len() >= 276, "rows are missing: {}", rows.len());
    let faults: Vec<_> = rows
        .iter()
        .filter_map(|row| {
            let fault = fault(row)?;
            Some(format!("{} `{}` in `{}`: {fault} ({})", row.id, row.schedule, row.time_zone, row.why))
        })
        .collect();
    assert!(faults.is_empty(), "{} of {} rows:\n{}", faults.len(), rows.len(), faults.join("\n"));
}
