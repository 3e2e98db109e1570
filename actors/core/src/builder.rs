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
/// Nothing runs until one of the `connect_…` methods or [`spawn_linked`](Self::spawn_linked).
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
    /// An endpoint without handlers.
    pub fn new(host: Host) -> Self {
        Self::new_with(host, NullHandler)
    }
}

impl<Host: Role, Handler: HandleDispatchFrom<Host::Counterpart>> Builder<Host, Handler> {
    /// An endpoint with one handler for everything.
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
    /// Names the endpoint in logs.
    #[must_use]
    pub fn name(mut self, name: impl ToString) -> Self {
        self.settings.name = Some(name.to_string());
        self
    }

    /// Sets limits and policies.
    #[must_use]
    pub fn options(mut self, options: ConnectionOptions) -> Self {
        self.settings.options = options;
        self
    }

    /// Ends the connection when a spawned task or an ordered response callback returns an error or
    /// panics, as the documented SDK does. By default only the requests that it had taken over are
    /// affected.
    #[must_use]
    pub fn end_on_failure(mut self) -> Self {
        self.settings.options.end_on_failure = true;
        self
    }

    /// Whether JSON arrays are taken apart (the default) or refused with one `-32600`.
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

    /// Handles requests of one type from the peer.
    ///
    /// `handler` runs one message at a time, in wire order; it must not wait for a response of
    /// its own connection (that fails at once: see
    /// [`SentRequest::block_task`](crate::SentRequest::block_task)). Pass
    /// `on_receive_request!()` as `to_future`.
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

    /// Handles requests of one type from a logical peer.
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

    /// Handles notifications of one type from the peer. Pass `on_receive_notification!()` as
    /// `to_future`.
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

    /// Handles notifications of one type from a logical peer.
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

    /// Handles requests, the responses to such requests, and notifications from the peer. Pass
    /// `on_receive_dispatch!()` as `to_future`.
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

    /// Handles requests, the responses to such requests, and notifications from a logical peer.
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

    /// Adds a handler that looks at every message.
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

    /// Adds everything of another builder behind what is here; its name and options are not taken.
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

    /// Runs something beside the connection. Its error ends the connection.
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

    /// Runs a closure beside the connection. Its error ends the connection.
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

    /// Runs a closure once the peer has closed its side. Callbacks run in registration order, all
    /// of them; an error ends the connection.
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

    /// Connects to `transport` and serves until the peer is done.
    ///
    /// Accepted requests get time for their answers after the end of the input
    /// ([`ConnectionOptions::drain`]). Dropping the future ends the connection at once.
    ///
    /// # Errors
    /// What ended the connection, unless the peer closed its side.
    pub async fn connect_to(self, transport: impl ConnectTo<Host> + 'static) -> Result<()> {
        self.serve(transport.into_link()).await
    }

    async fn serve(self, link: Link) -> Result<()> {
        self.prepare(true).serve(link).await
    }

    /// Connects to `transport`, runs `main` in the foreground and ends the connection when `main`
    /// is done. What was sent by then is still written.
    ///
    /// `main` runs in this future, not in an actor, so it may borrow; so may the handlers.
    /// Dropping the future ends the connection at once.
    ///
    /// # Errors
    /// The error of `main`, or what ended the connection before.
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
    /// The connection serves until the peer is done or `supervisor` ends. Its own actors are
    /// restarted inside; when it ends, `supervisor` gets one supervision event about it.
    ///
    /// # Errors
    /// When the transport does not open, or `supervisor` is shutting down.
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
