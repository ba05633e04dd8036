//! Reading the items of a list.

use std::sync::Arc;

use shardcron_domain::boundary::Position;
use shardcron_domain::limits::CHUNK_RECORDS_MAX;
use shardcron_domain::record::{Chunk, ITEM_FIELD, Source};

use crate::error::InputError;
use crate::manifest::ShardPlan;

/// A shard's items, from any of them on.
pub struct ItemReader {
    source: Arc<Source>,
    items: Vec<String>,
    /// The number of the first.
    first: u32,
    /// How many are handed over.
    next: usize,
}

impl ItemReader {
    /// A reader of the items of a shard from `from` on.
    ///
    /// # Errors
    /// [`InputError::Plan`] when `from` isn't in the shard's range, or its items aren't those of its range.
    pub fn open(plan: &ShardPlan, from: Position) -> Result<Self, InputError> {
        let refuse = |why| InputError::Plan { shard: plan.id.to_string(), from, why };
        let (Position::Item(first), Position::Item(at)) = (plan.range.from(), from) else {
            return Err(refuse("the place or the shard's range isn't one of a list"));
        };
        if !plan.range.spans(from) {
            return Err(refuse("the place isn't in the shard's range"));
        }
        if !plan.covers_its_range() {
            return Err(refuse("the shard's items aren't those of its range"));
        }
        let source = Arc::new(Source { name: "the list".to_owned(), columns: None });
        Ok(Self { source, items: plan.items.clone(), first, next: (at - first) as usize })
    }
}

impl Iterator for ItemReader {
    type Item = Chunk;

    /// The next items, each a record; `None` after the last.
    fn next(&mut self) -> Option<Chunk> {
        let rest = self.items.get(self.next..).filter(|rest| !rest.is_empty())?;
        let mut chunk = Chunk::new(Arc::clone(&self.source));
        for item in rest.iter().take(CHUNK_RECORDS_MAX) {
            let at = self.first + self.next as u32;
            let fields = vec![(ITEM_FIELD.to_owned(), Some(item.clone()))];
            chunk.push_named(Position::Item(at), Position::Item(at + 1), 0, fields);
            self.next += 1;
        }
        Some(chunk)
    }
}
