//! What an executor holds: a shard or a step of an instance, under a lease that is renewed while work goes on.

use std::future::Future;
use std::pin::pin;

use futures::future::{Either, select};
use shardcron_domain::ids::ShardKey;
use shardcron_domain::instance::Instance;
use shardcron_domain::lease::Lease;
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_domain::time::{Duration, Millis};
use shardcron_store::{Guard, Item, ItemOutcome, Put, Transacted, Written};

use crate::error::{EngineError, inconsistent};
use crate::events::{self, Event};
use crate::ports::stamp;
use crate::write::Patience;
use crate::{Delivery, Engine};

/// A shard under lease, as its owner last read or wrote it.
pub(crate) struct HeldShard {
    pub(crate) shard: Shard,
    pub(crate) delivery: Option<Delivery>,
}

/// A step of an instance under lease.
pub(crate) struct HeldStep {
    pub(crate) instance: Instance,
}

/// Something that can be held, and renewed.
pub(crate) trait Held: Send {
    /// Our lease, as we last wrote it.
    fn lease(&self) -> Option<&Lease>;

    /// Renews the lease.
    fn renew(&mut self, engine: &Engine) -> impl Future<Output = Result<(), EngineError>> + Send;
}

impl Engine {
    /// Does `work` while the lease on `held` is renewed whenever a third of it has passed since the write that made it, be
    /// that within this work or another. Both go on in this one task; when the lease is lost, the work is dropped where it
    /// stands.
    pub(crate) async fn keeping<T>(
        &self,
        held: &mut impl Held,
        work: impl Future<Output = T> + Send,
    ) -> Result<T, EngineError> {
        let mut work = pin!(work);
        loop {
            // From the lease's end and not from here: many short works in a row take as long as one.
            let due = held.lease().map_or(Millis(i64::MAX), Lease::renewal_due);
            let left = due.since(self.clock.now().at).max(Duration::ZERO);
            match select(work.as_mut(), pin!(self.clock.sleep(left))).await {
                Either::Left((value, _)) => return Ok(value),
                Either::Right(((), _)) => held.renew(self).await?,
            }
        }
    }
}

fn lease_end(shard: &Shard) -> Millis {
    match &shard.status {
        ShardStatus::Leased(lease) => lease.until,
        _ => Millis(i64::MIN),
    }
}

impl HeldShard {
    /// One owner write: `next` in the place of what we hold, together with rows of our own. On success we hold `next`.
    pub(crate) async fn write(&mut self, engine: &Engine, next: Shard, rows: Vec<Item>) -> Result<(), EngineError> {
        if !rows.is_empty() {
            let rides = rows.into_iter().map(|item| Put { item, guard: Guard::Rides });
            return self.transact(engine, next, rides.collect()).await;
        }
        let item = Item::Shard(Box::new(next.clone()));
        match engine.put(item, self.guard(engine), Patience::Until(lease_end(&self.shard))).await? {
            Written::Applied => {
                self.shard = next;
                Ok(())
            }
            Written::Lost(found) => Err(self.lost(engine, Some(*found))),
            Written::Missing => Err(self.lost(engine, None)),
        }
    }

    /// One owner write: `parent` in the place of what we hold, and the child that was cut from it.
    pub(crate) async fn write_with_child(
        &mut self,
        engine: &Engine,
        parent: Shard,
        child: Shard,
    ) -> Result<(), EngineError> {
        self.transact(engine, parent, vec![Put { item: Item::Shard(Box::new(child)), guard: Guard::Absent }]).await
    }

    async fn transact(&mut self, engine: &Engine, next: Shard, others: Vec<Put>) -> Result<(), EngineError> {
        let guard = self.guard(engine);
        let token = next.write_id.clone();
        let mut puts = vec![Put { item: Item::Shard(Box::new(next.clone())), guard }];
        puts.extend(others);
        match engine.transact(puts, &token, Patience::Until(lease_end(&self.shard))).await? {
            Transacted::Applied => {
                self.shard = next;
                Ok(())
            }
            Transacted::Refused(outcomes) => match outcomes.into_iter().next() {
                Some(ItemOutcome::Lost(found)) => Err(self.lost(engine, Some(*found))),
                Some(ItemOutcome::Held) => {
                    Err(inconsistent(format!("what is to be written with {} is there already", self.shard.key)))
                }
                Some(ItemOutcome::Missing) | None => Err(self.lost(engine, None)),
            },
        }
    }

    fn guard(&self, engine: &Engine) -> Guard {
        Guard::Owner { token: self.shard.token, version: self.shard.version, at: engine.clock.now().at }
    }

    /// Says who has the shard that we have lost.
    pub(crate) fn lost(&self, engine: &Engine, found: Option<Item>) -> EngineError {
        let key: &ShardKey = &self.shard.key;
        // Where the token is still ours, nobody has taken the shard: our lease has only run out.
        let (event, holder, token) = match found {
            Some(Item::Shard(found)) if found.token == self.shard.token => {
                (events::LEASE_OVER, "nobody has taken it, and our lease is over".to_owned(), Some(found.token))
            }
            Some(Item::Shard(found)) => (events::FENCED, holder(&found), Some(found.token)),
            _ => (events::FENCED, "its item is gone".to_owned(), None),
        };
        engine.events.emit(
            Event::of_shard(event, key)
                .with("holder", holder.clone())
                .with("ourToken", self.shard.token.0)
                .with("token", token.map_or(serde_json::Value::Null, |token| token.0.into())),
        );
        EngineError::ShardLost { shard: key.clone(), holder, ours: self.shard.token }
    }

    /// Lets the message that brought us here become visible again soon after our lease would end, so that a crash is
    /// taken over within about one lease. A hint, like the message: a failure is of no consequence.
    pub(crate) async fn keep_message_near(&self, engine: &Engine) {
        if let Some(delivery) = &self.delivery {
            let _ = engine.queue.set_visibility(delivery.queue, &delivery.receipt, engine.settings.lease).await;
        }
    }
}

/// Who has a shard, in words.
pub(crate) fn holder(shard: &Shard) -> String {
    match &shard.status {
        ShardStatus::Leased(lease) => {
            format!("{} owns it until {} under token {}", lease.owner, lease.until, shard.token)
        }
        ShardStatus::Pending => format!("nobody owns it, and its token is {}", shard.token),
        ShardStatus::Done => format!("it is done, under token {}", shard.token),
        ShardStatus::Failed(fault) => format!("it has failed under token {}: {}", shard.token, fault.summary()),
        ShardStatus::Fenced(_) => format!("it was fenced by token {}, since its instance is stopped", shard.token),
    }
}

impl Held for HeldShard {
    fn lease(&self) -> Option<&Lease> {
        match &self.shard.status {
            ShardStatus::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    async fn renew(&mut self, engine: &Engine) -> Result<(), EngineError> {
        let next = self.shard.heartbeat(&stamp(&*engine.clock, &*engine.random))?;
        self.write(engine, next, Vec::new()).await?;
        self.keep_message_near(engine).await;
        Ok(())
    }
}

impl HeldStep {
    /// Writes `next` in the place of what we hold. On success we hold `next`.
    pub(crate) async fn write(&mut self, engine: &Engine, next: Instance) -> Result<(), EngineError> {
        let patience = match &self.instance.lease {
            Some(lease) => Patience::Until(lease.until),
            None => Patience::Tries,
        };
        let item = Item::Instance(Box::new(next.clone()));
        let written = engine.put(item, Guard::Version(self.instance.version), patience).await?;
        self.settled(written, next)
    }

    /// Writes the instance's end in the place of what we hold, and passes its slot on.
    pub(crate) async fn end(&mut self, engine: &Engine, next: Instance) -> Result<(), EngineError> {
        let written = engine.write_end(&self.instance, next.clone()).await?;
        self.settled(written, next)
    }

    fn settled(&mut self, written: Written, next: Instance) -> Result<(), EngineError> {
        match written {
            Written::Applied => {
                self.instance = next;
                Ok(())
            }
            Written::Lost(found) => {
                let status = match &*found {
                    Item::Instance(found) => format!("{} under token {}", found.status.name(), found.token),
                    other => other.key().to_string(),
                };
                Err(EngineError::StepLost { instance: self.instance.id.clone(), status })
            }
            Written::Missing => {
                Err(EngineError::StepLost { instance: self.instance.id.clone(), status: "gone".to_owned() })
            }
        }
    }
}

impl Held for HeldStep {
    fn lease(&self) -> Option<&Lease> {
        self.instance.lease.as_ref()
    }

    async fn renew(&mut self, engine: &Engine) -> Result<(), EngineError> {
        let next = self.instance.heartbeat(&stamp(&*engine.clock, &*engine.random))?;
        self.write(engine, next).await
    }
}
