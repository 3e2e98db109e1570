//! The nouns and rules of the Agent Client Protocol (ACP): frames, ids, errors, messages, proxy
//! envelopes and the state machines of a connection. No runtime, no clock, no I/O.

pub mod batch;
mod cancel;
mod capability;
mod channel;
mod codec;
mod dialect;
mod error;
#[cfg(feature = "unstable_protocol_v2")]
pub mod fallback;
mod frame;
pub mod handshake;
mod id;
mod inspect;
pub mod limits;
mod malformed;
#[cfg(feature = "unstable_mcp_over_acp")]
pub mod mcp;
mod member;
mod message;
pub mod method;
pub mod negotiate;
mod noise;
mod outbound;
pub mod pending;
mod raw;
mod redact;
mod refusal;
mod role;
mod scan;
pub mod schema;
pub mod selection;
mod slow;
mod span;
mod successor;
mod unhandled;
mod view;

pub use agent_client_protocol_schema as schema_crate;

pub use greenroom_derive::{JsonRpcNotification, JsonRpcRequest, JsonRpcResponse};

pub use batch::Batches;
pub use cancel::is_cancel_request_notification;
pub use capability::{MetaCapability, MetaCapabilityExt};
pub use channel::{BoxFuture, Channel, ConnectionDriver};
#[doc(hidden)]
pub use codec::read_params;
pub use dialect::Dialect;
pub use error::{
    CONNECTION_TERMINATED_REASON, Error, ErrorCode, INCOMING_TRANSPORT_CLOSED_REASON, LocalError, Origin, Result,
    is_connection_terminated, is_incoming_transport_closed,
};
pub use frame::{Frame, FrameKind, Malformed};
pub use id::{RawId, RequestId, request_id};
pub use malformed::{ReplyLimit, malformed_reply};
pub use message::{JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, UntypedMessage};
pub use noise::{Noise, NoiseReport};
pub use outbound::{Outbound, quoted};
pub use raw::{
    RawJsonRpcError, RawJsonRpcMessage, RawJsonRpcParams, RawJsonRpcResponse, TransportBatch, TransportBatchEntry,
    TransportFrame,
};
pub use redact::{Redacted, redacted_json};
pub use refusal::refusal;
pub use role::{RemoteStyle, RoleId};
pub use scan::{Envelope, scan};
pub use span::Span;
pub use successor::Successor;
pub use unhandled::unhandled;

/// What the derive macros need; no part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use serde;
    pub use serde_json;

    pub use crate::codec::{
        expect_method, read_params, read_result, read_result_value, reread_params, result_value, write_params,
        write_result,
    };
}
