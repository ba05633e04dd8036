//! What is part of the design and isn't built yet. Building one of these ends with taking away its row.

use super::error::{SpecError, SpecErrorKind};
use super::{CatchUp, ConcurrencyPolicy, JobSpec};

/// Fields that have no place in [`JobSpec`] yet.
const FIELDS: &[&str] = &["input.keys", "input.list", "input.ready", "input.table", "work.lambda", "work.transform"];

/// Values of fields that nothing acts on yet.
const VALUES: &[Value] = &[
    Value {
        field: "concurrencyPolicy",
        asked: |job| job.concurrency_policy != ConcurrencyPolicy::Allow,
        hint: "leave it out, or write \"Allow\"",
    },
    Value { field: "concurrencyKey", asked: |job| job.concurrency_key.is_some(), hint: "leave it out" },
    Value {
        field: "startingDeadlineSeconds",
        asked: |job| job.starting_deadline_seconds.is_some(),
        hint: "leave it out",
    },
    Value { field: "catchUp", asked: |job| job.catch_up != CatchUp::Latest, hint: "leave it out, or write \"latest\"" },
    Value { field: "suspend", asked: |job| job.suspend, hint: "leave it out, or write false" },
    Value { field: "activeDeadlineSeconds", asked: |job| job.active_deadline_seconds.is_some(), hint: "leave it out" },
];

struct Value {
    field: &'static str,
    asked: fn(&JobSpec) -> bool,
    hint: &'static str,
}

/// The first thing that the job asks for and isn't built.
pub(super) fn first(job: &JobSpec) -> Option<SpecError> {
    let value = VALUES.iter().find(|value| (value.asked)(job))?;
    Some(not_supported(value.field, "this value isn't supported yet").with_hint(value.hint))
}

/// The error for a field at this path, if it is one that isn't built.
pub(super) fn field(path: &str) -> Option<SpecError> {
    FIELDS.contains(&path).then(|| not_supported(path, "this field isn't supported yet"))
}

fn not_supported(field: &str, message: &str) -> SpecError {
    SpecError::new(SpecErrorKind::NotSupported, field, message)
}
