//! Every built-in limit of the protocol layer, with its unit and where it comes from.

/// Longest frame accepted from a physical transport, in bytes: 64 MiB.
///
/// Far above real traffic (images travel as base64 blocks of a few MiB), far below what would
/// hurt a host. A line that grows beyond it ends the transport with a typed overflow.
pub const MAX_FRAME: usize = 64 * 1024 * 1024;

/// Nesting that the fast scanner follows without allocating; deeper frames take the slow path.
pub const FAST_DEPTH: usize = 256;

/// Replies to unparseable input that one connection sends in one minute.
///
/// Two peers that answer each other's errors could otherwise go on for ever.
pub const MALFORMED_REPLIES_PER_MINUTE: u32 = 60;

/// Entries that a batch may have, in messages. A longer one is refused as a whole.
///
/// An entry can be two bytes on the wire and hundreds in memory; without a limit one frame of
/// [`MAX_FRAME`] could claim gigabytes. Real batches have a handful of entries.
pub const MAX_BATCH_ENTRIES: usize = 65_536;
