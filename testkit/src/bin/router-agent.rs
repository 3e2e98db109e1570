//! An agent for every protocol version that this build has, behind a router, on the stdin and stdout
//! of this process.
//!
//! - `--only-v1`, `--only-v2`: not the other version.
//! - `--close`: the first message that is refused ends the connection.

use std::process::ExitCode;

use greenroom::{Agent, AgentProtocolRouter};

fn main() -> ExitCode {
    let asked_for = |option: &str| std::env::args().skip(1).any(|argument| argument == option);
    let mut router = Agent.protocol_router();
    if !asked_for("--only-v2") {
        router = router.with_v1(greenroom_testkit::testy::agent_v1());
    }
    if asked_for("--close") {
        router = router.close_after_rejection();
    }
    greenroom_testkit::run(if asked_for("--only-v1") { router } else { second(router) })
}

#[cfg(feature = "unstable_protocol_v2")]
fn second(router: AgentProtocolRouter) -> AgentProtocolRouter {
    use greenroom::schema::v2::{Implementation, InitializeRequest, InitializeResponse};
    use greenroom::{Responder, UntypedMessage, on_receive_request};

    let agent = Agent
        .v2()
        .on_receive_request(
            async |initialize: InitializeRequest, responder: Responder<InitializeResponse>, _client| {
                let info = Implementation::new("router-agent", env!("CARGO_PKG_VERSION"));
                responder.respond(InitializeResponse::new(initialize.protocol_version, info))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<serde_json::Value>, _client| {
                responder.respond(match request.method.as_str() {
                    "session/new" => serde_json::json!({ "sessionId": "session-1" }),
                    _ => request.params,
                })
            },
            on_receive_request!(),
        );
    router.with_v2(agent)
}

#[cfg(not(feature = "unstable_protocol_v2"))]
fn second(router: AgentProtocolRouter) -> AgentProtocolRouter {
    router
}
