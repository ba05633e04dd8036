//! Hosts whose disk is full: told clearly, nothing is half published, and with room the same instance goes on.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, Signal, prlimit};
use serde_json::Value;

use crate::disk::Disk;
use crate::harness::Process;
use crate::installation::{INSTANCE, Installation, LONG, Ledger, flights, tells};
use crate::wait::{eventually, seed};

/// A lease that nobody loses by being slow: nothing is to be taken over here.
const LEASE: [(&str, &str); 1] = [("SHARDCRON_LEASE_SECONDS", "20")];

/// Waits for an event whose error says that there is no room, and where.
fn told(hosts: &[Process], event: &str, place: &str) -> Value {
    eventually(&format!("`{event}` for want of room in {place}"), LONG, || {
        let events = hosts.iter().flat_map(Process::events);
        let mut told = events.filter(|told| told["event"] == event);
        told.find(|told| {
            let error = told["error"].as_str().unwrap_or_default();
            error.contains("No space left") && error.contains(place)
        })
    })
}

/// Fills a disk to its last byte.
fn fill(path: &Path) -> PathBuf {
    use std::io::Write;
    let filler = path.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    // Ends with the error that there is no more room.
    while file.write_all(&[0; 512]).is_ok() {}
    filler
}

#[test]
fn a_full_disk_for_the_manifests_is_told_and_the_instance_goes_on_when_there_is_room() {
    let ledger = Ledger::new(seed("no room for manifests"), 8, 200, 40);
    let site = ledger.site();
    let Some(_disk) = Disk::mount(&site.path("disk"), "1m") else { return };
    let filler = fill(&site.path("disk"));
    let installation = Installation::with_state(site, "disk/state");
    installation.begin(&ledger.job(100, "out/"), &["2026-01-05"]);
    let hosts: Vec<Process> = (0..2).map(|_| installation.host(&LEASE)).collect();
    let event = told(&hosts, "step_failed", "disk/state");
    assert_eq!(event["instance"].as_str(), Some(INSTANCE), "{event}");
    assert!(installation.site.is_nothing_published());
    let described = installation.describe(INSTANCE);
    assert!(described["lastFault"].as_str().unwrap().contains("No space left"), "{described}");
    std::fs::remove_file(filler).unwrap();
    ledger.is_exact(&installation, INSTANCE);
}

#[test]
fn a_disk_that_fills_up_under_the_snapshots_of_a_shard_fails_attempts_and_not_the_instance() {
    // More groups than a commit has room for: the rows of a shard go into an object.
    let ledger = Ledger::new(seed("no room for snapshots"), 4, 3_000, 400);
    let site = ledger.site();
    let Some(_disk) = Disk::mount(&site.path("disk"), "8m") else { return };
    let installation = Installation::with_state(site, "disk/state");
    installation.begin(&ledger.job(1_000, "out/"), &["2026-01-05"]);
    // The manifest is put, and all shards' messages are sent, before the disk is full.
    let first = installation.host(&LEASE);
    tells(&first, "claimed");
    first.signal(Signal::TERM);
    first.finish(LONG).exits(0);
    let filler = fill(&installation.site.path("disk"));
    let hosts: Vec<Process> = (0..2).map(|_| installation.host(&LEASE)).collect();
    let event = told(&hosts, "attempt_failed", "disk/state");
    assert_eq!(event["retryable"], true, "{event}");
    assert!(installation.site.is_nothing_published());
    std::fs::remove_file(filler).unwrap();
    ledger.is_exact(&installation, INSTANCE);
}

#[test]
fn a_full_disk_for_the_output_leaves_nothing_half_published() {
    let ledger = Ledger::new(seed("no room for the output"), 8, 200, 40);
    let site = ledger.site();
    let Some(_disk) = Disk::mount(&site.path("disk"), "1m") else { return };
    let filler = fill(&site.path("disk"));
    let installation = Installation::new(site);
    let (mut job, expected) = flights(&installation.site);
    job["output"]["objects"] = "disk/flights/".into();
    installation.begin(&ledger.job(100, "disk/out/"), &["2026-01-05"]);
    installation.begin(&job, &["2026-01-05T06:00"]);
    let hosts: Vec<Process> = (0..2).map(|_| installation.host(&LEASE)).collect();
    for place in ["disk/out", "disk/flights"] {
        told(&hosts, "step_failed", place);
    }
    assert!(installation.site.is_nothing_published());
    let parts =
        installation.site.snapshot("disk").into_iter().filter(|(path, _)| path.to_string_lossy().contains("/part-"));
    assert_eq!(parts.filter(|(_, (content, ..))| !content.is_empty()).count(), 0, "no part is half there");
    std::fs::remove_file(filler).unwrap();
    ledger.is_exact(&installation, INSTANCE);
    installation.is_exact("flights:2026-01-05T11:00:00Z", &expected, 27_004);
}

/// Bytes that a file may have: more than a log of a host, a manifest or a shard's snapshot here, and less than the output.
const FILE_BYTES: u64 = 100_000;

/// Limits the size of the files that a process writes, or lifts that again.
fn limit_file_size(process: &Process, bytes: Option<u64>) {
    prlimit(Some(process.pid()), Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

#[test]
fn a_limit_on_the_size_of_files_is_told_and_the_instance_goes_on_without_it() {
    let ledger = Ledger::new(seed("a limit on files"), 40, 300, 4_000);
    let output = ledger.oracle.csv().len() as u64;
    assert!(output > 2 * FILE_BYTES, "{output}");
    let installation = Installation::new(ledger.site());
    let hosts: Vec<Process> = (0..2).map(|_| installation.host(&LEASE)).collect();
    for host in &hosts {
        limit_file_size(host, Some(FILE_BYTES));
    }
    installation.begin(&ledger.job(1_000, "out/"), &["2026-01-05"]);
    let event = eventually("the step is told to have failed", LONG, || {
        let mut events = hosts.iter().flat_map(Process::events);
        events.find(|event| event["event"] == "step_failed")
    });
    let error = event["error"].as_str().unwrap();
    assert!(error.contains("File too large") && error.contains("/out/"), "{event}");
    assert!(installation.site.is_nothing_published());
    for host in &hosts {
        limit_file_size(host, None);
    }
    ledger.is_exact(&installation, INSTANCE);
}
