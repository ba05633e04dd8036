//! DynamoDB and SQS stand-ins in process, for the command and the tests only.
//!
//! [`EmbeddedTable`] is DynamoDB by [dynoxide](https://docs.rs/dynoxide-rs) on a SQLite file, [`EmbeddedQueues`] is SQS
//! by [rustack](https://docs.rs/rustack-sqs-core) in memory. Both speak the services' own protocols on a port of
//! 127.0.0.1, so that the same adapters of the AWS SDK work against them and no rule of the business knows where it
//! runs. Nothing of this crate may be linked into a Lambda binary.
//!
//! Both accept any credentials, but want some. There is no other protection: whoever has an account on this machine
//! can reach the port.

mod error;
pub mod queues;
mod server;
pub mod table;

pub use error::EmbeddedError;
pub use queues::{EmbeddedQueues, QueueDefinition};
pub use table::EmbeddedTable;
