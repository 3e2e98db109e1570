//! An open session, in the hands of who reads it.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use greenroom_protocol::schema::{
    CancelNotification, ContentBlock, Meta, NewSessionResponse, PromptRequest, SessionConfigOption, SessionId,
    SessionModeState, SessionNotification, SessionUpdate, TextContent,
};
use greenroom_protocol::{Error, Result};

use super::coordinator::SessionItem;
use super::entry::SessionEntry;
use super::message::SessionMessage;
use super::queue::Event;
use crate::connection::{Shared, Step};
use crate::connection_to::ConnectionTo;
use crate::handlers::Delivery;
use crate::request::would_deadlock;
use crate::role::acp::{Agent, Client};
use crate::role::{HasPeer, Role as _};
use crate::runtime::Scope;
use crate::util::MatchDispatch;

/// A session of protocol v1 that is open on this connection.
///
/// Everything that the agent sends for this session, and that no registered handler takes, waits
/// here until it is read: in wire order, the end of a turn after everything that belongs to it. At
/// most [`session_cap`](crate::ConnectionOptions::session_cap) bytes wait; above that the session
/// fails, and only it.
///
/// Dropping it sends no message of its own. What nobody has read, and what comes for the session
/// afterwards, is dropped; requests are answered with an error.
pub struct ActiveSession<'runner, Link>
where
    Link: HasPeer<Agent>,
{
    connection: ConnectionTo<Link>,
    entry: Arc<SessionEntry>,
    /// Boxed: who has thousands of sessions has small handles.
    response: Box<NewSessionResponse>,
    next_turn: AtomicU64,
    /// Whether the session ends with this handle.
    owns: bool,
    _runner: PhantomData<&'runner ()>,
}

impl<Link: HasPeer<Agent>> ActiveSession<'_, Link> {
    /// Opens the session's place in the connection: from now on its messages wait for the reader,
    /// beginning with those that came before.
    pub(super) fn open(connection: &ConnectionTo<Link>, response: NewSessionResponse) -> Result<Self> {
        let entry = connection.shared().sessions.open(connection.shared(), response.session_id.clone())?;
        // Wakes the dispatch loop: messages of this session may be parked.
        let _ = connection.shared().steps.send(Step::HandlerAdded);
        Ok(Self {
            connection: connection.clone(),
            entry,
            response: Box::new(response),
            next_turn: AtomicU64::new(1),
            owns: true,
            _runner: PhantomData,
        })
    }

    /// What closes the session without this handle.
    pub(super) fn place(&self) -> Place {
        Place { connection: self.connection.shared().clone(), entry: self.entry.clone() }
    }

    /// Completes what was opened before the response was there.
    pub(super) fn set_response(&mut self, response: NewSessionResponse) {
        *self.response = response;
    }

    /// The id of the session.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        &self.response.session_id
    }

    /// The modes that the agent offered when the session was opened.
    #[must_use]
    pub fn modes(&self) -> Option<&SessionModeState> {
        self.response.modes.as_ref()
    }

    /// The configuration options that the agent offered when the session was opened.
    #[must_use]
    pub fn config_options(&self) -> Option<&[SessionConfigOption]> {
        self.response.config_options.as_deref()
    }

    /// What else the agent said when the session was opened.
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        self.response.meta.as_ref()
    }

    /// The answer that opened the session; for a restored one, its parts under these names.
    #[must_use]
    pub fn response(&self) -> NewSessionResponse {
        (*self.response).clone()
    }

    /// The connection of the session.
    #[must_use]
    pub fn connection(&self) -> &ConnectionTo<Link> {
        &self.connection
    }

    /// Sends a prompt. When this returns it is queued; the end of its turn comes to
    /// [`read_update`](Self::read_update).
    ///
    /// # Errors
    /// When the prompt cannot be written, or the session or the connection is over.
    pub fn send_prompt(&mut self, prompt: impl ToString) -> Result<()> {
        if let Some(ended) = self.entry.queue().ended() {
            return Err(ended);
        }
        let content = vec![ContentBlock::Text(TextContent::new(prompt.to_string()))];
        let request = PromptRequest::new(self.session_id().clone(), content);
        let prepared = self.connection.prepare_request_to(Agent, request);
        let turn = self.next_turn.fetch_add(1, Ordering::Relaxed);
        // Before the request is sent: its answer must find the turn.
        let began = SessionItem::TurnBegan(turn, prepared.cancellation_handle());
        self.entry.tell(began).map_err(|_| self.closed())?;
        // An open prompt must not keep the session: who dropped it is not going to read.
        let entry = Arc::downgrade(&self.entry);
        prepared.on_receiving_result(async move |response| {
            let outcome = response.map(|response| response.stop_reason);
            if let Some(entry) = entry.upgrade() {
                // A session that was dropped meanwhile has nobody to tell.
                let _ = entry.tell(SessionItem::TurnEnded(turn, outcome));
            }
            Ok(())
        })
    }

    /// Cancels what the session is doing: tells the agent, and answers its open permission requests
    /// as cancelled. The turn then has
    /// [`cancel_deadline`](crate::ConnectionOptions::cancel_deadline) to end by itself; after that
    /// [`read_update`](Self::read_update) gets `-32800` in its place.
    ///
    /// The same happens when a [`CancelNotification`] is sent on the connection.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn cancel(&self) -> Result<()> {
        self.connection.send_notification_to(Agent, CancelNotification::new(self.session_id().clone()))
    }

    /// Waits for the next message of the session, or the end of a turn.
    ///
    /// Cancel-safe: dropping the future loses nothing. Inside a handler of the same connection it
    /// fails at once when there is nothing to read yet, because nothing could come.
    ///
    /// # Errors
    /// The error with which the agent answered a prompt (the session goes on); or why nothing comes
    /// any more: the connection ended, the session overflowed, it was opened again elsewhere.
    pub async fn read_update(&mut self) -> Result<SessionMessage> {
        let event = poll_fn(|cx| match self.entry.queue().poll(cx) {
            Poll::Pending if Scope::is_inside(self.connection.id()) => {
                Poll::Ready(Err(would_deadlock("the next message of a session")))
            }
            other => other,
        });
        Ok(match event.await? {
            Event::Message(delivery) => SessionMessage::SessionMessage(delivery.into_inner_dispatch(Agent.role_id())?),
            Event::Stop(outcome) => SessionMessage::StopReason((*outcome)?),
        })
    }

    /// Reads until the end of the turn and returns the text that the agent said. Everything else is
    /// passed over; a request that no handler took is answered with an error.
    ///
    /// # Errors
    /// As [`read_update`](Self::read_update); the text so far is lost.
    pub async fn read_to_string(&mut self) -> Result<String> {
        let mut output = String::new();
        loop {
            let message = match self.read_update().await? {
                SessionMessage::SessionMessage(message) => message,
                SessionMessage::StopReason(_) => return Ok(output),
            };
            MatchDispatch::new(message)
                .if_notification(async |notification: SessionNotification| {
                    if let SessionUpdate::AgentMessageChunk(chunk) = notification.update
                        && let ContentBlock::Text(text) = chunk.content
                    {
                        output.push_str(&text.text);
                    }
                    Ok(())
                })
                .await
                .otherwise_ignore()?;
        }
    }

    fn closed(&self) -> Error {
        let ended = self.entry.queue().ended().or_else(|| self.entry.failure());
        ended.unwrap_or_else(|| self.connection.shared().closed_error())
    }
}

impl<Link: HasPeer<Agent>> ActiveSession<'static, Link> {
    /// Passes every message of the session on to the client, for as long as the connection lasts:
    /// those that nobody read, then those that come. Ends of turns are not passed on; they are the
    /// answers to the prompts of this side.
    ///
    /// # Errors
    /// When the session or the connection is over.
    pub fn proxy_remaining_messages(mut self) -> Result<()>
    where
        Link: HasPeer<Client>,
    {
        let connection = self.connection.clone();
        let forward = Box::new(move |delivery: Delivery| {
            connection.send_proxied_message_to(Client, delivery.into_inner_dispatch(Agent.role_id())?)
        });
        self.entry.tell(SessionItem::Forward(forward)).map_err(|_| self.closed())?;
        self.owns = false;
        Ok(())
    }
}

/// The place of a session in its connection.
pub(super) struct Place {
    connection: Arc<Shared>,
    entry: Arc<SessionEntry>,
}

impl Place {
    /// Nobody is going to read the session.
    pub(super) fn close(&self) {
        self.connection.sessions.close(&self.entry);
    }
}

impl<Link: HasPeer<Agent>> Drop for ActiveSession<'_, Link> {
    fn drop(&mut self) {
        if self.owns {
            self.connection.shared().sessions.close(&self.entry);
        }
    }
}

impl<Link: HasPeer<Agent>> fmt::Debug for ActiveSession<'_, Link> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveSession").field("session_id", self.session_id()).finish_non_exhaustive()
    }
}
