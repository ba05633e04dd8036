//! The Objects port of shardcron and its adapters.
//!
//! A store of objects as S3 has it: whole objects under a key, listed in key order, read by ranges, written by
//! put-if-absent and put-if-match. Both conditional puts are atomic in every adapter: of any number of racing
//! writers, one wins, and a reader sees an object whole or not at all.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub mod by_root;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod local;
pub mod s3;

pub use shardcron_domain::location::{Location, Root};

/// An object: the root that it lives under, and its key there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectName {
    /// The bucket or directory.
    pub root: Root,
    /// The key in it: UTF-8, 1 to 1,024 bytes (S3's bound), `/` between its parts.
    pub key: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root.join(&self.key))
    }
}

/// What tells one content of an object from another. Opaque; compare only for equality.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ETag(pub String);

/// An object as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectMeta {
    /// The key.
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// Its content's tag.
    pub etag: ETag,
}

/// What became of a conditional put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was written, and has this tag now.
    Written(ETag),
    /// The condition didn't hold: an object is there (put-if-absent), or another or none is (put-if-match).
    Refused,
}

/// What went wrong, by what the caller can do.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// There is no such object (or it has gone since it was listed). Only other input mends it.
    #[error("{object} isn't there")]
    NotFound {
        /// Which object.
        object: ObjectName,
    },
    /// The object isn't the one that was asked for any more. Only other input mends it.
    #[error("{object} has changed since the boundary was fixed")]
    Changed {
        /// Which object.
        object: ObjectName,
    },
    /// The name can't be used here: it would leave its root, or the adapter can't hold it.
    #[error("{object} can't be used as an object's name: {why}")]
    Name {
        /// Which object.
        object: String,
        /// Why not.
        why: String,
    },
    /// The store refuses for good: no permission, no such bucket or directory, no space left.
    #[error("{what}: {source}")]
    Refused {
        /// What was tried, on what.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store doesn't answer, or asks for patience. Worth another try.
    #[error("{what}: {source}")]
    Unavailable {
        /// What was tried, on what.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// An object being read.
#[async_trait]
pub trait ObjectReader: Send + Sync {
    /// The next bytes; `None` at the end. An adapter checks, before it ends, that it was one content throughout.
    ///
    /// # Errors
    /// [`ObjectsError::Changed`] when the object changed while it was read; [`ObjectsError::Unavailable`] when the
    /// connection broke.
    async fn next(&mut self) -> Result<Option<Bytes>, ObjectsError>;
}

/// The port.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Up to `limit` objects whose key begins with `prefix` and is greater than `after`, in the order of their keys'
    /// bytes, from all levels. Fewer than `limit` are the last ones. A root that isn't there has no objects.
    ///
    /// # Errors
    /// [`ObjectsError::Name`] when the prefix could never begin a key, or when something below it can't be an object;
    /// [`ObjectsError::Refused`]; [`ObjectsError::Unavailable`].
    async fn list(
        &self,
        root: &Root,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, ObjectsError>;

    /// Size and tag of an object; `None` when it isn't there.
    ///
    /// # Errors
    /// [`ObjectsError::Name`], [`ObjectsError::Refused`], [`ObjectsError::Unavailable`].
    async fn head(&self, object: &ObjectName) -> Result<Option<ObjectMeta>, ObjectsError>;

    /// Reads an object, or a range of its bytes, on condition that it has this tag (if one is given).
    ///
    /// A range is clipped at the object's end; one that begins there or beyond it has no bytes, and isn't an error.
    ///
    /// # Errors
    /// [`ObjectsError::NotFound`], [`ObjectsError::Changed`], and as [`Objects::head`].
    async fn get(
        &self,
        object: &ObjectName,
        range: Option<Range<u64>>,
        if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError>;

    /// Writes an object if there is none of that name. When it returns [`Put::Written`] the object is durable.
    ///
    /// # Errors
    /// As [`Objects::head`]. After [`ObjectsError::Unavailable`] it may have been written or not.
    async fn put_if_absent(&self, object: &ObjectName, content: Bytes) -> Result<Put, ObjectsError>;

    /// Writes an object in the place of the one that has this tag. When it returns [`Put::Written`] the object is
    /// durable.
    ///
    /// # Errors
    /// As [`Objects::put_if_absent`].
    async fn put_if_match(&self, object: &ObjectName, tag: &ETag, content: Bytes) -> Result<Put, ObjectsError>;
}

/// Reads a whole small object with its tag; `None` when it isn't there.
///
/// # Errors
/// As [`Objects::get`], without [`ObjectsError::NotFound`].
pub async fn read_whole(objects: &dyn Objects, object: &ObjectName) -> Result<Option<(Vec<u8>, ETag)>, ObjectsError> {
    loop {
        let Some(meta) = objects.head(object).await? else { return Ok(None) };
        let mut reader = match objects.get(object, None, Some(&meta.etag)).await {
            Ok(reader) => reader,
            // It was replaced between the two requests: look again.
            Err(ObjectsError::Changed { .. } | ObjectsError::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(bytes)) => content.extend_from_slice(&bytes),
                Ok(None) => return Ok(Some((content, meta.etag))),
                Err(ObjectsError::Changed { .. }) => break,
                Err(error) => return Err(error),
            }
        }
    }
}
