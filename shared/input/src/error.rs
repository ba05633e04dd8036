//! What goes wrong with an input, by what the caller can do.

use std::fmt;

use shardcron_domain::boundary::Position;
use shardcron_domain::limits;
use shardcron_domain::record::NoColumn;
use shardcron_objects::ObjectsError;

use crate::gunzip::CompressedFault;

/// Why records can't be listed or read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input itself: only other input mends it, so that another try is in vain.
    #[error(transparent)]
    Input(Box<InputFault>),
    /// A position that isn't one of the shard that it is used on, or a shard whose range isn't of its objects: not the
    /// input, but what was stored about it. Another try is in vain.
    #[error("shard {shard} can't be read from {from}: {why}")]
    Plan {
        /// The shard.
        shard: String,
        /// From where it was to be read.
        from: Position,
        /// What doesn't fit.
        why: &'static str,
    },
    /// The store doesn't answer. Worth another try.
    #[error(transparent)]
    Unavailable(ObjectsError),
}

impl InputError {
    /// Whether another try, on the same input, can end differently.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    pub(crate) fn input(object: impl fmt::Display, at: Option<Spot>, fault: Fault) -> Self {
        Self::Input(Box::new(InputFault { object: object.to_string(), at, fault }))
    }
}

impl From<ObjectsError> for InputError {
    fn from(error: ObjectsError) -> Self {
        match error {
            ObjectsError::NotFound { object } => Self::input(object, None, Fault::Missing),
            ObjectsError::Changed { object } => Self::input(object, None, Fault::Changed),
            ObjectsError::Name { object, why } => Self::input(object, None, Fault::Name(why)),
            ObjectsError::Refused { what, source } => Self::input(what, None, Fault::Refused(source)),
            ObjectsError::Unavailable { .. } => Self::Unavailable(error),
        }
    }
}

/// What is wrong with an input, and where.
#[derive(Debug)]
pub struct InputFault {
    /// The object or location, as a person knows it; for [`Fault::Refused`], what was tried on which one.
    pub object: String,
    /// Where in the object, if it is about a place.
    pub at: Option<Spot>,
    /// What.
    pub fault: Fault,
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.object)?;
        if let Some(Spot { line, offset }) = self.at {
            match line {
                0 => write!(f, ", byte {offset}")?,
                line => write!(f, ", line {line}, byte {offset}")?,
            }
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for InputFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // This type's text has the fault's, so that what follows is the fault's own source.
        self.fault.source()
    }
}

/// A place in an object's content, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The line, from 1; a header is line 1. 0 where it isn't known.
    pub line: u64,
    /// Bytes before it.
    pub offset: u64,
}

/// What can be wrong with an input.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It isn't there, or has gone since the boundary was fixed.
    #[error("it isn't there any more")]
    Missing,
    /// It isn't what it was when the boundary was fixed.
    #[error("it has changed since the boundary was fixed; `shardcron rerun` takes it as it is now")]
    Changed,
    /// Its name can't be used.
    #[error("its name can't be used: {0}")]
    Name(String),
    /// The store refuses it for good.
    #[error("{0}")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A location holds more objects than a boundary can.
    #[error(
        "it holds more than {} objects, the most that one run can have; name a narrower place",
        limits::BOUNDARY_OBJECTS_MAX
    )]
    TooManyObjects,
    /// It can't be decompressed.
    #[error("it can't be decompressed: {why} (after {compressed_offset} bytes of the compressed object)")]
    Compressed {
        /// Bytes of the object, as it is stored, up to and with the one that shows the fault.
        compressed_offset: u64,
        /// What is wrong.
        why: CompressedFault,
    },
    /// Its header can't be used.
    #[error("its header can't be used: {0}")]
    Header(HeaderFault),
    /// Its header lacks a column that the job names.
    #[error(transparent)]
    NoColumn(NoColumn),
    /// A record is longer than any may be.
    #[error("the record that begins here has more than {} bytes", limits::RECORD_BYTES_MAX)]
    RecordTooLong,
    /// A quoted field doesn't end. Not a malformed record, since all records after it may be in it.
    #[error("the record that begins here has a quote that isn't closed up to the end of the object")]
    UnclosedQuote,
    /// It ends before the place from where it was to be read on.
    #[error("it ends before this place")]
    TooShort,
}

/// What can be wrong with a CSV header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// Two columns have one name, so that it names neither.
    #[error("it has the column `{0}` twice")]
    Duplicate(String),
    /// It isn't UTF-8.
    #[error("it isn't UTF-8 text")]
    NotUtf8,
    /// It has a NUL byte: it is UTF-16, or no text at all.
    #[error("it has a NUL byte, so that it isn't text in UTF-8")]
    Nul,
    /// Text follows a closing quote in it.
    #[error("it has text after a closing quote; within quotes, a quote is written twice")]
    Misquoted,
    /// It has a quote that isn't closed.
    #[error("it has a quote that isn't closed")]
    UnclosedQuote,
    /// It is too long, as when the object isn't CSV at all.
    #[error("it has more than {} bytes", limits::HEADER_BYTES_MAX)]
    TooLong,
}
