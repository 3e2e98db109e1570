//! Tool calls from their beginning to their end.

use std::sync::Arc;

use greenroom::Result;
use greenroom::schema::v1::{
    Content, ContentBlock, Diff, SessionUpdate, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::json;

use crate::testy::root::Root;
use crate::testy::v1::turn::Turn;

pub(super) fn run(turn: &Turn) -> Result<()> {
    let good = edit(&turn.root, &turn.id("edit"))?;
    good.into_iter().chain(failure(&turn.id("fetch"))).try_for_each(|update| turn.update(update))
}

/// A call that reads one file and changes another.
fn edit(root: &Root, id: &Arc<str>) -> Result<Vec<SessionUpdate>> {
    let (input, output) = (root.file("testy-input.txt")?, root.file("testy-output.txt")?);
    let call = ToolCall::new(id.clone(), "Copy the input")
        .name("testy_copy")
        .kind(ToolKind::Edit)
        .status(ToolCallStatus::Pending)
        .locations(vec![ToolCallLocation::new(&input).line(1)])
        .raw_input(json!({ "from": input, "to": output }));
    let running = ToolCallUpdateFields::new()
        .status(ToolCallStatus::InProgress)
        .content(vec![ToolCallContent::Content(Content::new(ContentBlock::from("Copying.")))]);
    let diff = Diff::new(&output, "new line\n").old_text("old line\n".to_owned());
    let done = ToolCallUpdateFields::new()
        .status(ToolCallStatus::Completed)
        .content(vec![ToolCallContent::Diff(diff)])
        .locations(vec![ToolCallLocation::new(&input).line(1), ToolCallLocation::new(&output)])
        .raw_output(json!({ "lines": 1 }));
    Ok(vec![
        SessionUpdate::ToolCall(call),
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), running)),
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), done)),
    ])
}

/// A call that does not work.
fn failure(id: &Arc<str>) -> [SessionUpdate; 2] {
    let call = ToolCall::new(id.clone(), "Fetch nothing").name("testy_fetch").kind(ToolKind::Fetch);
    let failed = ToolCallUpdateFields::new()
        .status(ToolCallStatus::Failed)
        .content(vec![ToolCallContent::Content(Content::new(ContentBlock::from("There is nothing to fetch.")))]);
    [
        SessionUpdate::ToolCall(call.status(ToolCallStatus::InProgress)),
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), failed)),
    ]
}
