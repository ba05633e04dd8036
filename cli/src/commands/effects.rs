//! `shardcron effects`

use serde_json::{Value, json};
use shardcron_domain::outbox::{EffectState, OutboxRow};
use shardcron_domain::shard::Shard;

use crate::args::EffectsArgs;
use crate::commands::operate::find;
use crate::error::CliError;
use crate::output;
use crate::place::Place;

/// The effects of an instance in the order in which they go out, with what is known of each, and how many there are of
/// each state; the latter of all, whatever is shown.
pub(crate) async fn run(place: &Place, args: &EffectsArgs, as_json: bool) -> Result<(), CliError> {
    let instance = find(place, &args.instance).await?;
    let only = args.only.map(|only| only.name());
    let mut counts = json!({ "pending": 0, "unknown": 0, "sent": 0, "refused": 0 });
    let (mut rows, mut documents) = (Vec::new(), Vec::new());
    let take = |shard: &Shard, row: OutboxRow| {
        let name = row.state.name();
        counts[name] = json!(counts[name].as_u64().unwrap_or_default() + 1);
        if only.is_some_and(|only| only != name) {
        } else if as_json {
            documents.push(document(shard, &row));
        } else {
            rows.push(cells(shard, &row));
        }
    };
    place.runtime.engine.each_effect(&instance, take).await?;
    if as_json {
        return output::json(&json!({
            "instance": instance.id.to_string(), "generation": instance.generation, "counts": counts, "effects": documents,
        }));
    }
    let number = |name: &str| counts[name].as_u64().unwrap_or_default();
    let mut text = format!(
        "{}  {} sent, {} refused, {} unknown, {} pending\n",
        instance.id,
        number("sent"),
        number("refused"),
        number("unknown"),
        number("pending"),
    );
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&output::table(&["SHARD", "NO", "STATE", "REQUEST ID", "KEY", "OUTCOME"], &rows));
    }
    output::text(&text)
}

fn document(shard: &Shard, row: &OutboxRow) -> Value {
    let mut document = json!({
        "shard": shard.key.shard, "no": row.no, "key": row.key, "requestId": row.request_id, "target": row.target,
        "state": row.state.name(),
    });
    let more = match &row.state {
        EffectState::Pending => json!({}),
        EffectState::Sent { at, token, status } => json!({ "at": at.to_string(), "token": token, "status": status }),
        EffectState::Refused { at, token, status, text } => {
            json!({ "at": at.to_string(), "token": token, "status": status, "text": text })
        }
        EffectState::Unknown { tries, at, token, last } => {
            json!({ "at": at.to_string(), "token": token, "tries": tries, "last": last })
        }
    };
    if let (Some(document), Value::Object(more)) = (document.as_object_mut(), more) {
        document.extend(more);
    }
    document
}

fn cells(shard: &Shard, row: &OutboxRow) -> Vec<String> {
    let outcome = match &row.state {
        EffectState::Pending => String::new(),
        EffectState::Sent { at, token, status } => format!("{status} at {at}, under token {token}"),
        EffectState::Refused { at, token, status, text } => format!("{status} at {at}, under token {token}: {text}"),
        EffectState::Unknown { tries, at, token, last } => {
            format!("sent {tries} times, last at {at}, under token {token}: {last}")
        }
    };
    vec![
        shard.key.shard.to_string(),
        row.no.to_string(),
        row.state.name().to_owned(),
        row.request_id.to_string(),
        row.key.clone(),
        outcome,
    ]
}
