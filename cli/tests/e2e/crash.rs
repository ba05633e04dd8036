//! kill -9 at any moment: the same command goes on, and counts each record once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::generate::{Draw, Oracle, ledger};
use crate::harness::{Process, Published, Site, each};
use crate::together::job;
use crate::wait::{SOON, eventually, seed, within};

/// The scheduled time that is run.
const AT: &str = "2026-01-05T00:00:00Z";

/// The instance at it.
const INSTANCE: &str = "ledger:2026-01-05T00:00:00Z";

/// How many processes are killed at moments that are drawn.
const KILLS: usize = 20;

/// How many shards its input is cut into: one a file.
const SHARDS: u64 = 12;

/// How many of these go on at once.
const AT_ONCE: usize = 4;

/// The run that is killed and given again.
const RUN: &[&str] = &["local", "run", "job.json", "--at", AT, "--json"];

/// A ledger that is long enough to be hit in every state.
pub(crate) struct Ledger {
    files: Vec<(String, String)>,
    pub(crate) oracle: Oracle,
}

impl Ledger {
    pub(crate) fn new(seed: u64) -> Self {
        let (files, oracle) = ledger(&mut Draw::new(seed), SHARDS as usize, 1_200, 40);
        Self { files, oracle }
    }

    /// A directory with it, and a job that reads it in many shards and commits.
    pub(crate) fn site(&self) -> Site {
        let site = Site::new();
        for (name, content) in &self.files {
            site.write(&format!("in/{name}"), content);
        }
        site.job("job.json", &job(&json!({ "targetBytes": 50_000, "batchRecords": 100 })));
        site
    }

    /// A moment of a run of its job: from the start of the process to the end of the instance.
    pub(crate) fn moment(&self, draw: &mut Draw) -> Moment {
        // Planned, fanned out, ended; and of each shard its claim, its commits, of which there are two at least, and
        // its end.
        let events = draw.below(3 + SHARDS * 4) as usize;
        let micros = draw.below(if events == 0 { 200_000 } else { 15_000 });
        Moment { events, then: Duration::from_micros(micros) }
    }

    /// Asserts that this is what the ledger comes to.
    #[track_caller]
    pub(crate) fn is_published(&self, published: &Published) {
        assert_eq!(published.content, self.oracle.csv());
        assert_eq!(published.records(), [self.oracle.records, self.oracle.records, 0], "{}", published.certificate);
        assert_eq!(published.certificate["shards"].as_array().unwrap().len() as u64, SHARDS);
    }
}

/// A moment of a run, by its progress and not by the clock, so that it is in work on a slow machine and a fast one.
#[derive(Debug)]
pub(crate) struct Moment {
    /// So many events were told of before it.
    events: usize,
    /// And this has passed since.
    then: Duration,
}

impl Moment {
    /// Waits for it, or for the end of the process.
    pub(crate) fn wait(&self, run: &mut Process) {
        eventually(&format!("{self:?}"), SOON, || (run.events().len() >= self.events || run.has_ended()).then_some(()));
        within(self.then, || run.has_ended());
    }
}

/// How many shards the table shows as leased; none where there is no instance yet.
pub(crate) fn leased(site: &Site, instance: &str) -> u64 {
    let described = site.run(&["--local", "describe", instance, "--json"]);
    if described.code == Some(2) {
        assert!(["no_instance", "no_installation"].contains(&&*described.error().kind), "{}", described.stderr);
        return 0;
    }
    let shards = described.exits(0).json();
    let leased = |shard: &&Value| shard["status"]["leased"].is_object();
    shards["shardList"].as_array().unwrap().iter().filter(leased).count() as u64
}

/// After a kill: the same command completes, with the same bytes and each record once, and a shard that the dead
/// process held was taken over.
fn goes_on(ledger: &Ledger, site: &Site, killed: &str) -> u64 {
    let leased = leased(site, INSTANCE);
    let published = Published::of(&site.run(RUN).exits(0));
    ledger.is_published(&published);
    let takeovers = published.summary["takeovers"].as_u64().unwrap();
    println!("killed {killed}: {leased} shards were leased, {takeovers} takeovers");
    assert!(takeovers >= leased, "killed {killed}: {leased} shards were leased; {}", published.summary);
    assert_eq!(published.certificate["totals"]["takeovers"], takeovers);
    let after = site.snapshot("out");
    let again = Published::of(&site.run(RUN).exits(0));
    assert_eq!(again.summary["executed"], false);
    assert_eq!(site.snapshot("out"), after);
    leased
}

#[test]
fn a_run_killed_at_any_moment_goes_on_and_counts_nothing_twice() {
    let seed = seed("kills");
    let ledger = Ledger::new(seed);
    let mut draw = Draw::new(seed);
    let moments: Vec<Moment> = (0..KILLS).map(|_| ledger.moment(&mut draw)).collect();
    let hits = AtomicUsize::new(0);
    each(&moments, AT_ONCE, |moment| {
        let site = ledger.site();
        let mut run = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
        moment.wait(&mut run);
        run.kill();
        let leased = goes_on(&ledger, &site, &format!("{moment:?}"));
        hits.fetch_add(usize::from(leased > 0), Ordering::Relaxed);
    });
    let hits = hits.into_inner();
    assert!(hits >= KILLS / 4, "{hits} of {KILLS} kills met a shard in work: too few to show anything");
}

/// Waits until a process tells of this event for the `nth` time.
pub(crate) fn tells(process: &Process, event: &str, nth: usize) {
    eventually(&format!("event `{event}` number {nth}"), SOON, || {
        let told = process.events().iter().filter(|told| told["event"] == event).count();
        (told >= nth).then_some(())
    });
}

#[test]
fn a_run_killed_right_after_each_step_goes_on_and_counts_nothing_twice() {
    let ledger = Ledger::new(seed("kills after steps"));
    let steps =
        [("planned", 1), ("fanned_out", 1), ("claimed", 1), ("committed", 1), ("shard_done", 1), ("shard_done", 12)];
    each(&steps, AT_ONCE, |(event, nth)| {
        let site = ledger.site();
        let run = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
        tells(&run, event, *nth);
        run.kill();
        goes_on(&ledger, &site, &format!("at event `{event}` number {nth}"));
    });
}

#[test]
fn a_run_killed_again_and_again_ends_with_the_same_bytes() {
    let seed = seed("kills of one run");
    let ledger = Ledger::new(seed);
    let site = ledger.site();
    for kill in 0..4 {
        let run = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
        // Each life gets something done: failures without progress would fail the shard, as they should.
        tells(&run, "committed", 1 + kill);
        run.kill();
    }
    goes_on(&ledger, &site, "four times");
}

/// How often a meeting is tried that a busy machine can prevent.
const MEETINGS_MAX: usize = 20;

/// A site with these files, a shard each, whose run was killed twice when its manifest was there and its shards weren't all:
/// the second time by whoever took the fan-out over. `None` where a kill came too late for that.
fn killed_within_its_fan_out(files: &[(String, String)]) -> Option<Site> {
    let site = Site::new();
    for (name, content) in files {
        site.write(&format!("in/{name}"), content);
    }
    site.job("job.json", &job(&json!({ "targetBytes": 1 })));
    let manifests = site.path(".shardcron/state/manifests");
    let described = || site.run(&["--local", "describe", INSTANCE, "--json"]);
    let is_taken_over = || described().json()["stepTakeovers"] == 1;
    for life in 0..2 {
        let mut run = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
        eventually("a fan-out", SOON, || {
            let is_met = if life == 0 { manifests.exists() } else { is_taken_over() };
            (is_met || run.has_ended()).then_some(())
        });
        run.kill();
        // The end of fan-out is one write, from Sharding to Running.
        let status = described().exits(0).json()["status"].clone();
        println!("life {life} was killed when its instance was {status}");
        if status != "Sharding" {
            return None;
        }
    }
    Some(site)
}

#[test]
fn a_run_of_several_groups_of_shards_killed_within_its_fan_out_has_them_all_in_the_end() {
    let (files, oracle) = ledger(&mut Draw::new(seed("groups")), 230, 2, 5);
    let site = (0..MEETINGS_MAX).find_map(|_| killed_within_its_fan_out(&files));
    let site = site.expect("each process was held up between the manifest and its kill until all shards were written");
    let published = Published::of(&site.run(&[RUN, &["--workers", "8"]].concat()).exits(0));
    assert_eq!(published.content, oracle.csv());
    assert_eq!(published.records(), [460, 460, 0]);
    assert_eq!(published.certificate["shards"].as_array().unwrap().len(), 230);
}

#[test]
fn a_shard_that_is_the_end_of_every_process_fails_after_backoff_limit_and_doesnt_go_on_for_ever() {
    let (files, _) = ledger(&mut Draw::new(seed("a deadly shard")), 1, 60_000, 40);
    let site = Site::new();
    site.write("in/ledger.csv", &files[0].1);
    let mut spec = job(&json!({}));
    spec["backoffLimit"] = json!(1);
    site.job("job.json", &spec);
    for _ in 0..2 {
        let run = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
        tells(&run, "claimed", 1);
        run.kill();
    }
    let ended = site.run(RUN).exits(1).json();
    assert_eq!(ended["status"], "Failed", "{ended}");
    let shard = &site.run(&["--local", "describe", INSTANCE, "--json"]).exits(0).json()["shardList"][0];
    assert_eq!((shard["failures"].as_u64(), shard["takeovers"].as_u64()), (Some(2), Some(2)), "{shard}");
    assert_eq!(shard["status"]["failed"]["kind"], "crash", "{shard}");
    assert!(ended["reason"].as_str().unwrap().contains("shard 00000"), "{ended}");
    assert!(site.is_nothing_published());
}
