//! Cross-crate tests of shardcron and the data they share.
