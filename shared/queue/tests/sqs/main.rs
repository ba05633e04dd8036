//! The SQS adapter: the port's conformance suite against a real endpoint, and a scripted one for what no emulator shows.
//!
//! The endpoint is the embedded one, or the one that `SHARDCRON_TEST_ENDPOINT` names (`http://127.0.0.1:4566`), where
//! each test creates queues of its own and deletes them.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod conformance;
mod endpoint;
mod scripted;

use endpoint::Endpoint;

/// One test for each member of the suite, each on queues of its own.
macro_rules! conforms {
    ($($name:ident)*) => {$(
        #[tokio::test]
        async fn $name() {
            let endpoint = Endpoint::start(stringify!($name)).await;
            conformance::$name(&endpoint.queue()).await;
            endpoint.stop().await;
        }
    )*};
}

conforms! {
    a_message_is_received_once_it_is_sent
    a_deleted_message_stays_away
    as_many_messages_as_three_batches_arrive
    long_messages_are_cut_into_batches_by_their_bytes
    a_message_over_the_bound_is_refused_before_any_is_sent
    a_visibility_of_zero_redelivers_at_once
    a_shorter_visibility_redelivers_sooner
    a_longer_visibility_redelivers_later
    a_visibility_that_is_over_redelivers
    a_delayed_message_comes_later
    a_delay_and_a_visibility_over_the_quotas_are_cut
    a_receive_waits_and_is_woken_by_a_send
    a_receive_of_nothing_ends_with_its_wait
    a_receipt_of_a_deleted_message_is_gone
}
