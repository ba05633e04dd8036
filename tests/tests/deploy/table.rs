//! The table is the one that `shared/store/src/table.rs` defines, and what holds data stays.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shardcron_store::table::{DUE_INDEX, EXPIRES_AT, KeyType, OPEN_INDEX, PK, SK};

use crate::template::{resources, template};

fn schema(partition: &str, sort: &str) -> Value {
    json!([{ "AttributeName": partition, "KeyType": "HASH" }, { "AttributeName": sort, "KeyType": "RANGE" }])
}

#[test]
fn its_keys_and_indexes_are_those_of_the_code() {
    let template = template();
    let table = resources(&template, "AWS::DynamoDB::Table")[0].1;
    assert_eq!(table["KeySchema"], schema(PK, SK));
    let indexes: Vec<Value> = [DUE_INDEX, OPEN_INDEX]
        .iter()
        .map(|index| {
            json!({
                "IndexName": index.name, "KeySchema": schema(index.partition, index.sort),
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            })
        })
        .collect();
    assert_eq!(table["GlobalSecondaryIndexes"], Value::from(indexes));
    let of_keys = [(PK, KeyType::Text), (SK, KeyType::Text)];
    let of_indexes =
        [DUE_INDEX, OPEN_INDEX].iter().flat_map(|it| [(it.partition, KeyType::Text), (it.sort, it.sort_type)]);
    let expected: BTreeSet<String> = of_keys
        .into_iter()
        .chain(of_indexes)
        .map(|(name, key)| {
            let letter = if key == KeyType::Text { "S" } else { "N" };
            json!({ "AttributeName": name, "AttributeType": letter }).to_string()
        })
        .collect();
    let defined = table["AttributeDefinitions"].as_array().unwrap().iter().map(Value::to_string);
    assert_eq!(defined.collect::<BTreeSet<_>>(), expected);
}

#[test]
fn it_is_kept_safe() {
    let template = template();
    let table = resources(&template, "AWS::DynamoDB::Table")[0].1;
    assert_eq!(table["BillingMode"], "PAY_PER_REQUEST");
    assert_eq!(table["TimeToLiveSpecification"], json!({ "AttributeName": EXPIRES_AT, "Enabled": true }));
    assert_eq!(table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], true);
    assert_eq!(table["SSESpecification"]["SSEEnabled"], true);
    let bucket = resources(&template, "AWS::S3::Bucket")[0].1;
    let block = bucket["PublicAccessBlockConfiguration"].as_object().unwrap();
    assert!(block.len() == 4 && block.values().all(|is_on| is_on == true), "{block:?}");
    assert_eq!(bucket["VersioningConfiguration"]["Status"], "Enabled");
    assert!(!bucket["BucketEncryption"].is_null());
    for name in ["Table", "Bucket"] {
        for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
            assert_eq!(template["Resources"][name][policy], "Retain", "{name} holds data");
        }
    }
}

/// Nothing that a rule of the bucket expires is read after that: only snapshots go, and never manifests or outputs.
#[test]
fn only_snapshots_expire() {
    let template = template();
    let rules = resources(&template, "AWS::S3::Bucket")[0].1["LifecycleConfiguration"]["Rules"].as_array().unwrap();
    for rule in rules.iter().filter(|rule| !rule["ExpirationInDays"].is_null()) {
        assert_eq!(rule["Prefix"], "state/results/");
    }
    let aborts = |rule: &&Value| !rule["AbortIncompleteMultipartUpload"].is_null() && rule["Prefix"].is_null();
    assert_eq!(rules.iter().filter(aborts).count(), 1);
}
