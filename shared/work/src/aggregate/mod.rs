//! `aggregate`: counts, sums, least and greatest values by group.
//!
//! A group is a tuple of the values of the `groupBy` columns, of which each may be null; all records are one group where
//! there are no such columns. A group exists when a record is in it: no records make no rows.
//!
//! # Rows
//!
//! A row's key is the group as a compact JSON array, such as `["EWR",null]`, and its value the numbers as text in the
//! order of the job's lists, such as `{"sum":["46125",null],"max":["9.5"]}`. A null there says that the group has had
//! nothing but nulls in the column. The count isn't in the value: it is the row's number of records.

mod merge;
mod row;
mod shard;

use std::sync::Arc;

use shardcron_domain::job::AggregateSpec;
use shardcron_domain::result::ResultRow;

use self::merge::AggregateMerge;
use self::shard::AggregateShard;
pub(crate) use self::shard::absent;
use crate::{Merge, ShardWork, Work, WorkError};

/// The built-in `aggregate`.
#[derive(Debug, Clone)]
pub struct Aggregate {
    plan: Arc<Plan>,
}

impl Aggregate {
    /// An aggregate as the job says; a field whose text is one of `nulls` is null.
    #[must_use]
    pub fn new(spec: AggregateSpec, nulls: &[String]) -> Self {
        Self { plan: Arc::new(Plan::new(spec, nulls)) }
    }
}

impl Work for Aggregate {
    fn open(&self, committed: Vec<ResultRow>) -> Result<Box<dyn ShardWork>, WorkError> {
        Ok(Box::new(AggregateShard::open(Arc::clone(&self.plan), committed)?))
    }

    fn columns(&self) -> Vec<String> {
        self.plan.columns().map(str::to_owned).collect()
    }

    fn merge(&self) -> Box<dyn Merge> {
        Box::new(AggregateMerge::new(Arc::clone(&self.plan)))
    }
}

/// What is computed, in the form in which records are worked through.
#[derive(Debug)]
struct Plan {
    spec: AggregateSpec,
    nulls: Vec<String>,
    /// The columns that numbers are read from, each once however often it is used.
    numbers: Vec<String>,
    /// One for each computed number: the sums, then the least, then the greatest values, in the job's order.
    cells: Vec<Cell>,
}

/// One computed number of a group.
#[derive(Debug, Clone, Copy)]
struct Cell {
    kind: Kind,
    /// Its column's place in [`Plan::numbers`].
    number: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sum,
    Min,
    Max,
}

impl Plan {
    fn new(spec: AggregateSpec, nulls: &[String]) -> Self {
        let mut numbers: Vec<String> = Vec::new();
        let mut cells = Vec::new();
        for (kind, columns) in [(Kind::Sum, &spec.sum), (Kind::Min, &spec.min), (Kind::Max, &spec.max)] {
            for column in columns {
                let number = numbers.iter().position(|known| known == column).unwrap_or_else(|| {
                    numbers.push(column.clone());
                    numbers.len() - 1
                });
                cells.push(Cell { kind, number });
            }
        }
        Self { spec, nulls: nulls.to_vec(), numbers, cells }
    }

    /// The columns that the job names.
    fn columns(&self) -> impl Iterator<Item = &str> {
        self.spec.group_by.iter().chain(&self.numbers).map(String::as_str)
    }

    fn is_null(&self, text: &str) -> bool {
        self.nulls.iter().any(|null| null == text)
    }

    /// The column that a cell is computed from.
    fn column(&self, cell: Cell) -> &str {
        &self.numbers[cell.number]
    }
}
