//! An executor's writes: sent, lost, read about, sent again, until the outcome is known. After `engine/src/write.rs` and
//! `held.rs`.

use std::sync::Arc;

use shardcron_domain::shard::{Shard, ShardStatus, Stamp};

use super::store::Guard;
use super::{Answer, Mail, Phase, Request, Rows, ShardModel, Stage, State};
use crate::clock::tick_after;

impl ShardModel {
    pub(super) fn stamp(&self, state: &State, who: usize, held: &Shard) -> Stamp {
        Stamp { write_id: state.executors[who].write_id(who, held), now: self.clock(state, who) }
    }

    pub(super) fn owners(
        &self,
        state: &State,
        who: usize,
        held: &Shard,
        next: Shard,
        rows: Option<Rows>,
        after: Stage,
    ) -> Request {
        let guard = Guard::Owner { token: held.token, version: held.version, at: self.clock(state, who).at };
        Request { shard: state.executors[who].shard, next: Arc::new(next), guard, rows, child: None, after }
    }

    /// One owner write.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of one request")]
    pub(super) fn write(
        &self,
        state: &mut State,
        who: usize,
        held: &Shard,
        next: Shard,
        rows: Option<Rows>,
        after: Stage,
        answer: Answer,
    ) {
        let request = self.owners(state, who, held, next, rows, after);
        self.send(state, who, request, answer);
    }

    pub(super) fn send(&self, state: &mut State, who: usize, request: Request, answer: Answer) {
        match answer {
            Answer::Heard => {
                let applied = self.apply(state, &request);
                self.heard(state, who, &request, applied);
            }
            Answer::Unheard => {
                state.budget.spend(|budget| &mut budget.unheard);
                self.apply(state, &request);
                state.executors[who].phase = Phase::Unsure(Box::new(request));
            }
            Answer::Late => {
                state.budget.spend(|budget| &mut budget.late);
                state.late.push(request.clone());
                state.executors[who].phase = Phase::Unsure(Box::new(request));
            }
        }
    }

    /// No answer: the item is read. One with our write id says that the write was applied.
    pub(super) fn check(&self, state: &mut State, who: usize) {
        let Phase::Unsure(request) = state.executors[who].phase.clone() else { return };
        if request.is(&state.shards[request.shard]) {
            self.heard(state, who, &request, true);
        } else {
            state.executors[who].phase = Phase::Resending(request);
        }
    }

    /// The same request is sent again, for as long as the lease lasts.
    pub(super) fn resend(&self, state: &mut State, who: usize) {
        let Phase::Resending(request) = state.executors[who].phase.clone() else { return };
        let over = match (&request.guard, &request.next.status) {
            (Guard::Owner { .. }, ShardStatus::Leased(lease)) => !self.clock(state, who).is_surely_before(lease.until),
            _ => false,
        };
        if over {
            return self.gives_up(state, who);
        }
        let applied = self.apply(state, &request) || request.is(&state.shards[request.shard]);
        self.heard(state, who, &request, applied);
    }

    /// The outcome of a write is known.
    pub(super) fn heard(&self, state: &mut State, who: usize, request: &Request, applied: bool) {
        let shard = request.shard;
        if !applied {
            return match request.guard {
                // A claim that was lost to somebody is decided anew, from what is there.
                Guard::Version(_) => {
                    let found = Arc::clone(&state.shards[shard]);
                    self.come_to(state, who, found);
                }
                Guard::Owner { .. } => self.gives_up(state, who),
            };
        }
        let next = &request.next;
        let now = state.now;
        if let Some(child) = &request.child
            && let Some(place) = state.shards.iter().position(|shard| shard.key == child.key)
        {
            state.mail.push(Mail { shard: place, visible: now });
        }
        state.executors[who].phase = match &next.status {
            ShardStatus::Leased(_) => Phase::Holding(Arc::clone(next), request.after),
            ShardStatus::Pending => {
                let visible = next.not_before.map_or(now, |at| tick_after(at, now));
                state.mail.push(Mail { shard, visible });
                Phase::Idle
            }
            ShardStatus::Done => Phase::Reporting,
            _ => Phase::Idle,
        };
    }

    /// It stops where it stands; its message comes again.
    pub(super) fn gives_up(&self, state: &mut State, who: usize) {
        let executor = &mut state.executors[who];
        executor.phase = Phase::Idle;
        let mail = Mail { shard: executor.shard, visible: state.now + 1 };
        state.mail.push(mail);
    }
}
