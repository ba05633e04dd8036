//! The store: items, conditions, and rows that join a shard's write.

use std::sync::Arc;

use shardcron_domain::ids::{Token, Version};
use shardcron_domain::shard::{Shard, ShardStatus};
use shardcron_domain::time::Millis;

use super::{RECORDS_MAX, ShardModel, Stage, State};
use crate::fault::Fault;

/// A shard's rows: how often each record is in its results, and in its rejects. As in the engine a commit writes them
/// whole, as its owner holds them in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rows {
    /// In the results.
    pub results: [u8; RECORDS_MAX],
    /// In the rejects. A reject is a row of its own, under the record's name.
    pub rejects: [u8; RECORDS_MAX],
}

impl Rows {
    /// How often a record is in either.
    #[must_use]
    pub fn times(&self, key: usize) -> u32 {
        u32::from(self.results[key]) + u32::from(self.rejects[key])
    }
}

/// On what condition a write applies; as `store::Guard`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// The item is at this version.
    Version(Version),
    /// Token and version are these, and the lease ends after the writer's clock.
    Owner {
        /// The token.
        token: Token,
        /// The version.
        version: Version,
        /// The writer's clock.
        at: Millis,
    },
}

/// A write of an executor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Which shard.
    pub shard: usize,
    /// What is to stand there.
    pub next: Arc<Shard>,
    /// On what condition.
    pub guard: Guard,
    /// The rows that are written with it.
    pub rows: Option<Rows>,
    /// The child that is put with it, if there is none yet.
    pub child: Option<Arc<Shard>>,
    /// What its writer goes on with.
    pub after: Stage,
}

impl Request {
    /// Whether this is what stands there.
    #[must_use]
    pub fn is(&self, found: &Shard) -> bool {
        self.next.write_id == found.write_id
    }
}

impl ShardModel {
    fn holds(&self, guard: Guard, found: &Shard) -> bool {
        let Guard::Owner { token, version, at } = guard else {
            let Guard::Version(version) = guard else { return false };
            return found.version == version;
        };
        let is_leased = matches!(&found.status, ShardStatus::Leased(lease) if lease.until > at);
        match self.fault {
            Some(Fault::NoTokenCheck) => true,
            Some(Fault::NoVersionCheck) => found.token == token && is_leased,
            Some(Fault::FenceKeepsToken) => found.token == token,
            _ => found.token == token && found.version == version && is_leased,
        }
    }

    /// Applies a write, all of it or nothing; whether it applied.
    pub(super) fn apply(&self, state: &mut State, request: &Request) -> bool {
        if !self.holds(request.guard, &state.shards[request.shard]) {
            return false;
        }
        state.shards[request.shard] = Arc::clone(&request.next);
        if let Some(rows) = request.rows {
            write_rows(state, request.shard, rows);
        }
        if let Some(child) = &request.child {
            add_child(state, child);
        }
        true
    }

    /// Puts a shard on condition of its version; whether it applied.
    pub(super) fn put(&self, state: &mut State, shard: usize, next: Shard, read: Version) -> bool {
        let holds = state.shards[shard].version == read;
        if holds {
            state.shards[shard] = Arc::new(next);
        }
        holds
    }
}

/// Puts a child of a split.
pub(super) fn add_child(state: &mut State, child: &Arc<Shard>) {
    if state.shards.iter().all(|shard| shard.key != child.key) {
        state.shards.push(Arc::clone(child));
        state.rows.push(Rows::default());
        state.former.push(Rows::default());
    }
}

/// Writes rows: the aggregate whole, and each reject under its own name.
pub(super) fn write_rows(state: &mut State, shard: usize, rows: Rows) {
    state.former[shard] = state.rows[shard];
    let stored = &mut state.rows[shard];
    stored.results = rows.results;
    for (stored, written) in stored.rejects.iter_mut().zip(rows.rejects) {
        *stored = (*stored).max(written);
    }
}
