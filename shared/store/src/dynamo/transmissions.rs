//! Interceptors of the SDK: which attempts of a write were answered, and what the store's clock says.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeDeserializationInterceptorContextRef,
    BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_types::config_bag::{Storable, StoreReplace};

/// Counts the transmissions of one request and those that the service answered definitely.
///
/// The SDK tries again by itself after a timeout or a 5xx; when a later attempt is then throttled, or meets a
/// transaction (perhaps the request's own, still at work), the error says nothing of the earlier one.
#[derive(Clone, Debug, Default)]
pub(super) struct Transmissions(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU32,
    answered: AtomicU32,
}

impl Transmissions {
    /// Whether no transmission's fate is open.
    pub(super) fn all_answered(&self) -> bool {
        self.0.sent.load(Ordering::Relaxed) == self.0.answered.load(Ordering::Relaxed)
    }
}

impl Intercept for Transmissions {
    fn name(&self) -> &'static str {
        "ShardcronTransmissions"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let understood = match context.output_or_error() {
            Ok(_) => true,
            // Not an answer whose body broke off: its status may have been 200.
            Err(error) => error.is_operation_error() && !context.response().status().is_server_error(),
        };
        self.0.answered.fetch_add(u32::from(understood), Ordering::Relaxed);
        Ok(())
    }
}

/// Who is told what the store's clock says.
pub trait DateObserver: Send + Sync + Debug {
    /// The local monotonic clock now, in nanoseconds from an arbitrary start.
    fn mark(&self) -> u64;

    /// An answer carried this HTTP `Date` (RFC 9110 §6.6.1: whole seconds, truncated); the request was sent after the
    /// mark `sent`, and the answer's head was there before the mark `received`. So the store's clock showed `date` at
    /// some moment between the two.
    fn observe(&self, date: &str, sent: u64, received: u64);
}

/// Shows the `Date` of every answer to a [`DateObserver`], each attempt of a retried request on its own: for the
/// configuration of the client that a [`DynamoStore`](super::DynamoStore) gets.
#[derive(Clone, Debug)]
pub struct DateInterceptor {
    observer: Arc<dyn DateObserver>,
}

impl DateInterceptor {
    /// Shows dates to this observer.
    #[must_use]
    pub fn new(observer: Arc<dyn DateObserver>) -> Self {
        Self { observer }
    }
}

#[derive(Clone, Copy, Debug)]
struct SentMark(u64);

impl Storable for SentMark {
    type Storer = StoreReplace<Self>;
}

impl Intercept for DateInterceptor {
    fn name(&self) -> &'static str {
        "ShardcronDate"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        state: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let mark = SentMark(self.observer.mark());
        state.interceptor_state().store_put(mark);
        Ok(())
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        state: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let received = self.observer.mark();
        // An answer without a date says nothing about the clock, and fails nothing.
        if let (Some(SentMark(sent)), Some(date)) = (state.load::<SentMark>(), context.response().headers().get("date"))
        {
            self.observer.observe(date, *sent, received);
        }
        Ok(())
    }
}
