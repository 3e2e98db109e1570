//! The supervised actors below greenroom: the runtime that makes actors survive, the tree of one
//! connection, and the API that applications see.
//!
//! Use the `greenroom` crate; this one exists so that transports can stand on the same actors.

pub mod component;
pub mod link;
pub mod mcp_server;
pub mod role;
pub mod runtime;
pub mod util;

mod builder;
mod close;
mod connection;
mod connection_handle;
mod connection_to;
mod dispatch;
mod drive;
mod exit;
mod handlers;
mod macros;
mod matching;
mod negotiation;
mod options;
mod port;
mod proxy;
mod relay;
mod request;
mod responder;
mod run;
mod session;
mod termination;
#[cfg(feature = "unstable_protocol_v2")]
mod v2;

#[doc(hidden)]
pub use greenroom_protocol::__private;
pub use greenroom_protocol::handshake::ProxyVersions;
pub use greenroom_protocol::schema;
pub use greenroom_protocol::{
    Batches, BoxFuture, CONNECTION_TERMINATED_REASON, Channel, ConnectionDriver, Error, ErrorCode,
    INCOMING_TRANSPORT_CLOSED_REASON, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, LocalError,
    MetaCapability, MetaCapabilityExt, Origin, RawJsonRpcError, RawJsonRpcMessage, RawJsonRpcParams,
    RawJsonRpcResponse, Result, TransportBatch, TransportBatchEntry, TransportFrame, UntypedMessage,
    is_cancel_request_notification, is_connection_terminated, is_incoming_transport_closed,
};

pub use builder::Builder;
pub use close::{HandleConnectionClose, NullClose};
pub use component::{ConnectTo, DynConnectTo};
pub use connection::{OnEnd, Outlet, RawConnection, Wire, outlet_to};
pub use connection_handle::Connection;
pub use connection_to::{ConnectionContext, ConnectionTo, RawConnectionContext};
pub use dispatch::{Dispatch, Handled, IntoHandled};
#[doc(hidden)]
pub use exit::program_name;
pub use handlers::{DynamicHandlerGuard, HandleDispatchFrom, Handlers, NullHandler};
pub use link::LineDirection;
pub use negotiation::{AgentProtocolRouter, ClientProtocolConnector, ProxyProtocolRouter};
pub use options::{ConnectionOptions, ResponderDropPolicy};
pub use port::{EndOfInput, FrameReceiver, FrameSender, Inbound};
pub use request::{PreparedRequest, RequestCancellation, RequestCancellationHandle, SentRequest};
pub use responder::{Responder, ResponseRouter};
pub use role::acp::{Agent, Client, Conductor, Proxy};
pub use role::{HasPeer, RemoteStyle, Role, RoleId, UntypedRole};
pub use run::{ChainRun, NullRun, RunWithConnectionTo};
#[cfg(all(feature = "unstable_protocol_v2", feature = "unstable_session_fork"))]
pub use session::V2ForkSessionBuilder;
#[cfg(feature = "unstable_protocol_v2")]
pub use session::coordination;
pub use session::{
    ActiveSession, Blocking, NonBlocking, RestoreSessionBuilder, RestoredSession, SessionBlockState, SessionBuilder,
    SessionMessage,
};
#[cfg(feature = "unstable_protocol_v2")]
pub use session::{OpenedV2Session, V2ResumeSessionBuilder, V2Session, V2SessionBuilder};
pub use termination::ConnectionTermination;
#[cfg(feature = "unstable_protocol_v2")]
pub use v2::{
    InitializationVersionMismatch, InitializeOutcome, SelectedInitializeResponse, V2Builder, V2ConnectionContext,
    V2ConnectionTo,
};
