//! Listing a tree of directories in the order of its keys.
//!
//! The key of a file is its path, and `/` sorts among other bytes: `a-b/x` stands before `a/x`, and `a.csv` before `a/x`
//! too. So the entries of a directory are put in the order of their names with a `/` after those of directories; then a
//! walk in depth meets the keys in their order.
//!
//! Of each directory only as many entries are held as the listing may still need, the least of those beyond where it
//! stands: memory is bounded by the page times the depth, and not by how many files a directory has.

use std::collections::BinaryHeap;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;

use super::{Found, io_error, is_absent, look, name, name_error, object_meta};
use crate::{ObjectMeta, ObjectsError, Root};

/// Entries of one directory held at once, whatever the page: a directory may have many that hold no objects.
const BATCH: usize = 1024;

pub(super) fn list(
    directory: &Path,
    root: &Root,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<ObjectMeta>, ObjectsError> {
    let mut walk = Walk { root, prefix, after, limit, found: Vec::new(), above: Vec::new() };
    if limit > 0 {
        // What comes before the prefix's last part names directories: only below them can anything be.
        let start = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
        walk.directory(&directory.join(start), start)?;
    }
    Ok(walk.found)
}

struct Walk<'a> {
    root: &'a Root,
    prefix: &'a str,
    after: Option<&'a str>,
    limit: usize,
    found: Vec<ObjectMeta>,
    /// Device and inode of the directories that the walk is in, to know one that leads back.
    above: Vec<(u64, u64)>,
}

/// An entry of a directory: what its keys begin with (a directory's ends in `/`).
type Key = String;

impl Walk<'_> {
    /// Adds what is in a directory whose keys begin with `base`, which is empty or ends in `/`.
    fn directory(&mut self, path: &Path, base: &str) -> Result<(), ObjectsError> {
        let identity = match fs::metadata(path) {
            Ok(metadata) => (metadata.dev(), metadata.ino()),
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(self.error(base, error)),
        };
        if self.above.contains(&identity) {
            return Err(self.refuse(base, "is a symbolic link to a directory that it is in"));
        }
        self.above.push(identity);
        let mut reached = None;
        loop {
            let entries = self.least(path, base, reached.as_deref())?;
            let more = entries.len() == self.batch();
            for key in &entries {
                self.entry(path, base, key)?;
                if self.found.len() == self.limit {
                    return Ok(());
                }
            }
            match entries.into_iter().next_back() {
                Some(last) if more => reached = Some(last),
                _ => break,
            }
        }
        self.above.pop();
        Ok(())
    }

    fn entry(&mut self, directory: &Path, base: &str, key: &str) -> Result<(), ObjectsError> {
        let path = directory.join(&key[base.len()..]);
        if key.ends_with('/') {
            return self.directory(&path, key);
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => self.found.push(object_meta(key.to_owned(), &metadata)),
            // Gone, or replaced by something else, since the directory was read.
            Ok(_) => {}
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(self.error(key, error)),
        }
        Ok(())
    }

    fn batch(&self) -> usize {
        self.limit.min(BATCH)
    }

    /// The least entries of a directory beyond `reached` that can have keys of this listing, in order.
    fn least(&self, path: &Path, base: &str, reached: Option<&str>) -> Result<Vec<Key>, ObjectsError> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(self.error(base, error)),
        };
        let mut least: BinaryHeap<Key> = BinaryHeap::new();
        for entry in entries {
            let entry = entry.map_err(|error| self.error(base, error))?;
            let Some(key) = self.key(&entry, base)? else { continue };
            let is_ahead = reached.is_none_or(|reached| key.as_str() > reached);
            let is_wanted = least.len() < self.batch() || least.peek().is_some_and(|greatest| key < *greatest);
            if is_ahead && is_wanted {
                if least.len() == self.batch() {
                    least.pop();
                }
                least.push(key);
            }
        }
        Ok(least.into_sorted_vec())
    }

    /// What the keys of an entry begin with; `None` when none of them is in this listing.
    fn key(&self, entry: &DirEntry, base: &str) -> Result<Option<Key>, ObjectsError> {
        let bytes = entry.file_name();
        let bytes = bytes.as_bytes();
        // The listing's prefix begins with `base`, or the other way round.
        let prefix = self.prefix.get(base.len()..).unwrap_or("").as_bytes();
        if !bytes.starts_with(prefix) && !prefix.starts_with(bytes) {
            return Ok(None);
        }
        let Ok(own) = str::from_utf8(bytes) else {
            return Err(self.refuse(&format!("{base}{}", bytes.escape_ascii()), "has a name that isn't UTF-8"));
        };
        if name::is_ours(own) {
            return Ok(None);
        }
        let mut key = format!("{base}{own}");
        match self.kind(entry, &key)? {
            Kind::File => {}
            Kind::Directory => key.push('/'),
            Kind::Other => return Ok(None),
        }
        let is_prefixed = key.starts_with(self.prefix) || (key.ends_with('/') && self.prefix.starts_with(&key));
        // The keys of a directory all begin with its own: they are past when `after` is greater, yet isn't one of them.
        let is_past = self.after.is_some_and(|after| {
            if key.ends_with('/') { *key < *after && !after.starts_with(&key) } else { *key <= *after }
        });
        if !is_prefixed || is_past {
            return Ok(None);
        }
        if let Err(why) = name::check_key(key.trim_end_matches('/')) {
            return Err(name_error(self.root.join(&key), why));
        }
        Ok(Some(key))
    }

    fn kind(&self, entry: &DirEntry, key: &str) -> Result<Kind, ObjectsError> {
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) if is_absent(&error) => return Ok(Kind::Other),
            Err(error) => return Err(self.error(key, error)),
        };
        if !kind.is_symlink() {
            return Ok(if kind.is_dir() {
                Kind::Directory
            } else if kind.is_file() {
                Kind::File
            } else {
                Kind::Other
            });
        }
        match look(&entry.path()) {
            Ok(Found::Something(metadata)) => Ok(Kind::of(&metadata)),
            Ok(Found::LinkToNothing) => Err(self.refuse(key, "is a symbolic link to nothing")),
            Ok(Found::Nothing) => Ok(Kind::Other),
            Err(error) if is_absent(&error) => Ok(Kind::Other),
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                Err(self.refuse(key, "is a symbolic link that leads back to itself"))
            }
            Err(error) => Err(self.error(key, error)),
        }
    }

    fn refuse(&self, key: &str, why: &str) -> ObjectsError {
        name_error(self.root.join(key), why.to_owned())
    }

    fn error(&self, key: &str, error: io::Error) -> ObjectsError {
        io_error(format!("listing {}", self.root.join(key)), error)
    }
}

enum Kind {
    File,
    Directory,
    /// A socket, a pipe, a device: nothing that holds data.
    Other,
}

impl Kind {
    fn of(metadata: &Metadata) -> Self {
        if metadata.is_file() {
            Self::File
        } else if metadata.is_dir() {
            Self::Directory
        } else {
            Self::Other
        }
    }
}
