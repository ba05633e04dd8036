//! The engine's small ports: virtual time, seeded chance, and events that are kept.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use shardcron_domain::time::{Duration, Millis, Reading};
use shardcron_engine::events::Event;
use shardcron_engine::ports::{Clock, Events, Random};
use tokio::time::Instant;

use crate::gate::{Gate, Place};

/// The world's own time: what all clocks would show if they were right.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    start: Instant,
    base: Millis,
}

impl Time {
    /// Time that begins now, at `base`.
    #[must_use]
    pub fn from(base: Millis) -> Self {
        Self { start: Instant::now(), base }
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.base.plus(Duration(self.start.elapsed().as_millis() as i64))
    }
}

/// The clock of one process.
#[derive(Debug)]
pub struct VirtualClock {
    time: Time,
    skew: Duration,
    gate: Arc<Gate>,
}

impl VirtualClock {
    /// A clock that is wrong by `skew`, of the process behind this gate.
    #[must_use]
    pub fn new(time: Time, skew: Duration, gate: Arc<Gate>) -> Self {
        Self { time, skew, gate }
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Reading {
        Reading::exact(self.time.now().plus(self.skew))
    }

    async fn sleep(&self, duration: Duration) {
        let _ = self.gate.pass_by(Place::Sleep).await;
        tokio::time::sleep(duration.to_std()).await;
        // Whoever stands still doesn't see that it is time.
        self.gate.life().pass().await;
    }
}

/// Chance that is the same for the same seed (Steele, Lea, Flood: "SplitMix", 2014).
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The chance of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Uniform over all of `u64`.
    pub fn draw(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform below `bound`, which isn't 0.
    pub fn below(&self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// True once in `times` on average.
    pub fn once_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }
}

impl Random for SeededRandom {
    fn next(&self) -> u64 {
        self.draw()
    }
}

/// An event that an engine emitted.
#[derive(Clone, Debug)]
pub struct Told {
    /// When.
    pub at: Millis,
    /// By which process.
    pub process: String,
    /// The event.
    pub event: Event,
}

/// What happened in the world, in order: events of the engines and what the harness adds.
#[derive(Debug)]
pub struct Journal {
    time: Time,
    lines: Mutex<Vec<String>>,
    events: Mutex<Vec<Told>>,
}

impl Journal {
    /// An empty journal.
    #[must_use]
    pub fn new(time: Time) -> Self {
        Self { time, lines: Mutex::default(), events: Mutex::default() }
    }

    /// The world's present.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.time.now()
    }

    /// Adds a line.
    pub fn note(&self, who: &str, what: &str) {
        let line = format!("{} {who}: {what}", self.time.now());
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// All lines.
    #[must_use]
    pub fn text(&self) -> String {
        self.last(usize::MAX)
    }

    /// The last lines, for a person.
    #[must_use]
    pub fn last(&self, count: usize) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines[lines.len().saturating_sub(count)..].join("\n")
    }

    /// The events of this name.
    #[must_use]
    pub fn events(&self, name: &str) -> Vec<Told> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().filter(|told| told.event.event == name).cloned().collect()
    }
}

/// The events of one process, in the world's journal.
#[derive(Debug)]
pub struct ProcessEvents {
    /// The process's name.
    pub process: String,
    /// The journal.
    pub journal: Arc<Journal>,
}

impl Events for ProcessEvents {
    fn emit(&self, event: Event) {
        let text = serde_json::to_string(&event).unwrap_or_default();
        self.journal.note(&self.process, &text);
        let mut events = self.journal.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(Told { at: self.journal.time.now(), process: self.process.clone(), event });
    }
}
