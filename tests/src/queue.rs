//! The queues in memory, in virtual time, and as unreliable as a test wants them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use shardcron_domain::time::Duration;
use shardcron_queue::{Outgoing, Queue, QueueError, QueueName, Received};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::gate::{Denied, Gate, Place};
use crate::ports::SeededRandom;

/// How long a message that was received stays invisible unless its receiver says otherwise: AWS asks for six times a
/// function's timeout.
pub const VISIBILITY: std::time::Duration = std::time::Duration::from_secs(90);

/// How messages are treated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mail {
    /// Percent of the messages that are lost.
    pub lost: u64,
    /// Percent of the others that are delivered twice.
    pub doubled: u64,
    /// Whether any visible message comes next, instead of the oldest.
    pub shuffled: bool,
}

/// The queues.
#[derive(Debug)]
pub struct MemoryQueue {
    state: Mutex<State>,
    random: SeededRandom,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<Message>,
    next: u64,
    mail: Mail,
    history: Vec<(QueueName, String)>,
}

#[derive(Clone, Debug)]
struct Message {
    queue: QueueName,
    id: String,
    receipt: String,
    body: String,
    visible: Instant,
    received: u32,
}

impl State {
    fn push(&mut self, queue: QueueName, body: String, visible: Instant) {
        self.next += 1;
        let id = format!("m{}", self.next);
        self.messages.push(Message { queue, id, receipt: String::new(), body, visible, received: 0 });
    }
}

impl MemoryQueue {
    /// Empty queues, whose chance is of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: Mutex::default(), random: SeededRandom::new(seed), changed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Treats messages so from now on.
    pub fn treat(&self, mail: Mail) {
        self.state().mail = mail;
    }

    /// Loses all messages, as the memory of a process that has ended.
    pub fn clear(&self) {
        self.state().messages.clear();
    }

    /// Sends every message that was ever sent again, in reverse order.
    pub fn repeat_all(&self) {
        let mut state = self.state();
        for (queue, body) in state.history.clone().into_iter().rev() {
            state.push(queue, body, Instant::now());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state().messages.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&self, queue: QueueName, max: usize) -> Vec<Received> {
        let now = Instant::now();
        let mut state = self.state();
        let mut taken = Vec::new();
        while taken.len() < max {
            let visible: Vec<usize> = (0..state.messages.len())
                .filter(|place| state.messages[*place].queue == queue && state.messages[*place].visible <= now)
                .collect();
            if visible.is_empty() {
                break;
            }
            let which = if state.mail.shuffled { self.random.below(visible.len() as u64) as usize } else { 0 };
            state.next += 1;
            let receipt = format!("r{}", state.next);
            let message = &mut state.messages[visible[which]];
            message.visible = now + VISIBILITY;
            message.received += 1;
            message.receipt = receipt.clone();
            taken.push(Received {
                id: message.id.clone(),
                receipt,
                body: message.body.clone(),
                receive_count: message.received,
            });
        }
        taken
    }

    fn next_visible(&self, queue: QueueName) -> Option<Instant> {
        let state = self.state();
        state.messages.iter().filter(|message| message.queue == queue).map(|message| message.visible).min()
    }
}

fn gone(what: &str) -> QueueError {
    QueueError::Gone { what: what.to_owned() }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn send(&self, queue: QueueName, messages: Vec<Outgoing>) -> Result<(), QueueError> {
        let mut state = self.state();
        for message in messages {
            state.history.push((queue, message.body.clone()));
            if self.random.below(100) < state.mail.lost {
                continue;
            }
            let visible = Instant::now() + message.delay.to_std();
            if self.random.below(100) < state.mail.doubled {
                state.push(queue, message.body.clone(), visible);
            }
            state.push(queue, message.body, visible);
        }
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn receive(&self, queue: QueueName, max: usize, wait: Duration) -> Result<Vec<Received>, QueueError> {
        let until = Instant::now() + wait.to_std();
        loop {
            let changed = self.changed.notified();
            let taken = self.take(queue, max);
            if !taken.is_empty() || Instant::now() >= until {
                return Ok(taken);
            }
            let next = self.next_visible(queue).map_or(until, |next| next.min(until));
            let _ = tokio::time::timeout_at(next, changed).await;
        }
    }

    async fn delete(&self, _queue: QueueName, receipt: &str) -> Result<(), QueueError> {
        let mut state = self.state();
        let before = state.messages.len();
        state.messages.retain(|message| message.receipt != receipt);
        if state.messages.len() < before { Ok(()) } else { Err(gone("a deletion")) }
    }

    async fn set_visibility(&self, _queue: QueueName, receipt: &str, after: Duration) -> Result<(), QueueError> {
        let mut state = self.state();
        let message = state.messages.iter_mut().find(|message| message.receipt == receipt);
        message.ok_or_else(|| gone("a change of visibility"))?.visible = Instant::now() + after.to_std();
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }
}

/// The world's queues as one process reaches them.
#[derive(Debug)]
pub struct GatedQueue {
    /// The queues.
    pub queue: Arc<MemoryQueue>,
    /// The process's gate.
    pub gate: Arc<Gate>,
}

impl GatedQueue {
    /// A call, which can be cut off before it and after it.
    async fn call<T>(&self, what: &str, call: impl Future<Output = Result<T, QueueError>>) -> Result<T, QueueError> {
        let lost = |denied: Denied| QueueError::Unavailable { what: what.to_owned(), source: Box::new(denied) };
        self.gate.pass_by(Place::Queue).await.map_err(lost)?;
        let answer = call.await;
        self.gate.pass_by(Place::Queue).await.map_err(lost)?;
        answer
    }
}

#[async_trait]
impl Queue for GatedQueue {
    async fn send(&self, queue: QueueName, messages: Vec<Outgoing>) -> Result<(), QueueError> {
        self.call("a sending", self.queue.send(queue, messages)).await
    }

    async fn receive(&self, queue: QueueName, max: usize, wait: Duration) -> Result<Vec<Received>, QueueError> {
        self.call("a receipt", self.queue.receive(queue, max, wait)).await
    }

    async fn delete(&self, queue: QueueName, receipt: &str) -> Result<(), QueueError> {
        self.call("a deletion", self.queue.delete(queue, receipt)).await
    }

    async fn set_visibility(&self, queue: QueueName, receipt: &str, after: Duration) -> Result<(), QueueError> {
        self.call("a change of visibility", self.queue.set_visibility(queue, receipt, after)).await
    }
}
