//! The groups of one shard.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use shardcron_domain::decimal::Decimal;
use shardcron_domain::limits::{RESULT_KEY_BYTES_MAX, SHARD_RESULT_ROWS_MAX};
use shardcron_domain::record::{Chunk, Column, Field, NoColumn, RecordRef, Source};
use shardcron_domain::result::{RejectRow, ResultRow};

use super::Plan;
use super::row::{self, Cells};
use crate::{Processed, Room, ShardWork, WorkError};

/// The groups of one shard, in memory.
pub(super) struct AggregateShard {
    plan: Arc<Plan>,
    /// Where a group stands in `groups`, by its values as [`push_value`] writes them.
    places: HashMap<Box<[u8]>, usize>,
    groups: Vec<Group>,
    /// The groups that changed since the last commit, in the order of their first change.
    changed: Vec<usize>,
    /// The most bytes that their rows can have.
    changed_bytes: usize,
    /// The source last seen, and where its columns are.
    columns: Option<(Arc<Source>, Arc<Columns>)>,
    scratch: Scratch,
}

struct Group {
    key: String,
    cells: Cells,
    records: u64,
    changed: bool,
}

struct Columns {
    group: Vec<Column>,
    numbers: Vec<Column>,
}

/// What is used for one record after another, so that a record costs no allocation.
#[derive(Default)]
struct Scratch {
    group: Vec<u8>,
    numbers: Vec<Option<Decimal>>,
    cells: Cells,
}

/// Why a record wasn't counted.
enum Stop {
    /// It can't be.
    Reject(String),
    /// Its row would no longer fit into the commit.
    NoRoom,
    /// Nor can any other record.
    Fail(WorkError),
}

impl AggregateShard {
    pub(super) fn open(plan: Arc<Plan>, committed: Vec<ResultRow>) -> Result<Self, WorkError> {
        let mut shard = Self {
            plan,
            places: HashMap::with_capacity(committed.len()),
            groups: Vec::with_capacity(committed.len()),
            changed: Vec::new(),
            changed_bytes: 0,
            columns: None,
            scratch: Scratch::default(),
        };
        for row in committed {
            let (values, cells) = row::read(&shard.plan, &row)?;
            let mut group = Vec::new();
            for value in &values {
                push_value(&mut group, value.as_deref());
            }
            if shard.places.insert(group.into(), shard.groups.len()).is_some() {
                return Err(WorkError::State { key: row.key, why: "its group has another row".to_owned() });
            }
            shard.groups.push(Group { key: row.key, cells, records: row.records, changed: false });
        }
        Ok(shard)
    }

    /// Where the job's columns are in the source of the record; looked up when the source changes.
    fn columns(&mut self, source: &Arc<Source>, record: &RecordRef<'_>) -> Result<Arc<Columns>, WorkError> {
        if let Some((known, columns)) = &self.columns
            && Arc::ptr_eq(known, source)
        {
            return Ok(Arc::clone(columns));
        }
        let find = |names: &[String]| names.iter().map(|name| source.column(name)).collect::<Vec<_>>();
        let columns = Columns { group: find(&self.plan.spec.group_by), numbers: find(&self.plan.numbers) };
        if let Some(lacking) = source.lacks(self.plan.columns()) {
            return Err(absent(lacking, source, record));
        }
        let columns = Arc::new(columns);
        self.columns = Some((Arc::clone(source), Arc::clone(&columns)));
        Ok(columns)
    }

    /// Counts a record, or leaves everything as it was.
    fn take(&mut self, record: &RecordRef<'_>, columns: &Columns, source: &Source, room: Room) -> Result<(), Stop> {
        if let Some(why) = record.malformed() {
            return Err(Stop::Reject(why.to_owned()));
        }
        self.scratch.group.clear();
        for column in &columns.group {
            push_value(&mut self.scratch.group, self.plan.value(record, column));
        }
        self.scratch.numbers.clear();
        for (column, name) in columns.numbers.iter().zip(&self.plan.numbers) {
            let number = self.plan.value(record, column).map(Decimal::parse).transpose();
            self.scratch.numbers.push(number.map_err(|error| Stop::Reject(format!("column `{name}`: {error}")))?);
        }
        let place = match self.places.get(self.scratch.group.as_slice()) {
            Some(place) => *place,
            None => self.begin_group(record, columns, source, room)?,
        };
        let group = &self.groups[place];
        let bytes = row::bytes_max(&self.plan, group.key.len());
        if !group.changed && !self.has_room(bytes, room) {
            return Err(Stop::NoRoom);
        }
        let (group, cells) = (&mut self.groups[place], &mut self.scratch.cells);
        cells.clear();
        for (cell, held) in self.plan.cells.iter().zip(&group.cells) {
            let joined = row::join(*cell, *held, self.scratch.numbers[cell.number]).map_err(|error| {
                let (why, hint) = row::overflow(&self.plan, *cell, &group.key, &error);
                Stop::Fail(unfit(source, record, why, hint))
            })?;
            cells.push(joined);
        }
        group.cells.copy_from_slice(cells);
        group.records += 1;
        if !group.changed {
            group.changed = true;
            self.changed.push(place);
            self.changed_bytes += bytes;
        }
        Ok(())
    }

    /// Makes the group of the record, whose values stand in `scratch.group`, if its row may be there and has room.
    fn begin_group(
        &mut self,
        record: &RecordRef<'_>,
        columns: &Columns,
        source: &Source,
        room: Room,
    ) -> Result<usize, Stop> {
        let key = row::key(columns.group.iter().map(|column| self.plan.value(record, column)));
        if key.len() > RESULT_KEY_BYTES_MAX {
            let most = RESULT_KEY_BYTES_MAX;
            let message =
                format!("the values of its group have {} bytes as JSON, and at most {most} are allowed", key.len());
            return Err(Stop::Reject(message));
        }
        if self.groups.len() == SHARD_RESULT_ROWS_MAX {
            let why = format!("the shard has more than {SHARD_RESULT_ROWS_MAX} groups");
            let hint = "make shards smaller by shards.targetBytes, or group by fewer columns".to_owned();
            return Err(Stop::Fail(unfit(source, record, why, hint)));
        }
        if !self.has_room(row::bytes_max(&self.plan, key.len()), room) {
            return Err(Stop::NoRoom);
        }
        let place = self.groups.len();
        self.places.insert(self.scratch.group.as_slice().into(), place);
        self.groups.push(Group { key, cells: vec![None; self.plan.cells.len()], records: 0, changed: false });
        Ok(place)
    }

    /// Whether one more changed row of at most so many bytes fits.
    fn has_room(&self, bytes: usize, room: Room) -> bool {
        self.changed.len() < room.rows && self.changed_bytes + bytes <= room.bytes
    }
}

#[async_trait]
impl ShardWork for AggregateShard {
    async fn process(&mut self, chunk: &Chunk, first: usize, room: Room) -> Result<Processed, WorkError> {
        let mut processed = Processed::default();
        if first >= chunk.len() {
            return Ok(processed);
        }
        let source = chunk.source();
        let columns = self.columns(source, &chunk.record(first))?;
        for record in chunk.records().skip(first).take(room.records) {
            match self.take(&record, &columns, source, room) {
                Ok(()) => {}
                Err(Stop::Reject(_)) if processed.rejects.len() >= room.rejects => {
                    processed.full = true;
                    break;
                }
                Err(Stop::Reject(why)) => processed.rejects.push(RejectRow {
                    position: record.from(),
                    line: record.line(),
                    source: source.name.clone(),
                    why,
                }),
                Err(Stop::NoRoom) => {
                    processed.full = true;
                    break;
                }
                Err(Stop::Fail(error)) => return Err(error),
            }
            processed.taken += 1;
        }
        Ok(processed)
    }

    fn changes(&self) -> Vec<ResultRow> {
        let groups = self.changed.iter().map(|&place| &self.groups[place]);
        groups.map(|group| row::write(&self.plan, &group.key, &group.cells, group.records)).collect()
    }

    fn rows(&self) -> Vec<ResultRow> {
        let rows = self.groups.iter();
        rows.map(|group| row::write(&self.plan, &group.key, &group.cells, group.records)).collect()
    }

    fn committed(&mut self) {
        for place in self.changed.drain(..) {
            self.groups[place].changed = false;
        }
        self.changed_bytes = 0;
    }
}

impl Plan {
    /// What the record holds in a column; `None` is null.
    fn value<'r>(&self, record: &RecordRef<'r>, column: &Column) -> Option<&'r str> {
        match record.field(column) {
            Field::Text(text) if !self.is_null(text) => Some(text),
            Field::Text(_) | Field::Null | Field::NoColumn => None,
        }
    }
}

/// Adds one of a group's values, so that different groups are different bytes.
fn push_value(group: &mut Vec<u8>, value: Option<&str>) {
    match value {
        None => group.push(0),
        Some(text) => {
            group.push(1);
            group.extend_from_slice(&text.len().to_le_bytes());
            group.extend_from_slice(text.as_bytes());
        }
    }
}

/// The error of a source without a column that the job names.
pub(crate) fn absent(lacking: NoColumn, source: &Source, record: &RecordRef<'_>) -> WorkError {
    WorkError::Input {
        source: source.name.clone(),
        line: 0,
        position: Some(record.from()),
        why: format!("its header has no column `{}`", lacking.name),
        hint: Some(lacking.hint),
    }
}

/// The error of a record that no rejecting makes good.
fn unfit(source: &Source, record: &RecordRef<'_>, why: String, hint: String) -> WorkError {
    WorkError::Input {
        source: source.name.clone(),
        line: record.line(),
        position: Some(record.from()),
        why,
        hint: Some(hint),
    }
}
