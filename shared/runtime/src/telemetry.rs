//! Where events go: JSON lines on standard error or in a file; of the functions, with CloudWatch's metrics in them;
//! nowhere for a command that draws a progress bar.

pub mod emf;
pub mod metrics;

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use shardcron_engine::events::Event;
use shardcron_engine::ports::Events;

/// Events as JSON, one a line.
pub struct JsonLines {
    to: Mutex<Box<dyn Write + Send>>,
}

impl JsonLines {
    /// To this writer.
    #[must_use]
    pub fn new(to: Box<dyn Write + Send>) -> Self {
        Self { to: Mutex::new(to) }
    }

    /// To standard error.
    #[must_use]
    pub fn to_stderr() -> Self {
        Self::new(Box::new(std::io::stderr()))
    }
}

impl Events for JsonLines {
    fn emit(&self, event: Event) {
        let Ok(mut line) = serde_json::to_vec(&event) else { return };
        line.push(b'\n');
        // A log that can't be written must not stop a settlement.
        let _ = self.to.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}

/// Nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Events for Silent {
    fn emit(&self, _event: Event) {}
}
