//! Answering a request, and settling the answer to one of our own.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::{BoxFuture, Error, JsonRpcResponse, RemoteStyle, RequestId, Result, RoleId};
use serde_json::Value;

use crate::connection::{OpenCall, Shared};
use crate::request::{Reply, RequestCancellation};

type Encode<T> = Box<dyn FnOnce(&str, Result<T>) -> Result<Bytes> + Send>;

/// The right to answer one request, with a result of type `T`.
///
/// Exactly one answer is sent. Dropping the responder answers too: `-32800` when the peer had
/// cancelled, else `-32603` (spec §9 decision 3); an error that the handler returns in the same
/// dispatch replaces that answer. [`ResponderDropPolicy`](crate::ResponderDropPolicy) changes that.
///
/// Ordering: an answer is queued behind everything sent before. An answer to an entry of a batch
/// waits for the others of its array (JSON-RPC 2.0 §6).
///
/// The error of a handler, and the end of the connection, answer a request whose responder is still
/// held. What the responder says then is dropped, with `Ok`.
#[must_use = "dropping a responder answers its request with an error"]
pub struct Responder<T: JsonRpcResponse = Value> {
    call: OpenCall,
    method: Box<str>,
    /// `None`: the response type's own writing.
    encode: Option<Encode<T>>,
    _response: PhantomData<fn(T)>,
}

impl<T: JsonRpcResponse> Responder<T> {
    pub(crate) fn new(call: OpenCall) -> Self {
        let method = call.state().method().into();
        Self { call, method, encode: None, _response: PhantomData }
    }

    /// The JSON-RPC id of the request on this connection, as the peer chose it.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        self.call.state().id()
    }

    /// The method of the request, or what [`wrap_method`](Self::wrap_method) put in its place.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Tells whether and when the peer cancels this request, also if it did before (spec §6.1, 17).
    #[must_use]
    pub fn cancellation(&self) -> RequestCancellation {
        RequestCancellation::new(self.call.state().cancelled.clone())
    }

    /// Answers with a result.
    ///
    /// # Errors
    /// When the result cannot be written: the peer gets `-32603`, whose data names the method and not
    /// the reason (spec §6.3, 92). When the connection is over, or more than
    /// [`outgoing_cap`](crate::ConnectionOptions::outgoing_cap) waits to be written.
    pub fn respond(self, response: T) -> Result<()> {
        self.respond_with_result(Ok(response))
    }

    /// Answers with an error.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn respond_with_error(self, error: Error) -> Result<()> {
        self.respond_with_result(Err(error))
    }

    /// Answers with `-32603` and a text as data.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn respond_with_internal_error(self, message: impl ToString) -> Result<()> {
        self.respond_with_error(Error::internal_error().data(message.to_string()))
    }

    /// Answers with whatever the result is.
    ///
    /// # Errors
    /// As [`respond`](Self::respond).
    pub fn respond_with_result(self, result: Result<T>) -> Result<()> {
        let good = result.is_ok();
        let outcome = match self.encode {
            Some(encode) => encode(&self.method, result),
            None => result.and_then(|response| response.into_text(&self.method).map(Bytes::from)),
        };
        match outcome {
            // Whatever went wrong with a good response, it is this side's fault.
            Err(unwritable) if good => {
                let data = serde_json::json!({ "reason": "the response cannot be written", "method": &*self.method });
                self.call.answer(Err(Error::internal_error().data(data)))?;
                Err(unwritable)
            }
            outcome => self.call.answer(outcome),
        }
    }

    /// Whether an answer may be passed on without being read: nothing changes it here.
    pub(crate) fn is_direct(&self) -> bool {
        self.encode.is_none()
    }

    /// Answers with JSON text as it is.
    pub(crate) fn respond_raw(self, outcome: Result<Bytes>) -> Result<()> {
        self.call.answer(outcome)
    }

    /// The call behind it, if nothing changes the answer on the way.
    pub(crate) fn into_call(self) -> OpenCall {
        self.call
    }

    /// The same right, to be used with any JSON value. Between plain types nothing is checked: a
    /// value that `T` cannot hold is sent as it is.
    pub fn erase_to_json(self) -> Responder<Value> {
        if self.encode.is_none() {
            return Responder { call: self.call, method: self.method, encode: None, _response: PhantomData };
        }
        self.wrap_params(|method, value: Result<Value>| value.and_then(|value| T::from_value(method, value)))
    }

    /// The same right under another method name: what [`method`](Self::method) says and what typed
    /// responses are written for. Answers dropped by accident still name the method of the wire.
    pub fn wrap_method(mut self, method: String) -> Self {
        self.method = method.into();
        self
    }

    /// The same right, to be used with another type that `wrap` turns into this one. `wrap` runs
    /// when the answer is given, in the caller of [`respond`](Self::respond); it gets the method.
    /// It does not run for a responder that is dropped.
    pub fn wrap_params<U: JsonRpcResponse>(
        self,
        wrap: impl FnOnce(&str, Result<U>) -> Result<T> + Send + 'static,
    ) -> Responder<U> {
        let inner = self.encode;
        let encode: Encode<U> = Box::new(move |method, result| {
            let wrapped = wrap(method, result);
            match inner {
                Some(encode) => encode(method, wrapped),
                None => wrapped.and_then(|response| response.into_text(method).map(Bytes::from)),
            }
        });
        Responder { call: self.call, method: self.method, encode: Some(encode), _response: PhantomData }
    }
}

impl Responder<Value> {
    /// The same right, to be used with a typed response. Nothing is checked.
    pub fn cast<T: JsonRpcResponse>(self) -> Responder<T> {
        if self.encode.is_none() {
            return Responder { call: self.call, method: self.method, encode: None, _response: PhantomData };
        }
        self.wrap_params(|method, result: Result<T>| result.and_then(|response| response.into_json(method)))
    }
}

impl<T: JsonRpcResponse> fmt::Debug for Responder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("id", self.id()).field("method", &self.method).finish_non_exhaustive()
    }
}

type Recode<T> = Box<dyn FnOnce(&str, Result<T>) -> Result<Bytes> + Send>;

/// The right to settle the answer to one of our own requests.
///
/// Nothing goes on the wire: the local caller gets the value. Dropping it fails the caller with
/// `-32603`; an error that the handler returns in the same dispatch replaces that.
///
/// Ordering: an ordered callback of the caller holds up later messages only if the router is used
/// before its handler is done. Afterwards the callback runs beside the dispatch loop (spec §6.3,
/// 73), for at most 5 s.
#[must_use = "dropping a response router fails the caller that waits"]
pub struct ResponseRouter<T: JsonRpcResponse = Value> {
    settle: Settle,
    id: RequestId,
    role: RoleId,
    recode: Option<Recode<T>>,
    _response: PhantomData<fn(T)>,
}

/// Settles at most once.
struct Settle {
    reply: Arc<Reply>,
    connection: Arc<Shared>,
    done: bool,
}

impl Settle {
    fn with(mut self, outcome: Result<Bytes>) {
        self.done = true;
        self.run(self.reply.settle(outcome));
    }

    /// Routed by hand: there is no dispatch step that a callback could hold up.
    fn run(&self, callback: Option<BoxFuture<'static, Result<()>>>) {
        if let Some(callback) = callback {
            self.connection.run_callback(callback);
        }
    }
}

impl Drop for Settle {
    fn drop(&mut self) {
        if !self.done {
            self.run(self.reply.give_up());
        }
    }
}

impl<T: JsonRpcResponse> ResponseRouter<T> {
    pub(crate) fn new(reply: Arc<Reply>, connection: Arc<Shared>, role: RoleId) -> Self {
        let id = RequestId::Number(reply.id());
        Self { settle: Settle { reply, connection, done: false }, id, role, recode: None, _response: PhantomData }
    }

    /// The JSON-RPC id of our request.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// The method of our request.
    #[must_use]
    pub fn method(&self) -> &str {
        self.settle.reply.method()
    }

    /// The role at the other end of the connection. In a proxy that is the conductor, whichever
    /// logical peer answered.
    #[must_use]
    pub fn role_id(&self) -> RoleId {
        self.role
    }

    /// Gives the caller a result. It is written as JSON and read again by the caller.
    ///
    /// # Errors
    /// When the result cannot be written; the caller gets that error too.
    pub fn route(self, response: T) -> Result<()> {
        self.route_with_result(Ok(response))
    }

    /// Gives the caller an error.
    ///
    /// # Errors
    /// Never at present.
    pub fn route_with_error(self, error: Error) -> Result<()> {
        self.route_with_result(Err(error))
    }

    /// Gives the caller `-32603` with a text as data.
    ///
    /// # Errors
    /// Never at present.
    pub fn route_with_internal_error(self, message: impl ToString) -> Result<()> {
        self.route_with_error(Error::internal_error().data(message.to_string()))
    }

    /// Gives the caller whatever the result is.
    ///
    /// # Errors
    /// When the result cannot be written; the caller gets that error too.
    pub fn route_with_result(self, result: Result<T>) -> Result<()> {
        let method: Box<str> = self.settle.reply.method().into();
        let good = result.is_ok();
        let outcome = match self.recode {
            Some(recode) => recode(&method, result),
            None => result.and_then(|response| response.into_text(&method).map(Bytes::from)),
        };
        let failed = if good { outcome.as_ref().err().cloned() } else { None };
        self.settle.with(outcome);
        failed.map_or(Ok(()), Err)
    }

    /// The logical peer that answered.
    pub(crate) fn peer(&self) -> RemoteStyle {
        self.settle.reply.peer()
    }

    pub(crate) fn into_parts(mut self) -> (Arc<Reply>, Arc<Shared>) {
        self.settle.done = true;
        (self.settle.reply.clone(), self.settle.connection.clone())
    }

    /// The same right, to be used with any JSON value. A value that the caller cannot read is an
    /// error for the caller.
    pub fn erase_to_json(self) -> ResponseRouter<Value> {
        self.retyped(|recode| {
            Box::new(move |method, value: Result<Value>| {
                recode(method, value.and_then(|value| T::from_value(method, value)))
            })
        })
    }

    fn retyped<U: JsonRpcResponse>(self, wrap: impl FnOnce(Recode<T>) -> Recode<U>) -> ResponseRouter<U> {
        let recode = self.recode.map(wrap);
        ResponseRouter { settle: self.settle, id: self.id, role: self.role, recode, _response: PhantomData }
    }
}

impl ResponseRouter<Value> {
    /// The same right, to be used with a typed response.
    pub fn cast<T: JsonRpcResponse>(self) -> ResponseRouter<T> {
        self.retyped(|recode| {
            Box::new(move |method, result: Result<T>| {
                recode(method, result.and_then(|response| response.into_json(method)))
            })
        })
    }
}

impl<T: JsonRpcResponse> fmt::Debug for ResponseRouter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseRouter").field("id", &self.id).field("method", &self.method()).finish_non_exhaustive()
    }
}
