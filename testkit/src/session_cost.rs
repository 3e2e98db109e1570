//! What a message of a session costs while other sessions are open.

use std::time::{Duration, Instant};

use greenroom::{ActiveSession, Agent, Client, ConnectionTo, Error, Result};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::scripted::{Local, pair};

/// A client with open sessions, in front of an agent that is nothing but bytes.
pub struct OpenSessions {
    agent: Local,
    sessions: Vec<ActiveSession<'static, Agent>>,
    /// What the agent says, in whichever session: a text a session would measure the memory of this
    /// harness.
    line: Line,
    foreground: Option<oneshot::Sender<()>>,
    driving: JoinHandle<Result<()>>,
}

impl OpenSessions {
    /// Opens this many sessions on one connection.
    ///
    /// # Errors
    /// When the connection does not work.
    pub async fn new(count: usize) -> Result<Self> {
        let (mut agent, link) = pair(4 << 20);
        let (give, take) = oneshot::channel();
        let (foreground, end) = oneshot::channel::<()>();
        let driving = tokio::spawn(Client.builder().connect_with(link, async move |cx: ConnectionTo<Agent>| {
            let _ = give.send(cx);
            let _ = end.await;
            Ok(())
        }));
        let cx = take.await.map_err(Error::into_internal_error)?;
        let mut sessions = Vec::with_capacity(count);
        for number in 0..count {
            let opening = cx.build_session("/").block_task().start_session();
            let answering = async {
                let id = agent.receive().await["id"].clone();
                agent.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "sessionId": name(number) } })).await;
            };
            let (session, ()) = tokio::join!(opening, answering);
            sessions.push(session?);
        }
        Ok(Self { agent, sessions, line: Line::new(), foreground: Some(foreground), driving })
    }

    /// Time of one message that is read before the next is sent; the sessions take turns.
    ///
    /// # Errors
    /// When a message does not come.
    pub async fn one_by_one(&mut self, messages: usize) -> Result<Duration> {
        let begin = Instant::now();
        for number in 0..messages {
            let session = number % self.sessions.len();
            self.agent.write(self.line.of(session)).await;
            self.sessions[session].read_update().await?;
        }
        Ok(each(begin, messages))
    }

    /// Time of one message of many that are sent at once; the sessions take turns.
    ///
    /// # Errors
    /// When a message does not come.
    pub async fn at_once(&mut self, messages: usize) -> Result<Duration> {
        let count = self.sessions.len();
        let text: String = (0..messages).map(|number| self.line.of(number % count).to_owned()).collect();
        let begin = Instant::now();
        let (agent, sessions) = (&mut self.agent, &mut self.sessions);
        let reading = async {
            for number in 0..messages {
                sessions[number % count].read_update().await?;
            }
            Ok::<_, Error>(())
        };
        let (read, ()) = tokio::join!(reading, agent.write(&text));
        read?;
        Ok(each(begin, messages))
    }

    /// Closes everything, and waits for the end of it.
    ///
    /// # Errors
    /// How the connection ended, when that was no good end.
    pub async fn close(mut self) -> Result<()> {
        self.sessions.clear();
        self.foreground = None;
        self.driving.await.map_err(Error::into_internal_error)?
    }
}

impl std::fmt::Debug for OpenSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSessions").field("count", &self.sessions.len()).finish_non_exhaustive()
    }
}

/// Medians of as many rounds, first of `few`, then of `many`; the rounds take turns, so that whatever
/// else the machine does hits both.
///
/// # Errors
/// When a message does not come.
pub async fn compare(
    few: &mut OpenSessions,
    many: &mut OpenSessions,
    rounds: usize,
    mut round: impl AsyncFnMut(&mut OpenSessions) -> Result<Duration>,
) -> Result<(Duration, Duration)> {
    let mut times = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for _ in 0..rounds {
        times.0.push(round(few).await?);
        times.1.push(round(many).await?);
    }
    Ok((median(times.0), median(times.1)))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn each(begin: Instant, messages: usize) -> Duration {
    begin.elapsed() / u32::try_from(messages.max(1)).unwrap_or(u32::MAX)
}

fn name(session: usize) -> String {
    format!("session-{session:06}")
}

/// A message of any session.
struct Line {
    text: String,
    id: std::ops::Range<usize>,
}

impl Line {
    fn new() -> Self {
        let text = line(0);
        let begin = text.find(&name(0)).expect("the id is in there");
        Self { id: begin..begin + name(0).len(), text }
    }

    fn of(&mut self, session: usize) -> &str {
        self.text.replace_range(self.id.clone(), &name(session));
        &self.text
    }
}

fn line(session: usize) -> String {
    let content = json!({ "type": "text", "text": "a few words of an answer" });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    let params = json!({ "sessionId": name(session), "update": update });
    format!("{}\n", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
}
