//! The group: at most a hundred shards of the manifest with their children, and which of them are done.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{GroupNo, RunId, ShardId, ShardIdError, Version, WriteId};
use crate::shard::{Shard, ShardStatus};

/// That a shard is done, as its group's set has it: the shard, and how many children were cut from it, which is final
/// by then. So the set alone tells whether anything is missing from it, and a split writes no group.
///
/// Written as `00042`, or with children as `00042+2`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DoneShard {
    /// Which shard.
    pub shard: ShardId,
    /// How many children it has.
    pub children: u32,
}

impl DoneShard {
    /// What a shard reports once it is done; `None` before.
    #[must_use]
    pub fn of(shard: &Shard) -> Option<Self> {
        let done = || Self { shard: shard.key.shard.clone(), children: shard.children };
        (shard.status == ShardStatus::Done).then(done)
    }
}

impl fmt::Display for DoneShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.children {
            0 => write!(f, "{}", self.shard),
            children => write!(f, "{}+{children}", self.shard),
        }
    }
}

impl From<DoneShard> for String {
    fn from(done: DoneShard) -> Self {
        done.to_string()
    }
}

impl TryFrom<String> for DoneShard {
    type Error = ShardIdError;
    fn try_from(text: String) -> Result<Self, ShardIdError> {
        let (shard, children) = text.split_once('+').unwrap_or((&text, "0"));
        let number = children.parse().map_err(|_| ShardIdError(text.clone()))?;
        Ok(Self { shard: ShardId::try_from(shard.to_owned())?, children: number })
    }
}

/// A group as the store holds it. Shards report to their group and full groups to the instance, so that the end of a
/// shard is never a write to an item that all shards write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// The generation that it belongs to.
    pub run: RunId,
    /// Its number.
    pub no: GroupNo,
    /// How many shards of the manifest it has, without the children of splits.
    pub size: u32,
    /// Those that are done.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub done: BTreeSet<DoneShard>,
    /// The key of its page of the manifest, and the SHA-256 of that in hex.
    pub page: String,
    /// The digest.
    pub page_digest: String,
    /// +1 at each write.
    pub version: Version,
    /// Of the last conditional write (additions to the set don't change it).
    pub write_id: WriteId,
}

impl Group {
    /// Whether all its shards are done, those that were cut from them too.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full_with(&[])
    }

    /// How many of its shards are open, as far as its set tells: children of open shards aren't in it.
    #[must_use]
    pub fn open_at_least(&self) -> u32 {
        let children: u32 = self.done.iter().map(|done| done.children).sum();
        self.size.saturating_add(children).saturating_sub(self.done.len() as u32)
    }

    /// Whether it is full with these in its set too.
    #[must_use]
    pub fn is_full_with(&self, more: &[DoneShard]) -> bool {
        let done = || self.done.iter().chain(more);
        let ids: BTreeSet<&ShardId> = done().map(|done| &done.shard).collect();
        let of_the_manifest = ids.iter().filter(|id| !id.is_child()).count();
        let children = || done().flat_map(|done| (1..=done.children).map(|number| done.shard.child(number)));
        of_the_manifest as u32 >= self.size && children().all(|child| ids.contains(&child))
    }
}

/// Whether what was read of a group has every child that its parents count. A split's items become visible one by one,
/// so that a parent may show its cut before there is a child to be seen.
#[must_use]
pub fn has_all_children(shards: &[Shard]) -> bool {
    let ids: BTreeSet<&ShardId> = shards.iter().map(|shard| &shard.key.shard).collect();
    let mut children = shards.iter().flat_map(|shard| (1..=shard.children).map(|number| shard.key.shard.child(number)));
    children.all(|child| ids.contains(&child))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Generation;

    fn group(size: u32, done: &[&str]) -> Group {
        Group {
            run: RunId { instance: "a:2026-08-29T16:00:00Z".parse().unwrap(), generation: Generation::FIRST },
            no: GroupNo(0),
            size,
            done: done.iter().map(|text| DoneShard::try_from((*text).to_owned()).unwrap()).collect(),
            page: String::new(),
            page_digest: String::new(),
            version: Version::FIRST,
            write_id: WriteId(String::new()),
        }
    }

    #[test]
    fn a_group_is_full_with_the_children_that_its_shards_say_they_have() {
        assert!(group(2, &["00000", "00001"]).is_full());
        assert!(!group(2, &["00000"]).is_full());
        assert!(!group(1, &["00000+1"]).is_full());
        assert!(group(1, &["00000+1", "00000.1"]).is_full());
        assert!(!group(1, &["00000+1", "00000.1+2", "00000.1.2"]).is_full());
        assert!(group(1, &["00000+1", "00000.1+2", "00000.1.2", "00000.1.1"]).is_full());
    }

    #[test]
    fn a_child_that_is_done_first_stands_for_nobody_else() {
        assert!(!group(1, &["00000.1"]).is_full());
        assert!(!group(2, &["00000.1", "00000+1"]).is_full());
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        for text in ["00042", "00042.1.3+12"] {
            assert_eq!(DoneShard::try_from(text.to_owned()).unwrap().to_string(), text);
        }
        for bad in ["42", "00042+", "00042+x", ""] {
            assert!(DoneShard::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
