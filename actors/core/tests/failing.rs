//! What happens to those who wait when a connection, or the code around it, fails.

use std::future::{Ready, pending};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use greenroom_actors::link::Link;
use greenroom_actors::{
    Agent, Client, ConnectTo, Connection, ConnectionDriver, ConnectionTo, Dispatch, Error, ErrorCode, Handled, HasPeer,
    RemoteStyle, Responder, Result, Role, RoleId, UntypedMessage, is_connection_terminated,
    is_incoming_transport_closed, on_receive_request,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::Value;
use tokio::io::{AsyncRead, DuplexStream, ReadBuf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, Value::Null).expect("json")
}

fn link(stream: DuplexStream) -> Link {
    let (reader, writer) = tokio::io::split(stream);
    Link::bytes(reader, writer)
}

/// Long enough for anything that comes at all.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(10), work).await.expect("nothing hangs")
}

/// Three requests wait; the callback of the first panics before it has a future.
async fn panicking_callback(end: impl FnOnce(&ConnectionTo<Agent>, DuplexStream)) -> (Error, Error) {
    let (left, right) = tokio::io::duplex(64);
    let (tell, told) = oneshot::channel();
    let driving = tokio::spawn(Client.builder().connect_with(link(left), async move |cx: ConnectionTo<Agent>| {
        let _ = tell.send(cx);
        pending::<Result<()>>().await
    }));
    let cx = told.await.unwrap();
    let panics = |_: Result<Value>| -> Ready<Result<()>> { panic!("expected by the test") };
    cx.send_request(message("one")).on_receiving_result(panics).unwrap();
    let awaited = cx.send_request(message("two"));
    let (called, mut calls) = mpsc::unbounded_channel();
    cx.send_request(message("three"))
        .on_receiving_result(async move |outcome| {
            called.send(outcome.unwrap_err()).unwrap();
            Ok(())
        })
        .unwrap();
    end(&cx, right);
    let outcomes = soon(async { (awaited.block_task().await.unwrap_err(), calls.recv().await.expect("called")) }).await;
    driving.abort();
    outcomes
}

#[tokio::test]
async fn a_callback_that_panics_at_the_end_of_the_input_harms_only_itself() {
    let (awaited, called) = panicking_callback(|_, peer| drop(peer)).await;
    assert!(is_incoming_transport_closed(&awaited), "{awaited:?}");
    assert!(is_incoming_transport_closed(&called), "{called:?}");
}

#[tokio::test]
async fn callbacks_get_their_outcome_from_a_killed_supervisor() {
    let (awaited, called) = panicking_callback(|cx, peer| {
        // The peer stays: only the supervisor dies.
        std::mem::forget(peer);
        assert!(cx.tree().kill());
    })
    .await;
    assert!(is_connection_terminated(&awaited), "{awaited:?}");
    assert!(is_connection_terminated(&called), "{called:?}");
}

/// A reader that breaks.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _cx: &mut Context<'_>, _buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::Error::other("the cable was cut")))
    }
}

#[tokio::test]
async fn a_broken_transport_is_named_to_its_callers() {
    let broken = Link::bytes(Broken, tokio::io::sink());
    let (told, mut hear) = mpsc::unbounded_channel();
    // The foreground is done whatever the transport did, so the whole may end well.
    let _ = Client
        .builder()
        .connect_with(broken, async move |cx: ConnectionTo<Agent>| {
            told.send(cx.send_request(message("early")).block_task().await.unwrap_err()).unwrap();
            told.send(cx.send_request(message("late")).block_task().await.unwrap_err()).unwrap();
            Ok(())
        })
        .await;
    for error in [soon(hear.recv()).await, soon(hear.recv()).await] {
        let error = error.expect("an outcome");
        assert!(is_connection_terminated(&error), "{error:?}");
        // Its data, which an application may pass on, says what kind of failure it was; its source
        // has the words of the transport.
        assert!(error.to_string().contains("transport read failed"), "{error:?}");
        assert!(!error.to_string().contains("the cable was cut"), "{error:?}");
        assert!(format!("{error:?}").contains("the cable was cut"), "{error:?}");
    }
}

/// Where the embedding actor reports how its connection ended.
struct Tell(oneshot::Sender<Result<()>>);

#[cfg(feature = "cluster")]
impl ractor::Message for Tell {}

/// An actor of an embedding program that waits for a connection below itself.
struct Embedder;

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Embedder {
    type Msg = Tell;
    type State = (Connection<Client>, DuplexStream);
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<Self::Msg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        let (left, right) = tokio::io::duplex(64);
        Ok((Agent.builder().spawn_linked(link(left), me.get_cell()).await?, right))
    }

    async fn handle(
        &self,
        _me: ActorRef<Self::Msg>,
        told: Self::Msg,
        (connection, _peer): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        // The event about the connection's end has to wait until this handler is done.
        connection.actor().kill();
        let _ = told.0.send(connection.closed().await);
        Ok(())
    }
}

#[tokio::test]
async fn a_supervisor_may_wait_for_the_end_of_its_connection() {
    let (actor, done) = Actor::spawn(None, Embedder, ()).await.unwrap();
    let (tell, told) = oneshot::channel();
    actor.cast(Tell(tell)).unwrap();
    let error = soon(told).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("supervisor died"), "{error:?}");
    actor.stop(None);
    done.await.unwrap();
}

#[tokio::test]
async fn a_close_callback_that_panics_ends_the_connection_with_an_error() {
    let (left, right) = tokio::io::duplex(64);
    drop(right);
    let serving = Agent.builder().on_close(async |_cx: ConnectionTo<Client>| panic!("expected by the test"));
    let error = soon(serving.connect_to(link(left))).await.unwrap_err();
    assert!(error.to_string().contains("a close callback panicked"), "{error:?}");
}

#[tokio::test]
async fn a_driver_that_panics_ends_the_connection_with_an_error() {
    let (left, _right) = tokio::io::duplex(64);
    let driver = ConnectionDriver::new(async { panic!("expected by the test") });
    let serving = Agent.builder().connect_to(link(left).with_driver(driver));
    let error = soon(serving).await.unwrap_err();
    assert!(error.to_string().contains("driver panicked"), "{error:?}");
}

/// What a connection says about these lines when it fails while their responders are held, and whether
/// its driver ended by itself. With `blocks`, the handler of the first request never returns.
async fn said_by_a_failing_connection(lines: &str, blocks: bool) -> (String, bool) {
    let (left, mut peer) = tokio::io::duplex(4096);
    let (asked, finished) = oneshot::channel();
    let (ended, end) = oneshot::channel();
    let work = async move {
        finished.await.expect("asked to finish");
        let _ = ended.send(());
        Ok(())
    };
    let driver = ConnectionDriver::with_finish(work, move || {
        let _ = asked.send(());
    });
    let (hold, mut held) = mpsc::unbounded_channel();
    let serving = Agent.builder().on_receive_request(
        async move |_: UntypedMessage, responder: Responder<Value>, _cx: ConnectionTo<Client>| {
            hold.send(responder).expect("a foreground");
            if blocks {
                pending::<()>().await;
            }
            Ok(())
        },
        on_receive_request!(),
    );
    tokio::io::AsyncWriteExt::write_all(&mut peer, lines.as_bytes()).await.unwrap();
    let mut responders = Vec::new();
    soon(serving.connect_with(link(left).with_driver(driver), async |cx: ConnectionTo<Client>| {
        responders.extend(held.recv().await);
        while cx.tree().snapshot().to_string().matches("in-flight=2").count() == 0 {
            tokio::task::yield_now().await;
        }
        if !blocks {
            responders.extend(held.recv().await);
        }
        Err::<(), _>(Error::internal_error().data("expected by the test"))
    }))
    .await
    .unwrap_err();
    let mut said = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut peer, &mut said).await.unwrap();
    (said, end.await.is_ok())
}

/// The ids that were answered in each line.
fn answered(said: &str) -> Vec<Vec<Value>> {
    let ids = |line: &str| {
        assert!(line.contains("connection_terminated"), "{line}");
        match serde_json::from_str(line).expect("JSON") {
            Value::Array(entries) => entries.into_iter().map(|entry| entry["id"].clone()).collect(),
            single => vec![single["id"].clone()],
        }
    };
    said.lines().map(ids).collect()
}

fn request(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"_held"}}"#)
}

#[tokio::test(start_paused = true)]
async fn a_failing_connection_answers_both_of_two_requests_with_one_id() {
    let twice = format!("{0}\n{0}\n", request(1));
    let (said, ended) = said_by_a_failing_connection(&twice, false).await;
    assert_eq!(answered(&said), [[1], [1]]);
    assert!(ended, "the driver ended by itself: no answer was waited for in vain");
}

#[tokio::test(start_paused = true)]
async fn a_failing_connection_answers_a_batch_whatever_became_of_its_entries() {
    let batch = |second| format!("[{},{}]\n", request(1), request(second));
    for (second, blocks) in [(2, false), (2, true), (1, false), (1, true)] {
        let (said, ended) = said_by_a_failing_connection(&batch(second), blocks).await;
        assert_eq!(answered(&said), [[1, second]], "{blocks}");
        assert!(ended, "{blocks}");
    }
}

#[tokio::test]
async fn a_relay_ends_when_one_side_breaks() {
    let (mut ours, theirs) = tokio::io::duplex(64);
    let (left, right) = greenroom_actors::Channel::duplex();
    let relay = tokio::spawn(ConnectTo::<Client>::connect_to(left, link(theirs)));
    // What comes from the bytes finds nobody at the channel.
    drop(right.rx);
    let _still_open = right.tx;
    tokio::io::AsyncWriteExt::write_all(&mut ours, b"{\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n").await.unwrap();
    let result = soon(relay).await.unwrap();
    assert!(result.is_err());
}

/// A handler that has answered and does not return holds up the end of its batch, not the answer.
#[tokio::test(start_paused = true)]
async fn an_answer_in_a_batch_is_not_lost_with_the_handler_that_gave_it() {
    for fails in [true, false] {
        let (left, mut peer) = tokio::io::duplex(4096);
        let (tell, mut told) = mpsc::unbounded_channel();
        let serving = Agent.builder().on_receive_request(
            async move |_: UntypedMessage, responder: Responder<Value>, _cx: ConnectionTo<Client>| {
                responder.respond(Value::from("given"))?;
                tell.send(()).expect("a foreground");
                pending::<Result<()>>().await
            },
            on_receive_request!(),
        );
        let batch = format!("[{}]\n", request(1));
        tokio::io::AsyncWriteExt::write_all(&mut peer, batch.as_bytes()).await.unwrap();
        let served = serving.connect_with(link(left), async |_cx: ConnectionTo<Client>| {
            told.recv().await.expect("an answer");
            if fails { Err(Error::internal_error().data("expected by the test")) } else { Ok(()) }
        });
        assert_eq!(soon(served).await.is_err(), fails);
        let mut said = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut peer, &mut said).await.unwrap();
        assert_eq!(said, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"given\"}]\n", "{fails}");
    }
}

/// A role whose default handler panics, or waits for its own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Selfish;

impl Role for Selfish {
    type Counterpart = Selfish;

    fn counterpart(&self) -> Selfish {
        Selfish
    }

    fn role_id(&self) -> RoleId {
        RoleId::from_singleton(self)
    }

    async fn default_handle_dispatch_from(
        &self,
        message: Dispatch,
        connection: ConnectionTo<Self>,
    ) -> Result<Handled<Dispatch>> {
        match message.method() {
            "panic" => panic!("expected by the test"),
            "wait" => drop(connection.send_request(self::message("back")).block_task().await?),
            _ => {}
        }
        Ok(Handled::No { message, retry: false })
    }
}

impl HasPeer<Selfish> for Selfish {
    fn remote_style(&self, _peer: Selfish) -> RemoteStyle {
        RemoteStyle::Counterpart
    }
}

#[tokio::test]
async fn a_default_handler_may_panic_and_must_not_wait_for_itself() {
    let (left, right) = tokio::io::duplex(1024);
    let serving = tokio::spawn(ConnectTo::<Selfish>::connect_to(Selfish.builder(), link(right)));
    let talk = Selfish.builder().connect_with(link(left), async |cx: ConnectionTo<Selfish>| {
        let error = cx.send_request(message("panic")).block_task().await.unwrap_err();
        assert!(error.to_string().contains("interrupted"), "{error:?}");
        let error = cx.send_request(message("wait")).block_task().await.unwrap_err();
        assert!(error.to_string().contains("would deadlock"), "{error:?}");
        let error = cx.send_request(message("other")).block_task().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::MethodNotFound);
        Ok(())
    });
    soon(talk).await.unwrap();
    soon(serving).await.unwrap().unwrap();
}
