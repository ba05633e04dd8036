//! Scenarios that are drawn, in thousands: any input, any policy, commands, wrong clocks, and a fault at any await. The
//! guarantees hold after each write, and what is published is the oracle's.
//!
//! `SHARDCRON_SIM_SEEDS=5000..9000`, or `=9000` for all below, runs other seeds than the usual ones.

use std::ops::Range;

use shardcron_tests::simulation::scenario::Scenario;
use shardcron_tests::simulation::seeds::{alone, run_all};

/// How many seeds are run by default.
const SEEDS: u64 = 2_000;

/// How many seeds are run twice and compared.
const COMPARED: u64 = 6;

/// After how many failing seeds a run stops.
const FAILURES_MAX: usize = 3;

/// What has to have happened somewhere in a full run: a simulation in which it can't proves nothing about it.
const MUST_HAPPEN: [&str; 28] = [
    "Succeeded",
    "Cancelled",
    "Replaced",
    "Failed",
    "failed by its deadline",
    "failed by all shards' rejects",
    "failed by a shard's rejects",
    "failed by a shard's failures",
    "failed by a step",
    "backfilled",
    "retried",
    "rerun",
    "skipped: CatchUp",
    "skipped: Overlap",
    "skipped: Suspended",
    "rejected",
    "shards taken over",
    "steps taken over",
    "shards with rows in objects",
    "shards with ranges beyond a gap",
    "published the same in peace",
    "split",
    "fenced_write",
    "lease_over",
    "attempt_failed",
    "step_failed",
    "halves of transactions seen",
    "transactions met",
];

#[expect(clippy::disallowed_methods, reason = "says which seeds are run, and nothing else")]
fn seeds() -> Option<Range<u64>> {
    let text = std::env::var("SHARDCRON_SIM_SEEDS").ok()?;
    let number =
        |text: &str| text.trim().parse().unwrap_or_else(|_| panic!("SHARDCRON_SIM_SEEDS={text} isn't a number"));
    Some(match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&text),
    })
}

#[test]
fn guarantees_hold_and_results_are_the_oracles_whatever_is_drawn() {
    let given = seeds();
    let summary = run_all(given.clone().unwrap_or(0..SEEDS), FAILURES_MAX);
    let tally: String = summary.tally.iter().map(|(what, times)| format!("  {times:>8} {what}\n")).collect();
    println!("{} seeds:\n{tally}", summary.seeds);
    let seeds: Vec<u64> = summary.failures.keys().copied().collect();
    if let Some((seed, why)) = summary.failures.first_key_value() {
        panic!("{why}\n\nof {} seeds {seeds:?} have failed; the above is about {seed}", summary.seeds);
    }
    if given.is_none() {
        let never: Vec<&str> =
            MUST_HAPPEN.into_iter().filter(|what| summary.tally.get(*what).is_none_or(|times| *times == 0)).collect();
        assert!(never.is_empty(), "{never:?} never happened");
    }
}

#[test]
fn the_same_seed_is_the_same_run_to_the_byte() {
    for seed in 0..COMPARED {
        let scenario = Scenario::draw(seed);
        let (one, other) = (alone(&scenario).unwrap(), alone(&scenario).unwrap());
        let differs = one.journal.lines().zip(other.journal.lines()).position(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}: the journals differ from that line on");
        assert!(one.journal == other.journal && one.stored == other.stored, "seed {seed}");
        assert!(one.journal.lines().count() > 50, "seed {seed}: hardly anything happened");
    }
}
