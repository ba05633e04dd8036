//! Many seeds, side by side: each run has a runtime and a thread to itself, so that none can disturb another.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::run::{Ran, run};
use super::scenario::Scenario;
use super::verdict::same_published;

/// Each so many seeds, the scenario is run once more in peace, and has to publish the same.
const COMPARED_EVERY: u64 = 8;

/// What many runs came to.
#[derive(Debug, Default)]
pub struct Summary {
    /// How often what happened in all of them.
    pub tally: BTreeMap<String, u64>,
    /// What went wrong, by seed, for a person.
    pub failures: BTreeMap<u64, String>,
    /// How many seeds were run.
    pub seeds: u64,
}

/// Runs a scenario on a paused clock of its own.
///
/// # Errors
/// Says what went wrong.
pub fn alone(scenario: &Scenario) -> Result<Ran, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime can be made");
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(scenario)))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// Runs these seeds, on all processors, until `failures_max` have failed.
#[must_use]
pub fn run_all(seeds: Range<u64>, failures_max: usize) -> Summary {
    let (next, stop) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let summary = Mutex::new(Summary::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || stop.load(Ordering::Relaxed) {
                return;
            }
            let judged = judge(seed);
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.seeds += 1;
            match judged {
                Ok(tally) => {
                    tally.into_iter().for_each(|(what, times)| *summary.tally.entry(what).or_default() += times)
                }
                Err(why) => drop(summary.failures.insert(seed, why)),
            }
            stop.fetch_or(summary.failures.len() >= failures_max, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn judge(seed: u64) -> Result<BTreeMap<String, u64>, String> {
    let scenario = Scenario::draw(seed);
    let in_words = |why: String| {
        format!("{why}\n\n{scenario:?}\n\nRepeat it alone:\n  SHARDCRON_SIM_SEEDS={seed}..{} {COMMAND}", seed + 1)
    };
    let ran = alone(&scenario).map_err(in_words)?;
    let mut tally = ran.tally.clone();
    if seed.is_multiple_of(COMPARED_EVERY) {
        let in_peace = alone(&scenario.in_peace()).map_err(|why| in_words(format!("{why}\n(in peace)")))?;
        let compared = same_published(&ran, &in_peace).map_err(in_words)?;
        tally.insert("published the same in peace".to_owned(), compared);
    }
    Ok(tally)
}

/// What runs the simulation.
const COMMAND: &str = "cargo test --workspace --test engine simulation -- --nocapture";
