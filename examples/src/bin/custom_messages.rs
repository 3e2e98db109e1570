//! Messages of one's own, beside those of the protocol. Client and agent live in one process:
//! a builder is a transport too, and typed messages move without passing a byte stream.

use std::io::Write;

use greenroom::{
    Agent, Client, ConnectionTo, Error, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, Responder, Result,
    on_receive_notification, on_receive_request,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_greenroom/index", response = Index)]
struct BuildIndex {
    files: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcResponse)]
struct Index {
    words: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_greenroom/progress")]
struct Progress {
    file: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let agent = Agent.builder().on_receive_request(
        async |build: BuildIndex, responder: Responder<Index>, client: ConnectionTo<Client>| {
            if build.files.is_empty() {
                return responder.respond_with_error(Error::invalid_params().data("no files"));
            }
            for file in &build.files {
                client.send_notification(Progress { file: file.clone() })?;
            }
            responder.respond(Index { words: build.files.iter().map(String::len).sum() })
        },
        on_receive_request!(),
    );

    let mut lines = Vec::new();
    let (index, refused) = Client
        .builder()
        .on_receive_notification(
            // Handlers may borrow from where the connection is driven.
            async |progress: Progress, _cx: ConnectionTo<Agent>| {
                lines.push(format!("indexing {}", progress.file));
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(agent, async |agent: ConnectionTo<Agent>| {
            let files = vec!["a.rs".to_owned(), "main.rs".to_owned()];
            let index = agent.send_request(BuildIndex { files }).block_task().await?;
            let refused = agent.send_request(BuildIndex { files: vec![] }).block_task().await;
            Ok((index, refused))
        })
        .await?;

    lines.push(format!("words: {}", index.words));
    if let Err(error) = refused {
        lines.push(format!("refused: {} {:?}", i32::from(error.code), error.data));
    }
    writeln!(std::io::stdout(), "{}", lines.join("\n")).map_err(Error::into_internal_error)
}
