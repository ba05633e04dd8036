//! No room, or no right to write: told clearly, and mended by room.

use serde_json::json;

use crate::crash::Ledger;
use crate::disk::Disk;
use crate::flights::expected;
use crate::harness::{Published, Site};
use crate::wait::{SOON, eventually, seed};

const AT: &str = "2026-01-05T11:00:00Z";

/// A run with its installation on the disk.
const RUN: &[&str] = &["local", "run", "job.json", "--at", AT, "--dir", "disk/state", "--json"];

#[test]
fn a_full_disk_is_told_and_the_same_command_goes_on_when_there_is_room() {
    let site = Site::with_flights();
    let Some(disk) = Disk::mount(&site.path("disk"), "64k") else { return };
    let error = site.run(RUN).exits(1).error();
    assert_eq!(error.kind, "store", "{error:?}");
    assert!(error.message.contains("no space left") && error.message.contains("disk/state"), "{error:?}");
    assert!(error.message.matches("is full").count() <= 1, "the cause is told once: {error:?}");
    assert!(error.hint.is_some(), "what to do is said: {error:?}");
    disk.remount("size=64m");
    assert_eq!(Published::of(&site.run(RUN).exits(0)).content, expected());
}

#[test]
fn a_disk_that_fills_up_in_the_middle_is_told_and_the_same_command_goes_on_when_there_is_room() {
    let ledger = Ledger::new(seed("full disk"));
    let site = ledger.site();
    let Some(disk) = Disk::mount(&site.path("disk"), "300k") else { return };
    let run = &["local", "run", "job.json", "--at", "2026-01-05", "--dir", "disk/state", "--json"];
    let error = site.run(run).exits(1).error();
    let says = error.message.to_lowercase();
    assert!(says.contains("full") || says.contains("no space"), "{error:?}");
    assert_eq!(error.kind, "store", "{error:?}");
    assert!(site.is_nothing_published());
    disk.remount("size=64m");
    ledger.is_published(&Published::of(&site.run(run).exits(0)));
}

#[test]
fn a_directory_that_cant_be_written_is_named() {
    let site = Site::with_flights();
    let Some(disk) = Disk::mount(&site.path("disk"), "64m") else { return };
    disk.remount("ro");
    let error = site.run(RUN).exits(1).error();
    assert_eq!(error.kind, "store", "{error:?}");
    assert!(error.message.contains("disk/state") && error.message.contains("ead-only"), "{error:?}");
    assert!(error.hint.is_some(), "{error:?}");
    disk.remount("rw");
    assert_eq!(Published::of(&site.run(RUN).exits(0)).content, expected());
    // One that is there already, and can't be written any more.
    disk.remount("ro");
    let error = site
        .run(&["local", "run", "job.json", "--at", "2026-01-06T11:00:00Z", "--dir", "disk/state", "--json"])
        .exits(1)
        .error();
    assert_eq!(error.kind, "store", "{error:?}");
    assert!(error.message.contains("disk/state") && error.message.contains("ead-only"), "{error:?}");
}

#[test]
fn a_run_whose_output_has_no_room_waits_and_publishes_when_there_is() {
    let site = Site::with_flights();
    let Some(disk) = Disk::mount(&site.path("disk"), "8k") else { return };
    site.write("disk/filler", vec![0; 8 * 1024]);
    let mut job: serde_json::Value = serde_json::from_slice(&std::fs::read(site.path("job.json")).unwrap()).unwrap();
    job["output"]["objects"] = json!("disk/out/");
    site.job("job.json", &job);
    let run = site.start_with(&["local", "run", "job.json", "--at", AT, "--json"], &[("SHARDCRON_EVENTS", "stderr")]);
    let failed = eventually("the step is told to have failed", SOON, || {
        run.events().into_iter().find(|event| event["event"] == "step_failed")
    });
    let says = failed["error"].as_str().unwrap();
    assert!(says.contains("No space left") && says.contains("disk/out"), "{failed}");
    assert!(site.is_nothing_published());
    disk.remount("size=1m");
    assert_eq!(Published::of(&run.finish(SOON).exits(0)).content, expected());
}
