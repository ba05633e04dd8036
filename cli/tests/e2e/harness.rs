//! A directory of a test's own, and the command in it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::wait::{SOON, eventually};

/// The lease that the tests run under: the shortest that is allowed, so that takeovers come soon.
pub(crate) const LEASE_SECONDS: u64 = 2;

/// A directory with a job's files, an embedded installation and its output.
pub(crate) struct Site {
    dir: TempDir,
    commands: AtomicU32,
}

impl Site {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::Builder::new().prefix("sc-").tempdir().unwrap(), commands: AtomicU32::new(0) }
    }

    /// One with the flights example in it.
    pub(crate) fn with_flights() -> Self {
        let site = Self::new();
        let example = repository().join("examples/flights");
        for file in ["job.json", "data/2013-01.csv.gz"] {
            site.write(file, fs::read(example.join(file)).unwrap());
        }
        site
    }

    /// A job that sums up one column of what is in `in/`.
    pub(crate) fn tiny(name: &str) -> Value {
        json!({
            "name": name, "schedule": "0 0 * * *", "input": { "objects": "in/", "format": "csv" },
            "work": { "aggregate": { "sum": ["amount"] } }, "output": { "objects": "out/", "format": "csv" },
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Writes a job's file.
    pub(crate) fn job(&self, name: &str, job: &Value) {
        self.write(name, serde_json::to_vec_pretty(job).unwrap());
    }

    /// Starts the command with these arguments.
    pub(crate) fn start(&self, args: &[&str]) -> Process {
        self.start_with(args, &[])
    }

    /// Starts the command with these arguments and variables. It has no others but the lease: not the tester's
    /// credentials, proxies or endpoints.
    pub(crate) fn start_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Process {
        self.start_reading(args, variables, Stdio::null())
    }

    fn start_reading(&self, args: &[&str], variables: &[(&str, &str)], stdin: Stdio) -> Process {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| self.path(&format!("log/{number:03}.{name}")));
        fs::create_dir_all(self.path("log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_shardcron"))
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("SHARDCRON_LEASE_SECONDS", LEASE_SECONDS.to_string())
            .envs(variables.iter().copied())
            .stdin(stdin)
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        Process { child, stdout, stderr, command: args.join(" ") }
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.start(args).finish(SOON)
    }

    /// Runs the command to its end, with a pipe as its standard input that holds this: less than a pipe's buffer.
    pub(crate) fn run_piped(&self, args: &[&str], input: &[u8]) -> Finished {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(input).unwrap();
        drop(writer);
        self.start_reading(args, &[], reader.into()).finish(SOON)
    }

    /// All that is in a directory: each file's name, content, inode and time of its last change.
    pub(crate) fn snapshot(&self, name: &str) -> BTreeMap<PathBuf, (Vec<u8>, u64, i64, i64)> {
        let mut files = BTreeMap::new();
        for path in files_under(&self.path(name)) {
            let meta = fs::metadata(&path).unwrap();
            files.insert(path.clone(), (fs::read(&path).unwrap(), meta.ino(), meta.mtime(), meta.mtime_nsec()));
        }
        files
    }

    /// Whether there is no certificate anywhere in it: nothing is published.
    pub(crate) fn is_nothing_published(&self) -> bool {
        files_under(self.dir.path()).iter().all(|path| !path.ends_with("_certificate.json"))
    }
}

/// Does something with each item, so many at once; a failure of one is the test's.
pub(crate) fn each<T: Sync>(items: &[T], at_once: usize, action: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    action(item);
                }
            });
        }
    });
}

/// All files below a directory; none if it isn't there.
fn files_under(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files_under(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The repository that these tests are part of.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// One gzip member.
pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// The command, running. Killed on drop.
pub(crate) struct Process {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    command: String,
}

impl Process {
    /// Its id. It isn't waited for yet, so that this is still its own.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Kills it as `kill -9` does, and waits for its end.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// What it has written to standard error so far.
    pub(crate) fn stderr_so_far(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.stderr).unwrap()).into_owned()
    }

    /// The events that it has told of so far, where `SHARDCRON_EVENTS=stderr` is set.
    pub(crate) fn events(&self) -> Vec<Value> {
        events_in(&self.stderr_so_far())
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self, deadline: Duration) -> Finished {
        let command = self.command.clone();
        let status =
            eventually(&format!("the end of `shardcron {command}`"), deadline, || self.child.try_wait().unwrap());
        Finished { code: status.code(), stdout: fs::read(&self.stdout).unwrap(), stderr: self.stderr_so_far(), command }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail when it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The whole lines of a log that are events.
pub(crate) fn events_in(log: &str) -> Vec<Value> {
    let lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|event: &Value| event.get("event").is_some())
        .collect()
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) command: String,
}

impl Finished {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        let output = String::from_utf8_lossy(&self.stdout);
        assert_eq!(self.code, Some(code), "shardcron {}\n{output}\n{}", self.command, self.stderr);
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Standard output, as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error document on standard error, which has nothing else.
    #[track_caller]
    pub(crate) fn error(&self) -> Problem {
        let document: Value = serde_json::from_str(&self.stderr).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let text = |name: &str| document["error"][name].as_str().map(str::to_owned);
        Problem {
            kind: text("kind").unwrap(),
            field: text("field"),
            message: text("message").unwrap(),
            hint: text("hint"),
        }
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        events_in(&self.stderr)
    }
}

/// An error document.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) kind: String,
    pub(crate) field: Option<String>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// What `local run --json` says of an instance that has succeeded, with what is published of it.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) summary: Value,
    pub(crate) certificate: Value,
    /// The parts' content, one after the other.
    pub(crate) content: String,
}

impl Published {
    /// Reads the summary, follows its certificate, and checks that both agree.
    #[track_caller]
    pub(crate) fn of(run: &Finished) -> Self {
        let summary = run.json();
        assert_eq!(summary["status"], "Succeeded", "{summary}");
        let output = PathBuf::from(summary["output"].as_str().unwrap());
        let certificate: Value = serde_json::from_slice(&fs::read(output.join("_certificate.json")).unwrap()).unwrap();
        assert_eq!(certificate["parts"], summary["parts"]);
        assert_eq!(certificate["instance"], summary["instance"]);
        let totals = [("in", "recordsIn"), ("out", "recordsOut"), ("rejected", "rejected")];
        for (name, total) in totals {
            assert_eq!(summary["records"][name], certificate["totals"][total], "{name}: {certificate}");
            let shards = certificate["shards"].as_array().unwrap().iter();
            let sum: u64 = shards.map(|shard| shard[total].as_u64().unwrap()).sum();
            assert_eq!(sum, certificate["totals"][total], "{name}: {certificate}");
        }
        let mut content = String::new();
        for part in certificate["parts"].as_array().unwrap() {
            let part = fs::read_to_string(output.join(part["name"].as_str().unwrap())).unwrap();
            content.push_str(&part);
        }
        Self { summary, certificate, content }
    }

    pub(crate) fn instance(&self) -> &str {
        self.summary["instance"].as_str().unwrap()
    }

    /// Records in, out and rejected.
    pub(crate) fn records(&self) -> [u64; 3] {
        ["in", "out", "rejected"].map(|name| self.summary["records"][name].as_u64().unwrap())
    }
}

/// Says that the test which runs on this thread isn't run on this machine.
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    // Not by a macro, whose output libtest keeps to itself where a test passes; `.ci/run` looks for the line.
    let mut out = std::io::stderr().lock();
    writeln!(out, "skipped: {}; {why}", thread.name().unwrap_or("a test")).unwrap();
}
