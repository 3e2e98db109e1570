//! A proxy whose presence is visible in the text.

use greenroom::schema::v1::{ContentBlock, SessionNotification, SessionUpdate};
use greenroom::{Agent, Client, Conductor, ConnectTo, ConnectionTo, Proxy, on_receive_notification};

/// What the proxy writes in front of the agent's text.
const ARROW: &str = "→ ";

/// A proxy that puts an arrow in front of every piece of text of the agent's messages and passes
/// everything else on. Each arrow proxy of a chain adds one arrow, so the text tells how many there
/// were.
#[must_use]
pub fn arrow() -> impl ConnectTo<Conductor> {
    Proxy.builder().name("arrow-proxy").on_receive_notification_from(
        Agent,
        async |mut notification: SessionNotification, conductor: ConnectionTo<Conductor>| {
            point(&mut notification.update);
            conductor.send_notification_to(Client, notification)
        },
        on_receive_notification!(),
    )
}

fn point(update: &mut SessionUpdate) {
    if let SessionUpdate::AgentMessageChunk(chunk) = update
        && let ContentBlock::Text(content) = &mut chunk.content
    {
        content.text.insert_str(0, ARROW);
    }
}
