//! Objects in memory, and the same behind a process's gate.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use shardcron_objects::{ETag, ObjectMeta, ObjectName, ObjectReader, Objects, ObjectsError, Put, Root};

use crate::gate::{Denied, Gate, Place, Request};

/// Objects in memory. Passes the conformance suite of the port.
#[derive(Debug, Default)]
pub struct MemoryObjects(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<ObjectName, (Bytes, ETag)>,
    written: u64,
}

impl State {
    fn write(&mut self, object: &ObjectName, content: Bytes) -> Put {
        self.written += 1;
        let tag = ETag(format!("\"{}\"", self.written));
        self.objects.insert(object.clone(), (content, tag.clone()));
        Put::Written(tag)
    }
}

impl MemoryObjects {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All objects at one moment.
    #[must_use]
    pub fn snapshot(&self) -> Vec<(ObjectName, Bytes)> {
        self.state().objects.iter().map(|(name, (content, _))| (name.clone(), content.clone())).collect()
    }

    /// The objects whose keys `is_it` takes.
    #[must_use]
    pub fn find(&self, is_it: impl Fn(&str) -> bool) -> Vec<(ObjectName, Bytes)> {
        let state = self.state();
        let found = state.objects.iter().filter(|(name, _)| is_it(&name.key));
        found.map(|(name, (content, _))| (name.clone(), content.clone())).collect()
    }

    /// How often anything was changed so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state().written
    }

    /// Writes an object whatever is there, as somebody outside of shardcron would.
    pub fn overwrite(&self, object: &ObjectName, content: impl Into<Bytes>) {
        self.state().write(object, content.into());
    }

    /// Takes an object away, as somebody outside of shardcron would.
    pub fn remove(&self, object: &ObjectName) {
        let mut state = self.state();
        state.written += 1;
        state.objects.remove(object);
    }
}

struct Whole(Option<Bytes>);

#[async_trait]
impl ObjectReader for Whole {
    async fn next(&mut self) -> Result<Option<Bytes>, ObjectsError> {
        Ok(self.0.take().filter(|bytes| !bytes.is_empty()))
    }
}

#[async_trait]
impl Objects for MemoryObjects {
    async fn list(
        &self,
        root: &Root,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, ObjectsError> {
        let state = self.state();
        let named = |key: &str| ObjectName { root: root.clone(), key: key.to_owned() };
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(named(after)),
            _ => Bound::Included(named(prefix)),
        };
        let rest = state.objects.range((from, Bound::Unbounded));
        let below = rest.take_while(|(name, _)| name.root == *root && name.key.starts_with(prefix));
        let meta = |(name, (content, etag)): (&ObjectName, &(Bytes, ETag))| ObjectMeta {
            key: name.key.clone(),
            size: content.len() as u64,
            etag: etag.clone(),
        };
        Ok(below.take(limit).map(meta).collect())
    }

    async fn head(&self, object: &ObjectName) -> Result<Option<ObjectMeta>, ObjectsError> {
        Ok(self.state().objects.get(object).map(|(content, etag)| ObjectMeta {
            key: object.key.clone(),
            size: content.len() as u64,
            etag: etag.clone(),
        }))
    }

    async fn get(
        &self,
        object: &ObjectName,
        range: Option<Range<u64>>,
        if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError> {
        let state = self.state();
        let Some((content, etag)) = state.objects.get(object) else {
            return Err(ObjectsError::NotFound { object: object.clone() });
        };
        if if_match.is_some_and(|wanted| wanted != etag) {
            return Err(ObjectsError::Changed { object: object.clone() });
        }
        let size = content.len() as u64;
        let range = range.map_or(0..size, |range| range.start.min(size)..range.end.min(size));
        Ok(Box::new(Whole(Some(content.slice(range.start as usize..range.end as usize)))))
    }

    async fn put_if_absent(&self, object: &ObjectName, content: Bytes) -> Result<Put, ObjectsError> {
        let mut state = self.state();
        Ok(if state.objects.contains_key(object) { Put::Refused } else { state.write(object, content) })
    }

    async fn put_if_match(&self, object: &ObjectName, tag: &ETag, content: Bytes) -> Result<Put, ObjectsError> {
        let mut state = self.state();
        let is_it = state.objects.get(object).is_some_and(|(_, etag)| etag == tag);
        Ok(if is_it { state.write(object, content) } else { Put::Refused })
    }
}

/// The world's objects as one process reaches them.
#[derive(Debug)]
pub struct GatedObjects {
    /// The objects.
    pub objects: Arc<MemoryObjects>,
    /// The process's gate.
    pub gate: Arc<Gate>,
}

/// The content of an object as it comes in: a process can end, stand still or lose the connection within it.
struct GatedReader {
    content: Box<dyn ObjectReader>,
    gate: Arc<Gate>,
}

#[async_trait]
impl ObjectReader for GatedReader {
    async fn next(&mut self) -> Result<Option<Bytes>, ObjectsError> {
        self.gate.pass_by(Place::Content).await.map_err(unavailable("a read"))?;
        self.content.next().await
    }
}

fn unavailable(what: &str) -> impl Fn(Denied) -> ObjectsError {
    move |denied| ObjectsError::Unavailable { what: what.to_owned(), source: Box::new(denied) }
}

impl GatedObjects {
    async fn put(
        &self,
        request: Request,
        put: impl Future<Output = Result<Put, ObjectsError>>,
    ) -> Result<Put, ObjectsError> {
        self.gate.enter(&request).await.map_err(unavailable("a put"))?;
        let answer = put.await;
        self.gate.leave(&request).await.map_err(unavailable("a put"))?;
        answer
    }
}

#[async_trait]
impl Objects for GatedObjects {
    async fn list(
        &self,
        root: &Root,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, ObjectsError> {
        self.gate.enter(&self.gate.read("list")).await.map_err(unavailable("a listing"))?;
        self.objects.list(root, prefix, after, limit).await
    }

    async fn head(&self, object: &ObjectName) -> Result<Option<ObjectMeta>, ObjectsError> {
        self.gate.enter(&self.gate.read("head")).await.map_err(unavailable("a look"))?;
        self.objects.head(object).await
    }

    async fn get(
        &self,
        object: &ObjectName,
        range: Option<Range<u64>>,
        if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError> {
        self.gate.enter(&self.gate.read("get")).await.map_err(unavailable("a read"))?;
        let content = self.objects.get(object, range, if_match).await?;
        Ok(Box::new(GatedReader { content, gate: Arc::clone(&self.gate) }))
    }

    async fn put_if_absent(&self, object: &ObjectName, content: Bytes) -> Result<Put, ObjectsError> {
        let request = self.gate.write(format!("put {object}"), None);
        self.put(request, self.objects.put_if_absent(object, content)).await
    }

    async fn put_if_match(&self, object: &ObjectName, tag: &ETag, content: Bytes) -> Result<Put, ObjectsError> {
        let request = self.gate.write(format!("replace {object}"), None);
        self.put(request, self.objects.put_if_match(object, tag, content)).await
    }
}
