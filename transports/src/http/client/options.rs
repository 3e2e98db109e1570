//! Limits and deadlines of one HTTP client.

use greenroom_protocol::limits;
use tokio::time::Duration;

/// Limits and deadlines of the connections of one [`HttpClient`](super::HttpClient).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HttpClientOptions {
    /// Longest message that is accepted from the server, in bytes: one event, one WebSocket message,
    /// or one body. A longer one ends the connection. Default: 64 MiB.
    pub max_message: usize,
    /// Bytes that may be read and not yet worked off before nothing more is read from the server.
    /// Default: 512 KiB, as for every other transport.
    pub incoming_credit: usize,
    /// Time to open a stream or a WebSocket, up to the headers of the response. Default: 30 s.
    pub open_deadline: Duration,
    /// Time for the server to take one message. It does not bound the answer to `initialize`, which
    /// may have to start an agent, nor any other answer. Default: 60 s.
    pub post_deadline: Duration,
    /// Time for saying goodbye: the `DELETE`, or the server's half of a WebSocket's close. Default:
    /// 5 s.
    pub finish_deadline: Duration,
    /// How often in a row an event stream that ended or broke is asked for again, behind the last
    /// event that came: with `Last-Event-ID`, after a pause that grows from 100 ms. A message resets
    /// the count. Only for servers that keep their events: one that gives them ids and ignores
    /// `Last-Event-ID` would leave out what was lost. Default: 0, the end of a stream is the end of
    /// the connection.
    pub resume_attempts: u32,
}

impl Default for HttpClientOptions {
    fn default() -> Self {
        Self {
            max_message: limits::MAX_FRAME,
            incoming_credit: 512 * 1024,
            open_deadline: Duration::from_secs(30),
            post_deadline: Duration::from_secs(60),
            finish_deadline: Duration::from_secs(5),
            resume_attempts: 0,
        }
    }
}

impl HttpClientOptions {
    /// Sets [`max_message`](Self::max_message).
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Sets [`incoming_credit`](Self::incoming_credit).
    #[must_use]
    pub fn with_incoming_credit(mut self, bytes: usize) -> Self {
        self.incoming_credit = bytes;
        self
    }

    /// Sets [`open_deadline`](Self::open_deadline).
    #[must_use]
    pub fn with_open_deadline(mut self, deadline: Duration) -> Self {
        self.open_deadline = deadline;
        self
    }

    /// Sets [`post_deadline`](Self::post_deadline).
    #[must_use]
    pub fn with_post_deadline(mut self, deadline: Duration) -> Self {
        self.post_deadline = deadline;
        self
    }

    /// Sets [`finish_deadline`](Self::finish_deadline).
    #[must_use]
    pub fn with_finish_deadline(mut self, deadline: Duration) -> Self {
        self.finish_deadline = deadline;
        self
    }

    /// Sets [`resume_attempts`](Self::resume_attempts).
    #[must_use]
    pub fn with_resume_attempts(mut self, attempts: u32) -> Self {
        self.resume_attempts = attempts;
        self
    }
}
