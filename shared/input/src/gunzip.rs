//! Decompressing gzip (RFC 1952) as its bytes come.
//!
//! The framing stands here, the inflating is flate2's: its own multi-member decoders pull from a reader, or take the
//! zeros that pad a tape's last block for a broken member, and none says at which compressed byte it failed.

use std::fmt;

use flate2::{Crc, Decompress, FlushDecompress, Status};

/// The first two bytes of a member.
pub(crate) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What can be wrong with a compressed object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressedFault {
    /// It doesn't begin as gzip does.
    #[error("it isn't gzip")]
    NotGzip,
    /// A member's header names what RFC 1952 doesn't define, or is damaged.
    #[error("the header of a gzip member is damaged ({0})")]
    Header(&'static str),
    /// The compressed data is damaged.
    #[error("the data is damaged ({0})")]
    Data(String),
    /// The content isn't the one that was compressed.
    #[error("the data is damaged (its {0} isn't the one that it was compressed with)")]
    Check(&'static str),
    /// It ends within a member.
    #[error("it is cut off within a gzip member")]
    Truncated,
    /// Something that is neither a member nor padding follows the last member.
    #[error("there is something after its end that is neither a gzip member nor padding with zeros")]
    Trailing,
}

/// A decoder of any number of members, and the zeros that may follow the last.
pub(crate) struct Gunzip {
    state: State,
    flags: u8,
    header: Crc,
    inflate: Decompress,
    content: Crc,
    /// What went wrong after content that was still to be handed over.
    fault: Option<CompressedFault>,
    /// Compressed bytes taken.
    pub(crate) taken: u64,
}

/// What the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The byte with this number of the ten that each member begins with.
    Fixed(u8),
    /// The length of the extra field: first its low byte.
    ExtraLength(Option<u8>),
    Extra(u16),
    Name,
    Comment,
    HeaderCheck(Option<u8>),
    Body,
    /// The byte with this number of the checksum and the length, with what came of them.
    Trailer(u8, u64),
    /// After a member.
    Between,
    Padding,
}

const FLAG_HEADER_CHECK: u8 = 1 << 1;
const FLAG_EXTRA: u8 = 1 << 2;
const FLAG_NAME: u8 = 1 << 3;
const FLAG_COMMENT: u8 = 1 << 4;
const FLAGS_RESERVED: u8 = 0b1110_0000;

impl Gunzip {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Fixed(0),
            flags: 0,
            header: Crc::new(),
            inflate: Decompress::new(false),
            content: Crc::new(),
            fault: None,
            taken: 0,
        }
    }

    /// Decodes until the output is full or the input used up; gives how much of each. With a full output it has to be
    /// called again, also without further input. A fault comes after the content before it, so that where it shows
    /// doesn't depend on the pieces of the input.
    pub(crate) fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), CompressedFault> {
        let (mut used, mut made) = (0, 0);
        while made < output.len() {
            if let Some(fault) = &self.fault {
                return if made > 0 { Ok((used, made)) } else { Err(fault.clone()) };
            }
            if self.state == State::Body {
                let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
                let flush = FlushDecompress::None;
                let status = self.inflate.decompress(&input[used..], &mut output[made..], flush);
                let read = (self.inflate.total_in() - read) as usize;
                let written = (self.inflate.total_out() - written) as usize;
                self.content.update(&output[made..made + written]);
                used += read;
                made += written;
                self.taken += read as u64;
                match status {
                    Ok(Status::StreamEnd) => self.state = State::Trailer(0, 0),
                    Ok(_) if read == 0 && written == 0 => break,
                    Ok(_) => {}
                    Err(error) => self.fault = Some(CompressedFault::Data(error.to_string())),
                }
            } else {
                let Some(byte) = input.get(used) else { break };
                used += 1;
                match self.framing(*byte) {
                    Ok(state) => self.state = state,
                    Err(fault) => self.fault = Some(fault),
                }
                self.taken += 1;
            }
        }
        Ok((used, made))
    }

    /// Whether it may end here.
    pub(crate) fn finish(&self) -> Result<(), CompressedFault> {
        match self.state {
            State::Between | State::Padding => Ok(()),
            _ => Err(CompressedFault::Truncated),
        }
    }

    /// Takes a byte of what stands around the compressed data, and gives what the next one is.
    fn framing(&mut self, byte: u8) -> Result<State, CompressedFault> {
        match self.state {
            State::Between | State::Padding if byte == 0 => return Ok(State::Padding),
            State::Between if byte == MAGIC[0] => {
                self.header.reset();
                self.state = State::Fixed(0);
            }
            State::Between | State::Padding => return Err(CompressedFault::Trailing),
            _ => {}
        }
        let is_header = !matches!(self.state, State::HeaderCheck(_) | State::Trailer(..));
        if is_header {
            self.header.update(&[byte]);
        }
        Ok(match self.state {
            State::Fixed(at) => {
                self.fixed(at, byte)?;
                if at < 9 { State::Fixed(at + 1) } else { self.after_fixed() }
            }
            State::ExtraLength(None) => State::ExtraLength(Some(byte)),
            State::ExtraLength(Some(low)) => match u16::from_le_bytes([low, byte]) {
                0 => self.after_extra(),
                length => State::Extra(length),
            },
            State::Extra(1) => self.after_extra(),
            State::Extra(left) => State::Extra(left - 1),
            State::Name if byte == 0 => self.after_name(),
            State::Comment if byte == 0 => self.after_comment(),
            State::HeaderCheck(None) => State::HeaderCheck(Some(byte)),
            State::HeaderCheck(Some(low)) => {
                // RFC 1952: the two low bytes of the header's CRC-32.
                if u16::from_le_bytes([low, byte]) != self.header.sum() as u16 {
                    return Err(CompressedFault::Header("its checksum doesn't fit"));
                }
                self.body()
            }
            State::Trailer(at, value) => self.trailer(at, value | u64::from(byte) << (8 * at))?,
            state @ (State::Name | State::Comment | State::Body | State::Between | State::Padding) => state,
        })
    }

    fn fixed(&mut self, at: u8, byte: u8) -> Result<(), CompressedFault> {
        let is_first = self.taken == u64::from(at);
        match at {
            0 | 1 if byte != MAGIC[usize::from(at)] => {
                Err(if is_first { CompressedFault::NotGzip } else { CompressedFault::Trailing })
            }
            2 if byte != 8 => Err(CompressedFault::Header("another method than deflate")),
            3 if byte & FLAGS_RESERVED != 0 => Err(CompressedFault::Header("a reserved flag is set")),
            3 => {
                self.flags = byte;
                Ok(())
            }
            // The time, hints and the system that it was compressed on.
            _ => Ok(()),
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn after_fixed(&mut self) -> State {
        if self.has(FLAG_EXTRA) { State::ExtraLength(None) } else { self.after_extra() }
    }

    fn after_extra(&mut self) -> State {
        if self.has(FLAG_NAME) { State::Name } else { self.after_name() }
    }

    fn after_name(&mut self) -> State {
        if self.has(FLAG_COMMENT) { State::Comment } else { self.after_comment() }
    }

    fn after_comment(&mut self) -> State {
        if self.has(FLAG_HEADER_CHECK) { State::HeaderCheck(None) } else { self.body() }
    }

    fn body(&mut self) -> State {
        self.inflate.reset(false);
        self.content.reset();
        State::Body
    }

    /// `value`: what has come of the CRC-32 and, above it, the content's length modulo 2^32.
    fn trailer(&self, at: u8, value: u64) -> Result<State, CompressedFault> {
        if at < 7 {
            return Ok(State::Trailer(at + 1, value));
        }
        if value as u32 != self.content.sum() {
            return Err(CompressedFault::Check("checksum"));
        }
        if (value >> 32) as u32 != self.content.amount() {
            return Err(CompressedFault::Check("length"));
        }
        Ok(State::Between)
    }
}

impl fmt::Debug for Gunzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gunzip").field("state", &self.state).field("taken", &self.taken).finish_non_exhaustive()
    }
}
