//! Objects in directories of the machine.
//!
//! A bucket `b` is the directory `<objects_dir>/b`; a root that is a directory is that directory. A key is the path of a
//! regular file below its root. Unix only: what it relies on are `rename(2)`, `flock(2)` and inode numbers.
//!
//! **Tags.** A file's tag is made of its size, the nanoseconds of its last write and last change of status, and its inode.
//! A file replaced by a rename has another inode, one overwritten in place another time. What it can't see is an
//! overwrite of the same length within one tick of the kernel's clock (at most 10 ms; with the multigrain timestamps of
//! Linux 6.13, none). A `chmod` or a new hard link changes the tag too: a change too many is refused, never one too few.
//!
//! **Puts.** The content goes to a file of ours in the same directory (`.shardcron-tmp-…`), is synced, and appears under
//! its key in one step; then the directory is synced. A crash leaves at most such a file, which no listing shows.
//! Put-if-absent relies on `RENAME_NOREPLACE` (or `link(2)`, where a file system hasn't got it). Put-if-match compares
//! and renames under a lock on a file of ours in the object's own directory (`.shardcron-lock`): there, and not in the
//! root, since one file can be reached from two roots. Both put and lock against other users of this adapter, in any
//! process; a program that writes the file by itself isn't held off, but readers notice.
//!
//! **Symbolic links** are followed wherever they lead, since directories of data often are links: who can put a link below
//! the root decides what is in it. A link to nothing, or back to a directory that it is in, is an error that names it,
//! since leaving it out could leave out input silently. A *key* can't leave its root: no part of it is `..`.

mod list;
mod name;
mod read;
mod write;

#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;

use crate::{ETag, ObjectMeta, ObjectName, ObjectReader, Objects, ObjectsError, Put, Root};

/// The adapter. See the module's documentation for what it promises.
#[derive(Clone, Debug)]
pub struct LocalObjects {
    objects_dir: PathBuf,
}

impl LocalObjects {
    /// Objects whose buckets live below `objects_dir`. Neither it nor a bucket needs to be there yet.
    #[must_use]
    pub fn new(objects_dir: PathBuf) -> Self {
        Self { objects_dir }
    }

    /// The directory that a root stands for.
    fn directory(&self, root: &Root) -> Result<PathBuf, ObjectsError> {
        match root {
            Root::Bucket(bucket) => {
                name::check_part(bucket).map_err(|why| name_error(root.join(""), why))?;
                Ok(self.objects_dir.join(bucket))
            }
            Root::Directory(path) if path.starts_with('/') => Ok(PathBuf::from(path)),
            Root::Directory(_) => Err(name_error(root.join(""), "a root's path is absolute".to_owned())),
        }
    }

    /// Where an object is, if its name is one.
    fn place(&self, object: &ObjectName) -> Result<Place, ObjectsError> {
        name::check_key(&object.key).map_err(|why| name_error(object.to_string(), why))?;
        let root = self.directory(&object.root)?;
        let path = root.join(&object.key);
        Ok(Place { path, object: object.clone() })
    }
}

/// An object with its path.
#[derive(Debug, Clone)]
struct Place {
    path: PathBuf,
    object: ObjectName,
}

impl Place {
    /// The directory that it stands in.
    fn parent(&self) -> &Path {
        // A key has at least one part, so that the path has a parent.
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Its metadata; `None` when there is no regular file.
    fn metadata(&self) -> Result<Option<Metadata>, ObjectsError> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(metadata.is_file().then_some(metadata)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(io_error(format!("looking at {}", self.object), error)),
        }
    }
}

#[async_trait]
impl Objects for LocalObjects {
    async fn list(
        &self,
        root: &Root,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, ObjectsError> {
        let directory = self.directory(root)?;
        name::check_prefix(prefix).map_err(|why| name_error(root.join(prefix), why))?;
        let (root, prefix, after) = (root.clone(), prefix.to_owned(), after.map(str::to_owned));
        blocking(move || list::list(&directory, &root, &prefix, after.as_deref(), limit)).await
    }

    async fn head(&self, object: &ObjectName) -> Result<Option<ObjectMeta>, ObjectsError> {
        let place = self.place(object)?;
        blocking(move || {
            let metadata = place.metadata()?;
            Ok(metadata.map(|metadata| object_meta(place.object.key, &metadata)))
        })
        .await
    }

    async fn get(
        &self,
        object: &ObjectName,
        range: Option<Range<u64>>,
        if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError> {
        let place = self.place(object)?;
        let if_match = if_match.cloned();
        blocking(move || {
            let reader = read::LocalReader::open(place, range, if_match.as_ref())?;
            Ok(Box::new(reader) as Box<dyn ObjectReader>)
        })
        .await
    }

    async fn put_if_absent(&self, object: &ObjectName, content: Bytes) -> Result<Put, ObjectsError> {
        let place = self.place(object)?;
        blocking(move || write::put_if_absent(&place, &content)).await
    }

    async fn put_if_match(&self, object: &ObjectName, tag: &ETag, content: Bytes) -> Result<Put, ObjectsError> {
        let place = self.place(object)?;
        let tag = tag.clone();
        blocking(move || write::put_if_match(&place, &tag, &content)).await
    }
}

fn object_meta(key: String, metadata: &Metadata) -> ObjectMeta {
    ObjectMeta { key, size: metadata.len(), etag: etag(metadata) }
}

fn etag(metadata: &Metadata) -> ETag {
    ETag(format!(
        "{}-{}.{:09}-{}.{:09}-{}",
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
        metadata.ino(),
    ))
}

/// The tag of an open file.
fn etag_of(file: &File, what: impl Fn() -> String) -> Result<ETag, ObjectsError> {
    file.metadata().map(|metadata| etag(&metadata)).map_err(|error| io_error(what(), error))
}

/// Whether the error says that there is no file of that name: also when a part of the path is a file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What stands at a path.
enum Found {
    Nothing,
    LinkToNothing,
    /// A file, a directory or something else, itself or behind links.
    Something(Metadata),
}

/// Looks at the name itself before it looks through it: done the other way round, an object that another writer makes
/// between the two looks would be taken for a link to nothing.
fn look(path: &Path) -> io::Result<Found> {
    match fs::symlink_metadata(path) {
        Ok(itself) if itself.is_symlink() => match fs::metadata(path) {
            Ok(behind) => Ok(Found::Something(behind)),
            Err(error) if is_absent(&error) => Ok(Found::LinkToNothing),
            Err(error) => Err(error),
        },
        Ok(itself) => Ok(Found::Something(itself)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

fn name_error(object: String, why: String) -> ObjectsError {
    ObjectsError::Name { object, why }
}

/// Sorts an error of the operating system by what the caller can do.
fn io_error(what: String, error: io::Error) -> ObjectsError {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound
        | Kind::NotADirectory
        | Kind::IsADirectory
        | Kind::PermissionDenied
        | Kind::ReadOnlyFilesystem
        | Kind::StorageFull
        | Kind::QuotaExceeded
        | Kind::FileTooLarge
        | Kind::InvalidFilename
        | Kind::InvalidInput
        | Kind::TooManyLinks
        | Kind::Unsupported => ObjectsError::Refused { what, source: error.into() },
        // Among them those of a worn disk and a network's file system, and too many open files.
        _ => ObjectsError::Unavailable { what, source: error.into() },
    }
}

/// Runs what may block on a thread for that.
async fn blocking<T, F>(work: F) -> Result<T, ObjectsError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, ObjectsError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => {
                Err(ObjectsError::Unavailable { what: "the runtime is shutting down".to_owned(), source: error.into() })
            }
        },
    }
}
