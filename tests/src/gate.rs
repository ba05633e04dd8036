//! What stands between a process and the world's store and objects: a script that says what becomes of each request.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use shardcron_domain::time::Duration as Span;
use shardcron_store::holds::Holds;
use shardcron_store::hooked::{Hook, Operation, Verdict};
use shardcron_store::{Guard, Item};

use crate::check::Checker;
use crate::life::Life;
use crate::ports::Journal;

/// A request of a process, to the store or to the objects.
#[derive(Clone, Debug)]
pub struct Request {
    /// For a write: which one of this process, counted from 1.
    pub write: Option<usize>,
    /// What it is, for people.
    pub what: String,
    /// What it is, if it goes to the store.
    pub operation: Option<Operation>,
}

impl Request {
    /// Whether it cuts a shard: the parent's write and a child's.
    #[must_use]
    pub fn is_split(&self) -> bool {
        let Some(Operation::Transact(puts, _)) = &self.operation else { return false };
        matches!(puts.as_slice(), [_, child] if matches!(&child.item, Item::Shard(_)) && child.guard == Guard::Absent)
    }
}

/// What becomes of a request, or of the process that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It goes on.
    Proceed,
    /// The store's hook answers. At a put of an object, any verdict is a lost answer; before it, without an effect.
    Deny(Verdict),
    /// The process ends here.
    Crash,
    /// The process stands still here, until somebody thaws it.
    Freeze,
    /// The process stands still here for so long.
    FreezeFor(Duration),
}

/// Where else a process waits: none of these is a request that is counted or takes time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Within an object's content.
    Content,
    /// Before or after a call of the queue.
    Queue,
    /// Before a sleep.
    Sleep,
}

/// How the journal says that a request was turned away with a conflict, since another's transaction held one of its items.
pub const MET_A_TRANSACTION: &str = "met a transaction";

/// What is sent for a moment holds its items to the end of it.
const MOMENT: Span = Span(1);

fn span(duration: Duration) -> Span {
    Span(duration.as_millis() as i64)
}

/// How long a request is under way unless a script says otherwise.
pub const LATENCY: Duration = Duration::from_millis(3);

/// Says what becomes of the requests of one process.
pub trait Script: Send + Sync {
    /// How long a request is under way before it takes effect.
    fn latency(&self, request: &Request) -> Duration {
        let _ = request;
        LATENCY
    }

    /// Before it takes effect.
    fn before(&self, request: &Request) -> Act {
        let _ = request;
        Act::Proceed
    }

    /// After it took effect, before it is answered. Not asked about reads of objects.
    fn after(&self, request: &Request) -> Act {
        let _ = request;
        Act::Proceed
    }

    /// Where it waits for something that isn't a request. A denial is a lost connection; a sleep can't be denied.
    fn elsewhere(&self, place: Place) -> Act {
        let _ = place;
        Act::Proceed
    }
}

/// Nothing goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Peace;

impl Script for Peace {}

/// On which side of its effect something happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before it takes effect.
    Before,
    /// After it took effect.
    After,
}

/// One thing happens, at one write of the process.
#[derive(Clone, Copy, Debug)]
pub struct AtWrite {
    /// Which write, from 1.
    pub write: usize,
    /// When.
    pub moment: Moment,
    /// What.
    pub act: Act,
}

impl AtWrite {
    fn act(&self, moment: Moment, request: &Request) -> Act {
        if self.moment == moment && request.write == Some(self.write) { self.act } else { Act::Proceed }
    }
}

impl Script for AtWrite {
    fn before(&self, request: &Request) -> Act {
        self.act(Moment::Before, request)
    }

    fn after(&self, request: &Request) -> Act {
        self.act(Moment::After, request)
    }
}

/// The process stands still at one request, of whatever kind.
#[derive(Debug)]
pub struct FreezeAtRequest {
    left: AtomicUsize,
}

impl FreezeAtRequest {
    /// Before its request of this number, counted from 1.
    #[must_use]
    pub fn new(number: usize) -> Self {
        Self { left: AtomicUsize::new(number) }
    }
}

impl Script for FreezeAtRequest {
    fn before(&self, _request: &Request) -> Act {
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            1 => Act::Freeze,
            _ => Act::Proceed,
        }
    }
}

/// A request that wasn't let through, or whose answer was kept back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied(pub Verdict);

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the script's verdict was {:?}", self.0)
    }
}

impl std::error::Error for Denied {}

/// The gate of one process.
pub struct Gate {
    name: String,
    life: Arc<Life>,
    script: Box<dyn Script>,
    checker: Arc<Checker>,
    journal: Arc<Journal>,
    writes: AtomicUsize,
    /// The request that takes effect right now; nothing else of the process runs then.
    inside: Mutex<Option<Request>>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Gate {
    /// The gate of the process of this name.
    #[must_use]
    pub fn new(
        name: &str,
        life: Arc<Life>,
        script: Box<dyn Script>,
        checker: Arc<Checker>,
        journal: Arc<Journal>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            life,
            script,
            checker,
            journal,
            writes: AtomicUsize::new(0),
            inside: Mutex::new(None),
        }
    }

    /// The life of the process behind it.
    #[must_use]
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// How many writes have come here.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// A read.
    #[must_use]
    pub fn read(&self, what: &str) -> Request {
        Request { write: None, what: what.to_owned(), operation: None }
    }

    /// The next write.
    pub fn write(&self, what: String, operation: Option<Operation>) -> Request {
        Request { write: Some(self.writes.fetch_add(1, Ordering::Relaxed) + 1), what, operation }
    }

    fn of_store(&self, operation: &Operation) -> Request {
        let what = describe(operation);
        if operation.is_write() {
            return self.write(what, Some(operation.clone()));
        }
        Request { write: None, what, operation: Some(operation.clone()) }
    }

    /// Before a request takes effect.
    ///
    /// # Errors
    /// [`Denied`]: it doesn't take effect.
    pub async fn enter(&self, request: &Request) -> Result<(), Denied> {
        self.enter_after(request, self.script.latency(request)).await
    }

    async fn enter_after(&self, request: &Request, latency: Duration) -> Result<(), Denied> {
        tokio::time::sleep(latency).await;
        self.life.pass().await;
        let act = self.script.before(request);
        if request.write.is_some() || act != Act::Proceed {
            self.note(Moment::Before, request, act);
        }
        self.perform(act).await
    }

    /// After it took effect.
    ///
    /// # Errors
    /// [`Denied`]: its answer is lost.
    pub async fn leave(&self, request: &Request) -> Result<(), Denied> {
        if let (Some(_), Some(operation)) = (request.write, &request.operation) {
            self.checker.watch(&format!("{} {}", self.name, request.what), operation, self.journal.now());
        }
        if request.write.is_some() {
            self.checker.check(&format!("{} {}", self.name, request.what));
        }
        let act = self.script.after(request);
        if act != Act::Proceed {
            self.note(Moment::After, request, act);
        }
        self.perform(act).await
    }

    /// Where the process waits for something that isn't a request.
    ///
    /// # Errors
    /// [`Denied`]: what it waits for doesn't come.
    pub async fn pass_by(&self, place: Place) -> Result<(), Denied> {
        let act = self.script.elsewhere(place);
        if act != Act::Proceed {
            self.journal.note(&self.name, &format!("{place:?}: {act:?}"));
        }
        self.perform(act).await
    }

    fn note(&self, moment: Moment, request: &Request, act: Act) {
        let number = request.write.map(|write| format!("write {write}, ")).unwrap_or_default();
        self.journal.note(&self.name, &format!("{number}{} ({moment:?}: {act:?})", request.what));
    }

    async fn perform(&self, act: Act) -> Result<(), Denied> {
        match act {
            Act::Proceed => {}
            Act::Deny(verdict) => return Err(Denied(verdict)),
            Act::Crash => self.life.die(),
            Act::Freeze => self.life.freeze(),
            Act::FreezeFor(duration) => {
                self.life.freeze();
                let life = Arc::clone(&self.life);
                // A task of its own: the world wakes the process, not the process itself.
                tokio::spawn(async move {
                    tokio::time::sleep(duration).await;
                    life.thaw();
                });
            }
        }
        self.life.pass().await;
        Ok(())
    }
}

/// A process's gate as the hook before its store. A transaction holds its items from when it is sent until it takes
/// effect.
#[derive(Debug)]
pub struct GateHook {
    /// The gate.
    pub gate: Arc<Gate>,
    /// What the transactions of all processes hold.
    pub holds: Arc<Holds>,
}

#[async_trait]
impl Hook for GateHook {
    async fn before(&self, operation: &Operation) -> Verdict {
        let request = self.gate.of_store(operation);
        let latency = self.gate.script.latency(&request);
        let keys = operation.written();
        let sent = self.gate.journal.now();
        let holder = match operation {
            Operation::Transact(..) => self.holds.take(&keys, sent, sent.plus(span(latency)).plus(MOMENT)),
            _ => None,
        };
        let entered = self.gate.enter_after(&request, latency).await;
        let is_turned_away = holder.is_none() && matches!(operation, Operation::Transact(..))
            || self.holds.is_met(&keys, holder, self.gate.journal.now());
        if let Some(holder) = holder {
            self.holds.release(holder);
        }
        match entered {
            Ok(()) if is_turned_away => {
                self.gate.journal.note(&self.gate.name, &format!("{} {MET_A_TRANSACTION}", request.what));
                Verdict::Conflict
            }
            Ok(()) => {
                // From here to `after` nothing waits, so there is one at a time.
                *self.gate.inside.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
                Verdict::Proceed
            }
            Err(Denied(verdict)) => verdict,
        }
    }

    async fn after(&self, operation: &Operation) -> Verdict {
        let inside = self.gate.inside.lock().unwrap_or_else(PoisonError::into_inner).take();
        let request = inside.unwrap_or_else(|| self.gate.read(operation.name()));
        match self.gate.leave(&request).await {
            Ok(()) => Verdict::Proceed,
            Err(Denied(verdict)) => verdict,
        }
    }
}

fn describe(operation: &Operation) -> String {
    match operation {
        Operation::Put(put) => format!("put {} {:?}", put.item.key(), put.guard),
        Operation::Transact(puts, _) => {
            let first = &puts[0];
            format!("transact {} items, first {} {:?}", puts.len(), first.item.key(), first.guard)
        }
        Operation::Add(add) => format!("{add:?}"),
        Operation::Get(key) => format!("get {key}"),
        other => other.name().to_owned(),
    }
}
