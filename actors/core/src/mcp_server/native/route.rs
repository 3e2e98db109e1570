//! The way from an `mcp/message` request to the server that it names.

use std::sync::Arc;

use greenroom_protocol::mcp::{METHOD, Refusal, declared_server, read};
use greenroom_protocol::{Error, RemoteStyle};

use super::operation::unavailable;
use super::registration::Registration;
use super::table::ConnectionServers;
use crate::connection::InboundCall;
use crate::handlers::Delivery;

impl ConnectionServers {
    /// Gives a request to the server that it names, if that is attached to this connection. Any other
    /// message comes back.
    pub(crate) fn take(&self, delivery: Delivery) -> Option<Delivery> {
        match delivery {
            Delivery::Request(call, open) if call.method() == METHOD && !self.is_empty() => {
                match self.named_in(&call) {
                    Some(server) => server.call(call, open),
                    None => return Some(Delivery::Request(call, open)),
                }
                None
            }
            other => Some(other),
        }
    }

    fn named_in(&self, call: &InboundCall) -> Option<Arc<Registration>> {
        let id = declared_server(call.params_text())?;
        self.find(&id).filter(|server| comes_from(call.peer, server.to))
    }
}

/// Whether a message from `peer` comes from the agent, which is at `agent`.
pub(super) fn comes_from(peer: RemoteStyle, agent: RemoteStyle) -> bool {
    agent == peer || agent == RemoteStyle::Counterpart
}

/// The answer to a request that nobody took, if it was for a server: there is none of this name.
pub(crate) fn answer_unclaimed(call: &InboundCall) -> Option<Error> {
    if call.method() != METHOD {
        return None;
    }
    Some(match read(call.params_text()) {
        Err(Refusal::Carrier(error)) => error,
        Ok(_) | Err(Refusal::Inner(_)) => unavailable("no MCP server has this serverId here"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::rebuilt;

    #[test]
    fn what_nobody_takes_has_an_answer_of_its_own() {
        let code = |method: &str, params: &str| {
            let call = rebuilt(method, params.as_bytes()).expect("a call");
            answer_unclaimed(&call).map(|error| i32::from(error.code))
        };
        let complete = r#"{"serverId":"s","requestId":"r","method":"m"}"#;
        assert_eq!(code("mcp/message", complete), Some(-33001));
        assert_eq!(code("mcp/message", r#"{"serverId":"s"}"#), Some(-32602));
        assert_eq!(code("mcp/other", complete), None);
    }
}
