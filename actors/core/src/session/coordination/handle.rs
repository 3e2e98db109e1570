//! What an application holds: the only owners of a coordination.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use greenroom_protocol::schema::v2::{ResumeSessionResponse, SessionId, SessionUpdate};
use greenroom_protocol::{Error, Result, method};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::actor::Command;
use super::log::SessionLog;
use super::policy::Load;
use crate::request::would_deadlock;
use crate::role::HasPeer;
use crate::role::acp::Agent;
use crate::runtime::{Mailbox, Scope};
use crate::session::v2::V2Session;
use crate::v2::V2ConnectionTo;

/// The way to the actor. Commands have a queue of their own, because they go first; `wake` tells the
/// actor that there is something in it.
pub(super) struct Commands {
    pub(super) queue: Mailbox<Command>,
    pub(super) wake: Box<dyn Fn() + Send + Sync>,
}

impl Commands {
    /// A coordination that is over drops the command, which fails a load.
    fn send(&self, command: Command) {
        if self.queue.send(command).is_ok() {
            (self.wake)();
        }
    }
}

/// How a coordination ended.
pub(super) struct End {
    error: Mutex<Option<Error>>,
    over: watch::Sender<bool>,
}

impl End {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { error: Mutex::new(None), over: watch::Sender::new(false) })
    }

    /// Records why nothing can be loaded any more. The first reason stays.
    pub(super) fn set(&self, error: Error) {
        self.error.lock().get_or_insert(error);
    }

    /// Nothing happens any more.
    pub(super) fn tell(&self) {
        self.over.send_replace(true);
    }

    /// The reason, if there is none yet: that the application let go.
    pub(super) fn error(&self) -> Error {
        let nobody = || Error::internal_error().data("the coordination of sessions has ended");
        self.error.lock().clone().unwrap_or_else(nobody)
    }

    /// Waits until nothing happens any more. Cancel-safe.
    pub(super) async fn over(self: Arc<Self>) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}

/// What all owners have in common. The last one that goes ends the coordination.
pub(super) struct Owner {
    pub(super) commands: Commands,
    pub(super) end: Arc<End>,
    /// The connection: its handlers must not wait for it.
    pub(super) connection: u64,
    next: AtomicU64,
}

impl Owner {
    pub(super) fn new(commands: Commands, end: Arc<End>, connection: u64) -> Arc<Self> {
        Arc::new(Self { commands, end, connection, next: AtomicU64::new(1) })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.commands.send(Command::LetGo);
    }
}

/// Loads sessions of one connection, and shares them between everybody who loads the same one. See
/// [the module](super) for the rules. Cheap to clone.
///
/// This handle, pending loads and delivered sessions are the owners of the coordination. When the last
/// of them is dropped it ends: what was released before is still sent (the request that closes the last
/// session, say), and no answer is waited for. Keep an owner for as long as sessions shall be cleaned
/// up.
#[derive(Clone)]
pub struct SharedSessions {
    pub(super) owner: Arc<Owner>,
}

impl SharedSessions {
    /// Loads a session. When this returns, the load counts; the returned future gives the session.
    ///
    /// Several loads of one session share one resume and one log. Order: commands of one program are
    /// worked off in the order in which they were given, before anything that the agent says later.
    pub fn load(&self, session_id: impl Into<SessionId>) -> SessionLoad {
        let session = session_id.into();
        let load = self.owner.next.fetch_add(1, Ordering::Relaxed);
        let (give, answer) = oneshot::channel();
        let lease = Lease { session: session.clone(), load, owner: self.owner.clone() };
        self.owner.commands.send(Command::Load(session, load, give));
        SessionLoad { lease: Some(lease), answer }
    }

    /// Waits until the coordination is over. Owns nothing, so waiting does not keep it. Cancel-safe.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.owner.end.clone().over()
    }
}

impl fmt::Debug for SharedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSessions").field("connection", &self.owner.connection).finish_non_exhaustive()
    }
}

/// The right to use one session. Gives it back when dropped.
struct Lease {
    session: SessionId,
    load: Load,
    owner: Arc<Owner>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.owner.commands.send(Command::Release(self.session.clone(), self.load));
    }
}

/// What a load gets.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) log: SessionLog,
    pub(super) response: Arc<ResumeSessionResponse>,
}

/// A session that is being loaded; a future of [`SharedSession`].
///
/// Dropping it gives the load up, also when its session is there already and was never taken.
///
/// # Errors
/// The agent's refusal, of the resume or of the close before it; or why the answer cannot come. Inside
/// a handler of the same connection it fails at once, because the answer would wait behind the handler.
#[must_use = "dropping it gives the load up"]
pub struct SessionLoad {
    lease: Option<Lease>,
    answer: oneshot::Receiver<Result<Delivered>>,
}

impl SessionLoad {
    /// The id of the session; `None` once it was handed over.
    #[must_use]
    pub fn session_id(&self) -> Option<&SessionId> {
        self.lease.as_ref().map(|lease| &lease.session)
    }
}

impl Future for SessionLoad {
    type Output = Result<SharedSession>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<SharedSession>> {
        let Some(lease) = &self.lease else {
            return Poll::Ready(Err(Error::internal_error().data("this load has given its session already")));
        };
        let (connection, end) = (lease.owner.connection, lease.owner.end.clone());
        let outcome = match Pin::new(&mut self.answer).poll(cx) {
            Poll::Pending if Scope::is_inside(connection) => Err(would_deadlock(method::SESSION_RESUME)),
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(outcome)) => outcome,
            // The coordination is over and dropped the other end.
            Poll::Ready(Err(_)) => Err(end.error()),
        };
        let lease = self.lease.take();
        Poll::Ready(outcome.and_then(|delivered| {
            let lease = lease.ok_or_else(|| end.error())?;
            Ok(SharedSession { lease, delivered, read: 0 })
        }))
    }
}

impl fmt::Debug for SessionLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLoad").field("session_id", &self.session_id()).finish_non_exhaustive()
    }
}

/// A session that is shared with everybody else who loaded it. Dropping it gives it back; with the
/// last one, the session is closed.
pub struct SharedSession {
    lease: Lease,
    delivered: Delivered,
    read: usize,
}

impl SharedSession {
    /// The id of the session.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        &self.lease.session
    }

    /// The agent's complete answer to the resume.
    #[must_use]
    pub fn response(&self) -> &ResumeSessionResponse {
        &self.delivered.response
    }

    /// Everything that the agent said in this session, shared with everybody else who loaded it.
    #[must_use]
    pub fn log(&self) -> &SessionLog {
        &self.delivered.log
    }

    /// The next update that this holder has not read: first what was replayed, then what comes.
    /// Cancel-safe: dropping the future loses nothing.
    ///
    /// # Errors
    /// Why nothing more comes, as [`SessionLog::wait_for`]. Inside a handler of the same connection it
    /// fails at once when there is nothing to read yet, because nothing could come.
    pub async fn next_update(&mut self) -> Result<SessionUpdate> {
        let connection = self.lease.owner.connection;
        let mut next = pin!(self.delivered.log.wait_for(self.read));
        let update = poll_fn(|cx| match next.as_mut().poll(cx) {
            Poll::Pending if Scope::is_inside(connection) => {
                Poll::Ready(Err(would_deadlock("the next update of a session")))
            }
            other => other,
        })
        .await?;
        self.read += 1;
        Ok(update)
    }

    /// Sends commands of this session, for example prompts. Do not close it with this: that is decided
    /// by who still uses the session.
    #[must_use]
    pub fn commands<Link: HasPeer<Agent>>(&self, connection: &V2ConnectionTo<Link>) -> V2Session<Link> {
        V2Session::new(self.lease.session.clone(), connection.clone())
    }
}

impl fmt::Debug for SharedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSession").field("session_id", self.session_id()).finish_non_exhaustive()
    }
}
