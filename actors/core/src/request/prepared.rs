//! A request that is ready but not yet sent: the consumer is chosen first.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::{Error, JsonRpcResponse, RequestId, Result};

use super::cancellation::{CancelTarget, RequestCancellation, RequestCancellationHandle};
use super::reply::{Decode, Reply};
use super::sent::{Answer, SentRequest, Wait, ok_or_respond};
use crate::connection::{MethodText, Shared, Waiter};
use crate::responder::Responder;

/// A request that is published by whatever consumes it, with its handling already in place.
///
/// Dropping it sends nothing (spec §6.1, 6). The order on the wire is that of the consuming calls, not
/// of the preparation (spec §6.3, 75).
#[must_use = "a prepared request is only sent when it is consumed"]
pub struct PreparedRequest<T> {
    wait: Wait<T>,
    /// The params, or why they could not be written.
    params: Result<Bytes>,
}

impl<T> PreparedRequest<T> {
    pub(crate) fn new(reply: Arc<Reply>, connection: Arc<Shared>, decode: Decode<T>, params: Result<Bytes>) -> Self {
        Self { wait: Wait::new(reply, connection, decode), params }
    }

    /// The JSON-RPC id that the request will have.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        self.wait.id()
    }

    /// The method of the request.
    #[must_use]
    pub fn method(&self) -> &str {
        self.wait.reply.method()
    }

    /// A handle that can cancel once the request is sent. Before that it does nothing, and nothing is
    /// remembered (spec §6.1, 10).
    #[must_use]
    pub fn cancellation_handle(&self) -> RequestCancellationHandle {
        self.wait.handle()
    }

    /// Cancels this request when the peer cancels the request behind `marker` (spec §6.1, 21). If it did
    /// before this one is sent, this one is cancelled right behind its request.
    pub fn forward_cancellation_from(self, marker: RequestCancellation) -> Self {
        marker.flag().link(CancelTarget::Handle(self.wait.handle()));
        self
    }

    /// Changes the answer when it is read. `map` runs in whatever consumes the answer, not for errors;
    /// its error is the outcome.
    pub fn map<U>(self, map: impl FnOnce(T) -> Result<U> + Send + 'static) -> PreparedRequest<U>
    where
        T: 'static,
    {
        PreparedRequest { wait: self.wait.map(map), params: self.params }
    }

    /// Tells `watch` whether the answer is a good one, before anybody gets it. It is dropped if the
    /// request never gets one.
    pub(crate) fn watched(self, watch: impl FnOnce(bool) + Send + 'static) -> Self {
        self.wait.reply.watch(Box::new(watch));
        self
    }

    /// The same request, which fails with this error instead of being sent.
    #[cfg(feature = "unstable_protocol_v2")]
    pub(crate) fn failing(mut self, error: Error) -> Self {
        self.params = Err(error);
        self
    }

    /// Registers and queues the request. A failure settles it.
    fn publish(reply: &Arc<Reply>, connection: &Arc<Shared>, params: Result<Bytes>) {
        if let Err(error) = Self::try_publish(reply, connection, params) {
            reply.fail(error, connection);
        }
    }

    fn try_publish(reply: &Arc<Reply>, connection: &Arc<Shared>, params: Result<Bytes>) -> Result<()> {
        let method = MethodText::Name(reply.method().to_owned().into());
        let waiter = Waiter::Reply(reply.clone());
        let sent = connection.publish_request(reply.id(), method, params?, reply.peer(), waiter, None);
        sent.map_err(|(_, error)| error)?;
        // After queueing: a cancel must not overtake its request.
        reply.published(connection);
        Ok(())
    }

    /// Sends now and lets the caller choose later how to take the answer.
    pub(crate) fn send(self) -> SentRequest<T> {
        let Self { wait, params } = self;
        Self::publish(&wait.reply, &wait.connection, params);
        SentRequest { wait }
    }

    /// Sends during this call, not at the first poll (spec §6.3, 76), and returns the future of the
    /// answer. The answer does not hold up later messages.
    ///
    /// Cancel-safety: dropping the future before the answer asks the peer to cancel (spec §6.1, 5).
    ///
    /// # Errors
    /// As [`SentRequest::block_task`].
    pub fn block_task(self) -> impl Future<Output = Result<T>> {
        let SentRequest { wait } = self.send();
        Answer { wait }
    }

    /// Sends and discards the answer. Never cancels by itself; a
    /// [`cancellation_handle`](Self::cancellation_handle) still does (spec §6.1, 7 and 8).
    ///
    /// # Errors
    /// When the request could not be written or queued (spec §6.3, 78).
    pub fn detach(self) -> Result<()> {
        let Self { mut wait, params } = self;
        wait.disarm();
        let sent = Self::try_publish(&wait.reply, &wait.connection, params);
        if let Err(error) = &sent {
            wait.reply.fail(error.clone(), &wait.connection);
        }
        sent
    }

    /// Installs `callback`, then sends. Messages behind the answer always wait until the callback is
    /// done (spec §6.3, 71); so it must not wait for its connection, see
    /// [`SentRequest::block_task`].
    ///
    /// A failure of this side is no message and has no place in the order: params that cannot be
    /// written, or a connection that ends first. Then the callback gets the error beside the
    /// dispatch loop, possibly after close callbacks, and has 5 s. A callback that fails or panics is
    /// logged and harms nothing else, unless
    /// [`end_on_failure`](crate::Builder::end_on_failure) says so. It survives the death of the
    /// dispatch actor.
    ///
    /// # Errors
    /// When the connection is over: then nothing is sent and the callback does not run (spec §6.3,
    /// 77). When only the peer closed its side, the callback gets that error instead.
    pub fn on_receiving_result<F>(self, callback: impl FnOnce(Result<T>) -> F + Send + 'static) -> Result<()>
    where
        T: 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let Self { wait, params } = self;
        let (reply, connection) = (wait.reply.clone(), wait.connection.clone());
        accepts_tasks(&connection)?;
        reply.on_answer(wait.into_callback(callback), &connection);
        Self::publish(&reply, &connection, params);
        Ok(())
    }

    /// Like [`on_receiving_result`](Self::on_receiving_result) for a good answer; an error goes to
    /// `responder`. Cancellations are not passed on: see
    /// [`forward_cancellation_from`](Self::forward_cancellation_from).
    ///
    /// # Errors
    /// As [`on_receiving_result`](Self::on_receiving_result).
    pub fn on_receiving_ok_result<F>(
        self,
        responder: Responder<T>,
        callback: impl FnOnce(T, Responder<T>) -> F + Send + 'static,
    ) -> Result<()>
    where
        T: JsonRpcResponse,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.on_receiving_result(async move |result| ok_or_respond(result, responder, callback).await)
    }

    /// Answers another request with the answer to this one, errors included, byte for byte when
    /// nothing maps it; and passes its cancellation on, also one that came before (spec §6.1, 20).
    /// Ordered like [`on_receiving_result`](Self::on_receiving_result).
    ///
    /// # Errors
    /// Never at present: when the request cannot be sent, `responder` answers with the reason.
    pub fn forward_response_to(self, responder: Responder<T>) -> Result<()>
    where
        T: JsonRpcResponse,
    {
        let Self { wait, params } = self;
        let (reply, connection) = (wait.reply.clone(), wait.connection.clone());
        reply.on_answer(wait.into_forward(responder), &connection);
        Self::publish(&reply, &connection, params);
        Ok(())
    }
}

/// Whether a callback would still be run.
fn accepts_tasks(connection: &Shared) -> Result<(), Error> {
    if connection.tasks.is_closed() { Err(connection.closed_error()) } else { Ok(()) }
}

impl<T> fmt::Debug for PreparedRequest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedRequest").field("id", self.id()).field("method", &self.method()).finish_non_exhaustive()
    }
}
