//! The boundary of a run as data: which objects, in which content, cut into which shards.
//!
//! A root names pages, each with the shards of one group, so that an executor reads the root and one page however many
//! shards there are. The bytes are deterministic: the same listing gives the same root, and its digest stands for all
//! of it, since it has the digests of the pages.

use serde::{Deserialize, Serialize};
use shardcron_domain::boundary::{ObjectPosition, Position, Range};
use shardcron_domain::digest;
use shardcron_domain::ids::{Generation, JobName, ShardId};
use shardcron_domain::limits;
use shardcron_domain::time::ScheduledTime;
use shardcron_objects::{ETag, Root};

use crate::plans::{Cut, objects_range, range_of};

/// The version that manifests are written in.
pub const MANIFEST_VERSION: u32 = 1;

/// Which run a manifest is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestHead {
    /// The job.
    pub job: JobName,
    /// The scheduled time.
    pub at: ScheduledTime,
    /// The generation.
    pub generation: Generation,
}

/// The root of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// [`MANIFEST_VERSION`] of whoever wrote it.
    pub version: u32,
    /// Which run it is of.
    #[serde(flatten)]
    pub head: ManifestHead,
    /// What the run is about, as a whole.
    pub boundary: BoundaryKind,
    /// How many shards it is cut into.
    pub shards: u32,
    /// What a shard of it has at most, unless it can't be cut further: bytes, keys or items. Fixed with the boundary, since
    /// what is learned of later runs would cut it elsewhere.
    pub target: u64,
    /// Its pages, in order: the page with number `n` has the shards of group `n`.
    pub pages: Vec<PageRef>,
}

/// A boundary as a whole, by its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum BoundaryKind {
    /// Objects of one root.
    Objects {
        /// What their keys are relative to.
        root: Root,
        /// How many there are.
        objects: u32,
        /// Bytes of all of them, as they are stored.
        bytes: u64,
    },
    /// Integer keys.
    Keys {
        /// The first.
        from: i64,
        /// The one after the last.
        to: i64,
    },
    /// Items of a list.
    Items {
        /// How many there are.
        items: u32,
    },
}

impl BoundaryKind {
    /// The whole of it as a range, which the ranges of the shards tile.
    #[must_use]
    pub fn range(&self) -> Range {
        match self {
            Self::Objects { objects, .. } => objects_range(0, *objects),
            Self::Keys { from, to } => range_of(Position::Key(*from), Position::Key(*to)),
            Self::Items { items } => range_of(Position::Item(0), Position::Item(*items)),
        }
    }

    /// Its objects and their bytes; none for another kind.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        match self {
            Self::Objects { objects, bytes, .. } => (u64::from(*objects), *bytes),
            Self::Keys { .. } | Self::Items { .. } => (0, 0),
        }
    }
}

/// Where a page is, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRef {
    /// The key that it is stored under, as its builder was told.
    pub key: String,
    /// SHA-256 of its bytes, in lower-case hex.
    pub digest: String,
    /// How many shards it has.
    pub shards: u32,
}

/// A page: the shards of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestPage {
    /// The number of its first shard.
    pub first_shard: u32,
    /// Its shards, in order.
    pub shards: Vec<ShardPlan>,
}

/// A shard as the manifest has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardPlan {
    /// Its id.
    pub id: ShardId,
    /// Its part of the boundary.
    pub range: Range,
    /// The objects that its range meets, in order; none for a boundary of another kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ManifestObject>,
    /// The items of its range, in order; none for a boundary of another kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
}

/// An object of a boundary, in the content that it had when that was fixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestObject {
    /// Its place in the boundary, from 0; what positions name it by.
    pub index: u32,
    /// Its key, relative to the boundary's root.
    pub key: String,
    /// Bytes, as it is stored.
    pub size: u64,
    /// Its content's tag.
    pub etag: ETag,
}

impl ShardPlan {
    /// The plan of a part of this shard, for a child of a split and what is left of its parent.
    ///
    /// # Errors
    /// [`ManifestError::Range`] when `range` isn't a part of this shard's.
    pub fn part(&self, id: ShardId, range: Range) -> Result<Self, ManifestError> {
        if !self.range.spans(range.from()) || !self.range.spans(range.to()) {
            return Err(ManifestError::Range { shard: id });
        }
        let objects = self.objects.iter().filter(|object| meets(range, object.index)).cloned().collect();
        let items = match (self.range.from(), range.from(), range.to()) {
            (Position::Item(first), Position::Item(from), Position::Item(to)) => {
                let items = self.items.get((from - first) as usize..(to - first) as usize);
                items.ok_or_else(|| ManifestError::Range { shard: id.clone() })?.to_vec()
            }
            _ => Vec::new(),
        };
        Ok(Self { id, range, objects, items })
    }

    /// Bytes of its objects, as they are stored.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.objects.iter().fold(0, |sum, object| sum.saturating_add(object.size))
    }

    /// Whether its objects or items are those that its range meets, without a gap.
    pub(crate) fn covers_its_range(&self) -> bool {
        let (objects, items) = match (self.range.from(), self.range.to()) {
            (Position::Object(from), Position::Object(to)) if from == to => (0..0, 0),
            (Position::Object(from), Position::Object(to)) => (from.object..to.object + u32::from(to.offset > 0), 0),
            (Position::Item(from), Position::Item(to)) => (0..0, (to - from) as usize),
            _ => (0..0, 0),
        };
        self.objects.iter().map(|object| object.index).eq(objects) && self.items.len() == items
    }
}

/// Whether a range has something of an object.
fn meets(range: Range, object: u32) -> bool {
    let (Position::Object(from), Position::Object(to)) = (range.from(), range.to()) else { return false };
    from < ObjectPosition::start_of(object.saturating_add(1)) && ObjectPosition::start_of(object) < to && from < to
}

/// A manifest that was built, with what is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The root, which is to be stored last: it makes the pages count.
    pub manifest: Manifest,
    /// The pages, in order.
    pub pages: Vec<EncodedPage>,
}

/// A page as it is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedPage {
    /// The key to store it under.
    pub key: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What can be wrong with a stored manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It isn't a manifest or page.
    #[error("it isn't a manifest or a page of one")]
    Malformed(#[from] serde_json::Error),
    /// A newer version of shardcron wrote it.
    #[error("it has version {found}, and this shardcron knows {MANIFEST_VERSION}")]
    Version {
        /// The version that it has.
        found: u32,
    },
    /// It isn't the one that it was named as.
    #[error("its digest is {found}, and it should be {expected}")]
    Digest {
        /// What its reference has.
        expected: String,
        /// What it has.
        found: String,
    },
    /// Its parts don't fit each other.
    #[error("its parts don't fit together: {0}")]
    Inconsistent(&'static str),
    /// A range isn't a part of the shard's.
    #[error("the range of shard {shard} isn't in the range of the shard that it is cut from")]
    Range {
        /// The shard that was to be cut.
        shard: ShardId,
    },
}

impl Manifest {
    /// Fixes a boundary: makes the pages and the root of its cut into shards. `page_key` gives the key of a page by its
    /// number and digest.
    ///
    /// # Errors
    /// [`ManifestError::Malformed`] when it can't be encoded, which no listing brings about.
    pub fn build(head: ManifestHead, cut: Cut, page_key: impl Fn(u32, &str) -> String) -> Result<Built, ManifestError> {
        let Cut { boundary, target, mut plans } = cut;
        let shards = plans.len() as u32;
        let (mut refs, mut pages) = (Vec::new(), Vec::new());
        let mut first_shard = 0;
        while !plans.is_empty() {
            let rest = plans.split_off(plans.len().min(limits::GROUP_SHARDS_MAX));
            let page = ManifestPage { first_shard, shards: std::mem::replace(&mut plans, rest) };
            let bytes = serde_json::to_vec(&page)?;
            let digest = digest::of(&bytes);
            let key = page_key(refs.len() as u32, &digest);
            let shards = page.shards.len() as u32;
            refs.push(PageRef { key: key.clone(), digest, shards });
            pages.push(EncodedPage { key, bytes });
            first_shard += shards;
        }
        let manifest = Self { version: MANIFEST_VERSION, head, boundary, shards, target, pages: refs };
        Ok(Built { manifest, pages })
    }

    /// The bytes to store.
    ///
    /// # Errors
    /// [`ManifestError::Malformed`] when it can't be encoded.
    pub fn encode(&self) -> Result<Vec<u8>, ManifestError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// SHA-256 of the stored bytes of a root, in lower-case hex: what stands for the whole boundary.
    #[must_use]
    pub fn digest(bytes: &[u8]) -> String {
        digest::of(bytes)
    }

    /// Reads a root.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        // First by itself: the rest of another version may have another form.
        let Version { version } = serde_json::from_slice(bytes)?;
        if version != MANIFEST_VERSION {
            return Err(ManifestError::Version { found: version });
        }
        let manifest: Self = serde_json::from_slice(bytes)?;
        let (full, last) = (limits::GROUP_SHARDS_MAX as u32, manifest.pages.len().saturating_sub(1));
        let fits =
            manifest.pages.iter().enumerate().all(|(number, page)| {
                if number < last { page.shards == full } else { (1..=full).contains(&page.shards) }
            });
        let shards: u64 = manifest.pages.iter().map(|page| u64::from(page.shards)).sum();
        if !fits || shards != u64::from(manifest.shards) {
            return Err(ManifestError::Inconsistent("the shards of its pages aren't as many as it says"));
        }
        Ok(manifest)
    }

    /// Reads a root that must be the one with this digest.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn decode_verified(bytes: &[u8], digest: &str) -> Result<Self, ManifestError> {
        check_digest(bytes, digest)?;
        Self::decode(bytes)
    }

    /// The page that has a shard, or the shard that it was split from.
    #[must_use]
    pub fn page_of(&self, shard: &ShardId) -> Option<&PageRef> {
        self.pages.get(shard.group().0 as usize)
    }

    /// Reads the page with this number.
    ///
    /// # Errors
    /// [`ManifestError`]; among them that it isn't the page that this root names.
    pub fn decode_page(&self, number: u32, bytes: &[u8]) -> Result<ManifestPage, ManifestError> {
        let reference = self.pages.get(number as usize);
        let reference = reference.ok_or(ManifestError::Inconsistent("it has no page of that number"))?;
        let page = ManifestPage::decode_verified(bytes, &reference.digest)?;
        if page.first_shard != number * limits::GROUP_SHARDS_MAX as u32
            || page.shards.len() != reference.shards as usize
        {
            return Err(ManifestError::Inconsistent("a page hasn't the shards that the root says"));
        }
        Ok(page)
    }
}

impl ManifestPage {
    /// Reads a page that must be the one with this digest, for who has the digest but not the root.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn decode_verified(bytes: &[u8], digest: &str) -> Result<Self, ManifestError> {
        check_digest(bytes, digest)?;
        let page: Self = serde_json::from_slice(bytes)?;
        let numbers = page.first_shard..;
        let is_numbered = page.shards.iter().zip(numbers).all(|(plan, number)| plan.id == ShardId::numbered(number));
        let tiles = page.shards.windows(2).all(|pair| pair[0].range.to() == pair[1].range.from());
        if !is_numbered || !tiles || !page.shards.iter().all(ShardPlan::covers_its_range) {
            return Err(ManifestError::Inconsistent("the shards of a page don't follow each other"));
        }
        Ok(page)
    }

    /// The plan of a shard of the manifest; for a child of a split, the plan of the shard that it was split from, of
    /// which its own is a [`ShardPlan::part`].
    #[must_use]
    pub fn plan_of(&self, shard: &ShardId) -> Option<&ShardPlan> {
        let place = shard.number().checked_sub(self.first_shard)?;
        self.shards.get(place as usize)
    }
}

fn check_digest(bytes: &[u8], expected: &str) -> Result<(), ManifestError> {
    let found = digest::of(bytes);
    if found == expected { Ok(()) } else { Err(ManifestError::Digest { expected: expected.to_owned(), found }) }
}
