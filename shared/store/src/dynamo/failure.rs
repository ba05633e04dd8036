//! The SDK's errors, sorted by what the caller can do.

use std::error::Error;
use std::fmt;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use super::transmissions::Transmissions;
use crate::StoreError;

/// Why a request failed: the service's own words or the chain of causes, and what to look at.
#[derive(Debug)]
struct Cause {
    text: String,
    source: Box<dyn Error + Send + Sync>,
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

/// What the service's word on a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Conflict,
    Throttled,
    Refused,
    /// The service failed, or nothing was heard from it.
    NoAnswer,
}

fn meaning<E>(error: &SdkError<E, HttpResponse>) -> Meaning
where
    SdkError<E, HttpResponse>: ProvideErrorMetadata,
{
    if matches!(error, SdkError::ConstructionFailure(_)) {
        return Meaning::Refused;
    }
    let SdkError::ServiceError(service) = error else { return Meaning::NoAnswer };
    match error.code() {
        Some(
            "TransactionConflictException" | "TransactionInProgressException" | "ReplicatedWriteConflictException",
        ) => Meaning::Conflict,
        Some(
            "ProvisionedThroughputExceededException" | "RequestLimitExceeded" | "ThrottlingException" | "Throttling",
        ) => Meaning::Throttled,
        // InternalServerError: AWS says that the request may have been executed. 408: it wasn't read in time.
        _ if service.raw().status().is_server_error() || service.raw().status().as_u16() == 408 => Meaning::NoAnswer,
        _ => Meaning::Refused,
    }
}

/// A read that failed.
pub(super) fn of_read<E>(what: impl Into<String>, table: &str, error: SdkError<E, HttpResponse>) -> StoreError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let (what, meaning) = (what.into(), meaning(&error));
    let source = Box::new(cause(table, error));
    match meaning {
        Meaning::Throttled => StoreError::Throttled { what },
        Meaning::Refused => StoreError::Refused { what, source },
        Meaning::Conflict | Meaning::NoAnswer => StoreError::Unavailable { what, source },
    }
}

/// A write that failed. Whatever the last transmission came to, the write's fate is unknown when an earlier one of the
/// SDK's attempts got no answer.
pub(super) fn of_write<E>(
    what: impl Into<String>,
    table: &str,
    error: SdkError<E, HttpResponse>,
    sent: &Transmissions,
) -> StoreError
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let what = what.into();
    let meaning = if sent.all_answered() { meaning(&error) } else { Meaning::NoAnswer };
    let source = Box::new(cause(table, error));
    match meaning {
        Meaning::Conflict => StoreError::Conflict { what },
        Meaning::Throttled => StoreError::Throttled { what },
        Meaning::Refused => StoreError::Refused { what, source },
        Meaning::NoAnswer => StoreError::Unknown { what, source },
    }
}

fn cause<E>(table: &str, error: SdkError<E, HttpResponse>) -> Cause
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    // The SDK's own text for most of these is "service error": what happened stands in the chain.
    let mut text = match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => chain(&error),
    };
    if let Some(hint) = hint(error.code()) {
        text.push_str(&format!(" (table `{table}`: {hint})"));
    }
    Cause { text, source: Box::new(error) }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

fn hint(code: Option<&str>) -> Option<&'static str> {
    match code? {
        "ResourceNotFoundException" => Some("it isn't there in this account and region, or not active yet"),
        "AccessDeniedException" => Some("the credentials don't allow this on it or on its indexes"),
        "ValidationException" => Some("its keys or indexes may be another version's"),
        "IdempotentParameterMismatchException" => Some("the same request token came with other items before"),
        "UnrecognizedClientException"
        | "InvalidSignatureException"
        | "ExpiredTokenException"
        | "MissingAuthenticationTokenException"
        | "IncompleteSignature" => Some("the credentials aren't accepted"),
        _ => None,
    }
}
