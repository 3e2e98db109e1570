//! Derive macros for messages of the Agent Client Protocol.
//!
//! The crates `greenroom`, `greenroom-actors` and `greenroom-protocol` re-export these macros
//! beside the traits of the same name; depend on one of those instead of on this crate.
//!
//! ```text
//! use greenroom::{JsonRpcNotification, JsonRpcRequest, JsonRpcResponse};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
//! #[request(method = "_acme/search", response = Page<T>)]
//! struct Search<T> {
//!     filter: T,
//! }
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
//! struct Page<T> {
//!     items: Vec<T>,
//! }
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, JsonRpcNotification)]
//! #[notification(method = "_acme/progress")]
//! struct Progress {
//!     percent: u8,
//! }
//! ```

mod attributes;
mod expand;
mod locate;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `JsonRpcMessage` and `JsonRpcRequest`.
///
/// Needs `#[request(method = "…", response = Type)]`; `method` may be any expression of type
/// `&'static str`, `response` any type that implements `JsonRpcResponse`. The deriving type needs
/// `Debug`, `Clone`, `Serialize` and `Deserialize`.
///
/// `crate = path` inside the attribute names the crate that has the traits, where it cannot be
/// found from the manifest (a macro of a third crate, for example).
#[proc_macro_derive(JsonRpcRequest, attributes(request))]
pub fn json_rpc_request(input: TokenStream) -> TokenStream {
    finish(expand::request(&parse_macro_input!(input as DeriveInput)))
}

/// Implements `JsonRpcMessage` and `JsonRpcNotification`.
///
/// Needs `#[notification(method = "…")]`; otherwise as for `JsonRpcRequest`.
#[proc_macro_derive(JsonRpcNotification, attributes(notification))]
pub fn json_rpc_notification(input: TokenStream) -> TokenStream {
    finish(expand::notification(&parse_macro_input!(input as DeriveInput)))
}

/// Implements `JsonRpcResponse`.
///
/// Needs no attribute; `#[response(crate = path)]` names the crate that has the trait.
#[proc_macro_derive(JsonRpcResponse, attributes(response))]
pub fn json_rpc_response(input: TokenStream) -> TokenStream {
    finish(expand::response(&parse_macro_input!(input as DeriveInput)))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
