//! The example's month of flights, against sums made by another program.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use shardcron_domain::job::JobSpec;
use shardcron_work::Works;

use crate::common::{chunks, merged, run};

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn flights(month: &str) -> String {
    let mut text = String::new();
    let file = File::open(at(&format!("examples/flights/data/{month}.csv.gz"))).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn a_month_of_flights_comes_out_byte_for_byte() {
    let job = JobSpec::parse(&std::fs::read_to_string(at("examples/flights/job.json")).unwrap()).unwrap();
    let work = Works::builtin().for_job(&job).unwrap();
    let chunks = chunks("2013-01.csv.gz", &flights("2013-01"), 1024);
    let (rows, rejects) = run(work.as_ref(), &chunks).await;
    assert_eq!(rejects, []);
    assert_eq!(rows.iter().map(|row| row.records).sum::<u64>(), 27_004);
    let expected = std::fs::read_to_string(at("tests/data/flights/2013-01.expected.csv")).unwrap();
    assert_eq!(merged(work.as_ref(), rows).to_csv(), expected);
}
