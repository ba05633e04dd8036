//! Faults that are drawn: what becomes of each request, each wait, and each batch of the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use shardcron_store::hooked::{Operation, Verdict};
use shardcron_store::{Guard, ItemKey};

use crate::gate::{Act, Place, Request, Script};
use crate::ports::SeededRandom;
use crate::work::{Deed, Deeds};

/// The faults that are left, of all processes of a run together; after them there is peace, so that there is an end.
#[derive(Debug)]
pub struct Faults(AtomicI64);

impl Faults {
    /// So many.
    #[must_use]
    pub fn new(count: i64) -> Self {
        Self(AtomicI64::new(count))
    }

    /// Whether there is one left; then it is taken.
    fn take(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// There are none any more.
    pub fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What a process is especially unlucky with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Focus {
    Commits,
    Claims,
    Instances,
    DoneSets,
    Objects,
    Reads,
    Waits,
}

const FOCUSES: [Focus; 7] =
    [Focus::Commits, Focus::Claims, Focus::Instances, Focus::DoneSets, Focus::Objects, Focus::Reads, Focus::Waits];

impl Focus {
    fn of(request: &Request) -> Self {
        match &request.operation {
            None => Self::Objects,
            Some(Operation::Add(_)) => Self::DoneSets,
            Some(Operation::Put(put)) => Self::of_put(&put.item.key(), &put.guard),
            Some(Operation::Transact(puts, _)) => Self::of_put(&puts[0].item.key(), &puts[0].guard),
            Some(_) => Self::Reads,
        }
    }

    fn of_put(key: &ItemKey, guard: &Guard) -> Self {
        match (key, guard) {
            (ItemKey::Shard(_), Guard::Owner { .. }) => Self::Commits,
            (ItemKey::Shard(_) | ItemKey::Group(..), _) => Self::Claims,
            _ => Self::Instances,
        }
    }
}

/// Draws what becomes of each request and wait of one process.
pub struct Chaos {
    random: SeededRandom,
    faults: Arc<Faults>,
    rarity: u64,
    focus: Option<Focus>,
    /// Milliseconds that a request takes at most: now and then so many that races have room.
    latency: u64,
}

impl Chaos {
    /// Faults of this seed, so many times rarer than at their densest.
    #[must_use]
    pub fn new(seed: u64, faults: &Arc<Faults>, rarity: u64) -> Self {
        let random = SeededRandom::new(seed);
        let focus = random.once_in(2).then(|| FOCUSES[random.below(FOCUSES.len() as u64) as usize]);
        let latency = if random.once_in(4) { 100 + random.below(900) } else { 25 };
        Self { random, faults: Arc::clone(faults), rarity, focus, latency }
    }

    /// The same, of a process whose requests take long: what it does meets everything that others do.
    #[must_use]
    pub fn slow(self) -> Self {
        Self { latency: 2_000, ..self }
    }

    fn strikes(&self, focus: Focus, once_in: u64) -> bool {
        let once_in = if self.focus == Some(focus) { once_in.min(8) } else { once_in * self.rarity };
        self.random.once_in(once_in) && self.faults.take()
    }

    fn freeze(&self) -> Act {
        let most = if self.random.once_in(6) { 150_000 } else { 20_000 };
        Act::FreezeFor(Duration::from_millis(self.random.below(most)))
    }
}

impl Script for Chaos {
    fn latency(&self, _request: &Request) -> Duration {
        Duration::from_millis(self.random.below(self.latency))
    }

    fn before(&self, request: &Request) -> Act {
        let is_write = request.write.is_some();
        if !self.strikes(Focus::of(request), if is_write { 10 } else { 80 }) {
            return Act::Proceed;
        }
        match self.random.below(9) {
            0 => Act::Crash,
            1 | 2 => self.freeze(),
            3 => Act::Deny(Verdict::Throttle),
            4 | 5 if is_write => Act::Deny(Verdict::Delay),
            6 if is_write => Act::Deny(Verdict::Conflict),
            _ => Act::Deny(Verdict::LoseAnswer),
        }
    }

    fn after(&self, request: &Request) -> Act {
        if !self.strikes(Focus::of(request), if request.write.is_some() { 15 } else { 150 }) {
            return Act::Proceed;
        }
        match self.random.below(4) {
            0 => Act::Crash,
            1 => self.freeze(),
            _ => Act::Deny(Verdict::LoseAnswer),
        }
    }

    fn elsewhere(&self, place: Place) -> Act {
        let once_in = if place == Place::Content { 30 } else { 120 };
        if !self.strikes(Focus::Waits, once_in) {
            return Act::Proceed;
        }
        match self.random.below(4) {
            0 => Act::Crash,
            1 => self.freeze(),
            _ => Act::Deny(Verdict::LoseAnswer),
        }
    }
}

/// Works that fail now and then, kill their process, or take a while.
#[must_use]
pub fn moody(seed: u64, faults: &Arc<Faults>) -> Deeds {
    let (random, faults) = (SeededRandom::new(seed), Arc::clone(faults));
    Arc::new(move |_| {
        if !random.once_in(8) || !faults.take() {
            return Deed::Count;
        }
        match random.below(6) {
            0 => Deed::Fail,
            1 => Deed::CountAndFail,
            2 => Deed::Kill,
            _ => Deed::Take(Duration::from_millis(random.below(12_000))),
        }
    })
}
