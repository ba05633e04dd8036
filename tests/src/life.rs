//! Whether a process runs, stands still, or is dead.

use tokio::sync::watch;

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
#[derive(Debug)]
pub struct Life(watch::Sender<State>);

impl Default for Life {
    fn default() -> Self {
        Self(watch::Sender::new(State::Running))
    }
}

impl Life {
    /// The present state.
    #[must_use]
    pub fn state(&self) -> State {
        *self.0.borrow()
    }

    /// Goes on at once when the process runs, later when it is frozen, never when it is dead.
    pub async fn pass(&self) {
        self.wait_for(State::Running).await;
    }

    /// Waits until the process is in this state.
    pub async fn wait_for(&self, wanted: State) {
        let mut states = self.0.subscribe();
        if states.wait_for(|state| *state == wanted).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The process stands still from now on.
    pub fn freeze(&self) {
        self.change(State::Running, State::Frozen);
    }

    /// A process that stood still goes on.
    pub fn thaw(&self) {
        self.change(State::Frozen, State::Running);
    }

    /// The process ends.
    pub fn die(&self) {
        self.0.send_replace(State::Dead);
    }

    fn change(&self, from: State, to: State) {
        self.0.send_if_modified(|state| {
            let is_it = *state == from;
            if is_it {
                *state = to;
            }
            is_it
        });
    }
}
