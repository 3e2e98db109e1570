//! The test agent behind a relay says the same as without one, and clients read it by type.

use greenroom::schema::ProtocolVersion;
use greenroom::schema::v1::{
    ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities, InitializeRequest, NewSessionRequest,
    NoticeCapabilities, PlanCapabilities, PromptRequest, SessionNotification, SessionUpdate, SubagentCapabilities,
    SystemPrompt,
};
use greenroom::{Agent, Client, ConnectTo, ConnectionTo, Error, on_receive_notification};
use greenroom_conductor::{ConductorImpl, ProxiesAndAgent};
use greenroom_testkit::{pass_through, testy};
use tokio::sync::mpsc::unbounded_channel;

/// Everything that the scenario `session_updates` sends.
async fn updates(agent: impl ConnectTo<Client>) -> Vec<SessionUpdate> {
    let (told, mut all) = unbounded_channel();
    Client
        .builder()
        .on_receive_notification(
            async move |update: SessionNotification, _cx: ConnectionTo<Agent>| {
                told.send(update.update).map_err(|_| Error::internal_error())
            },
            on_receive_notification!(),
        )
        .connect_with(agent, async |cx: ConnectionTo<Agent>| {
            let session = ClientSessionCapabilities::new()
                .compaction(CompactionCapabilities::new())
                .notices(NoticeCapabilities::new());
            let capabilities = ClientCapabilities::new()
                .session(session)
                .plan(PlanCapabilities::new())
                .subagents(SubagentCapabilities::new());
            let initialize = InitializeRequest::new(ProtocolVersion::V1).client_capabilities(capabilities);
            cx.send_request(initialize).block_task().await?;
            // An agent that does not advertise system prompts still takes the request.
            let new = NewSessionRequest::new("/").system_prompt(SystemPrompt::new(vec!["Be brief.".into()]));
            let session = cx.send_request(new).block_task().await?.session_id;
            cx.send_request(PromptRequest::new(session, vec!["session_updates".into()])).block_task().await
        })
        .await
        .expect("a turn");
    let mut updates = Vec::new();
    while let Some(update) = all.recv().await {
        updates.push(update);
    }
    updates
}

#[tokio::test]
async fn a_relay_makes_no_difference() {
    let alone = updates(testy()).await;
    let chain = ProxiesAndAgent::new(testy()).proxy(pass_through()).proxy(pass_through());
    let behind = updates(ConductorImpl::new_agent("relay", chain)).await;
    assert_eq!(alone.len(), 21);
    assert_eq!(alone, behind);
    let has = |wanted: fn(&SessionUpdate) -> bool| assert!(alone.iter().any(wanted));
    has(|update| matches!(update, SessionUpdate::PlanRemoved(_)));
    has(|update| matches!(update, SessionUpdate::Notice(_)));
    has(|update| matches!(update, SessionUpdate::CompactionSummaryChunk(_)));
    has(|update| matches!(update, SessionUpdate::SubagentUpdate(_)));
    has(|update| matches!(update, SessionUpdate::ToolCall(call) if call.name.as_deref() == Some("testy_update")));
}
