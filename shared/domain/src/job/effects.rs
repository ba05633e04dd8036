//! `effects` and `work.send`: where effects outside of the result go, and the work that asks for one each record.

use schemars::JsonSchema;
use serde::Serialize;

use super::error::{SpecError, SpecErrorKind};
use super::parse::columns;
use super::read::Node;
use super::schema;
use crate::limits;

/// What the names of environment variables that hold secrets for targets begin with. A job can name no other, or whoever
/// may apply one could send any secret of a worker to a place of theirs.
pub const SECRET_PREFIX: &str = "SHARDCRON_SECRET_";

/// What stands for an effect's request id in `effects.outcomes`.
pub const ID_PLACE: &str = "{id}";

/// Where a job's effects outside of the result go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct EffectsSpec {
    /// The target: an `http://` or `https://` URL, or `sqs:` and a queue's name or URL.
    #[schemars(length(min = 1, max = limits::EFFECT_TARGET_BYTES_MAX))]
    pub target: String,
    /// Whether the target compares tokens and refuses a lower one than it has seen. HTTP only.
    #[schemars(default)]
    pub compares_tokens: bool,
    /// What becomes of an effect that the target refuses for good; it fails the shard by default.
    #[schemars(default)]
    pub on_refused: OnRefused,
    /// How long the target may take to answer; 10 by default.
    #[schemars(default = "timeout_default", range(min = 1, max = limits::EFFECT_TIMEOUT_SECONDS_MAX))]
    pub timeout_seconds: u32,
    /// The environment variable of the workers whose value is sent as `Authorization`. HTTP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_env: Option<String>,
    /// Where to ask whether the target has an effect that may have been sent before; [`ID_PLACE`] stands for its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<String>,
}

/// What becomes of an effect that the target refuses for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnRefused {
    /// The shard fails, and with it the instance.
    #[default]
    Fail,
    /// The refusal is recorded, and the next effect goes out.
    Record,
}

/// A target, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectTarget<'a> {
    /// Requests go to this URL.
    Http(&'a str),
    /// Messages go to the queue of this name or URL.
    Sqs(&'a str),
}

fn timeout_default() -> u32 {
    limits::EFFECT_TIMEOUT_SECONDS_DEFAULT
}

impl EffectsSpec {
    /// The target, taken apart.
    #[must_use]
    pub fn target(&self) -> EffectTarget<'_> {
        match self.target.strip_prefix("sqs:") {
            Some(queue) => EffectTarget::Sqs(queue),
            None => EffectTarget::Http(&self.target),
        }
    }
}

/// One effect for each record, to where [`JobSpec::effects`](super::JobSpec::effects) says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct SendSpec {
    /// Columns whose values make the effect's key: together they name a record of the instance's input, and no other.
    #[schemars(schema_with = "schema::columns")]
    pub key: Vec<String>,
    /// Columns that are sent, in this order; all of the record by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default, schema_with = "schema::columns")]
    pub body: Vec<String>,
}

impl SendSpec {
    /// The columns of its output, in order: those of the key, then `request_id`.
    #[must_use]
    pub fn columns(&self) -> Vec<String> {
        self.key.iter().cloned().chain([REQUEST_ID_COLUMN.to_owned()]).collect()
    }
}

/// The column of a `send`'s output that names what the receiver knows the effect again by.
pub const REQUEST_ID_COLUMN: &str = "request_id";

pub(super) fn read(node: &Node<'_>) -> Result<EffectsSpec, SpecError> {
    let fields =
        node.fields(&["target", "comparesTokens", "onRefused", "timeoutSeconds", "authorizationEnv", "outcomes"])?;
    let target = fields.required("target", "\"https://ledger.example/payments\"")?;
    let text = target.text_within(limits::EFFECT_TARGET_BYTES_MAX)?;
    let is_http = match text.strip_prefix("sqs:") {
        Some(queue) => check_queue(&target, queue).map(|()| false)?,
        None => check_url(&target, text).map(|()| true)?,
    };
    let spec = EffectsSpec {
        target: text.to_owned(),
        compares_tokens: fields.or("comparesTokens", false, Node::boolean)?,
        on_refused: fields.or("onRefused", OnRefused::default(), |node| {
            node.choice(&[("fail", OnRefused::Fail), ("record", OnRefused::Record)])
        })?,
        timeout_seconds: fields.or("timeoutSeconds", limits::EFFECT_TIMEOUT_SECONDS_DEFAULT, |node| {
            node.integer(1..=limits::EFFECT_TIMEOUT_SECONDS_MAX)
        })?,
        authorization_env: fields.or("authorizationEnv", None, |node| secret(node).map(Some))?,
        outcomes: fields.or("outcomes", None, |node| outcomes(node).map(Some))?,
    };
    if !is_http {
        let given = [
            ("comparesTokens", spec.compares_tokens),
            ("authorizationEnv", spec.authorization_env.is_some()),
            ("outcomes", spec.outcomes.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
            let message = "a queue compares no tokens, takes no such header and answers no questions";
            return Err(
                SpecError::value(fields.path_of(name), message).with_hint("leave it out, or name an HTTP target")
            );
        }
    }
    let plain = |text: &str| text.starts_with("http://") && !is_loopback(text);
    let asked = spec.outcomes.as_deref().unwrap_or_default();
    if spec.authorization_env.is_some() && (plain(&spec.target) || plain(asked)) {
        let message = "a secret isn't sent over http://, where others on the way can read it";
        return Err(SpecError::value(fields.path_of("authorizationEnv"), message).with_hint("write https://"));
    }
    Ok(spec)
}

pub(super) fn read_send(node: &Node<'_>) -> Result<SendSpec, SpecError> {
    let fields = node.fields(&["key", "body"])?;
    let node = fields.required("key", "[\"invoice_id\"]")?;
    let key = columns(&node)?;
    if key.is_empty() {
        let message = "it names no column, and each effect needs a key of its own";
        return Err(SpecError::new(SpecErrorKind::Missing, node.path.as_str(), message)
            .with_hint("name the columns that tell records apart, such as [\"invoice_id\"]"));
    }
    if let Some(place) = key.iter().position(|column| column == REQUEST_ID_COLUMN) {
        let message = format!("the output would have two columns `{REQUEST_ID_COLUMN}`");
        return Err(SpecError::value(format!("{}[{place}]", node.path), message).with_hint("rename it in the input"));
    }
    Ok(SendSpec { key, body: fields.or("body", Vec::new(), columns)? })
}

/// Checks a URL as far as a person's slips go; whether it leads anywhere shows at the first request.
fn check_url(node: &Node<'_>, text: &str) -> Result<(), SpecError> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err(node
            .wrong(format!("`{text}` begins with neither `https://`, `http://` nor `sqs:`"))
            .with_hint("write https://host/path, or sqs:queue-name"));
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.is_empty() || authority.starts_with(':') {
        return Err(node.wrong(format!("`{text}` names no host")));
    }
    if authority.contains('@') {
        let error = node.wrong("it has credentials in it, and a job's file is no place for a secret");
        return Err(
            error.with_hint("put them into a variable of the workers, and name that in effects.authorizationEnv")
        );
    }
    if text.contains('#') {
        return Err(node.wrong(format!("`{text}` has a fragment, which no request carries")));
    }
    // What stands for an id is filled in before a request is made.
    let legal = |byte: u8| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte);
    match text.replace(ID_PLACE, "").bytes().find(|byte| !legal(*byte)) {
        Some(_) => Err(node
            .wrong(format!("`{text}` has a character that can't stand in a URL"))
            .with_hint("write it percent-encoded, such as %20 for a space")),
        None => Ok(()),
    }
}

/// Checks a queue's name (AWS: 80 of A-Z, a-z, 0-9, `-` and `_`, and `.fifo`) or URL.
fn check_queue(node: &Node<'_>, queue: &str) -> Result<(), SpecError> {
    if queue.contains("://") {
        return check_url(node, queue);
    }
    let name = queue.strip_suffix(".fifo").unwrap_or(queue);
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || queue.len() > limits::QUEUE_NAME_MAX || !name.bytes().all(legal) {
        return Err(node
            .wrong(format!("`{queue}` is neither a queue's name nor a URL"))
            .with_hint("a name has 1 to 80 of A-Z, a-z, 0-9, `-` and `_`, and ends in `.fifo` for a FIFO queue"));
    }
    Ok(())
}

fn is_loopback(url: &str) -> bool {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = if authority.starts_with('[') { authority } else { authority.split(':').next().unwrap_or_default() };
    host == "localhost"
        || host.starts_with("127.") && host.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        || host.starts_with("[::1]")
}

fn secret(node: &Node<'_>) -> Result<String, SpecError> {
    let name = node.text_within(limits::COLUMN_BYTES_MAX)?;
    let rest = name.strip_prefix(SECRET_PREFIX).unwrap_or_default();
    let legal = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if rest.is_empty() || !rest.bytes().all(legal) {
        return Err(node
            .wrong(format!("`{name}` isn't the name of a variable that a job may use"))
            .with_hint(format!("such a name begins with {SECRET_PREFIX} and goes on in A-Z, 0-9 and `_`")));
    }
    Ok(name.to_owned())
}

fn outcomes(node: &Node<'_>) -> Result<String, SpecError> {
    let text = node.text_within(limits::EFFECT_TARGET_BYTES_MAX)?;
    if text.matches(ID_PLACE).count() != 1 {
        return Err(node
            .wrong(format!("`{text}` says not once where the request id goes"))
            .with_hint(format!("write {ID_PLACE} there, such as https://ledger.example/payments/{ID_PLACE}")));
    }
    check_url(node, text).map(|()| text.to_owned())
}

/// What must hold between a job's effects and its work: one needs the other.
///
/// # Errors
/// [`SpecError`], naming `effects`.
pub fn check_emits(effects: Option<&EffectsSpec>, emits: bool) -> Result<(), SpecError> {
    match (effects, emits) {
        (None, true) => {
            let error =
                SpecError::new(SpecErrorKind::Missing, "effects", "it is missing, and the job's work asks for effects");
            Err(error.with_hint("write \"effects\": { \"target\": \"https://ledger.example/payments\" }"))
        }
        (Some(_), false) => {
            let message = "the job's work asks for no effects, so there would be nothing to send";
            Err(SpecError::value("effects", message)
                .with_hint("leave it out, or name a work that asks for effects, such as `send`"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
