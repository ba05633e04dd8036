//! Chance, from the operating system's generator.

use shardcron_engine::ports::Random;

/// Random numbers that no two processes share.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl Random for OsRandom {
    #[expect(clippy::disallowed_methods, reason = "this is where randomness is drawn")]
    fn next(&self) -> u64 {
        rand::random()
    }
}
