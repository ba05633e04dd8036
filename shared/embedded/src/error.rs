//! What can go wrong when a stand-in is started, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use dynoxide::DynoxideError;
use rusqlite::ErrorCode;
use rustack_sqs_model::error::SqsError;

/// Why a stand-in can't be started. Each message names the file or the queue, and what to do.
///
/// Once started they answer as the services do: with errors of the service's protocol.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// The operating system refuses the table's file, its directory, or the lock beside it.
    #[error("can't {what} {}: {source}; make sure that the directory is there and that you may write in it", file.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// Of which file or directory.
        file: PathBuf,
        /// The system's word on it.
        source: io::Error,
    },
    /// SQLite can't create the table's file or may not write to it.
    #[error("can't open the table {}: {source}; make sure that it is a file that you may read and write, in a directory that you may write in", file.display())]
    Permission {
        /// The table's file.
        file: PathBuf,
        /// The cause.
        source: Box<DynoxideError>,
    },
    /// The disk is full, or a quota is reached.
    #[error("no space left for the table {}: {source}; free some and start again, nothing that was acknowledged is lost", file.display())]
    NoSpace {
        /// The table's file.
        file: PathBuf,
        /// The cause.
        source: Box<DynoxideError>,
    },
    /// The file is something else, is damaged, or was written by a newer version.
    #[error("{} isn't a table that this version can read: {source}; move it away or name another file", file.display())]
    NotATable {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: Box<DynoxideError>,
    },
    /// Another process holds the file's write lock for too long; it may be suspended.
    #[error("another process keeps the table {} locked: {source}; resume or end it (`fuser {}` says who it is) and try again", file.display(), file.display())]
    Busy {
        /// The table's file.
        file: PathBuf,
        /// The cause.
        source: Box<DynoxideError>,
    },
    /// Any other failure to open the table.
    #[error("can't open the table {}: {source}", file.display())]
    Table {
        /// The table's file; `:memory:` for one in memory.
        file: PathBuf,
        /// The cause.
        source: Box<DynoxideError>,
    },
    /// SQLite takes paths in UTF-8 only.
    #[error("the path {} isn't UTF-8; name a file that is", .0.display())]
    Path(PathBuf),
    /// No port, thread or runtime to serve on.
    #[error("can't serve {what} on 127.0.0.1: {source}; look at the limits on open files and threads (`ulimit -a`)")]
    Serve {
        /// What was to be served.
        what: &'static str,
        /// The system's word on it.
        source: io::Error,
    },
    /// The queue can't be created as defined.
    #[error(
        "can't create the queue `{name}`: {source}; names have 1 to 80 of A-Z, a-z, 0-9, - and _, the visibility is at most 43200 s"
    )]
    Queue {
        /// The queue's name.
        name: String,
        /// The cause.
        source: Box<SqsError>,
    },
}

impl EmbeddedError {
    /// Sorts what dynoxide says on opening by what the caller can do.
    pub(crate) fn opening(file: &Path, source: DynoxideError) -> Self {
        let (file, code) = (file.to_owned(), code(&source));
        // The two refusals that dynoxide words itself: not SQLite's format, and a schema newer than its own.
        let worded = matches!(source, DynoxideError::InternalServerError(_));
        let source = Box::new(source);
        match code {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::NotATable { file, source },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Self::Permission { file, source }
            }
            Some(ErrorCode::DiskFull) => Self::NoSpace { file, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { file, source },
            None if worded => Self::NotATable { file, source },
            _ => Self::Table { file, source },
        }
    }
}

fn code(error: &DynoxideError) -> Option<ErrorCode> {
    match error {
        DynoxideError::SqliteError(error) => error.sqlite_error_code(),
        _ => None,
    }
}
