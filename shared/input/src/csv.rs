//! CSV (RFC 4180), with a header: csv-core's reading of fields, and our count of places around it.
//!
//! - A record ends at LF, CR LF or a lone CR outside quotes. Within quotes all bytes are kept, a doubled quote as one.
//! - Empty lines are no records, wherever they stand, as csv-core has it; a line of spaces is one. They lie before the
//!   next record: a record's end is where the next one begins.
//! - A quote within a field that doesn't begin with one is text, as csv-core has it: nothing of it is lost. Text after a
//!   closing quote makes a record malformed: csv-core would drop the quotes, and what was meant isn't known.
//! - A record with another number of fields than the header, or that isn't UTF-8, is malformed.
//! - A quote that isn't closed is an error of the object, since any number of records may be in it.
//! - Lines are counted as an editor does: each LF, CR LF and lone CR ends one, within quotes too.

use csv_core::ReadRecordResult;
use shardcron_domain::boundary::ObjectPosition;
use shardcron_domain::limits;

use crate::content::{Content, ContentError};
use crate::error::{Fault, HeaderFault};
use crate::quotes::{MISQUOTED, Quotes};
use crate::sink::{Fed, ParseError, Sink, Span};

const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Where the next byte of the content is, and whether the one before it was a CR.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    place: ObjectPosition,
    after_cr: bool,
}

impl Cursor {
    pub(crate) fn at(place: ObjectPosition) -> Self {
        Self { place, after_cr: false }
    }

    pub(crate) fn place(&self) -> ObjectPosition {
        self.place
    }

    fn advance(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let count = |byte: u8| bytes.iter().filter(|other| **other == byte).count();
        let mut lines = count(b'\n');
        // The LF of a CR LF ends no second line.
        lines -= usize::from(self.after_cr && bytes[0] == b'\n');
        let returns = count(b'\r');
        if returns > 0 {
            lines += returns - bytes.windows(2).filter(|pair| pair == b"\r\n").count();
        }
        self.place.line += lines as u64;
        self.place.offset += bytes.len() as u64;
        self.after_cr = *last == b'\r';
    }
}

/// The fields of one record, filled by as many pieces of input as it takes.
struct Fields {
    core: csv_core::Reader,
    text: Vec<u8>,
    text_len: usize,
    ends: Vec<usize>,
    ends_len: usize,
    /// Fields beyond those that `ends` has room for, if that isn't to grow.
    beyond: usize,
    may_grow: bool,
    quotes: Quotes,
}

impl Fields {
    /// For records of so many fields, or of any number.
    fn new(expected: Option<usize>) -> Self {
        let mut core = csv_core::Reader::new();
        // Its first read would take a BOM away, which we do ourselves, and only at the start of an object.
        core.read_record(b"\n", &mut [0], &mut [0]);
        Self {
            core,
            text: vec![0; 1024],
            text_len: 0,
            // One more than expected, so that a record that fits never fills it.
            ends: vec![0; expected.unwrap_or(31) + 1],
            ends_len: 0,
            beyond: 0,
            may_grow: expected.is_none(),
            quotes: Quotes::default(),
        }
    }

    fn clear(&mut self) {
        self.text_len = 0;
        self.ends_len = 0;
        self.beyond = 0;
        self.quotes = Quotes::default();
    }

    /// Takes bytes of a record, of which there must be some; gives how many, and whether the record ended with them.
    fn read(&mut self, input: &[u8]) -> (usize, bool) {
        let (used, is_whole) = self.read_core(input);
        self.quotes.take(&input[..used]);
        (used, is_whole)
    }

    fn read_core(&mut self, input: &[u8]) -> (usize, bool) {
        let mut used = 0;
        loop {
            let (result, read, text, ends) =
                self.core.read_record(&input[used..], &mut self.text[self.text_len..], &mut self.ends[self.ends_len..]);
            used += read;
            self.text_len += text;
            self.ends_len += ends;
            match result {
                ReadRecordResult::Record => return (used, true),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return (used, false),
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if self.may_grow => self.ends.resize(self.ends.len() * 2, 0),
                // It is malformed already: only their number still counts.
                ReadRecordResult::OutputEndsFull => {
                    self.beyond += self.ends_len;
                    self.ends_len = 0;
                }
            }
        }
    }

    fn count(&self) -> usize {
        self.beyond + self.ends_len
    }

    /// The fields as text, unless one of them isn't: the error is its place, from 0.
    fn texts(&self) -> Result<impl Iterator<Item = &str>, usize> {
        let ends = &self.ends[..self.ends_len];
        let bytes = &self.text[..self.text_len];
        // Valid as a whole isn't enough: a character could be cut by a comma.
        let text = match str::from_utf8(bytes) {
            Ok(text) if ends.iter().all(|end| text.is_char_boundary(*end)) => text,
            _ => return Err(self.first_invalid()),
        };
        Ok(ranges(ends).map(move |(start, end)| &text[start..end]))
    }

    fn first_invalid(&self) -> usize {
        let is_invalid = |(start, end): (usize, usize)| str::from_utf8(&self.text[start..end]).is_err();
        ranges(&self.ends[..self.ends_len]).position(is_invalid).unwrap_or(0)
    }
}

fn ranges(ends: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends.iter().copied())
}

/// How many bytes of line ends the input begins with.
fn line_ends(input: &[u8]) -> usize {
    input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

/// Why there are no columns.
#[derive(Debug)]
pub(crate) enum HeaderError {
    Content(ContentError),
    Parse(ParseError),
}

/// Passes over a byte order mark at the start of an object.
pub(crate) async fn skip_bom(content: &mut Content, cursor: &mut Cursor) -> Result<(), ContentError> {
    if content.at_least(BOM.len()).await?.starts_with(&BOM) {
        content.consume(BOM.len());
        cursor.place.offset += BOM.len() as u64;
    }
    Ok(())
}

/// An object's header.
pub(crate) struct Header {
    /// Where it begins: behind a byte order mark and empty lines.
    pub(crate) at: ObjectPosition,
    pub(crate) columns: Vec<String>,
}

/// Reads the header from the start of an object, and leaves the content and the cursor behind it. `None` when there is
/// nothing but empty lines.
pub(crate) async fn read_header(content: &mut Content, cursor: &mut Cursor) -> Result<Option<Header>, HeaderError> {
    skip_bom(content, cursor).await.map_err(HeaderError::Content)?;
    let mut fields = Fields::new(None);
    let mut start = None;
    loop {
        if !content.fill().await.map_err(HeaderError::Content)? {
            break;
        }
        if start.is_none() {
            let blank = line_ends(content.data());
            cursor.advance(&content.data()[..blank]);
            content.consume(blank);
            if content.data().is_empty() {
                continue;
            }
        }
        let from = *start.get_or_insert(cursor.place);
        let (used, is_whole) = fields.read(content.data());
        cursor.advance(&content.data()[..used]);
        content.consume(used);
        if cursor.place.offset > limits::HEADER_BYTES_MAX as u64 {
            return Err(header_error(from, HeaderFault::TooLong));
        }
        if is_whole {
            return header(&fields, from).map(Some);
        }
    }
    let Some(from) = start else { return Ok(None) };
    match fields.read(b"\n") {
        (_, true) => header(&fields, from).map(Some),
        (_, false) => Err(header_error(from, HeaderFault::UnclosedQuote)),
    }
}

fn header_error(from: ObjectPosition, fault: HeaderFault) -> HeaderError {
    HeaderError::Parse(ParseError::at(from, Fault::Header(fault)))
}

fn header(fields: &Fields, at: ObjectPosition) -> Result<Header, HeaderError> {
    let refused = |fault| Err(header_error(at, fault));
    if fields.quotes.are_broken() {
        return refused(HeaderFault::Misquoted);
    }
    let columns: Vec<String> = match fields.texts() {
        Ok(texts) => texts.map(str::to_owned).collect(),
        Err(_) => return refused(HeaderFault::NotUtf8),
    };
    if columns.iter().any(|column| column.contains('\0')) {
        return refused(HeaderFault::Nul);
    }
    let mut sorted: Vec<&String> = columns.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => refused(HeaderFault::Duplicate(pair[0].clone())),
        None => Ok(Header { at, columns }),
    }
}

/// A parser of the records after the header.
pub(crate) struct CsvParser {
    columns: usize,
    cursor: Cursor,
    fields: Fields,
    /// Where the record begins that `fields` has, or has the beginning of.
    record: Option<Record>,
    /// Records that begin here or later are another's.
    stop: u64,
}

#[derive(Clone, Copy)]
struct Record {
    from: ObjectPosition,
    /// Bytes with its line's end, once it is whole.
    bytes: Option<u64>,
}

impl CsvParser {
    pub(crate) fn new(columns: usize, cursor: Cursor, stop: u64) -> Self {
        Self { columns, cursor, fields: Fields::new(Some(columns)), record: None, stop }
    }

    pub(crate) fn place(&self) -> ObjectPosition {
        self.cursor.place
    }

    /// Takes input and adds the records that end in it, up to where the chunk is full. A record is added when the next
    /// one begins, since that is its end.
    pub(crate) fn feed(&mut self, input: &[u8], sink: &mut Sink) -> Result<Fed, ParseError> {
        let mut used = 0;
        while used < input.len() {
            let from = match self.record {
                Some(Record { from, bytes: None }) => from,
                _ => {
                    let blank = line_ends(&input[used..]);
                    self.cursor.advance(&input[used..used + blank]);
                    used += blank;
                    if used == input.len() {
                        break;
                    }
                    let from = self.cursor.place;
                    self.flush(sink, ObjectPosition { offset: from.offset.min(self.stop), ..from });
                    let stopped = from.offset >= self.stop;
                    if stopped || sink.is_full() {
                        return Ok(Fed { used, stopped });
                    }
                    self.record = Some(Record { from, bytes: None });
                    from
                }
            };
            let (read, is_whole) = self.fields.read(&input[used..]);
            self.cursor.advance(&input[used..used + read]);
            used += read;
            let bytes = self.cursor.place.offset - from.offset;
            // Its line's end doesn't count: one byte, as the LF of a CR LF is taken with the empty lines.
            if bytes - u64::from(is_whole) > limits::RECORD_BYTES_MAX as u64 {
                return Err(ParseError::at(from, Fault::RecordTooLong));
            }
            if is_whole {
                self.record = Some(Record { from, bytes: Some(bytes) });
            }
        }
        Ok(Fed { used, stopped: false })
    }

    /// Adds what the end of the input makes whole; `end` is the place that it stands for.
    pub(crate) fn finish(&mut self, sink: &mut Sink, end: ObjectPosition) -> Result<(), ParseError> {
        if let Some(Record { from, bytes: None }) = self.record {
            // Within quotes a line's end is text: then the quote isn't closed.
            let (_, is_whole) = self.fields.read(b"\n");
            if !is_whole {
                return Err(ParseError::at(from, Fault::UnclosedQuote));
            }
            self.record = Some(Record { from, bytes: Some(self.cursor.place.offset - from.offset) });
        }
        self.flush(sink, end);
        Ok(())
    }

    /// Adds the record that is whole, if one is: it ends at `to`.
    fn flush(&mut self, sink: &mut Sink, to: ObjectPosition) {
        let Some(Record { from, bytes: Some(bytes) }) = self.record.take() else { return };
        let span = Span { from, to };
        let (found, expected) = (self.fields.count(), self.columns);
        if self.fields.quotes.are_broken() {
            sink.malformed(span, bytes, MISQUOTED.to_owned());
        } else if found != expected {
            let fields = if found == 1 { "field" } else { "fields" };
            sink.malformed(span, bytes, format!("it has {found} {fields}, and the header has {expected}"));
        } else {
            match self.fields.texts() {
                Ok(texts) => sink.row(span, bytes, texts),
                Err(place) => sink.malformed(span, bytes, format!("its field {} isn't UTF-8 text", place + 1)),
            }
        }
        self.fields.clear();
    }
}
