//! Batches: records are read and worked on until a commit is due, and committed with the checkpoint in one write.

use std::mem;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use shardcron_domain::record::Chunk;
use shardcron_domain::result::RejectRow;
use shardcron_domain::shard::{Counts, Shard};
use shardcron_domain::time::Millis;
use shardcron_input::ShardReader;
use shardcron_store::{Item, StoredReject, StoredResult};
use shardcron_work::{Room, ShardWork};

use crate::error::EngineError;
use crate::{Budget, Engine};

/// Bytes of a commit that are left for keys, attribute names and the shard itself: half of the quota. A row's own
/// bytes are what a work counts.
const COMMIT_BYTES: usize = TRANSACTION_BYTES_MAX / 2;

/// Rows of a commit: a transaction, less the shard.
const COMMIT_ROWS: usize = TRANSACTION_ITEMS_MAX - 1;

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
    /// The rows that join the checkpoint.
    pub(crate) rows: Vec<Item>,
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
    pub(crate) fn new(reader: ShardReader, work: Box<dyn ShardWork>, at: Position) -> Self {
        Self { reader, work, rest: None, at, batch: Batch::default() }
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
        self.ready(shard, last)
    }

    /// Works on what is left of a chunk; whether the commit is full.
    async fn work_on(&mut self, mut rest: Rest, shard: &Shard, until: &Until) -> Result<bool, EngineError> {
        // Rejects share the commit with the rows.
        let room = Room { rows: COMMIT_ROWS - self.batch.rejects.len().min(COMMIT_ROWS), bytes: COMMIT_BYTES };
        let processed = self.work.process(&rest.chunk, rest.next, room).await?;
        self.batch.counts.input += processed.taken as u64;
        self.batch.counts.rejected += processed.rejects.len() as u64;
        self.batch.counts.output = self.batch.counts.input - self.batch.counts.rejected;
        if shard.counts.rejected + self.batch.counts.rejected > until.rejects_max
            && let Some(reject) = processed.rejects.last()
        {
            return Err(EngineError::Rejected { reject: Box::new(reject.clone()), max: until.rejects_max });
        }
        self.batch.rejects.extend(processed.rejects);
        rest.next += processed.taken;
        if processed.taken > 0 {
            self.at = rest.chunk.record(rest.next - 1).to();
        }
        if rest.next < rest.chunk.len() {
            if processed.taken == 0 && self.batch.counts.input == 0 {
                return Err(EngineError::Inconsistent(format!(
                    "{}: a record at {} yields more result rows than one commit holds",
                    rest.chunk.source().name,
                    rest.chunk.record(rest.next).from()
                )));
            }
            self.rest = Some(rest);
        }
        Ok(processed.full)
    }

    fn ready(&mut self, shard: &Shard, last: bool) -> Result<Ready, EngineError> {
        let to = if last { shard.range.to() } else { self.at };
        let done =
            Range::new(shard.checkpoint.prefix, to).map_err(|error| EngineError::Inconsistent(error.to_string()))?;
        let key = &shard.key;
        let batch = mem::take(&mut self.batch);
        let results = self.work.changes().into_iter().map(|row| Item::Result(StoredResult { shard: key.clone(), row }));
        let rejects = batch.rejects.into_iter().map(|row| Item::Reject(StoredReject { shard: key.clone(), row }));
        Ok(Ready { done, counts: batch.counts, rows: results.chain(rejects).collect(), last })
    }

    /// What [`Progress::next`] returned is committed.
    pub(crate) fn committed(&mut self) {
        self.work.committed();
    }
}
