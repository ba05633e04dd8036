//! The shardcron command.
