//! The records of a shard that are still to be done, piece by piece: read in order, and, where the work has a stage,
//! prepared several at a time and handed over in the order in which they are ready.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::limits::CHECKPOINT_RANGES_MAX;
use shardcron_domain::record::Chunk;
use shardcron_domain::shard::Shard;
use shardcron_work::Stage;

use crate::error::{EngineError, inconsistent};
use crate::reading::{Input, Reader};

/// Records that follow each other, and the part of the shard that they stand for.
pub(crate) struct Piece {
    pub(crate) range: Range,
    /// None where the range has no records.
    pub(crate) chunk: Option<Chunk>,
    /// The first of its records that isn't done.
    pub(crate) next: usize,
}

type Preparing = Pin<Box<dyn Future<Output = Result<Piece, EngineError>> + Send>>;

/// The pieces of a shard.
pub(crate) struct Pieces {
    input: Arc<Input>,
    stage: Option<(Arc<dyn Stage>, usize)>,
    /// What isn't read, in order. The first is being read, from its start on.
    gaps: VecDeque<Range>,
    reader: Option<Reader>,
    /// A look ahead, so that the last piece of a gap is known as such.
    ahead: Option<Chunk>,
    preparing: FuturesUnordered<Preparing>,
}

impl Pieces {
    pub(crate) fn new(input: Input, stage: Option<(Arc<dyn Stage>, usize)>, shard: &Shard) -> Self {
        let gaps = shard.checkpoint.gaps(shard.range).into();
        Self { input: Arc::new(input), stage, gaps, reader: None, ahead: None, preparing: FuturesUnordered::new() }
    }

    /// Whether all is handed over.
    pub(crate) fn are_over(&self) -> bool {
        self.gaps.is_empty() && self.preparing.is_empty()
    }

    /// The next piece; `None` when all are handed over. `finished` is how many ranges the checkpoint has beyond its first
    /// gap: each piece under preparation may become another, for which there must be room.
    pub(crate) async fn next(&mut self, finished: usize) -> Result<Option<Piece>, EngineError> {
        let Some((stage, at_once)) = self.stage.clone() else { return self.read().await };
        while self.preparing.len() < at_once
            && (self.preparing.is_empty() || finished + self.preparing.len() < CHECKPOINT_RANGES_MAX)
        {
            match self.read().await? {
                None => break,
                Some(Piece { range, chunk: Some(chunk), next }) => {
                    let stage = Arc::clone(&stage);
                    self.preparing.push(Box::pin(async move {
                        let expected = chunk.len();
                        let chunk = stage.prepare(chunk).await?;
                        match chunk.len() == expected {
                            true => Ok(Piece { range, chunk: Some(chunk), next }),
                            false => {
                                Err(inconsistent(format!("the work's stage changed the number of records in {range}")))
                            }
                        }
                    }));
                }
                // Nothing to prepare, and nothing that others would have to wait for.
                Some(empty) => return Ok(Some(empty)),
            }
        }
        self.preparing.next().await.transpose()
    }

    /// Reads the next piece.
    async fn read(&mut self) -> Result<Option<Piece>, EngineError> {
        let Some(gap) = self.gaps.front().copied() else { return Ok(None) };
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(self.input.open(gap)?),
        };
        let chunk = match self.ahead.take() {
            Some(chunk) => Some(chunk),
            None => reader.next().await?,
        };
        self.ahead = match chunk {
            Some(_) => reader.next().await?,
            None => None,
        };
        let to = match (&self.ahead, &chunk) {
            (Some(_), Some(chunk)) => chunk.record(chunk.len() - 1).to(),
            _ => gap.to(),
        };
        let range = Range::new(gap.from(), to).map_err(inconsistent)?;
        if self.ahead.is_some() {
            self.gaps[0] = Range::new(to, gap.to()).map_err(inconsistent)?;
        } else {
            self.gaps.pop_front();
            self.reader = None;
        }
        Ok(Some(Piece { range, chunk, next: 0 }))
    }

    /// The part of the shard beyond everything that is read or done: what can be cut off. `None` where there is no such
    /// part.
    pub(crate) fn unread(&self) -> Option<Range> {
        self.gaps.back().copied()
    }

    /// What lies beyond `at`, a place in the [unread part](Self::unread), is another's from now on.
    pub(crate) fn end_at(&mut self, at: Position) -> Result<(), EngineError> {
        let Some(last) = self.gaps.pop_back() else { return Err(inconsistent("a cut where all is read")) };
        let rest = Range::new(last.from(), at).map_err(inconsistent)?;
        if self.gaps.is_empty() {
            // What is being read is what was cut: it is opened anew, up to its new end.
            (self.reader, self.ahead) = (None, None);
        }
        if !rest.is_empty() {
            self.gaps.push_back(rest);
        }
        Ok(())
    }

    /// The input that they are of.
    pub(crate) fn input(&self) -> Arc<Input> {
        Arc::clone(&self.input)
    }
}
