//! The one definition of the table: its keys and indexes, and how items are named in it.
//!
//! The adapter creates it where it may, and the deployed template is held against it.
//!
//! | item | partition key | sort key |
//! | --- | --- | --- |
//! | job | `JOB#<job>` | `JOB` |
//! | spec version | `JOB#<job>` | `SPEC#<n, 10 digits>` |
//! | instance | `JOB#<job>` | `INST#<utc>` |
//! | skipped range | `JOB#<job>` | `SKIP#<utc of its first time>` |
//! | slot | `SLOT#job/<job>` or `SLOT#key/<concurrency key>` | `SLOT` |
//! | backfill | `JOB#<job>` | `BACKFILL#<id>` |
//! | group | `INST#<job>#<utc>#<generation>#<group>` | `GROUP` |
//! | shard | as its group | `SHARD#<id>` |
//! | attempt log | as its group | `ATT#<id>#<token, 10 digits>` |
//! | result row | `RES#<job>#<utc>#<generation>#<shard>` | `R#<row key>` |
//! | rejected record | as the shard's results | `X#<order>` |
//! | effect | `OUT#<job>#<utc>#<generation>#<shard>` | `E#<n, 10 digits>` |
//!
//! Names of jobs, concurrency keys and backfills hold neither `#` nor `/` (see [`JobName`]), so the parts of a key can
//! be told apart again. Times are written at one width, so that sort keys stand in time order; a number in a sort key
//! is padded for the same reason.
//!
//! Two sparse indexes hold the keys only ([`DUE_INDEX`], [`OPEN_INDEX`]): an item stands in one by having its two
//! attributes. Each is cut into [`INDEX_BUCKETS`] partitions, since one DynamoDB partition takes 1,000 write units a
//! second (AWS quota), and all ticks of an installation go to the index.

use std::fmt;

use sha2::{Digest, Sha256};
use shardcron_domain::ids::{Generation, GroupNo, InstanceId, JobName, RunId, ShardId, ShardKey, SpecVersion, Token};
use shardcron_domain::limits::INDEX_BUCKETS;
use shardcron_domain::slot::SlotKey;
use shardcron_domain::time::{Millis, ScheduledTime};

use crate::{Item, ItemKey};

/// The partition key's attribute, text.
pub const PK: &str = "PK";

/// The sort key's attribute, text.
pub const SK: &str = "SK";

/// What kind of item it is, for people who read the table; the adapter goes by the key, and checks this against it.
pub const KIND: &str = "kind";

/// The attribute of an item's expiry, in seconds since 1970. Nothing sets it yet; the deployed table is ready for it.
pub const EXPIRES_AT: &str = "expires_at";

/// How a key attribute is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// DynamoDB's `S`.
    Text,
    /// DynamoDB's `N`.
    Number,
}

/// A global secondary index. It projects the keys only: what it answers is a time and who it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// The attribute of its partition key: the bucket, text.
    pub partition: &'static str,
    /// The attribute of its sort key: the time.
    pub sort: &'static str,
    /// How the time is typed.
    pub sort_type: KeyType,
}

/// Jobs that have a next time, by that time's text: a tick costs what is due, not what exists.
pub const DUE_INDEX: Index = Index { name: "due", partition: "due_pk", sort: "due_at", sort_type: KeyType::Text };

/// Unfinished instances and backfills, by when the sweep should look again, in milliseconds since 1970. Each of the two
/// has partitions of its own, so that a query for the one doesn't meet the other.
pub const OPEN_INDEX: Index = Index { name: "open", partition: "open_pk", sort: "open_at", sort_type: KeyType::Number };

/// The key of an item as the table has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keys {
    /// The partition key.
    pub pk: String,
    /// The sort key.
    pub sk: String,
}

/// An item's entry in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexEntry {
    /// In [`DUE_INDEX`].
    Due {
        /// The index's partition.
        bucket: String,
        /// The job's next time.
        at: ScheduledTime,
    },
    /// In [`OPEN_INDEX`].
    Open {
        /// The index's partition.
        bucket: String,
        /// When to look at the instance or backfill.
        at: Millis,
    },
}

/// The kind of the items with this key, as [`KIND`] has it.
#[must_use]
pub fn kind(key: &ItemKey) -> &'static str {
    match key {
        ItemKey::Job(_) => "job",
        ItemKey::Spec(..) => "spec",
        ItemKey::Instance(_) => "instance",
        ItemKey::Skip(..) => "skip",
        ItemKey::Slot(_) => "slot",
        ItemKey::Backfill(..) => "backfill",
        ItemKey::Group(..) => "group",
        ItemKey::Shard(_) => "shard",
        ItemKey::Attempt(..) => "attempt",
        ItemKey::Result(..) => "result",
        ItemKey::Reject(..) => "reject",
        ItemKey::Effect(..) => "effect",
    }
}

/// What stands before the time in the sort key of an instance.
pub(crate) const INSTANCE_PREFIX: &str = "INST#";
/// What stands before the time in the sort key of a skipped range.
pub(crate) const SKIP_PREFIX: &str = "SKIP#";
/// What stands before the id in the sort key of a backfill.
pub(crate) const BACKFILL_PREFIX: &str = "BACKFILL#";
/// What stands before the id in the sort key of a shard.
pub(crate) const SHARD_PREFIX: &str = "SHARD#";
/// What stands before the row's key in the sort key of a result.
pub(crate) const RESULT_PREFIX: &str = "R#";
/// What stands before the place in the sort key of a reject.
pub(crate) const REJECT_PREFIX: &str = "X#";
/// What stands before the number in the sort key of an effect.
const EFFECT_PREFIX: &str = "E#";
/// The sort key of a job.
pub(crate) const JOB_SK: &str = "JOB";
/// The sort key of a slot.
const SLOT_SK: &str = "SLOT";

/// Where an item stands.
#[must_use]
pub fn keys(key: &ItemKey) -> Keys {
    match key {
        ItemKey::Job(job) => Keys { pk: job_pk(job), sk: JOB_SK.to_owned() },
        ItemKey::Spec(job, version) => Keys { pk: job_pk(job), sk: format!("SPEC#{:010}", version.0) },
        ItemKey::Instance(id) => Keys { pk: job_pk(&id.job), sk: format!("{INSTANCE_PREFIX}{}", id.at) },
        ItemKey::Skip(job, from) => Keys { pk: job_pk(job), sk: format!("{SKIP_PREFIX}{from}") },
        ItemKey::Slot(slot) => Keys { pk: format!("SLOT#{slot}"), sk: SLOT_SK.to_owned() },
        ItemKey::Backfill(job, id) => Keys { pk: job_pk(job), sk: format!("{BACKFILL_PREFIX}{id}") },
        ItemKey::Group(run, no) => Keys { pk: group_pk(run, *no), sk: "GROUP".to_owned() },
        ItemKey::Shard(shard) => {
            Keys { pk: group_pk(&shard.run, shard.shard.group()), sk: format!("{SHARD_PREFIX}{}", shard.shard) }
        }
        ItemKey::Attempt(shard, token) => {
            Keys { pk: group_pk(&shard.run, shard.shard.group()), sk: format!("ATT#{}#{:010}", shard.shard, token.0) }
        }
        ItemKey::Result(shard, row) => Keys { pk: result_pk(shard), sk: format!("{RESULT_PREFIX}{row}") },
        ItemKey::Reject(shard, order) => Keys { pk: result_pk(shard), sk: format!("{REJECT_PREFIX}{order}") },
        ItemKey::Effect(shard, no) => Keys { pk: outbox_pk(shard), sk: effect_sk(*no) },
    }
}

/// Whose key this is; `None` for a key that [`keys`] doesn't make.
#[must_use]
pub fn parse(pk: &str, sk: &str) -> Option<ItemKey> {
    let (family, rest) = pk.split_once('#')?;
    let key = match family {
        "JOB" => parse_of_job(rest.parse().ok()?, sk)?,
        "SLOT" if sk == SLOT_SK => ItemKey::Slot(parse_slot(rest)?),
        "INST" => {
            let (run, group) = parse_run(rest)?;
            parse_of_group(run, GroupNo(group.parse().ok()?), sk)?
        }
        "RES" => {
            let (run, shard) = parse_run(rest)?;
            let shard = ShardKey { run, shard: ShardId::try_from(shard.to_owned()).ok()? };
            match sk.strip_prefix(RESULT_PREFIX) {
                Some(row) => ItemKey::Result(shard, row.to_owned()),
                None => ItemKey::Reject(shard, sk.strip_prefix(REJECT_PREFIX)?.to_owned()),
            }
        }
        "OUT" => {
            let (run, shard) = parse_run(rest)?;
            let shard = ShardKey { run, shard: ShardId::try_from(shard.to_owned()).ok()? };
            ItemKey::Effect(shard, sk.strip_prefix(EFFECT_PREFIX)?.parse().ok()?)
        }
        _ => return None,
    };
    // One spelling for each key: `+5`, `05` and an offset other than Z parse as well.
    let own = keys(&key);
    (own.pk == pk && own.sk == sk).then_some(key)
}

fn parse_of_job(job: JobName, sk: &str) -> Option<ItemKey> {
    if sk == JOB_SK {
        return Some(ItemKey::Job(job));
    }
    let (family, rest) = sk.split_once('#')?;
    match family {
        "SPEC" => Some(ItemKey::Spec(job, SpecVersion(rest.parse().ok()?))),
        "INST" => Some(ItemKey::Instance(InstanceId { job, at: rest.parse().ok()? })),
        "SKIP" => Some(ItemKey::Skip(job, rest.parse().ok()?)),
        "BACKFILL" => Some(ItemKey::Backfill(job, rest.parse().ok()?)),
        _ => None,
    }
}

/// Reads what [`SlotKey`] shows itself as.
fn parse_slot(text: &str) -> Option<SlotKey> {
    match text.split_once('/')? {
        ("job", job) => Some(SlotKey::Job(job.parse().ok()?)),
        ("key", key) => Some(SlotKey::Shared(key.parse().ok()?)),
        _ => None,
    }
}

fn parse_of_group(run: RunId, group: GroupNo, sk: &str) -> Option<ItemKey> {
    if sk == "GROUP" {
        return Some(ItemKey::Group(run, group));
    }
    if let Some(id) = sk.strip_prefix(SHARD_PREFIX) {
        return Some(ItemKey::Shard(ShardKey { run, shard: ShardId::try_from(id.to_owned()).ok()? }));
    }
    let (id, token) = sk.strip_prefix("ATT#")?.split_once('#')?;
    let shard = ShardKey { run, shard: ShardId::try_from(id.to_owned()).ok()? };
    Some(ItemKey::Attempt(shard, Token(token.parse().ok()?)))
}

/// Reads `<job>#<utc>#<generation>#<rest>`.
fn parse_run(text: &str) -> Option<(RunId, &str)> {
    let mut parts = text.splitn(4, '#');
    let job = parts.next()?.parse().ok()?;
    let at = parts.next()?.parse().ok()?;
    let generation = Generation(parts.next()?.parse().ok()?);
    Some((RunId { instance: InstanceId { job, at }, generation }, parts.next()?))
}

pub(crate) fn job_pk(job: &JobName) -> String {
    format!("JOB#{job}")
}

pub(crate) fn group_pk(run: &RunId, group: GroupNo) -> String {
    format!("INST#{}#{group}", RunPart(run))
}

pub(crate) fn result_pk(shard: &ShardKey) -> String {
    format!("RES#{}#{}", RunPart(&shard.run), shard.shard)
}

pub(crate) fn outbox_pk(shard: &ShardKey) -> String {
    format!("OUT#{}#{}", RunPart(&shard.run), shard.shard)
}

pub(crate) fn effect_sk(no: u32) -> String {
    format!("{EFFECT_PREFIX}{no:010}")
}

struct RunPart<'a>(&'a RunId);

impl fmt::Display for RunPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}#{}", self.0.instance.job, self.0.instance.at, self.0.generation)
    }
}

/// The entry that an item has in an index, if any.
#[must_use]
pub fn index_entry(item: &Item) -> Option<IndexEntry> {
    match item {
        Item::Job(job) => job.next_fire.map(|at| IndexEntry::Due { bucket: due_bucket(bucket(job.name.as_str())), at }),
        Item::Instance(instance) => {
            instance.next_look.map(|at| IndexEntry::Open { bucket: open_bucket(bucket(&instance.id.to_string())), at })
        }
        Item::Backfill(backfill) => backfill.next_look.map(|at| {
            let name = format!("{}/{}", backfill.job, backfill.id);
            IndexEntry::Open { bucket: backfill_bucket(bucket(&name)), at }
        }),
        _ => None,
    }
}

/// The partition of the due index with this number, below [`INDEX_BUCKETS`].
#[must_use]
pub fn due_bucket(number: u32) -> String {
    format!("DUE#{number}")
}

/// The partition of the open index with this number for instances, below [`INDEX_BUCKETS`].
#[must_use]
pub fn open_bucket(number: u32) -> String {
    format!("OPEN#{number}")
}

/// The partition of the open index with this number for backfills, below [`INDEX_BUCKETS`].
#[must_use]
pub fn backfill_bucket(number: u32) -> String {
    format!("BACKFILL#{number}")
}

/// The bucket of a job by its name, of an instance by its whole name (so that the instances of one job spread), of a
/// backfill by `<job>/<id>`: the first four bytes of the name's SHA-256, modulo the number of buckets. Part of the
/// stored format.
fn bucket(name: &str) -> u32 {
    let digest = Sha256::digest(name.as_bytes());
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) % INDEX_BUCKETS
}

#[cfg(test)]
mod tests;
