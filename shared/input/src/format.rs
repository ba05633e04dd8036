//! What the objects of an input are made of.

use serde::{Deserialize, Serialize};
use shardcron_domain::record::Format;

/// How the records stand in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InputFormat {
    /// The format of the content, after decompression.
    pub kind: Format,
    /// Whether the content is compressed.
    #[serde(default)]
    pub compression: Compression,
}

impl InputFormat {
    /// A format whose compression each object shows by itself.
    #[must_use]
    pub const fn new(kind: Format) -> Self {
        Self { kind, compression: Compression::Auto }
    }
}

/// Whether objects are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Each object by its own first bytes, whatever its key ends in: names lie, and `1f 8b` begins no text.
    #[default]
    Auto,
    /// None is.
    None,
    /// All are, with gzip (RFC 1952).
    Gzip,
}
