//! Works: what a job does with its records, and how shards of it join.
//!
//! A [`Work`] is what a job names. For each shard it opens a [`ShardWork`], which takes records and keeps result rows;
//! for an instance it makes a [`Merge`], which joins the rows of all shards into the output. The engine drives them:
//!
//! ```text
//! open(rows committed so far)
//!   repeat: process(records) ... until the batch or the room is full
//!           changes()  ── committed together with the checkpoint ──>  committed()
//! merge: add(each row of each shard), finish()
//! ```
//!
//! # What makes the effect exact
//!
//! Rows hold *absolute* values (the sum so far, not what a batch added), so that writing one twice is writing it once;
//! and rows and checkpoint are committed in one write. A work therefore must be a function of the records alone: no
//! clock, no randomness, no effect outside its rows and the [`Effect`]s that it asks for. However a shard's records are cut into batches, and wherever its
//! owners change, the rows must come out the same; and the output must not depend on the order in which rows are added
//! to the merge.

mod aggregate;
mod error;
mod keys;
mod registry;
mod send;

use std::sync::Arc;

use async_trait::async_trait;

use shardcron_domain::ids::InstanceId;
use shardcron_domain::outbox::Effect;
use shardcron_domain::record::Chunk;
use shardcron_domain::result::{OutputTable, RejectRow, ResultRow};

pub use self::aggregate::Aggregate;
pub use self::error::WorkError;
pub use self::keys::{KeyPage, KeyReader, KeyRecord, KeySource, every_key};
pub use self::registry::Works;
pub use self::send::SendWork;

/// What a job does with its records.
pub trait Work: Send + Sync {
    /// Begins a shard, or resumes it from the rows that its earlier owners committed, in any order.
    ///
    /// # Errors
    /// [`WorkError::State`] when the rows aren't ones that this work has written.
    fn open(&self, committed: Vec<ResultRow>) -> Result<Box<dyn ShardWork>, WorkError>;

    /// The columns that each header must have: an object without one of them fails the instance, also one in which no
    /// record follows the header. None for a work that looks for them itself.
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    /// Begins to join the rows of an instance's shards.
    fn merge(&self) -> Box<dyn Merge>;

    /// What stands behind the keys of an input of keys. `None` for a work that knows nothing of keys: then
    /// [each key is a record](every_key).
    fn keys(&self) -> Option<Arc<dyn KeySource>> {
        None
    }

    /// What can be done to the records of a shard before [`ShardWork::process`] takes them, several chunks at once: for
    /// works that wait for something, such as a look-up. `None` where there is no such thing.
    fn stage(&self) -> Option<Arc<dyn Stage>> {
        None
    }

    /// Whether its shards ask for effects: see [`ShardWork::effects`].
    fn emits_effects(&self) -> bool {
        false
    }

    /// The same work for one instance, if its rows name what only an instance has, such as request ids.
    fn for_instance(&self, instance: &InstanceId) -> Option<Arc<dyn Work>> {
        let _ = instance;
        None
    }
}

/// A part of a work that needs no state of the shard: chunks pass it at the same time, and leave it in any order, as many
/// as the job's `shards.parallelBatches` says. So the rows of a work that has one mustn't depend on the order in which
/// the chunks of a shard are processed.
#[async_trait]
pub trait Stage: Send + Sync {
    /// The chunk as it is to be processed: with as many records, at the same places.
    ///
    /// # Errors
    /// [`WorkError`].
    async fn prepare(&self, chunk: Chunk) -> Result<Chunk, WorkError>;
}

/// The work on one shard, by one owner of it.
///
/// After an error it is spent: it may hold a part of what failed, and nothing of it may be committed. Whoever goes on
/// opens another from the committed rows.
#[async_trait]
pub trait ShardWork: Send {
    /// Takes the records of `chunk` from the one at `first` on, in order, each as a whole or not at all. Stops before a
    /// record with which the rows changed since the last commit would be more than `room` has space for; it may count
    /// a row as larger than it is.
    ///
    /// A record that can't be worked on is taken as a reject. It's the engine that decides how many there may be.
    ///
    /// # Errors
    /// [`WorkError`], after which this value is spent.
    async fn process(&mut self, chunk: &Chunk, first: usize, room: Room) -> Result<Processed, WorkError>;

    /// The rows that changed since [`committed`](Self::committed) was last called, with their present values.
    fn changes(&self) -> Vec<ResultRow>;

    /// All rows of the shard, with their present values: what is committed, in the place of the changes, where these are
    /// more than one transaction holds.
    fn rows(&self) -> Vec<ResultRow>;

    /// The effects outside of the result that the records since [`committed`](Self::committed) was last called ask for, in
    /// their order. They are written in the commit, and sent after it, in this order. A function of the records, as the
    /// rows are; none unless [`Work::emits_effects`].
    fn effects(&self) -> Vec<Effect> {
        Vec::new()
    }

    /// Says that what [`changes`](Self::changes), [`effects`](Self::effects) or [`rows`](Self::rows) returned is committed.
    fn committed(&mut self);
}

/// Space in a commit.
///
/// A call stops after `records`, whatever else there is room for; that isn't being full. A room must hold one row of the
/// greatest size, one effect of the greatest size and one reject, or a shard can't go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Result rows that may have changed and effects that may have been asked for since the last commit, not only by this
    /// call.
    pub rows: usize,
    /// Their bytes, as [`ResultRow::bytes`] and [`Effect::bytes`] count them.
    pub bytes: usize,
    /// Records that this call may take.
    pub records: usize,
    /// Records that this call may reject.
    pub rejects: usize,
}

/// What [`ShardWork::process`] has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Processed {
    /// How many records it took, rejects too.
    pub taken: usize,
    /// Those of the taken that were rejected, in order.
    pub rejects: Vec<RejectRow>,
    /// Whether it stopped because there was no room for the next record.
    pub full: bool,
}

/// Joins the rows of an instance's shards into its output, whatever the order in which they come.
pub trait Merge: Send {
    /// Adds a row of a shard.
    ///
    /// # Errors
    /// [`WorkError::State`] when the row isn't one that this work has written, [`WorkError::Input`] when the result
    /// isn't one that can be.
    fn add(&mut self, row: ResultRow) -> Result<(), WorkError>;

    /// The output.
    ///
    /// # Errors
    /// [`WorkError`], as of [`add`](Self::add).
    fn finish(self: Box<Self>) -> Result<OutputTable, WorkError>;
}
