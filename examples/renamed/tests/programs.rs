//! The programs do what they say, under the documented names.

use agent_client_protocol::schema::{InitializeProxyRequest, InitializeRequest, ProtocolVersion};
use agent_client_protocol::{Conductor, ConnectionTo, Error, Proxy, Responder, UntypedMessage, on_receive_request};
use greenroom_renamed::{Count, Counted, agent, client, proxy};
use serde_json::{Value, json};

#[tokio::test]
async fn a_client_and_an_agent_talk_in_process() {
    let (session, counted, heard) = client(agent()).await.expect("a conversation");
    assert_eq!(session, "only");
    assert_eq!(counted, Counted { count: 2, first: Some("a".to_owned()) });
    assert_eq!(heard, 1);
}

/// Plays a conductor with an agent behind it: what the proxy sends on comes back as the answer.
#[tokio::test]
async fn a_proxy_changes_what_it_handles_and_passes_on_the_rest() {
    let passed = Conductor
        .builder()
        .on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, _cx: ConnectionTo<Proxy>| {
                if request.method != "_proxy/successor" {
                    return responder.respond_with_error(Error::method_not_found());
                }
                match request.params["method"].as_str() {
                    Some("initialize") => responder.respond(json!({ "protocolVersion": 1 })),
                    Some("_app/count") => {
                        let count = request.params["params"]["items"].as_array().map_or(0, Vec::len);
                        responder.respond(json!({ "count": count }))
                    }
                    _ => responder.respond(request.params["params"].clone()),
                }
            },
            on_receive_request!(),
        )
        .connect_with(proxy(), async |cx: ConnectionTo<Proxy>| {
            let initialize = InitializeProxyRequest::new(InitializeRequest::new(ProtocolVersion::V1));
            let version = cx.send_request(initialize).block_task().await?.protocol_version;
            let counted = cx.send_request(Count { items: vec!["one".to_owned()] }).block_task().await?;
            let params = json!({ "z": 1, "a": [null] });
            let untouched = cx.send_request(UntypedMessage::new("_app/other", &params)?).block_task().await?;
            Ok((version, counted.count, untouched == params))
        })
        .await
        .expect("a conversation");
    assert_eq!(passed, (ProtocolVersion::V1, 2, true));
}
