//! Hosts that are killed and asked to stop.

use std::time::Duration;

use rustix::process::Signal;

use crate::generate::Draw;
use crate::harness::Process;
use crate::installation::{INSTANCE, Installation, LONG, Ledger, flights, one_tells};
use crate::wait::{seed, within};

/// Hosts that are there unless one was just killed.
const HOSTS: usize = 3;

/// Hosts killed, each at a moment that is drawn.
const KILLS: usize = 10;

#[test]
fn hosts_killed_at_random_leave_each_record_counted_once() {
    let seed = seed("killed hosts");
    let ledger = Ledger::new(seed, 16, 600, 40);
    let installation = Installation::new(ledger.site());
    let (job, expected) = flights(&installation.site);
    installation.begin(&ledger.job(60, "out/"), &["2026-01-05", "2026-01-06"]);
    installation.begin(&job, &["2026-01-05T06:00"]);
    let mut draw = Draw::new(seed);
    let mut hosts: Vec<Process> = (0..HOSTS).map(|_| installation.host(&[])).collect();
    for kill in 0..KILLS {
        // The first is in a shard for sure, however fast all goes here.
        let victim = if kill == 0 {
            one_tells(&hosts, "claimed")
        } else {
            within(Duration::from_millis(150 + draw.below(900)), || false);
            draw.below(hosts.len() as u64) as usize
        };
        hosts.swap_remove(victim).kill();
        hosts.push(installation.host(&[]));
    }
    let mut takeovers = 0;
    for instance in [INSTANCE, "ledger:2026-01-06T00:00:00Z"] {
        takeovers += ledger.is_exact(&installation, instance).summary["takeovers"].as_u64().unwrap();
    }
    installation.is_exact("flights:2026-01-05T11:00:00Z", &expected, 27_004);
    println!("{KILLS} hosts were killed, {takeovers} shards were taken over");
    assert!(takeovers > 0, "no kill met a shard in work");
}

#[test]
fn a_host_that_is_asked_to_stop_gives_its_shard_back_and_another_goes_on_from_there() {
    let ledger = Ledger::new(seed("a stopping host"), 1, 40_000, 40);
    let installation = Installation::new(ledger.site());
    installation.begin(&ledger.job(500, "out/"), &["2026-01-05"]);
    // A lease that it doesn't lose by being slow: nothing is to be taken over here.
    let lease = [("SHARDCRON_LEASE_SECONDS", "20")];
    let first = installation.host(&lease);
    one_tells(std::slice::from_ref(&first), "committed");
    first.signal(Signal::TERM);
    let first = first.finish(LONG).exits(0);
    let released = first.events().into_iter().find(|event| event["event"] == "released");
    let released = released.unwrap_or_else(|| panic!("it gave nothing back: {}", first.stderr));
    let done = released["records"].as_u64().unwrap();
    let described = installation.describe(INSTANCE);
    let shard = &described["shardList"][0];
    assert_eq!((shard["status"].as_str(), shard["counts"]["in"].as_u64()), (Some("pending"), Some(done)), "{shard}");
    assert!(done > 0 && done < ledger.oracle.records, "{shard}");
    let _second = installation.host(&lease);
    let published = ledger.is_exact(&installation, INSTANCE);
    assert_eq!(published.certificate["totals"]["takeovers"], 0, "it was given back: {}", published.certificate);
}
