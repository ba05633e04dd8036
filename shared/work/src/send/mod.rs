//! `send`: one effect for each record, to where the job's `effects` says.
//!
//! # Effects and rows
//!
//! The values of the `key` columns as a compact JSON array, such as `["42"]`, are the effect's key and the row's. The
//! body is the record as a JSON object: its columns in their order, or those of `body` in theirs; every value is a JSON
//! string with the digits and spelling that the input has, since most readers make binary floats of JSON's numbers; no
//! value is `null`. A row's value is the effect's request id.
//!
//! Two records with one key would be one effect to the receiver. In one shard the later one is rejected; in two shards it
//! fails the instance when their rows are merged.

mod merge;
mod shard;

use std::sync::Arc;

use shardcron_domain::ids::InstanceId;
use shardcron_domain::job::SendSpec;
use shardcron_domain::record::{Column, Field, RecordRef, Source};
use shardcron_domain::result::ResultRow;

use self::merge::SendMerge;
use self::shard::SendShard;
use crate::{Merge, ShardWork, Work, WorkError};

/// The built-in `send`.
#[derive(Debug, Clone)]
pub struct SendWork {
    plan: Arc<Plan>,
}

impl SendWork {
    /// Sends as the job says; a field whose text is one of `nulls` is null. Its rows name request ids only after
    /// [`Work::for_instance`].
    #[must_use]
    pub fn new(spec: SendSpec, nulls: &[String]) -> Self {
        Self { plan: Arc::new(Plan { spec, nulls: nulls.to_vec(), instance: None }) }
    }
}

impl Work for SendWork {
    fn open(&self, committed: Vec<ResultRow>) -> Result<Box<dyn ShardWork>, WorkError> {
        Ok(Box::new(SendShard::open(Arc::clone(&self.plan), committed)?))
    }

    fn columns(&self) -> Vec<String> {
        self.plan.columns().map(str::to_owned).collect()
    }

    fn merge(&self) -> Box<dyn Merge> {
        Box::new(SendMerge::new(Arc::clone(&self.plan)))
    }

    fn emits_effects(&self) -> bool {
        true
    }

    fn for_instance(&self, instance: &InstanceId) -> Option<Arc<dyn Work>> {
        let plan = Plan { instance: Some(instance.clone()), ..(*self.plan).clone() };
        Some(Arc::new(Self { plan: Arc::new(plan) }))
    }
}

/// What is sent, and of which instance.
#[derive(Debug, Clone)]
struct Plan {
    spec: SendSpec,
    nulls: Vec<String>,
    instance: Option<InstanceId>,
}

/// Where a source has the columns that the job names.
struct Columns {
    key: Vec<Column>,
    body: Vec<Column>,
}

impl Columns {
    fn of(plan: &Plan, source: &Source) -> Self {
        let find = |names: &[String]| names.iter().map(|name| source.column(name)).collect();
        Self { key: find(&plan.spec.key), body: find(&plan.spec.body) }
    }
}

impl Plan {
    /// The columns that the job names.
    fn columns(&self) -> impl Iterator<Item = &str> {
        self.spec.key.iter().chain(&self.spec.body).map(String::as_str)
    }

    fn value<'a>(&self, field: Field<'a>) -> Option<&'a str> {
        match field {
            Field::Text(text) if !self.nulls.iter().any(|null| null == text) => Some(text),
            _ => None,
        }
    }

    /// The key of a record's effect.
    fn key(&self, record: &RecordRef<'_>, columns: &Columns) -> Result<String, String> {
        let mut values = Vec::with_capacity(columns.key.len());
        for (column, name) in columns.key.iter().zip(&self.spec.key) {
            match self.value(record.field(column)) {
                Some(text) => values.push(text),
                None => return Err(format!("column `{name}` has no value, and it is part of the key")),
            }
        }
        Ok(serde_json::Value::from(values).to_string())
    }

    /// The body of a record's effect.
    fn body(&self, record: &RecordRef<'_>, columns: &Columns) -> String {
        let mut members = serde_json::Map::new();
        let mut put = |name: &str, field| drop(members.insert(name.to_owned(), self.value(field).into()));
        if self.spec.body.is_empty() {
            record.fields().for_each(|(name, field)| put(name, field));
        } else {
            columns.body.iter().zip(&self.spec.body).for_each(|(column, name)| put(name, record.field(column)));
        }
        serde_json::Value::Object(members).to_string()
    }
}
