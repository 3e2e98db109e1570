//! The message traits for every type of the schema crate.
//!
//! One line a type; features that the schema gates are gated alike in the crates that turn them on.

use agent_client_protocol_schema::{ProtocolVersion, v1};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::message::{
    JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, UntypedMessage, read_params,
};

// `ProtocolVersion` is part of every initialize message; named here so that the import documents it.
const _: Option<ProtocolVersion> = None;

/// Implements [`JsonRpcMessage`] for a type with one fixed method.
macro_rules! message {
    ($type:ty, $method:expr) => {
        impl JsonRpcMessage for $type {
            fn matches_method(method: &str) -> bool {
                method == $method
            }

            fn method(&self) -> &str {
                $method
            }

            fn to_untyped_message(&self) -> Result<UntypedMessage> {
                UntypedMessage::new($method, self)
            }

            fn parse_message(method: &str, params: &impl Serialize) -> Result<Self> {
                let text = serde_json::to_string(params).map_err(Error::into_internal_error)?;
                Self::parse_params(method, &text)
            }

            fn parse_params(method: &str, params: &str) -> Result<Self> {
                if method != $method {
                    return Err(Error::method_not_found().data(method.to_owned()));
                }
                read_params(params)
            }

            fn params_text(&self) -> Result<Vec<u8>> {
                serde_json::to_vec(self).map_err(Error::into_internal_error)
            }
        }
    };
}

/// Implements [`JsonRpcResponse`] for a serde type.
macro_rules! response {
    ($type:ty) => {
        impl JsonRpcResponse for $type {
            fn into_json(self, _method: &str) -> Result<Value> {
                serde_json::to_value(self).map_err(Error::into_internal_error)
            }

            fn from_value(_method: &str, value: Value) -> Result<Self> {
                serde_json::from_value(value).map_err(|error| Error::parse_error().data(error.to_string()))
            }

            fn from_text(_method: &str, text: &str) -> Result<Self> {
                serde_json::from_str(text).map_err(|error| Error::parse_error().data(error.to_string()))
            }

            fn into_text(self, _method: &str) -> Result<Vec<u8>> {
                serde_json::to_vec(&self).map_err(Error::into_internal_error)
            }
        }
    };
}

macro_rules! request {
    ($type:ty => $response:ty, $method:expr) => {
        message!($type, $method);
        response!($response);
        impl JsonRpcRequest for $type {
            type Response = $response;
        }
    };
}

macro_rules! notification {
    ($type:ty, $method:expr) => {
        message!($type, $method);
        impl JsonRpcNotification for $type {}
    };
}

request!(v1::InitializeRequest => v1::InitializeResponse, v1::AGENT_METHOD_NAMES.initialize);
request!(v1::AuthenticateRequest => v1::AuthenticateResponse, v1::AGENT_METHOD_NAMES.authenticate);
request!(v1::LogoutRequest => v1::LogoutResponse, v1::AGENT_METHOD_NAMES.logout);
request!(v1::NewSessionRequest => v1::NewSessionResponse, v1::AGENT_METHOD_NAMES.session_new);
request!(v1::LoadSessionRequest => v1::LoadSessionResponse, v1::AGENT_METHOD_NAMES.session_load);
request!(v1::ListSessionsRequest => v1::ListSessionsResponse, v1::AGENT_METHOD_NAMES.session_list);
request!(v1::DeleteSessionRequest => v1::DeleteSessionResponse, v1::AGENT_METHOD_NAMES.session_delete);
request!(v1::ResumeSessionRequest => v1::ResumeSessionResponse, v1::AGENT_METHOD_NAMES.session_resume);
request!(v1::CloseSessionRequest => v1::CloseSessionResponse, v1::AGENT_METHOD_NAMES.session_close);
request!(v1::SetSessionModeRequest => v1::SetSessionModeResponse, v1::AGENT_METHOD_NAMES.session_set_mode);
request!(v1::SetSessionConfigOptionRequest => v1::SetSessionConfigOptionResponse, v1::AGENT_METHOD_NAMES.session_set_config_option);
request!(v1::PromptRequest => v1::PromptResponse, v1::AGENT_METHOD_NAMES.session_prompt);
request!(v1::RequestPermissionRequest => v1::RequestPermissionResponse, v1::CLIENT_METHOD_NAMES.session_request_permission);
request!(v1::WriteTextFileRequest => v1::WriteTextFileResponse, v1::CLIENT_METHOD_NAMES.fs_write_text_file);
request!(v1::ReadTextFileRequest => v1::ReadTextFileResponse, v1::CLIENT_METHOD_NAMES.fs_read_text_file);
request!(v1::CreateTerminalRequest => v1::CreateTerminalResponse, v1::CLIENT_METHOD_NAMES.terminal_create);
request!(v1::TerminalOutputRequest => v1::TerminalOutputResponse, v1::CLIENT_METHOD_NAMES.terminal_output);
request!(v1::WaitForTerminalExitRequest => v1::WaitForTerminalExitResponse, v1::CLIENT_METHOD_NAMES.terminal_wait_for_exit);
request!(v1::KillTerminalRequest => v1::KillTerminalResponse, v1::CLIENT_METHOD_NAMES.terminal_kill);
request!(v1::ReleaseTerminalRequest => v1::ReleaseTerminalResponse, v1::CLIENT_METHOD_NAMES.terminal_release);
request!(v1::CreateElicitationRequest => v1::CreateElicitationResponse, v1::CLIENT_METHOD_NAMES.elicitation_create);

notification!(v1::CancelNotification, v1::AGENT_METHOD_NAMES.session_cancel);
notification!(v1::SessionNotification, v1::CLIENT_METHOD_NAMES.session_update);
notification!(v1::CompleteElicitationNotification, v1::CLIENT_METHOD_NAMES.elicitation_complete);
notification!(v1::CancelRequestNotification, v1::PROTOCOL_LEVEL_METHOD_NAMES.cancel_request);
