//! Batches: records are read and worked on until a commit is due, and committed with the checkpoint in one write.

use std::mem;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::limits::{COMMIT_BYTES_MAX, COMMIT_REJECTS_MAX, COMMIT_ROWS_MAX, TRANSACTION_ITEMS_MAX};
use shardcron_domain::outbox::Effect;
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::{Counts, Shard};
use shardcron_domain::time::Millis;
use shardcron_store::{Item, StoredReject, StoredResult};
use shardcron_work::{Room, ShardWork};

use crate::error::{EngineError, inconsistent};
use crate::outbox::effects_of;
use crate::pieces::{Piece, Pieces};
use crate::{Budget, Engine};

/// Reading and working on what of a shard isn't done.
pub(crate) struct Progress {
    pieces: Pieces,
    work: Box<dyn ShardWork>,
    /// A piece that isn't used up, or that doesn't follow the batch.
    held: Option<Piece>,
    batch: Batch,
    /// Whether the shard's rows are committed as one object, since a batch changes more than a transaction holds.
    in_objects: bool,
    /// Whether the work asks for effects: these are items of a commit, whatever the rows are.
    emits: bool,
}

/// What is worked on and not yet committed: records that follow each other.
#[derive(Default)]
struct Batch {
    /// From where to where; `None` before the first.
    range: Option<Range>,
    counts: Counts,
    rejects: Vec<RejectRow>,
}

impl Batch {
    /// Takes what lies up to `to` as done, beginning at `from` if it is the first.
    fn extend(&mut self, from: Position, to: Position) -> Result<(), EngineError> {
        let from = self.range.map_or(from, |range| range.from());
        self.range = Some(Range::new(from, to).map_err(inconsistent)?);
        Ok(())
    }

    fn is_followed_by(&self, piece: &Piece) -> bool {
        self.range.is_none_or(|range| range.to() == piece.range.from())
    }
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
    pub(crate) fn new(pieces: Pieces, work: Box<dyn ShardWork>, shard: &Shard, emits: bool) -> Self {
        let in_objects = shard.snapshot.is_some();
        Self { pieces, work, held: None, batch: Batch::default(), in_objects, emits }
    }

    /// Reads and works until a commit is due.
    pub(crate) async fn next(&mut self, engine: &Engine, shard: &Shard, until: &Until) -> Result<Ready, EngineError> {
        let finished = shard.checkpoint.ranges.len();
        loop {
            let piece = match self.held.take() {
                Some(piece) => Some(piece),
                None => self.pieces.next(finished).await?,
            };
            let Some(piece) = piece else { break };
            if !self.batch.is_followed_by(&piece) {
                self.held = Some(piece);
                break;
            }
            let full = self.work_on(piece, shard, until).await?;
            let now = engine.clock.now();
            if full || self.batch.counts.input >= until.records || now.at >= until.time || until.budget.is_over(now) {
                break;
            }
        }
        self.ready(shard)
    }

    /// The pieces that are to come.
    pub(crate) fn pieces(&mut self) -> &mut Pieces {
        &mut self.pieces
    }

    /// Works on what is left of a piece; whether the commit is full.
    async fn work_on(&mut self, mut piece: Piece, shard: &Shard, until: &Until) -> Result<bool, EngineError> {
        let Some(chunk) = &piece.chunk else {
            self.batch.extend(piece.range.from(), piece.range.to())?;
            return Ok(false);
        };
        let room = self.room(until);
        let processed = self.work.process(chunk, piece.next, room).await?;
        self.batch.counts.input += processed.taken as u64;
        self.batch.counts.rejected += processed.rejects.len() as u64;
        self.batch.counts.output = self.batch.counts.input - self.batch.counts.rejected;
        let before = shard.counts.rejected + self.batch.rejects.len() as u64;
        let allowed = usize::try_from(until.rejects_max.saturating_sub(before)).unwrap_or(usize::MAX);
        if let Some(reject) = processed.rejects.get(allowed) {
            return Err(EngineError::Rejected { reject: Box::new(reject.clone()), max: until.rejects_max });
        }
        if processed.rejects.len() > room.rejects || piece.next + processed.taken > chunk.len() {
            return Err(EngineError::Inconsistent(format!(
                "{}: the work took or rejected more records than there was room for",
                chunk.source().name
            )));
        }
        self.batch.rejects.extend(processed.rejects);
        piece.next += processed.taken;
        let is_used_up = piece.next == chunk.len();
        let to = match piece.next {
            _ if is_used_up => Some(piece.range.to()),
            0 => None,
            next => Some(chunk.record(next - 1).to()),
        };
        let stuck = processed.taken == 0 && self.batch.counts.input == 0;
        if let Some(to) = to {
            self.batch.extend(piece.range.from(), to)?;
            piece.range = Range::new(to, piece.range.to()).map_err(inconsistent)?;
        }
        let many_rejects = self.batch.rejects.len() >= self.rejects_max();
        let into_objects = processed.full && !many_rejects && !self.in_objects && !self.emits;
        if stuck && !into_objects {
            return Err(EngineError::Inconsistent(format!(
                "{}: the work takes no record at {}, whatever the room",
                chunk.source().name,
                chunk.record(piece.next).from()
            )));
        }
        if !is_used_up {
            self.held = Some(piece);
        }
        // Where the rows of this batch are too many for a transaction, it goes on, and all rows go into an object.
        self.in_objects |= into_objects;
        Ok(processed.full && !into_objects)
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

    fn ready(&mut self, shard: &Shard) -> Result<Ready, EngineError> {
        let last = self.held.is_none() && self.pieces.are_over();
        let nothing = || Range::new(shard.checkpoint.prefix, shard.checkpoint.prefix);
        let done = self.batch.range.map_or_else(nothing, Ok).map_err(inconsistent)?;
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
