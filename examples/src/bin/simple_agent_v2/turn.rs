//! One prompt that is worked on.

use greenroom::schema::v2::ContentBlock;

pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) text: String,
}

impl Turn {
    pub(super) fn new(number: u64, prompt: &[ContentBlock]) -> Self {
        let texts = prompt.iter().filter_map(|block| match block {
            ContentBlock::Text(content) => Some(content.text.as_str()),
            _ => None,
        });
        Self { number, text: texts.collect::<Vec<_>>().join(" ") }
    }
}
