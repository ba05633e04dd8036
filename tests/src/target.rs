//! A target of effects, as a receiver is to be: it knows request ids again, and compares tokens where it is told to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use shardcron_domain::ids::{InstanceId, ShardId};
use shardcron_domain::job::EffectsSpec;
use shardcron_domain::outbox::{Answer, FenceToken, OutboxRow, RequestId};
use shardcron_effects::{EffectTargets, Sender};

use crate::gate::Gate;

/// An effect that the target has taken, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its id.
    pub id: RequestId,
    /// Its body.
    pub body: String,
    /// The shard of the sender that came first.
    pub shard: ShardId,
    /// That sender's token.
    pub token: FenceToken,
}

/// What a target does.
#[derive(Debug, Default)]
struct State {
    accepted: Vec<Accepted>,
    ids: BTreeSet<RequestId>,
    /// Requests with an effect, also such that were refused or known already.
    received: usize,
    /// Questions about outcomes.
    asked: usize,
    highest: BTreeMap<(InstanceId, ShardId), FenceToken>,
    refused_by_token: usize,
    refuses: BTreeSet<String>,
    script: VecDeque<u16>,
}

/// A target in memory, shared by all processes of a world.
#[derive(Debug, Default)]
pub struct MemoryTarget(Mutex<State>);

impl MemoryTarget {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it has taken, in the order in which that came first.
    #[must_use]
    pub fn accepted(&self) -> Vec<Accepted> {
        self.state().accepted.clone()
    }

    /// How many effects were sent to it, known ones too.
    #[must_use]
    pub fn received(&self) -> usize {
        self.state().received
    }

    /// How often it was asked for an outcome.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.state().asked
    }

    /// How many effects it refused since it had seen a higher token.
    #[must_use]
    pub fn refused_by_token(&self) -> usize {
        self.state().refused_by_token
    }

    /// From now on an effect whose body has this in it is refused for good, or no longer.
    pub fn refuse(&self, part: &str, refuses: bool) {
        let mut state = self.state();
        if refuses {
            state.refuses.insert(part.to_owned());
        } else {
            state.refuses.remove(part);
        }
    }

    /// The next effects are answered with these statuses, without being taken.
    pub fn answer_next(&self, statuses: impl IntoIterator<Item = u16>) {
        self.state().script.extend(statuses);
    }

    fn compare(state: &mut State, sender: &Sender) -> bool {
        let highest = state.highest.entry((sender.instance.clone(), sender.shard.clone())).or_insert(sender.token);
        *highest = (*highest).max(sender.token);
        *highest == sender.token
    }

    fn take(&self, compares: bool, sender: &Sender, row: &OutboxRow) -> u16 {
        let mut state = self.state();
        state.received += 1;
        if compares && !Self::compare(&mut state, sender) {
            state.refused_by_token += 1;
            return 412;
        }
        if let Some(status) = state.script.pop_front() {
            return status;
        }
        if state.refuses.iter().any(|part| row.body.contains(part)) {
            return 422;
        }
        if state.ids.insert(row.request_id.clone()) {
            let (id, body) = (row.request_id.clone(), row.body.clone());
            state.accepted.push(Accepted { id, body, shard: sender.shard.clone(), token: sender.token });
            return 201;
        }
        200
    }
}

/// A process's way to the target: each request is one of its writes, so that what is enumerated over writes goes over
/// them too.
#[derive(Debug)]
pub struct GatedTarget {
    /// The target.
    pub target: Arc<MemoryTarget>,
    /// The process's gate.
    pub gate: Arc<Gate>,
}

impl GatedTarget {
    async fn pass(&self, what: String, effect: impl FnOnce(&MemoryTarget) -> u16) -> Answer {
        let request = self.gate.write(what, None);
        let lost = || Answer::Lost("the answer was lost".to_owned());
        if self.gate.enter(&request).await.is_err() {
            return lost();
        }
        let status = effect(&self.target);
        match self.gate.leave(&request).await {
            Ok(()) => Answer::Status { status, text: format!("status {status}"), retry_after: None },
            Err(_) => lost(),
        }
    }
}

#[async_trait]
impl EffectTargets for GatedTarget {
    async fn install(&self, _spec: &EffectsSpec, sender: &Sender) -> Answer {
        let what = format!("install {} of {}", sender.token, sender.shard);
        let compare =
            |target: &MemoryTarget| if MemoryTarget::compare(&mut target.state(), sender) { 204 } else { 412 };
        self.pass(what, compare).await
    }

    async fn send(&self, spec: &EffectsSpec, sender: &Sender, row: &OutboxRow) -> Answer {
        let what = format!("send {} {} of {} under {}", row.no, row.key, sender.shard, sender.token);
        self.pass(what, |target| target.take(spec.compares_tokens, sender, row)).await
    }

    async fn ask(&self, _spec: &EffectsSpec, id: &RequestId) -> Answer {
        let ask = |target: &MemoryTarget| {
            let mut state = target.state();
            state.asked += 1;
            if state.ids.contains(id) { 200 } else { 404 }
        };
        self.pass(format!("ask {id}"), ask).await
    }
}
