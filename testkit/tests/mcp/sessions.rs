//! Servers of one session: names, runners, how long they stay.

use greenroom::mcp_server::{McpOutcome, McpServer};
use greenroom::schema::v2;
use greenroom::{Agent, Client, ConnectionTo, Error, Result, RunWithConnectionTo};
use greenroom_testkit::scripted::pair;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::support::*;

/// Runs beside a server until it is told to fail.
struct Fails(oneshot::Receiver<()>);

impl RunWithConnectionTo<Agent> for Fails {
    async fn run_with_connection_to(self, _connection: ConnectionTo<Agent>) -> Result<()> {
        let _ = self.0.await;
        Err(Error::internal_error())
    }
}

#[tokio::test]
async fn a_runner_that_fails_removes_the_servers_of_its_session_only() {
    let (fail, fails) = oneshot::channel();
    let mut it = attached(McpServer::new_service("tools", Asks(shouting), Fails(fails))).await;
    it.agent.send(&call(1, &it.id, "a", "tools/list", json!({}))).await;
    assert_eq!(next(&mut it.agent).await["result"]["result"]["id"], "a");
    // Another session of the same connection.
    it.cx
        .build_session("/")
        .with_mcp_server(McpServer::new_service("more", Asks(shouting), greenroom::NullRun))
        .and_then(|session| session.on_session_start(async |_| std::future::pending().await))
        .expect("a session");
    let setup = next(&mut it.agent).await;
    let (other, _) = declared(&setup);
    it.agent.send(&result(setup["id"].clone(), json!({ "sessionId": "t" }))).await;
    fail.send(()).expect("the runner waits");
    soon(async {
        loop {
            it.agent.send(&call(2, &it.id, "a", "tools/list", json!({}))).await;
            if next(&mut it.agent).await["error"]["code"] == -33001 {
                return;
            }
        }
    })
    .await;
    it.agent.send(&call(3, &other, "a", "tools/list", json!({}))).await;
    assert_eq!(next(&mut it.agent).await["result"]["result"]["id"], "a");
}

/// Answers calls of the server beside it, from data that it borrows.
struct Borrows<'a> {
    calls: mpsc::UnboundedReceiver<oneshot::Sender<usize>>,
    counted: &'a mut usize,
}

impl RunWithConnectionTo<Agent> for Borrows<'_> {
    async fn run_with_connection_to(mut self, _connection: ConnectionTo<Agent>) -> Result<()> {
        while let Some(call) = self.calls.recv().await {
            *self.counted += 1;
            let _ = call.send(*self.counted);
        }
        Ok(())
    }
}

#[tokio::test]
async fn run_until_keeps_a_server_for_as_long_as_it_runs() {
    let (mut agent, link) = pair(1 << 16);
    let (end, ended) = oneshot::channel::<()>();
    let client = tokio::spawn(Client.connect_with(link, async move |cx| {
        let mut counted = 0;
        let (queue, calls) = mpsc::unbounded_channel();
        let service =
            Asks(move |_: greenroom::mcp_server::McpRequest, _: greenroom::mcp_server::McpRequestContext<Agent>| {
                let queue: mpsc::UnboundedSender<oneshot::Sender<usize>> = queue.clone();
                let answer: Answer = Box::pin(async move {
                    let (give, take) = oneshot::channel();
                    let _ = queue.send(give);
                    Ok(McpOutcome::Result(json!(take.await.map_err(Error::into_internal_error)?)))
                });
                answer
            });
        let server = McpServer::new_service("tools", service, Borrows { calls, counted: &mut counted });
        let session = cx.build_session("/").with_mcp_server(server)?.block_task();
        session
            .run_until(async |session| {
                assert_eq!(&*session.session_id().0, "s");
                let _ = ended.await;
                Ok(())
            })
            .await?;
        assert_eq!(counted, 2);
        cx.incoming_closed().await;
        Ok(())
    }));
    let setup = next(&mut agent).await;
    let (id, _) = declared(&setup);
    agent.send(&call(1, &id, "a", "count", json!({}))).await;
    agent.expect(result(1, json!({ "result": 1 }))).await;
    agent.send(&result(setup["id"].clone(), json!({ "sessionId": "s" }))).await;
    agent.send(&call(2, &id, "a", "count", json!({}))).await;
    agent.expect(result(2, json!({ "result": 2 }))).await;
    end.send(()).expect("the session runs");
    soon(async {
        loop {
            agent.send(&call(3, &id, "a", "count", json!({}))).await;
            if next(&mut agent).await["error"]["code"] == -33001 {
                return;
            }
        }
    })
    .await;
    agent.close().await;
    soon(client).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn version_two_wants_names_to_be_unique() {
    let (mut agent, link) = pair(1 << 16);
    let client = tokio::spawn(Client.v2().connect_with(link, async move |cx| {
        let tools = || server(shouting);
        let session = cx.build_session("/").with_mcp_server(tools())?;
        let taken = session.with_mcp_server(tools()).expect_err("the name is taken");
        assert_eq!(i32::from(taken.code), -32602);
        let declared = v2::McpServer::Acp(v2::McpServerAcp::new("tools", "by-hand"));
        let request = v2::ResumeSessionRequest::new("s", v2::AbsolutePath::from(std::path::Path::new("/")));
        let resume = cx.resume_session_from(request.mcp_servers(vec![declared])).with_mcp_server(tools());
        assert_eq!(i32::from(resume.expect_err("the name is taken").code), -32602);
        Ok(())
    }));
    soon(client).await.expect("no panic").expect("a clean end");
    soon(agent.expect_end()).await;
}
