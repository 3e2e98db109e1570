//! What the application shows. It is no `Send`, as views rarely are.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;

use greenroom::schema::{ContentBlock, SessionUpdate};
use greenroom::{Error, Result};

#[derive(Clone, Default)]
pub(super) struct View {
    updates: Rc<Cell<usize>>,
}

impl View {
    pub(super) fn update(&self, update: SessionUpdate) -> Result<()> {
        self.updates.set(self.updates.get() + 1);
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => match chunk.content {
                ContentBlock::Text(content) => self.line(&format!("{}: {}", self.count(), content.text.trim_end())),
                _ => self.line(&format!("{}: no text", self.count())),
            },
            _ => self.line(&format!("{}: another update", self.count())),
        }
    }

    pub(super) fn line(&self, line: &str) -> Result<()> {
        writeln!(std::io::stdout(), "{line}").map_err(Error::into_internal_error)
    }

    pub(super) fn count(&self) -> usize {
        self.updates.get()
    }
}
