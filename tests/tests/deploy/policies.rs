//! Each function may do what it does, and nothing else: its policy, held against the calls that `infra/record-calls` has
//! recorded of it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::template::{resources, template, texts};

const CALLS: &str = include_str!("../../../infra/calls.json");
const FUNCTIONS: [&str; 3] = ["Planner", "Fanout", "Shard"];

/// What is allowed and not recorded: by whom it is asked, or when.
const UNRECORDED: [(&str, &str, &str, &str); 21] = [
    ("Planner", "logs:CreateLogStream", "PlannerLogs", LAMBDA),
    ("Planner", "logs:PutLogEvents", "PlannerLogs", LAMBDA),
    ("Planner", "s3:ListBucket", "Bucket", ABSENT),
    ("Planner", "dynamodb:UpdateItem", "Table", "the sweep mends done sets after a crash"),
    ("Fanout", "logs:CreateLogStream", "FanoutLogs", LAMBDA),
    ("Fanout", "logs:PutLogEvents", "FanoutLogs", LAMBDA),
    ("Fanout", "sqs:ReceiveMessage", "Instances", POLLER),
    ("Fanout", "sqs:DeleteMessage", "Instances", POLLER),
    ("Fanout", "sqs:GetQueueAttributes", "Instances", POLLER),
    ("Fanout", "s3:AbortMultipartUpload", "Bucket/state/manifests/*", UPLOAD),
    ("Fanout", "s3:AbortMultipartUpload", "Bucket/output/*", UPLOAD),
    ("Shard", "logs:CreateLogStream", "ShardLogs", LAMBDA),
    ("Shard", "logs:PutLogEvents", "ShardLogs", LAMBDA),
    ("Shard", "sqs:ReceiveMessage", "Shards", POLLER),
    ("Shard", "sqs:DeleteMessage", "Shards", POLLER),
    ("Shard", "sqs:GetQueueAttributes", "Shards", POLLER),
    ("Shard", "sqs:ReceiveMessage", "BackfillShards", POLLER),
    ("Shard", "sqs:DeleteMessage", "BackfillShards", POLLER),
    ("Shard", "sqs:GetQueueAttributes", "BackfillShards", POLLER),
    ("Shard", "s3:ListBucket", "Bucket", ABSENT),
    ("Shard", "s3:AbortMultipartUpload", "Bucket/state/results/*", UPLOAD),
];

const LAMBDA: &str = "Lambda writes the logs in the function's name";
const POLLER: &str = "Lambda's event source receives in the function's name";
const ABSENT: &str = "without it S3 says that what isn't there is forbidden";
const UPLOAD: &str = "an upload in parts that fails is given up";

type Grant = (String, String);

/// The texts of a field that is one or several.
fn one_or_several(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |several| several.iter().collect())
}

/// A resource as the record has it: the logical name, and what follows its ARN.
fn resource(template: &Value, value: &Value) -> String {
    if let Some(name) = value["Fn::GetAtt"].as_str() {
        return name.strip_suffix(".Arn").unwrap().to_owned();
    }
    let text = value["Fn::Sub"].as_str().unwrap_or_else(|| panic!("{value} is no resource"));
    if let Some((_, bus)) = text.split_once(":event-bus/") {
        let default = template["Parameters"]["EventBus"]["Default"].as_str().unwrap();
        return format!("event-bus/{}", bus.replace("${EventBus}", default));
    }
    text.strip_prefix("${").unwrap().replacen(".Arn}", "", 1)
}

fn statements<'a>(template: &'a Value, role: &str) -> Vec<&'a Value> {
    let policies = template["Resources"][role]["Properties"]["Policies"].as_array().unwrap();
    assert_eq!(policies.len(), 1);
    policies[0]["PolicyDocument"]["Statement"].as_array().unwrap().iter().collect()
}

/// What a role allows of the installation's own resources.
fn grants(template: &Value, function: &str) -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    for statement in statements(template, &format!("{function}Role")) {
        if !statement["Fn::If"].is_null() {
            continue;
        }
        assert_eq!(statement["Effect"], "Allow");
        for action in one_or_several(&statement["Action"]) {
            let action = action.as_str().unwrap();
            assert!(!action.contains('*'), "{function} may do {action}");
            for of in one_or_several(&statement["Resource"]) {
                let is_new = grants.insert((action.to_owned(), resource(template, of)));
                assert!(is_new, "{function} is allowed {action} on {of} twice");
            }
        }
    }
    grants
}

fn recorded(function: &str) -> BTreeSet<Grant> {
    let calls: Value = serde_json::from_str(CALLS).unwrap();
    let calls = calls[function].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let calls: BTreeSet<Grant> = calls.map(|call| (text(&call["action"]), text(&call["resource"]))).collect();
    assert!(!calls.is_empty());
    calls
}

/// Whether a grant's resource covers a call's.
fn covers((may, of): &Grant, (action, resource): &Grant) -> bool {
    may == action && (of == resource || of.strip_suffix('*').is_some_and(|stem| resource.starts_with(stem)))
}

#[test]
fn each_call_that_a_function_makes_is_allowed() {
    let template = template();
    for function in FUNCTIONS {
        let grants = grants(&template, function);
        for call in recorded(function) {
            assert!(grants.iter().any(|grant| covers(grant, &call)), "{function} calls {call:?} and may not");
        }
    }
}

#[test]
fn each_thing_that_a_function_may_do_is_done_or_has_a_reason() {
    let template = template();
    let mut explained = BTreeSet::new();
    for function in FUNCTIONS {
        let calls = recorded(function);
        for grant in grants(&template, function) {
            let used = calls.iter().any(|call| covers(&grant, call));
            let reason = UNRECORDED
                .iter()
                .position(|(who, action, of, _)| *who == function && *action == grant.0 && *of == grant.1);
            assert!(used || reason.is_some(), "{function} may {grant:?}, and neither does it nor has a reason");
            assert!(!(used && reason.is_some()), "{function} does {grant:?}: it needs no other reason");
            explained.extend(reason);
        }
    }
    assert_eq!(explained.len(), UNRECORDED.len(), "each reason is one of something that is allowed");
}

/// What jobs read and publish elsewhere is under the same actions as in the installation's own bucket.
#[test]
fn other_buckets_are_used_as_the_own_one_is() {
    let template = template();
    for function in FUNCTIONS {
        let own = grants(&template, function);
        for statement in statements(&template, &format!("{function}Role")) {
            let Some(choice) = statement["Fn::If"].as_array() else { continue };
            let (place, parameter) = match choice[0].as_str().unwrap() {
                "HasInputs" => ("Bucket/input/*", "InputResources"),
                "HasOutputs" => ("Bucket/output/*", "OutputResources"),
                other => panic!("{other}"),
            };
            assert_eq!(choice[1]["Resource"]["Ref"], parameter);
            let here = own.iter().filter(|(_, of)| of == place).map(|(action, _)| action.as_str());
            let here: BTreeSet<&str> = here.chain(["s3:ListBucket"]).collect();
            assert_eq!(texts(&choice[1]["Action"]).into_iter().collect::<BTreeSet<_>>(), here, "{function} {place}");
        }
    }
}

#[test]
fn readers_change_nothing() {
    let template = template();
    let policies = resources(&template, "AWS::IAM::ManagedPolicy");
    assert_eq!(policies.len(), 2);
    let reader = &template["Resources"]["ReaderPolicy"]["Properties"]["PolicyDocument"]["Statement"];
    for statement in reader.as_array().unwrap() {
        let statement = if statement["Fn::If"].is_null() { statement } else { &statement["Fn::If"][1] };
        for action in one_or_several(&statement["Action"]) {
            let operation = action.as_str().unwrap().split_once(':').unwrap().1;
            let looks = ["Get", "List", "Describe", "Query", "Scan", "Filter", "StartQuery"];
            assert!(looks.iter().any(|look| operation.starts_with(look)), "a reader may {action}");
        }
    }
}

/// Nobody may take a role on but the service that it is for.
#[test]
fn each_role_is_for_one_service() {
    let template = template();
    for (name, role) in resources(&template, "AWS::IAM::Role") {
        let trust = role["AssumeRolePolicyDocument"]["Statement"].as_array().unwrap();
        assert_eq!(trust.len(), 1);
        let service = if name == "TickRole" { "scheduler.amazonaws.com" } else { "lambda.amazonaws.com" };
        assert_eq!(trust[0]["Principal"]["Service"], service, "{name}");
        assert!(role["ManagedPolicyArns"].is_null(), "{name} has what stands in the template and no more");
    }
}
