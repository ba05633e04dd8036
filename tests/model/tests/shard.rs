//! The shard's protocol.

use shardcron_model::explore::all;
use shardcron_model::shard::{Budget, ShardModel};

fn small(n: u8) -> ShardModel {
    ShardModel {
        records: 3,
        rejected: Some(1),
        backoff_limit: 1,
        budget: Budget::any(n),
        skews: vec![[0, 0], [-1, 0], [0, 1]],
        fault: None,
    }
}

#[test]
fn try_it() {
    for n in 0..3 {
        let all = all(small(n));
        println!("{n} {all}");
        for (name, path) in &all.found {
            println!("{name}: {} {path:?}", path.len());
        }
    }
}
