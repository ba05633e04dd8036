//! An object's content as its bytes come, decompressed if it is compressed.

use bytes::{Bytes, BytesMut};
use shardcron_objects::{ObjectName, ObjectReader, ObjectsError};

use crate::error::{Fault, InputError, Spot};
use crate::format::Compression;
use crate::gunzip::{CompressedFault, Gunzip, MAGIC};

/// Bytes decompressed at once.
const BLOCK: usize = 128 * 1024;

/// A stream of content. What has come and isn't consumed yet is [`Content::data`].
pub(crate) struct Content {
    raw: Raw,
    inflating: Option<Inflating>,
}

/// The bytes as the store gives them.
struct Raw {
    object: ObjectName,
    reader: Box<dyn ObjectReader>,
    data: Bytes,
    /// Bytes that are still to come from the store.
    missing: u64,
    has_ended: bool,
}

struct Inflating {
    gunzip: Gunzip,
    block: Vec<u8>,
    from: usize,
    to: usize,
}

/// Why there is no more content.
#[derive(Debug)]
pub(crate) enum ContentError {
    Objects(ObjectsError),
    Compressed { compressed_offset: u64, why: CompressedFault },
}

impl ContentError {
    /// As an error of the input; `at` is how far its reader has come.
    pub(crate) fn at(self, object: &str, at: Spot) -> InputError {
        match self {
            Self::Objects(error) => error.into(),
            Self::Compressed { compressed_offset, why } => {
                InputError::input(object, Some(at), Fault::Compressed { compressed_offset, why })
            }
        }
    }
}

impl Raw {
    /// Adds the next bytes; false at the end.
    async fn more(&mut self) -> Result<bool, ObjectsError> {
        while !self.has_ended {
            match self.reader.next().await? {
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => {
                    self.missing = self.missing.saturating_sub(bytes.len() as u64);
                    self.data = if self.data.is_empty() {
                        bytes
                    } else {
                        let mut joined = BytesMut::from(&self.data[..]);
                        joined.extend_from_slice(&bytes);
                        joined.freeze()
                    };
                    return Ok(true);
                }
                None if self.missing > 0 => return Err(self.cut_short()),
                None => self.has_ended = true,
            }
        }
        Ok(false)
    }

    /// A connection that ends early without an error must not pass for the end of the object.
    fn cut_short(&self) -> ObjectsError {
        let source = format!("the store ended it {} bytes before its end", self.missing);
        ObjectsError::Unavailable { what: format!("reading {}", self.object), source: source.into() }
    }
}

impl Content {
    /// The content of an object from its start: what decides whether it is compressed. `size` is what the reader has to
    /// give.
    pub(crate) async fn open(
        object: &ObjectName,
        reader: Box<dyn ObjectReader>,
        size: u64,
        compression: Compression,
    ) -> Result<Self, ContentError> {
        let mut content = Self::plain(object, reader, size);
        let is_gzip = match compression {
            Compression::None => false,
            Compression::Gzip => true,
            Compression::Auto => {
                // A lone 1f is what a cut leaves of a compressed object, and no text.
                let start = content.at_least(MAGIC.len()).await?;
                !start.is_empty() && start[..start.len().min(MAGIC.len())] == MAGIC[..start.len().min(MAGIC.len())]
            }
        };
        if is_gzip {
            content.inflating = Some(Inflating { gunzip: Gunzip::new(), block: vec![0; BLOCK], from: 0, to: 0 });
        }
        Ok(content)
    }

    /// Content that is known not to be compressed, from anywhere.
    pub(crate) fn plain(object: &ObjectName, reader: Box<dyn ObjectReader>, size: u64) -> Self {
        let raw = Raw { object: object.clone(), reader, data: Bytes::new(), missing: size, has_ended: false };
        Self { raw, inflating: None }
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.inflating.is_some()
    }

    /// What has come and isn't consumed yet.
    pub(crate) fn data(&self) -> &[u8] {
        match &self.inflating {
            None => &self.raw.data,
            Some(inflating) => &inflating.block[inflating.from..inflating.to],
        }
    }

    /// Takes the first bytes of the data away.
    pub(crate) fn consume(&mut self, bytes: usize) {
        match &mut self.inflating {
            None => drop(self.raw.data.split_to(bytes)),
            Some(inflating) => inflating.from += bytes,
        }
    }

    /// Sees to it that there is data; false at the end.
    pub(crate) async fn fill(&mut self) -> Result<bool, ContentError> {
        Ok(!self.data().is_empty() || self.more().await?)
    }

    /// The data, which is at least so long unless the content ends before. For a few bytes: it copies.
    pub(crate) async fn at_least(&mut self, bytes: usize) -> Result<&[u8], ContentError> {
        while self.data().len() < bytes && self.more().await? {}
        Ok(self.data())
    }

    /// Passes over so many bytes; false when the content ends before.
    pub(crate) async fn skip(&mut self, mut bytes: u64) -> Result<bool, ContentError> {
        while bytes > 0 {
            if !self.fill().await? {
                return Ok(false);
            }
            let step = bytes.min(self.data().len() as u64);
            self.consume(step as usize);
            bytes -= step;
        }
        Ok(true)
    }

    /// Adds to the data; false at the end.
    async fn more(&mut self) -> Result<bool, ContentError> {
        match &mut self.inflating {
            None => self.raw.more().await.map_err(ContentError::Objects),
            Some(inflating) => inflating.more(&mut self.raw).await,
        }
    }
}

impl Inflating {
    async fn more(&mut self, raw: &mut Raw) -> Result<bool, ContentError> {
        self.block.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        loop {
            let (used, made) = match self.gunzip.decode(&raw.data, &mut self.block[self.to..]) {
                Ok(progress) => progress,
                Err(why) => return Err(self.error(why)),
            };
            drop(raw.data.split_to(used));
            if made > 0 {
                self.to += made;
                return Ok(true);
            }
            if raw.data.is_empty() && !raw.more().await.map_err(ContentError::Objects)? {
                self.gunzip.finish().map_err(|why| self.error(why))?;
                return Ok(false);
            }
        }
    }

    fn error(&self, why: CompressedFault) -> ContentError {
        ContentError::Compressed { compressed_offset: self.gunzip.taken, why }
    }
}
