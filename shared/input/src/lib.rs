//! Listing, manifests and record-exact readers of shardcron's inputs.
//!
//! [`list_objects`] finds what a location holds, [`Manifest::build`] freezes it as a boundary and cuts it into shards,
//! and [`ShardReader`] reads a shard's records from any place between two of them: the manifest is data and pure, the
//! reader streams and holds no more than a block, a record and a chunk.

mod content;
mod csv;
mod cut;
mod error;
mod format;
mod gunzip;
mod items;
mod listing;
mod manifest;
mod ndjson;
mod plans;
mod quotes;
mod reader;
mod sink;

#[cfg(test)]
mod tests;

pub use cut::{cuts_of, is_cut_within, record_start};
pub use error::{Fault, HeaderFault, InputError, InputFault, Spot};
pub use format::{Compression, InputFormat};
pub use gunzip::CompressedFault;
pub use items::ItemReader;
pub use listing::list_objects;
pub use manifest::{
    BoundaryKind, Built, EncodedPage, MANIFEST_VERSION, Manifest, ManifestError, ManifestHead, ManifestObject,
    ManifestPage, PageRef, ShardPlan,
};
pub use plans::{Cut, Cuttable, cut_items, cut_keys, cut_objects};
pub use reader::ShardReader;
