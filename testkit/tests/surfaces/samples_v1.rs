//! Surfaces of protocol version 1.

use greenroom::schema::v1;
use serde_json::{Value, json};

use crate::{Sample, notification, request};

fn ask<Req: greenroom::JsonRpcRequest>(method: &'static str, params: Value, result: Value) -> Sample {
    request::<Req>(method, false, params, result)
}

fn update(update: Value) -> Sample {
    notification::<v1::SessionNotification>("session/update", json!({ "sessionId": "s", "update": update }))
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
    let prompt = |mode: &str| match mode {
        // The default is written too.
        "append" => json!({ "mode": "append", "content": text }),
        mode => json!({ "mode": mode, "content": text, "_meta": { "k": 1 } }),
    };
    let servers =
        json!([{ "name": "n", "command": "/bin/true", "args": ["a"], "env": [{ "name": "K", "value": "V" }] }]);
    let setup = |mode: &str| {
        let more = json!(["/more"]);
        json!({ "cwd": "/work", "additionalDirectories": more, "mcpServers": servers, "systemPrompt": prompt(mode) })
    };
    let old = |mode: &str| {
        let mut params = setup(mode);
        params["sessionId"] = json!("s");
        params
    };
    let form = json!({
        "mode": "form", "sessionId": "s", "toolCallId": "t", "message": "Who?",
        "requestedSchema": {
            "type": "object",
            "properties": { "mail": { "type": "string", "format": "email" }, "n": { "type": "integer", "minimum": 1 } },
            "required": ["mail"],
        },
    });
    let url =
        json!({ "mode": "url", "requestId": 7, "elicitationId": "e", "url": "https://x.example/", "message": "Go" });
    let accept = json!({ "action": "accept", "content": { "mail": "a@b.c", "n": 2, "many": ["x", "y"], "yes": true } });
    vec![
        ask::<v1::NewSessionRequest>("session/new", setup("append"), json!({ "sessionId": "s" })),
        ask::<v1::NewSessionRequest>("session/new", setup("override"), json!({ "sessionId": "s" })),
        ask::<v1::LoadSessionRequest>("session/load", old("_of_tomorrow"), json!({})),
        ask::<v1::ResumeSessionRequest>("session/resume", old("append"), json!({})),
        ask::<v1::ListSessionsRequest>(
            "session/list",
            json!({ "cwd": "/work", "cursor": "c" }),
            json!({ "sessions": [{ "sessionId": "s", "cwd": "/", "additionalDirectories": ["/more"], "title": "T" }], "nextCursor": "d" }),
        ),
        ask::<v1::DeleteSessionRequest>("session/delete", json!({ "sessionId": "s" }), json!({})),
        ask::<v1::CloseSessionRequest>("session/close", json!({ "sessionId": "s" }), json!({})),
        request::<v1::CreateElicitationRequest>("elicitation/create", true, form, accept),
        request::<v1::CreateElicitationRequest>("elicitation/create", true, url, json!({ "action": "decline" })),
        notification::<v1::CompleteElicitationNotification>("elicitation/complete", json!({ "elicitationId": "e" })),
    ]
}

fn updates() -> Vec<Sample> {
    let entry = json!({ "content": "Look", "priority": "high", "status": "in_progress" });
    let text = json!({ "type": "text", "text": "In short." });
    [
        json!({ "sessionUpdate": "plan_update", "plan": { "type": "items", "planId": "p", "entries": [entry] } }),
        json!({ "sessionUpdate": "plan_update", "plan": { "type": "markdown", "planId": "p", "content": "# P", "path": "/p.md" } }),
        json!({ "sessionUpdate": "plan_removed", "planId": "p" }),
        json!({ "sessionUpdate": "notice", "severity": "warning", "title": "T", "description": "D" }),
        json!({ "sessionUpdate": "notice", "severity": "_of_tomorrow", "title": "T" }),
        json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress" }),
        json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "failed", "summary": null, "error": "E" }),
        json!({ "sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": text }),
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "name": "read_file" }),
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "name": "write_file", "content": [{ "type": "session", "sessionId": "child" }] }),
        json!({ "sessionUpdate": "subagent_update", "sessionId": "child", "title": "A", "description": null, "capabilities": { "cancel": {} }, "state": { "state": "running" }, "cwd": "/", "additionalDirectories": ["/more"] }),
        json!({ "sessionUpdate": "subagent_update", "sessionId": "child", "state": { "state": "idle", "stopReason": "end_turn" } }),
        json!({ "sessionUpdate": "session_message", "messageId": "m", "senderSessionId": "s", "recipientSessionId": "child", "senderMessageId": "a", "recipientMessageId": null, "content": [text] }),
        json!({ "sessionUpdate": "session_message_chunk", "messageId": "m", "content": text }),
        json!({ "sessionUpdate": "session_info_update", "title": null, "updatedAt": "2026-01-01T00:00:00Z" }),
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 0.5, "currency": "EUR" } }),
    ]
    .map(update)
    .into()
}

#[cfg(feature = "unstable")]
fn unstable() -> Vec<Sample> {
    let session = json!({ "sessionId": "s" });
    let options =
        json!([{ "configId": "model", "value": "fast" }, { "configId": "loud", "type": "boolean", "value": true }]);
    let fork = json!({ "sessionId": "s", "cursorId": "c", "cwd": "/", "configOptions": options });
    let usage = json!({ "totalTokens": 6, "inputTokens": 1, "outputTokens": 2, "thoughtTokens": 3, "cachedReadTokens": 4, "cachedWriteTokens": 5 });
    let provider = json!({ "providerId": "p", "supported": ["anthropic", "openai", "_mine"], "required": false, "current": { "apiType": "openai", "baseUrl": "https://x.example/" } });
    let set = json!({ "providerId": "p", "apiType": "azure", "baseUrl": "https://x.example/", "headers": { "b": "2", "a": "1" } });
    let account = json!({ "state": "authenticated", "accounts": [{ "label": "L", "active": true, "email": "a@b.c" }] });
    let select = json!({ "id": "speed", "name": "Speed", "category": "speed", "type": "select", "currentValue": "fast", "options": [{ "value": "fast", "name": "Fast" }] });
    vec![
        ask::<v1::ForkSessionRequest>("session/fork", fork, json!({ "sessionId": "copy" })),
        ask::<v1::NewSessionRequest>(
            "session/new",
            json!({ "cwd": "/", "mcpServers": [], "configOptions": options }),
            json!({ "sessionId": "s" }),
        ),
        ask::<v1::NewSessionRequest>(
            "session/new",
            json!({ "cwd": "/", "mcpServers": [{ "type": "acp", "name": "N", "serverId": "i" }] }),
            json!({ "sessionId": "s" }),
        ),
        ask::<v1::PromptRequest>(
            "session/prompt",
            json!({ "sessionId": "s", "prompt": [] }),
            json!({ "stopReason": "end_turn", "usage": usage }),
        ),
        ask::<v1::ListProvidersRequest>("providers/list", json!({}), json!({ "providers": [provider] })),
        ask::<v1::SetProviderRequest>("providers/set", set, json!({})),
        ask::<v1::DisableProviderRequest>("providers/disable", json!({ "providerId": "p" }), json!({})),
        ask::<v1::AuthStatusRequest>("auth/status", json!({}), account.clone()),
        ask::<v1::ArchiveSessionRequest>("session/archive", session.clone(), json!({})),
        ask::<v1::UnarchiveSessionRequest>("session/unarchive", session.clone(), json!({})),
        ask::<v1::ListSessionsRequest>(
            "session/list",
            json!({ "archived": "only" }),
            json!({ "sessions": [{ "sessionId": "s", "cwd": "/", "archived": true }] }),
        ),
        ask::<v1::SessionStatusRequest>("session/status", session, json!({ "status": "saved" })),
        ask::<v1::SetSessionTitleRequest>(
            "session/set_title",
            json!({ "sessionId": "s", "title": "T" }),
            json!({ "title": "T" }),
        ),
        ask::<v1::SessionOptionsRequest>(
            "session/options",
            json!({ "cwd": "/", "sessionId": "s" }),
            json!({ "configOptions": [select] }),
        ),
        notification::<v1::AuthStatusUpdateNotification>("auth/status_update", account),
        update(
            json!({ "sessionUpdate": "prompt_suggestions_update", "suggestions": [{ "prompt": [{ "type": "text", "text": "Go on" }] }] }),
        ),
        update(
            json!({ "sessionUpdate": "cursor_update", "cursorId": "c", "capabilities": { "fork": {} }, "anchor": { "type": "agent_message", "messageId": "m", "position": "after" } }),
        ),
    ]
}
