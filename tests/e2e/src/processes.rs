//! The functions' processes, where a stand-in runs them on this machine: found by their environment in `/proc`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::stack::Stack;
use crate::wait::pass;

/// How far apart two looks at a process are, to see whether it works: a few of the system's ticks.
const SAMPLE: Duration = Duration::from_millis(200);

/// A process of the shard function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(Pid);

impl Stack {
    /// The processes of this stack's shard function on this machine.
    #[must_use]
    pub fn shard_processes(&self) -> Vec<Process> {
        let wanted = [
            format!("AWS_LAMBDA_FUNCTION_NAME={}", self.shard_function),
            format!("AWS_ENDPOINT_URL={}", self.endpoint),
        ];
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let ours = |pid: &i32| {
            // Another user's, or one that has just ended, can't be read.
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let has = |wanted: &String| environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes());
            wanted.iter().all(has)
        };
        numbers.filter(ours).filter_map(|pid| Pid::from_raw(pid).map(Process)).collect()
    }

    /// The process that works: of all, the one that has used the most of the processor lately.
    #[must_use]
    pub fn busy_shard_process(&self) -> Option<Process> {
        let before: Vec<(Process, u64)> =
            self.shard_processes().into_iter().filter_map(|process| Some((process, process.ticks()?))).collect();
        pass(SAMPLE);
        let used = before.into_iter().filter_map(|(process, before)| Some((process.ticks()? - before, process)));
        used.max_by_key(|(ticks, _)| *ticks).filter(|(ticks, _)| *ticks > 0).map(|(_, process)| process)
    }
}

impl Process {
    fn file(self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.0.as_raw_nonzero()).into()
    }

    /// The processor's time that it has used, in the system's ticks (fields 14 and 15 of `stat`, proc(5)).
    fn ticks(self) -> Option<u64> {
        let stat = fs::read_to_string(self.file("stat")).ok()?;
        // The second field is the program's name in brackets, and may have spaces.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    }

    /// Whether it is there, and not only as the entry of one that has ended.
    #[must_use]
    pub fn is_alive(self) -> bool {
        let stat = fs::read_to_string(self.file("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    /// Stops it where it stands, as a machine that hangs would.
    pub fn freeze(self) {
        let _ = kill_process(self.0, Signal::STOP);
    }

    /// Ends it at once, as a fault of its own or the system's want of memory would.
    pub fn kill(self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}
