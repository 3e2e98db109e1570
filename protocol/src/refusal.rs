//! What a frame gets that nobody works on: one error for each of its requests.

use bytes::Bytes;

use crate::error::Error;
use crate::frame::{Frame, FrameKind};
use crate::malformed::malformed_reply;
use crate::outbound::Outbound;

/// The answer to a frame of which nothing is served; `error` says why a request is not. A batch
/// gets one array, with a place for each entry that wants an answer, in their order.
///
/// `None` for what is never answered: notifications, responses, noise. The answer to a malformed
/// frame counts against the [`ReplyLimit`](crate::ReplyLimit).
#[must_use]
pub fn refusal(frame: &Frame, error: impl Fn(&Frame) -> Error) -> Option<Outbound> {
    of(frame, &error)
}

fn of(frame: &Frame, error: &impl Fn(&Frame) -> Error) -> Option<Outbound> {
    match frame.kind() {
        FrameKind::Request => {
            let error = Bytes::from(error(frame).to_wire().get().to_owned());
            frame.raw_id().map(|id| Outbound::error(&id, error))
        }
        FrameKind::Batch => {
            let answers: Vec<Outbound> = frame.entries().iter().filter_map(|entry| of(entry, error)).collect();
            (!answers.is_empty()).then(|| Outbound::array(&answers))
        }
        FrameKind::Malformed => malformed_reply(frame),
        FrameKind::Notification | FrameKind::Result | FrameKind::Error | FrameKind::Noise => None,
    }
}
