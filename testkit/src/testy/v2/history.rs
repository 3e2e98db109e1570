//! What was said in a session, within bounds.

use std::collections::VecDeque;

use greenroom::schema::v2::{AgentMessage, ContentBlock, SessionUpdate, UserMessage};

/// What of a conversation is kept at most; the oldest goes first.
const BYTES: usize = 1 << 20;

/// A complete message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    ByUser(String, Vec<ContentBlock>),
    ByAgent(String, Vec<ContentBlock>),
}

#[derive(Debug, Default)]
pub(super) struct History {
    said: VecDeque<Said>,
    bytes: usize,
}

impl History {
    pub(super) fn push(&mut self, said: Said) {
        self.bytes += said.size();
        self.said.push_back(said);
        while self.bytes > BYTES {
            let Some(oldest) = self.said.pop_front() else { break };
            self.bytes -= oldest.size();
        }
    }

    /// The updates that tell it again.
    pub(super) fn replay(&self) -> impl Iterator<Item = SessionUpdate> {
        self.said.iter().cloned().map(Said::update)
    }
}

impl Said {
    pub(super) fn update(self) -> SessionUpdate {
        match self {
            Self::ByUser(id, content) => SessionUpdate::UserMessage(UserMessage::new(id).content(content)),
            Self::ByAgent(id, content) => SessionUpdate::AgentMessage(AgentMessage::new(id).content(content)),
        }
    }

    fn size(&self) -> usize {
        let (Self::ByUser(id, content) | Self::ByAgent(id, content)) = self;
        let blocks = content.iter().map(|block| match block {
            ContentBlock::Text(content) => content.text.len(),
            ContentBlock::ResourceLink(link) => link.uri.len() + link.name.len(),
            // Prompts have no other ones: see `refuse_content`.
            _ => 0,
        });
        size_of::<Self>() + id.len() + blocks.sum::<usize>() + size_of_val(content.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_keeps_the_newest() {
        let mut history = History::default();
        let said = |id: &str, length: usize| Said::ByUser(id.to_owned(), vec!["x".repeat(length).into()]);
        for id in ["a", "b", "c"] {
            history.push(said(id, BYTES / 2 - 1000));
        }
        history.push(Said::ByAgent("d".to_owned(), vec!["the last".into()]));
        let ids: Vec<_> = history
            .replay()
            .map(|update| match update {
                SessionUpdate::UserMessage(message) => message.message_id.0.to_string(),
                SessionUpdate::AgentMessage(message) => message.message_id.0.to_string(),
                other => panic!("a message: {other:?}"),
            })
            .collect();
        assert_eq!(ids, ["b", "c", "d"]);
        history.push(said("e", BYTES));
        assert_eq!((history.replay().count(), history.bytes), (0, 0));
    }
}
