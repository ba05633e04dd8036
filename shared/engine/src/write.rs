//! Writes, settled: a request is built once and sent until its outcome is definite.
//!
//! An answer can be lost, transactions can meet, and the store can ask for patience. None of that is the caller's
//! business: it learns that its write was applied, or what is there instead. A refusal by an item that carries this
//! very write's id is an application whose answer was lost.

use shardcron_domain::ids::WriteId;
use shardcron_domain::limits::{
    RACE_PAUSE_BASE, RACE_PAUSE_MAX, RACES_MAX, WRITE_PAUSE_BASE, WRITE_PAUSE_MAX, WRITE_TRIES_MAX,
};
use shardcron_domain::pause::full_jitter;
use shardcron_domain::time::{Duration, Millis};
use shardcron_store::{Guard, Item, ItemOutcome, Put, SetAdd, StoreError, Transacted, Written};

use crate::Engine;
use crate::error::EngineError;

/// How long a write may be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// [`WRITE_TRIES_MAX`] times.
    Tries,
    /// [`RACES_MAX`] times, with longer pauses: a command, which many may give at once, and which nobody gives again by
    /// itself.
    Races,
    /// As long as the writer's lease lasts.
    Until(Millis),
}

/// Whether what is there is what we tried to write.
fn is_mine(mine: &Item, found: &Item) -> bool {
    match (mine.write_id(), found.write_id()) {
        (Some(mine), Some(found)) => mine == found,
        // Items without a write id are written once and whole: an equal one is as good as ours.
        _ => mine == found,
    }
}

impl Engine {
    pub(crate) async fn put(&self, item: Item, guard: Guard, patience: Patience) -> Result<Written, EngineError> {
        let put = Put { item, guard };
        let key = put.item.key();
        for tried in 0.. {
            let last;
            match self.store.put(put.clone()).await {
                Ok(Written::Lost(found)) if is_mine(&put.item, &found) => return Ok(Written::Applied),
                Ok(written) => return Ok(written),
                Err(error @ StoreError::Unknown { .. }) => {
                    if let Ok(Some(found)) = self.store.get(&key).await
                        && is_mine(&put.item, &found)
                    {
                        return Ok(Written::Applied);
                    }
                    last = error;
                }
                Err(error @ (StoreError::Conflict { .. } | StoreError::Throttled { .. })) => last = error,
                Err(error) => return Err(error.into()),
            }
            self.pause_before_resending(tried, patience, &key.to_string(), last).await?;
        }
        unreachable!("the pause ends the loop by an error")
    }

    /// Writes all or none. The first of `puts` must be an item with a write id: by it the whole is known again.
    pub(crate) async fn transact(
        &self,
        puts: Vec<Put>,
        token: &WriteId,
        patience: Patience,
    ) -> Result<Transacted, EngineError> {
        let first = puts[0].item.clone();
        let key = first.key();
        for tried in 0.. {
            let last;
            match self.store.transact(puts.clone(), token).await {
                Ok(Transacted::Refused(outcomes)) => {
                    let mine = matches!(&outcomes[0], ItemOutcome::Lost(found) if is_mine(&first, found));
                    return Ok(if mine { Transacted::Applied } else { Transacted::Refused(outcomes) });
                }
                Ok(Transacted::Applied) => return Ok(Transacted::Applied),
                Err(error @ StoreError::Unknown { .. }) => {
                    if let Ok(Some(found)) = self.store.get(&key).await
                        && is_mine(&first, &found)
                    {
                        return Ok(Transacted::Applied);
                    }
                    last = error;
                }
                Err(error @ (StoreError::Conflict { .. } | StoreError::Throttled { .. })) => last = error,
                Err(error) => return Err(error.into()),
            }
            self.pause_before_resending(tried, patience, &key.to_string(), last).await?;
        }
        unreachable!("the pause ends the loop by an error")
    }

    /// Adds to a set; repeating it is harmless, so an unknown outcome is simply tried again.
    pub(crate) async fn add(&self, add: SetAdd) -> Result<Written, EngineError> {
        for tried in 0.. {
            let last = match self.store.add(add.clone()).await {
                Ok(written) => return Ok(written),
                Err(
                    error @ (StoreError::Unknown { .. } | StoreError::Conflict { .. } | StoreError::Throttled { .. }),
                ) => error,
                Err(error) => return Err(error.into()),
            };
            self.pause_before_resending(tried, Patience::Tries, "an addition to a done set", last).await?;
        }
        unreachable!("the pause ends the loop by an error")
    }

    /// Waits before a command that has lost to another writer in so many rounds is decided anew; the first isn't waited
    /// for.
    pub(crate) async fn pause_after_races(&self, lost: u32) {
        if lost > 0 {
            self.pause_with_jitter(lost - 1, RACE_PAUSE_BASE, RACE_PAUSE_MAX).await;
        }
    }

    async fn pause_with_jitter(&self, tried: u32, base: Duration, max: Duration) {
        self.clock.sleep(full_jitter(base, tried, max, self.random.next())).await;
    }

    async fn pause_before_resending(
        &self,
        tried: u32,
        patience: Patience,
        what: &str,
        last: StoreError,
    ) -> Result<(), EngineError> {
        let over = match patience {
            Patience::Tries => tried + 1 >= WRITE_TRIES_MAX,
            Patience::Races => tried + 1 >= RACES_MAX,
            Patience::Until(until) => !self.clock.now().is_surely_before(until),
        };
        if over {
            return Err(EngineError::Unsettled { what: what.to_owned(), last: Some(Box::new(last)) });
        }
        let (base, max) = match patience {
            Patience::Races => (RACE_PAUSE_BASE, RACE_PAUSE_MAX),
            Patience::Tries | Patience::Until(_) => (WRITE_PAUSE_BASE, WRITE_PAUSE_MAX),
        };
        self.pause_with_jitter(tried, base, max).await;
        Ok(())
    }
}
