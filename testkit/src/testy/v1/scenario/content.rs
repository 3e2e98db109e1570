//! Every stable content block.

use greenroom::Result;
use greenroom::schema::v1::{
    Annotations, AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, ResourceLink, Role, TextContent, TextResourceContents,
};

use crate::testy::root::Root;
use crate::testy::v1::turn::Turn;

/// A transparent picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";
/// A recording of eight bits that are silent.
const WAV: &str = "UklGRiUAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACA";

pub(super) fn run(turn: &Turn) -> Result<()> {
    blocks(&turn.root)?.into_iter().try_for_each(|block| turn.say(block))
}

fn blocks(root: &Root) -> Result<Vec<ContentBlock>> {
    let annotations = Annotations::new().audience(vec![Role::User, Role::Assistant]).priority(0.5);
    let text = TextResourceContents::new("What is in the file.\n", root.uri("testy-input.txt")?);
    let blob = BlobResourceContents::new("AAEC/w==", root.uri("testy-output.txt")?);
    Ok(vec![
        ContentBlock::Text(TextContent::new("Text of its own.").annotations(annotations)),
        ContentBlock::Image(ImageContent::new(PNG, "image/png").uri(root.uri("testy-input.txt")?)),
        ContentBlock::Audio(AudioContent::new(WAV, "audio/wav")),
        ContentBlock::ResourceLink(
            ResourceLink::new("testy-input.txt", root.uri("testy-input.txt")?)
                .title("The input")
                .description("A file of the session")
                .mime_type("text/plain".to_owned())
                .size(21),
        ),
        ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(
            text.mime_type("text/plain".to_owned()),
        ))),
        ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::BlobResourceContents(
            blob.mime_type("application/octet-stream".to_owned()),
        ))),
    ])
}
