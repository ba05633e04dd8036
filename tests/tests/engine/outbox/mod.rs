//! Effects outside of the result: each comes to the target under one id, first in order, and once, whatever happens on
//! the way; and who lost the shard is refused by its token.

mod answers;
mod chaos;
mod crash;
mod drawn;
mod pause;
mod stop;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shardcron_domain::outbox::{EffectState, OutboxRow, RequestId};
use shardcron_store::Item;
use shardcron_tests::fixture::{Fixture, instance_id};
use shardcron_tests::target::Accepted;
use shardcron_tests::world::World;

/// A job that sends each of its records, in two shards.
pub(crate) struct Paying {
    pub(crate) fixture: Fixture,
    pub(crate) job: String,
    /// The keys of each shard's effects, in the order of its records.
    keys: Vec<Vec<String>>,
}

impl Paying {
    /// So many records a shard; two are committed at a time.
    pub(crate) fn new(records: usize, effects: &Value) -> Self {
        Self::of(2, records, effects)
    }

    /// At most two shards.
    pub(crate) fn of(shards: usize, records: usize, effects: &Value) -> Self {
        let mut fixture = Fixture::many_rows(records);
        fixture.objects.truncate(shards);
        fixture.records = (shards * records) as u64;
        let key = |shard: usize, record: usize| format!("[\"m{shard}-{record}\"]");
        let keys: Vec<Vec<String>> = (0..shards).map(|shard| (0..records).map(|n| key(shard, n)).collect()).collect();
        let mut rows: Vec<(String, String)> = Vec::new();
        for key in keys.iter().flatten() {
            rows.push((key[2..key.len() - 2].to_owned(), RequestId::of(&instance_id(), key).to_string()));
        }
        rows.sort();
        let rows: String = rows.iter().map(|(merchant, id)| format!("{merchant},{id}\n")).collect();
        fixture.expected = format!("merchant,request_id\n{rows}");
        let mut own = json!({ "target": "https://ledger.example/" });
        own.as_object_mut().unwrap().extend(effects.as_object().unwrap().clone());
        let job = fixture.job_with(|job| {
            job["work"] = json!({ "send": { "key": ["merchant"] } });
            job["effects"] = own;
        });
        Self { fixture, job, keys }
    }

    /// The same with a target that compares tokens.
    pub(crate) fn comparing(records: usize) -> Self {
        Self::new(records, &json!({ "comparesTokens": true }))
    }

    pub(crate) fn effects(&self) -> usize {
        self.keys.iter().map(Vec::len).sum()
    }

    /// What each shard has sent came in the order of its records, none of it twice.
    pub(crate) fn assert_in_order(&self, world: &World) {
        let accepted = world.target.accepted();
        let ids: BTreeSet<&RequestId> = accepted.iter().map(|accepted| &accepted.id).collect();
        assert_eq!(ids.len(), accepted.len(), "an effect was taken twice");
        for (number, keys) in self.keys.iter().enumerate() {
            let of_shard = |accepted: &&Accepted| accepted.shard.number() as usize == number;
            let sent: Vec<RequestId> = accepted.iter().filter(of_shard).map(|accepted| accepted.id.clone()).collect();
            let expected: Vec<RequestId> = keys.iter().map(|key| RequestId::of(&instance_id(), key)).collect();
            if !expected.starts_with(&sent) {
                world.fail(&format!("shard {number} has sent {sent:?} and has {expected:?}"));
            }
        }
    }

    /// The instance has succeeded, and the target has each effect.
    pub(crate) async fn assert_all_sent(&self, world: &World) {
        self.assert_in_order(world);
        assert_eq!(world.target.accepted().len(), self.effects(), "{}", world.journal.last(60));
        world.assert_exact(&self.fixture).await;
        assert!(rows(world).iter().all(|row| matches!(row.state, EffectState::Sent { .. })), "{:#?}", rows(world));
    }
}

/// All rows of all outboxes, by shard and number.
pub(crate) fn rows(world: &World) -> Vec<OutboxRow> {
    let items = world.store.snapshot().into_iter();
    items.filter_map(|item| if let Item::Effect(effect) = item { Some(effect.row) } else { None }).collect()
}

/// The name of a row's state, for each row.
pub(crate) fn states(world: &World) -> Vec<&'static str> {
    rows(world).iter().map(|row| row.state.name()).collect()
}
