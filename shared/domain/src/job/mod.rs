//! A job: what its file says, read and checked.
//!
//! [`JobSpec::parse`] reads a job's JSON by hand rather than by derived deserialisation, because its errors are for the
//! person who wrote the file: each names the field by its path, says what was found and what is expected, and hints at
//! the nearest name that would be right. [`JobSpec::to_json`] writes the form that is stored as a spec version; it names
//! every default, so that a release with other defaults doesn't change a job that was applied before it.
//!
//! Field names are those of Kubernetes' CronJob and Job wherever these have the field.

mod effects;
mod error;
mod input;
mod json;
mod parse;
mod read;
mod schema;
mod unsupported;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calendar::{Calendar, CalendarError, Dst, ZoneRules};
use crate::ids::{ConcurrencyKey, JobName};
use crate::limits;
use crate::record::Format;
use crate::time::ScheduledTime;

pub use self::effects::{
    EffectTarget, EffectsSpec, ID_PLACE, OnRefused, REQUEST_ID_COLUMN, SECRET_PREFIX, SendSpec, check_emits,
};
pub use self::error::{SpecError, SpecErrorKind, nearest};
pub use self::input::{DaysOf, InputSource, InputSpec, KeysSpec, LastKey, ListSpec, ReadySpec, TooManyDays};

/// A job's definition.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct JobSpec {
    /// The name.
    pub name: JobName,
    /// When it runs, in one of the dialects of [`Calendar`] (CronJob `schedule`).
    #[schemars(
        description = "When it runs: five fields as Kubernetes has them, `cron(...)` or `rate(...)` as EventBridge \
        has them, or a word such as `@daily`."
    )]
    #[schemars(length(min = 1, max = limits::SCHEDULE_BYTES_MAX))]
    pub schedule: String,
    /// The IANA name of the zone in which the schedule is read (CronJob `timeZone`); UTC by default.
    #[schemars(default = "default::time_zone")]
    pub time_zone: String,
    /// What happens to the hours that the zone skips and repeats.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(default)]
    pub dst: Dst,
    /// What happens when an instance falls due while another runs (CronJob `concurrencyPolicy`); Allow by default.
    #[schemars(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// What the job shares its slot by; by default it has a slot of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<ConcurrencyKey>,
    /// Seconds after its scheduled time from which on an instance is too late to start (CronJob
    /// `startingDeadlineSeconds`); no deadline by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::KUBERNETES_INT_MAX))]
    pub starting_deadline_seconds: Option<u32>,
    /// Which of the times that passed while nobody planned are run; the latest by default.
    #[schemars(default)]
    pub catch_up: CatchUp,
    /// Whether its times are recorded as skipped instead of run (CronJob `suspend`).
    #[schemars(default)]
    pub suspend: bool,
    /// Seconds from an instance's first claim in which it must end (Job `activeDeadlineSeconds`); no deadline by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::KUBERNETES_INT_MAX))]
    pub active_deadline_seconds: Option<u32>,
    /// Failures in a row, without progress, that a shard may have before it is Failed (Job `backoffLimit`, whose
    /// default of 6 it has too).
    #[schemars(default = "default::backoff_limit", range(max = limits::KUBERNETES_INT_MAX))]
    pub backoff_limit: u32,
    /// Shards of one instance that are worked on at once, at most (Job `parallelism`); 64 by default.
    #[schemars(default = "default::parallelism", range(min = 1, max = limits::PARALLELISM_MAX))]
    pub parallelism: u32,
    /// What becomes of an instance whose input lists nothing; it fails by default.
    #[schemars(default)]
    pub if_empty: IfEmpty,
    /// What it reads.
    pub input: InputSpec,
    /// How the input is cut.
    #[schemars(default)]
    pub shards: ShardsSpec,
    /// What it does with the records.
    pub work: WorkSpec,
    /// How many records may be refused.
    #[schemars(default)]
    pub rejects: RejectsSpec,
    /// Where the result goes.
    pub output: OutputSpec,
    /// Where the effects outside of the result go, if the work asks for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectsSpec>,
}

/// What happens when an instance falls due while another of the job, or of its `concurrencyKey`, runs. The first three
/// are CronJob's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Both run.
    #[default]
    Allow,
    /// The new one is skipped.
    Forbid,
    /// The old one is stopped, and the new one starts after its end.
    Replace,
    /// The new one waits for the end of the old one.
    Queue,
}

/// Which of the times that passed while nobody planned are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CatchUp {
    /// All of them, the oldest first.
    All,
    /// The latest; those before it are recorded as skipped.
    #[default]
    Latest,
    /// None: they are recorded as skipped.
    None,
}

/// What becomes of an instance whose input lists nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IfEmpty {
    /// It fails: an upstream that didn't deliver is noticed.
    #[default]
    Fail,
    /// It succeeds, with an empty output.
    Succeed,
}

/// How the input is cut into shards, and a shard into commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct ShardsSpec {
    /// Bytes of input, as stored, that a shard has at most, unless a single object has more; 64 MiB by default. A job
    /// whose past runs were slow gets smaller ones.
    #[schemars(default = "default::target_bytes", range(min = 1, max = limits::SHARD_BYTES_MAX))]
    pub target_bytes: u64,
    /// Keys of a range, or items of a list, that a shard has at most; 100,000 keys by default, and one item. A job whose
    /// past runs were slow gets smaller ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::SHARD_KEYS_MAX))]
    pub target_records: Option<u32>,
    /// Records that one commit covers, at most; 20,000 by default.
    #[schemars(default = "default::batch_records", range(min = 1, max = limits::BATCH_RECORDS_MAX))]
    pub batch_records: u32,
    /// Batches of one shard that a work prepares at the same time, for works that wait for something meanwhile; one by
    /// default.
    #[schemars(default = "default::parallel_batches", range(min = 1, max = limits::CHECKPOINT_RANGES_MAX))]
    pub parallel_batches: u32,
    /// Whether a slow shard is cut while it is worked on, for others to help; it is by default.
    #[schemars(default = "default::split")]
    pub split: bool,
}

impl ShardsSpec {
    /// Keys of a range that a shard has at most.
    #[must_use]
    pub fn target_keys(&self) -> u64 {
        u64::from(self.target_records.unwrap_or(limits::SHARD_KEYS_DEFAULT))
    }

    /// Items of a list that a shard has at most.
    #[must_use]
    pub fn target_items(&self) -> u64 {
        u64::from(self.target_records.unwrap_or(1))
    }
}

/// What a job does with its records.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkSpec {
    /// Counts, sums, least and greatest values by group.
    Aggregate(AggregateSpec),
    /// One effect outside of the result for each record.
    Send(SendSpec),
    /// A work of one's own, in Rust.
    Custom(CustomSpec),
}

/// One row of output for each group of records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, transform = schema::computes_something)]
pub struct AggregateSpec {
    /// Columns whose values make the group; without any, all records are one group.
    #[schemars(default, schema_with = "schema::columns")]
    pub group_by: Vec<String>,
    /// Whether the records of a group are counted.
    #[schemars(default)]
    pub count: bool,
    /// Columns that are summed, as decimals.
    #[schemars(default, schema_with = "schema::columns")]
    pub sum: Vec<String>,
    /// Columns whose least value is kept, as decimals.
    #[schemars(default, schema_with = "schema::columns")]
    pub min: Vec<String>,
    /// Columns whose greatest value is kept, as decimals.
    #[schemars(default, schema_with = "schema::columns")]
    pub max: Vec<String>,
}

/// A work of one's own.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CustomSpec {
    /// The name under which the program has registered it.
    #[schemars(length(min = 1, max = limits::COLUMN_BYTES_MAX))]
    pub name: String,
    /// What it is given; an empty object by default.
    #[schemars(default = "default::with", schema_with = "schema::with")]
    pub with: serde_json::Value,
}

/// How many records may be refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RejectsSpec {
    /// Records of an instance that may be rejected before it fails; none by default.
    #[schemars(default)]
    pub max: u64,
}

/// Where a job's result goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OutputSpec {
    /// The location below which each instance's output has a place of its own. A relative path is relative to the
    /// job's file.
    #[schemars(length(min = 1, max = limits::LOCATION_BYTES_MAX))]
    pub objects: String,
    /// What the output is written as.
    pub format: Format,
}

impl AggregateSpec {
    /// The columns of its output, in order: those of the group, then `count`, then all `sum_<column>`, all
    /// `min_<column>` and all `max_<column>`.
    #[must_use]
    pub fn columns(&self) -> Vec<String> {
        let computed = |kind: &'static str| move |column: &String| format!("{kind}_{column}");
        let mut columns = self.group_by.clone();
        columns.extend(self.count.then(|| "count".to_owned()));
        columns.extend(self.sum.iter().map(computed("sum")));
        columns.extend(self.min.iter().map(computed("min")));
        columns.extend(self.max.iter().map(computed("max")));
        columns
    }
}

impl JobSpec {
    /// Reads a job's file.
    ///
    /// The schedule and the zone are only read here; [`JobSpec::calendar`] checks them, because which zones there are
    /// depends on the zone rules.
    ///
    /// # Errors
    /// [`SpecError`] for the first thing that is wrong: it isn't JSON, has a field that isn't known or isn't built yet,
    /// lacks one, or has a value that can't be.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        parse::job(text)
    }

    /// The job in its canonical form, on one line: every field that has a value is written, defaults too, in one order.
    ///
    /// What is parsed from it equals `self`.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[expect(clippy::expect_used, reason = "all keys are text and no implementation of Serialize in it fails")]
        serde_json::to_string(self).expect("a job can be written as JSON")
    }

    /// The job's calendar. `start` is the instant from which `rate(...)` counts.
    ///
    /// # Errors
    /// [`SpecError`] with the field `schedule` or `timeZone`, as [`Calendar::new`] and [`ZoneRules::zone`] say.
    pub fn calendar(&self, rules: &ZoneRules, start: ScheduledTime) -> Result<Calendar, SpecError> {
        let refuse = |error: CalendarError| {
            let refused = SpecError::value(error.field, error.reason);
            SpecError { hint: error.hint, ..refused }
        };
        let zone = rules.zone(&self.time_zone).map_err(refuse)?;
        Calendar::new(&self.schedule, &zone, self.dst, start).map_err(refuse)
    }
}

/// What a field is that isn't given.
mod default {
    use crate::limits;

    pub(super) fn time_zone() -> String {
        "UTC".to_owned()
    }

    pub(super) fn backoff_limit() -> u32 {
        limits::BACKOFF_LIMIT_DEFAULT
    }

    pub(super) fn parallelism() -> u32 {
        limits::PARALLELISM_DEFAULT
    }

    pub(super) fn with() -> serde_json::Value {
        serde_json::Value::Object(serde_json::Map::new())
    }

    pub(super) fn target_bytes() -> u64 {
        limits::SHARD_BYTES_DEFAULT
    }

    pub(super) fn batch_records() -> u32 {
        limits::BATCH_RECORDS_DEFAULT
    }

    pub(super) fn parallel_batches() -> u32 {
        1
    }

    pub(super) fn split() -> bool {
        true
    }
}

impl Default for ShardsSpec {
    fn default() -> Self {
        Self {
            target_bytes: default::target_bytes(),
            target_records: None,
            batch_records: default::batch_records(),
            parallel_batches: default::parallel_batches(),
            split: default::split(),
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests;
