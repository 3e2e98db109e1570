//! The messages between a conductor and its proxies.
//!
//! They are read in both dialects and written in the legacy one. Proxies and the conductor of this
//! workspace put envelopes around messages themselves, in the spelling of the hop; these types are
//! for code that plays one of the two by hand.

use agent_client_protocol_schema::v1;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::implement::message;
use crate::codec;
use crate::dialect::Dialect;
use crate::error::{Error, Result};
use crate::message::{JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, UntypedMessage};

/// The method that initialises a component as a proxy.
pub const METHOD_INITIALIZE_PROXY: &str = Dialect::Legacy.initialize();

/// The method of the envelope around messages to and from a proxy's successor.
pub const METHOD_SUCCESSOR_MESSAGE: &str = Dialect::Legacy.successor();

/// Initialises a component as a proxy: the params and the response of an ordinary initialize. Read in
/// both spellings, sent as `_proxy/initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InitializeProxyRequest {
    /// The initialize params.
    pub initialize: v1::InitializeRequest,
}

impl InitializeProxyRequest {
    /// A request with these initialize params.
    #[must_use]
    pub fn new(initialize: v1::InitializeRequest) -> Self {
        Self { initialize }
    }
}

impl From<v1::InitializeRequest> for InitializeProxyRequest {
    fn from(initialize: v1::InitializeRequest) -> Self {
        Self { initialize }
    }
}

message!(InitializeProxyRequest, METHOD_INITIALIZE_PROXY, Dialect::Modern.initialize());

impl JsonRpcRequest for InitializeProxyRequest {
    type Response = v1::InitializeResponse;
}

/// The proxy messages of protocol version 2.
#[cfg(feature = "unstable_protocol_v2")]
pub(super) mod v2 {
    use agent_client_protocol_schema::v2;
    use serde::{Deserialize, Serialize};

    use super::{Dialect, JsonRpcRequest, METHOD_INITIALIZE_PROXY, message};

    /// Initialises a component as a proxy: the params and the response of an ordinary initialize.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct InitializeProxyRequest {
        /// The initialize params.
        pub initialize: v2::InitializeRequest,
    }

    impl InitializeProxyRequest {
        /// A request with these initialize params.
        #[must_use]
        pub fn new(initialize: v2::InitializeRequest) -> Self {
            Self { initialize }
        }
    }

    impl From<v2::InitializeRequest> for InitializeProxyRequest {
        fn from(initialize: v2::InitializeRequest) -> Self {
            Self { initialize }
        }
    }

    message!(InitializeProxyRequest, METHOD_INITIALIZE_PROXY, Dialect::Modern.initialize());

    impl JsonRpcRequest for InitializeProxyRequest {
        type Response = v2::InitializeResponse;
    }
}

/// A message to or from a proxy's successor, in its envelope.
///
/// It matches any successor envelope, in both spellings; parsing fails with `-32601` when the message
/// inside is of another type. So a handler for one `M` refuses all other envelopes: use
/// `SuccessorMessage<UntypedMessage>`, or handlers for a logical peer, which need no envelope. It is
/// sent as `_proxy/successor`, whatever the hop speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct SuccessorMessage<M: JsonRpcMessage> {
    /// The message inside.
    pub message: M,
    /// The metadata of the envelope, valid on this hop only.
    pub meta: Option<Value>,
}

/// How the params of an envelope are read. Metadata that is no object is ignored.
#[derive(Deserialize)]
struct Envelope<'a> {
    method: String,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(rename = "_meta", alias = "meta", default)]
    meta: Value,
}

/// How they are written: always with params, null when the message has none, because released
/// readers lose an envelope without the member.
#[derive(Serialize)]
struct Written<'a> {
    method: &'a str,
    params: Option<&'a RawValue>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Value>,
}

impl<M: JsonRpcMessage> SuccessorMessage<M> {
    /// Hands the params of the envelope to `write`.
    fn write<T>(&self, write: impl FnOnce(&Written<'_>) -> Result<T>) -> Result<T> {
        let text = String::from_utf8(self.message.params_text()?).map_err(Error::into_internal_error)?;
        let params =
            if text.is_empty() { None } else { Some(RawValue::from_string(text).map_err(Error::into_internal_error)?) };
        write(&Written { method: self.message.method(), params: params.as_deref(), meta: self.meta.as_ref() })
    }
}

impl<M: JsonRpcMessage> JsonRpcMessage for SuccessorMessage<M> {
    fn matches_method(method: &str) -> bool {
        Dialect::of_successor(method).is_some()
    }

    fn method(&self) -> &str {
        METHOD_SUCCESSOR_MESSAGE
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage> {
        self.write(|params| UntypedMessage::new(METHOD_SUCCESSOR_MESSAGE, params))
    }

    fn parse_message(method: &str, params: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_string(params).map_err(Error::into_internal_error)?;
        Self::parse_params(method, &text)
    }

    fn parse_params(method: &str, params: &str) -> Result<Self> {
        if !Self::matches_method(method) {
            return Err(Error::method_not_found().data(method.to_owned()));
        }
        let envelope: Envelope<'_> = serde_json::from_str(params).map_err(|error| {
            Error::invalid_params().data(serde_json::json!({ "error": error.to_string(), "phase": "deserialization" }))
        })?;
        if !M::matches_method(&envelope.method) {
            return Err(Error::method_not_found().data(envelope.method));
        }
        let inner = envelope.params.map_or("null", RawValue::get);
        let message = M::parse_params(&envelope.method, inner)?;
        Ok(Self { message, meta: Some(envelope.meta).filter(Value::is_object) })
    }

    fn params_text(&self) -> Result<Vec<u8>> {
        self.write(|params| codec::write_params(params))
    }
}

impl<M: JsonRpcRequest> JsonRpcRequest for SuccessorMessage<M> {
    type Response = M::Response;
}

impl<M: JsonRpcNotification> JsonRpcNotification for SuccessorMessage<M> {}
