//! Machines whose clocks are hours off, by libfaketime: what counts is the table's clock.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Process, Published, skipped};
use crate::installation::{INSTANCE, Installation, LONG, LOOK, Ledger, tells};
use crate::wait::{eventually, seed, within};

/// Where Debian and Ubuntu have it, by architecture.
const LIBRARIES: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"];

/// The variables that put a process's clocks off.
struct Off(Vec<(&'static str, String)>);

impl Off {
    /// The wall clock alone, or the monotonic one with it (which then is off from the start, and goes on evenly).
    fn by(offset: &str, monotonic_too: bool) -> Option<Self> {
        let Some(library) = LIBRARIES.into_iter().find(|library| Path::new(library).exists()) else {
            skipped("there is no libfaketime here (Debian's package `faketime`)");
            return None;
        };
        let keep = if monotonic_too { "0" } else { "1" };
        Some(Self(vec![
            ("LD_PRELOAD", library.to_owned()),
            ("FAKETIME", offset.to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", keep.to_owned()),
            // One process's own, and not shared with others by way of shared memory.
            ("FAKETIME_DISABLE_SHM", "1".to_owned()),
        ]))
    }

    fn variables(&self) -> Vec<(&str, &str)> {
        // A lease that nobody loses by being slow: one that is taken over was stolen.
        let lease = [("SHARDCRON_LEASE_SECONDS", "20")];
        self.0.iter().map(|(name, value)| (*name, value.as_str())).chain(lease).collect()
    }
}

/// Hosts whose clocks are five hours ahead, five hours behind, and right.
fn hosts(installation: &Installation, monotonic_too: bool) -> Option<Vec<Process>> {
    let (ahead, behind) = (Off::by("+5h", monotonic_too)?, Off::by("-5h", monotonic_too)?);
    let right = [("SHARDCRON_LEASE_SECONDS", "20")];
    Some(vec![installation.host(&ahead.variables()), installation.host(&behind.variables()), installation.host(&right)])
}

/// This machine's wall clock, in seconds: the table's too, which is served from here.
#[expect(clippy::disallowed_methods, reason = "what hosts with wrong clocks plan is held against the right one")]
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn no_lease_is_stolen(published: &Published) {
    assert_eq!(published.summary["takeovers"], 0, "a lease was stolen: {}", published.certificate);
    assert_eq!(published.summary["stepTakeovers"], 0, "a step was stolen: {}", published.summary);
}

fn wrong_clocks_change_nothing(monotonic_too: bool) {
    let ledger = Ledger::new(seed("wrong clocks"), 16, 200, 40);
    let installation = Installation::new(ledger.site());
    let Some(hosts) = hosts(&installation, monotonic_too) else { return };
    // They are at work by the time that there is some, so that each gets its part.
    for host in &hosts {
        tells(host, "started");
    }
    installation.begin(&ledger.job(40, "out/"), &["2026-01-05", "2026-01-06"]);
    for instance in [INSTANCE, "ledger:2026-01-06T00:00:00Z"] {
        no_lease_is_stolen(&ledger.is_exact(&installation, instance));
    }
    for host in &hosts {
        let claimed = host.events().into_iter().filter(|event| event["event"] == "claimed").count();
        println!("a host with its clock off, or right, claimed {claimed} shards");
        assert!(claimed > 0, "each of them works: {}", host.stderr_so_far());
    }
}

#[test]
fn hosts_whose_wall_clocks_are_hours_off_steal_no_lease_and_count_each_record_once() {
    wrong_clocks_change_nothing(false);
}

#[test]
fn hosts_all_of_whose_clocks_are_hours_off_steal_no_lease_and_count_each_record_once() {
    wrong_clocks_change_nothing(true);
}

#[test]
fn planners_whose_clocks_are_hours_off_plan_by_the_tables_clock() {
    let ledger = Ledger::new(seed("planners"), 1, 10, 3);
    let installation = Installation::new(ledger.site());
    let mut job = ledger.job(100, "out/");
    job["schedule"] = json!("* * * * *");
    job["catchUp"] = json!("all");
    installation.begin(&job, &[]);
    let Some(hosts) = hosts(&installation, false) else { return };
    let begun = now();
    // Each has ticked at least twice, and a minute has come: five hours of them would be 300.
    let described = eventually("a planned minute", LONG, || {
        within(LOOK, || false);
        let described = installation.run(&["describe", "ledger", "--json"]).exits(0).json();
        (!described["instances"].as_array().unwrap().is_empty()).then_some(described)
    });
    let seconds = |time: &Value| time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second();
    let (planned, next) = (seconds(&described["plannedThrough"]), seconds(&described["next"]));
    let ended = now();
    assert!(planned <= ended && planned > begun - 120, "{described}: {begun} to {ended}");
    assert!(next > begun && next <= ended + 60, "{described}: {begun} to {ended}");
    let instances = described["instances"].as_array().unwrap();
    assert!(instances.len() as i64 <= (ended - begun) / 60 + 2, "{described}: {begun} to {ended}");
    for instance in instances {
        let name = instance["instance"].as_str().unwrap();
        let at = name.split_once(':').unwrap().1.parse::<jiff::Timestamp>().unwrap().as_second();
        assert!(at > begun - 120 && at <= ended, "{name}: {begun} to {ended}");
        ledger.is_exact(&installation, name);
    }
    // A command on such a machine goes by the table's clock too.
    let Some(ahead) = Off::by("+5h", false) else { return };
    let triggered = installation
        .run_with(&["trigger", "ledger", "--window", "2026-01-01/2026-01-02", "--json"], &ahead.variables());
    let triggered = triggered.exits(0).json();
    let name = triggered["instance"].as_str().unwrap();
    let at = name.split_once(':').unwrap().1.parse::<jiff::Timestamp>().unwrap().as_second();
    assert!((at - now()).abs() < 60, "{name} is not now");
    drop(hosts);
}
