//! The recipes of the cookbook that need only the core: connecting as a client, building an agent,
//! reusable components, custom message handlers. (`ordered_dispatch` has the one of that name.)

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::schema::v1::{
    AgentCapabilities, CancelNotification, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse,
    NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification, SessionUpdate,
    StopReason, TextContent, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::schema::{PermissionOption, PermissionOptionKind};
use agent_client_protocol::util::MatchDispatchFrom;
use agent_client_protocol::{
    Agent, Client, Conductor, ConnectTo, ConnectionTo, Dispatch, Error, HandleDispatchFrom, Handled,
    JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, Proxy, Responder, Result, on_receive_dispatch,
    on_receive_notification, on_receive_request,
};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent};
use serde::{Deserialize, Serialize};

/// Building an agent: a component of its own type, with state.
#[derive(Default)]
struct CookbookAgent {
    turns: Arc<Mutex<HashMap<String, u32>>>,
}

impl ConnectTo<Client> for CookbookAgent {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
        let Self { turns } = self;
        let of_session = turns.clone();
        Agent
            .builder()
            .name("cookbook-agent")
            .on_receive_request(
                async |initialize: InitializeRequest, responder, _cx| {
                    responder.respond(
                        InitializeResponse::new(initialize.protocol_version)
                            .agent_capabilities(AgentCapabilities::new()),
                    )
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |_: NewSessionRequest, responder: Responder<NewSessionResponse>, _cx| {
                    let mut turns = of_session.lock().unwrap();
                    let id = format!("session-{}", turns.len() + 1);
                    turns.insert(id.clone(), 0);
                    responder.respond(NewSessionResponse::new(id))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |prompt: PromptRequest, responder: Responder<PromptResponse>, cx: ConnectionTo<Client>| {
                    let turn = {
                        let mut turns = turns.lock().unwrap();
                        let Some(turn) = turns.get_mut(&*prompt.session_id.0) else {
                            return responder.respond_with_error(Error::session_not_found(prompt.session_id));
                        };
                        *turn += 1;
                        *turn
                    };
                    // Asking the client takes time: beside the dispatch loop.
                    let connection = cx.clone();
                    cx.spawn(async move { answer(prompt, turn, responder, connection).await })
                },
                on_receive_request!(),
            )
            .on_receive_notification(async |_: CancelNotification, _cx| Ok(()), on_receive_notification!())
            .connect_to(client)
            .await
    }
}

async fn answer(
    prompt: PromptRequest,
    turn: u32,
    responder: Responder<PromptResponse>,
    cx: ConnectionTo<Client>,
) -> Result<()> {
    let call = ToolCallUpdate::new("call", ToolCallUpdateFields::new());
    let option = PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce);
    let request = RequestPermissionRequest::new(prompt.session_id.clone(), call, vec![option]);
    let permission = cx.send_request(request).block_task().await?;
    let text = match permission.outcome {
        RequestPermissionOutcome::Selected(selected) => format!("turn {turn}: {}", selected.option_id),
        _ => format!("turn {turn}: refused"),
    };
    let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text)));
    cx.send_notification(SessionNotification::new(prompt.session_id, SessionUpdate::AgentMessageChunk(chunk)))?;
    responder.respond(PromptResponse::new(StopReason::EndTurn))
}

/// Connecting as a client: handlers first, then the conversation in the foreground.
async fn converse(agent: impl ConnectTo<Client>) -> Result<Vec<String>> {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = said.clone();
    Client
        .builder()
        .name("cookbook-client")
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                if let SessionUpdate::AgentMessageChunk(chunk) = notification.update
                    && let ContentBlock::Text(content) = chunk.content
                {
                    heard.lock().unwrap().push(content.text);
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async |request: RequestPermissionRequest, responder: Responder<RequestPermissionResponse>, _cx| {
                let first = request.options.into_iter().next().ok_or_else(Error::invalid_params)?;
                let outcome = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(first.option_id));
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            on_receive_request!(),
        )
        .connect_with(agent, async |cx: ConnectionTo<Agent>| {
            cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let session = cx.send_request(NewSessionRequest::new("/")).block_task().await?.session_id;
            for _ in 0..2 {
                let prompt = vec![ContentBlock::Text(TextContent::new("hello"))];
                let answer = cx.send_request(PromptRequest::new(session.clone(), prompt)).block_task().await?;
                assert_eq!(answer.stop_reason, StopReason::EndTurn);
            }
            Ok(())
        })
        .await?;
    Ok(std::mem::take(&mut *said.lock().unwrap()))
}

#[tokio::test]
async fn a_client_and_an_agent() {
    assert_eq!(converse(CookbookAgent::default()).await.expect("a conversation"), ["turn 1: yes", "turn 2: yes"]);
}

/// A reusable component: the same proxy in any chain, twice in this one.
#[derive(Clone)]
struct Shouting;

impl ConnectTo<Conductor> for Shouting {
    async fn connect_to(self, conductor: impl ConnectTo<Proxy>) -> Result<()> {
        Proxy
            .builder()
            .name("shouting")
            .on_receive_notification_from(
                Agent,
                async |mut notification: SessionNotification, cx: ConnectionTo<Conductor>| {
                    if let SessionUpdate::AgentMessageChunk(chunk) = &mut notification.update
                        && let ContentBlock::Text(content) = &mut chunk.content
                    {
                        content.text.push('!');
                    }
                    cx.send_notification_to(Client, notification)
                },
                on_receive_notification!(),
            )
            .connect_to(conductor)
            .await
    }
}

#[tokio::test]
async fn reusable_components() {
    let chain = ProxiesAndAgent::new(CookbookAgent::default()).proxies([Shouting, Shouting]);
    let said = converse(ConductorImpl::new_agent("chain", chain)).await.expect("a conversation");
    assert_eq!(said, ["turn 1: yes!!", "turn 2: yes!!"]);
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_cookbook/count", response = Count)]
struct CountWords {
    text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonRpcResponse)]
struct Count {
    words: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_cookbook/reset")]
struct Reset {}

/// A custom message handler: state of its own, several types, and the rest is left to others.
#[derive(Default)]
struct WordCounter {
    words: usize,
}

impl HandleDispatchFrom<Client> for WordCounter {
    async fn handle_dispatch_from(&mut self, message: Dispatch, cx: ConnectionTo<Client>) -> Result<Handled<Dispatch>> {
        let words = std::sync::atomic::AtomicUsize::new(self.words);
        let handled = MatchDispatchFrom::new(message, &cx)
            .if_request(async |count: CountWords, responder: Responder<Count>| {
                words.fetch_add(count.text.split_whitespace().count(), Relaxed);
                responder.respond(Count { words: words.load(Relaxed) })
            })
            .await
            .if_notification(async |_: Reset| {
                words.store(0, Relaxed);
                Ok(())
            })
            .await
            .done();
        self.words = words.into_inner();
        handled
    }

    fn describe_chain(&self) -> impl std::fmt::Debug {
        "word counter"
    }
}

#[tokio::test]
async fn custom_message_handlers() {
    let agent = Agent.builder().with_handler(WordCounter::default()).on_receive_dispatch(
        async |message: Dispatch, _cx| match message {
            Dispatch::Request(request, responder) => {
                responder.respond_with_error(Error::method_not_found().data(request.method))
            }
            Dispatch::Notification(_) => Ok(()),
            Dispatch::Response(result, router) => router.route_with_result(result),
        },
        on_receive_dispatch!(),
    );
    Client
        .connect_with(agent, async |cx| {
            let count = async |text: &str| cx.send_request(CountWords { text: text.to_owned() }).block_task().await;
            assert_eq!(count("one two").await?, Count { words: 2 });
            assert_eq!(count("three").await?, Count { words: 3 });
            cx.send_notification(Reset {})?;
            assert_eq!(count("one").await?, Count { words: 1 });
            let error = cx.send_request(NewSessionRequest::new("/")).block_task().await.expect_err("refused");
            assert_eq!(error.data, Some("session/new".into()));
            Ok(())
        })
        .await
        .expect("a conversation");
}
