//! A proxy whose presence is visible in the text.

use greenroom::{Agent, Client, Conductor, ConnectTo, JsonRpcNotification, Proxy, on_receive_notification};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is put in front of every piece of text.
const ARROW: &str = "→ ";

/// A session update as it came: whatever this proxy does not know about it stays as it is.
#[derive(Clone, Debug, Deserialize, JsonRpcNotification, Serialize)]
#[notification(method = "session/update")]
#[serde(transparent)]
struct Update(Value);

/// A proxy that puts an arrow in front of every piece of text of the agent's messages, and passes
/// everything else on. Each arrow proxy of a chain adds one arrow, so the text tells how many there
/// were.
#[must_use]
pub fn arrow_proxy() -> impl ConnectTo<Conductor> {
    // It knows nothing that differs between the versions of the protocol.
    Proxy.builder().without_acp_version_guard().name("arrow-proxy").on_receive_notification_from(
        Agent,
        async |mut update: Update, cx| {
            if let Some(text) = text_of(&mut update.0) {
                text.insert_str(0, ARROW);
            }
            cx.send_notification_to(Client, update)
        },
        on_receive_notification!(),
    )
}

/// The text, if the update is a piece of the agent's message that has one.
fn text_of(params: &mut Value) -> Option<&mut String> {
    let update = params.get_mut("update")?;
    if update.get("sessionUpdate")? != "agent_message_chunk" {
        return None;
    }
    let content = update.get_mut("content")?;
    if content.get("type")? != "text" {
        return None;
    }
    match content.get_mut("text")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_text_of_the_agents_messages_is_marked() {
        let mut chunk = json!({ "sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "hi", "new": 1 } } });
        assert_eq!(text_of(&mut chunk), Some(&mut "hi".to_owned()));
        for other in [
            json!({ "update": { "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "x" } } }),
            json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "image" } } }),
            json!({ "update": { "sessionUpdate": "not known yet" } }),
            json!([]),
        ] {
            assert_eq!(text_of(&mut other.clone()), None, "{other}");
        }
    }
}
