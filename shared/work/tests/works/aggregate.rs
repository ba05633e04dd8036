//! `aggregate`, record by record.

use std::sync::Arc;

use shardcron_domain::boundary::Position;
use shardcron_domain::record::{Chunk, Source};
use shardcron_domain::result::ResultRow;
use shardcron_work::{Processed, Room, Work, WorkError};

use crate::common::{ROOMY, aggregate, chunks, merged, run};

async fn csv(work: &dyn Work, text: &str) -> String {
    let (rows, rejects) = run(work, &chunks("a.csv", text, 100)).await;
    assert_eq!(rejects, []);
    merged(work, rows).to_csv()
}

async fn error(work: &dyn Work, text: &str) -> WorkError {
    let mut shard = work.open(Vec::new()).unwrap();
    let chunk = chunks("a.csv", text, 100).remove(0);
    shard.process(&chunk, 0, ROOMY).await.unwrap_err()
}

fn row(key: &str, value: &str) -> ResultRow {
    ResultRow { key: key.to_owned(), value: value.to_owned(), records: 1 }
}

#[tokio::test]
async fn groups_are_counted_summed_and_compared_exactly() {
    let work = aggregate(&["g"], true, &["x", "y"], &["x"], &["y", "x"], &[]);
    let text = "x,g,y\n0.1,b,1\n0.2,b,-5\n1e3,a,12345678901234567890.5\n0.70,b,0\n";
    let expected = "g,count,sum_x,sum_y,min_x,max_y,max_x\n\
        a,1,1000,12345678901234567890.5,1000,12345678901234567890.5,1000\n\
        b,3,1,-4,0.1,1,0.7\n";
    assert_eq!(csv(&work, text).await, expected);
}

#[tokio::test]
async fn nulls_count_and_are_skipped_and_print_empty() {
    let work = aggregate(&["g"], true, &["x"], &["x"], &["x"], &["", "NA"]);
    let text = "g,x\na,1\na,NA\nb,\nb,NA\nNA,5\n,6\n";
    assert_eq!(csv(&work, text).await, "g,count,sum_x,min_x,max_x\n,2,11,5,6\na,2,1,1,1\nb,2,,,\n");
}

#[tokio::test]
async fn a_null_group_isnt_the_text_and_comes_first() {
    let work = aggregate(&["g"], true, &[], &[], &[], &["NA"]);
    let (rows, _) = run(&work, &chunks("a.csv", "g,x\nNA,\n,\nNA,\nnull,\n", 9)).await;
    let keys: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.records)).collect();
    assert_eq!(keys, [("[null]", 2), ("[\"\"]", 1), ("[\"null\"]", 1)]);
    let table = merged(&work, rows);
    assert_eq!(table.rows[0], [None, Some("2".to_owned())]);
    assert_eq!(table.rows[1], [Some(String::new()), Some("1".to_owned())]);
}

#[tokio::test]
async fn rows_are_sorted_by_the_groups_values_and_not_by_their_keys() {
    // As JSON, `"a"` sorts after `"a!"`, because a quote sorts after an exclamation mark.
    let work = aggregate(&["g", "h"], true, &[], &[], &[], &[]);
    let text = "g,h\na!,1\na,2\nZ,1\né,1\na,10\n\u{10000},1\n\u{ffff},1\n";
    let expected = "g,h,count\nZ,1,1\na,10,1\na,2,1\na!,1,1\né,1,1\n\u{ffff},1,1\n\u{10000},1,1\n";
    assert_eq!(csv(&work, text).await, expected);
}

#[tokio::test]
async fn values_that_only_look_alike_when_joined_are_different_groups() {
    let work = aggregate(&["g", "h"], true, &[], &[], &[], &[]);
    assert_eq!(csv(&work, "g,h\nab,c\na,bc\n").await, "g,h,count\na,bc,1\nab,c,1\n");
    let text = "g,h\na\u{1},b\na,\u{1}b\n";
    assert_eq!(csv(&work, text).await, "g,h,count\na,\u{1}b,1\na\u{1},b,1\n");
}

#[tokio::test]
async fn without_groups_all_records_are_one_and_none_are_none() {
    let work = aggregate(&[], false, &["x"], &[], &[], &[""]);
    assert_eq!(csv(&work, "x,y\n1,\n2,\n").await, "sum_x\n3\n");
    assert_eq!(csv(&work, "x,y\n,\n").await, "sum_x\n\"\"\n");
    assert_eq!(csv(&work, "x,y\n").await, "sum_x\n");
}

#[tokio::test]
async fn a_row_is_compact_and_holds_what_the_job_asks_for() {
    let work = aggregate(&["g", "h"], true, &["x", "y"], &[], &["x"], &["NA"]);
    let (rows, _) = run(&work, &chunks("a.csv", "g,h,x,y\n\"q,NA,1.50,NA\n", 9)).await;
    let expected = row("[\"\\\"q\",null]", "{\"sum\":[\"1.5\",null],\"max\":[\"1.5\"]}");
    assert_eq!(rows, [expected]);
    let (rows, _) = run(&aggregate(&[], true, &[], &[], &[], &[]), &chunks("a.csv", "x\n1\n", 9)).await;
    assert_eq!(rows, [row("[]", "{}")]);
}

#[tokio::test]
async fn a_record_that_cant_be_counted_is_rejected_whole() {
    let work = aggregate(&["g"], true, &["x", "y"], &[], &[], &[]);
    let long = "g".repeat(900);
    let mut chunk = chunks("a.csv", &format!("g,x,y\na,1,2\na,3,NA\n{long},1,1\na,1 ,5\n"), 9).remove(0);
    chunk.push_malformed(Position::Item(4), Position::Item(5), 6, "it has 2 fields, and the header 3".to_owned());
    let (rows, rejects) = run(&work, std::slice::from_ref(&chunk)).await;
    assert_eq!(rows, [row("[\"a\"]", "{\"sum\":[\"1\",\"2\"]}")]);
    let whys: Vec<_> = rejects.iter().map(|reject| (reject.line, reject.why.as_str())).collect();
    assert_eq!(
        whys,
        [
            (3, "column `y`: `NA` isn't a decimal number such as -12.50 or 1.5e3"),
            (4, "the values of its group have 904 bytes as JSON, and at most 900 are allowed"),
            (5, "column `x`: `1 ` isn't a decimal number such as -12.50 or 1.5e3"),
            (6, "it has 2 fields, and the header 3"),
        ]
    );
    assert_eq!((rejects[0].source.as_str(), rejects[0].position), ("a.csv", chunk.record(1).from()));
}

#[tokio::test]
async fn a_column_that_the_header_lacks_is_an_error_at_once() {
    let work = aggregate(&["origin"], true, &["distance"], &[], &[], &[]);
    let WorkError::Input { source, why, hint, .. } = error(&work, "Origin,dist\nEWR,1\n").await else {
        panic!("only other input mends it")
    };
    assert_eq!((source.as_str(), why.as_str()), ("a.csv", "its header has no column `origin`"));
    assert_eq!(hint.as_deref(), Some("did you mean `Origin`? Its columns are `Origin`, `dist`"));
}

#[tokio::test]
async fn each_source_has_its_columns_in_its_own_order() {
    let work = aggregate(&["g"], false, &["x"], &[], &[], &[]);
    let all = [chunks("a.csv", "g,x\na,1\n", 9), chunks("b.csv", "x,g\n2,a\n", 9)].concat();
    let (rows, _) = run(&work, &all).await;
    assert_eq!(merged(&work, rows).to_csv(), "g,sum_x\na,3\n");
}

#[tokio::test]
async fn records_that_name_their_fields_have_null_for_those_they_lack() {
    let work = aggregate(&["g"], true, &["x"], &[], &[], &["NA"]);
    let mut chunk = Chunk::new(Arc::new(Source { name: "a.ndjson".to_owned(), columns: None }));
    let some = |text: &str| Some(text.to_owned());
    for fields in [vec![("g", some("a")), ("x", some("1.5"))], vec![("x", None)], vec![("g", some("NA"))]] {
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        chunk.push_named(Position::Item(0), Position::Item(1), 1, fields);
    }
    let (rows, rejects) = run(&work, &[chunk]).await;
    assert_eq!(rejects, []);
    assert_eq!(merged(&work, rows).to_csv(), "g,count,sum_x\n,2,\na,1,1.5\n");
}

#[tokio::test]
async fn a_sum_that_cant_be_exact_is_an_error_with_its_line() {
    let work = aggregate(&["g"], false, &["x"], &[], &[], &[]);
    let text = format!("g,x\na,1\nb,{0}\nb,2\n", "9".repeat(38));
    let error = error(&work, &text).await;
    let shown = error.to_string();
    assert!(shown.starts_with("a.csv, line 4, byte 49: the sum of `x` in the group [\"b\"] can't be exact"), "{shown}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn it_stops_before_a_record_whose_row_has_no_room() {
    let work = aggregate(&["g"], true, &[], &[], &[], &[]);
    let chunk = chunks("a.csv", "g,x\na,\na,\nb,\na,\nc,\na,\n", 9).remove(0);
    let room = Room { rows: 2, bytes: usize::MAX, records: usize::MAX, rejects: usize::MAX };
    let mut shard = work.open(Vec::new()).unwrap();
    let processed = |taken, full| Processed { taken, rejects: Vec::new(), full };
    assert_eq!(shard.process(&chunk, 0, room).await.unwrap(), processed(4, true));
    assert_eq!(shard.process(&chunk, 4, room).await.unwrap(), processed(0, true));
    assert_eq!(shard.process(&chunk, 5, room).await.unwrap(), processed(1, false));
    assert_eq!(shard.changes(), [ResultRow { records: 4, ..row("[\"a\"]", "{}") }, row("[\"b\"]", "{}")]);
    shard.committed();
    assert_eq!(shard.changes(), []);
    assert_eq!(shard.process(&chunk, 4, room).await.unwrap(), processed(2, false));
    assert_eq!(shard.process(&chunk, 6, room).await.unwrap(), processed(0, false));
}

#[tokio::test]
async fn the_rows_that_changed_are_within_the_bytes_of_the_room() {
    let work = aggregate(&["g"], true, &["x"], &[], &[], &[]);
    let text: String = (0..50).map(|n| format!("{n},-1.234567890123456789e-{n}\n")).collect();
    let chunk = chunks("a.csv", &format!("g,x\n{text}"), 100).remove(0);
    let room = Room { rows: usize::MAX, bytes: 2000, records: usize::MAX, rejects: usize::MAX };
    let mut shard = work.open(Vec::new()).unwrap();
    let mut first = 0;
    while first < chunk.len() {
        let processed = shard.process(&chunk, first, room).await.unwrap();
        assert!(processed.taken > 0);
        first += processed.taken;
        assert!(shard.changes().iter().map(ResultRow::bytes).sum::<usize>() <= room.bytes);
        shard.committed();
    }
}

#[tokio::test]
async fn rows_of_another_work_are_refused() {
    let work = aggregate(&["g"], true, &["x"], &[], &[], &[]);
    let good = || row("[\"a\"]", "{\"sum\":[\"1\"]}");
    assert!(work.open(vec![good()]).is_ok());
    for (rows, part) in [
        (vec![row("a", "{}")], "isn't a list of texts"),
        (vec![row("[1]", "{}")], "isn't a list of texts"),
        (vec![row("[]", "{}")], "its key has 0 values, and the job groups by 1"),
        (vec![row("[\"a\"]", "{}")], "it has 0 numbers for `sum`, and the job has 1"),
        (vec![row("[\"a\"]", "{\"sum\":[\"1\"],\"min\":[\"1\"]}")], "1 numbers for `min`"),
        (vec![row("[\"a\"]", "{\"sum\":[\"x\"]}")], "isn't a decimal"),
        (vec![row("[\"a\"]", "{\"total\":1}")], "unknown field"),
        (vec![good(), good()], "another row"),
    ] {
        let Err(error @ WorkError::State { .. }) = work.open(rows) else { panic!("{part}") };
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(matches!(work.merge().add(row("[]", "{}")), Err(WorkError::State { .. })));
}
