//! The shard function: leases a shard, works on it, commits batch by batch.

pub mod handler;
