//! The handle of a session of protocol version 2.

use std::fmt;

use greenroom_protocol::Result;
use greenroom_protocol::schema::v2;

use crate::request::SentRequest;
use crate::role::HasPeer;
use crate::role::acp::Agent;
use crate::v2::V2ConnectionTo;

/// Sends the commands of one session. Cheap to clone.
///
/// It holds the session's id and the connection, and nothing of what the agent says: updates and
/// requests reach the handlers of the connection. Dropping it sends nothing and unregisters
/// nothing.
pub struct V2Session<Link: HasPeer<Agent>> {
    session_id: v2::SessionId,
    connection: V2ConnectionTo<Link>,
}

impl<Link: HasPeer<Agent>> V2Session<Link> {
    pub(in crate::session) fn new(session_id: v2::SessionId, connection: V2ConnectionTo<Link>) -> Self {
        Self { session_id, connection }
    }

    /// The id of the session.
    #[must_use]
    pub fn session_id(&self) -> &v2::SessionId {
        &self.session_id
    }

    /// The connection of the session.
    #[must_use]
    pub fn connection(&self) -> &V2ConnectionTo<Link> {
        &self.connection
    }

    /// Sends a prompt. Its answer says that the message was accepted, and its id; how the work goes
    /// on is told by updates of the session.
    pub fn send_prompt(&self, prompt: impl ToString) -> SentRequest<v2::PromptResponse> {
        self.send_prompt_blocks(vec![v2::ContentBlock::Text(v2::TextContent::new(prompt.to_string()))])
    }

    /// Sends a prompt of any content.
    pub fn send_prompt_blocks(&self, prompt: Vec<v2::ContentBlock>) -> SentRequest<v2::PromptResponse> {
        self.connection.send_request_to(Agent, v2::PromptRequest::new(self.session_id.clone(), prompt))
    }

    /// Cancels what the session is doing in the foreground: tells the agent, and answers the open
    /// permission requests of the session as cancelled. The agent tells the end with an update that
    /// says idle, if it was doing anything. No request is cancelled by this.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn cancel_active_work(&self) -> Result<()> {
        self.connection.send_notification_to(Agent, v2::CancelSessionNotification::new(self.session_id.clone()))
    }

    /// Sets an option. The answer has the complete set of options that is valid now; nothing of it
    /// is kept here.
    pub fn set_config_option(
        &self,
        config_id: impl Into<v2::SessionConfigId>,
        value: impl Into<v2::SessionConfigOptionValue>,
    ) -> SentRequest<v2::SetSessionConfigOptionResponse> {
        let request = v2::SetSessionConfigOptionRequest::new(self.session_id.clone(), config_id, value);
        self.connection.send_request_to(Agent, request)
    }

    /// Closes the session.
    pub fn close(&self) -> SentRequest<v2::CloseSessionResponse> {
        self.connection.send_request_to(Agent, v2::CloseSessionRequest::new(self.session_id.clone()))
    }
}

impl<Link: HasPeer<Agent>> Clone for V2Session<Link> {
    fn clone(&self) -> Self {
        Self { session_id: self.session_id.clone(), connection: self.connection.clone() }
    }
}

impl<Link: HasPeer<Agent>> fmt::Debug for V2Session<Link> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("V2Session").field("session_id", &self.session_id).finish_non_exhaustive()
    }
}

/// A session that was opened, with the complete answer of the agent.
pub struct OpenedV2Session<Link: HasPeer<Agent>, Response> {
    session: V2Session<Link>,
    response: Response,
}

impl<Link: HasPeer<Agent>, Response> OpenedV2Session<Link, Response> {
    pub(super) fn new(session: V2Session<Link>, response: Response) -> Self {
        Self { session, response }
    }

    /// The handle.
    #[must_use]
    pub fn session(&self) -> &V2Session<Link> {
        &self.session
    }

    /// The agent's answer.
    #[must_use]
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Only the handle.
    #[must_use]
    pub fn into_session(self) -> V2Session<Link> {
        self.session
    }

    /// Both.
    #[must_use]
    pub fn into_parts(self) -> (V2Session<Link>, Response) {
        (self.session, self.response)
    }
}

impl<Link: HasPeer<Agent>, Response: fmt::Debug> fmt::Debug for OpenedV2Session<Link, Response> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedV2Session").field("session", &self.session).finish_non_exhaustive()
    }
}
