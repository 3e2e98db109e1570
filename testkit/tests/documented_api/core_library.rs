//! "Core Library Design".

use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::schema::v1::{InitializeRequest, InitializeResponse, NewSessionRequest, NewSessionResponse};
use agent_client_protocol::{
    Agent, Channel, Client, Conductor, ConnectTo, ConnectionTo, Error, Handled, HasPeer, Proxy, Responder, Result,
    Role, UntypedMessage, is_incoming_transport_closed, on_receive_notification, on_receive_request,
};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, json!({})).expect("params")
}

/// `impl ConnectTo<Client> for MyAgent` means that `MyAgent` plays the agent.
struct MyAgent;

impl ConnectTo<Client> for MyAgent {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
        Agent
            .builder()
            .on_receive_request(
                async |initialize: InitializeRequest, responder: Responder<InitializeResponse>, _cx| {
                    responder.respond(InitializeResponse::new(initialize.protocol_version))
                },
                on_receive_request!(),
            )
            .connect_to(client)
            .await
    }
}

#[tokio::test]
async fn a_role_connects_to_its_counterpart() {
    fn counterparts<A: Role<Counterpart = B>, B: Role<Counterpart = A>>(_: A, _: B) {}
    fn peers<P: HasPeer<Client> + HasPeer<Agent>>(_: P) {}
    counterparts(Client, Agent);
    counterparts(Proxy, Conductor);
    peers(Conductor);
    let version = Client
        .connect_with(MyAgent, async |cx| {
            let initialize = InitializeRequest::new(ProtocolVersion::V1);
            Ok(cx.send_request(initialize).block_task().await?.protocol_version)
        })
        .await
        .expect("an answer");
    assert_eq!(version, ProtocolVersion::V1);
}

/// Handlers are tried in the order of their registration, and the first that matches wins.
#[tokio::test]
async fn the_handler_chain() {
    let agent = Agent
        .builder()
        .on_receive_request(
            async |_: InitializeRequest, responder: Responder<InitializeResponse>, _cx| {
                responder.respond(InitializeResponse::new(ProtocolVersion::V1))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: NewSessionRequest, responder: Responder<NewSessionResponse>, _cx| {
                if request.cwd == std::path::Path::new("/later") {
                    return Ok(Handled::No { message: (request, responder), retry: false });
                }
                responder.respond(NewSessionResponse::new("first"))?;
                Ok(Handled::Yes)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |_: NewSessionRequest, responder: Responder<NewSessionResponse>, _cx| {
                responder.respond(NewSessionResponse::new("second"))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!(request.method)),
            on_receive_request!(),
        );
    Client
        .connect_with(agent, async |cx| {
            cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let session = async |cwd: &str| {
                let answer = cx.send_request(NewSessionRequest::new(cwd)).block_task().await?;
                Ok::<_, Error>(answer.session_id.to_string())
            };
            assert_eq!(session("/now").await?, "first");
            assert_eq!(session("/later").await?, "second");
            assert_eq!(cx.send_request(message("else")).block_task().await?, "else");
            Ok(())
        })
        .await
        .expect("a conversation");
}

/// Messages are processed one at a time; spawned tasks run beside them.
#[tokio::test]
async fn ordering_guarantees() {
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = events.clone();
    let agent = Agent.builder().on_receive_notification(
        async move |notification: UntypedMessage, cx: ConnectionTo<Client>| {
            log.lock().unwrap().push(format!("{} begins", notification.method));
            if notification.method == "spawns" {
                let log = log.clone();
                cx.spawn(async move {
                    tokio::task::yield_now().await;
                    log.lock().unwrap().push("task".into());
                    Ok(())
                })?;
            }
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
            log.lock().unwrap().push(format!("{} ends", notification.method));
            Ok(())
        },
        on_receive_notification!(),
    );
    let agent = agent.on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(Value::Null),
        on_receive_request!(),
    );
    Client
        .connect_with(agent, async |cx| {
            for method in ["spawns", "second", "third"] {
                cx.send_notification(message(method))?;
            }
            cx.send_request(message("barrier")).block_task().await
        })
        .await
        .expect("a conversation");
    let events = events.lock().unwrap();
    let of_handlers: Vec<&str> = events.iter().map(String::as_str).filter(|event| *event != "task").collect();
    assert_eq!(
        of_handlers,
        ["spawns begins", "spawns ends", "second begins", "second ends", "third begins", "third ends"]
    );
    assert!(events.contains(&"task".to_owned()));
}

/// Reactive mode ends with the input, also when there is long-running work beside it.
#[tokio::test]
async fn reactive_mode_drains_and_returns() {
    let (mut peer, link) = pair(4096);
    let agent = Agent
        .builder()
        .on_receive_request(
            async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("answered")),
            on_receive_request!(),
        )
        .with_spawned(|_cx| std::future::pending());
    let serving = tokio::spawn(agent.connect_to(link));
    peer.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ask\"}\n").await;
    peer.close().await;
    peer.expect(json!({ "jsonrpc": "2.0", "id": 1, "result": "answered" })).await;
    peer.expect_end().await;
    serving.await.expect("no panic").expect("a clean end");
}

/// Active mode: the end of the input fails what needs an answer, and leaves the rest alone.
#[tokio::test]
async fn clean_incoming_eof() {
    let (mut peer, link) = pair(4096);
    let events: Arc<Mutex<Vec<&str>>> = Arc::default();
    let (first, second) = (events.clone(), events.clone());
    let client = Client
        .builder()
        .on_close(async move |cx: ConnectionTo<Agent>| {
            assert!(!cx.is_incoming_closed(), "the signal is published after the callbacks");
            first.lock().unwrap().push("first callback");
            Ok(())
        })
        .on_close(async move |_cx| {
            second.lock().unwrap().push("second callback");
            Ok(())
        });
    let talking = tokio::spawn(client.connect_with(link, async move |cx: ConnectionTo<Agent>| {
        let pending = cx.send_request(message("pending")).block_task().await.expect_err("no answer will come");
        cx.incoming_closed().await;
        assert!(cx.is_incoming_closed());
        let late = cx.send_request(message("late")).block_task().await.expect_err("nor for this one");
        // Unrelated work goes on.
        tokio::task::yield_now().await;
        Ok([pending, late])
    }));
    assert_eq!(peer.receive().await["method"], "pending");
    peer.close().await;
    let errors = talking.await.expect("no panic").expect("the foreground's result");
    for (error, method) in errors.iter().zip(["pending", "late"]) {
        assert!(is_incoming_transport_closed(error), "{error:?}");
        let data = error.data.as_ref().expect("data");
        assert_eq!((&data["reason"], &data["method"]), (&json!("incoming_transport_closed"), &json!(method)));
    }
    assert_eq!(*events.lock().unwrap(), ["first callback", "second callback"]);
}

/// A close callback that fails ends a foreground that still runs.
#[tokio::test]
async fn an_error_of_a_close_callback_ends_the_foreground() {
    let (mut peer, link) = pair(4096);
    let client = Client.builder().on_close(async |_cx| Err(Error::internal_error().data("cleanup failed")));
    let talking = tokio::spawn(
        client.connect_with(link, async |_cx: ConnectionTo<Agent>| std::future::pending::<Result<()>>().await),
    );
    peer.close().await;
    let error = talking.await.expect("no panic").expect_err("the callback's error");
    assert_eq!(error.data, Some(json!("cleanup failed")));
}

/// Components of one process need no transport at all.
#[tokio::test]
async fn a_channel_between_two_builders() {
    let (ours, theirs) = Channel::duplex();
    let serving = tokio::spawn(MyAgent.connect_to(theirs));
    let talking = Client
        .connect_with(ours, async |cx| cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await);
    assert_eq!(talking.await.expect("an answer").protocol_version, ProtocolVersion::V1);
    serving.await.expect("no panic").expect("a clean end");
}
