//! What the [`Queue`] port promises, for any adapter. Each function wants empty queues with the visibilities of
//! [`VISIBILITY_SECONDS`].
//!
//! Nothing here sleeps and hopes: a receive that waits is what time is measured with.
#![expect(clippy::disallowed_methods, reason = "the time of messages is a part of what is promised")]

use std::collections::BTreeSet;
use std::time::Duration as Span;

use shardcron_domain::limits::MESSAGE_BYTES_MAX;
use shardcron_domain::time::Duration;
use shardcron_queue::{Outgoing, Queue, QueueError, QueueName, Received};
use tokio::time::{Instant, timeout};

/// How long a message of each queue stays invisible once received, unless that is changed.
pub(crate) const VISIBILITY_SECONDS: [(QueueName, u32); 2] = [(LONG, 60), (SHORT, 2)];

const LONG: QueueName = QueueName::Shards;
const SHORT: QueueName = QueueName::BackfillShards;

/// The longest that anything which must come may take.
const DEADLINE: Span = Span::from_secs(15);

/// What a timer may be early by: services keep times in milliseconds and round them.
const SLACK: Span = Span::from_millis(50);

fn message(body: impl Into<String>) -> Outgoing {
    Outgoing { body: body.into(), delay: Duration::ZERO }
}

/// Receives until there are `count` messages of different bodies, each of which is deleted.
async fn drain(queue: &dyn Queue, name: QueueName, count: usize) -> BTreeSet<String> {
    let mut bodies = BTreeSet::new();
    let receiving = async {
        while bodies.len() < count {
            for received in queue.receive(name, 10, Duration::from_secs(5)).await.unwrap() {
                queue.delete(name, &received.receipt).await.unwrap();
                bodies.insert(received.body);
            }
        }
    };
    timeout(DEADLINE, receiving).await.unwrap();
    bodies
}

async fn one(queue: &dyn Queue, name: QueueName) -> Received {
    let receiving = async {
        loop {
            if let Some(received) = queue.receive(name, 1, Duration::from_secs(5)).await.unwrap().pop() {
                return received;
            }
        }
    };
    timeout(DEADLINE, receiving).await.unwrap()
}

async fn nothing_for(queue: &dyn Queue, name: QueueName, wait: Duration) {
    let received = queue.receive(name, 10, wait).await.unwrap();
    assert_eq!(received, []);
}

pub(crate) async fn a_message_is_received_once_it_is_sent(queue: &dyn Queue) {
    queue.send(LONG, vec![message("{\"shard\":\"00042 é\"}")]).await.unwrap();
    let received = one(queue, LONG).await;
    assert_eq!(received.body, "{\"shard\":\"00042 é\"}");
    assert_eq!(received.receive_count, 1);
    assert!(!received.id.is_empty());
    // Nothing of it is in another queue, and it is invisible in its own.
    nothing_for(queue, SHORT, Duration::ZERO).await;
    nothing_for(queue, LONG, Duration::from_secs(1)).await;
    queue.send(LONG, Vec::new()).await.unwrap();
}

pub(crate) async fn a_deleted_message_stays_away(queue: &dyn Queue) {
    queue.send(SHORT, vec![message("once")]).await.unwrap();
    let received = one(queue, SHORT).await;
    queue.delete(SHORT, &received.receipt).await.unwrap();
    // SQS takes a second deletion as done; a stand-in may say that there is nothing to delete.
    let again = queue.delete(SHORT, &received.receipt).await;
    assert!(matches!(again, Ok(()) | Err(QueueError::Gone { .. })), "{again:?}");
    nothing_for(queue, SHORT, Duration::from_secs(4)).await;
}

pub(crate) async fn as_many_messages_as_three_batches_arrive(queue: &dyn Queue) {
    let bodies: BTreeSet<String> = (0..25).map(|n| format!("message {n}")).collect();
    queue.send(LONG, bodies.iter().map(message).collect()).await.unwrap();
    assert_eq!(drain(queue, LONG, bodies.len()).await, bodies);
}

pub(crate) async fn long_messages_are_cut_into_batches_by_their_bytes(queue: &dyn Queue) {
    let sizes = [100 * 1024, 100 * 1024, 100 * 1024, MESSAGE_BYTES_MAX, 1];
    let body = |(n, size): (usize, &usize)| format!("{n}{}", "x".repeat(size - 1));
    let bodies: BTreeSet<String> = sizes.iter().enumerate().map(body).collect();
    queue.send(LONG, bodies.iter().map(message).collect()).await.unwrap();
    assert!(drain(queue, LONG, bodies.len()).await == bodies);
}

pub(crate) async fn a_message_over_the_bound_is_refused_before_any_is_sent(queue: &dyn Queue) {
    let mut messages: Vec<Outgoing> = (0..20).map(|n| message(n.to_string())).collect();
    messages.push(message("x".repeat(MESSAGE_BYTES_MAX + 1)));
    let refused = queue.send(LONG, messages).await;
    assert!(matches!(refused, Err(QueueError::Refused { .. })), "{refused:?}");
    nothing_for(queue, LONG, Duration::from_secs(1)).await;
}

pub(crate) async fn a_visibility_of_zero_redelivers_at_once(queue: &dyn Queue) {
    queue.send(LONG, vec![message("again")]).await.unwrap();
    let first = one(queue, LONG).await;
    queue.set_visibility(LONG, &first.receipt, Duration::ZERO).await.unwrap();
    let second = one(queue, LONG).await;
    assert_eq!((second.id, second.receive_count), (first.id, 2));
}

pub(crate) async fn a_shorter_visibility_redelivers_sooner(queue: &dyn Queue) {
    queue.send(LONG, vec![message("sooner")]).await.unwrap();
    let first = one(queue, LONG).await;
    let changed = Instant::now();
    queue.set_visibility(LONG, &first.receipt, Duration::from_millis(1500)).await.unwrap();
    let second = one(queue, LONG).await;
    assert!(changed.elapsed() + SLACK >= Span::from_millis(1500), "{:?}", changed.elapsed());
    assert_eq!(second.receive_count, 2);
}

pub(crate) async fn a_longer_visibility_redelivers_later(queue: &dyn Queue) {
    queue.send(SHORT, vec![message("later")]).await.unwrap();
    let first = one(queue, SHORT).await;
    let changed = Instant::now();
    queue.set_visibility(SHORT, &first.receipt, Duration::from_secs(4)).await.unwrap();
    let second = one(queue, SHORT).await;
    assert!(changed.elapsed() + SLACK >= Span::from_secs(4), "{:?}", changed.elapsed());
    assert_eq!(second.receive_count, 2);
}

pub(crate) async fn a_visibility_that_is_over_redelivers(queue: &dyn Queue) {
    queue.send(SHORT, vec![message("crashed")]).await.unwrap();
    let counts = [one(queue, SHORT).await.receive_count, one(queue, SHORT).await.receive_count];
    assert_eq!(counts, [1, 2]);
}

pub(crate) async fn a_delayed_message_comes_later(queue: &dyn Queue) {
    let sent = Instant::now();
    let delayed = Outgoing { body: "delayed".to_owned(), delay: Duration::from_millis(1500) };
    queue.send(LONG, vec![delayed, message("at once")]).await.unwrap();
    assert_eq!(one(queue, LONG).await.body, "at once");
    assert_eq!(one(queue, LONG).await.body, "delayed");
    assert!(sent.elapsed() + SLACK >= Span::from_millis(1500), "{:?}", sent.elapsed());
}

pub(crate) async fn a_delay_and_a_visibility_over_the_quotas_are_cut(queue: &dyn Queue) {
    let delayed = Outgoing { body: "delayed".to_owned(), delay: Duration::from_secs(24 * 3600) };
    queue.send(LONG, vec![delayed, message("at once")]).await.unwrap();
    let received = one(queue, LONG).await;
    assert_eq!(received.body, "at once");
    // SQS itself refuses twelve hours from now, as they would end more than twelve hours after the receive.
    let cut = queue.set_visibility(LONG, &received.receipt, Duration::from_secs(24 * 3600)).await;
    assert!(matches!(cut, Ok(()) | Err(QueueError::Refused { .. })), "{cut:?}");
    nothing_for(queue, LONG, Duration::from_secs(1)).await;
}

pub(crate) async fn a_receive_waits_and_is_woken_by_a_send(queue: &dyn Queue) {
    let mut waiting = queue.receive(LONG, 10, Duration::from_secs(20));
    let early = timeout(Span::from_millis(500), &mut waiting).await;
    assert!(early.is_err(), "it didn't wait: {early:?}");
    queue.send(LONG, vec![message("wake")]).await.unwrap();
    let sent = Instant::now();
    let received = timeout(DEADLINE, waiting).await.unwrap().unwrap();
    assert_eq!(received[0].body, "wake");
    assert!(sent.elapsed() < Span::from_secs(5), "{:?}", sent.elapsed());
}

pub(crate) async fn a_receive_of_nothing_ends_with_its_wait(queue: &dyn Queue) {
    let begin = Instant::now();
    nothing_for(queue, LONG, Duration::from_secs(1)).await;
    assert!(begin.elapsed() + SLACK >= Span::from_secs(1), "{:?}", begin.elapsed());
    assert!(begin.elapsed() < DEADLINE, "{:?}", begin.elapsed());
}

pub(crate) async fn a_receipt_of_a_deleted_message_is_gone(queue: &dyn Queue) {
    queue.send(LONG, vec![message("done")]).await.unwrap();
    let received = one(queue, LONG).await;
    queue.delete(LONG, &received.receipt).await.unwrap();
    let changed = queue.set_visibility(LONG, &received.receipt, Duration::from_secs(30)).await;
    assert!(matches!(changed, Ok(()) | Err(QueueError::Gone { .. })), "{changed:?}");
}
