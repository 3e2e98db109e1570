//! From a complete builder to a running connection.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use greenroom_protocol::handshake::Endpoint;
use greenroom_protocol::{Channel, ConnectionDriver, Error, Result, method};
use ractor::ActorCell;

use super::{Builder, Guarded};
use crate::close::HandleConnectionClose;
use crate::component::ConnectTo;
use crate::connection::{Prepared, Spec, TaskItem};
use crate::connection_handle::Connection;
use crate::connection_to::ConnectionContext;
use crate::drive::{Driven, Ready};
use crate::handlers::{HandleDispatchFrom, HandlerPort, Handlers, Host as HandlerHost, Plans, gone};
use crate::link::Link;
use crate::options::ConnectionOptions;
use crate::role::Role;
use crate::run::RunWithConnectionTo;
use crate::termination::ConnectionTermination;

impl<Host, Handler, Runner, Close, Context> Builder<Host, Handler, Runner, Close, Context>
where
    Host: Role,
    Handler: HandleDispatchFrom<Host::Counterpart>,
    Runner: RunWithConnectionTo<Host::Counterpart>,
    Close: HandleConnectionClose<Host::Counterpart>,
    Context: ConnectionContext,
{
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
        // Boxed, because what it takes to start is not kept while the connection runs.
        Box::pin(async move { self.prepare(true).open(link).await }).await?.serve().await
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
        // Boxed, because what it takes to start is not kept while the connection runs.
        let running = Box::pin(self.prepare(false).open(transport.into_link())).await?;
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
            let work = AssertUnwindSafe(runner.run_with_connection_to(handle)).catch_unwind().await;
            // The panic's text may hold a payload: it is not repeated.
            let result = work.unwrap_or_else(|_panic| Err(Error::internal_error().data("a runner panicked")));
            if let Err(error) = result {
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
