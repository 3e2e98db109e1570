//! Requests about sessions, but prompts.

use std::path::PathBuf;

use greenroom::schema::v1::{
    CloseSessionRequest, CloseSessionResponse, ContentChunk, DeleteSessionRequest, DeleteSessionResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, NewSessionRequest,
    NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse, SessionInfo, SessionNotification, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use greenroom::{Client, ConnectionTo, Error, Responder, Result};
use serde_json::json;

use super::Testy;
use super::sessions::Speaker;
use crate::testy::root::Root;

/// How many sessions one answer lists; the rest comes with its cursor.
const PAGE: usize = 50;

impl Testy {
    pub(super) fn new_session(
        &self,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        let (root, additional) = directories(request.cwd, request.additional_directories)?;
        let id = self.sessions.open(root, additional);
        let (modes, options) = self
            .sessions
            .with(&id, |session| (session.settings.modes(), session.settings.options(&self.client.lock())))?;
        responder.respond(NewSessionResponse::new(id).modes(modes).config_options(options))
    }

    /// Replays the whole conversation before it answers.
    pub(super) fn load_session(
        &self,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        client: &ConnectionTo<Client>,
    ) -> Result<()> {
        let (root, additional) = directories(request.cwd, request.additional_directories)?;
        self.sessions.reopen(&request.session_id, root, additional)?;
        for (speaker, content) in self.sessions.history(&request.session_id)? {
            let chunk = ContentChunk::new(content);
            let update = match speaker {
                Speaker::User => SessionUpdate::UserMessageChunk(chunk),
                Speaker::Agent => SessionUpdate::AgentMessageChunk(chunk),
            };
            client.send_notification(SessionNotification::new(request.session_id.clone(), update))?;
        }
        let (modes, options) = self.sessions.with(&request.session_id, |session| {
            (session.settings.modes(), session.settings.options(&self.client.lock()))
        })?;
        responder.respond(LoadSessionResponse::new().modes(modes).config_options(options))
    }

    /// Replays nothing.
    pub(super) fn resume_session(
        &self,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        let (root, additional) = directories(request.cwd, request.additional_directories)?;
        self.sessions.reopen(&request.session_id, root, additional)?;
        let (modes, options) = self.sessions.with(&request.session_id, |session| {
            (session.settings.modes(), session.settings.options(&self.client.lock()))
        })?;
        responder.respond(ResumeSessionResponse::new().modes(modes).config_options(options))
    }

    /// Open and closed sessions. The cursor is the number of the last session that was listed.
    pub(super) fn list_sessions(
        &self,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        let after = match request.cursor.as_deref().map(str::parse::<u64>) {
            None => 0,
            Some(Ok(number)) => number,
            Some(Err(_)) => return Err(refused("the cursor is none that was given out")),
        };
        let mut all = self.sessions.pick(|id, session| {
            let here = request.cwd.as_deref().is_none_or(|cwd| cwd == session.root.folder());
            (here && session.number > after).then(|| {
                let info = SessionInfo::new(id.clone(), session.root.folder())
                    .additional_directories(session.additional.clone())
                    .title(format!("Testy session {}", session.number));
                (session.number, info)
            })
        });
        let more = all.len() > PAGE;
        all.truncate(PAGE);
        let cursor = all.last().filter(|_| more).map(|(number, _)| number.to_string());
        let page = all.into_iter().map(|(_, info)| info).collect();
        responder.respond(ListSessionsResponse::new(page).next_cursor(cursor))
    }

    pub(super) fn close_session(
        &self,
        request: CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        self.sessions.close(&request.session_id)?;
        responder.respond(CloseSessionResponse::new())
    }

    pub(super) fn delete_session(
        &self,
        request: DeleteSessionRequest,
        responder: Responder<DeleteSessionResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        self.sessions.delete(&request.session_id)?;
        responder.respond(DeleteSessionResponse::new())
    }

    pub(super) fn set_mode(
        &self,
        request: SetSessionModeRequest,
        responder: Responder<SetSessionModeResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        self.sessions.with(&request.session_id, |session| session.settings.set_mode(&request.mode_id))??;
        responder.respond(SetSessionModeResponse::new())
    }

    pub(super) fn set_config_option(
        &self,
        request: SetSessionConfigOptionRequest,
        responder: Responder<SetSessionConfigOptionResponse>,
        _client: &ConnectionTo<Client>,
    ) -> Result<()> {
        let options = self.sessions.with(&request.session_id, |session| {
            session.settings.set_option(&request)?;
            Ok::<_, Error>(session.settings.options(&self.client.lock()))
        })??;
        responder.respond(SetSessionConfigOptionResponse::new(options))
    }
}

fn directories(cwd: PathBuf, additional: Vec<PathBuf>) -> Result<(Root, Vec<PathBuf>)> {
    if additional.iter().any(|folder| !folder.is_absolute()) {
        return Err(refused("additional directories must be absolute paths"));
    }
    Ok((Root::new(cwd)?, additional))
}

fn refused(reason: &str) -> Error {
    Error::invalid_params().data(json!({ "reason": reason }))
}
