//! A handler that looks at the answers to this side's own requests.

use greenroom_actors::{
    Agent, Client, ConnectionTo, Dispatch, Error, ErrorCode, Handled, Responder, Result, UntypedMessage,
    on_receive_dispatch, on_receive_request,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, Value::Null).expect("json")
}

/// What a caller gets, with an ordered callback and as an awaiter.
async fn outcomes(method: &'static str) -> Vec<Result<Value>> {
    let agent = Agent.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("theirs")),
        on_receive_request!(),
    );
    let (told, mut hear) = mpsc::unbounded_channel();
    let again = told.clone();
    Client
        .builder()
        .on_receive_dispatch(
            async |dispatch: Dispatch<UntypedMessage, UntypedMessage>, _cx: ConnectionTo<Agent>| {
                let Dispatch::Response(_, router) = dispatch else {
                    return Ok(Handled::No { message: dispatch, retry: false });
                };
                match router.method() {
                    "fail" => Err(Error::invalid_params().data("ours")),
                    "forget" => Ok(Handled::Yes),
                    "panic" => panic!("expected by the test"),
                    "both" => {
                        router.route(json!("ours"))?;
                        Err(Error::invalid_params())
                    }
                    _ => router.route(json!("ours")).map(|()| Handled::Yes),
                }
            },
            on_receive_dispatch!(),
        )
        .connect_with(agent, async move |cx: ConnectionTo<Agent>| {
            cx.send_request(message(method)).on_receiving_result(async move |outcome| {
                let _ = told.send(outcome);
                Ok(())
            })?;
            let _ = again.send(cx.send_request(message(method)).block_task().await);
            Ok(())
        })
        .await
        .unwrap();
    let mut outcomes = Vec::new();
    while let Some(outcome) = hear.recv().await {
        outcomes.push(outcome);
    }
    assert_eq!(outcomes.len(), 2, "one outcome each");
    outcomes
}

#[tokio::test]
async fn the_callers_get_what_the_interceptor_decides() {
    for outcome in outcomes("route").await {
        assert_eq!(outcome.unwrap(), json!("ours"));
    }
    for outcome in outcomes("fail").await {
        assert_eq!(outcome.unwrap_err().code, ErrorCode::InvalidParams);
    }
    for outcome in outcomes("forget").await {
        assert!(outcome.unwrap_err().to_string().contains("dropped by a handler"));
    }
    for outcome in outcomes("panic").await {
        assert!(outcome.unwrap_err().to_string().contains("interrupted"));
    }
    for outcome in outcomes("both").await {
        assert_eq!(outcome.unwrap(), json!("ours"), "the first one counts");
    }
}
