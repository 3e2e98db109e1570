//! The message traits for every request and notification of protocol version 2.

use agent_client_protocol_schema::v2;

use super::implement::{extension, message, notification, request, response, successor};
use super::older;

// Client to agent.
request!(v2::InitializeRequest => v2::InitializeResponse, v2::AGENT_METHOD_NAMES.initialize);
request!(v2::LoginAuthRequest => v2::LoginAuthResponse, v2::AGENT_METHOD_NAMES.auth_login);
request!(v2::LogoutAuthRequest => v2::LogoutAuthResponse, v2::AGENT_METHOD_NAMES.auth_logout);
request!(v2::NewSessionRequest => v2::NewSessionResponse as (older::read_tagged_result, older::read_tagged_value), v2::AGENT_METHOD_NAMES.session_new);
request!(v2::ListSessionsRequest => v2::ListSessionsResponse, v2::AGENT_METHOD_NAMES.session_list);
request!(v2::DeleteSessionRequest => v2::DeleteSessionResponse, v2::AGENT_METHOD_NAMES.session_delete);
request!(v2::ResumeSessionRequest => v2::ResumeSessionResponse as (older::read_tagged_result, older::read_tagged_value), v2::AGENT_METHOD_NAMES.session_resume);
request!(v2::CloseSessionRequest => v2::CloseSessionResponse, v2::AGENT_METHOD_NAMES.session_close);
request!(v2::CancelToolCallRequest => v2::CancelToolCallResponse, v2::AGENT_METHOD_NAMES.tool_call_cancel);
request!(v2::CancelTerminalRequest => v2::CancelTerminalResponse, v2::AGENT_METHOD_NAMES.terminal_cancel);
request!(v2::SetSessionConfigOptionRequest => v2::SetSessionConfigOptionResponse, v2::AGENT_METHOD_NAMES.session_set_config_option);
request!(v2::PromptRequest => v2::PromptResponse, v2::AGENT_METHOD_NAMES.session_prompt);
#[cfg(feature = "unstable_llm_providers")]
request!(v2::ListProvidersRequest => v2::ListProvidersResponse, v2::AGENT_METHOD_NAMES.providers_list);
#[cfg(feature = "unstable_llm_providers")]
request!(v2::SetProviderRequest => v2::SetProviderResponse, v2::AGENT_METHOD_NAMES.providers_set);
#[cfg(feature = "unstable_llm_providers")]
request!(v2::DisableProviderRequest => v2::DisableProviderResponse, v2::AGENT_METHOD_NAMES.providers_disable);
#[cfg(feature = "unstable_auth_status")]
request!(v2::AuthStatusRequest => v2::AuthStatusResponse, v2::AGENT_METHOD_NAMES.auth_status);
#[cfg(feature = "unstable_session_fork")]
request!(v2::ForkSessionRequest => v2::ForkSessionResponse as (older::read_tagged_result, older::read_tagged_value), v2::AGENT_METHOD_NAMES.session_fork);
#[cfg(feature = "unstable_session_archive")]
request!(v2::ArchiveSessionRequest => v2::ArchiveSessionResponse, v2::AGENT_METHOD_NAMES.session_archive);
#[cfg(feature = "unstable_session_archive")]
request!(v2::UnarchiveSessionRequest => v2::UnarchiveSessionResponse, v2::AGENT_METHOD_NAMES.session_unarchive);
#[cfg(feature = "unstable_session_status")]
request!(v2::SessionStatusRequest => v2::SessionStatusResponse, v2::AGENT_METHOD_NAMES.session_status);
#[cfg(feature = "unstable_session_options")]
request!(v2::SessionOptionsRequest => v2::SessionOptionsResponse as (older::read_tagged_result, older::read_tagged_value), v2::AGENT_METHOD_NAMES.session_options);
#[cfg(feature = "unstable_session_set_title")]
request!(v2::SetSessionTitleRequest => v2::SetSessionTitleResponse, v2::AGENT_METHOD_NAMES.session_set_title);

// Agent to client.
request!(v2::RequestPermissionRequest => v2::RequestPermissionResponse, v2::CLIENT_METHOD_NAMES.session_request_permission);
request!(v2::CreateElicitationRequest => v2::CreateElicitationResponse, v2::CLIENT_METHOD_NAMES.elicitation_create);
#[cfg(feature = "unstable_mcp_over_acp")]
request!(v2::MessageMcpRequest => v2::MessageMcpResponse, v2::CLIENT_METHOD_NAMES.mcp_message);

notification!(v2::CancelSessionNotification, v2::AGENT_METHOD_NAMES.session_cancel);
notification!(v2::UpdateSessionNotification as older::read_tagged_params, v2::CLIENT_METHOD_NAMES.session_update);
notification!(v2::CompleteElicitationNotification, v2::CLIENT_METHOD_NAMES.elicitation_complete);
notification!(v2::CancelRequestNotification, v2::PROTOCOL_LEVEL_METHOD_NAMES.cancel_request);
#[cfg(feature = "unstable_auth_status")]
notification!(v2::AuthStatusUpdateNotification, v2::CLIENT_METHOD_NAMES.auth_status_update);
#[cfg(feature = "unstable_mcp_over_acp")]
notification!(v2::MessageMcpNotification, v2::AGENT_METHOD_NAMES.mcp_message);

extension!(v2::ExtRequest, v2::ExtNotification, v2::ExtResponse);
successor!(v2::ProxySuccessorRequest, v2::ProxySuccessorNotification, v2::ProxySuccessorResponse);
