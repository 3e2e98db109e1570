//! The table and its supervisor without a connection around them: who is started again, and who is
//! forgotten.

use std::sync::Weak;

use greenroom_protocol::schema::NewSessionResponse;
use greenroom_protocol::{BoxFuture, Result};
use ractor::{Actor, ActorCell, SpawnErr};
use tokio::sync::Notify;

use super::*;
use crate::connection_to::ConnectionTo;
use crate::handlers::Registry;
use crate::role::acp::Agent;
use crate::runtime::{Outcome, Verdict};
use crate::session::{ActiveSession, SessionsSupervisor};

fn connection() -> Arc<Shared> {
    let handlers: Arc<Registry<Agent>> = Arc::default();
    Shared::new("test".into(), Node::root("test", "connection"), 1, &ConnectionOptions::default(), None, handlers)
}

fn session(connection: &Arc<Shared>, id: &str) -> ActiveSession<'static, Agent> {
    let handle = ConnectionTo::new(connection.clone(), Agent);
    ActiveSession::open(&handle, NewSessionResponse::new(id.to_owned())).expect("the connection lives")
}

async fn supervise(connection: &Arc<Shared>) -> ActorRef<SessionsMessage> {
    let supervisor = SessionsSupervisor { connection: connection.clone() };
    Actor::spawn(None, supervisor, ()).await.expect("it starts").0
}

/// Waits for something that must come.
async fn soon<F: Future>(awaited: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(3600), awaited).await.expect("it comes")
}

/// Lets the actors work until this is true.
async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if condition() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{what}: never");
}

async fn hears(reader: &mut ActiveSession<'static, Agent>, end: &str) {
    let error = soon(reader.read_update()).await.expect_err("the end");
    assert_eq!(error.data, Some(serde_json::json!(end)));
}

const TAKEN_OVER: &str = "this session was opened again on the same connection";

impl SessionTable {
    fn leaving(&self) -> usize {
        self.open.lock().leaving.len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_at_once_tells_readers_of_sessions_that_never_started() {
    let connection = connection();
    let (mut older, mut newer) = (session(&connection, "s"), session(&connection, "s"));
    connection.sessions.kill_all(&Error::internal_error().data("over"), &Handle::current());
    hears(&mut older, TAKEN_OVER).await;
    hears(&mut newer, "over").await;
    assert_eq!(connection.sessions.leaving(), 0);
}

/// Its start takes for ever. In the list of those to start only, so that it is started once.
struct Stuck {
    node: Arc<Node>,
    starting: Arc<Notify>,
}

impl Member for Stuck {
    fn number(&self) -> u64 {
        0
    }

    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn spawn(&self, _supervisor: ActorCell) -> BoxFuture<'static, Result<ActorCell, SpawnErr>> {
        self.starting.notify_one();
        Box::pin(std::future::pending())
    }

    fn death(&self) -> Verdict {
        Verdict::GiveUp
    }

    fn end(&self, _error: Error) {}

    fn fail(&self, _error: Error) {}

    fn wind_up<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The supervisor dies while it starts several: what it had taken out of the table is not lost.
#[tokio::test(start_paused = true)]
async fn a_supervisor_that_dies_while_it_starts_some_forgets_none() {
    let connection = connection();
    let first = session(&connection, "first");
    let supervisor = supervise(&connection).await;
    until("it is started", || connection.sessions.open.lock().fresh.is_empty()).await;
    let node = connection.sessions.node().expect("there is a session").child("stuck", "stuck");
    let stuck = Arc::new(Stuck { node, starting: Arc::default() });
    connection.sessions.open.lock().fresh.push(stuck.clone());
    let (mut older, newer) = (session(&connection, "s"), session(&connection, "s"));
    soon(stuck.starting.notified()).await;
    assert!(connection.sessions.fresh().is_empty(), "the supervisor has taken them all");
    supervisor.kill();
    let next = supervise(&connection).await;
    hears(&mut older, TAKEN_OVER).await;
    drop((first, newer));
    until("all have ended", || connection.sessions.leaving() == 0).await;
    next.stop(None);
}

#[tokio::test(start_paused = true)]
async fn who_has_left_is_forgotten() {
    let connection = connection();
    let supervisor = supervise(&connection).await;
    let all: Vec<_> = (0..100_u32).map(|number| session(&connection, &number.to_string())).collect();
    let known = |number: u32| connection.sessions.find(&number.to_string()).map(|entry| Arc::downgrade(&entry));
    let entries: Vec<Weak<SessionEntry>> = (0..100).filter_map(known).collect();
    assert_eq!(entries.len(), 100);
    drop(all);
    assert_eq!(connection.sessions.leaving(), 100, "none was started yet");
    until("all have ended", || connection.sessions.leaving() == 0).await;
    until("all are dropped", || entries.iter().all(|entry| entry.upgrade().is_none())).await;
    supervisor.stop(None);
}

/// Whose end was told to a supervisor that died is forgotten by the next one.
#[tokio::test(start_paused = true)]
async fn who_has_left_unseen_is_forgotten_too() {
    let connection = connection();
    let gone = session(&connection, "gone");
    let entry = connection.sessions.find("gone").expect("it is open");
    drop(gone);
    entry.node().set_outcome(Outcome::Finished);
    assert_eq!(connection.sessions.leaving(), 1);
    let next = supervise(&connection).await;
    until("it is forgotten", || connection.sessions.leaving() == 0).await;
    next.stop(None);
}

/// One that failed, or ended with the input, has no work left when its reader goes.
#[tokio::test(start_paused = true)]
async fn who_had_ended_before_does_not_stay() {
    let connection = connection();
    let supervisor = supervise(&connection).await;
    let mut ended = session(&connection, "ended");
    connection.sessions.end_all(&Error::internal_error().data("over"));
    hears(&mut ended, "over").await;
    let entry = connection.sessions.find("ended").expect("it is open");
    until("it has ended", || entry.node().outcome().is_some()).await;
    drop(ended);
    assert_eq!(connection.sessions.leaving(), 0);
    supervisor.stop(None);
}
