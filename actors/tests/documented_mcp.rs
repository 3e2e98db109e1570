//! The documented interface of `mcp_server`, continued from `documented_core`: names and shapes,
//! under the documented crate name.
//!
//! It compiles, or the build breaks. Add a name when it is built; take none away.

#![allow(dead_code, unused_imports)]

extern crate greenroom as agent_client_protocol;

use std::sync::Arc;

use agent_client_protocol::mcp_server::{McpConnectionContext, McpConnectionTo, McpServer, McpServerConnect};
use agent_client_protocol::role::{Role, mcp};
use agent_client_protocol::{Channel, ConnectTo, ConnectionDriver, ConnectionTo, DynConnectTo, Error, NullRun};

struct Connects;

impl<C: Role> McpServerConnect<C> for Connects {
    fn name(&self) -> String {
        "connects".to_owned()
    }

    fn connect(&self, connection: McpConnectionTo<C>) -> DynConnectTo<mcp::Client> {
        let _: &ConnectionTo<C> = connection.connection();
        let context: &McpConnectionContext = connection.context();
        assert!(context.is_standalone());
        let _: McpConnectionTo<C> = connection.clone();
        DynConnectTo::new(mcp::Server.builder())
    }
}

async fn standalone(client: DynConnectTo<mcp::Server>) -> Result<(), Error> {
    let boxed: Box<dyn McpServerConnect<mcp::Client>> = Box::new(Connects);
    let shared: Arc<dyn McpServerConnect<mcp::Client>> = Arc::new(boxed);
    let server: McpServer<mcp::Client, NullRun> = McpServer::new(shared, NullRun);
    server.connect_to(client).await
}

fn channel() -> (Channel, Option<ConnectionDriver>) {
    McpServer::new(Connects, NullRun).into_channel_and_future()
}

#[cfg(feature = "unstable_mcp_over_acp")]
mod native {
    use agent_client_protocol::mcp_server::{
        MCP_BACKEND_FAILURE, MCP_SERVER_UNAVAILABLE, McpConnectionContext, McpConnectionTo, McpOperationCancellation,
        McpOutcome, McpRequest, McpRequestContext, McpServer, McpService,
    };
    use agent_client_protocol::role::Role;
    use agent_client_protocol::schema::{McpError, McpRequestId, McpServerAcpId};
    use agent_client_protocol::{
        Agent, Blocking, BoxFuture, ChainRun, Conductor, ConnectionTo, Error, NonBlocking, NullRun, Proxy,
        RequestCancellation, SessionBuilder,
    };
    use serde_json::{Map, Value};

    struct Serves;

    impl<C: Role> McpService<C> for Serves {
        fn execute(
            &self,
            request: McpRequest,
            context: McpRequestContext<C>,
        ) -> BoxFuture<'static, Result<McpOutcome, Error>> {
            let McpRequest { method, params } = request;
            let _: (String, Option<Map<String, Value>>) = (method, params);
            let _: (&McpServerAcpId, &McpRequestId) = (context.server_id(), context.request_id());
            let _: &Map<String, Value> = context.metadata();
            let _: &RequestCancellation = context.cancellation();
            let operation: &McpOperationCancellation = context.operation_cancellation();
            assert!(!operation.is_cancelled());
            let connection: &McpConnectionTo<C> = context.connection();
            let _: (Option<&McpServerAcpId>, Option<&McpRequestId>) = (connection.server_id(), connection.request_id());
            match connection.context() {
                McpConnectionContext::Acp { server_id, request_id } => {
                    let _: (&McpServerAcpId, &McpRequestId) = (server_id, request_id);
                }
                other => assert!(other.server_id().is_none() && other.request_id().is_none()),
            }
            Box::pin(async move {
                context.send_notification("notifications/progress", None).await?;
                context.operation_cancellation().cancelled().await;
                Ok(McpOutcome::Error(McpError::new(MCP_BACKEND_FAILURE, "m")))
            })
        }
    }

    fn servers<C: Role>() -> [McpServer<C, NullRun>; 2] {
        let _: McpOutcome = McpOutcome::Result(Value::Null);
        let _: i32 = MCP_SERVER_UNAVAILABLE;
        [
            McpServer::new_service("serves", Serves, NullRun),
            McpServer::new_service_with_standalone(Serves, super::Connects, NullRun),
        ]
    }

    fn attached(cx: &ConnectionTo<Agent>) -> Result<(), Error> {
        let [first, second] = servers();
        let session: SessionBuilder<Agent, ChainRun<NullRun, NullRun>, NonBlocking> =
            cx.build_session("/").with_mcp_server(first)?;
        let _: SessionBuilder<Agent, ChainRun<ChainRun<NullRun, NullRun>, NullRun>, Blocking> =
            session.block_task().with_mcp_server(second)?;
        Ok(())
    }

    async fn global(conductor: agent_client_protocol::DynConnectTo<Proxy>) -> Result<(), Error> {
        let [first, second] = servers::<Conductor>();
        Proxy.builder().name("provider").with_mcp_server(first).with_mcp_server(second).connect_to(conductor).await
    }

    #[cfg(feature = "unstable_protocol_v2")]
    mod two {
        use agent_client_protocol::{
            Agent, ChainRun, Conductor, DynConnectTo, Error, NullRun, Proxy, V2ConnectionTo, V2ResumeSessionBuilder,
            V2SessionBuilder,
        };

        fn attached(cx: &V2ConnectionTo<Agent>) -> Result<(), Error> {
            let [first, second] = super::servers();
            let _: V2SessionBuilder<Agent, ChainRun<NullRun, NullRun>> =
                cx.build_session("/").with_mcp_server(first)?;
            let _: V2ResumeSessionBuilder<Agent, ChainRun<NullRun, NullRun>> =
                cx.resume_session("s", "/").with_mcp_server(second)?;
            Ok(())
        }

        #[cfg(feature = "unstable_session_fork")]
        fn forked(cx: &V2ConnectionTo<Agent>) -> Result<(), Error> {
            let [first, _] = super::servers();
            let _: agent_client_protocol::V2ForkSessionBuilder<Agent, ChainRun<NullRun, NullRun>> =
                cx.fork_session("s", "/").with_mcp_server(first)?;
            Ok(())
        }

        async fn global(conductor: DynConnectTo<Proxy>) -> Result<(), Error> {
            let [first, _] = super::servers::<Conductor>();
            Proxy.v2().with_mcp_server(first).connect_to(conductor).await
        }
    }
}

#[cfg(feature = "schemars")]
mod tools {
    use std::collections::HashSet;
    use std::sync::Arc;

    use agent_client_protocol::mcp_server::{
        EnabledTools, McpConnectionTo, McpTool, McpToolMetadata, McpToolRegistry, McpToolSchema, RegisteredMcpTool,
        tool_fn, tool_fn_mut,
    };
    use agent_client_protocol::role::{Role, mcp};
    use agent_client_protocol::{BoxFuture, Error, RunWithConnectionTo};
    use serde_json::{Map, Value};

    struct Echo;

    impl<C: Role> McpTool<C> for Echo {
        type Input = Vec<String>;
        type Output = Vec<String>;

        fn name(&self) -> String {
            "echo".to_owned()
        }

        fn title(&self) -> Option<String> {
            Some("Echo".to_owned())
        }

        fn description(&self) -> String {
            "Says it again.".to_owned()
        }

        async fn call_tool(&self, input: Vec<String>, _connection: McpConnectionTo<C>) -> Result<Vec<String>, Error> {
            Ok(input)
        }
    }

    fn called<C: Role>(tool: &RegisteredMcpTool<C>, cx: McpConnectionTo<C>) -> BoxFuture<'_, Result<Value, Error>> {
        tool.call_tool(Value::Null, cx)
    }

    fn runs(_: impl RunWithConnectionTo<mcp::Client>) {}

    #[test]
    fn registries_hold_tools() {
        let mut registry: McpToolRegistry<mcp::Client> = McpToolRegistry::default();
        registry.set_instructions("Use it.");
        assert_eq!(registry.instructions(), Some("Use it."));
        registry.register_tool(Echo);
        let (tool, runner) = tool_fn(
            "length",
            "Counts.",
            async |input: Vec<u8>, _cx: McpConnectionTo<mcp::Client>| Ok(input.len()),
            agent_client_protocol::tool_fn!(),
        );
        registry.register_tool(tool);
        runs(runner);
        let mut total = 0;
        let (tool, runner) = tool_fn_mut(
            "total",
            "Adds.",
            async |input: Vec<u8>, _cx: McpConnectionTo<mcp::Client>| {
                total += input.len();
                Ok(total)
            },
            agent_client_protocol::tool_fn_mut!(),
        );
        registry.register_tool(tool);
        runs(runner);
        let metadata: &McpToolMetadata = registry.tool("echo").expect("registered").metadata();
        let schema: &Arc<McpToolSchema> = metadata.input_schema();
        let _: &Map<String, Value> = schema;
        assert_eq!(
            (metadata.name(), metadata.title(), metadata.description()),
            ("echo", Some("Echo"), "Says it again.")
        );
        assert!(metadata.output_schema().is_none());
        registry.disable_all_tools();
        registry.enable_tool("echo").expect("registered");
        registry.disable_tool("total").expect("registered");
        assert!(registry.enabled_tool("total").is_none() && registry.contains_tool("total"));
        assert_eq!(registry.enabled_tools().map(RegisteredMcpTool::name).collect::<Vec<_>>(), ["echo"]);
        assert_eq!(registry.tools().filter(|tool| tool.has_structured_output()).count(), 0);
        registry.enable_all_tools();
        assert!(EnabledTools::default().is_enabled("any"));
        assert!(!EnabledTools::AllowList(HashSet::new()).is_enabled("any"));
        assert!(!EnabledTools::DenyList(HashSet::from(["any".to_owned()])).is_enabled("any"));
    }
}
