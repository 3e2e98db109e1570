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

#[cfg(feature = "unstable_protocol_v2")]
mod version_2 {
    use greenroom::V2ConnectionTo;
    use greenroom::schema::v2::{
        AbsolutePath, Implementation, InitializeRequest, ReplayFrom, ReplayFromStart, ResumeSessionRequest,
        SessionUpdate, StateUpdate, UpdateSessionNotification,
    };

    use super::*;

    /// What a prompt and a resume with replay send.
    async fn updates(agent: impl ConnectTo<Client>) -> Vec<SessionUpdate> {
        let (told, mut all) = unbounded_channel();
        Client
            .v2()
            .on_receive_notification(
                async move |update: UpdateSessionNotification, _cx: V2ConnectionTo<Agent>| {
                    told.send(update.update).map_err(|_| Error::internal_error())
                },
                on_receive_notification!(),
            )
            .connect_with(agent, async move |cx: V2ConnectionTo<Agent>| {
                let initialize = InitializeRequest::new(ProtocolVersion::V2, Implementation::new("client", "1"));
                cx.send_request(initialize).block_task().await?;
                let session = cx.build_session("/").start_session().block_task().await?.into_session();
                session.send_prompt("echo Hello").block_task().await?;
                let mut updates = Vec::new();
                while !matches!(updates.last(), Some(SessionUpdate::StateUpdate(StateUpdate::Idle(_)))) {
                    updates.extend(all.recv().await);
                }
                let root = AbsolutePath::from(std::path::Path::new("/"));
                let resume = ResumeSessionRequest::new(session.session_id().clone(), root)
                    .replay_from(ReplayFrom::Start(ReplayFromStart::new()));
                cx.resume_session_from(resume).start_session().block_task().await?;
                session.close().block_task().await?;
                // Everything was sent, and so handled, before the answers.
                while let Ok(update) = all.try_recv() {
                    updates.push(update);
                }
                Ok(updates)
            })
            .await
            .expect("a session")
    }

    #[tokio::test]
    async fn a_relay_makes_no_difference() {
        let alone = updates(testy()).await;
        let chain = ProxiesAndAgent::new(testy()).proxy(pass_through()).proxy(pass_through());
        let behind = updates(ConductorImpl::new_agent("relay", chain)).await;
        assert_eq!(alone, behind);
        let replayed = alone.iter().position(|update| matches!(update, SessionUpdate::ReplayComplete(_)));
        assert_eq!((alone.len(), replayed), (8, Some(6)), "{alone:?}");
    }
}
