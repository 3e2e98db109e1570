//! The message traits for every request and notification of protocol version 1.

use agent_client_protocol_schema::v1;

use super::implement::{extension, message, notification, request, response, successor};
use super::older;
use crate::codec;

// Client to agent.
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
#[cfg(feature = "unstable_llm_providers")]
request!(v1::ListProvidersRequest => v1::ListProvidersResponse, v1::AGENT_METHOD_NAMES.providers_list);
#[cfg(feature = "unstable_llm_providers")]
request!(v1::SetProviderRequest => v1::SetProviderResponse, v1::AGENT_METHOD_NAMES.providers_set);
#[cfg(feature = "unstable_llm_providers")]
request!(v1::DisableProviderRequest => v1::DisableProviderResponse, v1::AGENT_METHOD_NAMES.providers_disable);
#[cfg(feature = "unstable_auth_status")]
request!(v1::AuthStatusRequest => v1::AuthStatusResponse, v1::AGENT_METHOD_NAMES.auth_status);
#[cfg(feature = "unstable_session_fork")]
request!(v1::ForkSessionRequest => v1::ForkSessionResponse, v1::AGENT_METHOD_NAMES.session_fork);
#[cfg(feature = "unstable_session_archive")]
request!(v1::ArchiveSessionRequest => v1::ArchiveSessionResponse, v1::AGENT_METHOD_NAMES.session_archive);
#[cfg(feature = "unstable_session_archive")]
request!(v1::UnarchiveSessionRequest => v1::UnarchiveSessionResponse, v1::AGENT_METHOD_NAMES.session_unarchive);
#[cfg(feature = "unstable_session_status")]
request!(v1::SessionStatusRequest => v1::SessionStatusResponse, v1::AGENT_METHOD_NAMES.session_status);
#[cfg(feature = "unstable_session_options")]
request!(v1::SessionOptionsRequest => v1::SessionOptionsResponse, v1::AGENT_METHOD_NAMES.session_options);
#[cfg(feature = "unstable_session_set_title")]
request!(v1::SetSessionTitleRequest => v1::SetSessionTitleResponse, v1::AGENT_METHOD_NAMES.session_set_title);

// Agent to client.
request!(v1::RequestPermissionRequest => v1::RequestPermissionResponse, v1::CLIENT_METHOD_NAMES.session_request_permission);
request!(v1::WriteTextFileRequest => v1::WriteTextFileResponse, v1::CLIENT_METHOD_NAMES.fs_write_text_file);
request!(v1::ReadTextFileRequest => v1::ReadTextFileResponse, v1::CLIENT_METHOD_NAMES.fs_read_text_file);
request!(v1::CreateTerminalRequest => v1::CreateTerminalResponse, v1::CLIENT_METHOD_NAMES.terminal_create);
request!(v1::TerminalOutputRequest => v1::TerminalOutputResponse, v1::CLIENT_METHOD_NAMES.terminal_output);
request!(v1::WaitForTerminalExitRequest => v1::WaitForTerminalExitResponse, v1::CLIENT_METHOD_NAMES.terminal_wait_for_exit);
request!(v1::KillTerminalRequest => v1::KillTerminalResponse, v1::CLIENT_METHOD_NAMES.terminal_kill);
request!(v1::ReleaseTerminalRequest => v1::ReleaseTerminalResponse, v1::CLIENT_METHOD_NAMES.terminal_release);
request!(v1::CreateElicitationRequest => v1::CreateElicitationResponse, v1::CLIENT_METHOD_NAMES.elicitation_create);
#[cfg(feature = "unstable_mcp_over_acp")]
request!(v1::MessageMcpRequest => v1::MessageMcpResponse, v1::CLIENT_METHOD_NAMES.mcp_message);

notification!(v1::CancelNotification, v1::AGENT_METHOD_NAMES.session_cancel);
notification!(v1::SessionNotification as codec::read_params, v1::CLIENT_METHOD_NAMES.session_update; foreign older::is_plan_file);
notification!(v1::CompleteElicitationNotification, v1::CLIENT_METHOD_NAMES.elicitation_complete);
notification!(v1::CancelRequestNotification, v1::PROTOCOL_LEVEL_METHOD_NAMES.cancel_request);
#[cfg(feature = "unstable_auth_status")]
notification!(v1::AuthStatusUpdateNotification, v1::CLIENT_METHOD_NAMES.auth_status_update);
#[cfg(feature = "unstable_mcp_over_acp")]
notification!(v1::MessageMcpNotification, v1::AGENT_METHOD_NAMES.mcp_message);

extension!(v1::ExtRequest, v1::ExtNotification, v1::ExtResponse);
successor!(v1::ProxySuccessorRequest, v1::ProxySuccessorNotification, v1::ProxySuccessorResponse);
