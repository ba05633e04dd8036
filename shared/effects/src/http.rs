//! Targets over HTTP/1.1, with TLS by rustls: the crates that the AWS SDK brings anyway.
//!
//! An effect is a `POST` to the target with its body, [`IDEMPOTENCY_KEY`] and the sender's fields. A token is brought by a
//! `PUT` to the same place with the sender's fields and [`INSTALL`]. An outcome is asked for by a `GET`. Redirects
//! aren't followed: an effect goes where the job says, or nowhere.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use shardcron_domain::job::{EffectsSpec, ID_PLACE};
use shardcron_domain::limits::EFFECT_ANSWER_BYTES_MAX;
use shardcron_domain::outbox::{Answer, OutboxRow, RequestId};
use shardcron_domain::time::Duration;

use crate::{IDEMPOTENCY_KEY, INSTALL, Sender};

/// Who we are to a receiver.
const AGENT: &str = concat!("shardcron/", env!("CARGO_PKG_VERSION"));

/// The media type of a body that names none.
const JSON: &str = "application/json";

/// Looks up a secret by the name of its variable; `None` where it isn't set.
pub type Secrets = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Targets over HTTP. The client is made when it is first needed.
pub struct HttpTargets {
    secrets: Secrets,
    client: OnceLock<Result<HttpClient, String>>,
}

impl fmt::Debug for HttpTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTargets").finish_non_exhaustive()
    }
}

/// What to send, apart from where and with which secret.
struct Wanted {
    method: Method,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl HttpTargets {
    /// Targets whose secrets are looked up so.
    #[must_use]
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, client: OnceLock::new() }
    }

    pub(crate) async fn install(&self, spec: &EffectsSpec, url: &str, sender: &Sender) -> Answer {
        let mut headers = sender.fields().to_vec();
        headers.push((INSTALL, "1".to_owned()));
        self.exchange(spec, url, Wanted { method: Method::PUT, headers, body: Bytes::new() }).await
    }

    pub(crate) async fn send(&self, spec: &EffectsSpec, url: &str, sender: &Sender, row: &OutboxRow) -> Answer {
        let mut headers = sender.fields().to_vec();
        headers.push((IDEMPOTENCY_KEY, row.request_id.to_string()));
        headers.push(("Content-Type", row.content_type.clone().unwrap_or_else(|| JSON.to_owned())));
        let body = Bytes::from(row.body.clone().into_bytes());
        self.exchange(spec, url, Wanted { method: Method::POST, headers, body }).await
    }

    pub(crate) async fn ask(&self, spec: &EffectsSpec, id: &RequestId) -> Answer {
        let Some(place) = &spec.outcomes else {
            return Answer::Unusable("the job names no effects.outcomes".to_owned());
        };
        let url = place.replace(ID_PLACE, id.as_str());
        self.exchange(spec, &url, Wanted { method: Method::GET, headers: Vec::new(), body: Bytes::new() }).await
    }

    async fn exchange(&self, spec: &EffectsSpec, url: &str, wanted: Wanted) -> Answer {
        let client = match self.client.get_or_init(client) {
            Ok(client) => client,
            Err(why) => return Answer::NotSent(why.clone()),
        };
        let request = match self.request(spec, url, wanted) {
            Ok(request) => request,
            Err(why) => return Answer::Unusable(why),
        };
        match client.request(request).await {
            Ok(response) => answer(response).await,
            Err(error) if error.is_connect() => Answer::NotSent(chain(&error)),
            Err(error) => Answer::Lost(chain(&error)),
        }
    }

    fn request(&self, spec: &EffectsSpec, url: &str, wanted: Wanted) -> Result<Request<Full<Bytes>>, String> {
        let mut builder = Request::builder().method(wanted.method).uri(url).header(USER_AGENT, AGENT);
        for (name, value) in wanted.headers {
            builder = builder.header(name, value);
        }
        if let Some(name) = &spec.authorization_env {
            let secret =
                (self.secrets)(name).ok_or_else(|| format!("the variable {name} isn't set for this worker"))?;
            let mut value =
                HeaderValue::from_str(&secret).map_err(|_| format!("the value of {name} can't stand in a header"))?;
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        builder.body(Full::new(wanted.body)).map_err(|error| format!("no request can be made to {url}: {error}"))
    }
}

fn client() -> Result<HttpClient, String> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let builder = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(provider)
        .map_err(|error| format!("the system's certificates can't be read: {error}"))?;
    let connector = builder.https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// The status counts even where the rest of an answer is cut off: the target has decided.
async fn answer(response: Response<Incoming>) -> Answer {
    let status = response.status().as_u16();
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    // The other form is a date of the target's clock, which is nobody's here.
    let retry_after = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let body = Limited::new(response.into_body(), EFFECT_ANSWER_BYTES_MAX).collect().await;
    let text = body.map_or_else(|_| String::new(), |body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
    Answer::Status { status, text, retry_after }
}

/// An error and its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
