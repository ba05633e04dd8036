//! What an executor reads of a shard: its committed rows, its page of the manifest, and its records.

use std::sync::Arc;

use shardcron_domain::boundary::{Position, Range};
use shardcron_domain::instance::Instance;
use shardcron_domain::job::InputSource;
use shardcron_domain::limits::{SETTLE_PAUSE, SETTLE_READS_MAX};
use shardcron_domain::location::Root;
use shardcron_domain::record::Chunk;
use shardcron_domain::result::ResultRow;
use shardcron_domain::shard::Shard;
use shardcron_input::{InputFormat, ItemReader, ManifestPage, ShardPlan, ShardReader};
use shardcron_objects::Objects;
use shardcron_store::{Item, ItemKey};
use shardcron_work::{KeyReader, KeySource, Work, every_key};

use crate::Engine;
use crate::apply::LoadedSpec;
use crate::error::{EngineError, inconsistent};

/// A shard's part of the input, of which readers can be opened.
pub(crate) struct Input {
    pub(crate) plan: ShardPlan,
    pub(crate) kind: InputKind,
}

/// What it takes to read each kind of input.
pub(crate) enum InputKind {
    Objects {
        objects: Arc<dyn Objects>,
        root: Root,
        format: InputFormat,
        /// The columns that each header must have.
        columns: Arc<[String]>,
    },
    Keys(Arc<dyn KeySource>),
    Items,
}

/// A reader of a part of a shard.
pub(crate) enum Reader {
    Objects(Box<ShardReader>),
    Keys(KeyReader),
    Items(ItemReader),
}

impl Reader {
    /// The next records, in order; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Chunk>, EngineError> {
        match self {
            Self::Objects(reader) => Ok(reader.next().await?),
            Self::Keys(reader) => Ok(reader.next().await?),
            Self::Items(reader) => Ok(reader.next()),
        }
    }
}

impl Input {
    /// A reader of the records in `range`, which begins and ends between two of them.
    pub(crate) fn open(&self, range: Range) -> Result<Reader, EngineError> {
        let part = self.plan.part(self.plan.id.clone(), range)?;
        match (&self.kind, range.from(), range.to()) {
            (InputKind::Objects { objects, root, format, columns }, from, _) => {
                let reader = ShardReader::open(Arc::clone(objects), root.clone(), &part, format, from)?;
                Ok(Reader::Objects(Box::new(reader.needing(Arc::clone(columns)))))
            }
            (InputKind::Keys(keys), Position::Key(from), Position::Key(to)) => {
                Ok(Reader::Keys(KeyReader::new(Arc::clone(keys), from..to)))
            }
            (InputKind::Items, from, _) => Ok(Reader::Items(ItemReader::open(&part, from)?)),
            (InputKind::Keys(_), ..) => Err(inconsistent(format!("{range} isn't a range of keys"))),
        }
    }
}

impl Engine {
    /// A shard's part of its instance's input.
    pub(crate) async fn input_of(
        &self,
        shard: &Shard,
        instance: &Instance,
        spec: &LoadedSpec,
        work: &dyn Work,
    ) -> Result<Input, EngineError> {
        let page = self.manifest_page(shard).await?;
        let plan = page
            .plan_of(&shard.key.shard)
            .ok_or_else(|| EngineError::Inconsistent(format!("{} isn't in its page of the manifest", shard.key)))?;
        let plan = plan.part(shard.key.shard.clone(), shard.range)?;
        let kind = self.input_kind(instance, spec, work)?;
        Ok(Input { plan, kind })
    }

    /// What it takes to read an instance's input.
    pub(crate) fn input_kind(
        &self,
        instance: &Instance,
        spec: &LoadedSpec,
        work: &dyn Work,
    ) -> Result<InputKind, EngineError> {
        Ok(match &spec.spec.input.source {
            InputSource::Objects { objects, format } => InputKind::Objects {
                objects: Arc::clone(&self.objects),
                root: self.located(objects, instance, spec)?.root,
                format: InputFormat::new(*format),
                columns: work.columns().into(),
            },
            InputSource::Keys { .. } => InputKind::Keys(work.keys().unwrap_or_else(every_key)),
            InputSource::List { .. } => InputKind::Items,
        })
    }

    /// A shard's result rows, once they agree with its counts: the items of its last transaction become visible one
    /// by one.
    pub(crate) async fn settled_rows(&self, shard: &Shard) -> Result<Vec<ResultRow>, EngineError> {
        if let Some(snapshot) = &shard.snapshot {
            return self.read_snapshot(shard, snapshot).await;
        }
        for _ in 0..SETTLE_READS_MAX {
            let mut rows = Vec::new();
            let mut after = None;
            loop {
                let page = self.store.results(&shard.key, after).await?;
                rows.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            if rows.iter().map(|row| row.records).sum::<u64>() == shard.counts.output {
                return Ok(rows);
            }
            self.clock.sleep(SETTLE_PAUSE).await;
        }
        Err(EngineError::Unseen(format!(
            "the result rows of {} don't add up to its {} records",
            shard.key, shard.counts.output
        )))
    }

    async fn manifest_page(&self, shard: &Shard) -> Result<ManifestPage, EngineError> {
        let key = ItemKey::Group(shard.key.run.clone(), shard.key.shard.group());
        let Some(Item::Group(group)) = self.store.get(&key).await? else {
            return Err(EngineError::Inconsistent(format!("{key} is missing")));
        };
        self.read_page(&group.page, &group.page_digest).await
    }
}
