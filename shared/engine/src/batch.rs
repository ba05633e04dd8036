//! Batches: records are read and worked on until a commit is due, and committed with the checkpoint in one write.

use std::mem;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::limits::{COMMIT_BYTES_MAX, COMMIT_REJECTS_MAX, COMMIT_ROWS_MAX, TRANSACTION_ITEMS_MAX};
use shardcron_domain::outbox::Effect;
use shardcron_domain::record::Chunk;
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::{Counts, Shard};
use shardcron_domain::time::Millis;
use shardcron_input::ShardReader;
use shardcron_store::{Item, StoredReject, StoredResult};
use shardcron_work::{Room, ShardWork};

use crate::error::EngineError;
use crate::outbox::effects_of;
use crate::{Budget, Engine};

/// A chunk that isn't used up.
struct Rest {
    chunk: Chunk,
    next: usize,
}

/// Reading and working, from the checkpoint on.
pub(crate) struct Progress {
    reader: ShardReader,
    work: Box<dyn ShardWork>,
    rest: Option<Rest>,
    at: Position,
    batch: Batch,
    /// Whether the shard's rows are committed as one object, since a batch changes more than a transaction holds.
    in_objects: bool,
    /// Whether the work asks for effects: these are items of a commit, whatever the rows are.
    emits: bool,
}

/// What is worked on and not yet committed.
#[derive(Default)]
struct Batch {
    counts: Counts,
    rejects: Vec<RejectRow>,
}

/// A batch that is ready to be committed.
pub(crate) struct Ready {
    /// The range of its records.
    pub(crate) done: Range,
    /// What became of them.
    pub(crate) counts: Counts,
    /// The items that join the checkpoint: result rows and rejects.
    pub(crate) items: Vec<Item>,
    /// All result rows of the shard, where they are committed as one object.
    pub(crate) snapshot: Option<Vec<ResultRow>>,
    /// The effects that its records ask for.
    pub(crate) effects: Vec<Effect>,
    /// Whether the shard ends with it.
    pub(crate) last: bool,
}

/// When a batch ends, besides by its size.
pub(crate) struct Until {
    /// Records at most.
    pub(crate) records: u64,
    /// When it is time to commit what there is.
    pub(crate) time: Millis,
    /// The executor's own time.
    pub(crate) budget: Budget,
    /// Rejects that the shard may have in all.
    pub(crate) rejects_max: u64,
}

impl Progress {
    pub(crate) fn new(reader: ShardReader, work: Box<dyn ShardWork>, shard: &Shard, emits: bool) -> Self {
        let (at, in_objects) = (shard.checkpoint.prefix, shard.snapshot.is_some());
        Self { reader, work, rest: None, at, batch: Batch::default(), in_objects, emits }
    }

    /// Reads and works until a commit is due.
    pub(crate) async fn next(&mut self, engine: &Engine, shard: &Shard, until: &Until) -> Result<Ready, EngineError> {
        let mut last = false;
        loop {
            let rest = match self.rest.take() {
                Some(rest) => rest,
                None => match self.reader.next().await? {
                    Some(chunk) => Rest { chunk, next: 0 },
                    None => {
                        last = true;
                        break;
                    }
                },
            };
            let full = self.work_on(rest, shard, until).await?;
            let now = engine.clock.now();
            if full || self.batch.counts.input >= until.records || now.at >= until.time || until.budget.is_over(now) {
                break;
            }
        }
        if !last && self.rest.is_none() && !until.budget.is_over(engine.clock.now()) {
            // A look ahead, so that the end of the shard isn't a commit of its own.
            match self.reader.next().await? {
                Some(chunk) => self.rest = Some(Rest { chunk, next: 0 }),
                None => last = true,
            }
        }
        self.ready(shard, last)
    }

    /// Works on what is left of a chunk; whether the commit is full.
    async fn work_on(&mut self, mut rest: Rest, shard: &Shard, until: &Until) -> Result<bool, EngineError> {
        let room = self.room(until);
        let processed = self.work.process(&rest.chunk, rest.next, room).await?;
        self.batch.counts.input += processed.taken as u64;
        self.batch.counts.rejected += processed.rejects.len() as u64;
        self.batch.counts.output = self.batch.counts.input - self.batch.counts.rejected;
        let before = shard.counts.rejected + self.batch.rejects.len() as u64;
        let allowed = usize::try_from(until.rejects_max.saturating_sub(before)).unwrap_or(usize::MAX);
        if let Some(reject) = processed.rejects.get(allowed) {
            return Err(EngineError::Rejected { reject: Box::new(reject.clone()), max: until.rejects_max });
        }
        if processed.rejects.len() > room.rejects || rest.next + processed.taken > rest.chunk.len() {
            return Err(EngineError::Inconsistent(format!(
                "{}: the work took or rejected more records than there was room for",
                rest.chunk.source().name
            )));
        }
        self.batch.rejects.extend(processed.rejects);
        rest.next += processed.taken;
        if processed.taken > 0 {
            self.at = rest.chunk.record(rest.next - 1).to();
        }
        if rest.next < rest.chunk.len() {
            self.rest = Some(rest);
        }
        let many_rejects = self.batch.rejects.len() >= self.rejects_max();
        if processed.full && !many_rejects && !self.in_objects && !self.emits {
            // The rows of this batch are too many for a transaction: it goes on, and all rows go into an object.
            self.in_objects = true;
            return Ok(false);
        }
        if let Some(rest) = self.rest.as_ref().filter(|_| processed.taken == 0 && self.batch.counts.input == 0) {
            return Err(EngineError::Inconsistent(format!(
                "{}: the work takes no record at {}, whatever the room",
                rest.chunk.source().name,
                rest.chunk.record(rest.next).from()
            )));
        }
        Ok(processed.full)
    }

    fn room(&self, until: &Until) -> Room {
        let (rows, bytes) =
            if self.in_objects && !self.emits { (usize::MAX, usize::MAX) } else { (COMMIT_ROWS_MAX, COMMIT_BYTES_MAX) };
        Room {
            rows,
            bytes,
            records: usize::try_from(until.records.saturating_sub(self.batch.counts.input)).unwrap_or(usize::MAX),
            rejects: self.rejects_max().saturating_sub(self.batch.rejects.len()),
        }
    }

    fn rejects_max(&self) -> usize {
        if self.in_objects && !self.emits { TRANSACTION_ITEMS_MAX - 1 } else { COMMIT_REJECTS_MAX }
    }

    fn ready(&mut self, shard: &Shard, last: bool) -> Result<Ready, EngineError> {
        let to = if last { shard.range.to() } else { self.at };
        let done =
            Range::new(shard.checkpoint.prefix, to).map_err(|error| EngineError::Inconsistent(error.to_string()))?;
        let key = &shard.key;
        let batch = mem::take(&mut self.batch);
        let mut rows = if self.in_objects { Vec::new() } else { self.work.changes() };
        let effects = effects_of(&*self.work)?;
        // Also where a work has changed more rows than there was room for.
        self.in_objects |= rows.len() + effects.len() > COMMIT_ROWS_MAX;
        let snapshot = self.in_objects.then(|| {
            rows.clear();
            self.work.rows()
        });
        let results = rows.into_iter().map(|row| Item::Result(StoredResult { shard: key.clone(), row }));
        let rejects = batch.rejects.into_iter().map(|row| Item::Reject(StoredReject { shard: key.clone(), row }));
        Ok(Ready { done, counts: batch.counts, items: results.chain(rejects).collect(), snapshot, effects, last })
    }

    /// What [`Progress::next`] returned is committed.
    pub(crate) fn committed(&mut self) {
        self.work.committed();
    }
}
