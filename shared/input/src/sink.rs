//! What the parsers of all formats share: where they are, and the chunk that they fill.

use std::sync::Arc;

use shardcron_domain::boundary::{ObjectPosition, Position};
use shardcron_domain::limits;
use shardcron_domain::record::{Chunk, Source};

use crate::error::{Fault, Spot};

/// A chunk that is being filled.
pub(crate) struct Sink {
    pub(crate) chunk: Chunk,
    /// Bytes of input that its records are made of.
    weight: usize,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: ObjectPosition,
    /// Where the next record begins.
    pub(crate) to: ObjectPosition,
}

impl Span {
    fn ends(self) -> (Position, Position, u64) {
        (Position::Object(self.from), Position::Object(self.to), self.from.line_number())
    }
}

impl Sink {
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self { chunk: Chunk::new(source), weight: 0 }
    }

    /// Whether it has as much as a chunk may have.
    pub(crate) fn is_full(&self) -> bool {
        self.chunk.len() >= limits::CHUNK_RECORDS_MAX || self.weight >= limits::CHUNK_BYTES_MAX
    }

    pub(crate) fn row<'f>(&mut self, span: Span, bytes: u64, fields: impl Iterator<Item = &'f str>) {
        let (from, to, line) = span.ends();
        self.chunk.push_row(from, to, line, fields);
        self.weight += bytes as usize;
    }

    pub(crate) fn named(&mut self, span: Span, bytes: u64, fields: Vec<(String, Option<String>)>) {
        let (from, to, line) = span.ends();
        self.chunk.push_named(from, to, line, fields);
        self.weight += bytes as usize;
    }

    pub(crate) fn malformed(&mut self, span: Span, bytes: u64, why: String) {
        let (from, to, line) = span.ends();
        self.chunk.push_malformed(from, to, line, why);
        self.weight += bytes as usize;
    }
}

/// How a parser's step ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fed {
    /// Bytes of the input that it took.
    pub(crate) used: usize,
    /// Whether it has met the place where it is to stop.
    pub(crate) stopped: bool,
}

/// A fault, and the place of the record that has it.
#[derive(Debug)]
pub(crate) struct ParseError {
    pub(crate) at: Spot,
    pub(crate) fault: Fault,
}

impl ParseError {
    pub(crate) fn at(place: ObjectPosition, fault: Fault) -> Self {
        Self { at: spot(place), fault }
    }
}

pub(crate) fn spot(place: ObjectPosition) -> Spot {
    Spot { line: place.line_number(), offset: place.offset }
}
