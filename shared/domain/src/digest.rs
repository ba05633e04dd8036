//! Digests: SHA-256, as text in lower-case hex.
//!
//! By them contents are named and known again: manifests, parts, snapshots, specs, effects, requests.

use sha2::{Digest, Sha256};

/// Digits of a whole digest: 256 bits, 4 a digit.
pub const DIGITS: usize = 64;

/// The digest of a content, in [`DIGITS`] digits.
#[must_use]
pub fn of(content: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(content))
}

/// The first half of a content's digest: 32 digits, 128 bits, as much as a random id has.
#[must_use]
pub fn half_of(content: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(content)[..DIGITS / 4])
}

/// Bytes as lower-case hex, two digits each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from(if four < 10 { b'0' + four } else { b'a' + four - 10 });
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// The digest of a content that comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct Running(Sha256);

impl Running {
    /// Takes the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all pieces, as [`of`] has it of the whole.
    #[must_use]
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST, FIPS 180-2, appendix B.1.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_digest_is_that_of_the_standard_whole_or_in_pieces() {
        let mut running = Running::default();
        running.add(b"a");
        running.add(b"");
        running.add(b"bc");
        assert_eq!((of("abc"), running.finish()), (ABC.to_owned(), ABC.to_owned()));
        assert_eq!((half_of("abc"), ABC.len()), (ABC[..32].to_owned(), DIGITS));
    }

    #[test]
    fn hex_has_two_digits_a_byte() {
        assert_eq!(hex(&[0x00, 0x0f, 0x9a, 0xff]), "000f9aff");
    }
}
