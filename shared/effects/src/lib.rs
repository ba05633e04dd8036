//! The port to the targets of effects outside of a job's result, and its adapters.
//!
//! An adapter sends, once, and says what came back; it decides nothing, keeps no order and has no patience of its own.
//! What an answer means is the domain's ([`Answer::meaning`]), and whether to send again, and how long to wait for an
//! answer, is the engine's. A future that is dropped before its end may have sent.

mod http;
mod sqs;

use async_trait::async_trait;
use shardcron_domain::ids::{Generation, InstanceId, ShardId, ShardKey, Token};
use shardcron_domain::job::{EffectTarget, EffectsSpec};
use shardcron_domain::outbox::{Answer, FenceToken, OutboxRow, RequestId};

pub use self::http::{HttpTargets, Secrets};
pub use self::sqs::{SqsClient, SqsTargets};

/// What a receiver knows an effect again by.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
/// The instance that an effect is of: `job:2026-08-29T16:00:00Z`.
pub const INSTANCE: &str = "Shardcron-Instance";
/// The generation of the instance that the sender runs.
pub const GENERATION: &str = "Shardcron-Generation";
/// The shard that the sender holds.
pub const SHARD: &str = "Shardcron-Shard";
/// The sender's token, as one number that rises ([`FenceToken`]).
pub const TOKEN: &str = "Shardcron-Token";
/// Says, by `1`, that a request brings a token and no effect.
pub const INSTALL: &str = "Shardcron-Install";

/// Who sends: the holder of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The instance.
    pub instance: InstanceId,
    /// Its generation.
    pub generation: Generation,
    /// The shard.
    pub shard: ShardId,
    /// The holder's token.
    pub token: FenceToken,
}

impl Sender {
    /// The holder of this shard under this token.
    #[must_use]
    pub fn of(shard: &ShardKey, token: Token) -> Self {
        let run = &shard.run;
        Self {
            instance: run.instance.clone(),
            generation: run.generation,
            shard: shard.shard.clone(),
            token: FenceToken::of(run.generation, token),
        }
    }

    /// What each request says of its sender, by name.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, String); 4] {
        [
            (INSTANCE, self.instance.to_string()),
            (GENERATION, self.generation.to_string()),
            (SHARD, self.shard.to_string()),
            (TOKEN, self.token.to_string()),
        ]
    }
}

/// The port.
#[async_trait]
pub trait EffectTargets: Send + Sync {
    /// Brings the sender's token to a target that compares tokens, without an effect: from then on it refuses a lower one.
    async fn install(&self, spec: &EffectsSpec, sender: &Sender) -> Answer;

    /// Sends an effect.
    async fn send(&self, spec: &EffectsSpec, sender: &Sender, row: &OutboxRow) -> Answer;

    /// Asks whether the target has the effect with this id, where the job says how: 2xx if so.
    async fn ask(&self, spec: &EffectsSpec, id: &RequestId) -> Answer;
}

/// All kinds of targets.
#[derive(Debug)]
pub struct Targets {
    http: HttpTargets,
    sqs: SqsTargets,
}

impl Targets {
    /// By these adapters.
    #[must_use]
    pub fn new(http: HttpTargets, sqs: SqsTargets) -> Self {
        Self { http, sqs }
    }
}

#[async_trait]
impl EffectTargets for Targets {
    async fn install(&self, spec: &EffectsSpec, sender: &Sender) -> Answer {
        match spec.target() {
            EffectTarget::Http(url) => self.http.install(spec, url, sender).await,
            EffectTarget::Sqs(_) => Answer::Unusable("a queue compares no tokens".to_owned()),
        }
    }

    async fn send(&self, spec: &EffectsSpec, sender: &Sender, row: &OutboxRow) -> Answer {
        match spec.target() {
            EffectTarget::Http(url) => self.http.send(spec, url, sender, row).await,
            EffectTarget::Sqs(queue) => self.sqs.send(queue, sender, row).await,
        }
    }

    async fn ask(&self, spec: &EffectsSpec, id: &RequestId) -> Answer {
        self.http.ask(spec, id).await
    }
}
