//! "Migrating from 1.x to 2.0".

use std::sync::{Arc, Mutex};

use agent_client_protocol::{
    Agent, Channel, Client, ConnectionTo, DynConnectTo, DynamicHandlerGuard, HandleDispatchFrom, Handled, NullHandler,
    RawJsonRpcMessage, Responder, SentRequest, TransportBatch, TransportBatchEntry, TransportFrame, UntypedMessage,
    on_receive_dispatch, on_receive_request,
};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, json!({})).expect("params")
}

/// A catch-all handler that treats the three variants differently.
mod notifications_cannot_receive_error_responses {
    use agent_client_protocol::{Dispatch, Error};

    pub(super) fn handle(message: Dispatch) -> Result<(), Error> {
        match message {
            Dispatch::Request(_, responder) => responder.respond_with_error(Error::method_not_found()),
            Dispatch::Notification(_) => Ok(()),
            Dispatch::Response(result, router) => router.route_with_result(result),
        }
    }
}

#[tokio::test]
async fn a_catch_all_matches_the_dispatch() {
    use notifications_cannot_receive_error_responses::handle;

    let agent = Agent.builder().on_receive_dispatch(
        async |message: agent_client_protocol::Dispatch, _cx| handle(message),
        on_receive_dispatch!(),
    );
    let error = Client
        .builder()
        .on_receive_dispatch(
            async |message: agent_client_protocol::Dispatch, _cx| handle(message),
            on_receive_dispatch!(),
        )
        .connect_with(agent, async |cx| {
            cx.send_notification(message("tell"))?;
            Ok(cx.send_request(message("ask")).block_task().await)
        })
        .await
        .expect("a connection")
        .expect_err("refused");
    assert_eq!(error.code, agent_client_protocol::ErrorCode::MethodNotFound);
}

#[tokio::test]
async fn type_notification_needs_no_role_and_no_connection() {
    use agent_client_protocol::schema::CancelNotification;
    use agent_client_protocol::util::TypeNotification;

    let seen = Mutex::new(Vec::new());
    for message in
        [UntypedMessage::new("session/cancel", CancelNotification::new("s")).expect("params"), message("other")]
    {
        TypeNotification::new(message)
            .handle_if(async |cancel: CancelNotification| {
                seen.lock().unwrap().push(cancel.session_id.to_string());
                Ok(())
            })
            .await
            .otherwise(async |message: UntypedMessage| {
                seen.lock().unwrap().push(message.method);
                Ok(())
            })
            .await
            .expect("handled");
    }
    assert_eq!(*seen.lock().unwrap(), ["s", "other"]);
}

mod raw_channels_carry_frames {
    use agent_client_protocol::{Channel, RawJsonRpcMessage, TransportFrame};

    pub(super) fn send(channel: &Channel, message: RawJsonRpcMessage) {
        channel.tx.unbounded_send(TransportFrame::Single(message)).unwrap();
    }
}

#[tokio::test]
async fn frames_pass_a_channel_whole() {
    let (left, mut right) = Channel::duplex();
    raw_channels_carry_frames::send(
        &left,
        RawJsonRpcMessage::notification("tell".into(), Value::Null).expect("params"),
    );
    let text = r#"[{"jsonrpc":"2.0","method":"a"},{"odd":true}]"#;
    left.tx.unbounded_send(TransportFrame::parse_json(text)).expect("open");
    left.tx.unbounded_send(TransportFrame::parse_json("{ not json ")).expect("open");
    drop(left);
    assert!(matches!(right.rx.next().await, Some(TransportFrame::Single(RawJsonRpcMessage::Notification(_)))));
    let Some(TransportFrame::Batch(batch)) = right.rx.next().await else { panic!("a batch") };
    let copy: TransportBatch = batch.clone();
    let entries: Vec<TransportBatchEntry> = copy.into_entries().collect();
    assert!(matches!(entries[..], [TransportBatchEntry::Message(_), TransportBatchEntry::Malformed { .. }]));
    assert_eq!(TransportFrame::Batch(batch).to_json().expect("text"), text);
    let Some(TransportFrame::Malformed { raw, .. }) = right.rx.next().await else { panic!("malformed") };
    assert_eq!(raw, "{ not json ", "the exact source text");
    assert!(right.rx.next().await.is_none());
}

/// If a catch-all response handler fails, its error is what the awaiter gets.
#[tokio::test]
async fn the_error_of_an_interceptor_reaches_the_awaiter() {
    use agent_client_protocol::{Dispatch, Error};

    let agent = Agent.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("answer")),
        on_receive_request!(),
    );
    let error = Client
        .builder()
        .on_receive_dispatch(
            async |message: Dispatch, _cx| match message {
                Dispatch::Response(Ok(_), _router) => Err(Error::internal_error().data("intercepted")),
                message => Ok(Handled::No { message, retry: false }),
            },
            on_receive_dispatch!(),
        )
        .connect_with(agent, async |cx| Ok(cx.send_request(message("ask")).block_task().await))
        .await
        .expect("a connection")
        .expect_err("intercepted");
    assert_eq!(error.data, Some(json!("intercepted")));
}

#[tokio::test]
async fn request_ids_remain_typed() {
    use agent_client_protocol::schema::RequestId;

    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    let agent = Agent.builder().on_receive_dispatch(
        async move |dispatch: agent_client_protocol::Dispatch, _cx| {
            let dispatch_id_json = dispatch.id().map(serde_json::to_value).transpose()?;
            *kept.lock().unwrap() = dispatch_id_json;
            match dispatch {
                agent_client_protocol::Dispatch::Request(_, responder) => {
                    let id: RequestId = responder.id().clone();
                    responder.respond(serde_json::to_value(id)?)
                }
                _ => Ok(()),
            }
        },
        on_receive_dispatch!(),
    );
    let (id_json, answer) = Client
        .connect_with(agent, async |cx| {
            let sent_request: SentRequest<Value> = cx.send_request(message("ask"));
            let id = sent_request.id().clone();
            let id_json = serde_json::to_value(sent_request.id())?;
            assert_eq!(serde_json::to_value(id)?, id_json);
            Ok((id_json, sent_request.block_task().await?))
        })
        .await
        .expect("an answer");
    assert_eq!(answer, id_json);
    assert_eq!(*seen.lock().unwrap(), Some(id_json));
}

/// What a dynamic handler answers.
struct Answers(&'static str);

impl HandleDispatchFrom<Client> for Answers {
    async fn handle_dispatch_from(
        &mut self,
        message: agent_client_protocol::Dispatch,
        _connection: ConnectionTo<Client>,
    ) -> agent_client_protocol::Result<Handled<agent_client_protocol::Dispatch>> {
        match message {
            agent_client_protocol::Dispatch::Request(_, responder) => {
                responder.respond(json!(self.0))?;
                Ok(Handled::Yes)
            }
            message => Ok(Handled::No { message, retry: false }),
        }
    }

    fn describe_chain(&self) -> impl std::fmt::Debug {
        self.0
    }
}

/// The single owner of a registration.
struct Registration {
    _guard: DynamicHandlerGuard<Client>,
}

#[tokio::test]
async fn dynamic_handlers_use_a_guard() {
    let owner: Arc<Mutex<Option<Registration>>> = Arc::default();
    let agent = Agent.builder().on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            match request.method.as_str() {
                "register" => {
                    let guard = cx.add_dynamic_handler(Answers("guarded"))?;
                    *owner.lock().unwrap() = Some(Registration { _guard: guard });
                }
                "unregister" => *owner.lock().unwrap() = None,
                "register for good" => cx.add_dynamic_handler(Answers("detached"))?.detach(),
                _ => return Ok(Handled::No { message: (request, responder), retry: false }),
            }
            responder.respond(json!("done"))?;
            Ok(Handled::Yes)
        },
        on_receive_request!(),
    );
    Client
        .connect_with(agent, async |cx| {
            let ask = async |method: &str| cx.send_request(message(method)).block_task().await;
            ask("something").await.expect_err("nobody handles it");
            ask("register").await?;
            assert_eq!(ask("something").await?, "guarded");
            ask("unregister").await?;
            ask("something").await.expect_err("nobody handles it any more");
            ask("register for good").await?;
            assert_eq!(ask("something").await?, "detached");
            Ok(())
        })
        .await
        .expect("a conversation");
}

#[allow(clippy::default_constructed_unit_structs, clippy::redundant_closure, reason = "as the documentation writes it")]
#[tokio::test]
async fn the_narrower_surface_of_low_level_helpers() {
    let _: (NullHandler, NullHandler) = (NullHandler, NullHandler::default());
    let named = DynConnectTo::<Client>::new(Channel::duplex().0);
    let name: &'static str = named.type_name();
    assert!(name.to_owned().contains("Channel"));
    // In place of `util::both`.
    let (a, b) = (async { Ok::<(), agent_client_protocol::Error>(()) }, async { Ok(()) });
    futures::future::try_join(a, b).await.map(|((), ())| ()).expect("both");
    // In place of `util::process_stream_concurrently`.
    let sum = Mutex::new(0);
    let process_fn = async |item: i32| {
        *sum.lock().unwrap() += item;
        Ok(())
    };
    let stream = futures::stream::iter([1, 2, 3]);
    stream
        .map(Ok::<_, agent_client_protocol::Error>)
        .try_for_each_concurrent(None, |item| process_fn(item))
        .await
        .expect("all of them");
    assert_eq!(*sum.lock().unwrap(), 6);
}
