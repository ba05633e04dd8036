//! Queues as targets.
//!
//! An effect is a message with its body; what HTTP has as headers are its attributes. In a FIFO queue the request id is the
//! `MessageDeduplicationId` too, so that SQS itself drops what comes twice within five minutes (AWS quota), and instance
//! and shard are the `MessageGroupId`, so that the effects of a shard stay in order. A standard queue keeps neither: its
//! readers go by the attributes.

use std::collections::BTreeMap;
use std::fmt;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::MessageAttributeValue;
use futures::future::BoxFuture;
use shardcron_domain::outbox::{Answer, OutboxRow};
use tokio::sync::{Mutex, OnceCell};

use crate::http::chain;
use crate::{IDEMPOTENCY_KEY, Sender};

/// Makes the client when it is first needed.
pub type SqsClient = Box<dyn Fn() -> BoxFuture<'static, Client> + Send + Sync>;

/// The name of the attribute with the body's media type.
const CONTENT_TYPE: &str = "Content-Type";

/// What the name and the URL of a FIFO queue end in.
const FIFO: &str = ".fifo";

/// Queues as targets.
pub struct SqsTargets {
    make: SqsClient,
    client: OnceCell<Client>,
    urls: Mutex<BTreeMap<String, String>>,
}

impl fmt::Debug for SqsTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsTargets").finish_non_exhaustive()
    }
}

impl SqsTargets {
    /// Queues at this client's endpoint.
    #[must_use]
    pub fn new(make: SqsClient) -> Self {
        Self { make, client: OnceCell::new(), urls: Mutex::default() }
    }

    pub(crate) async fn send(&self, queue: &str, sender: &Sender, row: &OutboxRow) -> Answer {
        let client = self.client.get_or_init(&self.make).await;
        let url = match self.url(client, queue).await {
            Ok(url) => url,
            Err(answer) => return answer,
        };
        let mut request = client.send_message().queue_url(&url).message_body(&row.body);
        let id = (IDEMPOTENCY_KEY, row.request_id.to_string());
        let content_type = row.content_type.clone().map(|text| (CONTENT_TYPE, text));
        for (name, value) in sender.fields().into_iter().chain([id]).chain(content_type) {
            match MessageAttributeValue::builder().data_type("String").string_value(value).build() {
                Ok(value) => request = request.message_attributes(name, value),
                Err(error) => return Answer::Unusable(chain(&error)),
            }
        }
        if url.ends_with(FIFO) {
            let group = format!("{}:{}", sender.instance, sender.shard);
            request = request.message_group_id(group).message_deduplication_id(row.request_id.as_str());
        }
        match request.send().await {
            Ok(_) => Answer::Status { status: 200, text: String::new(), retry_after: None },
            Err(error) => answer(error),
        }
    }

    /// The queue's URL, looked up once where the job has a name.
    async fn url(&self, client: &Client, queue: &str) -> Result<String, Answer> {
        if queue.contains("://") {
            return Ok(queue.to_owned());
        }
        let mut urls = self.urls.lock().await;
        if let Some(url) = urls.get(queue) {
            return Ok(url.clone());
        }
        let found = client.get_queue_url().queue_name(queue).send().await.map_err(answer).map_err(before_sending)?;
        let url = found.queue_url.ok_or_else(|| Answer::Unusable(format!("SQS gives no URL for the queue {queue}")))?;
        urls.insert(queue.to_owned(), url.clone());
        Ok(url)
    }
}

/// An answer to what came before the message: whatever it is, no message was sent.
fn before_sending(answer: Answer) -> Answer {
    match answer {
        Answer::Lost(why) => Answer::NotSent(why),
        Answer::Status { status: 500.., text, .. } => Answer::NotSent(text),
        other => other,
    }
}

/// Codes that say that the queue can't be used at all, whatever the message (SQS API reference, CommonErrors and
/// SendMessage); some come with a prefix, by protocol and stand-in.
const UNUSABLE: &[&str] = &[
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "IncompleteSignature",
    "InvalidAddress",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "KmsAccessDenied",
    "KmsDisabled",
    "KmsNotFound",
    "MissingAuthenticationToken",
    "NonExistentQueue",
    "NotAuthorized",
    "OptInRequired",
    "QueueDeletedRecently",
    "QueueDoesNotExist",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
    "UnsupportedOperation",
];

/// Codes that ask for patience, whatever the status that comes with them.
const PATIENCE: &[&str] = &["KmsThrottled", "OverLimit", "RequestThrottled", "Throttling", "ThrottlingException"];

fn answer<E>(error: SdkError<E>) -> Answer
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let (status, code) = match &error {
        SdkError::ServiceError(context) => (context.raw().status().as_u16(), context.err().code().unwrap_or_default()),
        SdkError::ConstructionFailure(_) => return Answer::Unusable(chain(&error)),
        _ => return Answer::Lost(chain(&error)),
    };
    let code = code.strip_prefix("AWS.SimpleQueueService.").unwrap_or(code).to_owned();
    // The error within says more than its wrapper, whose text is only "service error".
    let text = error.into_source().map_or_else(|_| code.clone(), |source| chain(&*source));
    if UNUSABLE.contains(&code.as_str()) {
        return Answer::Unusable(text);
    }
    let status = if PATIENCE.contains(&code.as_str()) { 429 } else { status };
    Answer::Status { status, text, retry_after: None }
}
