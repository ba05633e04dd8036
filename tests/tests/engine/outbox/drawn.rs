//! Drawn faults: of the store, of messages, of clocks, of processes, and of the way to the target.

use serde_json::json;
use shardcron_tests::ports::SeededRandom;

use super::Paying;
use super::chaos::run_to_the_end;

/// How many seeds are run.
const SEEDS: u64 = 100;

#[tokio::test(start_paused = true)]
async fn drawn_faults_send_each_effect_once_in_order() {
    for seed in 0..SEEDS {
        let random = SeededRandom::new(seed);
        let effects = match random.below(3) {
            0 => json!({ "comparesTokens": true }),
            1 => json!({ "outcomes": "https://ledger.example/{id}" }),
            _ => json!({}),
        };
        let shards = 1 + random.below(2) as usize;
        let paying = Paying::of(shards, 1 + random.below(5) as usize, &effects);
        let world = run_to_the_end(seed, random, &paying.fixture, &paying.job).await;
        paying.assert_all_sent(&world).await;
    }
}
