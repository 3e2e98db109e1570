//! From handlers and a transport to a running connection.

mod connecting;

use std::fmt;
use std::marker::PhantomData;

use greenroom_protocol::{Batches, BoxFuture, JsonRpcNotification, JsonRpcRequest, Result};

use crate::close::{ChainClose, CloseFn, HandleConnectionClose, NullClose};
use crate::connection_to::{ConnectionContext, RawConnectionContext};
use crate::dispatch::{Dispatch, IntoHandled};
use crate::handlers::{DispatchEntry, HandleDispatchFrom, Handlers, NotificationEntry, NullHandler, RequestEntry};
use crate::options::ConnectionOptions;
use crate::responder::Responder;
use crate::role::{HasPeer, Role};
use crate::run::{ChainRun, NullRun, RunWithConnectionTo, SpawnedRun};

/// Describes an endpoint with the role `Host`: its name, its handlers, what runs beside it.
///
/// Nothing runs until one of the `connect_…` methods or [`spawn_linked`](Self::spawn_linked). A
/// builder is a component too ([`ConnectTo`](crate::ConnectTo)): whatever connects to it runs it.
///
/// Ordering: handlers are asked in the order in which they were added; the first that takes a
/// message wins (spec §6.3, 68). Handlers run one message at a time, in wire order (spec §6.3, 67).
pub struct Builder<
    Host: Role,
    Handler = NullHandler,
    Runner = NullRun,
    Close = NullClose,
    Context = RawConnectionContext,
> where
    Handler: HandleDispatchFrom<Host::Counterpart>,
    Runner: RunWithConnectionTo<Host::Counterpart>,
    Close: HandleConnectionClose<Host::Counterpart>,
    Context: ConnectionContext,
{
    host: Host,
    handler: Handler,
    runner: Runner,
    close: Close,
    settings: Settings,
    _context: PhantomData<fn(Context)>,
}

/// What a builder is told beside its parts.
#[derive(Default)]
struct Settings {
    name: Option<String>,
    options: ConnectionOptions,
    guard: Option<Guarded>,
}

/// Which handshake is guarded. What else the guard has to know is only known at the end.
#[derive(Clone, Copy)]
#[allow(clippy::enum_variant_names, reason = "there is a second version with its feature")]
pub(crate) enum Guarded {
    V1Client,
    V1Agent,
    V1Proxy,
    #[cfg(feature = "unstable_protocol_v2")]
    V2Client,
    #[cfg(feature = "unstable_protocol_v2")]
    V2Agent,
    #[cfg(feature = "unstable_protocol_v2")]
    V2Proxy,
}

impl<Host: Role> Builder<Host> {
    /// An endpoint without handlers: requests are answered `-32601`, notifications ignored; a proxy
    /// passes everything on.
    pub fn new(host: Host) -> Self {
        Self::new_with(host, NullHandler)
    }
}

impl<Host: Role, Handler: HandleDispatchFrom<Host::Counterpart>> Builder<Host, Handler> {
    /// An endpoint with one handler that looks at everything. More can be added behind it.
    pub fn new_with(host: Host, handler: Handler) -> Self {
        Self { host, handler, runner: NullRun, close: NullClose, settings: Settings::default(), _context: PhantomData }
    }
}

impl<Host, Handler, Runner, Close, Context> Builder<Host, Handler, Runner, Close, Context>
where
    Host: Role,
    Handler: HandleDispatchFrom<Host::Counterpart>,
    Runner: RunWithConnectionTo<Host::Counterpart>,
    Close: HandleConnectionClose<Host::Counterpart>,
    Context: ConnectionContext,
{
    /// Names the endpoint in logs; the role's name is the default. The last name wins.
    #[must_use]
    pub fn name(mut self, name: impl ToString) -> Self {
        self.settings.name = Some(name.to_string());
        self
    }

    /// Sets all limits and policies, also those that [`end_on_failure`](Self::end_on_failure) and
    /// [`batches`](Self::batches) set before.
    #[must_use]
    pub fn options(mut self, options: ConnectionOptions) -> Self {
        self.settings.options = options;
        self
    }

    /// Ends the connection when a spawned task or an ordered response callback returns an error or
    /// panics, as the documented SDK does (spec §6.2, 65). By default only the requests that it had
    /// taken over are affected: they are answered like those of any dropped responder.
    #[must_use]
    pub fn end_on_failure(mut self) -> Self {
        self.settings.options.end_on_failure = true;
        self
    }

    /// Whether JSON arrays are taken apart (the default) or refused with one `-32600` and
    /// `id: null` (spec §9, decision 1). Arrays are never sent first.
    #[must_use]
    pub fn batches(mut self, batches: Batches) -> Self {
        self.settings.options.batches = batches;
        self
    }

    /// Lets every message pass before the handshake, and every version: for endpoints that do all of
    /// that themselves.
    #[must_use]
    pub fn without_acp_version_guard(mut self) -> Self {
        self.settings.guard = None;
        self
    }

    /// The same builder before it has callbacks, for another kind of handle.
    #[cfg(feature = "unstable_protocol_v2")]
    pub(crate) fn in_context<Other: ConnectionContext>(self) -> Builder<Host, Handler, Runner, Close, Other> {
        Builder {
            host: self.host,
            handler: self.handler,
            runner: self.runner,
            close: self.close,
            settings: self.settings,
            _context: PhantomData,
        }
    }

    pub(crate) fn guarded(mut self, guard: Guarded) -> Self {
        self.settings.guard = Some(guard);
        self
    }

    #[cfg(feature = "unstable_mcp_over_acp")]
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Adds handlers of this crate's own.
    #[cfg(feature = "unstable_mcp_over_acp")]
    pub(crate) fn with_entries<'h>(
        self,
        push: impl FnOnce(&mut Handlers<'h, Host::Counterpart>),
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, Runner, Close, Context>
    where
        Handler: 'h,
    {
        self.map_handler(push, |handlers| handlers)
    }

    fn map_handler<'h, Next>(
        self,
        push: impl FnOnce(&mut Handlers<'h, Host::Counterpart>),
        into: impl FnOnce(Handlers<'h, Host::Counterpart>) -> Next,
    ) -> Builder<Host, Next, Runner, Close, Context>
    where
        Handler: 'h,
        Next: HandleDispatchFrom<Host::Counterpart>,
    {
        let mut handlers = self.handler.into_handlers();
        push(&mut handlers);
        Builder {
            host: self.host,
            handler: into(handlers),
            runner: self.runner,
            close: self.close,
            settings: self.settings,
            _context: PhantomData,
        }
    }

    /// Handles requests of one type from the peer. Pass
    /// [`on_receive_request!()`](crate::on_receive_request) as `to_future`.
    ///
    /// A handler that returns `()` has taken the request; [`Handled::No`](crate::Handled::No) passes
    /// it on to the next one, written again from `Req` (members that the type does not know are
    /// lost). It may give the responder to a task or callback and return.
    ///
    /// Ordering: one message at a time, in wire order. The handler must not wait for a response of
    /// its own connection: that fails at once (see
    /// [`SentRequest::block_task`](crate::SentRequest::block_task)).
    ///
    /// Errors: params that do not fit `Req` are answered `-32602` without calling the handler. An
    /// error of the handler answers the request, unless it was answered; a panic answers `-32603`
    /// with data that says `interrupted`. Neither ends the connection (spec §6.2, 66).
    ///
    /// Cancel-safety: with [`connect_to`](Self::connect_to) and
    /// [`connect_with`](Self::connect_with) only the end of the connection drops a handler that
    /// runs. With [`spawn_linked`](Self::spawn_linked) the death of the dispatch actor does so as
    /// well; the request is then answered as after a panic. No handler runs twice for one message.
    pub fn on_receive_request<'h, Req, F, T, ToFut>(
        self,
        handler: F,
        to_future: ToFut,
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, Runner, Close, Context>
    where
        Host::Counterpart: HasPeer<Host::Counterpart>,
        Handler: 'h,
        Req: JsonRpcRequest,
        F: AsyncFnMut(Req, Responder<Req::Response>, Context::Connection<Host::Counterpart>) -> Result<T> + Send + 'h,
        T: IntoHandled<(Req, Responder<Req::Response>)> + 'h,
        ToFut: for<'a> Fn(
                &'a mut F,
                Req,
                Responder<Req::Response>,
                Context::Connection<Host::Counterpart>,
            ) -> BoxFuture<'a, Result<T>>
            + Send
            + Sync
            + 'h,
    {
        let peer = self.host.counterpart();
        self.on_receive_request_from(peer, handler, to_future)
    }

    /// Handles requests of one type from a logical peer: as
    /// [`on_receive_request`](Self::on_receive_request), with the message taken out of its envelope.
    pub fn on_receive_request_from<'h, Req: JsonRpcRequest, Peer: Role, F, T, ToFut>(
        self,
        peer: Peer,
        handler: F,
        to_future: ToFut,
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, Runner, Close, Context>
    where
        Host::Counterpart: HasPeer<Peer>,
        Handler: 'h,
        F: AsyncFnMut(Req, Responder<Req::Response>, Context::Connection<Host::Counterpart>) -> Result<T> + Send + 'h,
        T: IntoHandled<(Req, Responder<Req::Response>)> + 'h,
        ToFut: for<'a> Fn(
                &'a mut F,
                Req,
                Responder<Req::Response>,
                Context::Connection<Host::Counterpart>,
            ) -> BoxFuture<'a, Result<T>>
            + Send
            + Sync
            + 'h,
    {
        let peer = self.host.counterpart().remote_style(peer);
        let entry = RequestEntry { handler, to_future, peer, _types: PhantomData::<fn(Req, Context) -> T> };
        self.map_handler(|handlers| handlers.push(entry), |handlers| handlers)
    }

    /// Handles notifications of one type from the peer. Pass
    /// [`on_receive_notification!()`](crate::on_receive_notification) as `to_future`.
    ///
    /// Order, cancel-safety and passing on are as for
    /// [`on_receive_request`](Self::on_receive_request). Errors have nobody to go to: params that do
    /// not fit, errors of the handler and panics are logged by method and code. The handler's frame
    /// counts against the incoming credit until the handler is done.
    pub fn on_receive_notification<'h, Notif, F, T, ToFut>(
        self,
        handler: F,
        to_future: ToFut,
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, Runner, Close, Context>
    where
        Host::Counterpart: HasPeer<Host::Counterpart>,
        Handler: 'h,
        Notif: JsonRpcNotification,
        F: AsyncFnMut(Notif, Context::Connection<Host::Counterpart>) -> Result<T> + Send + 'h,
        T: IntoHandled<(Notif, Context::Connection<Host::Counterpart>)> + 'h,
        ToFut: for<'a> Fn(&'a mut F, Notif, Context::Connection<Host::Counterpart>) -> BoxFuture<'a, Result<T>>
            + Send
            + Sync
            + 'h,
    {
        let peer = self.host.counterpart();
        self.on_receive_notification_from(peer, handler, to_future)
    }

    /// Handles notifications of one type from a logical peer: as
    /// [`on_receive_notification`](Self::on_receive_notification).
    pub fn on_receive_notification_from<'h, Notif: JsonRpcNotification, Peer: Role, F, T, ToFut>(
        self,
        peer: Peer,
        handler: F,
        to_future: ToFut,
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, Runner, Close, Context>
    where
        Host::Counterpart: HasPeer<Peer>,
        Handler: 'h,
        F: AsyncFnMut(Notif, Context::Connection<Host::Counterpart>) -> Result<T> + Send + 'h,
        T: IntoHandled<(Notif, Context::Connection<Host::Counterpart>)> + 'h,
        ToFut: for<'a> Fn(&'a mut F, Notif, Context::Connection<Host::Counterpart>) -> BoxFuture<'a, Result<T>>
            + Send
            + Sync
            + 'h,
    {
        let peer = self.host.counterpart().remote_style(peer);
        let entry = NotificationEntry { handler, to_future, peer, _types: PhantomData::<fn(Notif, Context) -> T> };
        self.map_handler(|handlers| handlers.push(entry), |handlers| handlers)
    }

    /// Handles requests, the responses to our requests of that type, and notifications from the
    /// peer. Pass [`on_receive_dispatch!()`](crate::on_receive_dispatch) as `to_future`.
    ///
    /// As [`on_receive_request`](Self::on_receive_request). A response is offered before its local
    /// caller gets it, and the caller waits until it is routed: an error of the handler is the
    /// caller's outcome, and so is a dropped router (`-32603`).
    pub fn on_receive_dispatch<'h, Req, Notif, F, T, ToFut>(
        self,
        handler: F,
        to_future: ToFut,
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, Runner, Close, Context>
    where
        Host::Counterpart: HasPeer<Host::Counterpart>,
        Handler: 'h,
        Req: JsonRpcRequest,
        Notif: JsonRpcNotification,
        F: AsyncFnMut(Dispatch<Req, Notif>, Context::Connection<Host::Counterpart>) -> Result<T> + Send + 'h,
        T: IntoHandled<Dispatch<Req, Notif>> + 'h,
        ToFut: for<'a> Fn(
                &'a mut F,
                Dispatch<Req, Notif>,
                Context::Connection<Host::Counterpart>,
            ) -> BoxFuture<'a, Result<T>>
            + Send
            + Sync
            + 'h,
    {
        let peer = self.host.counterpart();
        self.on_receive_dispatch_from(peer, handler, to_future)
    }

    /// Handles requests, the responses to our requests of that type, and notifications from a
    /// logical peer: as [`on_receive_dispatch`](Self::on_receive_dispatch).
    pub fn on_receive_dispatch_from<'h, Req: JsonRpcRequest, Notif: JsonRpcNotification, Peer: Role, F, T, ToFut>(
        self,
        peer: Peer,
        handler: F,
        to_future: ToFut,
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, Runner, Close, Context>
    where
        Host::Counterpart: HasPeer<Peer>,
        Handler: 'h,
        F: AsyncFnMut(Dispatch<Req, Notif>, Context::Connection<Host::Counterpart>) -> Result<T> + Send + 'h,
        T: IntoHandled<Dispatch<Req, Notif>> + 'h,
        ToFut: for<'a> Fn(
                &'a mut F,
                Dispatch<Req, Notif>,
                Context::Connection<Host::Counterpart>,
            ) -> BoxFuture<'a, Result<T>>
            + Send
            + Sync
            + 'h,
    {
        let peer = self.host.counterpart().remote_style(peer);
        let entry = DispatchEntry { handler, to_future, peer, _types: PhantomData::<fn(Req, Notif, Context) -> T> };
        self.map_handler(|handlers| handlers.push(entry), |handlers| handlers)
    }

    /// Adds a handler that looks at every message: requests, notifications and responses, of all
    /// peers. What it passes on went through parsed values; see [`HandleDispatchFrom`].
    pub fn with_handler<'h>(
        self,
        handler: impl HandleDispatchFrom<Host::Counterpart> + 'h,
    ) -> Builder<Host, Handlers<'h, Host::Counterpart>, Runner, Close, Context>
    where
        Handler: 'h,
    {
        let more = handler.into_handlers();
        self.map_handler(|handlers| handlers.extend(more), |handlers| handlers)
    }

    /// Adds handlers, runners and close callbacks of another builder behind what is here; its name
    /// and options are not taken.
    #[expect(clippy::type_complexity, reason = "the documented shape")]
    pub fn with_connection_builder<'h, H2, R2, C2>(
        self,
        other: Builder<Host, H2, R2, C2, Context>,
    ) -> Builder<
        Host,
        Handlers<'h, Host::Counterpart>,
        ChainRun<Runner, R2>,
        impl HandleConnectionClose<Host::Counterpart>,
        Context,
    >
    where
        Handler: 'h,
        H2: HandleDispatchFrom<Host::Counterpart> + 'h,
        R2: RunWithConnectionTo<Host::Counterpart>,
        C2: HandleConnectionClose<Host::Counterpart>,
    {
        let mut handlers: Handlers<'h, Host::Counterpart> = self.handler.into_handlers();
        handlers.extend(other.handler.into_handlers());
        Builder {
            host: self.host,
            handler: handlers,
            runner: ChainRun::new(self.runner, other.runner),
            close: ChainClose { first: self.close, second: other.close },
            settings: self.settings,
            _context: PhantomData,
        }
    }

    /// Runs something beside the connection, together with what was added before.
    ///
    /// It may wait for responses. An error ends the connection with
    /// [`HandlerError`](crate::ConnectionTermination::HandlerError); `Ok` does not end it. It is dropped at
    /// its next `.await` when the connection ends. A panic goes to whoever polls
    /// [`connect_to`](Self::connect_to) or [`connect_with`](Self::connect_with); below
    /// [`spawn_linked`](Self::spawn_linked) it is logged.
    pub fn with_runner<Run1>(
        self,
        runner: Run1,
    ) -> Builder<Host, Handler, impl RunWithConnectionTo<Host::Counterpart>, Close, Context>
    where
        Run1: RunWithConnectionTo<Host::Counterpart>,
    {
        Builder {
            host: self.host,
            handler: self.handler,
            runner: ChainRun::new(self.runner, runner),
            close: self.close,
            settings: self.settings,
            _context: PhantomData,
        }
    }

    /// Runs a closure beside the connection: as [`with_runner`](Self::with_runner).
    pub fn with_spawned<F, Fut>(
        self,
        run: F,
    ) -> Builder<Host, Handler, impl RunWithConnectionTo<Host::Counterpart>, Close, Context>
    where
        F: FnOnce(Context::Connection<Host::Counterpart>) -> Fut + Send,
        Fut: Future<Output = Result<()>> + Send,
    {
        let runner = SpawnedRun::<F, Context> { run, _context: PhantomData };
        Builder {
            host: self.host,
            handler: self.handler,
            runner: ChainRun::new(self.runner, runner),
            close: self.close,
            settings: self.settings,
            _context: PhantomData,
        }
    }

    /// Runs a closure once the peer has closed its side.
    ///
    /// Ordering: after the last message was handled and every waiting request has failed (spec §6.2,
    /// 42), before [`incoming_closed`](crate::ConnectionTo::incoming_closed) returns: waiting for
    /// that here would last for ever. Callbacks run one after the other, in registration order, all
    /// of them (spec §6.2, 43); a panic skips those behind it. The first error, or a panic, ends the
    /// connection.
    ///
    /// Not called when this side ends or drops the connection first; callbacks that run when the
    /// foreground of `connect_with` ends are completed, and their error counts (spec §6.2, 49). There
    /// is no limit of time.
    pub fn on_close<F, Fut>(
        self,
        close: F,
    ) -> Builder<Host, Handler, Runner, impl HandleConnectionClose<Host::Counterpart>, Context>
    where
        F: FnOnce(Context::Connection<Host::Counterpart>) -> Fut + Send,
        Fut: Future<Output = Result<()>> + Send,
    {
        let second = CloseFn::<F, Context> { close, _context: PhantomData };
        Builder {
            host: self.host,
            handler: self.handler,
            runner: self.runner,
            close: ChainClose { first: self.close, second },
            settings: self.settings,
            _context: PhantomData,
        }
    }
}

impl<Host, Handler, Runner, Close, Context> fmt::Debug for Builder<Host, Handler, Runner, Close, Context>
where
    Host: Role,
    Handler: HandleDispatchFrom<Host::Counterpart>,
    Runner: RunWithConnectionTo<Host::Counterpart>,
    Close: HandleConnectionClose<Host::Counterpart>,
    Context: ConnectionContext,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("host", &self.host).field("name", &self.settings.name).finish_non_exhaustive()
    }
}
