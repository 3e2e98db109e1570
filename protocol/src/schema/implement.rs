//! Macros that implement the message traits, one line a type.

/// Implements [`JsonRpcMessage`](crate::JsonRpcMessage) for a type with one fixed method.
///
/// Methods after the first are further spellings, which are read but never written. `as` names the
/// function that reads params, `foreign` the one that knows those of other generations.
macro_rules! message {
    ($type:ty, $method:expr $(, $other:expr)*) => {
        message!($type as $crate::codec::read_params, $method $(, $other)*);
    };
    ($type:ty as $read:path, $method:expr $(, $other:expr)* $(; foreign $foreign:path)?) => {
        impl $crate::JsonRpcMessage for $type {
            fn matches_method(method: &str) -> bool {
                method == $method $(|| method == $other)*
            }

            fn method(&self) -> &str {
                $method
            }

            fn to_untyped_message(&self) -> $crate::Result<$crate::UntypedMessage> {
                $crate::UntypedMessage::new($method, self)
            }

            fn parse_message(method: &str, params: &impl serde::Serialize) -> $crate::Result<Self> {
                if !Self::matches_method(method) {
                    return Err($crate::Error::method_not_found().data(method.to_owned()));
                }
                $read(&serde_json::to_string(params).map_err($crate::Error::into_internal_error)?)
            }

            fn parse_params(method: &str, params: &str) -> $crate::Result<Self> {
                if !Self::matches_method(method) {
                    return Err($crate::Error::method_not_found().data(method.to_owned()));
                }
                $read(params)
            }

            fn params_text(&self) -> $crate::Result<Vec<u8>> {
                $crate::codec::write_params(self)
            }

            $(fn is_foreign(method: &str, params: &str) -> bool {
                Self::matches_method(method) && $foreign(params)
            })?
        }
    };
}

/// Implements [`JsonRpcResponse`](crate::JsonRpcResponse) for a serde type. `as` names the functions
/// that read it from text and from a value.
macro_rules! response {
    ($type:ty) => {
        response!($type as ($crate::codec::read_result, $crate::codec::read_result_value));
    };
    ($type:ty as ($text:path, $value:path)) => {
        impl $crate::JsonRpcResponse for $type {
            fn into_json(self, _method: &str) -> $crate::Result<serde_json::Value> {
                $crate::codec::result_value(&self)
            }

            fn from_value(_method: &str, value: serde_json::Value) -> $crate::Result<Self> {
                $value(value)
            }

            fn from_text(_method: &str, text: &str) -> $crate::Result<Self> {
                $text(text)
            }

            fn into_text(self, _method: &str) -> $crate::Result<Vec<u8>> {
                $crate::codec::write_result(&self)
            }
        }
    };
}

/// Implements request and response traits for a pair of types.
macro_rules! request {
    ($type:ty => $response:ty, $method:expr $(, $other:expr)*) => {
        request!(
            $type => $response as ($crate::codec::read_result, $crate::codec::read_result_value),
            $method $(, $other)*
        );
    };
    ($type:ty => $response:ty as ($text:path, $value:path), $method:expr $(, $other:expr)*) => {
        message!($type, $method $(, $other)*);
        response!($response as ($text, $value));
        impl $crate::JsonRpcRequest for $type {
            type Response = $response;
        }
    };
}

/// Implements the notification traits.
macro_rules! notification {
    ($type:ty, $method:expr $(, $other:expr)*) => {
        notification!($type as $crate::codec::read_params, $method $(, $other)*);
    };
    ($type:ty as $read:path, $method:expr $(, $other:expr)* $(; foreign $foreign:path)?) => {
        message!($type as $read, $method $(, $other)* $(; foreign $foreign)?);
        impl $crate::JsonRpcNotification for $type {}
    };
}

/// Implements the traits for the types of extension methods, whose names start with `_`.
///
/// The legacy spellings of the proxy methods start with `_` too, but are no extensions.
macro_rules! extension {
    ($request:ty, $notification:ty, $response:ty) => {
        extension!(@message $request);
        extension!(@message $notification);
        response!($response);
        impl $crate::JsonRpcRequest for $request {
            type Response = $response;
        }
        impl $crate::JsonRpcNotification for $notification {}
    };
    (@message $type:ty) => {
        impl $crate::JsonRpcMessage for $type {
            fn matches_method(method: &str) -> bool {
                $crate::schema::implement::is_extension(method)
            }

            fn method(&self) -> &str {
                &self.method
            }

            fn to_untyped_message(&self) -> $crate::Result<$crate::UntypedMessage> {
                $crate::UntypedMessage::new(&self.method, &self.params)
            }

            fn parse_message(method: &str, params: &impl serde::Serialize) -> $crate::Result<Self> {
                let text = serde_json::to_string(params).map_err($crate::Error::into_internal_error)?;
                Self::parse_params(method, &text)
            }

            fn parse_params(method: &str, params: &str) -> $crate::Result<Self> {
                if !Self::matches_method(method) {
                    return Err($crate::Error::method_not_found().data(method.to_owned()));
                }
                Ok(Self::new(method, $crate::codec::read_params(params)?))
            }

            fn params_text(&self) -> $crate::Result<Vec<u8>> {
                $crate::codec::write_params(&self.params)
            }
        }
    };
}

/// Implements the traits for the untyped successor envelopes of the schema crate. They are read in
/// both dialects and written in the modern one, to which they belong.
macro_rules! successor {
    ($request:ty, $notification:ty, $response:ty) => {
        request!(
            $request => $response,
            $crate::Dialect::Modern.successor(),
            $crate::Dialect::Legacy.successor()
        );
        notification!(
            $notification,
            $crate::Dialect::Modern.successor(),
            $crate::Dialect::Legacy.successor()
        );
    };
}

pub(super) use {extension, message, notification, request, response, successor};

/// Whether the method is an extension of the protocol.
pub(super) fn is_extension(method: &str) -> bool {
    use crate::dialect::Dialect;
    method.starts_with('_') && Dialect::of_initialize(method).is_none() && Dialect::of_successor(method).is_none()
}
