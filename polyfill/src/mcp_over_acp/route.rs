//! The path under which a server is reached.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const PREFIX: &str = "mcp-";

/// The longest path segment that the endpoint looks at.
pub const ROUTE_LIMIT: usize = 4096;

/// The path segment of a server: its id may hold any characters, a path may not.
#[must_use]
pub fn route(server_id: &str) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(server_id))
}

/// The server whose path segment this is. `None` for what [`route`] never makes: a wrong prefix,
/// a second spelling of the same bytes, bytes that are no text, or more than [`ROUTE_LIMIT`].
#[must_use]
pub fn server_of_route(segment: &str) -> Option<String> {
    if segment.len() > ROUTE_LIMIT {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(segment.strip_prefix(PREFIX)?).ok()?;
    String::from_utf8(bytes).ok()
}
