//! Puts that are atomic and durable.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::{Found, Place, etag, etag_of, io_error, is_absent, look, name, name_error};
use crate::{ETag, ObjectsError, Put};

/// Writes an object if there is none of that name.
pub(super) fn put_if_absent(place: &Place, content: &[u8]) -> Result<Put, ObjectsError> {
    // Saves writing what the rename would refuse anyway.
    if occupied(place)? {
        return Ok(Put::Refused);
    }
    make_directories(place)?;
    let temporary = Temporary::write(place, content)?;
    match temporary.rename_to_free(&place.path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            occupied(place)?;
            return Ok(Put::Refused);
        }
        Err(error) => return Err(put_error(place, error)),
    }
    temporary.settled(place)
}

/// Writes an object in the place of the one that has this tag.
pub(super) fn put_if_match(place: &Place, tag: &ETag, content: &[u8]) -> Result<Put, ObjectsError> {
    let matches =
        || -> Result<bool, ObjectsError> { Ok(place.metadata()?.is_some_and(|metadata| etag(&metadata) == *tag)) };
    // Before anything is made: a refusal leaves nothing behind.
    if !matches()? {
        return Ok(Put::Refused);
    }
    let temporary = Temporary::write(place, content)?;
    // Released when it is closed, also by a crash.
    let _locked = lock(place)?;
    if !matches()? {
        return Ok(Put::Refused);
    }
    temporary.rename_over(&place.path).map_err(|error| put_error(place, error))?;
    temporary.settled(place)
}

/// Whether an object has the name; an error when something has it that isn't one.
fn occupied(place: &Place) -> Result<bool, ObjectsError> {
    let refuse = |why: &str| Err(name_error(place.object.to_string(), why.to_owned()));
    match look(&place.path) {
        Ok(Found::Nothing) => Ok(false),
        Ok(Found::LinkToNothing) => refuse("it is a symbolic link to nothing"),
        Ok(Found::Something(metadata)) if metadata.is_file() => Ok(true),
        Ok(Found::Something(metadata)) if metadata.is_dir() => refuse("it is a directory"),
        Ok(Found::Something(_)) => refuse("it isn't a regular file"),
        Err(error) => Err(put_error(place, error)),
    }
}

fn put_error(place: &Place, error: io::Error) -> ObjectsError {
    match error.kind() {
        io::ErrorKind::NotADirectory => {
            let why = "a part of it is an object, so that nothing can be below it";
            name_error(place.object.to_string(), why.to_owned())
        }
        _ => io_error(format!("writing {}", place.object), error),
    }
}

/// Makes the directories that the object stands in, each durable in the one above it.
fn make_directories(place: &Place) -> Result<(), ObjectsError> {
    // A relative path ends in an empty ancestor, which stands for the working directory.
    let is_missing = |directory: &&Path| !directory.as_os_str().is_empty() && !directory.is_dir();
    let missing: Vec<&Path> = place.parent().ancestors().take_while(is_missing).collect();
    for directory in missing.into_iter().rev() {
        match fs::create_dir(directory) {
            Ok(()) => {}
            // Another writer was faster. A file of that name shows at the next step.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(put_error(place, error)),
        }
        if let Some(above) = directory.parent() {
            sync_directory(above).map_err(|error| put_error(place, error))?;
        }
    }
    Ok(())
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

/// Locks the object's directory against other puts-if-match, for as long as the file is held.
fn lock(place: &Place) -> Result<File, ObjectsError> {
    let path = place.parent().join(name::LOCK);
    let error = |error| io_error(format!("locking {} to write {}", path.display(), place.object), error);
    let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(error)?;
    loop {
        match file.lock() {
            Ok(()) => return Ok(file),
            Err(interrupted) if interrupted.kind() == io::ErrorKind::Interrupted => {}
            Err(other) => return Err(error(other)),
        }
    }
}

/// A written and synced file that has no key yet. It is removed when it is dropped before it got one.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn write(place: &Place, content: &[u8]) -> Result<Self, ObjectsError> {
        let mut temporary = Self::create(place.parent()).map_err(|error| put_error(place, error))?;
        temporary.file.write_all(content).map_err(|error| put_error(place, error))?;
        temporary.file.sync_all().map_err(|error| put_error(place, error))?;
        Ok(temporary)
    }

    fn create(directory: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            // Unique among the living of this machine; one that a crash or another machine left is stepped over.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{}{}-{number}", name::TEMPORARY, process::id()));
            match File::options().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn rename_to_free(&self, target: &Path) -> io::Result<()> {
        match rustix::fs::renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => link_to_free(&self.path, target),
            Err(error) => Err(error.into()),
        }
    }

    fn rename_over(&self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)
    }

    /// What remains once it has its key: its tag, and that the key survives a crash.
    fn settled(self, place: &Place) -> Result<Put, ObjectsError> {
        let what = || format!("writing {}", place.object);
        // By the descriptor, since by its name it may be another's by now.
        let tag = etag_of(&self.file, what)?;
        sync_directory(place.parent()).map_err(|error| put_error(place, error))?;
        Ok(Put::Written(tag))
    }
}

/// For file systems without `RENAME_NOREPLACE`. Until the first name is gone the tag isn't the final one, so that a
/// reader in between may see the object as changed, and looks again.
fn link_to_free(from: &Path, target: &Path) -> io::Result<()> {
    fs::hard_link(from, target)?;
    match fs::remove_file(from) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing of that name; a failure leaves what a crash would, which no listing shows.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_without_noreplace_refuses_a_taken_name_too() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        fs::write(&a, "1").unwrap();
        link_to_free(&a, &b).unwrap();
        assert!(!a.exists());
        fs::write(&a, "2").unwrap();
        assert_eq!(link_to_free(&a, &b).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&b).unwrap(), "1");
    }
}
