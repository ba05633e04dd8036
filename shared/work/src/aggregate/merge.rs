//! The groups of all shards, joined.

use std::collections::BTreeMap;
use std::sync::Arc;

use shardcron_domain::result::{OutputTable, ResultRow};

use super::Plan;
use super::row::{self, Cells, GroupValues};
use crate::{Merge, WorkError};

/// The groups of all shards, in the order of the output: by their values as bytes, null before any text.
pub(super) struct AggregateMerge {
    plan: Arc<Plan>,
    groups: BTreeMap<GroupValues, (Cells, u64)>,
}

impl AggregateMerge {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        Self { plan, groups: BTreeMap::new() }
    }
}

impl Merge for AggregateMerge {
    fn add(&mut self, row: ResultRow) -> Result<(), WorkError> {
        let (values, cells) = row::read(&self.plan, &row)?;
        let (held, records) = self.groups.entry(values).or_insert_with(|| (vec![None; self.plan.cells.len()], 0));
        for ((cell, held), more) in self.plan.cells.iter().zip(held).zip(cells) {
            *held = row::join(*cell, *held, more).map_err(|error| {
                let (why, hint) = row::overflow(&self.plan, *cell, &row.key, &error);
                WorkError::Input { source: String::new(), line: 0, position: None, why, hint: Some(hint) }
            })?;
        }
        *records += row.records;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<OutputTable, WorkError> {
        let spec = &self.plan.spec;
        let rows = self.groups.into_iter().map(|(values, (cells, records))| {
            let mut output = values;
            output.extend(spec.count.then(|| Some(records.to_string())));
            output.extend(cells.into_iter().map(|cell| cell.map(|value| value.to_string())));
            output
        });
        Ok(OutputTable { columns: spec.columns(), rows: rows.collect() })
    }
}
