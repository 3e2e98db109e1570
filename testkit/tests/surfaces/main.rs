//! What the protocol has beside the core of a session: each surface is carried by its type and, byte
//! for byte, by relays; what is acted on is read strictly, what is only shown is read leniently.

mod older;
mod relayed;
mod strictness;
mod typed;
mod with_testy;

mod samples_v1;
#[cfg(feature = "unstable_protocol_v2")]
mod samples_v2;

use greenroom::{JsonRpcMessage, JsonRpcRequest, JsonRpcResponse, Result};
use serde_json::Value;

/// One message of a surface.
pub(crate) struct Sample {
    pub(crate) method: &'static str,
    /// What it says, in the form in which its type writes it.
    pub(crate) params: Value,
    /// What it is answered; `None` for a notification.
    pub(crate) result: Option<Value>,
    pub(crate) from_agent: bool,
    /// Reads the params as their type, and writes them again.
    pub(crate) params_again: fn(&str, &str) -> Result<Vec<u8>>,
    /// The same for the result.
    pub(crate) result_again: fn(&str, &str) -> Result<Vec<u8>>,
}

fn message_again<M: JsonRpcMessage>(method: &str, params: &str) -> Result<Vec<u8>> {
    M::parse_params(method, params)?.params_text()
}

fn response_again<Req: JsonRpcRequest>(method: &str, result: &str) -> Result<Vec<u8>> {
    Req::Response::from_text(method, result)?.into_text(method)
}

pub(crate) fn request<Req: JsonRpcRequest>(
    method: &'static str,
    from_agent: bool,
    params: Value,
    result: Value,
) -> Sample {
    let result = Some(result);
    Sample {
        method,
        params,
        result,
        from_agent,
        params_again: message_again::<Req>,
        result_again: response_again::<Req>,
    }
}

pub(crate) fn notification<M: JsonRpcMessage>(method: &'static str, params: Value) -> Sample {
    let nothing = |_: &str, result: &str| Ok(result.into());
    Sample { method, params, result: None, from_agent: true, params_again: message_again::<M>, result_again: nothing }
}
