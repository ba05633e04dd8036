//! What is part of the design and isn't built yet. Building one of these ends with taking away its row.

use super::error::{SpecError, SpecErrorKind};

/// Fields that have no place in [`JobSpec`] yet.
const FIELDS: &[&str] = &["input.table", "work.lambda", "work.transform"];

/// The error for a field at this path, if it is one that isn't built.
pub(super) fn field(path: &str) -> Option<SpecError> {
    FIELDS.contains(&path).then(|| not_supported(path, "this field isn't supported yet"))
}

fn not_supported(field: &str, message: &str) -> SpecError {
    SpecError::new(SpecErrorKind::NotSupported, field, message)
}
