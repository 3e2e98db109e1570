//! A relay between two channels that shows every message to somebody.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender};
use futures_core::Stream as _;

use crate::channel::Channel;
use crate::error::Result;
use crate::raw::{RawJsonRpcMessage, TransportBatchEntry, TransportFrame};

/// Frames handed on in one go, before the other direction and the rest of the task get their turn.
const TURN: usize = 64;

impl Channel {
    /// Joins two channels, and shows every message to a callback before it passes: what comes from
    /// `left` to the first, what comes from `right` to the second. The messages of a batch are shown
    /// one by one, in order; malformed input is not shown. Frames pass as they are, batches whole.
    ///
    /// Each direction ends on its own: when one side closes, the other one is told, and may still
    /// answer. Resolves when both have ended. Dropping the future closes both.
    ///
    /// # Errors
    /// The first error of a callback. Its message does not pass, and both directions end.
    pub async fn bridge_with_inspection(
        left: Self,
        right: Self,
        mut left_to_right: impl FnMut(&RawJsonRpcMessage) -> Result<()> + Send,
        mut right_to_left: impl FnMut(&RawJsonRpcMessage) -> Result<()> + Send,
    ) -> Result<()> {
        let mut rightward = Direction::new(left.rx, right.tx);
        let mut leftward = Direction::new(right.rx, left.tx);
        poll_fn(|cx| {
            let right = rightward.poll(cx, &mut left_to_right)?;
            let left = leftward.poll(cx, &mut right_to_left)?;
            if right.is_ready() && left.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }
}

/// One direction; `None` when it has ended.
struct Direction(Option<(UnboundedReceiver<TransportFrame>, UnboundedSender<TransportFrame>)>);

impl Direction {
    fn new(from: UnboundedReceiver<TransportFrame>, to: UnboundedSender<TransportFrame>) -> Self {
        Self(Some((from, to)))
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        inspect: &mut impl FnMut(&RawJsonRpcMessage) -> Result<()>,
    ) -> Poll<Result<()>> {
        let Some((from, to)) = &mut self.0 else { return Poll::Ready(Ok(())) };
        for _ in 0..TURN {
            match Pin::new(&mut *from).poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(frame)) => {
                    show(&frame, inspect)?;
                    // A side that reads no more: what is left for it goes nowhere.
                    if to.unbounded_send(frame).is_ok() {
                        continue;
                    }
                }
                Poll::Ready(None) => {}
            }
            self.0 = None;
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn show(frame: &TransportFrame, inspect: &mut impl FnMut(&RawJsonRpcMessage) -> Result<()>) -> Result<()> {
    match frame {
        TransportFrame::Single(message) => inspect(message),
        TransportFrame::Batch(batch) => batch.entries().try_for_each(|entry| match entry {
            TransportBatchEntry::Message(message) => inspect(message),
            TransportBatchEntry::Malformed { .. } => Ok(()),
        }),
        TransportFrame::Malformed { .. } => Ok(()),
    }
}
