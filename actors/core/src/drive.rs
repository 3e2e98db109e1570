//! The future that drives a connection for its caller: foreground, handlers, runner.
//!
//! These may borrow from the caller, so they run here and not in an actor. The actors do not
//! depend on it for anything else; when the future is dropped, they are killed.

use std::pin::pin;

use greenroom_protocol::Result;
use ractor::ActorCell;
use tokio::sync::watch;

use crate::close::HandleConnectionClose;
use crate::connection::{DRAIN, End, Prepared, Started};
use crate::connection_handle::closed;
use crate::connection_to::ConnectionTo;
use crate::handlers::Host;
use crate::link::Link;
use crate::role::Role;
use crate::run::RunWithConnectionTo;
use crate::termination::ConnectionTermination;

/// Kills the connection's supervisor, and with it everything below, when it is dropped.
struct KillOnDrop(ActorCell);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// A connection that can be talked to, and whose link is not open yet.
pub(crate) struct Ready<'h, C: Role, Runner, Close> {
    prepared: Prepared<C>,
    counterpart: C,
    hosted: Host<'h, C, Close>,
    runner: Runner,
}

impl<'h, C, Runner, Close> Ready<'h, C, Runner, Close>
where
    C: Role,
    Runner: RunWithConnectionTo<C>,
    Close: HandleConnectionClose<C>,
{
    pub(crate) fn new(prepared: Prepared<C>, counterpart: C, hosted: Host<'h, C, Close>, runner: Runner) -> Self {
        Self { prepared, counterpart, hosted, runner }
    }

    pub(crate) fn connection(&self) -> Option<ConnectionTo<C>> {
        self.prepared.connection()
    }

    /// Opens the link and starts the connection's actors.
    pub(crate) async fn open(self, link: Link) -> Result<Running<'h, C, Runner, Close>> {
        let started = self.prepared.open(link, None).await?;
        Ok(Running::new(started, self.counterpart, self.hosted, self.runner))
    }

    /// Opens the link and serves until the connection ends.
    pub(crate) async fn serve(self, link: Link) -> Result<()> {
        // Boxed, because what it takes to start is not kept while the connection runs.
        Box::pin(self.open(link)).await?.serve().await
    }
}

/// A connection whose handlers and runner wait to be driven.
pub(crate) struct Running<'h, C: Role, Runner, Close> {
    connection: ConnectionTo<C>,
    end: watch::Receiver<End>,
    hosted: Host<'h, C, Close>,
    runner: Runner,
    guard: KillOnDrop,
}

/// How driving ended, when nothing failed.
pub(crate) enum Driven<R> {
    /// The foreground was done, and everything it sent is written.
    Foreground(R),
    /// The connection ended before the foreground did.
    Ended,
}

impl<'h, C, Runner, Close> Running<'h, C, Runner, Close>
where
    C: Role,
    Runner: RunWithConnectionTo<C>,
    Close: HandleConnectionClose<C>,
{
    pub(crate) fn new(started: Started, counterpart: C, hosted: Host<'h, C, Close>, runner: Runner) -> Self {
        Self {
            connection: ConnectionTo::new(started.shared, counterpart),
            end: started.end,
            hosted,
            runner,
            guard: KillOnDrop(started.supervisor),
        }
    }

    pub(crate) fn connection(&self) -> ConnectionTo<C> {
        self.connection.clone()
    }

    /// Serves until the connection ends.
    pub(crate) async fn serve(self) -> Result<()> {
        match self.drive(std::future::pending::<Result<std::convert::Infallible>>()).await? {
            Driven::Ended => Ok(()),
            Driven::Foreground(never) => match never {},
        }
    }

    /// Polls everything until the connection is over and nothing of it is left.
    pub(crate) async fn drive<R>(self, main: impl Future<Output = Result<R>>) -> Result<Driven<R>> {
        let Self { connection, end, hosted, runner, guard } = self;
        let shared = connection.shared().clone();
        let mut main = pin!(main);
        let mut runner = pin!(runner.run_with_connection_to(connection.clone()));
        let mut hosted = pin!(hosted.run(connection));
        let mut over = pin!(closed(&end, &shared.live));
        let (mut runner_done, mut hosted_done) = (false, false);
        let mut foreground: Option<Result<R>> = None;
        // What a close callback that runs already sends leaves before the output is sealed.
        let mut sealing = pin!(async {
            let failed = shared.close_callbacks_done().await;
            shared.servers.settled(DRAIN).await;
            shared.finish();
            failed
        });
        let (mut sealed, mut failed) = (true, None);
        let result = loop {
            tokio::select! {
                // The foreground first: what it sends precedes what handlers send meanwhile.
                biased;
                result = &mut main, if foreground.is_none() => {
                    match &result {
                        Ok(_) => {
                            shared.begin_drain();
                            sealed = false;
                        }
                        Err(error) => shared.fail(ConnectionTermination::ForegroundError(error.clone())),
                    }
                    foreground = Some(result);
                }
                error = &mut sealing, if !sealed => {
                    sealed = true;
                    failed = error;
                }
                result = &mut runner, if !runner_done => {
                    runner_done = true;
                    if let Err(error) = result {
                        shared.fail(ConnectionTermination::HandlerError(error));
                    }
                }
                () = &mut hosted, if !hosted_done => hosted_done = true,
                result = &mut over => break result,
            }
        };
        drop(guard);
        match foreground {
            Some(Err(error)) => Err(error),
            Some(Ok(value)) => failed.map_or(result, Err).map(|()| Driven::Foreground(value)),
            None => result.map(|()| Driven::Ended),
        }
    }
}
