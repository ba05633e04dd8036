//! Configuration, clocks, randomness, telemetry and wiring: the one place where the outside world is read.

pub mod announce;
pub mod chance;
pub mod clock;
pub mod config;
pub mod messages;
pub mod telemetry;
pub mod wiring;
pub mod zones;

use std::sync::Arc;

use shardcron_domain::ids::JobName;
use shardcron_domain::time::Duration;
use shardcron_engine::{Budget, Engine, EngineError};
use shardcron_store::ItemKey;

use crate::clock::StorageClock;

/// The engine, and the clock that it reads.
#[derive(Clone)]
pub struct Runtime {
    /// The use-cases.
    pub engine: Engine,
    /// The storage clock.
    pub clock: Arc<StorageClock>,
}

impl Runtime {
    /// Anchors the storage clock anew, by a read of an item that isn't there. For the start of a process, and of an
    /// invocation that decides by the clock before it has read anything.
    ///
    /// # Errors
    /// When the store doesn't answer.
    pub async fn anchor(&self) -> Result<(), EngineError> {
        self.clock.anchor_anew();
        // Any answer will do; this one costs half a read unit.
        let nothing = "clock".parse::<JobName>().map_err(|error| EngineError::Inconsistent(error.to_string()))?;
        self.engine.store.get(&ItemKey::Job(nothing)).await?;
        if self.clock.is_anchored() {
            Ok(())
        } else {
            Err(EngineError::Inconsistent(
                "the store's answers carry no `Date` header; leases can't be kept by them".to_owned(),
            ))
        }
    }

    /// The budget of an invocation that the machine's clock ends at this number of milliseconds since 1970, as Lambda
    /// tells it.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "Lambda's deadline is on the machine's clock; only the rest is used")]
    pub fn budget_until(&self, deadline_ms: u64) -> Budget {
        use shardcron_engine::ports::Clock;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let left = Duration(i64::try_from(deadline_ms).unwrap_or(i64::MAX).saturating_sub(now));
        Budget { ends: Some(self.clock.now().at.plus(left)), stop: None }
    }
}
