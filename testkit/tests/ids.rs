//! Ids are whatever the peer chose, and come back as they were.

use greenroom::{Agent, Responder, UntypedMessage, on_receive_request};
use greenroom_testkit::scripted::pair;
use serde_json::{Value, json};

#[tokio::test]
async fn the_answer_repeats_the_id() {
    let (mut peer, link) = pair(1024);
    let agent = Agent.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(json!("yes")),
        on_receive_request!(),
    );
    let serving = tokio::spawn(agent.connect_to(link));
    for id in [json!("abc-1"), json!(""), json!("7"), json!(7), json!(0), json!(-3), json!(i64::MAX), json!("中\n\"")]
    {
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ask" })).await;
        peer.expect(json!({ "jsonrpc": "2.0", "id": id, "result": "yes" })).await;
    }
    peer.close().await;
    peer.expect_end().await;
    serving.await.unwrap().unwrap();
}
