//! The nouns and rules of the Agent Client Protocol (ACP): frames, ids, errors, messages, proxy
//! envelopes and the state machines of a connection. No runtime, no clock, no I/O.

mod channel;
mod dialect;
mod error;
mod frame;
mod id;
pub mod limits;
mod message;
pub mod method;
mod outbound;
pub mod pending;
mod raw;
mod role;
mod scan;
mod schema_impls;
mod slow;
mod span;
mod successor;
mod view;

pub use agent_client_protocol_schema as schema_crate;

pub use channel::{BoxFuture, Channel, ConnectionDriver};
pub use dialect::Dialect;
pub use error::{
    CONNECTION_TERMINATED_REASON, Error, ErrorCode, INCOMING_TRANSPORT_CLOSED_REASON, Origin, Result,
    is_connection_terminated, is_incoming_transport_closed,
};
pub use frame::{Frame, FrameKind, Malformed};
pub use id::{RawId, RequestId, request_id};
pub use message::{JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, UntypedMessage, read_params};
pub use outbound::{Outbound, quoted};
pub use raw::{
    RawJsonRpcError, RawJsonRpcMessage, RawJsonRpcParams, RawJsonRpcResponse, TransportBatch, TransportBatchEntry,
    TransportFrame,
};
pub use role::{RemoteStyle, RoleId};
pub use scan::{Envelope, scan};
pub use span::Span;
pub use successor::Successor;
