//! What csv-core lets pass of a record's quotes: text after a closing one.

/// What is wrong with a record whose quotes are broken.
pub(crate) const MISQUOTED: &str = "it has text after a closing quote; within quotes, a quote is written twice";

/// The quotes of one record, as far as it has been read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quotes {
    state: State,
    are_broken: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// A field begins.
    #[default]
    Start,
    /// In a field that doesn't begin with a quote: there, quotes are text.
    Plain,
    /// Within quotes.
    Quoted,
    /// Behind a quote within quotes: it closes them, or another one follows.
    Behind,
}

impl Quotes {
    /// Whether text follows a closing quote.
    pub(crate) fn are_broken(self) -> bool {
        self.are_broken
    }

    /// Takes the next bytes of the record, with its end if they have it.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        match self.state {
            // Most records have no quote: of those only how the bytes end can matter.
            State::Start | State::Plain if !bytes.contains(&b'"') => {
                self.state = if *last == b',' { State::Start } else { State::Plain };
            }
            _ => bytes.iter().for_each(|byte| self.step(*byte)),
        }
    }

    fn step(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Start | State::Behind, b'"') => State::Quoted,
            (State::Quoted, b'"') => State::Behind,
            (State::Quoted, _) => State::Quoted,
            (_, b',') => State::Start,
            // The record's end.
            (_, b'\r' | b'\n') => State::Plain,
            (State::Behind, _) => {
                self.are_broken = true;
                State::Plain
            }
            (State::Start | State::Plain, _) => State::Plain,
        };
    }
}
