//! The functions: their environment is what they read, and queues, timeouts and concurrency fit each other.

use std::collections::BTreeSet;

use serde_json::Value;
use shardcron_domain::limits::{INVOCATION_MAX, LEASE_DEFAULT, LEASE_MAX, LEASE_MIN, SHUTDOWN_MARGIN};
use shardcron_runtime::config::{Config, QUEUE_BACKFILL_SHARDS, QUEUE_INSTANCES, QUEUE_SHARDS, VARIABLES, ZONEINFO};

use crate::template::{named, number, resources, template, texts};

const FUNCTION: &str = "AWS::Serverless::Function";

/// A function's timeouts: one, or each that its parameter allows.
fn timeouts(template: &Value, function: &Value) -> Vec<i64> {
    match function["Timeout"]["Ref"].as_str() {
        Some(parameter) => {
            template["Parameters"][parameter]["AllowedValues"].as_array().unwrap().iter().map(number).collect()
        }
        None => vec![number(&function["Timeout"])],
    }
}

/// A figure by size, through the mapping that it is looked up in.
fn by_size(template: &Value, found: &Value, size: &str) -> i64 {
    let place = found["Fn::FindInMap"].as_array().unwrap();
    assert_eq!((&place[0], named(&place[1])), (&Value::from("Sizes"), "Size"));
    number(&template["Mappings"]["Sizes"][size][place[2].as_str().unwrap()])
}

#[test]
fn their_environment_is_all_that_they_read_and_no_more() {
    let template = template();
    let set = template["Globals"]["Function"]["Environment"]["Variables"].as_object().unwrap();
    let read: BTreeSet<&str> = VARIABLES.into_iter().filter(|name| *name != ZONEINFO).collect();
    assert_eq!(set.keys().map(String::as_str).collect::<BTreeSet<_>>(), read);
    for (variable, queue) in
        [(QUEUE_INSTANCES, "Instances"), (QUEUE_SHARDS, "Shards"), (QUEUE_BACKFILL_SHARDS, "BackfillShards")]
    {
        assert_eq!(named(&set[variable]), queue);
    }
    for (name, function) in resources(&template, FUNCTION) {
        assert!(function["Environment"].is_null(), "{name} has what all have");
    }
    // With its references looked up, as the functions find it.
    let value = |name: &str| {
        let value = set.get(name)?;
        let of_parameter = |parameter: &str| template["Parameters"][parameter]["Default"].clone();
        let text = match value["Ref"].as_str().map(of_parameter) {
            Some(Value::String(default)) => default,
            Some(Value::Number(default)) => default.to_string(),
            Some(_) => "https://sqs.us-east-1.amazonaws.com/000000000000/it".to_owned(),
            None => value["Fn::Sub"].as_str().unwrap().replace("${Bucket}", "bucket"),
        };
        Some(text)
    };
    let config = Config::from(value).unwrap();
    assert_eq!((config.lease, config.metrics_by_job), (LEASE_DEFAULT, false));
    let lease = &template["Parameters"]["LeaseSeconds"];
    assert_eq!((number(&lease["MinValue"]), number(&lease["MaxValue"])), (LEASE_MIN.0 / 1000, LEASE_MAX.0 / 1000));
}

#[test]
fn their_binaries_are_those_of_the_workspace() {
    let template = template();
    let manifests = [
        ("Planner", "planner", include_str!("../../../functions/planner/Cargo.toml")),
        ("Fanout", "fanout", include_str!("../../../functions/fanout/Cargo.toml")),
        ("Shard", "shard", include_str!("../../../functions/shard/Cargo.toml")),
    ];
    assert_eq!(resources(&template, FUNCTION).len(), manifests.len());
    for (name, directory, manifest) in manifests {
        let function = &template["Resources"][name];
        assert_eq!(function["Metadata"]["BuildMethod"], "rust-cargolambda");
        assert_eq!(function["Properties"]["CodeUri"], format!("../functions/{directory}"));
        let binary = function["Metadata"]["BuildProperties"]["Binary"].as_str().unwrap();
        assert!(manifest.contains(&format!("[[bin]]\nname = \"{binary}\"")), "{binary}");
    }
}

/// AWS: "set the source queue's visibility timeout to at least six times the function's timeout".
#[test]
fn a_message_stays_invisible_for_six_timeouts() {
    let template = template();
    for (name, function) in resources(&template, FUNCTION) {
        for timeout in timeouts(&template, function) {
            assert!(timeout * 1000 > SHUTDOWN_MARGIN.0 && timeout * 1000 <= INVOCATION_MAX.0, "{name}: {timeout} s");
            for event in function["Events"].as_object().into_iter().flatten().map(|(_, event)| event) {
                let queue = &template["Resources"][named(&event["Properties"]["Queue"])]["Properties"];
                let visibility = match queue["VisibilityTimeout"]["Fn::FindInMap"].as_array() {
                    Some(place) => {
                        assert_eq!((&place[0], &place[1]), (&"Visibility".into(), &function["Timeout"]));
                        number(&template["Mappings"]["Visibility"][timeout.to_string()]["Seconds"])
                    }
                    None => number(&queue["VisibilityTimeout"]),
                };
                assert_eq!(visibility, 6 * timeout, "{name}");
            }
        }
    }
}

#[test]
fn a_function_reserves_what_its_queues_may_take() {
    let template = template();
    let sizes = texts(&template["Parameters"]["Size"]["AllowedValues"]);
    assert_eq!(sizes.len(), template["Mappings"]["Sizes"].as_object().unwrap().len());
    for size in sizes {
        let mut all = 0;
        for (name, function) in resources(&template, FUNCTION) {
            let mut taken = 0;
            for (_, event) in function["Events"].as_object().into_iter().flatten() {
                let mapping = &event["Properties"];
                assert_eq!(texts(&mapping["FunctionResponseTypes"]), ["ReportBatchItemFailures"]);
                assert_eq!(mapping["BatchSize"], 1, "one that takes long holds up no other");
                let most = by_size(&template, &mapping["ScalingConfig"]["MaximumConcurrency"], size);
                assert!(most >= 2, "AWS takes no less");
                taken += most;
            }
            let choice = function["ReservedConcurrentExecutions"]["Fn::If"].as_array().unwrap();
            let reserved = by_size(&template, &choice[1], size);
            all += reserved;
            if size == "trial" {
                assert_eq!((reserved, &choice[0]), (0, &"Reserves".into()));
            } else {
                assert!(reserved >= taken.max(2), "{name} of {size} reserves {reserved} and {taken} may come");
            }
        }
        let said = format!("`{size}` reserves {all}");
        let or_short = format!("`{size}` {all}");
        let description = template["Parameters"]["Size"]["Description"].as_str().unwrap();
        assert!(all == 0 || description.contains(&said) || description.contains(&or_short), "{said}: {description}");
    }
}

#[test]
fn each_queue_that_feeds_a_function_has_a_dead_letter_queue_that_keeps_longer() {
    const DEFAULT_RETENTION: i64 = 4 * 24 * 3600;
    let template = template();
    let fed: Vec<&str> = resources(&template, FUNCTION)
        .iter()
        .flat_map(|(_, function)| function["Events"].as_object().into_iter().flatten())
        .map(|(_, event)| named(&event["Properties"]["Queue"]))
        .collect();
    assert_eq!(fed.len(), 3);
    for queue in fed {
        let redrive = &template["Resources"][queue]["Properties"]["RedrivePolicy"];
        let dead = named(&redrive["deadLetterTargetArn"]);
        assert_eq!(dead, format!("{queue}Dead"));
        assert!(number(&template["Resources"][dead]["Properties"]["MessageRetentionPeriod"]) > DEFAULT_RETENTION);
        // A wait is a receipt: what waits for hours for its input must not count as dead.
        assert_eq!(redrive["maxReceiveCount"], 1000);
    }
}

#[test]
fn a_tick_comes_each_minute_in_the_form_that_the_planner_takes() {
    let template = template();
    let tick = resources(&template, "AWS::Scheduler::Schedule")[0].1;
    assert_eq!(tick["ScheduleExpression"], "rate(1 minute)");
    assert_eq!(named(&tick["Target"]["Arn"]), "Planner");
    assert_eq!(named(&tick["Target"]["DeadLetterConfig"]["Arn"]), "TicksDead");
    let input: Value = serde_json::from_str(tick["Target"]["Input"].as_str().unwrap()).unwrap();
    assert_eq!(input["detail-type"], "Scheduled Event");
}

#[test]
fn logs_are_kept_for_as_long_as_the_parameter_says() {
    let template = template();
    let groups = resources(&template, "AWS::Logs::LogGroup");
    for (name, function) in resources(&template, FUNCTION) {
        assert_eq!(named(&function["LoggingConfig"]["LogGroup"]), format!("{name}Logs"));
    }
    assert_eq!(groups.len(), resources(&template, FUNCTION).len());
    assert!(groups.iter().all(|(_, group)| named(&group["RetentionInDays"]) == "LogDays"));
}
