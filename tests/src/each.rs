//! Where each record of an input is known by a row of its own, whether it is in the results once, when it is done, and
//! not before (G5, G6).

use std::collections::BTreeMap;

use shardcron_domain::boundary::Position;
use shardcron_domain::invariants::{g5_each_once, g6_never_ahead};
use shardcron_domain::job::{InputSource, JobSpec, ListSpec};
use shardcron_domain::result::{RejectRow, ResultRow};
use shardcron_domain::shard::Shard;

/// Says what doesn't hold of the records of a shard: of a list, whose job groups it by its items.
pub(crate) fn each_record(spec: &JobSpec, shard: &Shard, rows: &[ResultRow], rejects: &[RejectRow]) -> Vec<String> {
    let (Position::Item(from), Position::Item(to)) = (shard.range.from(), shard.range.to()) else { return Vec::new() };
    let InputSource::List { list: ListSpec::Items(items) } = &spec.input.source else { return Vec::new() };
    if !is_by_item(spec) {
        return Vec::new();
    }
    let mut in_rows: BTreeMap<String, u32> = BTreeMap::new();
    for row in rows {
        let group: Vec<String> = serde_json::from_str(&row.key).expect("a row's key is its group");
        *in_rows.entry(group.concat()).or_default() += row.records as u32;
    }
    let times = |item: u32| {
        let at = Position::Item(item);
        let rejected = rejects.iter().filter(|reject| reject.position == at).count() as u32;
        (at, rejected + in_rows.get(&items[item as usize]).copied().unwrap_or_default())
    };
    let mut broken = Vec::new();
    if !g5_each_once(&shard.checkpoint, (from..to).map(times)) {
        broken.push(format!("G5: of {} a record is missing or there twice: {in_rows:?}", shard.key));
    }
    if !g6_never_ahead(&shard.checkpoint, (from..to).map(times)) {
        broken.push(format!("G6: {} is past a record that is nowhere: {:?}", shard.key, shard.checkpoint));
    }
    let ours = &items[from as usize..to as usize];
    if in_rows.keys().any(|item| !ours.contains(item)) {
        broken.push(format!("G5: {} has records of others: {in_rows:?}", shard.key));
    }
    broken
}

fn is_by_item(spec: &JobSpec) -> bool {
    let work = serde_json::to_value(&spec.work).expect("a work is JSON");
    work["custom"]["with"]["groupBy"] == serde_json::json!(["item"])
}
