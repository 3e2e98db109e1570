//! A proxy that marks what the agent says.

use greenroom::schema::v1::{ContentBlock, SessionNotification, SessionUpdate};
use greenroom::{Agent, Client, Conductor, ConnectTo, Proxy, on_receive_notification};

/// What is put in front of every piece of text.
const ARROW: &str = "→ ";

/// A proxy that puts an arrow in front of every piece of text from the agent, and passes
/// everything else on.
#[must_use]
pub fn arrow_proxy() -> impl ConnectTo<Conductor> {
    Proxy.builder().name("arrow-proxy").on_receive_notification_from(
        Agent,
        async |mut notification: SessionNotification, cx| {
            if let SessionUpdate::AgentMessageChunk(chunk) = &mut notification.update
                && let ContentBlock::Text(text) = &mut chunk.content
            {
                text.text.insert_str(0, ARROW);
            }
            cx.send_notification_to(Client, notification)
        },
        on_receive_notification!(),
    )
}
