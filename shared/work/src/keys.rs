//! Records behind keys: walked by the work itself, from one key to the next.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use shardcron_domain::boundary::Position;
use shardcron_domain::limits::CHUNK_RECORDS_MAX;
use shardcron_domain::record::{Chunk, KEY_FIELD, Source};

use crate::WorkError;

/// What stands behind integer keys, such as the rows of a database's table.
///
/// It is read as one reads by a keyset: from a key on, so many at a time, and then from behind the last one on. What it
/// gives for a range must be the same each time that it is asked, as long as the instance lasts, or a takeover counts
/// other records than the owner before it: give rows as of a point in time, or ones that don't change.
#[async_trait]
pub trait KeySource: Send + Sync {
    /// The last key that there is; `None` while there is none. Asked once for each run, when its boundary is fixed.
    ///
    /// # Errors
    /// [`WorkError`].
    async fn max_key(&self) -> Result<Option<i64>, WorkError>;

    /// The first records with keys in `range`, in the order of their keys, each key at most once; at most `limit`.
    ///
    /// # Errors
    /// [`WorkError`].
    async fn read(&self, range: Range<i64>, limit: usize) -> Result<KeyPage, WorkError>;
}

/// Some records by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// The records, in the order of their keys.
    pub records: Vec<KeyRecord>,
    /// From which key on there may be more in the range; `None` when these were the last.
    pub next: Option<i64>,
}

/// A record by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: i64,
    /// Its fields by name; `None` is a null.
    pub fields: Vec<(String, Option<String>)>,
}

/// Every integer, each a record with the one field `key`.
#[must_use]
pub fn every_key() -> Arc<dyn KeySource> {
    Arc::new(EveryKey)
}

struct EveryKey;

#[async_trait]
impl KeySource for EveryKey {
    async fn max_key(&self) -> Result<Option<i64>, WorkError> {
        // A job that asks for it is refused before.
        Ok(None)
    }

    async fn read(&self, range: Range<i64>, limit: usize) -> Result<KeyPage, WorkError> {
        let record = |key: i64| KeyRecord { key, fields: vec![(KEY_FIELD.to_owned(), Some(key.to_string()))] };
        let records: Vec<KeyRecord> = range.clone().take(limit).map(record).collect();
        let next = records.last().map(|last| last.key + 1).filter(|next| *next < range.end);
        Ok(KeyPage { records, next })
    }
}

/// Reads what stands behind a range of keys, in chunks.
pub struct KeyReader {
    keys: Arc<dyn KeySource>,
    source: Arc<Source>,
    /// From where on it is to be read.
    at: i64,
    /// Where the last record that was handed over ends: keys without records belong to the next one.
    ended: i64,
    end: i64,
}

impl KeyReader {
    /// A reader of the records with keys in `range`.
    #[must_use]
    pub fn new(keys: Arc<dyn KeySource>, range: Range<i64>) -> Self {
        let source = Arc::new(Source { name: "the keys".to_owned(), columns: None });
        Self { keys, source, at: range.start, ended: range.start, end: range.end }
    }

    /// The next records; `None` after the last.
    ///
    /// # Errors
    /// [`WorkError`], as of [`KeySource::read`]; [`WorkError::State`] when what that gave isn't in order or in the range:
    /// going on would leave records out or count them twice.
    pub async fn next(&mut self) -> Result<Option<Chunk>, WorkError> {
        while self.at < self.end {
            let KeyPage { records, next } = self.keys.read(self.at..self.end, CHUNK_RECORDS_MAX).await?;
            let mut chunk = Chunk::new(Arc::clone(&self.source));
            for KeyRecord { key, fields } in records {
                if key < self.at || key >= self.end {
                    let why = format!("it isn't one of the keys from {} up to {} or isn't in order", self.at, self.end);
                    return Err(WorkError::State { key: key.to_string(), why });
                }
                self.at = key + 1;
                chunk.push_named(Position::Key(self.ended), Position::Key(self.at), 0, fields);
                self.ended = self.at;
            }
            match next {
                Some(next) if next < self.at || (next == self.at && chunk.is_empty()) => {
                    let why = "the work goes back to it, which would go on for ever".to_owned();
                    return Err(WorkError::State { key: next.to_string(), why });
                }
                next => self.at = next.unwrap_or(self.end),
            }
            if !chunk.is_empty() {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tenth key, so many a page; `wrong` makes it misbehave.
    struct Tens {
        wrong: Option<KeyPage>,
    }

    #[async_trait]
    impl KeySource for Tens {
        async fn max_key(&self) -> Result<Option<i64>, WorkError> {
            Ok(Some(90))
        }

        async fn read(&self, range: Range<i64>, _limit: usize) -> Result<KeyPage, WorkError> {
            if let Some(wrong) = &self.wrong {
                return Ok(wrong.clone());
            }
            let keys = range.clone().filter(|key| key % 10 == 0).take(2);
            let records: Vec<KeyRecord> = keys.map(|key| KeyRecord { key, fields: Vec::new() }).collect();
            let next = (records.len() == 2).then(|| records[1].key + 1);
            Ok(KeyPage { records, next })
        }
    }

    async fn spans(wrong: Option<KeyPage>, range: Range<i64>) -> Result<Vec<(Position, Position)>, WorkError> {
        let mut reader = KeyReader::new(Arc::new(Tens { wrong }), range);
        let mut spans = Vec::new();
        while let Some(chunk) = reader.next().await? {
            spans.extend(chunk.records().map(|record| (record.from(), record.to())));
        }
        Ok(spans)
    }

    #[tokio::test]
    async fn records_tile_the_range_up_to_the_last_of_them() {
        let key = |from, to| (Position::Key(from), Position::Key(to));
        assert_eq!(spans(None, 5..45).await.unwrap(), [key(5, 11), key(11, 21), key(21, 31), key(31, 41)]);
        assert_eq!(spans(None, 41..50).await.unwrap(), []);
        assert_eq!(spans(None, 7..7).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_source_that_goes_back_or_beyond_is_refused() {
        let record = |key| KeyRecord { key, fields: Vec::new() };
        for records in [vec![record(4)], vec![record(45)], vec![record(10), record(10)], vec![record(20), record(10)]] {
            assert!(spans(Some(KeyPage { records, next: None }), 5..45).await.is_err());
        }
        assert!(spans(Some(KeyPage { records: vec![], next: Some(5) }), 5..45).await.is_err());
        assert!(spans(Some(KeyPage { records: vec![record(10)], next: Some(7) }), 5..45).await.is_err());
    }
}
