//! Groups as result rows.

use serde::{Deserialize, Serialize};

use shardcron_domain::decimal::{Decimal, DecimalError};
use shardcron_domain::result::ResultRow;

use super::{Cell, Kind, Plan};
use crate::WorkError;

/// The values of the group's columns; `None` is null, which sorts before any text.
pub(super) type GroupValues = Vec<Option<String>>;

/// A group's numbers, in the order of [`Plan::cells`]; `None` where there were only nulls.
pub(super) type Cells = Vec<Option<Decimal>>;

/// A row's value as JSON. Lists that the job doesn't have aren't written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sum: Cells,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    min: Cells,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    max: Cells,
}

/// The key of a group's row.
pub(super) fn key<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let values: serde_json::Value = values.into_iter().collect();
    values.to_string()
}

/// A group's row.
pub(super) fn write(plan: &Plan, key: &str, cells: &[Option<Decimal>], records: u64) -> ResultRow {
    let list = |kind| {
        let cells = plan.cells.iter().zip(cells).filter(|(cell, _)| cell.kind == kind);
        cells.map(|(_, value)| *value).collect()
    };
    let value = Value { sum: list(Kind::Sum), min: list(Kind::Min), max: list(Kind::Max) };
    #[expect(clippy::expect_used, reason = "lists of texts and nulls are always JSON")]
    let value = serde_json::to_string(&value).expect("a group's numbers can be written as JSON");
    ResultRow { key: key.to_owned(), value, records }
}

/// The most bytes that [`write`] makes of a key of `key` bytes.
pub(super) fn bytes_max(plan: &Plan, key: usize) -> usize {
    // A number in quotes with its comma; for the three lists their names, brackets and braces.
    key + plan.cells.len() * (Decimal::TEXT_BYTES_MAX + 3) + "{\"sum\":[],\"min\":[],\"max\":[]}".len()
}

/// The group, and its numbers, of a row that was written by [`write`] under this plan.
pub(super) fn read(plan: &Plan, row: &ResultRow) -> Result<(GroupValues, Cells), WorkError> {
    let refuse = |why: String| WorkError::State { key: row.key.clone(), why };
    let values: GroupValues =
        serde_json::from_str(&row.key).map_err(|error| refuse(format!("its key isn't a list of texts: {error}")))?;
    if values.len() != plan.spec.group_by.len() {
        let message =
            format!("its key has {} values, and the job groups by {}", values.len(), plan.spec.group_by.len());
        return Err(refuse(message));
    }
    let value: Value = serde_json::from_str(&row.value).map_err(|error| refuse(format!("its value: {error}")))?;
    for (name, found, expected) in [
        ("sum", value.sum.len(), plan.spec.sum.len()),
        ("min", value.min.len(), plan.spec.min.len()),
        ("max", value.max.len(), plan.spec.max.len()),
    ] {
        if found != expected {
            return Err(refuse(format!("it has {found} numbers for `{name}`, and the job has {expected}")));
        }
    }
    let cells = [value.sum, value.min, value.max].concat();
    Ok((values, cells))
}

/// A cell's value with another one joined to it. Joining is the same whatever the order and however it is cut up, as
/// far as it is within bounds.
pub(super) fn join(cell: Cell, held: Option<Decimal>, more: Option<Decimal>) -> Result<Option<Decimal>, DecimalError> {
    let (held, more) = match (held, more) {
        (Some(held), Some(more)) => (held, more),
        (held, None) => return Ok(held),
        (None, more) => return Ok(more),
    };
    Ok(Some(match cell.kind {
        Kind::Sum => held.checked_add(more)?,
        Kind::Min => held.min(more),
        Kind::Max => held.max(more),
    }))
}

/// What to say when a cell's sum is beyond the bounds.
pub(super) fn overflow(plan: &Plan, cell: Cell, key: &str, error: &DecimalError) -> (String, String) {
    let why = format!("the sum of `{}` in the group {key} can't be exact: {error}", plan.column(cell));
    (why, "group by more columns, or give the numbers in a greater unit".to_owned())
}
