//! DynamoDB on a SQLite file.
//!
//! # What is safe
//!
//! Every acknowledged write survives the end of the process, kill -9 included: it is in the operating system's cache
//! of the write-ahead log by then, whole and in order. The log isn't synced to the disk at each write
//! (`synchronous=NORMAL`), so a power loss or a crash of the system may take the last writes with it: those since the
//! last checkpoint at worst, always a suffix, never a part of a transaction, and the file stays sound. shardcron then
//! does the work again from the state before.
//!
//! # Several processes
//!
//! Several processes, and several [`EmbeddedTable`]s of one process, may have the same file open; SQLite's locks
//! order their writes. While one of them holds the write lock (a process suspended in the middle of a write does so
//! until it is resumed), the others' requests wait for 5 seconds, one after another and reads behind writes, and are
//! then answered with DynamoDB's `InternalServerError` (HTTP 500). Nothing of such a write is applied, and the AWS SDK
//! tries it again by itself.
//!
//! Two things are per process: the cache of table definitions (so don't delete or alter a table that another process
//! uses) and the tokens of idempotent transactions (one sent again to another process is executed again; conditions
//! decide then). The file must be on a local disk: SQLite's shared memory doesn't work over a network.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use dynoxide::Database;
use dynoxide::server::serve_with_shutdown;

use crate::error::EmbeddedError;
use crate::server::Server;

/// A running DynamoDB. Its drop ends it and closes the file.
#[derive(Debug)]
pub struct EmbeddedTable {
    endpoint: String,
    _server: Server,
}

impl EmbeddedTable {
    /// Serves the tables of this file, which is created where it is missing, its directory too.
    ///
    /// Waits while another process opens the same file: a lock on an empty file beside it, `<file>.lock`, sees to that.
    /// That file may be deleted when nobody has the table open.
    ///
    /// # Errors
    /// [`EmbeddedError`], by what there is to do.
    pub fn open(file: &Path) -> Result<Self, EmbeddedError> {
        // Absolute, so that SQLite can't take a name such as `:memory:` or `file:x?mode=ro` for anything but a file.
        let file = std::path::absolute(file).map_err(|source| EmbeddedError::File {
            what: "find",
            file: file.to_owned(),
            source,
        })?;
        let path = file.to_str().ok_or_else(|| EmbeddedError::Path(file.clone()))?;
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory).map_err(|source| EmbeddedError::File {
                what: "create the directory",
                file: directory.to_owned(),
                source,
            })?;
        }
        // The file itself is never opened here: closing it again would release the locks that SQLite holds on it for
        // other tables of this process (POSIX locks belong to the process).
        let lock = lock(&file)?;
        let database = Database::new(path).and_then(|database| {
            // SQLite's default syncs at each commit. This is the one setting between that and no syncing at all that
            // dynoxide offers; the rest of it are SQLite's defaults.
            database.disable_bulk_loading()?;
            Ok(database)
        });
        let database = database.map_err(|source| EmbeddedError::opening(&file, source))?;
        drop(lock);
        Self::serve(database)
    }

    /// Serves tables that are gone with the drop, for tests.
    ///
    /// # Errors
    /// [`EmbeddedError`]: no memory, port or thread.
    pub fn in_memory() -> Result<Self, EmbeddedError> {
        let database = Database::memory().map_err(|source| EmbeddedError::opening(Path::new(":memory:"), source))?;
        Self::serve(database)
    }

    /// Where it listens: `http://127.0.0.1:PORT`, the SDK's `endpoint_url`.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn serve(database: Database) -> Result<Self, EmbeddedError> {
        let server = Server::start("embedded-table", move |_, listener, _| {
            Ok(async move {
                if let Err(error) = serve_with_shutdown(listener, database, std::future::pending()).await {
                    tracing::error!(error, "the embedded table has stopped");
                }
            })
        })?;
        Ok(Self { endpoint: server.endpoint(), _server: server })
    }
}

/// Takes the lock beside the file, under which it is opened and created: those who do so at the same time would be
/// answered `DatabaseBusy` at times, as SQLite doesn't wait for the lock under which its write-ahead log is turned on.
fn lock(file: &Path) -> Result<File, EmbeddedError> {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let failed = |what| {
        let file = name.clone();
        move |source| EmbeddedError::File { what, file, source }
    };
    let lock = File::options().create(true).append(true).open(&name).map_err(failed("create"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            tracing::info!(lock = %name.display(), "waiting for another process that opens the table");
            lock.lock().map_err(failed("lock"))?;
        }
        Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
    }
    Ok(lock)
}
