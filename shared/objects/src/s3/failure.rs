//! The SDK's errors, sorted by what the caller can do.

use std::error::Error;
use std::fmt;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

use crate::ObjectsError;

/// What an answer, or that there was none, means. The codes are those of the API reference's list of error responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// There is no such object.
    Absent,
    /// The request's condition doesn't hold.
    Condition,
    /// The range begins at the object's end or beyond it.
    Beyond,
    /// Another write of the object is under way: nothing was written.
    Conflict,
    /// The upload in parts has been completed or aborted.
    UploadGone,
    /// S3 failed, asks for patience, or nothing was heard from it.
    Unavailable,
    /// The same request would be refused again.
    Refused,
}

impl Meaning {
    /// Sorts an answer. Those to a `HEAD` have no body, and so no code.
    pub(super) fn of(status: u16, code: Option<&str>) -> Self {
        match (status, code) {
            (404, None | Some("NoSuchKey" | "NotFound")) => Self::Absent,
            (404, Some("NoSuchUpload")) => Self::UploadGone,
            (412, _) => Self::Condition,
            (416, _) => Self::Beyond,
            (_, Some("ConditionalRequestConflict" | "OperationAborted")) => Self::Conflict,
            // What answers hasn't got what was asked for, and won't have it later.
            (501, _) => Self::Refused,
            (408 | 429 | 500.., _) => Self::Unavailable,
            (
                _,
                Some(
                    "InternalError"
                    | "RequestLimitExceeded"
                    | "RequestTimeout"
                    | "ServiceUnavailable"
                    | "SlowDown"
                    | "Throttling"
                    | "ThrottlingException",
                ),
            ) => Self::Unavailable,
            _ => Self::Refused,
        }
    }
}

/// What became of a request that failed.
pub(super) fn meaning<E>(error: &SdkError<E, HttpResponse>) -> Meaning
where
    SdkError<E, HttpResponse>: ProvideErrorMetadata,
{
    match error {
        SdkError::ServiceError(context) => Meaning::of(context.raw().status().as_u16(), error.code()),
        SdkError::ConstructionFailure(_) => Meaning::Refused,
        // No answer, or none that can be read.
        _ => Meaning::Unavailable,
    }
}

/// The error of a request whose failure means nothing in particular to its operation.
pub(super) fn failed<E>(what: String, error: SdkError<E, HttpResponse>) -> ObjectsError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let is_transient = matches!(meaning(&error), Meaning::Unavailable | Meaning::Conflict | Meaning::UploadGone);
    let source = Box::new(Cause::of(error));
    if is_transient { ObjectsError::Unavailable { what, source } } else { ObjectsError::Refused { what, source } }
}

/// A refusal of ours.
pub(super) fn refused(what: String, fault: Fault) -> ObjectsError {
    ObjectsError::Refused { what, source: Box::new(fault) }
}

/// What is wrong with an answer that is none of S3's errors, or with a request that isn't sent at all.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("the answer has no (valid) {0}; what answers isn't quite S3")]
    Lacks(&'static str),
    #[error("the listing has `{0}` out of the order of keys; directory buckets list so, and can't be used")]
    Order(String),
    #[error("asked for the bytes {asked}, and got {got}; what answers isn't quite S3")]
    Range { asked: String, got: String },
    #[error("the body broke off {0} bytes before its end")]
    BrokeOff(u64),
    #[error("the body has {0} bytes more than announced")]
    TooLong(u64),
    #[error("it has {0} bytes; an upload takes at most {max}", max = shardcron_domain::limits::OBJECT_BYTES_MAX)]
    TooLarge(u64),
}

/// Why a request failed: the service's own words or the chain of causes, and what to look at.
#[derive(Debug)]
struct Cause {
    text: String,
    source: Box<dyn Error + Send + Sync>,
}

impl Cause {
    fn of<E>(error: SdkError<E, HttpResponse>) -> Self
    where
        E: Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        let status = match &error {
            SdkError::ServiceError(context) => Some(context.raw().status().as_u16()),
            _ => None,
        };
        // The SDK's own text for most of these is "service error": what happened stands in the chain.
        let mut text = match (error.code(), error.message(), status) {
            (Some(code), Some(message), _) => format!("{code}: {message}"),
            (Some(code), None, _) => code.to_owned(),
            (None, _, Some(status)) => format!("HTTP status {status}"),
            (None, _, None) => chain(&error),
        };
        if let Some(hint) = hint(status, error.code()) {
            text.push_str(&format!(" ({hint})"));
        }
        Self { text, source: Box::new(error) }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.source.as_ref())
    }
}

/// An error and its causes, in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

fn hint(status: Option<u16>, code: Option<&str>) -> Option<&'static str> {
    match (status?, code) {
        (_, Some("NoSuchBucket")) => Some("create the bucket, or mend its name"),
        (_, Some("InvalidObjectState")) => Some("the object is archived; restore it first"),
        (_, Some("RequestTimeTooSkewed")) => Some("the machine's clock is wrong by more than 15 minutes"),
        (
            _,
            Some("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" | "InvalidToken" | "InvalidSecurity"),
        ) => Some("the credentials aren't accepted"),
        (_, Some("AuthorizationHeaderMalformed" | "IllegalLocationConstraintException")) | (301 | 307, _) => {
            Some("the bucket is in another region than the client's")
        }
        (403, _) => Some(
            "the credentials or the bucket's policy don't allow it; without s3:ListBucket this is also said of an \
             object that isn't there",
        ),
        (501, _) => Some("what answers can't do conditional requests, which shardcron can't do without"),
        _ => None,
    }
}
