//! What an initialize that may end with a lower version gives.

use std::fmt;

use greenroom_protocol::negotiate::Version;
use greenroom_protocol::schema::{ProtocolVersion, v1, v2};
use greenroom_protocol::{Error, JsonRpcMessage, JsonRpcRequest, JsonRpcResponse, Result, UntypedMessage};
use serde_json::Value;

/// The outcome of [`send_initialize`](super::V2ConnectionTo::send_initialize).
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "the documented shape; how large it is depends on features")]
#[non_exhaustive]
pub enum InitializeOutcome {
    /// The agent speaks version 2: the connection is open.
    Initialized(v2::InitializeResponse),
    /// The agent speaks a lower version. The connection stays uninitialized; another implementation
    /// may go on from here.
    LowerVersion(InitializationVersionMismatch),
}

/// An agent selected another version than was asked for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InitializationVersionMismatch {
    /// The version that was asked for.
    pub requested: ProtocolVersion,
    /// The version that the agent selected.
    pub selected: ProtocolVersion,
    /// Its complete answer.
    pub response: SelectedInitializeResponse,
}

impl InitializationVersionMismatch {
    /// A mismatch; the selected version is that of the response.
    #[must_use]
    pub fn new(requested: ProtocolVersion, response: SelectedInitializeResponse) -> Self {
        Self { requested, selected: response.protocol_version(), response }
    }
}

impl fmt::Display for InitializationVersionMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the agent selected protocol version {} instead of {}", self.selected, self.requested)
    }
}

/// An answer to initialize in the form of the version that it selects.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SelectedInitializeResponse {
    /// In the form of version 1.
    V1(v1::InitializeResponse),
}

impl SelectedInitializeResponse {
    /// The version that it selects.
    #[must_use]
    pub fn protocol_version(&self) -> ProtocolVersion {
        match self {
            Self::V1(response) => response.protocol_version,
        }
    }
}

impl JsonRpcResponse for InitializeOutcome {
    fn into_json(self, method: &str) -> Result<Value> {
        match self {
            Self::Initialized(response) => response.into_json(method),
            Self::LowerVersion(InitializationVersionMismatch {
                response: SelectedInitializeResponse::V1(response),
                ..
            }) => response.into_json(method),
        }
    }

    fn from_value(method: &str, value: Value) -> Result<Self> {
        let selected = Version::find(value.to_string().as_bytes()).map(|version| version.number);
        match selected {
            Some(2) => v2::InitializeResponse::from_value(method, value).map(Self::Initialized),
            Some(1) => {
                let response = SelectedInitializeResponse::V1(v1::InitializeResponse::from_value(method, value)?);
                Ok(Self::LowerVersion(InitializationVersionMismatch::new(ProtocolVersion::V2, response)))
            }
            _ => Err(Error::internal_error().data("the agent's initialize result has no version that this side knows")),
        }
    }
}

/// An initialize whose answer may select a lower version.
#[derive(Clone, Debug)]
pub(super) struct Initialize(pub(super) v2::InitializeRequest);

impl JsonRpcMessage for Initialize {
    fn matches_method(method: &str) -> bool {
        v2::InitializeRequest::matches_method(method)
    }

    fn method(&self) -> &str {
        self.0.method()
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage> {
        self.0.to_untyped_message()
    }

    fn parse_message(method: &str, params: &impl serde::Serialize) -> Result<Self> {
        v2::InitializeRequest::parse_message(method, params).map(Self)
    }
}

impl JsonRpcRequest for Initialize {
    type Response = InitializeOutcome;
}
