//! Listing, manifests and record-exact readers of shardcron's inputs.
//!
//! [`list_objects`] finds what a location holds, [`Manifest::build`] freezes it as a boundary and cuts it into shards,
//! and [`ShardReader`] reads a shard's records from any place between two of them: the manifest is data and pure, the
//! reader streams and holds no more than a block, a record and a chunk.

mod content;
mod csv;
mod error;
mod format;
mod gunzip;
mod listing;
mod manifest;
mod ndjson;
mod reader;
mod sink;

#[cfg(test)]
mod tests;

pub use error::{Fault, HeaderFault, InputError, InputFault, Spot};
pub use format::{Compression, InputFormat};
pub use gunzip::CompressedFault;
pub use listing::list_objects;
pub use manifest::{
    BoundaryKind, Built, EncodedPage, MANIFEST_VERSION, Manifest, ManifestError, ManifestHead, ManifestObject,
    ManifestPage, PageRef, ShardPlan, pack,
};
pub use reader::ShardReader;
