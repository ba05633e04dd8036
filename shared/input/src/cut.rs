//! Where an object can be cut: the places in it where a record is known to begin.

use std::ops::Range;

use shardcron_domain::boundary::ObjectPosition;
use shardcron_domain::limits;
use shardcron_domain::record::Format;
use shardcron_objects::{ETag, ObjectMeta, ObjectName, Objects, Root};

use crate::error::InputError;
use crate::format::{Compression, InputFormat};
use crate::gunzip::MAGIC;
use crate::manifest::ManifestObject;
use crate::plans::Cuttable;

/// Bytes that a look for the end of a line reads first; twice as many each time that it finds none.
const LOOK: u64 = 64 * 1024;

/// An object in the content that it has to have.
#[derive(Clone, Copy)]
struct Frozen<'a> {
    objects: &'a dyn Objects,
    name: &'a ObjectName,
    etag: &'a ETag,
    size: u64,
}

/// Whether objects of this format can be cut within: only where the end of a line ends a record whatever stands before
/// it. In CSV a quoted field can hold a line's end.
#[must_use]
pub fn is_cut_within(format: &InputFormat) -> bool {
    format.kind == Format::Ndjson && format.compression != Compression::Gzip
}

/// The cuts of an object into pieces of about `target` bytes each; none where it isn't larger, can't be cut within, or is
/// compressed.
///
/// # Errors
/// [`InputError`], as of reading it.
pub async fn cuts_of(
    objects: &dyn Objects,
    root: &Root,
    object: ObjectMeta,
    format: &InputFormat,
    target: u64,
) -> Result<Cuttable, InputError> {
    if object.size <= target || !is_cut_within(format) {
        return Ok(object.into());
    }
    let target = target.max(object.size.div_ceil(limits::OBJECT_PIECES_MAX));
    let name = ObjectName { root: root.clone(), key: object.key.clone() };
    let frozen = Frozen { objects, name: &name, etag: &object.etag, size: object.size };
    let mut cuts = Vec::new();
    if !frozen.is_compressed(format).await? {
        let mut at = target.max(1);
        while at < frozen.size {
            let Some(start) = frozen.record_start(at).await? else { break };
            cuts.push(start);
            at = start.saturating_add(target.max(1));
        }
    }
    Ok(Cuttable { object, cuts })
}

/// The first place of the object at or after `offset` where a record begins, before its end; `None` where there is none,
/// or the object can't be cut within.
///
/// # Errors
/// [`InputError`], as of reading it.
pub async fn record_start(
    objects: &dyn Objects,
    root: &Root,
    object: &ManifestObject,
    format: &InputFormat,
    offset: u64,
) -> Result<Option<ObjectPosition>, InputError> {
    if !is_cut_within(format) {
        return Ok(None);
    }
    let name = ObjectName { root: root.clone(), key: object.key.clone() };
    let frozen = Frozen { objects, name: &name, etag: &object.etag, size: object.size };
    if frozen.is_compressed(format).await? {
        return Ok(None);
    }
    let start = frozen.record_start(offset).await?;
    Ok(start.map(|offset| ObjectPosition::within(object.index, offset)))
}

impl Frozen<'_> {
    async fn is_compressed(&self, format: &InputFormat) -> Result<bool, InputError> {
        if format.compression == Compression::None {
            return Ok(false);
        }
        let start = self.read(0..MAGIC.len() as u64).await?;
        Ok(start.starts_with(&MAGIC))
    }

    /// The place after the first line's end from just before `offset` on.
    async fn record_start(&self, offset: u64) -> Result<Option<u64>, InputError> {
        let mut from = offset.max(1) - 1;
        let mut look = LOOK;
        while from < self.size {
            let to = from.saturating_add(look).min(self.size);
            let bytes = self.read(from..to).await?;
            if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let start = from + end as u64 + 1;
                return Ok((start < self.size).then_some(start));
            }
            from = to;
            // A record that is longer than any may be is refused where it is read.
            look = (look * 2).min(limits::RECORD_BYTES_MAX as u64);
        }
        Ok(None)
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, InputError> {
        let mut reader = self.objects.get(self.name, Some(range), Some(self.etag)).await?;
        let mut bytes = Vec::new();
        while let Some(block) = reader.next().await? {
            bytes.extend_from_slice(&block);
        }
        Ok(bytes)
    }
}
