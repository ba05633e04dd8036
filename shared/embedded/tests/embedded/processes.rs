//! What survives the end of a process, and how two of them share a file.
//!
//! A child is this test binary again, told to run [`child`] alone; it is told what to do on its standard input, and
//! answers on its standard output.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use aws_sdk_dynamodb::config::retry::RetryConfig;
use shardcron_embedded::EmbeddedTable;

use crate::support::{TABLE, client, client_with, create_table, is_there, number, text};

/// What a child's acknowledgements begin with, to tell them from the test harness's own lines.
const ACKNOWLEDGED: &str = "acknowledged ";

/// A process that writes `<prefix>/0`, `<prefix>/1`… and says of each that it was acknowledged. It is killed with the
/// drop.
struct Writer {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Writer {
    fn start(file: &Path, prefix: &str, writes: u32) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "processes::child", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut orders = process.stdin.take().unwrap();
        writeln!(orders, "{prefix} {writes} {}", file.display()).unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { process, lines }
    }

    /// The next key that was acknowledged; `None` at the end.
    fn acknowledged(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            // A line that was cut off by the kill isn't an acknowledgement.
            if let Some(key) = line.strip_suffix('\n').and_then(|line| line.split(ACKNOWLEDGED).nth(1)) {
                return Some(key.to_owned());
            }
            line.clear();
        }
        None
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "a process that the other tests start"]
fn child() {
    let mut orders = String::new();
    std::io::stdin().read_line(&mut orders).unwrap();
    let mut orders = orders.trim_end().splitn(3, ' ');
    let (Some(prefix), Some(writes), Some(file)) = (orders.next(), orders.next(), orders.next()) else {
        return; // started by hand
    };
    let table = EmbeddedTable::open(Path::new(file)).unwrap();
    let client = client_with(table.endpoint(), RetryConfig::standard());
    let write = async |n: u32| {
        let key = format!("{prefix}/{n}");
        client.put_item().table_name(TABLE).item("PK", text(&key)).send().await.unwrap();
        client
            .update_item()
            .table_name(TABLE)
            .key("PK", text("counter"))
            .update_expression("ADD n :one")
            .expression_attribute_values(":one", number(1))
            .send()
            .await
            .unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{ACKNOWLEDGED}{key}").unwrap();
        out.flush().unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for n in 0..writes.parse().unwrap() {
            write(n).await;
        }
    });
}

async fn counter(endpoint: &str) -> u32 {
    let key = text("counter");
    let got = client(endpoint).get_item().table_name(TABLE).key("PK", key).consistent_read(true).send().await.unwrap();
    got.item.unwrap()["n"].as_n().unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_acknowledged_write_survives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table.db");
    create_table(&client(EmbeddedTable::open(&file).unwrap().endpoint())).await;

    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let mut writer = Writer::start(&file, &format!("round{round}"), u32::MAX);
        for _ in 0..100 {
            acknowledged.push(writer.acknowledged().unwrap());
        }
        writer.process.kill().unwrap(); // SIGKILL
        // What it still said between the hundredth and its end counts as well.
        while let Some(key) = writer.acknowledged() {
            acknowledged.push(key);
        }
    }

    let table = EmbeddedTable::open(&file).unwrap();
    let client = client(table.endpoint());
    for key in &acknowledged {
        assert!(is_there(&client, key).await, "{key} of {}", acknowledged.len());
    }
    let counted = counter(table.endpoint()).await;
    let acknowledged = u32::try_from(acknowledged.len()).unwrap();
    // Each kill may have come between an update and its acknowledgement.
    assert!((acknowledged..=acknowledged + 3).contains(&counted), "{counted} counted, {acknowledged} acknowledged");
}

#[tokio::test]
async fn two_processes_on_one_file_lose_nothing() {
    const WRITES: u32 = 150;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("table.db");
    let table = EmbeddedTable::open(&file).unwrap();
    create_table(&client(table.endpoint())).await;

    let mut writers = [Writer::start(&file, "a", WRITES), Writer::start(&file, "b", WRITES)];
    let mut keys = Vec::new();
    for writer in &mut writers {
        while let Some(key) = writer.acknowledged() {
            keys.push(key);
        }
        assert!(writer.process.wait().unwrap().success());
    }

    assert_eq!(keys.len(), 2 * WRITES as usize);
    let client = client(table.endpoint());
    for key in &keys {
        assert!(is_there(&client, key).await, "{key}");
    }
    assert_eq!(counter(table.endpoint()).await, 2 * WRITES);
}
