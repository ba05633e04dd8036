//! A work that counts as the built-in one does, and misbehaves where a test says so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use shardcron_domain::job::AggregateSpec;
use shardcron_domain::record::Chunk;
use shardcron_domain::result::ResultRow;
use shardcron_work::{Aggregate, Merge, Processed, Room, ShardWork, Work, WorkError, Works};

use crate::keyed::with_keyed;
use crate::life::Life;

/// The name that jobs call it by. With `groupBy` and `sum`, it counts by other columns than `merchant` and `amount`.
pub const SCRIPTED: &str = "scripted";

/// What the work does with a chunk of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It counts them.
    Count,
    /// It takes so long, and then counts them.
    Take(Duration),
    /// It fails, and may do better next time.
    Fail,
    /// It fails, and won't do better on this input.
    Refuse,
    /// It counts, but it fails at the end of the chunk.
    CountAndFail,
    /// It kills the process.
    Kill,
}

/// Decides by the name of the object.
pub type Deeds = Arc<dyn Fn(&str) -> Deed + Send + Sync>;

/// The error of a work that fails as it was told to.
#[derive(Clone, Copy, Debug)]
pub struct AsTold;

impl fmt::Display for AsTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work fails as it was told to")
    }
}

impl std::error::Error for AsTold {}

/// The works of a process: the built-in ones, [`SCRIPTED`] and [`KEYED`](crate::keyed::KEYED).
#[must_use]
pub fn works(deeds: Deeds, life: Arc<Life>) -> Works {
    with_keyed(Works::builtin(), Arc::clone(&life)).with(SCRIPTED, move |with, input| {
        let texts = |name: &str, default: &str| match with[name].as_array() {
            Some(texts) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            None => vec![default.to_owned()],
        };
        let spec = AggregateSpec {
            group_by: texts("groupBy", "merchant"),
            count: true,
            sum: texts("sum", "amount"),
            ..AggregateSpec::default()
        };
        let inner = Aggregate::new(spec, &input.nulls);
        Ok(Arc::new(Scripted { inner, deeds: Arc::clone(&deeds), life: Arc::clone(&life) }) as Arc<dyn Work>)
    })
}

struct Scripted {
    inner: Aggregate,
    deeds: Deeds,
    life: Arc<Life>,
}

impl Work for Scripted {
    fn open(&self, committed: Vec<ResultRow>) -> Result<Box<dyn ShardWork>, WorkError> {
        let inner = self.inner.open(committed)?;
        Ok(Box::new(ScriptedShard { inner, deeds: Arc::clone(&self.deeds), life: Arc::clone(&self.life) }))
    }

    fn merge(&self) -> Box<dyn Merge> {
        self.inner.merge()
    }
}

struct ScriptedShard {
    inner: Box<dyn ShardWork>,
    deeds: Deeds,
    life: Arc<Life>,
}

#[async_trait]
impl ShardWork for ScriptedShard {
    async fn process(&mut self, chunk: &Chunk, first: usize, room: Room) -> Result<Processed, WorkError> {
        let source = chunk.source().name.clone();
        match (self.deeds)(&source) {
            Deed::Count => {}
            Deed::Take(duration) => {
                tokio::time::sleep(duration).await;
                self.life.pass().await;
            }
            Deed::Fail => return Err(WorkError::Retryable(Box::new(AsTold))),
            Deed::Refuse => {
                let why = "the work refuses it as it was told to".to_owned();
                return Err(WorkError::Input { source, line: 0, position: None, why, hint: None });
            }
            Deed::CountAndFail => {
                self.inner.process(chunk, first, room).await?;
                return Err(WorkError::Retryable(Box::new(AsTold)));
            }
            Deed::Kill => {
                self.life.die();
                self.life.pass().await;
            }
        }
        self.inner.process(chunk, first, room).await
    }

    fn changes(&self) -> Vec<ResultRow> {
        self.inner.changes()
    }

    fn rows(&self) -> Vec<ResultRow> {
        self.inner.rows()
    }

    fn committed(&mut self) {
        self.inner.committed();
    }
}
