//! The metrics: their names, and the events that they are figures of.
//!
//! A log line is an event; CloudWatch reads the metrics out of it. The dashboard and the alarms of the template are held
//! against these names by a test.

use shardcron_engine::events;

/// What all metrics stand under in CloudWatch.
pub const NAMESPACE: &str = "shardcron";

/// The dimension that tells installations apart: the table's name. Alarms and the dashboard go by it.
pub const TABLE: &str = "Table";

/// The dimension of one job, beside [`TABLE`], where an installation asks for it: each job's metrics have a price.
pub const JOB: &str = "Job";

/// CloudWatch's units, of those that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Time.
    Milliseconds,
}

impl Unit {
    /// As the API spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
        }
    }
}

/// Where a metric's figure is in its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// 1 for each event.
    Each,
    /// 1 for each event whose field has this value.
    Where(&'static str, &'static str),
    /// The field's number; no metric where the event hasn't got it.
    Field(&'static str),
}

/// A dimension of a few values that an event's field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The dimension.
    pub dimension: &'static str,
    /// The field.
    pub field: &'static str,
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The event that it is read from.
    pub event: &'static str,
    /// Its figure in that.
    pub figure: Figure,
    /// What it is also kept by, beside the whole.
    pub split: Option<Split>,
}

const fn count(name: &'static str, event: &'static str, figure: Figure) -> Metric {
    Metric { name, unit: Unit::Count, event, figure, split: None }
}

const fn time(name: &'static str, event: &'static str, field: &'static str) -> Metric {
    Metric { name, unit: Unit::Milliseconds, event, figure: Figure::Field(field), split: None }
}

use Figure::{Each, Field, Where};

const BY_REASON: Split = Split { dimension: "Reason", field: "reason" };

/// All metrics.
pub const ALL: [Metric; 28] = [
    // From a scheduled time to when its instance was written down.
    time("ScheduleDelay", events::PLANNED, "scheduleDelayMs"),
    // From when an instance was written down to a claim of one of its shards.
    time("QueueTime", events::CLAIMED, "queueMs"),
    // From the first claim of an instance to its success.
    time("RunTime", events::ENDED, "runMs"),
    // Of the instances that a sweep looked at: each unfinished one is looked at within about an hour.
    time("OldestUnfinished", events::SWEPT, "oldestUnfinishedMs"),
    // Scheduled times, and what became of them.
    count("Planned", events::PLANNED, Each),
    Metric { split: Some(BY_REASON), ..count("Skipped", events::SKIPPED, Field("count")) },
    count("Missed", events::MISSED, Field("missed")),
    count("Duplicates", events::DUPLICATE, Each),
    // Instances.
    count("FannedOut", events::FANNED_OUT, Each),
    count("ShardsMade", events::FANNED_OUT, Field("shards")),
    count("Succeeded", events::ENDED, Where("status", "Succeeded")),
    count("Failed", events::ENDED, Where("status", "Failed")),
    count("Cancelled", events::ENDED, Where("status", "Cancelled")),
    count("Replaced", events::ENDED, Where("status", "Replaced")),
    count("StepsFailed", events::STEP_FAILED, Each),
    // Shards.
    count("Claims", events::CLAIMED, Each),
    count("Commits", events::COMMITTED, Each),
    count("Records", events::COMMITTED, Field("records")),
    count("ShardsDone", events::SHARD_DONE, Each),
    count("Rejected", events::SHARD_DONE, Field("rejected")),
    count("Takeovers", events::ENDED, Field("takeovers")),
    count("AttemptsFailed", events::ATTEMPT_FAILED, Each),
    count("FencedWrites", events::FENCED, Each),
    count("LeasesOver", events::LEASE_OVER, Each),
    // What the sweep had to send again, and what it will mend.
    count("Resent", events::RESENT, Field("shards")),
    count("Troubles", events::TROUBLE, Each),
    // What the table's requests consumed, of each invocation.
    count("ReadUnits", events::CONSUMED, Field("readUnits")),
    count("WriteUnits", events::CONSUMED, Field("writeUnits")),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_stands_for_one_metric() {
        let names: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        // A member of the log line has one meaning: the event's own fields begin in lower case.
        assert!(names.iter().all(|name| name.starts_with(char::is_uppercase)));
    }
}
