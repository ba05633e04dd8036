//! SQS in memory.
//!
//! The queues and their messages are gone with the process. That costs shardcron time, not work: messages are hints,
//! and the sweep sends them again.
//!
//! A message whose visibility or delay is over is found at once by the next receive, but by a receive that already
//! waits only at the next tick of a second. There is no dead-letter queue, no retention, and no bound on the messages in
//! flight.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use rustack_sqs_core::config::SqsConfig;
use rustack_sqs_core::handler::RustackSqsHandler;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::service::{SqsHttpConfig, SqsHttpService};
use rustack_sqs_model::input::CreateQueueInput;
use tokio::net::TcpListener;

use crate::error::EmbeddedError;
use crate::server::Server;

/// How long to wait after a connection couldn't be accepted, before the next: as axum does, for the case that the
/// process has no file descriptor left.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// A standard queue to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDefinition {
    /// Its name: 1 to 80 of A-Z, a-z, 0-9, `-` and `_` (AWS's rule).
    pub name: String,
    /// How long a received message stays invisible unless the receiver says otherwise, in seconds: 0 to 43,200 (AWS quota:
    /// 12 hours).
    pub visibility_seconds: u32,
}

/// A running SQS. Its drop ends it; the messages are lost.
#[derive(Debug)]
pub struct EmbeddedQueues {
    endpoint: String,
    urls: BTreeMap<String, String>,
    _server: Server,
}

impl EmbeddedQueues {
    /// Serves these queues, empty.
    ///
    /// # Errors
    /// [`EmbeddedError::Queue`] when a definition is refused, [`EmbeddedError::Serve`] when there is no port or thread.
    pub fn start(queues: &[QueueDefinition]) -> Result<Self, EmbeddedError> {
        let definitions = queues.to_vec();
        let server = Server::start("embedded-queues", move |runtime, listener, address| {
            let provider = Arc::new(RustackSqs::new(config(address)));
            for definition in definitions {
                runtime.block_on(create(&provider, definition))?;
            }
            let service = SqsHttpService::new(Arc::new(RustackSqsHandler::new(provider)), SqsHttpConfig::default());
            Ok(serve(listener, service))
        })?;
        let endpoint = server.endpoint();
        let url = |name: &String| format!("{endpoint}/{}/{name}", SqsConfig::default().account_id);
        let urls = queues.iter().map(|queue| (queue.name.clone(), url(&queue.name))).collect();
        Ok(Self { endpoint, urls, _server: server })
    }

    /// Where it listens: `http://127.0.0.1:PORT`, the SDK's `endpoint_url`.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The URL of a queue that was defined at the start; `None` for any other.
    #[must_use]
    pub fn queue_url(&self, name: &str) -> Option<&str> {
        self.urls.get(name).map(String::as_str)
    }
}

fn config(address: SocketAddr) -> SqsConfig {
    SqsConfig { host: Ipv4Addr::LOCALHOST.to_string(), port: address.port(), ..SqsConfig::default() }
}

async fn create(provider: &RustackSqs, definition: QueueDefinition) -> Result<(), EmbeddedError> {
    let attributes = HashMap::from([("VisibilityTimeout".to_owned(), definition.visibility_seconds.to_string())]);
    let input = CreateQueueInput { queue_name: definition.name.clone(), attributes, tags: HashMap::new() };
    let created = provider.create_queue(input).await;
    created.map(|_| ()).map_err(|source| EmbeddedError::Queue { name: definition.name, source: Box::new(source) })
}

#[expect(clippy::disallowed_methods, reason = "the stand-in's own thread; no simulation has it")]
async fn serve(listener: TcpListener, service: SqsHttpService<RustackSqsHandler>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the embedded queues can't accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let service = service.clone();
        tokio::spawn(async move {
            // Without a timer, so that a client's idle connection isn't closed under it.
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                // A client that went away, in the middle of a request too.
                tracing::debug!(%error, "a connection to the embedded queues has broken");
            }
        });
    }
}
