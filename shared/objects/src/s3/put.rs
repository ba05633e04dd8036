//! Conditional puts, and what became of one whose answer was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_sdk_s3::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef, InterceptorContext,
};
use aws_sdk_s3::config::retry::{ClassifyRetry, RetryAction};
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::{BoxError, ProvideErrorMetadata};
use aws_sdk_s3::operation::put_object::PutObjectError;
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use shardcron_domain::limits::{OBJECT_BYTES_MAX, UPLOAD_RATE_MIN};

use super::failure::{Fault, Meaning, failed, meaning, refused};
use super::{ANSWER_TIMEOUT, S3Objects, bounded, bucket_of};
use crate::{ETag, ObjectName, Objects, ObjectsError, Put};

/// On what condition an object is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition<'a> {
    /// None is there.
    Absent,
    /// The one there has this tag.
    Match(&'a ETag),
}

impl S3Objects {
    pub(super) async fn put(
        &self,
        object: &ObjectName,
        condition: Condition<'_>,
        content: Bytes,
    ) -> Result<Put, ObjectsError> {
        let what = || format!("writing {object}");
        let bucket = bucket_of(object)?;
        let bytes = content.len() as u64;
        check_size(bytes).map_err(|fault| refused(what(), fault))?;
        if bytes > self.cut.single_max {
            return self.put_in_parts(object, condition, content).await;
        }
        let request = self.client.put_object().bucket(bucket).key(&object.key).body(ByteStream::from(content.clone()));
        let request = match condition {
            Condition::Absent => request.if_none_match("*"),
            Condition::Match(tag) => request.if_match(&tag.0),
        };
        let sendings = Sendings::default();
        let config = bounded(attempt_of(bytes)).retry_classifier(RetryConflicts).interceptor(sendings.clone());
        let error = match request.customize().config_override(config).send().await {
            Ok(answer) => {
                let tag = answer.e_tag.ok_or_else(|| refused(what(), Fault::Lacks("ETag")))?;
                return Ok(Put::Written(ETag(tag)));
            }
            Err(error) => error,
        };
        match (meaning(&error), condition) {
            (Meaning::Condition, _) | (Meaning::Absent, Condition::Match(_)) => {}
            _ => return Err(failed(what(), error)),
        }
        if sendings.all_answered() {
            return Ok(Put::Refused);
        }
        // An earlier sending may have been what this one met.
        Ok(self.tag_of(object, &content).await?.map_or(Put::Refused, Put::Written))
    }

    /// The object's tag, if it is this content.
    pub(super) async fn tag_of(&self, object: &ObjectName, content: &[u8]) -> Result<Option<ETag>, ObjectsError> {
        let Some(meta) = self.head(object).await? else { return Ok(None) };
        if meta.size != content.len() as u64 {
            return Ok(None);
        }
        let mut reader = match self.get(object, None, Some(&meta.etag)).await {
            Ok(reader) => reader,
            Err(ObjectsError::Changed { .. } | ObjectsError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut rest = content;
        while let Some(bytes) = reader.next().await? {
            match rest.strip_prefix(&*bytes) {
                Some(after) => rest = after,
                None => return Ok(None),
            }
        }
        Ok(rest.is_empty().then_some(meta.etag))
    }
}

/// Whether an object of this many bytes can be put.
pub(super) fn check_size(bytes: u64) -> Result<(), Fault> {
    if bytes <= OBJECT_BYTES_MAX { Ok(()) } else { Err(Fault::TooLarge(bytes)) }
}

/// How long an attempt to send this many bytes may take until its answer begins.
pub(super) fn attempt_of(bytes: u64) -> Duration {
    ANSWER_TIMEOUT + Duration::from_secs(bytes / UPLOAD_RATE_MIN)
}

/// Counts the sendings of one request, and those that S3 answered definitely. After a timeout or a 5xx the SDK sends
/// again by itself, and the last answer says nothing of what the earlier sendings did.
#[derive(Clone, Debug, Default)]
pub(super) struct Sendings(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU32,
    answered: AtomicU32,
}

impl Sendings {
    /// Whether no sending's fate is open.
    pub(super) fn all_answered(&self) -> bool {
        self.0.sent.load(Ordering::Relaxed) == self.0.answered.load(Ordering::Relaxed)
    }
}

impl Intercept for Sendings {
    fn name(&self) -> &'static str {
        "ShardcronSendings"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let status = context.response().status();
        let is_definite = match context.output_or_error() {
            Ok(_) => true,
            // Not an answer that broke off, nor a failed completion's, which tells its error under the status 200.
            Err(error) => error.is_operation_error() && status.is_client_error() && status.as_u16() != 408,
        };
        self.0.answered.fetch_add(u32::from(is_definite), Ordering::Relaxed);
        Ok(())
    }
}

/// Lets the SDK send again a put that met another write of its object under way, as the API reference asks
/// (`ConditionalRequestConflict`). The client's retry configuration bounds how often.
#[derive(Debug)]
struct RetryConflicts;

impl ClassifyRetry for RetryConflicts {
    fn name(&self) -> &'static str {
        "ShardcronRetryConflicts"
    }

    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let is_conflict = || {
            let error = context.output_or_error()?.err()?.as_operation_error()?.downcast_ref::<PutObjectError>()?;
            let status = context.response()?.status().as_u16();
            Some(Meaning::of(status, error.code()) == Meaning::Conflict)
        };
        if is_conflict() == Some(true) { RetryAction::server_error() } else { RetryAction::NoActionIndicated }
    }
}
