//! The sessions of one agent.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use greenroom::schema::v1::{ContentBlock, PromptRequest, SessionId};
use greenroom::{Error, Result};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use super::settings::Settings;
use crate::testy::root::Root;

/// What of a conversation is kept at most; the oldest goes first.
const HISTORY_BYTES: usize = 1 << 20;

/// The sessions of one agent. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Sessions {
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    opened: u64,
    sessions: HashMap<SessionId, Session>,
}

/// One session, open or closed.
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) root: Root,
    pub(super) additional: Vec<PathBuf>,
    pub(super) settings: Settings,
    open: bool,
    turns: u64,
    /// How often the session was cancelled.
    cancels: watch::Sender<u64>,
    history: History,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
}

/// What was said, within bounds.
#[derive(Default)]
struct History {
    said: VecDeque<(Speaker, ContentBlock, usize)>,
    bytes: usize,
}

/// A turn at its beginning.
pub(super) struct Begun {
    pub(super) root: Root,
    pub(super) settings: Settings,
    /// Which turn of its session this is, from 1.
    pub(super) number: u64,
    /// What is cancelled from now on concerns this turn.
    pub(super) cancels: watch::Receiver<u64>,
}

impl Sessions {
    pub(super) fn open(&self, root: Root, additional: Vec<PathBuf>) -> SessionId {
        let mut table = self.table.lock();
        table.opened += 1;
        let number = table.opened;
        let id = SessionId::new(format!("session-{number}"));
        let session = Session {
            number,
            root,
            additional,
            settings: Settings::default(),
            open: true,
            turns: 0,
            cancels: watch::Sender::new(0),
            history: History::default(),
        };
        table.sessions.insert(id.clone(), session);
        id
    }

    /// Opens a session again that exists, with the directories that the client has for it now.
    pub(super) fn reopen(&self, id: &SessionId, root: Root, additional: Vec<PathBuf>) -> Result<()> {
        self.with(id, |session| {
            (session.root, session.additional, session.open) = (root, additional, true);
        })
    }

    /// Looks at a session, open or closed.
    ///
    /// # Errors
    /// `-32602` if there is none.
    pub(super) fn with<T>(&self, id: &SessionId, look: impl FnOnce(&mut Session) -> T) -> Result<T> {
        match self.table.lock().sessions.get_mut(id) {
            Some(session) => Ok(look(session)),
            None => Err(refused("unknown session")),
        }
    }

    /// The ids and sessions that `pick` wants, in the order in which they were opened.
    pub(super) fn pick<T>(&self, pick: impl Fn(&SessionId, &Session) -> Option<T>) -> Vec<T> {
        let table = self.table.lock();
        let mut picked: Vec<_> =
            table.sessions.iter().filter_map(|(id, session)| Some((session.number, pick(id, session)?))).collect();
        picked.sort_by_key(|(number, _)| *number);
        picked.into_iter().map(|(_, item)| item).collect()
    }

    pub(super) fn begin_turn(&self, prompt: &PromptRequest) -> Result<Begun> {
        self.with(&prompt.session_id, |session| {
            if !session.open {
                return Err(refused("the session is closed: load or resume it first"));
            }
            session.turns += 1;
            for block in &prompt.prompt {
                session.history.push(Speaker::User, block.clone());
            }
            let (root, settings) = (session.root.clone(), session.settings.clone());
            Ok(Begun { root, settings, number: session.turns, cancels: session.cancels.subscribe() })
        })?
    }

    pub(super) fn said(&self, id: &SessionId, content: ContentBlock) {
        // A session that was deleted meanwhile remembers nothing.
        let _ = self.with(id, |session| session.history.push(Speaker::Agent, content));
    }

    pub(super) fn history(&self, id: &SessionId) -> Result<Vec<(Speaker, ContentBlock)>> {
        self.with(id, |session| {
            session.history.said.iter().map(|(speaker, content, _)| (*speaker, content.clone())).collect()
        })
    }

    /// Ends the turns of a session; without effect on a session that there is not.
    pub(super) fn cancel(&self, id: &SessionId) {
        let _ = self.with(id, |session| session.cancels.send_modify(|count| *count += 1));
    }

    /// Whether a session was cancelled ever.
    pub(super) fn was_cancelled(&self, id: &SessionId) -> bool {
        self.with(id, |session| *session.cancels.borrow() > 0).unwrap_or_default()
    }

    pub(super) fn close(&self, id: &SessionId) -> Result<()> {
        self.with(id, |session| session.end())
    }

    pub(super) fn delete(&self, id: &SessionId) -> Result<()> {
        self.with(id, |session| session.end())?;
        self.table.lock().sessions.remove(id);
        Ok(())
    }
}

impl Session {
    /// No new turns, and an end of those that run. This is no `session/cancel`, so it is not
    /// counted as one.
    fn end(&mut self) {
        self.open = false;
        let count = *self.cancels.borrow();
        // Whoever waits for a sender that is gone is woken.
        self.cancels = watch::Sender::new(count);
    }
}

impl History {
    fn push(&mut self, speaker: Speaker, content: ContentBlock) {
        let size = size_of_val(&content) + payload(&content);
        self.bytes += size;
        self.said.push_back((speaker, content, size));
        while self.bytes > HISTORY_BYTES {
            let Some((_, _, size)) = self.said.pop_front() else { break };
            self.bytes -= size;
        }
    }
}

/// The bytes of the large parts of a block.
fn payload(content: &ContentBlock) -> usize {
    use greenroom::schema::v1::EmbeddedResourceResource as Resource;
    match content {
        ContentBlock::Text(content) => content.text.len(),
        ContentBlock::Image(content) => content.data.len(),
        ContentBlock::Audio(content) => content.data.len(),
        ContentBlock::ResourceLink(content) => content.uri.len(),
        ContentBlock::Resource(content) => match &content.resource {
            Resource::TextResourceContents(text) => text.text.len(),
            Resource::BlobResourceContents(blob) => blob.blob.len(),
            _ => 0,
        },
        _ => 0,
    }
}

fn refused(reason: &str) -> Error {
    Error::invalid_params().data(json!({ "reason": reason }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> (Sessions, SessionId) {
        let sessions = Sessions::default();
        let id = sessions.open(Root::new("/".into()).expect("a root"), vec![]);
        (sessions, id)
    }

    #[test]
    fn a_history_is_bounded_and_keeps_the_newest() {
        let (sessions, id) = sessions();
        for letter in ["a", "b", "c"] {
            sessions.said(&id, ContentBlock::from(letter.repeat(HISTORY_BYTES / 2 - 1000)));
        }
        sessions.said(&id, ContentBlock::from("the last"));
        let said = sessions.history(&id).expect("a history");
        let texts: Vec<_> = said
            .iter()
            .map(|(_, content)| match content {
                ContentBlock::Text(content) => &content.text[..1],
                other => panic!("text: {other:?}"),
            })
            .collect();
        assert_eq!(texts, ["b", "c", "t"]);
        sessions.said(&id, ContentBlock::from("d".repeat(HISTORY_BYTES + 1)));
        assert_eq!(sessions.history(&id).expect("a history"), []);
    }

    #[test]
    fn ids_are_never_used_again() {
        let (sessions, id) = sessions();
        sessions.delete(&id).expect("there is one");
        let next = sessions.open(Root::new("/".into()).expect("a root"), vec![]);
        assert_eq!((&*id.0, &*next.0), ("session-1", "session-2"));
        assert!(sessions.delete(&id).is_err());
    }

    #[test]
    fn only_cancellations_count_as_such() {
        let (sessions, id) = sessions();
        let prompt = PromptRequest::new(id.clone(), vec![]);
        let turn = sessions.begin_turn(&prompt).expect("a turn");
        sessions.close(&id).expect("there is one");
        assert!(turn.cancels.has_changed().is_err(), "the turn ends");
        assert!(!sessions.was_cancelled(&id));
        assert!(sessions.begin_turn(&prompt).is_err(), "closed");
        sessions.cancel(&id);
        assert!(sessions.was_cancelled(&id));
    }
}
