//! The queues on SQS, or on whatever speaks its protocol.
//!
//! SQS counts in whole seconds: fractions of a delay, a visibility or a wait are rounded up. Standard queues only.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{BoxError, BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{BatchResultErrorEntry, Message, MessageSystemAttributeName, SendMessageBatchRequestEntry};
use shardcron_domain::limits::{
    MESSAGE_BATCH_MAX, MESSAGE_BYTES_MAX, MESSAGE_DELAY_MAX, MESSAGE_SENDS_MAX, MESSAGE_VISIBILITY_MAX,
    MESSAGE_WAIT_MAX,
};
use shardcron_domain::time::Duration;

use crate::{Outgoing, Queue, QueueError, QueueName, Received};

/// What some of SQS's error codes begin with, and the same codes of others don't.
const CODE_PREFIX: &str = "AWS.SimpleQueueService.";

/// [`Queue`] on SQS.
///
/// Its timeouts and the retries of whole requests are the client's; so the client's timeout of an attempt must be
/// longer than the longest wait of a receive.
#[derive(Clone, Debug)]
pub struct SqsQueue {
    client: Client,
    urls: BTreeMap<QueueName, String>,
}

impl SqsQueue {
    /// The queues at these URLs. Any use of one that has no URL is refused.
    #[must_use]
    pub fn new(client: Client, urls: BTreeMap<QueueName, String>) -> Self {
        Self { client, urls }
    }

    fn url(&self, task: Task) -> Result<&str, QueueError> {
        self.urls.get(&task.queue).map(String::as_str).ok_or_else(|| task.refused(Fault::NoUrl))
    }

    async fn send_batch(&self, task: Task, batch: &[Outgoing]) -> Result<(), QueueError> {
        let url = self.url(task)?;
        let mut rest = entries(batch).map_err(|error| task.refused(error))?;
        let mut refused = None;
        let mut missed = Fault::Unanswered;
        for _ in 0..MESSAGE_SENDS_MAX {
            let request = self.client.send_message_batch().queue_url(url).set_entries(Some(rest.clone()));
            let answer = request.send().await.map_err(|error| task.failed(error))?;
            let mut settled: BTreeSet<&str> = answer.successful().iter().map(|entry| entry.id()).collect();
            for entry in answer.failed() {
                if entry.sender_fault() && !asks_for_patience(entry.code()) {
                    settled.insert(entry.id());
                    refused.get_or_insert_with(|| Fault::entry(entry));
                } else {
                    missed = Fault::entry(entry);
                }
            }
            rest.retain(|entry| !settled.contains(entry.id()));
            if rest.is_empty() {
                break;
            }
            tracing::debug!(queue = task.name(), rest = rest.len(), cause = %missed, "SQS hasn't taken the whole batch");
        }
        match refused {
            Some(fault) => Err(task.refused(fault)),
            None if rest.is_empty() => Ok(()),
            None => Err(task.unavailable(missed)),
        }
    }
}

#[async_trait]
impl Queue for SqsQueue {
    async fn send(&self, queue: QueueName, messages: Vec<Outgoing>) -> Result<(), QueueError> {
        let task = Task { verb: "send to", queue };
        if let Some(bytes) = messages.iter().map(|message| message.body.len()).find(|&bytes| bytes > MESSAGE_BYTES_MAX)
        {
            return Err(task.refused(Fault::TooLong { bytes }));
        }
        for batch in batches(&messages) {
            self.send_batch(task, batch).await?;
        }
        Ok(())
    }

    async fn receive(&self, queue: QueueName, max: usize, wait: Duration) -> Result<Vec<Received>, QueueError> {
        let task = Task { verb: "receive from", queue };
        // At most ten, so that it fits whatever it is.
        let max = i32::try_from(max.clamp(1, MESSAGE_BATCH_MAX)).unwrap_or(1);
        let answer = self
            .client
            .receive_message()
            .queue_url(self.url(task)?)
            .max_number_of_messages(max)
            .wait_time_seconds(seconds(wait, MESSAGE_WAIT_MAX))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .send()
            .await
            .map_err(|error| task.failed(error))?;
        Ok(answer.messages.unwrap_or_default().into_iter().filter_map(|message| received(task, message)).collect())
    }

    async fn delete(&self, queue: QueueName, receipt: &str) -> Result<(), QueueError> {
        let task = Task { verb: "delete a message of", queue };
        let request = self.client.delete_message().queue_url(self.url(task)?).receipt_handle(receipt);
        request.send().await.map(|_| ()).map_err(|error| task.failed(error))
    }

    /// SQS counts its 12 hours from when the message was received, whatever the changes since: one that would go beyond
    /// them is refused.
    async fn set_visibility(&self, queue: QueueName, receipt: &str, after: Duration) -> Result<(), QueueError> {
        let task = Task { verb: "change the visibility of a message of", queue };
        let request = self
            .client
            .change_message_visibility()
            .queue_url(self.url(task)?)
            .receipt_handle(receipt)
            .visibility_timeout(seconds(after, MESSAGE_VISIBILITY_MAX));
        request.send().await.map(|_| ()).map_err(|error| task.failed(error))
    }
}

/// What is being tried, for the errors' texts.
#[derive(Clone, Copy)]
struct Task {
    verb: &'static str,
    queue: QueueName,
}

impl Task {
    fn name(self) -> &'static str {
        match self.queue {
            QueueName::Instances => "instances",
            QueueName::Shards => "shards",
            QueueName::BackfillShards => "backfilled shards",
        }
    }

    fn what(self) -> String {
        format!("can't {} the queue of {}", self.verb, self.name())
    }

    fn refused(self, source: impl Into<BoxError>) -> QueueError {
        QueueError::Refused { what: self.what(), source: source.into() }
    }

    fn unavailable(self, source: impl Into<BoxError>) -> QueueError {
        QueueError::Unavailable { what: self.what(), source: source.into() }
    }

    fn failed<E>(self, error: SdkError<E>) -> QueueError
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        let kind = match &error {
            SdkError::ServiceError(context) => {
                Kind::of(context.raw().status().as_u16(), context.err().code(), context.err().message())
            }
            SdkError::ConstructionFailure(_) => Kind::Refused,
            // No answer, or none that can be read: it may have been done.
            _ => Kind::Unavailable,
        };
        // The error within says more than its wrapper, whose text is only "service error".
        let source = error.into_source().unwrap_or_else(BoxError::from);
        match kind {
            Kind::Gone => {
                tracing::debug!(queue = self.name(), %source, "the message is no longer ours");
                QueueError::Gone { what: self.what() }
            }
            Kind::Unavailable => self.unavailable(source),
            Kind::Refused => self.refused(source),
        }
    }
}

/// The cause of an error that is no request's.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("no URL is configured for it")]
    NoUrl,
    #[error("a message of {bytes} bytes is over the bound of {MESSAGE_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("SQS has not taken a message: {code}: {message}")]
    Entry { code: String, message: String },
    #[error("SQS has not said what became of a message")]
    Unanswered,
}

impl Fault {
    fn entry(entry: &BatchResultErrorEntry) -> Self {
        Self::Entry { code: entry.code().to_owned(), message: entry.message().unwrap_or("no message").to_owned() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unavailable,
    Gone,
    Refused,
}

impl Kind {
    /// Sorts an answer of SQS. The codes are those of the API reference (CommonErrors, ChangeMessageVisibility,
    /// DeleteMessage), with and without the prefix: emulators and the two protocols differ in that.
    fn of(status: u16, code: Option<&str>, message: Option<&str>) -> Self {
        let code = code.unwrap_or_default();
        let code = code.strip_prefix(CODE_PREFIX).unwrap_or(code);
        let about_receipt = || message.is_some_and(|text| text.to_ascii_lowercase().contains("receipt"));
        match code {
            "ReceiptHandleIsInvalid" | "MessageNotInflight" | "InvalidIdFormat" => Self::Gone,
            // What SQS says of a message that was deleted, or whose visibility is over.
            "InvalidParameterValue" | "InvalidParameterValueException" if about_receipt() => Self::Gone,
            _ if asks_for_patience(code) || status == 429 || status >= 500 => Self::Unavailable,
            _ => Self::Refused,
        }
    }
}

/// Whether this code means that the same request may succeed later, whatever the status and the fault that come with it.
fn asks_for_patience(code: &str) -> bool {
    matches!(
        code.strip_prefix(CODE_PREFIX).unwrap_or(code),
        "InternalError"
            | "InternalFailure"
            | "KmsThrottled"
            | "OverLimit"
            | "RequestThrottled"
            | "RequestTimeout"
            | "ServiceUnavailable"
            | "Throttling"
            | "ThrottlingException"
            | "TooManyRequestsException"
    )
}

/// The messages in as few runs as the bounds of a batch allow without reordering: of at most [`MESSAGE_BATCH_MAX`], and of
/// at most [`MESSAGE_BYTES_MAX`] together (one that is longer alone has a run of its own).
fn batches(messages: &[Outgoing]) -> impl Iterator<Item = &[Outgoing]> {
    let mut rest = messages;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fit = rest.iter().take(MESSAGE_BATCH_MAX).take_while(|message| {
            bytes += message.body.len();
            bytes <= MESSAGE_BYTES_MAX
        });
        let (batch, after) = rest.split_at(fit.count().max(1).min(rest.len()));
        rest = after;
        (!batch.is_empty()).then_some(batch)
    })
}

fn entries(batch: &[Outgoing]) -> Result<Vec<SendMessageBatchRequestEntry>, BuildError> {
    let entry = |(id, message): (usize, &Outgoing)| {
        SendMessageBatchRequestEntry::builder()
            .id(id.to_string())
            .message_body(&message.body)
            .delay_seconds(seconds(message.delay, MESSAGE_DELAY_MAX))
            .build()
    };
    batch.iter().enumerate().map(entry).collect()
}

/// In whole seconds, rounded up, from 0 to `max`.
fn seconds(duration: Duration, max: Duration) -> i32 {
    i32::try_from((duration.0.clamp(0, max.0) + 999) / 1000).unwrap_or(i32::MAX)
}

fn received(task: Task, message: Message) -> Option<Received> {
    let count = message.attributes().and_then(|attributes| {
        let count = attributes.get(&MessageSystemAttributeName::ApproximateReceiveCount)?;
        count.parse().ok()
    });
    let (Some(receipt), Some(body)) = (message.receipt_handle, message.body) else {
        // It can be neither deleted nor read; it comes again, and goes to the dead-letter queue in the end.
        tracing::warn!(
            queue = task.name(),
            id = message.message_id,
            "SQS has delivered a message without a receipt or a body"
        );
        return None;
    };
    Some(Received { id: message.message_id.unwrap_or_default(), receipt, body, receive_count: count.unwrap_or(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(bodies: &[usize]) -> Vec<Vec<usize>> {
        let message = |&bytes: &usize| Outgoing { body: "x".repeat(bytes), delay: Duration::ZERO };
        let messages: Vec<Outgoing> = bodies.iter().map(message).collect();
        batches(&messages).map(|batch| batch.iter().map(|message| message.body.len()).collect()).collect()
    }

    #[test]
    fn a_batch_keeps_both_bounds_and_the_order() {
        assert_eq!(lengths(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(lengths(&[1; 25]), [vec![1; 10], vec![1; 10], vec![1; 5]]);
        let half = MESSAGE_BYTES_MAX / 2;
        assert_eq!(lengths(&[half, half, half]), [vec![half, half], vec![half]]);
        assert_eq!(lengths(&[1, MESSAGE_BYTES_MAX, 1]), [vec![1], vec![MESSAGE_BYTES_MAX], vec![1]]);
        assert_eq!(lengths(&[half, half, 1]), [vec![half, half], vec![1]]);
    }

    #[test]
    fn seconds_are_rounded_up_and_cut() {
        let of = |millis| seconds(Duration::from_millis(millis), MESSAGE_DELAY_MAX);
        assert_eq!([of(i64::MIN), of(-1), of(0), of(1), of(1000), of(1001)], [0, 0, 0, 1, 1, 2]);
        assert_eq!([of(900_000), of(900_001), of(i64::MAX)], [900, 900, 900]);
    }

    #[test]
    fn answers_are_sorted_by_what_the_caller_can_do() {
        let receipt = "Value AQEB for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available \
                       for visibility timeout change.";
        let total = "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message \
                     is beyond the limit [43200 seconds]";
        let of = |status, code, message| Kind::of(status, Some(code), Some(message));
        assert_eq!(of(400, "InvalidParameterValue", receipt), Kind::Gone);
        assert_eq!(of(400, "InvalidParameterValue", total), Kind::Refused);
        assert_eq!(of(400, "AWS.SimpleQueueService.MessageNotInflight", ""), Kind::Gone);
        assert_eq!(of(404, "ReceiptHandleIsInvalid", ""), Kind::Gone);
        assert_eq!(of(400, "AWS.SimpleQueueService.NonExistentQueue", ""), Kind::Refused);
        assert_eq!(of(403, "AccessDenied", ""), Kind::Refused);
        assert_eq!(of(403, "OverLimit", ""), Kind::Unavailable);
        assert_eq!(of(400, "RequestThrottled", ""), Kind::Unavailable);
        assert_eq!(Kind::of(503, None, None), Kind::Unavailable);
        assert_eq!(Kind::of(429, None, None), Kind::Unavailable);
        assert_eq!(Kind::of(400, None, None), Kind::Refused);
    }
}
