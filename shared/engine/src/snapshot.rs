//! Snapshots: all result rows of a shard in one object, where a batch changes more of them than a transaction holds.
//!
//! The object is put first, under a name that no other write has, and the shard's item points to it in the commit. So
//! rows and checkpoint are one write still; an object that nothing points to counts for nothing.

use bytes::Bytes;
use shardcron_domain::digest;
use shardcron_domain::ids::WriteId;
use shardcron_domain::result::ResultRow;
use shardcron_domain::shard::{Shard, Snapshot};
use shardcron_objects::{ObjectName, read_whole};

use crate::Engine;
use crate::error::{EngineError, inconsistent};
use crate::place::{in_state, snapshot_key};

impl Engine {
    fn snapshot_object(&self, shard: &Shard, name: &str) -> ObjectName {
        in_state(&self.settings.state, &snapshot_key(&shard.key, name))
    }

    pub(crate) async fn put_snapshot(
        &self,
        shard: &Shard,
        write_id: &WriteId,
        rows: Vec<ResultRow>,
    ) -> Result<Snapshot, EngineError> {
        let mut content = Vec::new();
        for row in &rows {
            serde_json::to_writer(&mut content, row).map_err(inconsistent)?;
            content.push(b'\n');
        }
        let snapshot = Snapshot { name: format!("{}-{}", shard.token, write_id.0), digest: digest::half_of(&content) };
        let object = self.snapshot_object(shard, &snapshot.name);
        // One that is there is ours, of a put whose answer was lost: nobody else has this name.
        self.objects.put_if_absent(&object, Bytes::from(content)).await?;
        Ok(snapshot)
    }

    pub(crate) async fn read_snapshot(
        &self,
        shard: &Shard,
        snapshot: &Snapshot,
    ) -> Result<Vec<ResultRow>, EngineError> {
        let object = self.snapshot_object(shard, &snapshot.name);
        let Some((content, _)) = read_whole(&*self.objects, &object).await? else {
            return Err(EngineError::Inconsistent(format!("{object} is missing: {} has its rows there", shard.key)));
        };
        if digest::half_of(&content) != snapshot.digest {
            return Err(EngineError::Inconsistent(format!("{object} isn't what {} has written there", shard.key)));
        }
        let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let rows: Vec<ResultRow> = lines.map(serde_json::from_slice).collect::<Result<_, _>>().map_err(inconsistent)?;
        let records: u64 = rows.iter().map(|row| row.records).sum();
        if records != shard.counts.output {
            let expected = shard.counts.output;
            return Err(EngineError::Inconsistent(format!("{object} has {records} records, and its shard {expected}")));
        }
        Ok(rows)
    }
}
