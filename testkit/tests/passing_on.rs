//! What a handler passes on without changing it stays as it came; close callbacks all run.

use greenroom::schema::PromptRequest;
use greenroom::{
    Client, Conductor, ConnectTo, ConnectionTo, Dispatch, HandleDispatchFrom, Handled, Proxy, Responder, Result, Role,
    on_receive_dispatch, on_receive_request,
};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Looks at everything and takes nothing.
struct Looks;

impl<C: Role> HandleDispatchFrom<C> for Looks {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<C>) -> Result<Handled<Dispatch>> {
        Ok(Handled::No { message, retry: false })
    }
}

fn typed() -> impl ConnectTo<Conductor> {
    Proxy.builder().on_receive_request_from(
        Client,
        async |request: PromptRequest, responder: Responder<_>, _cx: ConnectionTo<Conductor>| {
            Ok(Handled::No { message: (request, responder), retry: false })
        },
        on_receive_request!(),
    )
}

fn dispatched() -> impl ConnectTo<Conductor> {
    Proxy.builder().on_receive_dispatch_from(
        Client,
        async |message: Dispatch, _cx: ConnectionTo<Conductor>| Ok(Handled::No { message, retry: false }),
        on_receive_dispatch!(),
    )
}

fn changing() -> impl ConnectTo<Conductor> {
    Proxy.builder().on_receive_request_from(
        Client,
        async |mut request: PromptRequest, responder: Responder<_>, _cx: ConnectionTo<Conductor>| {
            request.session_id = "changed".into();
            Ok(Handled::No { message: (request, responder), retry: false })
        },
        on_receive_request!(),
    )
}

/// The params exactly as they came, with what no type knows and with numbers as they were spelled.
const PARAMS: &str = r#"{"prompt":[],"unknown":{"n":1.50e1, "big":9007199254740993},"sessionId":"s"}"#;

async fn passed(proxy: impl ConnectTo<Conductor>) -> String {
    let (mut conductor, link) = pair(1 << 16);
    tokio::spawn(proxy.connect_to(link));
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{PARAMS}}}"#);
    conductor.write(line + "\n").await;
    conductor.line().await.expect("passed on")
}

#[tokio::test]
async fn what_is_passed_on_unchanged_stays_as_it_came() {
    for line in [
        passed(typed()).await,
        passed(dispatched()).await,
        passed(Proxy.builder().with_handler(Looks)).await,
        passed(Proxy.builder()).await,
    ] {
        assert!(line.contains(PARAMS), "{line}");
    }
    let line: Value = serde_json::from_str(&passed(changing()).await).expect("JSON");
    assert_eq!(line["params"]["params"]["sessionId"], "changed");
}

#[tokio::test]
async fn every_close_callback_runs_although_one_panics() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let (first, last) = (told.clone(), told);
    let (mut peer, link) = pair(1 << 10);
    let ours = tokio::spawn(
        Client
            .builder()
            .on_close(async move |_| {
                let _ = first.send("first");
                Ok(())
            })
            .on_close(async |_| panic!("expected by the test"))
            .on_close(async move |_| {
                let _ = last.send("last");
                Ok(())
            })
            .connect_to(link),
    );
    peer.close().await;
    assert_eq!((heard.recv().await, heard.recv().await), (Some("first"), Some("last")));
    let error = ours.await.expect("no panic").expect_err("the panic is an error");
    assert_eq!(error.data, Some(json!("a close callback panicked")));
}
