//! The agent's messages, as a client shows them.

use greenroom::schema::MaybeUndefined;
use greenroom::schema::v2::{ContentBlock, MessageId, SessionUpdate};

/// Text messages of an agent in the order in which they were first seen.
///
/// Chunks are appended; a snapshot with content replaces what was there, an explicit `null` clears
/// it, and one that only tells other things leaves it alone.
#[derive(Debug, Default)]
pub(super) struct Projection {
    messages: Vec<(MessageId, String)>,
}

impl Projection {
    pub(super) fn apply(&mut self, update: SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.message(chunk.message_id).push_str(text_of(&chunk.content)),
            SessionUpdate::AgentMessage(message) => {
                let text = self.message(message.message_id);
                match message.content {
                    MaybeUndefined::Undefined => {}
                    MaybeUndefined::Null => text.clear(),
                    MaybeUndefined::Value(content) => *text = content.iter().map(text_of).collect(),
                }
            }
            _ => {}
        }
    }

    /// What there is to show.
    pub(super) fn messages(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|(_, text)| text.as_str()).filter(|text| !text.is_empty())
    }

    fn message(&mut self, id: MessageId) -> &mut String {
        let place = self.messages.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            self.messages.push((id, String::new()));
            self.messages.len() - 1
        });
        &mut self.messages[place].1
    }
}

fn text_of(content: &ContentBlock) -> &str {
    match content {
        ContentBlock::Text(content) => &content.text,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use greenroom::schema::v2::{AgentMessage, ContentChunk};

    use super::*;

    fn chunk(id: &'static str, text: &str) -> SessionUpdate {
        SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into(), id))
    }

    fn snapshot(id: &'static str, content: MaybeUndefined<Vec<ContentBlock>>) -> SessionUpdate {
        SessionUpdate::AgentMessage(AgentMessage::new(id).content(content))
    }

    fn shown(updates: impl IntoIterator<Item = SessionUpdate>) -> Vec<String> {
        let mut projection = Projection::default();
        updates.into_iter().for_each(|update| projection.apply(update));
        projection.messages().map(str::to_owned).collect()
    }

    #[test]
    fn interleaved_messages_stay_apart_and_in_their_order() {
        let updates = [chunk("a", "1"), chunk("b", "2"), chunk("a", "3"), chunk("b", "4")];
        assert_eq!(shown(updates), ["13", "24"]);
    }

    #[test]
    fn equal_chunks_are_appended_again() {
        assert_eq!(shown([chunk("a", "x"), chunk("a", "x")]), ["xx"]);
    }

    #[test]
    fn an_update_without_content_only_takes_a_place() {
        let updates = [snapshot("a", MaybeUndefined::Undefined), chunk("b", "2"), chunk("a", "1")];
        assert_eq!(shown(updates), ["1", "2"]);
        assert_eq!(shown([chunk("a", "1"), snapshot("a", MaybeUndefined::Undefined)]), ["1"]);
    }

    #[test]
    fn content_replaces_and_null_clears() {
        let value = |text: &str| MaybeUndefined::Value(vec![text.into()]);
        assert_eq!(shown([chunk("a", "old"), snapshot("a", value("new")), chunk("a", "er")]), ["newer"]);
        assert_eq!(shown([chunk("a", "old"), snapshot("a", MaybeUndefined::Null), chunk("a", "x")]), ["x"]);
        assert_eq!(shown([chunk("a", "old"), snapshot("a", MaybeUndefined::Value(vec![]))]), [] as [&str; 0]);
    }
}
