//! What makes a Rust type a message of the protocol.

use std::fmt::Debug;

use serde::Serialize;
use serde_json::Value;

use crate::codec;
use crate::error::{Error, Result};

/// A request or notification type: it knows its method and how to read its params.
///
/// Params are an object, an array or absent (JSON-RPC 2.0 §4.2); null stands for absent. An
/// implementation by hand needs the four methods without a default. The others are short cuts from
/// and to JSON text, and must say the same.
pub trait JsonRpcMessage: 'static + Debug + Sized + Send + Clone {
    /// Whether this type can be read from a message with this method. Must depend on nothing but
    /// the method: the answer is remembered.
    fn matches_method(method: &str) -> bool;

    /// The method of this message.
    fn method(&self) -> &str;

    /// The message with its params as a value.
    ///
    /// # Errors
    /// `-32603` when the params cannot be serialised.
    fn to_untyped_message(&self) -> Result<UntypedMessage>;

    /// Reads a message from its method and params.
    ///
    /// # Errors
    /// `-32601` for a method of another type, `-32602` when the params do not fit.
    fn parse_message(method: &str, params: &impl Serialize) -> Result<Self>;

    /// Reads a message from the exact JSON text of its params (`null` when there are none).
    ///
    /// Types of this crate and derived types read the text in one pass; others go through
    /// [`parse_message`](Self::parse_message).
    ///
    /// # Errors
    /// As [`parse_message`](Self::parse_message).
    fn parse_params(method: &str, params: &str) -> Result<Self> {
        let value: Value = codec::read_params(params)?;
        Self::parse_message(method, &value)
    }

    /// The JSON text of the params; empty for none.
    ///
    /// # Errors
    /// `-32603` when the params cannot be serialised, or are neither an object, an array nor null.
    fn params_text(&self) -> Result<Vec<u8>> {
        codec::write_params(&self.to_untyped_message()?.params)
    }

    /// Whether params that cannot be read as this type belong to another generation of the
    /// protocol. Such a notification is not malformed: it goes on to later handlers as it came, and
    /// a relay passes it on.
    #[doc(hidden)]
    fn is_foreign(_method: &str, _params: &str) -> bool {
        false
    }
}

/// A message that is answered.
///
/// The derive macro of the same name implements it together with [`JsonRpcMessage`]:
///
/// ```
/// use greenroom_protocol::{JsonRpcMessage, JsonRpcRequest, JsonRpcResponse};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
/// #[request(method = "_acme/search", response = Page<T>)]
/// struct Search<T> {
///     filter: T,
/// }
///
/// #[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
/// struct Page<T> {
///     items: Vec<T>,
/// }
///
/// assert_eq!(Search { filter: 1 }.method(), "_acme/search");
/// ```
pub trait JsonRpcRequest: JsonRpcMessage {
    /// The type of a successful answer.
    type Response: JsonRpcResponse;
}

/// A message that is not answered (JSON-RPC 2.0 §4.1), not even with an error.
pub trait JsonRpcNotification: JsonRpcMessage {}

/// The result of a request: any JSON value (JSON-RPC 2.0 §5). `method` is that of the request, for
/// types that stand for several.
pub trait JsonRpcResponse: 'static + Debug + Sized + Send + Clone {
    /// The result as a value.
    ///
    /// # Errors
    /// `-32603` when it cannot be serialised.
    fn into_json(self, method: &str) -> Result<Value>;

    /// Reads a result.
    ///
    /// # Errors
    /// `-32700` when the value does not fit the type.
    fn from_value(method: &str, value: Value) -> Result<Self>;

    /// Reads a result from its exact JSON text.
    ///
    /// # Errors
    /// As [`from_value`](Self::from_value).
    fn from_text(method: &str, text: &str) -> Result<Self> {
        Self::from_value(method, codec::read_result(text)?)
    }

    /// The JSON text of the result.
    ///
    /// # Errors
    /// `-32603` when it cannot be serialised.
    fn into_text(self, method: &str) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.into_json(method)?).map_err(Error::into_internal_error)
    }
}

impl JsonRpcResponse for Value {
    fn into_json(self, _method: &str) -> Result<Value> {
        Ok(self)
    }

    fn from_value(_method: &str, value: Value) -> Result<Self> {
        Ok(value)
    }
}

/// A message of any method, with its params as a value. It matches every method, so a handler for it
/// takes everything of its kind.
///
/// `Debug` shows the params: do not log it.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
pub struct UntypedMessage {
    /// The method.
    pub method: String,
    /// The params; null when there are none.
    pub params: Value,
}

impl UntypedMessage {
    /// A message with these params. Whether they may be sent (an object, an array or null) is checked
    /// when they are.
    ///
    /// # Errors
    /// `-32603` when the params cannot be serialised.
    pub fn new(method: &str, params: impl Serialize) -> Result<Self> {
        let params = serde_json::to_value(params).map_err(Error::into_internal_error)?;
        Ok(Self { method: method.to_owned(), params })
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The params; null when there are none.
    #[must_use]
    pub fn params(&self) -> &Value {
        &self.params
    }

    /// Method and params by value.
    #[must_use]
    pub fn into_parts(self) -> (String, Value) {
        (self.method, self.params)
    }
}

impl JsonRpcMessage for UntypedMessage {
    fn matches_method(_method: &str) -> bool {
        true
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage> {
        Ok(self.clone())
    }

    fn parse_message(method: &str, params: &impl Serialize) -> Result<Self> {
        Self::new(method, params)
    }
}

impl JsonRpcRequest for UntypedMessage {
    type Response = Value;
}

impl JsonRpcNotification for UntypedMessage {}
