//! Reading the records of a shard.

use std::sync::Arc;

use shardcron_domain::boundary::{ObjectPosition, Position};
use shardcron_domain::record::{Chunk, Format, Source};
use shardcron_domain::{ids::ShardId, limits};
use shardcron_objects::{ObjectName, Objects, Root};

use crate::content::Content;
use crate::csv::{self, CsvParser, Cursor, HeaderError};
use crate::error::{Fault, InputError};
use crate::format::InputFormat;
use crate::manifest::{ManifestObject, ShardPlan};
use crate::ndjson::NdjsonParser;
use crate::sink::{Fed, ParseError, Sink, spot};

/// Bytes read from the start of a CSV object to find its header when the reading begins further on: more than a header
/// can have, so that one that doesn't end in them is too long.
const HEADER_PROBE: u64 = limits::HEADER_BYTES_MAX as u64 + 1024;

/// Bytes read from the start of any other object then: what shows its compression.
const START_PROBE: u64 = 16;

/// A shard's records, from any place between two of them.
///
/// Every read names the tag that the manifest has, so that an object that changed since is an error and never a mixture.
/// Within an object each record ends where the next one begins (empty lines lie in between, and belong to the first),
/// and the last one ends at the start of the next object.
pub struct ShardReader {
    objects: Arc<dyn Objects>,
    root: Root,
    shard: ShardId,
    manifest: Vec<ManifestObject>,
    format: InputFormat,
    /// The columns that each header must have.
    needed: Arc<[String]>,
    position: ObjectPosition,
    end: ObjectPosition,
    /// The object being read; none before the first and after an error.
    open: Option<Open>,
}

/// An object being read.
struct Open {
    name: String,
    source: Arc<Source>,
    content: Content,
    parser: Parser,
    /// The place that its end, or the end of the shard in it, stands for.
    end: ObjectPosition,
}

enum Parser {
    Csv(Box<CsvParser>),
    Ndjson(NdjsonParser),
}

impl ShardReader {
    /// A reader of the rest of a shard. Reads nothing yet.
    ///
    /// `from` is a place in the shard's range: the range's own start, or where a record of it ends.
    ///
    /// # Errors
    /// [`InputError::Plan`] when `from` isn't in the shard's range, or the shard's objects aren't those of its range.
    pub fn open(
        objects: Arc<dyn Objects>,
        root: Root,
        plan: &ShardPlan,
        format: &InputFormat,
        from: Position,
    ) -> Result<Self, InputError> {
        let refuse = |why| InputError::Plan { shard: plan.id.to_string(), from, why };
        let (Position::Object(position), Position::Object(end)) = (from, plan.range.to()) else {
            return Err(refuse("the place or the shard's range isn't one of objects"));
        };
        if !plan.range.spans(from) {
            return Err(refuse("the place isn't in the shard's range"));
        }
        if !plan.covers_its_range() {
            return Err(refuse("the shard's objects aren't those of its range"));
        }
        Ok(Self {
            objects,
            root,
            shard: plan.id.clone(),
            manifest: plan.objects.clone(),
            format: *format,
            needed: Arc::default(),
            position,
            end,
            open: None,
        })
    }

    /// The same, and an object whose header lacks one of these columns is an error ([`Fault::NoColumn`]), also where no
    /// record follows the header. An object without a header, which has nothing but line ends, lacks none.
    #[must_use]
    pub fn needing(self, columns: Arc<[String]>) -> Self {
        Self { needed: columns, ..self }
    }

    /// Up to where all records have been handed over: where the last chunk's last record ends; after the last chunk, the
    /// end of the shard's range, also if objects without records come last.
    #[must_use]
    pub fn position(&self) -> Position {
        Position::Object(self.position)
    }

    /// The next records, of one object; `None` after the last.
    ///
    /// A chunk has at least one record, and no more than [`limits::CHUNK_RECORDS_MAX`]; it ends with the record that makes
    /// it reach [`limits::CHUNK_BYTES_MAX`] of input. What can be read before an error is handed over first. After an
    /// error, or when this future was dropped before its end, the next call begins anew at [`ShardReader::position`].
    ///
    /// # Errors
    /// [`InputError::Input`] for what only other input mends; [`InputError::Unavailable`].
    pub async fn next(&mut self) -> Result<Option<Chunk>, InputError> {
        while self.position < self.end {
            // Taken, and put back only at the end: a future dropped halfway leaves no parser that is ahead.
            let mut open = match self.open.take() {
                Some(open) => open,
                None => match self.open_object().await? {
                    Some(open) => open,
                    None => {
                        self.position = self.end_of(self.position.object);
                        continue;
                    }
                },
            };
            let mut sink = Sink::new(Arc::clone(&open.source));
            let outcome = open.fill(&mut sink).await;
            let last = sink.chunk.len().checked_sub(1).map(|last| sink.chunk.record(last).to());
            match (outcome, last) {
                (Ok(Filled::Full), Some(Position::Object(to))) => {
                    self.position = to;
                    self.open = Some(open);
                }
                (Ok(_), _) => self.position = open.end,
                (Err(_), Some(Position::Object(to))) => self.position = to,
                (Err(error), _) => return Err(error),
            }
            if !sink.chunk.is_empty() {
                return Ok(Some(sink.chunk));
            }
        }
        Ok(None)
    }

    /// The place that stands for the end of an object, or of the shard in it.
    fn end_of(&self, object: u32) -> ObjectPosition {
        self.end.min(ObjectPosition::start_of(object + 1))
    }

    /// Opens the object of the present position, there; `None` when it has no records.
    async fn open_object(&self) -> Result<Option<Open>, InputError> {
        let at = self.position;
        let Some(object) = self.manifest.iter().find(|object| object.index == at.object) else {
            let why = "the shard has no such object";
            return Err(InputError::Plan { shard: self.shard.to_string(), from: self.position(), why });
        };
        let opening =
            Opening { reader: self, object, name: ObjectName { root: self.root.clone(), key: object.key.clone() }, at };
        opening.open().await
    }
}

/// What it takes to open an object.
struct Opening<'a> {
    reader: &'a ShardReader,
    object: &'a ManifestObject,
    name: ObjectName,
    at: ObjectPosition,
}

impl Opening<'_> {
    async fn open(&self) -> Result<Option<Open>, InputError> {
        if self.object.size == 0 {
            return Ok(None);
        }
        let is_start = self.at.offset == 0;
        let probe = match self.reader.format.kind {
            Format::Csv => HEADER_PROBE,
            Format::Ndjson => START_PROBE,
        };
        let is_probe = !is_start && probe < self.object.size;
        let mut content = self.start(if is_probe { probe } else { self.object.size }).await?;
        if is_probe && content.is_compressed() {
            // There is no way to begin within: it is decompressed up to there.
            content = self.start(self.object.size).await?;
        }
        let mut cursor = Cursor::at(ObjectPosition::start_of(self.at.object));
        let header = match self.reader.format.kind {
            Format::Csv => match csv::read_header(&mut content, &mut cursor).await {
                Ok(Some(header)) => Some(header),
                Ok(None) => return Ok(None),
                Err(HeaderError::Content(error)) => return Err(error.at(&self.shown(), spot(cursor.place()))),
                Err(HeaderError::Parse(error)) => return Err(self.fault(error)),
            },
            Format::Ndjson => {
                let skipped = csv::skip_bom(&mut content, &mut cursor).await;
                skipped.map_err(|error| error.at(&self.shown(), spot(cursor.place())))?;
                None
            }
        };
        let header_at = header.as_ref().map_or(cursor.place(), |header| header.at);
        let source = Arc::new(Source { name: self.shown(), columns: header.map(|header| header.columns) });
        if let Some(lacking) = source.lacks(self.reader.needed.iter().map(String::as_str)) {
            return Err(self.fault(ParseError::at(header_at, Fault::NoColumn(lacking))));
        }
        // A place within the header has no record before it either: then the records begin behind it.
        let ahead = self.at.offset.saturating_sub(cursor.place().offset);
        if is_probe && !content.is_compressed() {
            content = self.plain_from(cursor.place().offset + ahead).await?;
        } else if !content.skip(ahead).await.map_err(|error| error.at(&self.shown(), spot(self.at)))? {
            return Err(self.too_short());
        }
        if ahead > 0 {
            cursor = Cursor::at(self.at);
        }
        let end = self.reader.end_of(self.at.object);
        let stop = if end.object == self.at.object { end.offset } else { u64::MAX };
        let parser = match &source.columns {
            Some(columns) => Parser::Csv(Box::new(CsvParser::new(columns.len(), cursor, stop))),
            None => Parser::Ndjson(NdjsonParser::new(cursor.place(), stop)),
        };
        Ok(Some(Open { name: self.shown(), source, content, parser, end }))
    }

    fn shown(&self) -> String {
        self.name.to_string()
    }

    fn fault(&self, error: ParseError) -> InputError {
        InputError::input(&self.name, Some(error.at), error.fault)
    }

    /// The content from its start, of which no more than `bytes` as stored are asked for.
    async fn start(&self, bytes: u64) -> Result<Content, InputError> {
        let size = self.object.size.min(bytes);
        let range = (size < self.object.size).then_some(0..size);
        let reader = self.reader.objects.get(&self.name, range, Some(&self.object.etag)).await?;
        let content = Content::open(&self.name, reader, size, self.reader.format.compression).await;
        content.map_err(|error| error.at(&self.shown(), spot(ObjectPosition::start_of(self.at.object))))
    }

    /// The content of an object that isn't compressed, from this byte.
    async fn plain_from(&self, offset: u64) -> Result<Content, InputError> {
        let size = self.object.size;
        let Some(rest) = size.checked_sub(offset) else { return Err(self.too_short()) };
        let reader = self.reader.objects.get(&self.name, Some(offset..size), Some(&self.object.etag)).await?;
        Ok(Content::plain(&self.name, reader, rest))
    }

    fn too_short(&self) -> InputError {
        InputError::input(&self.name, Some(spot(self.at)), Fault::TooShort)
    }
}

/// How the filling of a chunk ended.
enum Filled {
    Full,
    Ended,
}

impl Open {
    async fn fill(&mut self, sink: &mut Sink) -> Result<Filled, InputError> {
        loop {
            match self.content.fill().await {
                Ok(true) => {}
                Ok(false) => {
                    self.parser.finish(sink, self.end).map_err(|error| self.fault(error))?;
                    return Ok(Filled::Ended);
                }
                Err(error) => return Err(error.at(&self.name, spot(self.parser.place()))),
            }
            let fed = self.parser.feed(self.content.data(), sink).map_err(|error| self.fault(error))?;
            self.content.consume(fed.used);
            if fed.stopped {
                return Ok(Filled::Ended);
            }
            if sink.is_full() {
                return Ok(Filled::Full);
            }
        }
    }

    fn fault(&self, error: ParseError) -> InputError {
        InputError::input(&self.name, Some(error.at), error.fault)
    }
}

impl Parser {
    fn feed(&mut self, input: &[u8], sink: &mut Sink) -> Result<Fed, ParseError> {
        match self {
            Self::Csv(parser) => parser.feed(input, sink),
            Self::Ndjson(parser) => parser.feed(input, sink),
        }
    }

    fn finish(&mut self, sink: &mut Sink, end: ObjectPosition) -> Result<(), ParseError> {
        match self {
            Self::Csv(parser) => parser.finish(sink, end),
            Self::Ndjson(parser) => parser.finish(sink, end),
        }
    }

    fn place(&self) -> ObjectPosition {
        match self {
            Self::Csv(parser) => parser.place(),
            Self::Ndjson(parser) => parser.place(),
        }
    }
}
