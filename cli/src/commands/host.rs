//! `shardcron local up` and `shardcron host`

use std::time::Duration;

use shardcron_engine::events::{self, Event};

use crate::error::CliError;
use crate::place::Place;
use crate::workers::{Timer, Workers};

/// How often the embedded sweep looks: it costs nothing there.
const EMBEDDED_SWEEP: Duration = Duration::from_secs(1);

/// Runs timer and workers until SIGINT or SIGTERM, then lets the workers commit and give back what they have.
pub(crate) async fn run(place: &Place, workers: u16, tick: u32, embedded: bool) -> Result<(), CliError> {
    let stopped = interrupted()?;
    // This start may be the first one with newer rules of the zones.
    place.runtime.engine.mend_all_next_fires().await?;
    let started = Event::new(events::STARTED).with("workers", workers).with("tickSeconds", tick);
    let workers = Workers::start(&place.runtime, workers);
    place.runtime.engine.events.emit(started);
    let timer = Timer {
        tick: Duration::from_secs(u64::from(tick)),
        sweep: embedded.then_some(EMBEDDED_SWEEP),
        queues_are_new: embedded,
    };
    timer.run(&place.runtime, stopped).await;
    workers.finish().await;
    Ok(())
}

/// Done when the process is asked to stop.
pub(crate) fn interrupted() -> Result<impl Future<Output = ()>, CliError> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error: std::io::Error| CliError::failed("internal", format!("can't listen for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
