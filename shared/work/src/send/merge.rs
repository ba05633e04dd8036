//! The rows of all shards, joined: one for each effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use shardcron_domain::result::{OutputTable, ResultRow};

use super::Plan;
use crate::{Merge, WorkError};

/// The effects of all shards, in the order of their keys' values as bytes.
pub(super) struct SendMerge {
    plan: Arc<Plan>,
    rows: BTreeMap<Vec<String>, String>,
}

impl SendMerge {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        Self { plan, rows: BTreeMap::new() }
    }
}

impl Merge for SendMerge {
    fn add(&mut self, row: ResultRow) -> Result<(), WorkError> {
        let state = |why: String| WorkError::State { key: row.key.clone(), why };
        let values: Vec<String> =
            serde_json::from_str(&row.key).map_err(|error| state(format!("its key isn't a list of texts: {error}")))?;
        if values.len() != self.plan.spec.key.len() {
            let expected = self.plan.spec.key.len();
            return Err(state(format!("its key has {} values, and the job's has {expected}", values.len())));
        }
        let id: String = serde_json::from_str(&row.value)
            .map_err(|error| state(format!("its value isn't a request id: {error}")))?;
        if self.rows.insert(values, id).is_some() {
            return Err(WorkError::Input {
                source: String::new(),
                line: 0,
                position: None,
                why: format!("two shards have a record with the key {}, which the receiver takes for one", row.key),
                hint: Some("name columns in work.send.key that tell all records of an instance apart".to_owned()),
            });
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<OutputTable, WorkError> {
        let rows = self.rows.into_iter();
        let row = |(values, id): (Vec<String>, String)| values.into_iter().chain([id]).map(Some).collect();
        Ok(OutputTable { columns: self.plan.spec.columns(), rows: rows.map(row).collect() })
    }
}
