//! From handlers and a transport to a running connection.

use std::fmt;
use std::marker::PhantomData;

use greenroom_protocol::handshake::Endpoint;
use greenroom_protocol::{
    Batches, BoxFuture, Channel, ConnectionDriver, JsonRpcNotification, JsonRpcRequest, Result, method,
};
use ractor::ActorCell;

use crate::close::{ChainClose, CloseFn, HandleConnectionClose, NullClose};
use crate::component::ConnectTo;
use crate::connection::{Prepared, Spec, TaskItem};
use crate::connection_handle::Connection;
use crate::connection_to::{ConnectionContext, RawConnectionContext};
use crate::dispatch::{Dispatch, IntoHandled};
use crate::drive::{Driven, Ready};
use crate::handlers::{
    DispatchEntry, HandleDispatchFrom, HandlerPort, Handlers, Host as HandlerHost, NotificationEntry, NullHandler,
    Plans, RequestEntry, gone,
};
use crate::link::Link;
use crate::options::ConnectionOptions;
use crate::responder::Responder;
use crate::role::{HasPeer, Role};
use crate::run::{ChainRun, NullRun, RunWithConnectionTo, SpawnedRun};
use crate::termination::ConnectionTermination;

/// Describes an endpoint with the role `Host`: its name, its handlers, what runs beside it.
///
/// Nothing runs until one of the `connect_…` methods or [`spawn_linked`](Self::spawn_linked). A
/// builder is a component too ([`ConnectTo`]): whatever connects to it runs it.
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
    /// [`HandlerError`](ConnectionTermination::HandlerError); `Ok` does not end it. It is dropped at
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

    /// Connects to `transport` and serves until the peer is done (spec §6.2, 47).
    ///
    /// Accepted requests get time for their answers after the end of the input
    /// ([`ConnectionOptions::drain`]); runners do not hold it up. Resolves when nothing of the
    /// connection is left: no actor, no task, no child process.
    ///
    /// Cancel-safety: dropping the future ends the connection at once. What was not written is lost.
    ///
    /// # Errors
    /// What ended the connection, unless the peer closed its side: that the transport does not open
    /// or breaks, an error of a runner or close callback, an actor that died too often.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled; and with what a runner panics with.
    pub async fn connect_to(self, transport: impl ConnectTo<Host> + 'static) -> Result<()> {
        self.serve(transport.into_link()).await
    }

    async fn serve(self, link: Link) -> Result<()> {
        self.prepare(true).serve(link).await
    }

    /// Connects to `transport`, runs `main` in the foreground and ends the connection when `main`
    /// is done. What was sent by then is still written.
    ///
    /// `main` runs in this future, not in an actor, so it may borrow; so may the handlers. The end
    /// of the input does not end it (spec §6.2, 48). When it is done, nothing new begins: no handler, no
    /// task, no close callback. What still comes in is read and dropped, and requests of the peer
    /// without an answer stay without one (spec §6.2, 49 and 50).
    ///
    /// Cancel-safety: dropping the future ends the connection at once. What was not written is lost.
    ///
    /// # Errors
    /// The error of `main`; what ended the connection before `main` was done; or, when `main` was
    /// done well, the error of a close callback that ran then, or why what was sent could not be
    /// written.
    ///
    /// # Panics
    /// As [`connect_to`](Self::connect_to), and with what `main` panics with.
    pub async fn connect_with<R>(
        self,
        transport: impl ConnectTo<Host> + 'static,
        main: impl AsyncFnOnce(Context::Connection<Host::Counterpart>) -> Result<R>,
    ) -> Result<R> {
        let running = self.prepare(false).open(transport.into_link()).await?;
        let main = main(Context::of(running.connection()));
        match running.drive(main).await? {
            Driven::Foreground(value) => Ok(value),
            Driven::Ended => Err(gone()),
        }
    }

    /// Makes what can be talked to before its link is open. Handlers, runner and close callbacks
    /// stay with whoever drives it.
    pub(crate) fn prepare<'h>(self, auto_finish: bool) -> Ready<'h, Host::Counterpart, Runner, Close>
    where
        Handler: 'h,
    {
        let handlers = self.handler.into_handlers();
        let plans = Plans::new(handlers.interests());
        let (hosted, handle) = HandlerHost::new(handlers, self.close);
        let spec = Spec {
            name: self.settings.name.unwrap_or_else(|| format!("{:?}", self.host)),
            counterpart: self.host.counterpart(),
            handlers: HandlerPort::Hosted(handle),
            guard: guard(self.settings.guard, self.settings.options, &plans),
            parks: Context::PARKS,
            plans,
            options: self.settings.options,
            auto_finish,
        };
        Ready::new(Prepared::new(spec), self.host.counterpart(), hosted, self.runner)
    }

    /// Starts the connection below an actor of the embedding program and returns at once.
    ///
    /// The connection serves until the peer is done or `supervisor` ends, in whatever way. Its own
    /// actors are restarted inside; when it ends, `supervisor` gets one supervision event about it
    /// (`ractor` stops a supervisor that does not override `handle_supervisor_evt`). Handlers live in
    /// an actor and must not borrow; runners run as tasks.
    ///
    /// Cancel-safety: a future that is dropped before the transport is open starts nothing; later it
    /// may leave a connection behind, which `supervisor` owns.
    ///
    /// # Errors
    /// When the transport does not open, or `supervisor` is shutting down.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled.
    pub async fn spawn_linked(
        self,
        transport: impl ConnectTo<Host> + 'static,
        supervisor: ActorCell,
    ) -> Result<Connection<Host::Counterpart>>
    where
        Handler: 'static,
        Runner: 'static,
        Close: 'static,
    {
        let counterpart = self.host.counterpart();
        let handlers: Handlers<'static, Host::Counterpart> = self.handler.into_handlers();
        let plans = Plans::new(handlers.interests());
        let close = self.close;
        let spec = Spec {
            name: self.settings.name.unwrap_or_else(|| format!("{:?}", self.host)),
            counterpart: counterpart.clone(),
            handlers: HandlerPort::Inline {
                handlers,
                close: Some(Box::new(move |connection| Box::pin(close.handle_connection_close(connection)))),
            },
            guard: guard(self.settings.guard, self.settings.options, &plans),
            parks: Context::PARKS,
            plans,
            options: self.settings.options,
            auto_finish: true,
        };
        let started = Prepared::new(spec).open(transport.into_link(), Some(supervisor)).await?;
        let connection = Connection::new(started, counterpart);
        let (shared, runner) = (connection.connection().shared().clone(), self.runner);
        let handle = connection.connection().clone();
        let beside = Box::pin(async move {
            if let Err(error) = runner.run_with_connection_to(handle).await {
                shared.fail(ConnectionTermination::HandlerError(error));
            }
            Ok(())
        });
        let _ = connection.connection().shared().tasks.send(TaskItem::Spawn(beside));
        Ok(connection)
    }
}

/// The guard, now that handlers and options are known.
fn guard(guarded: Option<Guarded>, options: ConnectionOptions, plans: &Plans) -> Option<Endpoint> {
    Some(match guarded? {
        Guarded::V1Client => Endpoint::V1Client,
        Guarded::V1Agent => Endpoint::V1Agent { guarded: plans.has_typed_request(method::INITIALIZE) },
        Guarded::V1Proxy => Endpoint::V1Proxy(options.proxy_versions),
        #[cfg(feature = "unstable_protocol_v2")]
        Guarded::V2Client => Endpoint::V2Client,
        #[cfg(feature = "unstable_protocol_v2")]
        Guarded::V2Agent => Endpoint::V2Agent,
        #[cfg(feature = "unstable_protocol_v2")]
        Guarded::V2Proxy => Endpoint::V2Proxy(options.proxy_versions),
    })
}

impl<Host, Handler, Runner, Close, Context> ConnectTo<Host::Counterpart>
    for Builder<Host, Handler, Runner, Close, Context>
where
    Host: Role,
    Handler: HandleDispatchFrom<Host::Counterpart> + 'static,
    Runner: RunWithConnectionTo<Host::Counterpart> + 'static,
    Close: HandleConnectionClose<Host::Counterpart> + 'static,
    Context: ConnectionContext,
{
    async fn connect_to(self, client: impl ConnectTo<Host>) -> Result<()> {
        self.serve(client.into_link()).await
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        let (ours, theirs) = Channel::duplex();
        (ours, Some(ConnectionDriver::new(self.serve(Link::channel(theirs)))))
    }

    fn into_link(self) -> Link {
        Link::component(|link| self.serve(link))
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
