//! The effects of one shard.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use shardcron_domain::limits::{EFFECT_BODY_BYTES_MAX, EFFECT_KEY_BYTES_MAX, SHARD_RESULT_ROWS_MAX};
use shardcron_domain::outbox::{Effect, RequestId};
use shardcron_domain::record::{Chunk, RecordRef};
use shardcron_domain::result::{RejectRow, ResultRow};

use super::{Columns, Plan};
use crate::aggregate::absent;
use crate::{Processed, Room, ShardWork, WorkError};

/// Items of a commit that a record takes: its row and its effect.
const ITEMS_A_RECORD: usize = 2;

/// Bytes of a row's value: 32 hex digits in quotes.
const REQUEST_ID_BYTES: usize = 34;

/// The keys of one shard, in memory, and the effects that wait for a commit.
pub(super) struct SendShard {
    plan: Arc<Plan>,
    keys: BTreeSet<Arc<str>>,
    /// Since the last commit, in the order of the records.
    waiting: Vec<Effect>,
    waiting_bytes: usize,
}

impl SendShard {
    pub(super) fn open(plan: Arc<Plan>, committed: Vec<ResultRow>) -> Result<Self, WorkError> {
        let mut keys = BTreeSet::new();
        for row in committed {
            if row.records != 1 {
                let why = format!("it has {} records, and a row of `send` has one", row.records);
                return Err(WorkError::State { key: row.key, why });
            }
            keys.insert(row.key.into());
        }
        Ok(Self { plan, keys, waiting: Vec::new(), waiting_bytes: 0 })
    }

    /// What a record asks for, or why it can't.
    fn effect(&self, record: &RecordRef<'_>, columns: &Columns) -> Result<Effect, String> {
        if let Some(why) = record.malformed() {
            return Err(why.to_owned());
        }
        let key = self.plan.key(record, columns)?;
        if key.len() > EFFECT_KEY_BYTES_MAX {
            let most = EFFECT_KEY_BYTES_MAX;
            return Err(format!("its key has {} bytes as JSON, and at most {most} are allowed", key.len()));
        }
        if self.keys.contains(key.as_str()) {
            return Err(format!("an earlier record has its key {key}, and the receiver would take both for one"));
        }
        let body = self.plan.body(record, columns);
        if body.len() > EFFECT_BODY_BYTES_MAX {
            let most = EFFECT_BODY_BYTES_MAX;
            return Err(format!("it has {} bytes as JSON, and at most {most} are sent", body.len()));
        }
        Ok(Effect { key, body, content_type: None })
    }

    fn row(&self, key: &str) -> ResultRow {
        // Without an instance nothing is sent: only the form of a row counts then.
        let id = self.plan.instance.as_ref().map(|instance| RequestId::of(instance, key).to_string());
        let value = serde_json::Value::from(id.unwrap_or_default()).to_string();
        ResultRow { key: key.to_owned(), value, records: 1 }
    }
}

/// Bytes of an effect and of its row.
fn bytes(effect: &Effect) -> usize {
    effect.bytes() + effect.key.len() + REQUEST_ID_BYTES
}

#[async_trait]
impl ShardWork for SendShard {
    async fn process(&mut self, chunk: &Chunk, first: usize, room: Room) -> Result<Processed, WorkError> {
        let mut processed = Processed::default();
        if first >= chunk.len() {
            return Ok(processed);
        }
        let source = chunk.source();
        let columns = Columns::of(&self.plan, source);
        if let Some(lacking) = source.lacks(self.plan.columns()) {
            return Err(absent(lacking, source, &chunk.record(first)));
        }
        for record in chunk.records().skip(first).take(room.records) {
            match self.effect(&record, &columns) {
                Ok(effect) => {
                    let items = (self.waiting.len() + 1) * ITEMS_A_RECORD;
                    if items > room.rows || self.waiting_bytes + bytes(&effect) > room.bytes {
                        processed.full = true;
                        break;
                    }
                    if self.keys.len() == SHARD_RESULT_ROWS_MAX {
                        return Err(WorkError::Input {
                            source: source.name.clone(),
                            line: record.line(),
                            position: Some(record.from()),
                            why: format!("the shard has more than {SHARD_RESULT_ROWS_MAX} effects"),
                            hint: Some("make shards smaller by shards.targetBytes".to_owned()),
                        });
                    }
                    self.keys.insert(effect.key.as_str().into());
                    self.waiting_bytes += bytes(&effect);
                    self.waiting.push(effect);
                }
                Err(_) if processed.rejects.len() >= room.rejects => {
                    processed.full = true;
                    break;
                }
                Err(why) => processed.rejects.push(RejectRow {
                    position: record.from(),
                    line: record.line(),
                    source: source.name.clone(),
                    why,
                }),
            }
            processed.taken += 1;
        }
        Ok(processed)
    }

    fn changes(&self) -> Vec<ResultRow> {
        self.waiting.iter().map(|effect| self.row(&effect.key)).collect()
    }

    fn rows(&self) -> Vec<ResultRow> {
        self.keys.iter().map(|key| self.row(key)).collect()
    }

    fn effects(&self) -> Vec<Effect> {
        self.waiting.clone()
    }

    fn committed(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
    }
}
