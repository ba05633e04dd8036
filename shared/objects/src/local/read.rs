//! Reading a file that must stay one content throughout.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rustix::fs::OFlags;

use super::{Place, blocking, etag, io_error, is_absent};
use crate::{ETag, ObjectReader, ObjectsError};

/// Bytes of a block: enough to make the hop to a blocking thread cheap.
const BLOCK: u64 = 256 * 1024;

/// A file being read. It reads by offset and holds no state that a dropped future could lose.
pub(super) struct LocalReader {
    file: Arc<Opened>,
    /// What is still to be read.
    rest: Range<u64>,
}

struct Opened {
    file: File,
    place: Place,
    /// As it was when it was opened.
    metadata: Metadata,
}

impl LocalReader {
    pub(super) fn open(place: Place, range: Option<Range<u64>>, if_match: Option<&ETag>) -> Result<Self, ObjectsError> {
        // Without NONBLOCK, opening a named pipe would wait for its writer.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&place.path) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Err(ObjectsError::NotFound { object: place.object }),
            Err(error) => return Err(io_error(format!("opening {}", place.object), error)),
        };
        let metadata = file.metadata().map_err(|error| io_error(format!("looking at {}", place.object), error))?;
        if !metadata.is_file() {
            return Err(ObjectsError::NotFound { object: place.object });
        }
        if if_match.is_some_and(|expected| *expected != etag(&metadata)) {
            return Err(ObjectsError::Changed { object: place.object });
        }
        let size = metadata.len();
        let rest = range.map_or(0..size, |range| range.start.min(size)..range.end.min(size));
        Ok(Self { file: Arc::new(Opened { file, place, metadata }), rest })
    }
}

impl Opened {
    /// Refuses to go on when the file isn't what it was when it was opened.
    fn check(&self) -> Result<(), ObjectsError> {
        let now = self.file.metadata().map_err(|error| self.error(error))?;
        if same_content(&self.metadata, &now) { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> ObjectsError {
        ObjectsError::Changed { object: self.place.object.clone() }
    }

    fn error(&self, error: io::Error) -> ObjectsError {
        io_error(format!("reading {}", self.place.object), error)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, ObjectsError> {
        let mut block = vec![0; (range.end - range.start) as usize];
        match self.file.read_exact_at(&mut block, range.start) {
            Ok(()) => {}
            // It was cut short since it was opened.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(self.changed()),
            Err(error) => return Err(self.error(error)),
        }
        // After the read: what was read before a change that shows now may still be of the former content, or not.
        self.check()?;
        Ok(Bytes::from(block))
    }
}

/// Whether an open file still has the content that it was opened with.
///
/// A rename over its name takes a link from the inode and with it changes the time of the last change of status, while
/// the content that the descriptor reads stays.
fn same_content(opened: &Metadata, now: &Metadata) -> bool {
    let written = |m: &Metadata| (m.len(), m.mtime(), m.mtime_nsec());
    let changed = |m: &Metadata| (m.ctime(), m.ctime_nsec());
    written(opened) == written(now) && (changed(opened) == changed(now) || opened.nlink() != now.nlink())
}

#[async_trait]
impl ObjectReader for LocalReader {
    async fn next(&mut self) -> Result<Option<Bytes>, ObjectsError> {
        let file = Arc::clone(&self.file);
        if self.rest.is_empty() {
            blocking(move || file.check()).await?;
            return Ok(None);
        }
        let end = self.rest.end.min(self.rest.start + BLOCK);
        let block = self.rest.start..end;
        let bytes = blocking(move || file.read(block)).await?;
        self.rest.start = end;
        Ok(Some(bytes))
    }
}
