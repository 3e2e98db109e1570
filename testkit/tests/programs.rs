//! The programs of this package, over pipes.

use std::sync::{Arc, Mutex};

use greenroom::schema::ProtocolVersion;
use greenroom::schema::v1::{
    CancelNotification, ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, SessionId,
    SessionNotification, SessionUpdate, StopReason, TextContent,
};
use greenroom::{Agent, Client, ConnectionTo, ErrorCode, Result, on_receive_notification};
use greenroom_testkit::test_binaries::testy;

fn prompt(session: &SessionId, text: &str) -> PromptRequest {
    PromptRequest::new(session.clone(), vec![ContentBlock::Text(TextContent::new(text))])
}

/// Runs `main` with a connection to a fresh agent; returns the texts that the agent said.
async fn converse(main: impl AsyncFnOnce(ConnectionTo<Agent>) -> Result<()>) -> Vec<String> {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = said.clone();
    Client
        .builder()
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
        .connect_with(testy(), main)
        .await
        .unwrap();
    std::mem::take(&mut *said.lock().unwrap())
}

async fn open(cx: &ConnectionTo<Agent>) -> Result<SessionId> {
    let version = cx.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?.protocol_version;
    assert_eq!(version, ProtocolVersion::V1);
    Ok(cx.send_request(NewSessionRequest::new("/")).block_task().await?.session_id)
}

#[tokio::test]
async fn testy_says_what_it_is_told() {
    let said = converse(async |cx: ConnectionTo<Agent>| {
        let session = open(&cx).await?;
        assert_eq!(session, SessionId::new("session-1"));
        for text in ["echo hello", "anything else", "help"] {
            let answer = cx.send_request(prompt(&session, text)).block_task().await?;
            assert_eq!(answer.stop_reason, StopReason::EndTurn);
        }
        let second = cx.send_request(NewSessionRequest::new("/")).block_task().await?.session_id;
        assert_eq!(second, SessionId::new("session-2"));
        let unknown = cx.send_request(prompt(&SessionId::new("session-3"), "help")).block_task().await;
        assert_eq!(unknown.unwrap_err().code, ErrorCode::InvalidParams);
        Ok(())
    })
    .await;
    assert_eq!(said[..2], ["hello", "anything else"]);
    assert!(["echo", "help", "wait_for_cancel"].iter().all(|command| said[2].contains(command)), "{}", said[2]);
}

#[tokio::test]
async fn testy_waits_until_the_turn_is_cancelled() {
    converse(async |cx: ConnectionTo<Agent>| {
        let session = open(&cx).await?;
        // In one go: the cancellation must not come too early for the turn.
        let turn = cx.send_request(prompt(&session, "wait_for_cancel"));
        cx.send_notification(CancelNotification::new(session.clone()))?;
        assert_eq!(turn.block_task().await?.stop_reason, StopReason::Cancelled);
        let turn = cx.send_request(prompt(&session, "wait_for_cancel"));
        turn.cancel()?;
        assert_eq!(turn.block_task().await.unwrap_err().code, ErrorCode::RequestCancelled);
        // Another session's turn goes on, and holds nothing up.
        let other = cx.send_request(NewSessionRequest::new("/")).block_task().await?.session_id;
        let waiting = cx.send_request(prompt(&other, "wait_for_cancel"));
        cx.send_notification(CancelNotification::new(session.clone()))?;
        cx.send_request(prompt(&session, "echo meanwhile")).block_task().await?;
        cx.send_notification(CancelNotification::new(other))?;
        assert_eq!(waiting.block_task().await?.stop_reason, StopReason::Cancelled);
        Ok(())
    })
    .await;
}
