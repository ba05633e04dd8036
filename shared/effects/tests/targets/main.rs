//! The adapters against a server that answers by a script, and against SQS in process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails, fails its test")]

mod http;
mod sqs;

use shardcron_domain::ids::{Generation, RunId, ShardId, ShardKey, Token};
use shardcron_domain::job::{EffectsSpec, OnRefused};
use shardcron_domain::outbox::{EffectState, OutboxRow, RequestId};
use shardcron_effects::Sender;

/// The holder of shard 3 under token 7, in generation 2.
fn sender() -> Sender {
    let instance = "pay:2026-08-29T16:00:00Z".parse().unwrap();
    let run = RunId { instance, generation: Generation(2) };
    Sender::of(&ShardKey { run, shard: ShardId::numbered(3) }, Token(7))
}

fn spec(target: &str) -> EffectsSpec {
    EffectsSpec {
        target: target.to_owned(),
        compares_tokens: false,
        on_refused: OnRefused::Fail,
        timeout_seconds: 10,
        authorization_env: None,
        outcomes: None,
    }
}

fn row(key: &str, body: &str) -> OutboxRow {
    OutboxRow {
        no: 0,
        request_id: RequestId::of(&sender().instance, key),
        key: key.to_owned(),
        target: String::new(),
        body: body.to_owned(),
        content_type: None,
        state: EffectState::Pending,
    }
}
