//! Hosts that stand still beyond their leases, and wake up.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::generate::Draw;
use crate::harness::Process;
use crate::installation::{INSTANCE, Installation, Ledger, one_tells, tells};
use crate::wait::{seed, within};

#[test]
fn a_host_stopped_inside_a_shard_beyond_its_lease_is_refused_and_told_who_owns_it() {
    let ledger = Ledger::new(seed("a stopped host"), 1, 60_000, 40);
    let installation = Installation::new(ledger.site());
    installation.begin(&ledger.job(20_000, "out/"), &["2026-01-05"]);
    let mut hosts: Vec<Process> = (0..3).map(|_| installation.host(&[])).collect();
    let stopped = hosts.swap_remove(one_tells(&hosts, "claimed"));
    stopped.signal(Signal::STOP);
    let shard = installation.describe(INSTANCE)["shardList"][0].clone();
    assert!(shard["status"]["leased"].is_object(), "the stop was to be inside the shard: {shard}");
    let published = ledger.is_exact(&installation, INSTANCE);
    let files = installation.site.snapshot("out");
    stopped.signal(Signal::CONT);
    let refused = tells(&stopped, "fenced_write");
    assert_eq!((refused["instance"].as_str(), refused["shard"].as_str()), (Some(INSTANCE), Some("00000")));
    let holder = refused["holder"].as_str().unwrap();
    // One takeover, and another where this machine was too busy for the first to keep its lease.
    let last = published.certificate["shards"][0]["token"].as_u64().unwrap();
    assert!(last >= 2 && holder.contains(&format!("token {last}")), "{refused}");
    assert_eq!((refused["ourToken"].as_u64(), refused["token"].as_u64()), (Some(1), Some(last)), "{refused}");
    assert_eq!(published.certificate["totals"]["takeovers"].as_u64(), Some(last - 1), "{}", published.certificate);
    ledger.is_exact(&installation, INSTANCE);
    assert_eq!(installation.site.snapshot("out"), files, "the late one changed what is published");
}

#[test]
fn hosts_stopped_and_continued_at_random_leave_each_record_counted_once() {
    let seed = seed("stopped hosts");
    let ledger = Ledger::new(seed, 16, 600, 40);
    let installation = Installation::new(ledger.site());
    installation.begin(&ledger.job(60, "out/"), &["2026-01-05", "2026-01-06"]);
    let hosts: Vec<Process> = (0..3).map(|_| installation.host(&[])).collect();
    let mut draw = Draw::new(seed);
    one_tells(&hosts, "claimed");
    for _ in 0..4 {
        within(Duration::from_millis(draw.below(500)), || false);
        let host = draw.pick(&hosts);
        host.signal(Signal::STOP);
        // Beyond the lease of two seconds, mostly.
        within(Duration::from_millis(1_500 + draw.below(2_000)), || false);
        host.signal(Signal::CONT);
    }
    for instance in [INSTANCE, "ledger:2026-01-06T00:00:00Z"] {
        ledger.is_exact(&installation, instance);
    }
    let events = hosts.iter().flat_map(Process::events);
    let refused = events.filter(|event: &Value| event["event"] == "fenced_write" || event["event"] == "lease_over");
    println!("{} writes were too late", refused.count());
}
