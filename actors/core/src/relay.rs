//! Joining two links: what comes out of one goes into the other.

mod crossing;
mod side;

use greenroom_protocol::Result;

use self::side::Ending;
pub(crate) use self::side::Side;
use crate::connection::RawConnection;
use crate::link::Link;
use crate::options::ConnectionOptions;
use crate::runtime::Node;

/// Relays frames in both directions, unchanged, until both sides have ended.
///
/// Each direction ends by itself, so that a half-closed side still gets its last answers. A side
/// whose driver is done ends both: what it sent is still handed over, and the other side's input is
/// not waited for. A driver that is not done is waited for.
///
/// # Errors
/// The first error of either side. Dropping the future ends both.
pub(crate) async fn join(left: Link, right: Link) -> Result<()> {
    join_until(left, right, std::future::pending()).await
}

/// As [`join`]. When `finish` resolves, what `right` has sent by then is still written to `left`; then
/// `left` is closed, and its input is waited for no longer.
pub(crate) async fn join_until(left: Link, right: Link, finish: impl Future<Output = ()>) -> Result<()> {
    let (node, options) = (Node::root("relay", "relay"), ConnectionOptions::default());
    let left = Side::start(left, &node, "left", &options).await?;
    let right = Side::start(right, &node, "right", &options).await?;
    join_sides(left, right, finish).await
}

/// As [`join_until`], for sides that are running. What waits on either passes on first.
pub(crate) async fn join_sides(mut left: Side, mut right: Side, finish: impl Future<Output = ()>) -> Result<()> {
    right.crossing.up(&left.connection);
    left.crossing.up(&right.connection);
    let both = async {
        tokio::join!(
            ended(&mut left.ending, &left.connection, &right.connection),
            ended(&mut right.ending, &right.connection, &left.connection)
        )
    };
    let mut both = std::pin::pin!(both);
    let (left_result, right_result) = tokio::select! {
        results = &mut both => results,
        () = finish => {
            right.crossing.finish();
            right.connection.stop_input();
            both.await
        }
    };
    left.live.none().await;
    right.live.none().await;
    left_result.and(right_result)?;
    [left.crossing.broken(), right.crossing.broken()].into_iter().flatten().next().map_or(Ok(()), Err)
}

/// Waits for the end of one side and lets the other side end.
async fn ended(ending: &mut Ending, side: &RawConnection, other: &RawConnection) -> Result<()> {
    let result = ending.wait().await;
    if result.is_ok() && !side.is_driven() {
        // Both its directions have ended. Whoever drives the other side may still be at work.
        other.half_close();
    } else {
        other.close();
    }
    result
}
