//! The embedded table, within one process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use shardcron_embedded::{EmbeddedError, EmbeddedTable};
use tokio::task::JoinSet;

use crate::support::{TABLE, client, client_with, create_table, is_there, number, text};

async fn add_one(client: &Client, key: &str) -> u32 {
    let updated = client
        .update_item()
        .table_name(TABLE)
        .key("PK", text(key))
        .update_expression("ADD #n :one")
        .expression_attribute_names("#n", "n")
        .expression_attribute_values(":one", number(1))
        .return_values(ReturnValue::UpdatedNew)
        .send()
        .await
        .unwrap();
    let AttributeValue::N(n) = &updated.attributes.unwrap()["n"] else { panic!("not a number") };
    n.parse().unwrap()
}

#[tokio::test]
async fn of_fifty_racing_conditional_puts_one_wins() {
    let table = EmbeddedTable::in_memory().unwrap();
    create_table(&client(table.endpoint())).await;
    let mut racers = JoinSet::new();
    for racer in 0..50 {
        let client = client(table.endpoint());
        racers.spawn(async move {
            let put = client.put_item().table_name(TABLE).item("PK", text("it")).item("racer", number(racer));
            match put.condition_expression("attribute_not_exists(PK)").send().await {
                Ok(_) => Some(racer),
                Err(lost) => {
                    assert!(lost.into_service_error().is_conditional_check_failed_exception());
                    None
                }
            }
        });
    }
    let winners: Vec<u32> = racers.join_all().await.into_iter().flatten().collect();
    let got = client(table.endpoint()).get_item().table_name(TABLE).key("PK", text("it")).send().await.unwrap();
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_eq!(got.item.unwrap()["racer"], number(winners[0]));
}

#[tokio::test]
async fn a_failed_condition_returns_the_item() {
    let table = EmbeddedTable::in_memory().unwrap();
    let client = client(table.endpoint());
    create_table(&client).await;
    client.put_item().table_name(TABLE).item("PK", text("it")).item("token", number(7)).send().await.unwrap();

    let update = client
        .update_item()
        .table_name(TABLE)
        .key("PK", text("it"))
        .update_expression("SET #t = :new")
        .condition_expression("#t = :old")
        .expression_attribute_names("#t", "token")
        .expression_attribute_values(":old", number(6))
        .expression_attribute_values(":new", number(8))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    let UpdateItemError::ConditionalCheckFailedException(lost) = update.send().await.unwrap_err().into_service_error()
    else {
        panic!("another error");
    };
    assert_eq!(lost.item().unwrap()["token"], number(7));

    let put = Put::builder().table_name(TABLE).item("PK", text("other")).build().unwrap();
    let update = Update::builder()
        .table_name(TABLE)
        .key("PK", text("it"))
        .update_expression("SET #t = :new")
        .condition_expression("#t = :old")
        .expression_attribute_names("#t", "token")
        .expression_attribute_values(":old", number(6))
        .expression_attribute_values(":new", number(8))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
        .unwrap();
    let transaction = client
        .transact_write_items()
        .transact_items(TransactWriteItem::builder().put(put).build())
        .transact_items(TransactWriteItem::builder().update(update).build());
    let TransactWriteItemsError::TransactionCanceledException(lost) =
        transaction.send().await.unwrap_err().into_service_error()
    else {
        panic!("another error");
    };
    let reasons = lost.cancellation_reasons();
    assert_eq!(reasons[0].code(), Some("None"));
    assert_eq!(reasons[1].code(), Some("ConditionalCheckFailed"));
    assert_eq!(reasons[1].item().unwrap()["token"], number(7));
    assert!(!is_there(&client, "other").await);
}

#[tokio::test]
async fn reopening_shows_everything() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("not/there/yet/table.db");
    let table = EmbeddedTable::open(&file).unwrap();
    let first = client(table.endpoint());
    create_table(&first).await;
    for key in 0..20 {
        first.put_item().table_name(TABLE).item("PK", text(key.to_string())).send().await.unwrap();
    }
    drop(table);
    assert!(!file.with_extension("db-wal").exists(), "the drop closes the file, which empties its log");

    let table = EmbeddedTable::open(&file).unwrap();
    let second = client(table.endpoint());
    for key in 0..20 {
        assert!(is_there(&second, &key.to_string()).await, "{key}");
    }
}

#[tokio::test]
async fn two_tables_on_one_file_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table.db");
    let tables = [EmbeddedTable::open(&file).unwrap(), EmbeddedTable::open(&file).unwrap()];
    create_table(&client(tables[0].endpoint())).await;
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let client = client(tables[writer % 2].endpoint());
        writers.spawn(async move {
            for n in 0..50 {
                let key = format!("{writer}/{n}");
                client.put_item().table_name(TABLE).item("PK", text(key)).send().await.unwrap();
                add_one(&client, "counter").await;
            }
        });
    }
    writers.join_all().await;
    for table in &tables {
        let scanned = client(table.endpoint()).scan().table_name(TABLE).send().await.unwrap();
        assert_eq!(scanned.count, 401);
    }
    assert_eq!(add_one(&client(tables[0].endpoint()), "counter").await, 401);
}

#[test]
fn many_open_and_close_one_file_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table.db");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    EmbeddedTable::open(&file).unwrap();
                }
            });
        }
    });
}

/// Holds SQLite's write lock as a process does that was suspended in the middle of a write.
#[tokio::test]
async fn a_locked_file_answers_with_an_error_that_the_sdk_retries() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table.db");
    let table = EmbeddedTable::open(&file).unwrap();
    let once = client(table.endpoint());
    create_table(&once).await;
    let holder = rusqlite::Connection::open(&file).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();

    let refused = once.put_item().table_name(TABLE).item("PK", text("refused")).send().await.unwrap_err();
    assert_eq!(refused.raw_response().unwrap().status().as_u16(), 500);
    assert_eq!(refused.code(), Some("InternalServerError"));
    assert!(!is_there(&once, "refused").await, "reads go on, and nothing was written");

    // The default policy's second try comes after the lock is released, at the latest by the first one's answer.
    let retrying = client_with(table.endpoint(), RetryConfig::standard());
    let put = retrying.put_item().table_name(TABLE).item("PK", text("retried"));
    let (put, ()) = tokio::join!(put.send(), async {
        let failed = once.put_item().table_name(TABLE).item("PK", text("refused too")).send().await;
        holder.execute_batch("ROLLBACK").unwrap();
        drop(failed);
    });
    put.unwrap();
    assert!(is_there(&once, "retried").await);
}

#[test]
fn an_error_on_opening_says_what_file_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table.db");
    let message = |file: &Path| EmbeddedTable::open(file).unwrap_err().to_string();

    fs::write(&file, "name,amount\nalice,1\n".repeat(100)).unwrap();
    let error = EmbeddedTable::open(&file).unwrap_err();
    assert!(matches!(error, EmbeddedError::NotATable { .. }), "{error:?}");
    assert!(message(&file).contains("table.db isn't a table"), "{}", message(&file));

    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let error = EmbeddedTable::open(&file).unwrap_err();
    assert!(matches!(error, EmbeddedError::Permission { .. }), "{error:?}");

    let below_a_file = directory.path().join("file");
    fs::write(&below_a_file, "").unwrap();
    let error = EmbeddedTable::open(&below_a_file.join("table.db")).unwrap_err();
    assert!(matches!(error, EmbeddedError::File { what: "create the directory", .. }), "{error:?}");
}

#[test]
fn a_directory_that_may_not_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(closed.join("probe"), "").is_ok() {
        return; // the superuser may write anywhere
    }
    let error = EmbeddedTable::open(&closed.join("table.db")).unwrap_err();
    assert!(matches!(error, EmbeddedError::File { what: "create", .. }), "{error:?}");
    assert!(error.to_string().contains("table.db.lock"), "{error}");
}
