//! Buckets in one store, directories in another: for a machine that has both.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{ETag, ObjectMeta, ObjectName, ObjectReader, Objects, ObjectsError, Put, Root};

/// Sends each request to the store that its root is of.
pub struct ByRoot {
    buckets: Arc<dyn Objects>,
    directories: Arc<dyn Objects>,
}

impl ByRoot {
    /// Buckets are in one store, and directories in the other.
    #[must_use]
    pub fn new(buckets: Arc<dyn Objects>, directories: Arc<dyn Objects>) -> Self {
        Self { buckets, directories }
    }

    fn of(&self, root: &Root) -> &dyn Objects {
        match root {
            Root::Bucket(_) => &*self.buckets,
            Root::Directory(_) => &*self.directories,
        }
    }
}

#[async_trait]
impl Objects for ByRoot {
    async fn list(
        &self,
        root: &Root,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, ObjectsError> {
        self.of(root).list(root, prefix, after, limit).await
    }

    async fn head(&self, object: &ObjectName) -> Result<Option<ObjectMeta>, ObjectsError> {
        self.of(&object.root).head(object).await
    }

    async fn get(
        &self,
        object: &ObjectName,
        range: Option<Range<u64>>,
        if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError> {
        self.of(&object.root).get(object, range, if_match).await
    }

    async fn put_if_absent(&self, object: &ObjectName, content: Bytes) -> Result<Put, ObjectsError> {
        self.of(&object.root).put_if_absent(object, content).await
    }

    async fn put_if_match(&self, object: &ObjectName, tag: &ETag, content: Bytes) -> Result<Put, ObjectsError> {
        self.of(&object.root).put_if_match(object, tag, content).await
    }
}
