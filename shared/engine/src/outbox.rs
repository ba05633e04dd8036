//! The outbox of a shard: its effects go out in order, under the token of its present holder, each recorded in an owner's
//! write of the shard before the next one leaves.
//!
//! A holder first sends what older holders committed, then its own, commit by commit; and a shard is done only when
//! nothing waits. Before each request the holder looks at its own lease. It can be paused right after that look, so
//! that one request of a holder that has lost the shard may still arrive: a target that compares tokens refuses it, and
//! one that knows request ids again takes it for what it is. Nothing more leaves after it, since the outcome can't be
//! recorded any more.

mod error;

use std::collections::VecDeque;
use std::pin::pin;

use futures::future::{Either, select};
use shardcron_domain::instance::Instance;
use shardcron_domain::job::{EffectsSpec, OnRefused};
use shardcron_domain::limits::{
    COMMIT_ROWS_MAX, EFFECT_PAUSE_BASE, EFFECT_PAUSE_MAX, EFFECT_TRIES_MAX, SETTLE_PAUSE, SETTLE_READS_MAX,
};
use shardcron_domain::outbox::{Answer, Effect, EffectState, Meaning, OutboxRow};
use shardcron_domain::pause::full_jitter;
use shardcron_domain::shard::{OwnerError, Shard, ShardStatus};
use shardcron_domain::time::{Duration, Millis, Reading};
use shardcron_effects::Sender;
use shardcron_store::{Item, ItemKey, StoredEffect};
use shardcron_work::ShardWork;

use crate::apply::LoadedSpec;
use crate::error::{EngineError, inconsistent};
use crate::events::{self, Event};
use crate::held::HeldShard;
use crate::ports::stamp;
use crate::{Budget, Engine, Handled};

pub use self::error::TargetError;

/// How long a pause is at most before the holder looks whether it is to stop.
const LOOK: Duration = Duration::from_secs(1);

/// A shard's outbox in the hands of its present holder.
pub(crate) struct HeldOutbox {
    /// Rows that aren't settled, in order, as they were last read or written; empty before older holders' were read.
    waiting: VecDeque<OutboxRow>,
    /// Whether an older holder may have sent the next row.
    inherited: bool,
    /// When the last outcome was recorded, by whichever holder; `None` before that was looked up.
    recorded: Option<Millis>,
    /// Whether the target has our token.
    installed: bool,
    /// How often we have sent the next row.
    tries: u32,
    /// Whether we have sent anything.
    begun: bool,
    /// When the message that brought us here was last kept near.
    kept_near: Millis,
}

/// What a commit of this work asks to be sent.
pub(crate) fn effects_of(work: &dyn ShardWork) -> Result<Vec<Effect>, EngineError> {
    let effects = work.effects();
    if effects.len() > COMMIT_ROWS_MAX {
        let (asked, most) = (effects.len(), COMMIT_ROWS_MAX);
        return Err(inconsistent(format!("the work asks for {asked} effects, and there was room for {most}")));
    }
    effects.iter().try_for_each(Effect::check).map_err(inconsistent)?;
    Ok(effects)
}

impl HeldOutbox {
    /// The outbox of a shard that was just claimed.
    pub(crate) fn of(shard: &Shard) -> Self {
        Self {
            waiting: VecDeque::new(),
            inherited: !shard.outbox.is_drained(),
            recorded: (shard.outbox.settled == 0).then_some(Millis(i64::MIN)),
            installed: false,
            tries: 0,
            begun: false,
            kept_near: Millis(i64::MIN),
        }
    }

    /// Takes the effects of a commit: the shard as the commit writes it, and the items that join it.
    pub(crate) fn take(
        &mut self,
        next: Shard,
        effects: Vec<Effect>,
        spec: &LoadedSpec,
    ) -> Result<(Shard, Vec<Item>), EngineError> {
        let target = match &spec.spec.effects {
            Some(effects) => effects.target.as_str(),
            None if effects.is_empty() => return Ok((next, Vec::new())),
            None => return Err(inconsistent("the work asks for effects, and the job has no target for them")),
        };
        let (next, rows) = next.with_effects(effects, target)?;
        let key = &next.key;
        let items =
            rows.iter().map(|row| Item::Effect(StoredEffect { shard: key.clone(), row: row.clone() })).collect();
        self.waiting.extend(rows);
        Ok((next, items))
    }

    fn settled(&mut self) {
        self.waiting.pop_front();
        self.tries = 0;
        // One is in flight at a time, so an older holder has sent no other than the first that it left.
        self.inherited = false;
    }
}

impl Engine {
    /// Sends what waits in the outbox of a held shard. `None` when all of it is settled; else the shard was given back or
    /// its instance stopped.
    pub(crate) async fn drain(
        &self,
        held: &mut HeldShard,
        outbox: &mut HeldOutbox,
        instance: &Instance,
        spec: &LoadedSpec,
        budget: &Budget,
    ) -> Result<Option<Handled>, EngineError> {
        if held.shard.outbox.is_drained() {
            return Ok(None);
        }
        let Some(effects) = &spec.spec.effects else {
            return Err(inconsistent(format!("{} has effects, and its job no target for them", held.shard.key)));
        };
        if outbox.waiting.is_empty() {
            let shard = held.shard.clone();
            outbox.waiting = self.keeping(held, self.waiting_rows(&shard)).await??;
        }
        let before = held.shard.outbox;
        let timeout = Duration::from_secs(i64::from(effects.timeout_seconds));
        while let Some(row) = outbox.waiting.front().cloned() {
            let now = self.clock.now();
            if instance.is_past_deadline(now) {
                self.stop_past_deadline(instance).await?;
                return Ok(Some(Handled::Done));
            }
            // What wouldn't be answered in time isn't begun; the first is, or a short budget would never send anything.
            let answered = Reading { at: now.at.plus(timeout), ..now };
            if budget.is_over(if outbox.begun { answered } else { now }) {
                return self.give_back(held, instance).await.map(Some);
            }
            self.try_next(held, outbox, effects, row, budget).await?;
            self.keep_near(held, outbox).await;
        }
        let after = held.shard.outbox;
        self.events.emit(
            Event::of_shard(events::DRAINED, &held.shard.key)
                .with("effects", after.settled - before.settled)
                .with("refused", after.refused - before.refused),
        );
        Ok(None)
    }

    /// The end of a shard whose last commit left effects that are settled by now.
    pub(crate) async fn finish_drained(&self, held: &mut HeldShard) -> Result<(), EngineError> {
        let nothing = shardcron_domain::boundary::Range::new(held.shard.range.to(), held.shard.range.to());
        let stamp = stamp(&*self.clock, &*self.random);
        let next = held.shard.commit(&stamp, nothing.map_err(inconsistent)?, Default::default(), None, true)?;
        held.write(self, next, Vec::new()).await
    }

    /// The rows that aren't settled, once all of them are to be seen: the items of their commit become visible one by one.
    async fn waiting_rows(&self, shard: &Shard) -> Result<VecDeque<OutboxRow>, EngineError> {
        let (settled, rows) = (shard.outbox.settled, shard.outbox.rows);
        for _ in 0..SETTLE_READS_MAX {
            let (mut found, mut after) = (VecDeque::new(), None);
            loop {
                let page = self.store.effects(&shard.key, settled, after).await?;
                found.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            if found.iter().map(|row| row.no).eq(settled..rows) {
                return Ok(found);
            }
            self.clock.sleep(SETTLE_PAUSE).await;
        }
        Err(EngineError::Unseen(format!("the outbox of {} doesn't have its rows {settled} to {rows}", shard.key)))
    }

    /// Sends the next row once, and records what came of it. Where that is nothing definite, the pause before the next try
    /// is over on return.
    async fn try_next(
        &self,
        held: &mut HeldShard,
        outbox: &mut HeldOutbox,
        effects: &EffectsSpec,
        row: OutboxRow,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        let meaning = self.deliver(held, outbox, effects, &row).await?;
        let key = held.shard.key.clone();
        let told = |event| Event::of_shard(event, &key).with("requestId", row.request_id.as_str());
        let at = self.recorded_at(held, outbox, &row).await?;
        let next = row.after(&meaning, held.shard.token, at);
        match meaning {
            Meaning::Sent { .. } => {
                self.record(held, next, effects).await?;
                outbox.settled();
                Ok(())
            }
            Meaning::Refused { status, text } => {
                self.record(held, next, effects).await?;
                self.events.emit(told(events::EFFECT_REFUSED).with("status", status).with("error", text.clone()));
                if effects.on_refused == OnRefused::Record {
                    outbox.settled();
                    return Ok(());
                }
                Err(TargetError::Refused { target: effects.target.clone(), key: row.key, status, text }.into())
            }
            Meaning::Later { why, after } => self.pause(held, outbox, effects, why, after, budget).await,
            Meaning::Unknown { why, after } => {
                self.events.emit(told(events::EFFECT_UNKNOWN).with("error", why.clone()));
                self.record(held, next.clone(), effects).await?;
                if let Some(front) = outbox.waiting.front_mut() {
                    *front = next;
                }
                self.pause(held, outbox, effects, why, after, budget).await
            }
            Meaning::Unusable(why) => Err(TargetError::Unusable { target: effects.target.clone(), why }.into()),
            Meaning::Fenced(why) => {
                let found = self.store.get(&ItemKey::Shard(key.clone())).await?;
                match &found {
                    Some(Item::Shard(found)) if found.token == held.shard.token => {
                        let (target, token) = (effects.target.clone(), held.shard.token);
                        Err(TargetError::Ahead { target, shard: key.clone(), token, why }.into())
                    }
                    _ => Err(held.lost(self, found)),
                }
            }
        }
    }

    /// The time to record an outcome under: now, and never before that of the outcome before it, which was there when this
    /// effect went out. A clock's reading is the middle of what it can be, and moves back as answers of the store narrow
    /// that, or with another holder.
    async fn recorded_at(
        &self,
        held: &HeldShard,
        outbox: &mut HeldOutbox,
        row: &OutboxRow,
    ) -> Result<Millis, EngineError> {
        let before = match outbox.recorded {
            Some(before) => before,
            None => {
                let last = ItemKey::Effect(held.shard.key.clone(), held.shard.outbox.settled - 1);
                let last = self.store.get(&last).await?;
                let last =
                    last.and_then(|last| if let Item::Effect(last) = last { Some(last.row.state) } else { None });
                last.and_then(|state| state.learned_at()).unwrap_or(Millis(i64::MIN))
            }
        };
        let at = self.clock.now().at.max(before).max(row.state.learned_at().unwrap_or(before));
        outbox.recorded = Some(at);
        Ok(at)
    }

    /// One round with the target: our token, where it is to have that first; a question, where the row may have been sent
    /// before; the effect.
    async fn deliver(
        &self,
        held: &mut HeldShard,
        outbox: &mut HeldOutbox,
        effects: &EffectsSpec,
        row: &OutboxRow,
    ) -> Result<Meaning, EngineError> {
        let sender = Sender::of(&held.shard.key, held.shard.token);
        if effects.compares_tokens && !outbox.installed {
            let answer = self.answered(held, effects, self.effects.install(effects, &sender)).await?;
            match answer.meaning(true, false) {
                Meaning::Sent { .. } => outbox.installed = true,
                // Of the effect nothing has left.
                Meaning::Unknown { why, after } => return Ok(Meaning::Later { why, after }),
                Meaning::Refused { status, text } => {
                    let why = format!(
                        "it answers {status} to a PUT that brings a token, and the job says that it compares tokens: {text}"
                    );
                    return Ok(Meaning::Unusable(why));
                }
                other => return Ok(other),
            }
        }
        let again = outbox.inherited || matches!(row.state, EffectState::Unknown { .. });
        if again && effects.outcomes.is_some() {
            let answer = self.answered(held, effects, self.effects.ask(effects, &row.request_id)).await?;
            if let Answer::Status { status: status @ 200..=299, .. } = answer {
                return Ok(Meaning::Sent { status });
            }
        }
        outbox.begun = true;
        let answer = self.answered(held, effects, self.effects.send(effects, &sender, row)).await?;
        Ok(answer.meaning(effects.compares_tokens, again))
    }

    /// A request's answer, if the lease is ours at its start and the target keeps to the job's time. The lease is kept
    /// meanwhile.
    async fn answered(
        &self,
        held: &mut HeldShard,
        effects: &EffectsSpec,
        request: impl Future<Output = Answer> + Send,
    ) -> Result<Answer, EngineError> {
        if !held.shard.may_act(self.clock.now()) {
            let until = match &held.shard.status {
                ShardStatus::Leased(lease) => lease.until,
                _ => Millis(i64::MIN),
            };
            return Err(OwnerError::LeaseOver { shard: held.shard.key.clone(), until }.into());
        }
        let seconds = effects.timeout_seconds;
        let time = self.clock.sleep(Duration::from_secs(i64::from(seconds)));
        let answer = async {
            match select(pin!(request), time).await {
                Either::Left((answer, _)) => answer,
                Either::Right(((), _)) => Answer::Lost(format!("no answer within {seconds} s")),
            }
        };
        self.keeping(held, answer).await
    }

    /// Writes what is known of the next row, with the shard.
    async fn record(&self, held: &mut HeldShard, row: OutboxRow, effects: &EffectsSpec) -> Result<(), EngineError> {
        let next = held.shard.settle(&stamp(&*self.clock, &*self.random), &row, effects.on_refused)?;
        let shard = held.shard.key.clone();
        held.write(self, next, vec![Item::Effect(StoredEffect { shard, row })]).await
    }

    /// Waits before the next try, exponentially longer with full jitter, or as long as the target asks for.
    ///
    /// # Errors
    /// [`TargetError::Unsettled`] when that was tried often enough, or is too long to wait for.
    async fn pause(
        &self,
        held: &mut HeldShard,
        outbox: &mut HeldOutbox,
        effects: &EffectsSpec,
        why: String,
        after: Option<Duration>,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        outbox.tries += 1;
        if outbox.tries >= EFFECT_TRIES_MAX || after.is_some_and(|after| after > EFFECT_PAUSE_MAX) {
            return Err(TargetError::Unsettled { target: effects.target.clone(), why }.into());
        }
        let jitter = full_jitter(EFFECT_PAUSE_BASE, outbox.tries - 1, EFFECT_PAUSE_MAX, self.random.next());
        let until = self.clock.now().at.plus(after.unwrap_or(Duration::ZERO).max(jitter));
        loop {
            let now = self.clock.now();
            if now.at >= until || budget.is_over(now) {
                return Ok(());
            }
            self.keeping(held, self.clock.sleep(until.since(now.at).min(LOOK))).await?;
        }
    }

    /// As each renewal of the lease does, which the recording of outcomes stands in for.
    async fn keep_near(&self, held: &HeldShard, outbox: &mut HeldOutbox) {
        let now = self.clock.now().at;
        if now >= outbox.kept_near.plus(Duration(self.settings.lease.0 / 3)) {
            outbox.kept_near = now;
            held.keep_message_near(self).await;
        }
    }
}
