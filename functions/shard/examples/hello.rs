//! The least that a function can be, to hold the size and the start of the real ones against: docs/performance.md.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async move { Ok::<_, Error>(event.payload) })).await
}
