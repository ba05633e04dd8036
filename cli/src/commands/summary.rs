//! What an instance came to: the end of `local run`, and the body of `describe`.

use serde_json::{Value, json};
use shardcron_domain::certificate::Certificate;
use shardcron_domain::instance::Instance;
use shardcron_engine::view::Progress;
use shardcron_runtime::Runtime;

use crate::error::CliError;
use crate::output;

/// What there is to say about an instance.
pub(crate) struct Summary {
    instance: Instance,
    progress: Progress,
    certificate: Option<Certificate>,
    output: String,
}

impl Summary {
    pub(crate) async fn of(runtime: &Runtime, instance: Instance) -> Result<Self, CliError> {
        let engine = &runtime.engine;
        let progress = engine.progress_in_full(&instance).await?;
        let certificate = engine.certificate(&instance).await?;
        let output = engine.output_place(&instance).await?;
        Ok(Self { instance, progress, certificate, output })
    }

    /// Why it didn't succeed, if it has ended otherwise.
    pub(crate) fn reason(&self) -> Option<String> {
        if !self.instance.status.is_terminal() {
            return None;
        }
        self.instance.status.outcome().map(|outcome| outcome.describe())
    }

    /// Whether there is a certificate, which readers need for anything of the output.
    pub(crate) fn is_published(&self) -> bool {
        self.certificate.is_some()
    }

    /// From the first claim to the end, in seconds. Each was read from the clock of its process, and two clocks agree
    /// within their uncertainty only: a negative difference is none.
    fn seconds(&self) -> Option<f64> {
        let (started, ended) = (self.instance.started_at?, self.instance.ended_at?);
        Some(ended.since(started).0.max(0) as f64 / 1000.0)
    }

    pub(crate) fn json(&self) -> Value {
        let counts = self.progress.counts;
        json!({
            "instance": self.instance.id.to_string(),
            "status": self.instance.status.name(),
            "reason": self.reason(),
            "lastFault": self.instance.last_fault.as_ref().map(|fault| fault.summary().to_owned()),
            "generation": self.instance.generation,
            "attempt": self.instance.attempt,
            "specVersion": self.instance.spec,
            "skippedBefore": self.instance.skipped,
            "window": self.instance.window,
            "records": output::counts(counts),
            "shards": { "total": self.progress.shards, "done": self.progress.done, "leased": self.progress.leased },
            "effects": (self.progress.effects_waiting > 0 || !self.progress.effects.is_empty()).then(|| json!({
                "sent": self.progress.effects.sent, "refused": self.progress.effects.refused,
                "waiting": self.progress.effects_waiting,
            })),
            "takeovers": self.progress.takeovers,
            "stepTakeovers": self.instance.takeovers,
            "seconds": self.seconds(),
            "output": self.certificate.as_ref().map(|_| self.output.clone()),
            "parts": self.certificate.as_ref().map(|certificate| certificate.parts.clone()),
        })
    }

    pub(crate) fn text(&self) -> String {
        let counts = self.progress.counts;
        let mut text = format!("{}  {}\n", self.instance.id, self.instance.status.name());
        let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<9} {value}\n"));
        if let Some(reason) = self.reason() {
            line("reason", reason);
        }
        if let Some(fault) = self.instance.last_fault.as_ref().filter(|_| !self.instance.status.is_terminal()) {
            line("trouble", fault.summary().to_owned());
        }
        line("window", format!("{} to {}", self.instance.window.start, self.instance.window.end));
        line("records", format!("{} in, {} out, {} rejected", counts.input, counts.output, counts.rejected));
        let (effects, waiting) = (self.progress.effects, self.progress.effects_waiting);
        if waiting > 0 || !effects.is_empty() {
            line("effects", format!("{} sent, {} refused, {waiting} waiting", effects.sent, effects.refused));
        }
        line("shards", format!("{} of {} done", self.progress.done, self.progress.shards));
        line("takeovers", format!("{} of shards, {} of steps", self.progress.takeovers, self.instance.takeovers));
        if let Some(seconds) = self.seconds() {
            line("time", format!("{seconds:.0} s from first claim to end"));
        }
        if let Some(certificate) = &self.certificate {
            line("output", self.output.clone());
            for part in &certificate.parts {
                line("", format!("{} ({} rows, {} bytes)", part.name, part.rows, part.bytes));
            }
        }
        text
    }
}
