//! A request that is on its way.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use greenroom_protocol::{Error, JsonRpcResponse, RequestId, Result};

use super::cancellation::{CancelTarget, RequestCancellation, RequestCancellationHandle};
use super::reply::{Callback, Decode, Reply};
use crate::connection::Shared;
use crate::responder::Responder;

/// A request that was published, before anybody chose how to take its answer.
///
/// Dropping it unconsumed asks the peer to cancel (spec §6.1, 4); [`detach`](Self::detach) does not.
/// A request is cancelled at most once, whoever asks (spec §6.1, 2).
#[must_use = "dropping a request cancels it; consume it or detach it"]
pub struct SentRequest<T> {
    pub(super) wait: Wait<T>,
}

/// The consumable part: the answer's place and how to read it.
pub(super) struct Wait<T> {
    pub(super) reply: Arc<Reply>,
    pub(super) connection: Arc<Shared>,
    pub(super) decode: Option<Decode<T>>,
    /// Whether the answer is passed on as it is, because nothing maps it.
    pub(super) direct: bool,
    id: RequestId,
    cancel_on_drop: bool,
}

impl<T> Wait<T> {
    pub(super) fn new(reply: Arc<Reply>, connection: Arc<Shared>, decode: Decode<T>) -> Self {
        let id = RequestId::Number(reply.id());
        Self { reply, connection, decode: Some(decode), direct: true, id, cancel_on_drop: true }
    }

    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    pub(super) fn handle(&self) -> RequestCancellationHandle {
        RequestCancellationHandle { reply: self.reply.clone(), connection: Arc::downgrade(&self.connection) }
    }

    /// Gives up the right to cancel on drop.
    pub(super) fn disarm(&mut self) {
        self.cancel_on_drop = false;
    }

    /// Takes the answer apart for a new consumer.
    fn consume(&mut self) -> Option<Decode<T>> {
        self.disarm();
        self.decode.take()
    }

    pub(super) fn map<U>(mut self, map: impl FnOnce(T) -> Result<U> + Send + 'static) -> Wait<U>
    where
        T: 'static,
    {
        let decode = self.consume();
        let read = move |method: &str, text: &str| -> Result<U> {
            let value = match decode {
                Some(Decode::Direct(read)) => read(method, text)?,
                Some(Decode::Mapped(read)) => read(method, text)?,
                None => return Err(Error::internal_error().data("this answer was consumed before")),
            };
            map(value)
        };
        let mut wait = Wait::new(self.reply.clone(), self.connection.clone(), Decode::Mapped(Box::new(read)));
        wait.direct = false;
        wait
    }

    /// The callback that decodes the answer and hands it to `then`.
    pub(super) fn into_callback<F>(mut self, then: impl FnOnce(Result<T>) -> F + Send + 'static) -> Callback
    where
        T: 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let decode = self.consume();
        let reply = self.reply.clone();
        // Nothing of the application runs before the future is polled: a panic must not reach the
        // actor that only hands the answer over.
        Box::new(move |outcome| {
            Box::pin(async move {
                let value = match decode {
                    Some(decode) => decode.apply(reply.method(), outcome),
                    None => Err(Error::internal_error().data("this answer was consumed before")),
                };
                then(value).await
            })
        })
    }

    /// The callback that answers another request with this answer, byte for byte when nothing
    /// maps it.
    pub(super) fn into_forward(mut self, responder: Responder<T>) -> Callback
    where
        T: JsonRpcResponse,
    {
        responder.cancellation().flag().link(CancelTarget::Handle(self.handle()));
        if self.direct && responder.is_direct() {
            let _ = self.consume();
            return Box::new(move |outcome| {
                let _ = responder.respond_raw(outcome);
                Box::pin(std::future::ready(Ok(())))
            });
        }
        self.into_callback(move |result| {
            // A peer that is gone needs no answer: not an error of this connection.
            let _ = responder.respond_with_result(result);
            std::future::ready(Ok(()))
        })
    }
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        if self.cancel_on_drop {
            let _ = self.reply.cancel(&self.connection);
        }
    }
}

impl<T> SentRequest<T> {
    /// The JSON-RPC id of the request on this connection: an integer, unique among ours.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        self.wait.id()
    }

    /// The method of the request.
    #[must_use]
    pub fn method(&self) -> &str {
        self.wait.reply.method()
    }

    /// Asks the peer to cancel, once; the answer still comes (spec §6.1, 1 to 3). Without effect after
    /// the answer was dispatched. `Ok` does not mean that anything was sent.
    ///
    /// # Errors
    /// When the notification could not be queued: the connection is over.
    pub fn cancel(&self) -> Result<()> {
        self.wait.reply.cancel(&self.wait.connection)
    }

    /// A handle that can cancel later, whoever consumes or detaches the request.
    #[must_use]
    pub fn cancellation_handle(&self) -> RequestCancellationHandle {
        self.wait.handle()
    }

    /// Cancels this request when the peer cancels the request behind `marker`, or at once if it did
    /// (spec §6.1, 21).
    pub fn forward_cancellation_from(self, marker: RequestCancellation) -> Self {
        marker.flag().link(CancelTarget::Handle(self.wait.handle()));
        self
    }

    /// Discards the answer. Never cancels by itself; a
    /// [`cancellation_handle`](Self::cancellation_handle) still does (spec §6.1, 7 and 8).
    pub fn detach(mut self) {
        self.wait.disarm();
    }

    /// Changes the answer when it is read. `map` runs in whatever consumes the answer, not for errors;
    /// its error is the outcome.
    pub fn map<U>(self, map: impl FnOnce(T) -> Result<U> + Send + 'static) -> SentRequest<U>
    where
        T: 'static,
    {
        SentRequest { wait: self.wait.map(map) }
    }

    /// Waits for the answer. It does not hold up later messages: they may be handled before this
    /// task runs (spec §6.3, 74).
    ///
    /// Inside a handler or an ordered callback of the same connection the answer could never come,
    /// because it waits behind the handler. There the first poll fails with
    /// [`Origin::WouldDeadlock`](crate::Origin::WouldDeadlock) instead of hanging, also within
    /// `join!` and `select!`; the data names this request (`method`) and the message that is being
    /// handled (`handling`), and the peer is asked to cancel. Not seen: a handler that waits for
    /// another task which waits for the answer, and a handler of a second connection that is driven
    /// inside a handler of this one. Those hang until the connection ends.
    ///
    /// Cancel-safety: dropping the future before the answer asks the peer to cancel.
    ///
    /// # Errors
    /// The peer's error; `-32700` when its result does not fit `T`; or one made here that names why
    /// the answer cannot come: see [`Origin`](crate::Origin).
    pub async fn block_task(self) -> Result<T> {
        Answer { wait: self.wait }.await
    }

    /// Runs `callback` with the answer. If it is registered before the answer is dispatched, later
    /// messages wait until the callback is done (spec §6.3, 70); otherwise it runs beside the
    /// dispatch loop, for at most 5 s. [`PreparedRequest::on_receiving_result`] has no such race, and
    /// says what else holds.
    ///
    /// [`PreparedRequest::on_receiving_result`]: crate::PreparedRequest::on_receiving_result
    ///
    /// # Errors
    /// Never at present.
    pub fn on_receiving_result<F>(self, callback: impl FnOnce(Result<T>) -> F + Send + 'static) -> Result<()>
    where
        T: 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (reply, connection) = (self.wait.reply.clone(), self.wait.connection.clone());
        reply.on_answer(self.wait.into_callback(callback), &connection);
        Ok(())
    }

    /// Like [`on_receiving_result`](Self::on_receiving_result) for a good answer; an error goes to
    /// `responder`. Cancellations are not passed on: see
    /// [`forward_cancellation_from`](Self::forward_cancellation_from).
    ///
    /// # Errors
    /// Never at present.
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
    ///
    /// # Errors
    /// Never at present.
    pub fn forward_response_to(self, responder: Responder<T>) -> Result<()>
    where
        T: JsonRpcResponse,
    {
        let (reply, connection) = (self.wait.reply.clone(), self.wait.connection.clone());
        reply.on_answer(self.wait.into_forward(responder), &connection);
        Ok(())
    }
}

/// Shared by the prepared and the sent request.
pub(super) async fn ok_or_respond<T, F>(
    result: Result<T>,
    responder: Responder<T>,
    callback: impl FnOnce(T, Responder<T>) -> F,
) -> Result<()>
where
    T: JsonRpcResponse,
    F: Future<Output = Result<()>>,
{
    match result {
        Ok(value) => callback(value, responder).await,
        Err(error) => {
            let _ = responder.respond_with_error(error);
            Ok(())
        }
    }
}

/// The future of an answer. Dropping it before the answer cancels the request.
pub(super) struct Answer<T> {
    pub(super) wait: Wait<T>,
}

impl<T> Unpin for Answer<T> {}

impl<T> Future for Answer<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let wait = &mut self.wait;
        match wait.reply.poll(cx, wait.connection.id) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                if outcome.as_ref().is_err_and(|error| error.origin() == greenroom_protocol::Origin::WouldDeadlock) {
                    // Nobody will take the answer: the peer may as well stop.
                    let _ = wait.reply.cancel(&wait.connection);
                }
                Poll::Ready(match wait.consume() {
                    Some(decode) => decode.apply(wait.reply.method(), outcome),
                    None => Err(Error::internal_error().data("this answer was consumed before")),
                })
            }
        }
    }
}

impl<T> fmt::Debug for SentRequest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentRequest").field("id", self.id()).field("method", &self.method()).finish_non_exhaustive()
    }
}
