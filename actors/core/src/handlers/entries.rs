//! The registered handlers, one entry each, whatever their types.

use std::fmt;
use std::marker::PhantomData;

use greenroom_protocol::{BoxFuture, Error, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, RemoteStyle, Result};

use super::delivery::{Delivery, rebuilt};
use super::interest::Interest;
use crate::connection::InboundCall;
use crate::connection_to::{ConnectionContext, ConnectionTo};
use crate::dispatch::{Dispatch, Handled, IntoHandled};
use crate::responder::Responder;
use crate::role::Role;

/// Code that takes messages from a peer with the role `Counterpart`.
///
/// Called one message at a time, in wire order. Returning [`Handled::No`] passes the message on,
/// possibly changed. In a proxy, what the agent's side sent shows its envelope, spelled
/// `_proxy/successor` whatever the hop says; [`MatchDispatchFrom`](crate::util::MatchDispatchFrom)
/// opens it.
///
/// Messages are parsed for this handler, all of them, and written again when it passes them on: all
/// members survive, the spelling of numbers and strings does not.
pub trait HandleDispatchFrom<Counterpart: Role>: Send {
    /// Looks at a message. It must not wait for a response of `connection`: see
    /// [`SentRequest::block_task`](crate::SentRequest::block_task).
    ///
    /// Cancel-safety: as for [`Builder::on_receive_request`](crate::Builder::on_receive_request).
    ///
    /// # Errors
    /// For a request the error is its answer, for a response the outcome of the local caller, for a
    /// notification a line in the log.
    fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        connection: ConnectionTo<Counterpart>,
    ) -> impl Future<Output = Result<Handled<Dispatch>>> + Send;

    /// What this handler is, for diagnostics.
    fn describe_chain(&self) -> impl fmt::Debug {
        std::any::type_name::<Self>()
    }

    /// The handler as a list of entries.
    #[doc(hidden)]
    fn into_handlers<'h>(self) -> Handlers<'h, Counterpart>
    where
        Self: Sized + 'h,
    {
        Handlers { entries: vec![Box::new(AnyEntry(self))] }
    }
}

impl<Counterpart: Role, H: HandleDispatchFrom<Counterpart>> HandleDispatchFrom<Counterpart> for &mut H {
    fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        connection: ConnectionTo<Counterpart>,
    ) -> impl Future<Output = Result<Handled<Dispatch>>> + Send {
        H::handle_dispatch_from(self, message, connection)
    }

    fn describe_chain(&self) -> impl fmt::Debug {
        H::describe_chain(self)
    }
}

/// Takes nothing. Costs nothing: it is never asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullHandler;

impl<Counterpart: Role> HandleDispatchFrom<Counterpart> for NullHandler {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        _connection: ConnectionTo<Counterpart>,
    ) -> Result<Handled<Dispatch>> {
        Ok(Handled::No { message, retry: false })
    }

    fn into_handlers<'h>(self) -> Handlers<'h, Counterpart>
    where
        Self: Sized + 'h,
    {
        Handlers::default()
    }
}

/// Handlers in registration order; the first that takes a message wins. Made by a
/// [`Builder`](crate::Builder).
pub struct Handlers<'h, Counterpart: Role> {
    entries: Vec<Box<dyn Entry<Counterpart> + 'h>>,
}

impl<Counterpart: Role> Default for Handlers<'_, Counterpart> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<'h, Counterpart: Role> Handlers<'h, Counterpart> {
    pub(crate) fn push(&mut self, entry: impl Entry<Counterpart> + 'h) {
        self.entries.push(Box::new(entry));
    }

    pub(crate) fn extend(&mut self, more: Self) {
        self.entries.extend(more.entries);
    }

    pub(crate) fn interests(&self) -> Vec<Interest> {
        self.entries.iter().map(|entry| entry.interest()).collect()
    }

    /// Asks the handlers at these positions.
    pub(crate) async fn handle(
        &mut self,
        plan: &[usize],
        delivery: Delivery,
        connection: &ConnectionTo<Counterpart>,
    ) -> Result<Handled<Delivery>> {
        let mut delivery = delivery;
        let mut again = false;
        for position in plan {
            let Some(entry) = self.entries.get_mut(*position) else { continue };
            match entry.handle(delivery, connection.clone()).await? {
                Handled::Yes => return Ok(Handled::Yes),
                Handled::No { message, retry } => {
                    delivery = message;
                    again |= retry;
                }
            }
        }
        Ok(Handled::No { message: delivery, retry: again })
    }
}

impl<Counterpart: Role> HandleDispatchFrom<Counterpart> for Handlers<'_, Counterpart> {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        connection: ConnectionTo<Counterpart>,
    ) -> Result<Handled<Dispatch>> {
        let every: Vec<usize> = (0..self.entries.len()).collect();
        let delivery = Delivery::from_dispatch(message)?;
        Ok(match self.handle(&every, delivery, &connection).await? {
            Handled::Yes => Handled::Yes,
            Handled::No { message, retry } => {
                Handled::No { message: message.into_dispatch(connection.counterpart().role_id())?.0, retry }
            }
        })
    }

    fn describe_chain(&self) -> impl fmt::Debug {
        format!("{} handlers", self.entries.len())
    }

    fn into_handlers<'h>(self) -> Handlers<'h, Counterpart>
    where
        Self: Sized + 'h,
    {
        let mut entries: Vec<Box<dyn Entry<Counterpart> + 'h>> = Vec::with_capacity(self.entries.len());
        for entry in self.entries {
            entries.push(entry);
        }
        Handlers { entries }
    }
}

impl<Counterpart: Role> fmt::Debug for Handlers<'_, Counterpart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").field("count", &self.entries.len()).finish()
    }
}

/// One handler behind one type.
pub(crate) trait Entry<Counterpart: Role>: Send {
    fn interest(&self) -> Interest;

    fn handle<'a>(
        &'a mut self,
        delivery: Delivery,
        connection: ConnectionTo<Counterpart>,
    ) -> BoxFuture<'a, Result<Handled<Delivery>>>;
}

/// A handler that looks at everything in the documented form.
struct AnyEntry<H>(H);

impl<Counterpart: Role, H: HandleDispatchFrom<Counterpart>> Entry<Counterpart> for AnyEntry<H> {
    fn interest(&self) -> Interest {
        Interest::All
    }

    fn handle<'a>(
        &'a mut self,
        delivery: Delivery,
        connection: ConnectionTo<Counterpart>,
    ) -> BoxFuture<'a, Result<Handled<Delivery>>> {
        Box::pin(async move {
            let original = delivery.original();
            let (dispatch, _) = delivery.into_dispatch(connection.counterpart().role_id())?;
            Ok(match self.0.handle_dispatch_from(dispatch, connection).await? {
                Handled::Yes => Handled::Yes,
                Handled::No { message, retry } => {
                    Handled::No { message: Delivery::passed_on(message, original)?, retry }
                }
            })
        })
    }
}

/// A typed request handler.
pub(crate) struct RequestEntry<Req, F, T, ToFut, Context> {
    pub(crate) handler: F,
    pub(crate) to_future: ToFut,
    pub(crate) peer: RemoteStyle,
    pub(crate) _types: PhantomData<fn(Req, Context) -> T>,
}

impl<Counterpart, Req, F, T, ToFut, Context> Entry<Counterpart> for RequestEntry<Req, F, T, ToFut, Context>
where
    Counterpart: Role,
    Req: JsonRpcRequest,
    F: Send,
    T: IntoHandled<(Req, Responder<Req::Response>)>,
    Context: ConnectionContext,
    ToFut: for<'a> Fn(
            &'a mut F,
            Req,
            Responder<Req::Response>,
            Context::Connection<Counterpart>,
        ) -> BoxFuture<'a, Result<T>>
        + Send
        + Sync,
{
    fn interest(&self) -> Interest {
        Interest::Requests(Req::matches_method, self.peer)
    }

    fn handle<'a>(
        &'a mut self,
        delivery: Delivery,
        connection: ConnectionTo<Counterpart>,
    ) -> BoxFuture<'a, Result<Handled<Delivery>>> {
        let Delivery::Request(call, open) = delivery else {
            return Box::pin(std::future::ready(Ok(Handled::No { message: delivery, retry: false })));
        };
        let request = match Req::parse_params(call.method(), call.params_text()) {
            Ok(request) => request,
            Err(error) => {
                let answered = open.answer(Err(error));
                return Box::pin(std::future::ready(answered.map(|()| Handled::Yes)));
            }
        };
        let original = call.unpaid();
        // The credit of the frame is given back now: the handler works on its own copy.
        drop(call);
        let responder = Responder::<serde_json::Value>::new(open).cast();
        let future = (self.to_future)(&mut self.handler, request, responder, Context::of(connection));
        Box::pin(async move {
            Ok(match future.await?.into_handled() {
                Handled::Yes => Handled::Yes,
                Handled::No { message: (request, responder), retry } => {
                    let call = retold(&request, original)?;
                    Handled::No { message: Delivery::Request(call, responder.into_call()), retry }
                }
            })
        })
    }
}

/// A typed notification handler.
pub(crate) struct NotificationEntry<Notif, F, T, ToFut, Context> {
    pub(crate) handler: F,
    pub(crate) to_future: ToFut,
    pub(crate) peer: RemoteStyle,
    pub(crate) _types: PhantomData<fn(Notif, Context) -> T>,
}

impl<Counterpart, Notif, F, T, ToFut, Context> Entry<Counterpart> for NotificationEntry<Notif, F, T, ToFut, Context>
where
    Counterpart: Role,
    Notif: JsonRpcNotification,
    F: Send,
    T: IntoHandled<(Notif, Context::Connection<Counterpart>)>,
    Context: ConnectionContext,
    ToFut: for<'a> Fn(&'a mut F, Notif, Context::Connection<Counterpart>) -> BoxFuture<'a, Result<T>> + Send + Sync,
{
    fn interest(&self) -> Interest {
        Interest::Notifications(Notif::matches_method, self.peer)
    }

    fn handle<'a>(
        &'a mut self,
        delivery: Delivery,
        connection: ConnectionTo<Counterpart>,
    ) -> BoxFuture<'a, Result<Handled<Delivery>>> {
        let Delivery::Notification(call) = delivery else {
            return Box::pin(std::future::ready(Ok(Handled::No { message: delivery, retry: false })));
        };
        let notification = match Notif::parse_params(call.method(), call.params_text()) {
            Ok(notification) => notification,
            Err(_) if Notif::is_foreign(call.method(), call.params_text()) => {
                let message = Delivery::Notification(call);
                return Box::pin(std::future::ready(Ok(Handled::No { message, retry: false })));
            }
            Err(error) => {
                // A notification is never answered; the reason may quote payload and stays out.
                tracing::warn!(
                    method = call.method(),
                    code = i32::from(error.code),
                    "a malformed notification was ignored"
                );
                return Box::pin(std::future::ready(Ok(Handled::Yes)));
            }
        };
        let original = call.unpaid();
        let permit = call.permit;
        let future = (self.to_future)(&mut self.handler, notification, Context::of(connection));
        Box::pin(async move {
            let handled = future.await?.into_handled();
            // A flood of notifications is held back until its handler is done with each.
            drop(permit);
            Ok(match handled {
                Handled::Yes => Handled::Yes,
                Handled::No { message: (notification, _), retry } => {
                    Handled::No { message: Delivery::Notification(retold(&notification, original)?), retry }
                }
            })
        })
    }
}

/// A handler for requests, their responses, and notifications.
pub(crate) struct DispatchEntry<Req, Notif, F, T, ToFut, Context> {
    pub(crate) handler: F,
    pub(crate) to_future: ToFut,
    pub(crate) peer: RemoteStyle,
    pub(crate) _types: PhantomData<fn(Req, Notif, Context) -> T>,
}

impl<Counterpart, Req, Notif, F, T, ToFut, Context> Entry<Counterpart>
    for DispatchEntry<Req, Notif, F, T, ToFut, Context>
where
    Counterpart: Role,
    Req: JsonRpcRequest,
    Notif: JsonRpcNotification,
    F: Send,
    T: IntoHandled<Dispatch<Req, Notif>>,
    Context: ConnectionContext,
    ToFut: for<'a> Fn(&'a mut F, Dispatch<Req, Notif>, Context::Connection<Counterpart>) -> BoxFuture<'a, Result<T>>
        + Send
        + Sync,
{
    fn interest(&self) -> Interest {
        Interest::Dispatches { requests: Req::matches_method, notifications: Notif::matches_method, peer: self.peer }
    }

    fn handle<'a>(
        &'a mut self,
        delivery: Delivery,
        connection: ConnectionTo<Counterpart>,
    ) -> BoxFuture<'a, Result<Handled<Delivery>>> {
        let original = delivery.original();
        let dispatch = match typed::<Req, Notif>(delivery, connection.counterpart().role_id()) {
            Ok(Read::Typed(dispatch)) => dispatch,
            Ok(Read::Foreign(message)) => {
                return Box::pin(std::future::ready(Ok(Handled::No { message, retry: false })));
            }
            Ok(Read::Settled) => return Box::pin(std::future::ready(Ok(Handled::Yes))),
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let future = (self.to_future)(&mut self.handler, dispatch, Context::of(connection));
        Box::pin(async move {
            Ok(match future.await?.into_handled() {
                Handled::Yes => Handled::Yes,
                Handled::No { message, retry } => Handled::No { message: untyped_again(message, original)?, retry },
            })
        })
    }
}

/// What reading a delivery as a typed dispatch gives.
enum Read<Req: JsonRpcRequest, Notif: JsonRpcNotification> {
    Typed(Dispatch<Req, Notif>),
    /// It is for others: see [`JsonRpcMessage::is_foreign`].
    Foreign(Delivery),
    /// It was malformed, and that is settled.
    Settled,
}

fn typed<Req: JsonRpcRequest, Notif: JsonRpcNotification>(
    delivery: Delivery,
    role: crate::role::RoleId,
) -> Result<Read<Req, Notif>> {
    Ok(match delivery {
        Delivery::Request(call, open) => match Req::parse_params(call.method(), call.params_text()) {
            Ok(request) => Read::Typed(Dispatch::Request(request, Responder::<serde_json::Value>::new(open).cast())),
            Err(error) => {
                open.answer(Err(error))?;
                Read::Settled
            }
        },
        Delivery::Notification(call) => match Notif::parse_params(call.method(), call.params_text()) {
            Ok(notification) => Read::Typed(Dispatch::Notification(notification)),
            Err(_) if Notif::is_foreign(call.method(), call.params_text()) => {
                Read::Foreign(Delivery::Notification(call))
            }
            Err(error) => {
                tracing::warn!(
                    method = call.method(),
                    code = i32::from(error.code),
                    "a malformed notification was ignored"
                );
                Read::Settled
            }
        },
        Delivery::Response(response) => {
            let (outcome, router) = response.open(role);
            let method = router.method().to_owned();
            let result = outcome.and_then(|text| {
                let text = std::str::from_utf8(&text).map_err(Error::into_internal_error)?;
                <Req::Response as greenroom_protocol::JsonRpcResponse>::from_text(&method, text)
            });
            Read::Typed(Dispatch::Response(result, router.cast()))
        }
    })
}

fn untyped_again<Req: JsonRpcRequest, Notif: JsonRpcNotification>(
    dispatch: Dispatch<Req, Notif>,
    original: Option<InboundCall>,
) -> Result<Delivery> {
    Ok(match (dispatch, original) {
        (Dispatch::Request(request, responder), Some(original)) => {
            Delivery::Request(retold(&request, original)?, responder.into_call())
        }
        (Dispatch::Notification(notification), Some(original)) => {
            Delivery::Notification(retold(&notification, original)?)
        }
        (other, _) => Delivery::from_dispatch(other.into_untyped_dispatch()?)?,
    })
}

/// A message that a handler passed on: as it came, if the handler did not change it, and otherwise
/// written anew, from the same peer. What a type does not know is only kept in the first case.
fn retold<M: JsonRpcMessage>(message: &M, original: InboundCall) -> Result<InboundCall> {
    let text = message.params_text()?;
    let came = M::parse_params(original.method(), original.params_text()).and_then(|came| came.params_text());
    if message.method() == original.method() && came.is_ok_and(|came| came == text) {
        return Ok(original);
    }
    let mut call = rebuilt(message.method(), &text)?;
    call.peer = original.peer;
    Ok(call)
}
