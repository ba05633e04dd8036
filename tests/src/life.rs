//! Whether a process runs, stands still, or is dead.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// What a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It goes on.
    Running,
    /// It stands still, as under SIGSTOP or as a frozen Lambda: it knows nothing of it.
    Frozen,
    /// It has ended without a word. Nothing of it happens any more.
    Dead,
}

/// The state of one process, seen by all that it does.
///
/// Whoever waits is woken in the order in which it came: tokio's own watch channel wakes in an order that it draws, and
/// then the same seed wouldn't be the same run.
#[derive(Debug)]
pub struct Life {
    state: Mutex<State>,
    changed: Notify,
}

impl Default for Life {
    fn default() -> Self {
        Self { state: Mutex::new(State::Running), changed: Notify::new() }
    }
}

impl Life {
    /// The present state.
    #[must_use]
    pub fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on at once when the process runs, later when it is frozen, never when it is dead.
    pub async fn pass(&self) {
        self.wait_for(State::Running).await;
    }

    /// Waits until the process is in this state.
    pub async fn wait_for(&self, wanted: State) {
        loop {
            let changed = self.changed.notified();
            if self.state() == wanted {
                return;
            }
            changed.await;
        }
    }

    /// The process stands still from now on.
    pub fn freeze(&self) {
        self.change(|state| state == State::Running, State::Frozen);
    }

    /// A process that stood still goes on.
    pub fn thaw(&self) {
        self.change(|state| state == State::Frozen, State::Running);
    }

    /// The process ends.
    pub fn die(&self) {
        self.change(|_| true, State::Dead);
    }

    fn change(&self, from: impl FnOnce(State) -> bool, to: State) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if from(*state) {
            *state = to;
            drop(state);
            self.changed.notify_waiters();
        }
    }
}
