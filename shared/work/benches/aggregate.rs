//! How long `aggregate` and its decimals take. Nothing here asserts a time; the numbers are printed:
//!
//! ```text
//! cargo test --release -p shardcron-work --bench aggregate -- --nocapture --test-threads 1
//! ```

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails its test")]
#![allow(clippy::print_stdout, reason = "the numbers are what it is for")]

use std::hint::black_box;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use shardcron_domain::boundary::Position;
use shardcron_domain::decimal::Decimal;
use shardcron_domain::job::AggregateSpec;
use shardcron_domain::record::{Chunk, Source};
use shardcron_work::{Aggregate, Room, Work};

/// Calls `call` so many times, and prints how many of its `things` it does in a second.
fn measure<T>(what: &str, times: u32, things: usize, mut call: impl FnMut() -> T) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = std::time::Instant::now();
    for _ in 0..times {
        black_box(call());
    }
    let taken: Duration = start.elapsed() / times;
    println!("{what}: {:.2} M/s ({things} in {taken:.1?})", things as f64 / taken.as_secs_f64() / 1e6);
}

fn sum(texts: &[String]) -> Decimal {
    texts.iter().fold(Decimal::ZERO, |sum, text| sum.checked_add(Decimal::parse(text).unwrap()).unwrap())
}

#[test]
fn parsing_and_adding() {
    let texts = |format: fn(usize) -> String| (0..1_000_000).map(format).collect::<Vec<_>>();
    let small = texts(|n| (n % 5000).to_string());
    let cents = texts(|n| format!("{}{}.{:02}", if n % 3 == 0 { "-" } else { "" }, n % 99_991, n % 100));
    let wide = texts(|n| format!("{n}12345678901234567890.123456"));
    measure("small whole numbers", 10, small.len(), || sum(&small));
    measure("amounts in cents", 10, cents.len(), || sum(&cents));
    measure("numbers of 32 digits", 10, wide.len(), || sum(&wide));
}

fn flights() -> Vec<Chunk> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/flights/data/2013-01.csv.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let (header, body) = text.split_once('\n').unwrap();
    let columns = Some(header.split(',').map(str::to_owned).collect());
    let source = Arc::new(Source { name: "2013-01.csv.gz".to_owned(), columns });
    let lines: Vec<&str> = body.lines().collect();
    let chunk = |lines: &[&str]| {
        let mut chunk = Chunk::new(Arc::clone(&source));
        lines.iter().for_each(|line| chunk.push_row(Position::Item(0), Position::Item(1), 0, line.split(',')));
        chunk
    };
    lines.chunks(1024).map(chunk).collect()
}

#[test]
fn a_month_of_flights() {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let (group_by, sum) = (names(&["origin", "carrier"]), names(&["distance", "arr_delay"]));
    let spec = AggregateSpec { group_by, count: true, sum, ..AggregateSpec::default() };
    let work = Aggregate::new(spec, &names(&["", "NA"]));
    let chunks = flights();
    let room = Room { rows: usize::MAX, bytes: usize::MAX, records: usize::MAX, rejects: usize::MAX };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    measure("flights by origin and carrier, two sums", 50, chunks.iter().map(Chunk::len).sum(), || {
        let mut shard = work.open(Vec::new()).unwrap();
        for chunk in &chunks {
            runtime.block_on(shard.process(chunk, 0, room)).unwrap();
        }
        shard.changes()
    });
}
