//! NDJSON: one JSON object a line.
//!
//! - A line ends at LF; a CR before it is white space, as everywhere in JSON. Lines of nothing but white space are no
//!   records; they lie before the next one, whose line's start is the end of the record before it.
//! - Fields are text: a string unescaped, a number with the digits that it has, `true` and `false`, a nested object or
//!   array as the JSON that stands there; `null` is no text.
//! - A line that isn't one JSON object, or has a key twice, is malformed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use shardcron_domain::boundary::ObjectPosition;
use shardcron_domain::limits;

use crate::error::Fault;
use crate::sink::{Fed, ParseError, Sink, Span};

type Fields = Vec<(String, Option<String>)>;

/// A parser of lines.
pub(crate) struct NdjsonParser {
    /// Where the line begins that `line` has the beginning of.
    place: ObjectPosition,
    line: Vec<u8>,
    pending: Option<Pending>,
    /// Records that begin here or later are another's.
    stop: u64,
}

/// A record whose end isn't known before the next one begins.
struct Pending {
    from: ObjectPosition,
    bytes: u64,
    body: Result<Fields, String>,
}

impl NdjsonParser {
    pub(crate) fn new(place: ObjectPosition, stop: u64) -> Self {
        Self { place, line: Vec::new(), pending: None, stop }
    }

    pub(crate) fn place(&self) -> ObjectPosition {
        self.place
    }

    /// Takes input and adds the records that end in it, up to where the chunk is full.
    pub(crate) fn feed(&mut self, input: &[u8], sink: &mut Sink) -> Result<Fed, ParseError> {
        let mut used = 0;
        while used < input.len() {
            if sink.is_full() {
                return Ok(Fed { used, stopped: false });
            }
            let rest = &input[used..];
            let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(rest);
                self.check_length(without_cr(&self.line).len(), sink)?;
                used = input.len();
                break;
            };
            used += length + 1;
            let stopped = if self.line.is_empty() {
                self.take_line(&rest[..length], sink)?
            } else {
                self.line.extend_from_slice(&rest[..length]);
                let line = std::mem::take(&mut self.line);
                let stopped = self.take_line(&line, sink)?;
                self.line = line;
                self.line.clear();
                stopped
            };
            if stopped {
                return Ok(Fed { used, stopped });
            }
        }
        Ok(Fed { used, stopped: false })
    }

    /// Adds what the end of the input makes whole; `end` is the place that it stands for.
    pub(crate) fn finish(&mut self, sink: &mut Sink, end: ObjectPosition) -> Result<(), ParseError> {
        let line = std::mem::take(&mut self.line);
        self.take_line(&line, sink)?;
        self.flush(sink, end);
        Ok(())
    }

    /// Takes a line without its LF; gives whether it is another's.
    fn take_line(&mut self, line: &[u8], sink: &mut Sink) -> Result<bool, ParseError> {
        let from = self.place;
        let is_blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        if !is_blank {
            self.check_length(without_cr(line).len(), sink)?;
            self.flush(sink, ObjectPosition { offset: from.offset.min(self.stop), ..from });
            if from.offset >= self.stop {
                return Ok(true);
            }
            self.pending = Some(Pending { from, bytes: line.len() as u64, body: fields_of(line) });
        }
        self.place.offset += line.len() as u64 + 1;
        self.place.line = self.place.line.saturating_add(1);
        Ok(false)
    }

    fn check_length(&mut self, length: usize, sink: &mut Sink) -> Result<(), ParseError> {
        if length <= limits::RECORD_BYTES_MAX {
            return Ok(());
        }
        self.flush(sink, self.place);
        Err(ParseError::at(self.place, Fault::RecordTooLong))
    }

    fn flush(&mut self, sink: &mut Sink, to: ObjectPosition) {
        let Some(Pending { from, bytes, body }) = self.pending.take() else { return };
        let span = Span { from, to };
        match body {
            Ok(fields) => sink.named(span, bytes, fields),
            Err(why) => sink.malformed(span, bytes, why),
        }
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn fields_of(line: &[u8]) -> Result<Fields, String> {
    let text = str::from_utf8(line).map_err(|error| format!("its byte {} isn't UTF-8 text", error.valid_up_to()))?;
    let Object(fields) = serde_json::from_str(text).map_err(|error| reason(&error))?;
    let mut keys: Vec<&str> = fields.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("it has the key `{}` twice", pair[0])),
        None => Ok(fields),
    }
}

/// serde_json's words, without its line, which is always 1 here.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.rfind(" at line ").map_or(text.as_str(), |at| &text[..at]);
    match error.column() {
        0 => words.to_owned(),
        column => format!("{words} (column {column})"),
    }
}

/// A JSON object as fields of text.
struct Object(Fields);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut fields = Fields::new();
        while let Some(key) = map.next_key::<String>()? {
            let raw = map.next_value::<&RawValue>()?.get();
            let value = match raw.as_bytes().first() {
                Some(b'"') => Some(serde_json::from_str::<String>(raw).map_err(|error| {
                    A::Error::custom(format_args!("the value of `{key}` isn't text: {}", reason(&error)))
                })?),
                Some(b'n') => None,
                _ => Some(raw.to_owned()),
            };
            fields.push((key, value));
        }
        Ok(Object(fields))
    }
}
