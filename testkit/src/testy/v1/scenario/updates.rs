//! Every stable variant of `session/update`.

use std::sync::Arc;

use greenroom::Result;
use greenroom::schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ClientCapabilities, CompactionStatus,
    CompactionSummaryChunk, CompactionUpdate, ConfigOptionUpdate, ContentChunk, Cost, CurrentModeUpdate, MessageId,
    Notice, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, PlanRemoved, PlanUpdate,
    PlanUpdateContent, RunningStateUpdate, SessionId, SessionInfoUpdate, SessionMessage, SessionMessageChunk,
    SessionUpdate, StateUpdate, SubagentUpdate, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    UnstructuredCommandInput, UsageUpdate,
};

use crate::testy::v1::settings::Settings;
use crate::testy::v1::turn::Turn;

pub(super) fn run(turn: &Turn) -> Result<()> {
    for update in always(&turn.settings, &turn.capabilities, &turn.id("update")) {
        turn.update(update)?;
    }
    for update in for_capable(&turn.session, &turn.capabilities, &turn.id("update")) {
        turn.update(update)?;
    }
    Ok(())
}

/// What every client gets. `id` names whatever needs a name.
fn always(settings: &Settings, client: &ClientCapabilities, id: &Arc<str>) -> Vec<SessionUpdate> {
    let chunk = |text: &str| ContentChunk::new(text.into()).message_id(MessageId::new(format!("{id}-{text}")));
    let tool =
        ToolCall::new(id.clone(), "A tool call among updates").name("testy_update").status(ToolCallStatus::Pending);
    let done = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
    let commands = vec![
        AvailableCommand::new("help", "List the commands"),
        AvailableCommand::new("echo", "Say a message")
            .input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new("message"))),
    ];
    vec![
        SessionUpdate::UserMessageChunk(chunk("user")),
        SessionUpdate::AgentMessageChunk(chunk("agent")),
        SessionUpdate::AgentThoughtChunk(chunk("thought")),
        SessionUpdate::ToolCall(tool),
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), done)),
        SessionUpdate::Plan(Plan::new(entries())),
        SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands)),
        SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(settings.mode())),
        SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(settings.options(client))),
        SessionUpdate::SessionInfoUpdate(
            SessionInfoUpdate::new().title("Every update").updated_at("2026-01-01T00:00:00Z"),
        ),
        SessionUpdate::UsageUpdate(UsageUpdate::new(1_000, 200_000).cost(Cost::new(0.25, "USD"))),
    ]
}

/// What a client gets that has the capability for it.
fn for_capable(session: &SessionId, client: &ClientCapabilities, id: &Arc<str>) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    let features = client.session.clone().unwrap_or_default();
    if features.notices.is_some() {
        let notice = Notice::new(NoticeSeverity::Info, "A notice").description("Nothing happened.");
        updates.push(SessionUpdate::Notice(notice));
    }
    if features.compaction.is_some() {
        let begin = CompactionUpdate::new(id.clone(), CompactionStatus::InProgress);
        let summary = CompactionSummaryChunk::new(id.clone(), "What was said, in short.".into());
        let end = CompactionUpdate::new(id.clone(), CompactionStatus::Completed);
        updates.push(SessionUpdate::CompactionUpdate(begin));
        updates.push(SessionUpdate::CompactionSummaryChunk(summary));
        updates.push(SessionUpdate::CompactionUpdate(end));
    }
    if client.plan.is_some() {
        let items = PlanUpdate::new(PlanUpdateContent::items(id.clone(), entries()));
        let markdown = PlanUpdate::new(PlanUpdateContent::markdown(id.clone(), "1. Look\n2. Leap\n"));
        updates.push(SessionUpdate::PlanUpdate(items));
        updates.push(SessionUpdate::PlanUpdate(markdown));
        updates.push(SessionUpdate::PlanRemoved(PlanRemoved::new(id.clone())));
    }
    if client.subagents.is_some() {
        let child = SessionId::new(format!("{}-{id}", session.0));
        let subagent = SubagentUpdate::new(child.clone())
            .title("A subagent")
            .state(StateUpdate::Running(RunningStateUpdate::new()));
        let message = SessionMessage::new(id.clone()).sender_session_id(session.clone()).recipient_session_id(child);
        let chunk = SessionMessageChunk::new(id.clone(), "To the subagent.".into());
        updates.push(SessionUpdate::SubagentUpdate(subagent));
        updates.push(SessionUpdate::SessionMessage(message));
        updates.push(SessionUpdate::SessionMessageChunk(chunk));
    }
    updates
}

fn entries() -> Vec<PlanEntry> {
    vec![
        PlanEntry::new("Look", PlanEntryPriority::High, PlanEntryStatus::Completed),
        PlanEntry::new("Think", PlanEntryPriority::Medium, PlanEntryStatus::InProgress),
        PlanEntry::new("Leap", PlanEntryPriority::Low, PlanEntryStatus::Pending),
    ]
}
