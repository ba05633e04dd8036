//! Processes that stand still beyond their leases, and go on when others have done their work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::crash::{Ledger, Moment, leased, tells};
use crate::generate::{Draw, ledger};
use crate::harness::{Finished, Process, Published, Site, each};
use crate::together::job;
use crate::wait::{SOON, seed, within};

const RUN: &[&str] = &["local", "run", "job.json", "--at", "2026-01-05T00:00:00Z", "--json"];

const INSTANCE: &str = "ledger:2026-01-05T00:00:00Z";

/// Stops a process where it holds no lock of the table's file: then nobody else could write, which is how the embedded
/// table works and isn't what is tested here.
fn stop(site: &Site, process: &Process) {
    site.write("probe/job.json", Site::tiny("probe").to_string());
    for attempt in 0..20 {
        process.signal(Signal::STOP);
        // Another spec each time, so that it is written.
        let mut probe = Site::tiny("probe");
        probe["backoffLimit"] = json!(attempt);
        site.job("probe/job.json", &probe);
        let mut applying = site.start(&["--local", "apply", "probe/job.json"]);
        if within(Duration::from_secs(3), || applying.has_ended()) {
            applying.finish(SOON).exits(0);
            return;
        }
        process.signal(Signal::CONT);
        applying.finish(SOON).exits(0);
    }
    panic!("each stop met a lock");
}

/// Stops a run, lets another end the instance, and lets the first go on: it must end with the same result, and change
/// nothing of what is published. Gives the first's end, and the shards that it held.
fn outlived(site: &Site, first: Process) -> (Finished, Published, u64) {
    stop(site, &first);
    let held = leased(site, INSTANCE);
    let second = Published::of(&site.run(RUN).exits(0));
    let published = site.snapshot("out");
    first.signal(Signal::CONT);
    let first = first.finish(SOON).exits(0);
    let late = Published::of(&first);
    for field in ["records", "parts", "takeovers", "shards"] {
        assert_eq!(late.summary[field], second.summary[field], "{field}");
    }
    assert_eq!(site.snapshot("out"), published, "the late one changed what is published");
    assert!(second.summary["takeovers"].as_u64().unwrap() >= held, "{held} were held: {}", second.summary);
    (first, second, held)
}

#[test]
fn a_run_paused_inside_a_shard_beyond_its_lease_is_refused_and_told_who_holds_it() {
    let (files, oracle) = ledger(&mut Draw::new(seed("paused in a shard")), 1, 60_000, 40);
    let site = Site::new();
    site.write("in/ledger.csv", &files[0].1);
    site.job("job.json", &job(&json!({})));
    let first = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
    tells(&first, "claimed", 1);
    let (first, second, held) = outlived(&site, first);
    assert_eq!(held, 1, "the pause was to be inside the shard");
    assert_eq!(second.content, oracle.csv());
    assert_eq!(second.records(), [60_000, 60_000, 0]);

    let fenced: Vec<Value> = first.events().into_iter().filter(|event| event["event"] == "fenced_write").collect();
    assert!(!fenced.is_empty(), "{}", first.stderr);
    let event = fenced.iter().find(|event| event["holder"].is_string());
    let event = event.unwrap_or_else(|| panic!("no event names who holds the shard now: {fenced:?}"));
    assert_eq!((event["instance"].as_str(), event["shard"].as_str()), (Some(INSTANCE), Some("00000")));
    assert!(event["holder"].as_str().unwrap().contains("token 2"), "{event}");
    assert_eq!((event["ourToken"].as_u64(), event["token"].as_u64()), (Some(1), Some(2)), "{event}");
}

#[test]
fn runs_paused_at_any_moment_end_with_the_result_of_those_that_went_on() {
    let seed = seed("pauses");
    let ledger = Ledger::new(seed);
    let mut draw = Draw::new(seed);
    let moments: Vec<Moment> = (0..6).map(|_| ledger.moment(&mut draw)).collect();
    let hits = AtomicU64::new(0);
    each(&moments, 3, |moment| {
        let site = ledger.site();
        let mut first = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
        moment.wait(&mut first);
        let (_, second, held) = outlived(&site, first);
        println!("paused {moment:?}, holding {held} shards");
        ledger.is_published(&second);
        hits.fetch_add(held, Ordering::Relaxed);
    });
    assert!(hits.into_inner() > 0, "no pause met a shard in work");
}
