//! `local up`: the timer, the workers, what it finds when it starts, and how it goes.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::crash::{Ledger, leased, tells};
use crate::flights::expected;
use crate::harness::{Published, Site};
use crate::wait::{SOON, eventually, seed};

const RUN: &[&str] = &["local", "run", "job.json", "--at", "2026-01-05T00:00:00Z", "--json"];

const INSTANCE: &str = "ledger:2026-01-05T00:00:00Z";

const UP: &[&str] = &["local", "up", "--tick", "1s"];

/// What `describe` says of a job or instance.
fn described(site: &Site, what: &str) -> Value {
    site.run(&["--local", "describe", what, "--json"]).exits(0).json()
}

/// Waits until an instance is there and has succeeded, and gives what is published of it.
fn succeeded(site: &Site, instance: &str) -> String {
    eventually(&format!("{instance} succeeds"), SOON, || {
        let described = site.run(&["--local", "describe", instance, "--json"]);
        if described.code == Some(2) {
            assert!(["no_instance", "no_installation"].contains(&&*described.error().kind), "{}", described.stderr);
            return None;
        }
        let described = described.exits(0).json();
        assert_ne!(described["status"], "Failed", "{described}");
        (described["status"] == "Succeeded").then_some(())
    });
    site.run(&["--local", "results", instance]).exits(0).text()
}

#[test]
fn instances_whose_messages_were_lost_with_their_processes_are_finished_at_the_next_start() {
    let ledger = Ledger::new(seed("lost messages"));
    let site = ledger.site();
    // Two instances, one stopped with shards in work, one just planned.
    for (time, event) in [("2026-01-05", "committed"), ("2026-01-06", "planned")] {
        let run = site.start_with(&["local", "run", "job.json", "--at", time], &[("SHARDCRON_EVENTS", "stderr")]);
        tells(&run, event, 1);
        run.kill();
    }
    let up = site.start(UP);
    tells(&up, "committed", 2);
    up.kill();
    let _up = site.start(UP);
    for day in ["05", "06"] {
        assert_eq!(succeeded(&site, &format!("ledger:2026-01-{day}T00:00:00Z")), ledger.oracle.csv());
    }
    ledger.is_published(&Published::of(&site.run(RUN).exits(0)));
}

#[test]
fn up_gives_back_its_shards_when_it_is_asked_to_stop() {
    let ledger = Ledger::new(seed("SIGTERM"));
    for signal in [Signal::TERM, Signal::INT] {
        let site = ledger.site();
        let run = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
        tells(&run, "fanned_out", 1);
        run.kill();
        let before = leased(&site, INSTANCE);
        let up = site.start(UP);
        tells(&up, "committed", 1);
        up.signal(signal);
        let ended = up.finish(SOON).exits(0);
        assert_eq!(leased(&site, INSTANCE), 0, "{signal:?}: {}", ended.stderr);
        assert_ne!(described(&site, INSTANCE)["status"], "Succeeded", "the signal came too late to show anything");
        let published = Published::of(&site.run(RUN).exits(0));
        ledger.is_published(&published);
        // Only those that the killed one held were taken over, none that was given back.
        assert_eq!(published.summary["takeovers"], before, "{signal:?}: {}", published.summary);
    }
}

#[test]
fn an_interrupted_run_gives_back_its_shards_and_says_how_to_go_on() {
    let ledger = Ledger::new(seed("SIGINT"));
    let site = ledger.site();
    let run = site.start_with(RUN, &[("SHARDCRON_EVENTS", "stderr")]);
    tells(&run, "committed", 1);
    run.signal(Signal::INT);
    let ended = run.finish(SOON).exits(1);
    let last = ended.stderr.lines().last().unwrap();
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(error["error"]["kind"], "interrupted", "{last}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("goes on"), "{last}");
    assert_eq!(leased(&site, INSTANCE), 0);
    let published = Published::of(&site.run(RUN).exits(0));
    ledger.is_published(&published);
    assert_eq!(published.summary["takeovers"], 0);
}

#[test]
fn commands_work_while_up_runs_on_the_same_directory() {
    let site = Site::with_flights();
    let _up = site.start(UP);
    let at = ["2026-01-05T11:00:00Z", "2026-01-06T11:00:00Z"];
    let applied = site.run(&["--local", "apply", "job.json", "--json"]).exits(0).json();
    assert_eq!(applied["jobs"], json!([{ "job": "flights", "applied": "created" }]));
    assert_eq!(site.run(&["--local", "list", "--json"]).exits(0).json()["jobs"][0]["job"], "flights");
    for at in at {
        let run = site.run(&["local", "run", "job.json", "--at", at, "--json"]).exits(0);
        assert_eq!(Published::of(&run).content, expected());
    }
    let instances = described(&site, "flights")["instances"].clone();
    let wanted = at.map(|at| json!({ "instance": format!("flights:{at}"), "status": "Succeeded" }));
    assert_eq!(instances, json!(wanted));
    let results = site.run(&["--local", "results", &format!("flights:{}", at[0])]).exits(0);
    assert_eq!(results.text(), expected());
    let next = site.run(&["--local", "next", "flights", "--after", "2026-08-29", "--count", "1", "--json"]).exits(0);
    assert_eq!(next.json(), json!({ "times": ["2026-08-29T10:00:00Z"] }));
}

/// Named so that it comes first, as it waits for a minute to pass: libtest starts tests in the order of their names.
pub(crate) fn a_minute_passes() {
    // One installation is left alone, the other one's process is killed when the instance has just been planned.
    let sites = [Site::with_flights(), Site::with_flights()];
    let mut job: Value = serde_json::from_slice(&std::fs::read(sites[0].path("job.json")).unwrap()).unwrap();
    job["schedule"] = json!("* * * * *");
    job["timeZone"] = json!("UTC");
    let (mut ups, mut instances) = (Vec::new(), Vec::new());
    for site in &sites {
        site.job("job.json", &job);
        site.run(&["--local", "apply", "job.json"]).exits(0);
        let applied = described(site, "flights");
        assert_eq!(applied["instances"], json!([]));
        instances.push(format!("flights:{}", applied["next"].as_str().unwrap()));
        ups.push(site.start(UP));
    }
    let planned = eventually("the first time is planned", Duration::from_secs(75), || {
        ups[1].events().into_iter().find(|event| event["event"] == "planned")
    });
    ups.pop().unwrap().kill();
    assert_eq!(planned["instance"], instances[1], "the first time of its calendar");
    ups.push(sites[1].start(UP));
    for (site, instance) in sites.iter().zip(&instances) {
        assert_eq!(succeeded(site, instance), expected());
        let described = described(site, instance);
        assert_eq!(described["records"]["in"], 27_004, "{described}");
    }
    let told = ups[0].events();
    let planned = told.iter().find(|event| event["event"] == "planned" && event["instance"] == instances[0]).unwrap();
    assert!((0..10_000).contains(&planned["scheduleDelayMs"].as_i64().unwrap()), "{planned}");
}
