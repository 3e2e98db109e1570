//! Surfaces of protocol version 2.

use greenroom::schema::v2;
use serde_json::{Value, json};

use crate::{Sample, notification, request};

fn ask<Req: greenroom::JsonRpcRequest>(method: &'static str, params: Value, result: Value) -> Sample {
    request::<Req>(method, false, params, result)
}

fn update(update: Value) -> Sample {
    notification::<v2::UpdateSessionNotification>("session/update", json!({ "sessionId": "s", "update": update }))
}

pub(crate) fn all() -> Vec<Sample> {
    let mut all = stable();
    all.extend(updates());
    #[cfg(feature = "unstable")]
    all.extend(unstable());
    all
}

fn stable() -> Vec<Sample> {
    let text = json!([{ "type": "text", "text": "Be brief." }]);
    let setup = json!({ "cwd": "/work", "systemPrompt": { "mode": "override", "content": text } });
    let resume = json!({ "sessionId": "s", "cwd": "/", "replayFrom": { "type": "start" }, "systemPrompt": { "mode": "append", "content": text } });
    let form = json!({
        "mode": "form", "sessionId": "s", "message": "Who?",
        "requestedSchema": { "type": "object", "properties": { "n": { "type": "boolean", "default": true } } },
    });
    let commands =
        json!([{ "type": "command", "name": "c", "description": "C", "input": { "type": "text", "hint": "h" } }]);
    let permission = json!({
        "sessionId": "s", "title": "T", "description": "D",
        "subject": { "type": "command", "command": "ls", "cwd": "/", "toolCallId": "t" },
        "options": [{ "optionId": "y", "name": "Y", "kind": "allow_once" }],
    });
    vec![
        ask::<v2::NewSessionRequest>("session/new", setup, json!({ "sessionId": "s", "availableCommands": commands })),
        ask::<v2::ResumeSessionRequest>("session/resume", resume, json!({})),
        ask::<v2::PromptRequest>(
            "session/prompt",
            json!({ "sessionId": "s", "prompt": text, "idempotencyKey": "k" }),
            json!({ "messageId": "m" }),
        ),
        ask::<v2::CancelToolCallRequest>("tool_call/cancel", json!({ "sessionId": "s", "toolCallId": "t" }), json!({})),
        ask::<v2::CancelTerminalRequest>("terminal/cancel", json!({ "sessionId": "s", "terminalId": "t" }), json!({})),
        ask::<v2::LoginAuthRequest>("auth/login", json!({ "methodId": "m" }), json!({})),
        ask::<v2::LogoutAuthRequest>("auth/logout", json!({}), json!({})),
        request::<v2::CreateElicitationRequest>("elicitation/create", true, form, json!({ "action": "cancel" })),
        request::<v2::RequestPermissionRequest>(
            "session/request_permission",
            true,
            permission,
            json!({ "outcome": { "outcome": "selected", "optionId": "y" } }),
        ),
        notification::<v2::CompleteElicitationNotification>("elicitation/complete", json!({ "elicitationId": "e" })),
    ]
}

fn updates() -> Vec<Sample> {
    let entry = json!({ "content": "Look", "priority": "high", "status": "cancelled" });
    let text = json!({ "type": "text", "text": "In short." });
    let background = json!([{ "type": "terminal", "terminalId": "t" }, { "type": "subagent", "sessionId": "child" }]);
    [
        json!({ "sessionUpdate": "state_update", "state": "running", "background": background }),
        json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "error", "error": { "code": -32000, "message": "Authentication required" } }),
        json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "_of_tomorrow", "more": [1] }),
        json!({ "sessionUpdate": "state_update", "state": "_of_tomorrow", "more": [1] }),
        json!({ "sessionUpdate": "replay_complete" }),
        json!({ "sessionUpdate": "plan_update", "plan": { "type": "items", "planId": "p", "entries": [entry] } }),
        json!({ "sessionUpdate": "plan_update", "plan": { "type": "file", "planId": "p", "uri": "file:///p" } }),
        json!({ "sessionUpdate": "plan_removed", "planId": "p" }),
        json!({ "sessionUpdate": "notice", "severity": "error", "title": "T" }),
        json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": null, "summary": [text] }),
        json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": text }),
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "name": null, "status": "paused", "capabilities": { "cancel": {} } }),
        json!({ "sessionUpdate": "tool_call_content_chunk", "toolCallId": "t", "content": { "type": "session", "sessionId": "child" } }),
        json!({ "sessionUpdate": "terminal_update", "terminalId": "t", "size": { "cols": 80, "rows": 24 } }),
        json!({ "sessionUpdate": "subagent_update", "sessionId": "child", "title": "A", "state": { "state": "unknown" } }),
        json!({ "sessionUpdate": "session_message", "messageId": "m", "senderSessionId": "s", "content": [text] }),
        json!({ "sessionUpdate": "session_message_chunk", "messageId": "m", "content": text }),
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": null }),
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": [{ "type": "_mine", "name": "n", "description": "D", "more": 1 }] }),
        json!({ "sessionUpdate": "_of_tomorrow", "anything": { "at": ["all"] } }),
    ]
    .map(update)
    .into()
}

#[cfg(feature = "unstable")]
fn unstable() -> Vec<Sample> {
    let session = json!({ "sessionId": "s" });
    let usage = json!({ "totalTokens": 3, "inputTokens": 1, "outputTokens": 2 });
    let skill = json!({ "type": "skill", "name": "n", "description": "D", "path": "/skills/n" });
    let provider = json!({ "providerId": "p", "supported": ["bedrock"], "required": true });
    vec![
        ask::<v2::ForkSessionRequest>(
            "session/fork",
            json!({ "sessionId": "s", "cursorId": "c", "cwd": "/" }),
            json!({ "sessionId": "copy" }),
        ),
        ask::<v2::ListProvidersRequest>("providers/list", json!({}), json!({ "providers": [provider] })),
        ask::<v2::AuthStatusRequest>("auth/status", json!({}), json!({ "state": "not_required" })),
        ask::<v2::ArchiveSessionRequest>("session/archive", session.clone(), json!({})),
        ask::<v2::UnarchiveSessionRequest>("session/unarchive", session.clone(), json!({})),
        ask::<v2::SessionStatusRequest>(
            "session/status",
            session,
            json!({ "status": "open", "state": { "state": "running" } }),
        ),
        ask::<v2::SetSessionTitleRequest>(
            "session/set_title",
            json!({ "sessionId": "s", "title": "T" }),
            json!({ "title": "T" }),
        ),
        ask::<v2::SessionOptionsRequest>(
            "session/options",
            json!({ "cwd": "/" }),
            json!({ "availableCommands": [skill] }),
        ),
        ask::<v2::PromptRequest>(
            "session/prompt",
            json!({ "sessionId": "s", "prompt": [{ "type": "skill", "name": "n" }] }),
            json!({ "messageId": "m" }),
        ),
        update(json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn", "usage": usage })),
        update(json!({ "sessionUpdate": "available_commands_update", "availableCommands": [skill] })),
        update(
            json!({ "sessionUpdate": "prompt_suggestions_update", "suggestions": [{ "prompt": [{ "type": "text", "text": "Go on" }] }] }),
        ),
        update(json!({ "sessionUpdate": "cursor_update", "cursorId": "c", "capabilities": null })),
    ]
}
