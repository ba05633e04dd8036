//! Objects in S3, or in whatever speaks its protocol.
//!
//! **Roots** are general-purpose buckets; a path is refused. A bucket that isn't there is refused too, and not empty: no
//! put would make it, so a listing of nothing would only hide a misspelt name. Directory buckets list in no order, and
//! a listing that isn't in the order of its keys is refused.
//!
//! **Tags** are S3's ETags, quotes and all. **Reads** are one `GetObject` each, of one content throughout, whose bytes
//! are counted against what the answer announced: a body that breaks off is an error and never a silent end.
//!
//! **Puts** are one `PutObject` each, or, beyond [`SINGLE_PUT_BYTES_MAX`](shardcron_domain::limits::SINGLE_PUT_BYTES_MAX), an upload in parts and its completion. Either
//! has `If-None-Match: *` or `If-Match`, which S3 decides atomically. The SDK sends a request again whose answer was
//! lost, and the second sending may meet what the first has written; so a put that is refused after a lost answer reads
//! the object back. The caller can rely on this:
//! - [`Put::Written`]: the object was, byte for byte, the given content, durably, and had the tag that is returned. After
//!   a lost answer it may be another writer's who put the same bytes: nobody can tell, and no reader either.
//! - [`Put::Refused`]: the condition didn't hold. After a lost answer the content may have been there for a moment, and
//!   been replaced or deleted since; so read what is there, as after any refusal.
//!
//! **Retries** of whole requests are the client's, by its retry configuration, with one addition: a put that meets
//! another one under way (409) is sent again, an upload in parts as a whole. Its time is bounded here: an attempt's answer must begin within
//! [`OBJECTS_ANSWER_TIMEOUT`], for a put longer by its upload. A body that stalls is ended by the SDK's stalled stream protection.

mod failure;
mod parts;
mod put;
mod read;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use bytes::Bytes;
use shardcron_domain::limits::{LIST_PAGE_MAX, OBJECT_KEY_BYTES_MAX, OBJECTS_ANSWER_TIMEOUT};

use self::failure::{Fault, Meaning, failed, meaning, refused};
use self::parts::Cut;
use self::put::Condition;
use crate::{ETag, ObjectMeta, ObjectName, ObjectReader, Objects, ObjectsError, Put, Root};

/// As the SDK takes it.
const ANSWER_TIMEOUT: Duration = OBJECTS_ANSWER_TIMEOUT.to_std();

/// [`Objects`] in S3. See the module's documentation for what it promises.
#[derive(Clone, Debug)]
pub struct S3Objects {
    client: Client,
    cut: Cut,
}

impl S3Objects {
    /// The buckets that this client reaches. Its region must be theirs. Against an endpoint whose buckets have no host
    /// names of their own it needs `force_path_style`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, cut: Cut::default() }
    }

    /// Size and tag of an object, on condition that it has this tag (if one is given).
    async fn look(&self, object: &ObjectName, if_match: Option<&ETag>) -> Result<Option<ObjectMeta>, ObjectsError> {
        let what = || format!("looking at {object}");
        let request = self
            .client
            .head_object()
            .bucket(bucket_of(object)?)
            .key(&object.key)
            .set_if_match(if_match.map(|tag| tag.0.clone()));
        match request.customize().config_override(bounded(ANSWER_TIMEOUT)).send().await {
            Ok(answer) => meta(what, Some(object.key.clone()), answer.content_length, answer.e_tag).map(Some),
            Err(error) => match meaning(&error) {
                Meaning::Absent => Ok(None),
                Meaning::Condition => Err(ObjectsError::Changed { object: object.clone() }),
                _ => Err(failed(what(), error)),
            },
        }
    }
}

#[async_trait]
impl Objects for S3Objects {
    async fn list(
        &self,
        root: &Root,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, ObjectsError> {
        let place = || root.join(prefix);
        let what = || format!("listing {}", place());
        let bucket = bucket(root, place)?;
        if prefix.len() > OBJECT_KEY_BYTES_MAX {
            return Err(name_error(place(), format!("a key has at most {OBJECT_KEY_BYTES_MAX} bytes")));
        }
        let after = after.filter(|after| !after.is_empty());
        let mut found: Vec<ObjectMeta> = Vec::new();
        let mut token: Option<String> = None;
        while found.len() < limit {
            let size = (limit - found.len()).min(LIST_PAGE_MAX);
            let request = self
                .client
                .list_objects_v2()
                .bucket(bucket)
                .set_prefix(Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty()))
                .set_start_after(after.filter(|_| token.is_none()).map(str::to_owned))
                .set_continuation_token(token.take())
                // At most a thousand, so that it fits.
                .max_keys(i32::try_from(size).unwrap_or(1));
            let answer = request.customize().config_override(bounded(ANSWER_TIMEOUT)).send().await;
            let answer = answer.map_err(|error| failed(what(), error))?;
            for listed in answer.contents.unwrap_or_default() {
                let object = meta(what, listed.key, listed.size, listed.e_tag)?;
                let last = found.last().map(|last| last.key.as_str()).or(after);
                if last.is_some_and(|last| last >= object.key.as_str()) || !object.key.starts_with(prefix) {
                    return Err(refused(what(), Fault::Order(object.key)));
                }
                found.push(object);
            }
            if answer.is_truncated != Some(true) {
                break;
            }
            token = answer.next_continuation_token;
            if token.is_none() {
                return Err(refused(what(), Fault::Lacks("NextContinuationToken")));
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn head(&self, object: &ObjectName) -> Result<Option<ObjectMeta>, ObjectsError> {
        self.look(object, None).await
    }

    async fn get(
        &self,
        object: &ObjectName,
        range: Option<Range<u64>>,
        if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError> {
        self.read(object, range, if_match).await
    }

    async fn put_if_absent(&self, object: &ObjectName, content: Bytes) -> Result<Put, ObjectsError> {
        self.put(object, Condition::Absent, content).await
    }

    async fn put_if_match(&self, object: &ObjectName, tag: &ETag, content: Bytes) -> Result<Put, ObjectsError> {
        self.put(object, Condition::Match(tag), content).await
    }
}

/// What a request overrides of its client's configuration: how long one attempt may take until its answer begins.
fn bounded(attempt: Duration) -> Builder {
    Builder::new().timeout_config(TimeoutConfig::builder().operation_attempt_timeout(attempt).build())
}

fn name_error(object: String, why: String) -> ObjectsError {
    ObjectsError::Name { object, why }
}

/// The bucket that a root is; `place` says what for.
fn bucket(root: &Root, place: impl FnOnce() -> String) -> Result<&str, ObjectsError> {
    match root {
        Root::Bucket(bucket) => Ok(bucket),
        Root::Directory(_) => {
            let why = "it is a path, and this installation has buckets; write `s3://bucket/prefix/`, or use `--local`";
            Err(name_error(place(), why.to_owned()))
        }
    }
}

/// The bucket of an object, if its name is one.
fn bucket_of(object: &ObjectName) -> Result<&str, ObjectsError> {
    if !(1..=OBJECT_KEY_BYTES_MAX).contains(&object.key.len()) {
        return Err(name_error(object.to_string(), format!("a key has 1 to {OBJECT_KEY_BYTES_MAX} bytes")));
    }
    bucket(&object.root, || object.to_string())
}

/// An object as an answer describes it.
fn meta(
    what: impl Fn() -> String,
    key: Option<String>,
    size: Option<i64>,
    etag: Option<String>,
) -> Result<ObjectMeta, ObjectsError> {
    let lacks = |field| refused(what(), Fault::Lacks(field));
    Ok(ObjectMeta {
        key: key.ok_or_else(|| lacks("Key"))?,
        size: size.and_then(|size| u64::try_from(size).ok()).ok_or_else(|| lacks("Size"))?,
        etag: ETag(etag.ok_or_else(|| lacks("ETag"))?),
    })
}
