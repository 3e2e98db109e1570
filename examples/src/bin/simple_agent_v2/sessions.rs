//! All sessions of the agent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom::schema::v2::{
    AbsolutePath, PromptRequest, PromptResponse, ReplayFrom, ResumeSessionRequest, SessionId, SessionInfo,
};
use greenroom::{Client, Error, Responder, Result, V2ConnectionTo};

use super::session::Session;

/// Clones share the sessions. A production agent keeps them where they survive the process.
#[derive(Clone, Default)]
pub(super) struct Sessions {
    all: Arc<Mutex<Vec<Session>>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Vec<Session>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self, cwd: AbsolutePath) -> Result<SessionId> {
        let cwd = absolute(cwd)?;
        let mut all = self.lock();
        let id = SessionId::new(format!("session-{}", all.len() + 1));
        all.push(Session::new(id.clone(), cwd));
        Ok(id)
    }

    pub(super) fn list(&self, cwd: Option<&AbsolutePath>) -> Vec<SessionInfo> {
        let all = self.lock();
        let here = all.iter().filter(|session| cwd.is_none_or(|cwd| *cwd == session.cwd));
        here.map(|session| SessionInfo::new(session.id.clone(), session.cwd.clone())).collect()
    }

    pub(super) fn resume(&self, request: ResumeSessionRequest, client: &V2ConnectionTo<Client>) -> Result<()> {
        let replay = match request.replay_from {
            None => false,
            Some(ReplayFrom::Start(_)) => true,
            Some(_) => return Err(Error::invalid_params().data("replay is supported from the start only")),
        };
        let cwd = absolute(request.cwd)?;
        let mut all = self.lock();
        let session = find(&mut all, &request.session_id)?;
        session.cwd = cwd;
        session.resume(replay, client)
    }

    /// A session that is not there is closed.
    pub(super) fn close(&self, id: &SessionId, client: &V2ConnectionTo<Client>) -> Result<()> {
        match find(&mut self.lock(), id) {
            Ok(session) => {
                session.open = false;
                session.cancel(client)
            }
            Err(_) => Ok(()),
        }
    }

    pub(super) fn cancel(&self, id: &SessionId, client: &V2ConnectionTo<Client>) -> Result<()> {
        find(&mut self.lock(), id).map_or(Ok(()), |session| session.cancel(client))
    }

    /// Takes a prompt; the session, if somebody has to begin to work in it.
    pub(super) fn submit(
        &self,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
    ) -> Result<Option<SessionId>> {
        let mut all = self.lock();
        let session = find(&mut all, &request.session_id)?;
        if !session.open {
            return Err(Error::session_not_found(request.session_id.0));
        }
        if request.prompt.is_empty() {
            return Err(Error::invalid_params().data("a prompt needs content"));
        }
        let id = session.id.clone();
        Ok(session.submit(request, responder).then_some(id))
    }

    /// Works the prompts of a session off, in the order in which they came.
    pub(super) async fn work(&self, id: &SessionId, client: &V2ConnectionTo<Client>) -> Result<()> {
        loop {
            let Some(turn) = find(&mut self.lock(), id)?.begin(client)? else { return Ok(()) };
            // Here a real agent thinks; nothing is locked meanwhile.
            tokio::task::yield_now().await;
            let answer = format!("Echo: {}", turn.text);
            find(&mut self.lock(), id)?.end(&turn, answer, client)?;
        }
    }
}

fn find<'a>(all: &'a mut [Session], id: &SessionId) -> Result<&'a mut Session> {
    all.iter_mut().find(|session| session.id == *id).ok_or_else(|| Error::session_not_found(id.0.clone()))
}

fn absolute(cwd: AbsolutePath) -> Result<AbsolutePath> {
    if cwd.0.is_absolute() { Ok(cwd) } else { Err(Error::invalid_params().data("cwd must be an absolute path")) }
}
