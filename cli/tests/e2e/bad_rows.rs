//! Input that can't be worked on: the instance fails at once, says where, and publishes nothing.

use serde_json::{Value, json};

use crate::harness::{Finished, Published, Site, each, gzip};

const AT: &str = "2026-01-05T00:00:00Z";

fn job(format: &str) -> Value {
    json!({
        "name": "rows", "schedule": "0 0 * * *", "input": { "objects": "in/", "format": format },
        "work": { "aggregate": { "groupBy": ["city"], "count": true, "sum": ["amount"] } },
        "output": { "objects": "out/", "format": "csv" },
    })
}

fn run(site: &Site) -> Finished {
    site.run(&["local", "run", "job.json", "--at", AT, "--json"])
}

/// The bytes before `text` in `content`.
#[track_caller]
fn offset(content: &[u8], text: &str) -> usize {
    content.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}

/// Input that fails, in a file of its own beside a good one.
struct Bad {
    name: &'static str,
    content: Vec<u8>,
    /// Where the error is said to be: a line, and the bytes before it (after decompression).
    at: Option<(u64, usize)>,
    says: &'static str,
}

/// A file that is read before the bad one, and is good.
const GOOD_CSV: &str = "city,amount\nOslo,1.5\n";
const GOOD_NDJSON: &str = "{\"city\":\"Oslo\",\"amount\":1.5}\n";

/// How many cases run at once: most of a short run is waiting.
const AT_ONCE: usize = 4;

/// Runs a job over a good file and each of these.
fn all_fail(format: &str, cases: &[Bad]) {
    each(cases, AT_ONCE, |bad| fails(format, bad));
}

fn fails(format: &str, bad: &Bad) {
    let site = Site::new();
    site.job("job.json", &job(format));
    site.write(&format!("in/a.{format}"), if format == "csv" { GOOD_CSV } else { GOOD_NDJSON });
    site.write(&format!("in/{}", bad.name), &bad.content);
    let finished = run(&site).exits(1);
    let summary = finished.json();
    assert_eq!(summary["status"], "Failed", "{summary}");
    assert_eq!(summary["executed"], true);
    let reason = summary["reason"].as_str().unwrap();
    let error = finished.error();
    assert_eq!(error.kind, "failed", "{error:?}");
    assert!(error.message.contains(reason), "{error:?}");
    assert!(reason.contains(&format!("in/{}", bad.name)), "the file is named: {reason}");
    if let Some((line, offset)) = bad.at {
        assert!(reason.contains(&format!("line {line}, byte {offset}: ")), "line {line}, byte {offset}: {reason}");
    }
    assert!(reason.contains(bad.says), "{}: {reason}", bad.says);
    assert!(site.is_nothing_published(), "{summary}");
    assert_eq!(summary["output"], Value::Null);
    assert_eq!(summary["parts"], Value::Null);

    let described = site.run(&["--local", "describe", &format!("rows:{AT}"), "--json"]).exits(0).json();
    let failed: Vec<&Value> = described["shardList"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|shard| shard["status"]["failed"].is_object())
        .collect();
    assert_eq!(failed.len(), 1, "{described}");
    assert_eq!(failed[0]["failures"], 1, "another try is in vain, so there is none: {described}");

    let results = site.run(&["--local", "results", &format!("rows:{AT}"), "--json"]).exits(1).error();
    assert_eq!(results.kind, "not_published");
    // Its end is final, also for the same command given again.
    let again = run(&site).exits(1);
    assert_eq!((again.json()["executed"].clone(), again.json()["reason"].clone()), (json!(false), json!(reason)));
    assert!(site.is_nothing_published());
}

fn bad(
    name: &'static str,
    content: impl Into<Vec<u8>>,
    at: impl Into<Option<(u64, usize)>>,
    says: &'static str,
) -> Bad {
    Bad { name, content: content.into(), at: at.into(), says }
}

#[test]
fn a_malformed_record_fails_the_instance_at_once_and_is_told_with_its_place() {
    let fields = "city,amount\nOslo,1\n\"Ber\ngen\",2\nBodø,3,4\nOslo,5\n";
    let decimal = "city,amount\r\nOslo,1\r\nBergen,twelve\r\n";
    let utf8 = b"city,amount\nOslo,1\nBod\xf8,2\n";
    let quote = "city,amount\nOslo,1\n\"Bergen,2\nOslo,3\n";
    let packed = "city,amount\nOslo,1\nBergen\n";
    all_fail(
        "csv",
        &[
            bad("b.csv", fields, (5, offset(fields.as_bytes(), "Bodø,3")), "it has 3 fields, and the header has 2"),
            bad("b.csv", decimal, (3, offset(decimal.as_bytes(), "Bergen")), "`twelve` isn't a decimal number"),
            bad("b.csv", utf8, (3, offset(utf8, "Bod")), "field 1 isn't UTF-8"),
            bad("b.csv", quote, (3, offset(quote.as_bytes(), "\"Bergen")), "quote that isn't closed"),
            bad("b.csv.gz", gzip(packed.as_bytes()), (3, offset(packed.as_bytes(), "Bergen")), "it has 1 field"),
        ],
    );
}

#[test]
fn a_malformed_line_of_ndjson_fails_the_instance_at_once_and_is_told_with_its_place() {
    let first = "{\"city\":\"Oslo\",\"amount\":1}\n";
    let at = (2, first.len());
    all_fail(
        "ndjson",
        &[
            bad("b.ndjson", format!("{first}{{\"city\":\"Oslo\",\n"), at, "EOF"),
            bad("b.ndjson", format!("{first}[1,2]\n"), at, "object"),
            bad("b.ndjson", format!("{first}{{\"city\":1,\"city\":2}}\n"), at, "city"),
            bad("b.ndjson", format!("{first}{{\"city\":\"Oslo\",\"amount\":\"much\"}}\n"), at, "`much`"),
            bad("b.ndjson", b"{\"city\":\"Oslo\",\"amount\":1}\n{\"city\":\"Bod\xf8\"}\n", at, "UTF-8"),
        ],
    );
}

#[test]
fn an_object_that_cant_be_read_fails_the_instance_at_once() {
    let rows = format!("city,amount\n{}", "Oslo,1\n".repeat(5_000));
    let packed = gzip(rows.as_bytes());
    let mut damaged = packed.clone();
    let check = damaged.len() - 6;
    damaged[check] ^= 0x55;
    all_fail(
        "csv",
        &[
            bad("b.csv.gz", &packed[..packed.len() / 2], None, "cut off within a gzip member"),
            bad("b.csv.gz", [&packed, &b"garbage"[..]].concat(), None, "neither a gzip member nor padding"),
            bad("b.csv.gz", damaged, None, "damaged"),
        ],
    );
}

#[test]
fn a_column_that_isnt_there_is_told_with_its_file_and_the_nearest_name() {
    all_fail(
        "csv",
        &[
            bad("b.csv", "city,amuont\nOslo,1\n", None, "did you mean `amuont`?"),
            bad("b.csv", "amount\n1\n", None, "its header has no column `city`"),
            bad("b.csv", "city,amount,city\nOslo,1,Oslo\n", (1, 0), "the column `city` twice"),
        ],
    );
}

#[test]
fn a_header_is_held_against_the_jobs_columns_whether_records_follow_or_not() {
    let bom = "\u{feff}Oslo,1";
    let wide = b"c\0i\0t\0y\0,\0a\0m\0o\0u\0n\0t\0";
    all_fail(
        "csv",
        &[
            bad("b.csv", "Oslo,1\n", (1, 0), "its header has no column `city`; its columns are `Oslo`, `1`"),
            bad("b.csv", "city,amuont", (1, 0), "no column `amount`; did you mean `amuont`?"),
            bad("b.csv", bom, (1, 3), "no column `city`"),
            bad("b.csv", "\r\n\nOslo,1\n", (3, 3), "no column `city`"),
            bad("b.csv.gz", gzip(b"Oslo,1\n"), (1, 0), "no column `city`"),
            bad("b.csv", vec![0; 5_000], (1, 0), "NUL"),
            bad("b.csv", wide, (1, 0), "NUL"),
        ],
    );
}

#[test]
fn objects_without_a_header_have_no_records() {
    let site = Site::new();
    site.job("job.json", &job("csv"));
    site.write("in/a.csv", "");
    site.write("in/b.csv", "city,amount\n");
    site.write("in/c.csv.gz", gzip(b""));
    site.write("in/d.csv", "city,amount\nOslo,1\n");
    assert_eq!(Published::of(&run(&site).exits(0)).records(), [1, 1, 0]);
}

#[test]
fn a_quote_within_a_field_is_kept_and_text_after_a_closing_one_isnt_guessed_at() {
    let site = Site::new();
    let mut spec = job("csv");
    spec["rejects"] = json!({ "max": 2 });
    site.job("job.json", &spec);
    site.write("in/a.csv", "city,amount\n5\" pipe,1\n\"c\"d,1\n\"a\\\"b\",2\n\"5\"\" pipe\",3\n");
    let published = Published::of(&run(&site).exits(0));
    assert_eq!(published.records(), [4, 2, 2]);
    assert_eq!(published.content, "city,count,sum_amount\n\"5\"\" pipe\",2,4\n");
    let rejects = site.run(&["--local", "rejects", published.instance()]).exits(0).text();
    assert!(rejects.contains("a.csv:3: ") && rejects.contains("a.csv:4: "), "{rejects}");
    assert_eq!(rejects.matches("text after a closing quote").count(), 2, "{rejects}");
}

#[test]
fn the_line_and_the_reason_are_told_however_long_the_path_is() {
    for (max, content, says) in [
        (0, "city,amount\nOslo,1\nBergen,twelve\n", "`twelve` isn't a decimal number such as -12.50 or 1.5e3"),
        (1, "city,amount\nOslo\nBergen,twelve\n", "1.5e3 (and the job allows 1, rejects.max)"),
        (0, "city,amount\nOslo,1e30\nOslo,1e-30\n", "more than 38 significant digits; "),
        (0, "city,amount\nOslo,1e30\nOslo,1e-30\n", "group by more columns"),
    ] {
        let site = Site::new();
        let mut spec = job("csv");
        spec["rejects"] = json!({ "max": max });
        site.job("job.json", &spec);
        let name = format!("in/{}/{}/last.csv", "x".repeat(120), "y".repeat(120));
        site.write(&name, content);
        let finished = run(&site).exits(1);
        let reason = finished.json()["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("last.csv, line 3, byte ") && reason.contains(says), "{says}: {reason}");
        assert!(reason.starts_with("shard 00000: /") && reason.contains('…'), "{reason}");
    }
}

#[test]
fn a_job_never_reads_what_it_has_published_itself() {
    // By a link that only the machine knows of: the second run finds what the first has put there.
    let site = Site::new();
    let mut spec = job("csv");
    spec["output"]["objects"] = json!("o/");
    site.job("job.json", &spec);
    site.write("in/a.csv", GOOD_CSV);
    std::os::unix::fs::symlink("in", site.path("o")).unwrap();
    let first = Published::of(&run(&site).exits(0));
    assert_eq!(first.records(), [1, 1, 0]);
    let second = site.run(&["local", "run", "job.json", "--at", "2026-01-06T00:00:00Z", "--json"]).exits(1).json();
    let reason = second["reason"].as_str().unwrap();
    assert!(reason.contains("in/rows@2026-01-05T00:00:00Z/_certificate.json"), "{reason}");
    assert!(reason.contains("its own output") && reason.contains("output.objects"), "{reason}");

    // By a template, which may name the output's place at some times only.
    let site = Site::new();
    let mut spec = job("csv");
    spec["input"]["objects"] = json!("in/{time:%Y}");
    spec["output"]["objects"] = json!("in/2026/out/");
    site.job("job.json", &spec);
    site.write("in/2026/a.csv", GOOD_CSV);
    site.write("in/2025/a.csv", GOOD_CSV);
    let reason = run(&site).exits(1).json()["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("its own output") && reason.contains("in/2026/out/"), "{reason}");
    assert!(site.is_nothing_published());
    let other = site.run(&["local", "run", "job.json", "--at", "2025-12-31T00:00:00Z", "--json"]).exits(0);
    assert_eq!(Published::of(&other).records(), [1, 1, 0]);
}

#[test]
fn zero_is_a_number_whatever_its_exponent() {
    let site = Site::new();
    site.job("job.json", &job("csv"));
    site.write("in/a.csv", "city,amount\nOslo,0.000e-200\nOslo,-0e999\nOslo,9.5e125\n");
    let sum = format!("95{}", "0".repeat(124));
    assert_eq!(Published::of(&run(&site).exits(0)).content, format!("city,count,sum_amount\nOslo,3,{sum}\n"));
}

#[test]
fn rejects_within_the_bound_are_counted_and_the_rest_is_published() {
    let site = Site::new();
    let mut spec = job("csv");
    spec["rejects"] = json!({ "max": 3 });
    site.job("job.json", &spec);
    site.write("in/a.csv", "city,amount\nOslo,1\nOslo\nBergen,2.25\nOslo,x\n");
    site.write("in/b.csv", "city,amount\nOslo,1,1\nOslo,-0.5\n");
    let published = Published::of(&run(&site).exits(0));
    assert_eq!(published.records(), [6, 3, 3]);
    assert_eq!(published.content, "city,count,sum_amount\nBergen,1,2.25\nOslo,2,0.5\n");
}

#[test]
fn rejects_over_the_bound_fail_the_instance_also_when_no_shard_alone_is_over() {
    for (shards, text) in [(1, "and the job allows 2"), (6_000_000, "and the job allows 2")] {
        let site = Site::new();
        let mut spec = job("csv");
        spec["rejects"] = json!({ "max": 2 });
        spec["shards"] = json!({ "targetBytes": shards });
        site.job("job.json", &spec);
        site.write("in/a.csv", "city,amount\nOslo,1\nOslo\nOslo,x\n");
        site.write("in/b.csv", "city,amount\nOslo,1\nOslo\nOslo,2\n");
        let finished = run(&site).exits(1);
        let reason = finished.json()["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(text) && reason.contains("rejects.max"), "targetBytes {shards}: {reason}");
        assert_eq!(reason.contains("`shardcron rejects INSTANCE`"), shards == 1, "{reason}");
        let rejects = site.run(&["--local", "rejects", &format!("rows:{AT}")]).exits(0).text();
        assert_eq!(rejects.matches(".csv:").count(), if shards == 1 { 3 } else { 0 }, "{rejects}");
        assert!(site.is_nothing_published());
    }
}

#[test]
fn an_empty_input_fails_with_the_place_or_succeeds_with_a_header_as_the_job_says() {
    let site = Site::new();
    site.job("job.json", &job("csv"));
    let finished = run(&site).exits(1);
    let summary = finished.json();
    assert_eq!(summary["status"], "Failed");
    let reason = summary["reason"].as_str().unwrap();
    let place = site.path("in/");
    assert!(reason.contains("the input is empty") && reason.contains(place.to_str().unwrap()), "{reason}");
    assert!(reason.contains("ifEmpty"), "{reason}");
    assert!(finished.error().message.contains(reason));
    assert!(site.is_nothing_published());

    let site = Site::new();
    let mut spec = job("csv");
    spec["ifEmpty"] = json!("succeed");
    site.job("job.json", &spec);
    let published = Published::of(&run(&site).exits(0));
    assert_eq!(published.content, "city,count,sum_amount\n");
    assert_eq!(published.records(), [0, 0, 0]);
    assert_eq!(published.summary["shards"]["total"], 0);
    let results = site.run(&["--local", "results", published.instance()]).exits(0);
    assert_eq!(results.text(), "city,count,sum_amount\n");
}
