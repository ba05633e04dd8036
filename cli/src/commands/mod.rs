//! The commands, a file each.

pub(crate) mod audit;
pub(crate) mod backfill;
pub(crate) mod completions;
pub(crate) mod describe;
pub(crate) mod effects;
pub(crate) mod files;
pub(crate) mod host;
pub(crate) mod list;
pub(crate) mod local_run;
pub(crate) mod next;
pub(crate) mod operate;
pub(crate) mod rejects;
pub(crate) mod results;
pub(crate) mod schema;
pub(crate) mod summary;
pub(crate) mod verify;
pub(crate) mod version;
pub(crate) mod watch;
