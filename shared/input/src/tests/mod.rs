//! Tests of the readers through their public interface, on objects that come in pieces of any size.

mod csv;
mod gzip;
mod listing;
mod manifest;
mod ndjson;
mod reports;
mod resume;

use std::collections::BTreeMap;
use std::ops::Range as Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use shardcron_domain::boundary::{ObjectPosition, Position};
use shardcron_domain::record::{Column, Field, Format, RecordRef};
use shardcron_objects::{ETag, ObjectMeta, ObjectName, ObjectReader, Objects, ObjectsError, Put, Root};

use crate::{Compression, Fault, InputError, InputFormat, ShardPlan, ShardReader, cut_objects};

/// Objects in memory that hand over their bytes in pieces of one size.
#[derive(Default)]
struct Memory {
    objects: BTreeMap<String, Vec<u8>>,
    piece: usize,
    /// Connections break after so many bytes, as often as `breaks` says.
    breaks_after: Option<usize>,
    breaks: AtomicU64,
}

impl Memory {
    fn of(objects: &[(&str, &[u8])], piece: usize) -> Self {
        let objects = objects.iter().map(|(key, content)| ((*key).to_owned(), content.to_vec())).collect();
        Self { objects, piece, ..Self::default() }
    }

    fn meta(&self, key: &str) -> Option<ObjectMeta> {
        let content = self.objects.get(key)?;
        Some(ObjectMeta { key: key.to_owned(), size: content.len() as u64, etag: ETag("1".to_owned()) })
    }

    fn listing(&self) -> Vec<ObjectMeta> {
        self.objects.keys().filter_map(|key| self.meta(key)).collect()
    }

    /// All objects as one shard.
    fn plan(&self) -> ShardPlan {
        let mut plans = pack(self.listing(), u64::MAX);
        assert_eq!(plans.len(), 1);
        plans.remove(0)
    }
}

/// The shards of a listing whose objects aren't cut.
fn pack(objects: Vec<ObjectMeta>, target: u64) -> Vec<ShardPlan> {
    cut_objects(root(), objects.into_iter().map(Into::into).collect(), target).plans
}

struct Pieces {
    pieces: std::vec::IntoIter<Vec<u8>>,
    breaks: bool,
}

#[async_trait]
impl ObjectReader for Pieces {
    async fn next(&mut self) -> Result<Option<bytes::Bytes>, ObjectsError> {
        match self.pieces.next() {
            Some(piece) => Ok(Some(piece.into())),
            None if self.breaks => {
                Err(ObjectsError::Unavailable { what: "reading".into(), source: "connection reset".into() })
            }
            None => Ok(None),
        }
    }
}

#[async_trait]
impl Objects for Memory {
    async fn list(
        &self,
        _root: &Root,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectMeta>, ObjectsError> {
        let is_listed = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
        Ok(self.listing().into_iter().filter(|meta| is_listed(&meta.key)).take(limit).collect())
    }

    async fn head(&self, object: &ObjectName) -> Result<Option<ObjectMeta>, ObjectsError> {
        Ok(self.meta(&object.key))
    }

    async fn get(
        &self,
        object: &ObjectName,
        range: Option<Bytes<u64>>,
        _if_match: Option<&ETag>,
    ) -> Result<Box<dyn ObjectReader>, ObjectsError> {
        let content = self.objects.get(&object.key).ok_or(ObjectsError::NotFound { object: object.clone() })?;
        let size = content.len();
        let range = range.map_or(0..size, |range| (range.start as usize).min(size)..(range.end as usize).min(size));
        let mut content = &content[range];
        let mut breaks = false;
        if let Some(most) = self.breaks_after.filter(|most| *most < content.len()) {
            breaks = self.breaks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
            if breaks {
                content = &content[..most];
            }
        }
        let pieces: Vec<Vec<u8>> = content.chunks(self.piece.max(1)).map(<[u8]>::to_vec).collect();
        Ok(Box::new(Pieces { pieces: pieces.into_iter(), breaks }))
    }

    async fn put_if_absent(&self, _: &ObjectName, _: bytes::Bytes) -> Result<Put, ObjectsError> {
        unreachable!("readers don't write")
    }

    async fn put_if_match(&self, _: &ObjectName, _: &ETag, _: bytes::Bytes) -> Result<Put, ObjectsError> {
        unreachable!("readers don't write")
    }
}

/// A place as object, byte and lines before it.
type Place = (u32, u64, u64);

/// A record as a test sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    from: Place,
    to: Place,
    line: u64,
    /// The fields of the columns asked for; for a malformed one, why it is.
    body: Result<Vec<Option<String>>, String>,
}

impl Seen {
    fn of(record: RecordRef<'_>, columns: &[Column]) -> Self {
        let text = |column: &Column| match record.field(column) {
            Field::Text(text) => Some(text.to_owned()),
            Field::Null => None,
            Field::NoColumn => panic!("no column {column:?}"),
        };
        let body = match record.malformed() {
            Some(why) => Err(why.to_owned()),
            None => Ok(columns.iter().map(text).collect()),
        };
        Self { from: place(record.from()), to: place(record.to()), line: record.line(), body }
    }

    fn texts(&self) -> Vec<&str> {
        let fields = self.body.as_ref().unwrap_or_else(|why| panic!("{self:?} is malformed: {why}"));
        fields.iter().map(|field| field.as_deref().unwrap_or("NULL")).collect()
    }
}

fn place(position: Position) -> Place {
    let Position::Object(ObjectPosition { object, offset, line }) = position else {
        panic!("{position} isn't of objects")
    };
    (object, offset, line)
}

fn root() -> Root {
    Root::Bucket("data".into())
}

fn csv() -> InputFormat {
    InputFormat::new(Format::Csv)
}

fn ndjson() -> InputFormat {
    InputFormat::new(Format::Ndjson)
}

/// Reads the rest of a plan, with the columns of the header or those of these names.
async fn read(
    objects: Arc<dyn Objects>,
    plan: &ShardPlan,
    format: InputFormat,
    names: &[&str],
    from: Position,
) -> (Vec<Seen>, Result<(), InputError>) {
    let mut seen = Vec::new();
    let mut reader = match ShardReader::open(objects, root(), plan, &format, from) {
        Ok(reader) => reader,
        Err(error) => return (seen, Err(error)),
    };
    loop {
        match reader.next().await {
            Ok(Some(chunk)) => {
                let columns: Vec<Column> = match &chunk.source().columns {
                    Some(columns) => (0..columns.len()).map(Column::At).collect(),
                    None => names.iter().map(|name| chunk.source().column(name)).collect(),
                };
                assert!(!chunk.is_empty());
                seen.extend(chunk.records().map(|record| Seen::of(record, &columns)));
                assert_eq!(place(reader.position()), seen.last().unwrap().to);
            }
            Ok(None) => {
                assert_eq!(reader.position(), plan.range.to());
                return (seen, Ok(()));
            }
            Err(error) => return (seen, Err(error)),
        }
    }
}

/// Reads one object as a whole, in pieces of this size.
async fn read_one(
    content: &[u8],
    format: InputFormat,
    names: &[&str],
    piece: usize,
) -> (Vec<Seen>, Result<(), InputError>) {
    let memory = Memory::of(&[("a", content)], piece);
    let plan = memory.plan();
    let from = plan.range.from();
    read(Arc::new(memory), &plan, format, names, from).await
}

/// The records of an object that can be read, which are the same in pieces of any size.
async fn records(content: &[u8], format: InputFormat, names: &[&str]) -> Vec<Seen> {
    let mut all: Option<Vec<Seen>> = None;
    for piece in [1, 2, 3, 7, 64, usize::MAX] {
        let (seen, end) = read_one(content, format, names, piece).await;
        end.unwrap();
        assert_eq!(*all.get_or_insert_with(|| seen.clone()), seen, "in pieces of {piece}");
    }
    all.unwrap()
}

/// The fault of an object that can't be read, and what could be read before it.
async fn fault(content: &[u8], format: InputFormat) -> (Vec<Seen>, crate::InputFault) {
    let mut first = None;
    for piece in [1, 3, usize::MAX] {
        let (seen, end) = read_one(content, format, &[], piece).await;
        assert!(end.as_ref().is_err_and(|error| !error.is_retryable()), "{end:?}");
        let Err(InputError::Input(fault)) = end else { panic!("{end:?} instead of a fault") };
        assert_eq!(fault.object, "s3://data/a");
        match &first {
            None => first = Some((seen, *fault)),
            Some((before, other)) => assert_eq!((before, other.to_string()), (&seen, fault.to_string())),
        }
    }
    first.unwrap()
}
