//! The tables of spec §5.1, §5.3, §5.5 and §5.7, cell by cell.

use serde_json::{Value, json};

use super::*;

fn bytes(value: &Value) -> Bytes {
    value.to_string().into()
}

fn asks(version: Value) -> Value {
    json!({ "protocolVersion": version, "info": { "name": "n", "version": "v" }, "x": 1 })
}

fn id(number: i64) -> RequestId {
    RequestId::Number(number)
}

/// What the handler gets for an initialize with this version, or the code of the refusal.
fn received(endpoint: Endpoint, method: &str, version: Value) -> Result<Value, i32> {
    let params = bytes(&asks(version));
    match Handshake::new(endpoint).receive_request(method, RemoteStyle::Counterpart, &id(1), &params) {
        Ok(changed) => Ok(serde_json::from_slice(&changed.unwrap_or(params)).expect("JSON")),
        Err(error) => Err(error.code.into()),
    }
}

fn version_of(received: Result<Value, i32>) -> Result<u64, i32> {
    received.map(|params| params["protocolVersion"].as_u64().expect("a version"))
}

#[test]
fn an_agent_of_version_one_serves_every_version_as_one() {
    for guarded in [false, true] {
        let agent = Endpoint::V1Agent { guarded };
        for (asked, selected) in [
            (json!(0), Ok(1)),
            (json!(1), Ok(1)),
            (json!(2), Ok(1)),
            (json!(3), Ok(1)),
            (json!(65535), Ok(1)),
            (json!(65536), Err(-32602)),
            (json!(-1), Err(-32602)),
            (json!(1.5), Err(-32602)),
            (json!("1"), Err(-32602)),
            (Value::Null, Err(-32602)),
        ] {
            assert_eq!(version_of(received(agent, "initialize", asked.clone())), selected, "{asked}");
        }
        // Its own version and version 0 keep everything; later ones are translated.
        for own in [0, 1] {
            assert_eq!(received(agent, "initialize", json!(own)).expect("served")["x"], 1);
        }
        let later = received(agent, "initialize", json!(2)).expect("served");
        assert_eq!((later.get("x"), &later["clientInfo"]["name"]), (None, &json!("n")));
    }
}

#[test]
fn the_answer_of_an_agent_says_the_version_that_it_speaks() {
    let mut agent = Handshake::new(Endpoint::V1Agent { guarded: true });
    agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &bytes(&asks(json!(1)))).expect("served");
    let other = agent.answer(&id(2), Ok(Bytes::from_static(b"{}")));
    assert_eq!(other.expect("of another request"), "{}");
    let answer = agent.answer(&id(1), Ok(Bytes::from_static(br#"{"y": 1, "protocolVersion": 7}"#)));
    assert_eq!(answer.expect("selected"), r#"{"y": 1, "protocolVersion": 1}"#);
    // A result without a version is no handshake.
    let mut agent = Handshake::new(Endpoint::V1Agent { guarded: true });
    agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &bytes(&asks(json!(1)))).expect("served");
    assert_eq!(i32::from(agent.answer(&id(1), Ok(Bytes::from_static(b"{}"))).expect_err("no version").code), -32603);
    assert!(agent.receive_request("x", RemoteStyle::Counterpart, &id(2), &Bytes::new()).is_err(), "not initialized");
}

#[test]
fn a_guarded_agent_of_version_one_refuses_requests_before_its_handshake() {
    let request = |agent: &mut Handshake| agent.receive_request("x", RemoteStyle::Counterpart, &id(9), &Bytes::new());
    let mut agent = Handshake::new(Endpoint::V1Agent { guarded: true });
    assert_eq!(i32::from(request(&mut agent).expect_err("too early").code), -32600);
    assert!(agent.receive_notification("x"), "notifications are not blocked");
    assert!(!agent.is_settled());
    agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &bytes(&asks(json!(1)))).expect("served");
    assert!(request(&mut agent).is_err(), "the answer is not there yet");
    agent.answer(&id(1), Ok(Bytes::from_static(br#"{"protocolVersion":1}"#))).expect("selected");
    assert!(request(&mut agent).is_ok() && agent.is_settled());
    // It may be repeated at any time, and a repetition closes nothing.
    agent.receive_request("initialize", RemoteStyle::Counterpart, &id(2), &bytes(&asks(json!(1)))).expect("served");
    assert!(request(&mut agent).is_ok());
    // Without a typed handler there is no guard.
    let mut open = Handshake::new(Endpoint::V1Agent { guarded: false });
    assert!(open.is_settled() && request(&mut open).is_ok());
}

/// What the caller of an initialize gets for the agent's answer.
fn answered(mut client: Handshake, result: &Value, lower: bool) -> (Handshake, Result<Bytes>) {
    client.send_request("initialize", RemoteStyle::Counterpart, 1, &bytes(&asks(json!(2)))).expect("it may begin");
    if lower {
        client.allow_lower(1);
    }
    let outcome = client.receive_answer(1, Ok(bytes(result)));
    (client, outcome)
}

#[test]
fn a_client_of_version_one_takes_version_one() {
    for (result, code) in [
        (json!({ "protocolVersion": 1 }), None),
        (json!({ "protocolVersion": 2 }), Some(-32600)),
        (json!({ "protocolVersion": 0 }), Some(-32600)),
        (json!({ "protocolVersion": 3 }), Some(-32600)),
        (json!({ "protocolVersion": "1" }), Some(-32600)),
        (json!({}), Some(-32600)),
    ] {
        let (_, outcome) = answered(Handshake::new(Endpoint::V1Client), &result, false);
        assert_eq!(outcome.err().map(|error| i32::from(error.code)), code, "{result}");
    }
    let mut client = Handshake::new(Endpoint::V1Client);
    let sent = client.send_request("initialize", RemoteStyle::Counterpart, 1, &bytes(&asks(json!(2))));
    let sent: Value = serde_json::from_slice(&sent.expect("sent").expect("changed")).expect("JSON");
    assert_eq!(sent["protocolVersion"], 1);
    assert!(client.is_settled(), "nothing else is held back");
    // The agent's error is the caller's.
    let refused = client.receive_answer(1, Err(Error::auth_required()));
    assert_eq!(refused.expect_err("refused"), Error::auth_required());
}

#[test]
fn a_proxy_takes_its_own_version_or_negotiates_as_its_dialect_says() {
    let (legacy, modern) = ("_proxy/initialize", "proxy/initialize");
    let proxy = |versions| Endpoint::V1Proxy(versions);
    for (versions, method, asked, selected) in [
        (ProxyVersions::ByDialect, legacy, 0, Err(-32600)),
        (ProxyVersions::ByDialect, legacy, 1, Ok(1)),
        (ProxyVersions::ByDialect, legacy, 2, Err(-32600)),
        (ProxyVersions::ByDialect, legacy, 3, Err(-32600)),
        (ProxyVersions::ByDialect, modern, 0, Ok(1)),
        (ProxyVersions::ByDialect, modern, 1, Ok(1)),
        (ProxyVersions::ByDialect, modern, 2, Ok(1)),
        (ProxyVersions::ByDialect, modern, 3, Ok(1)),
        (ProxyVersions::Exact, modern, 2, Err(-32600)),
        (ProxyVersions::Exact, modern, 1, Ok(1)),
        (ProxyVersions::Negotiate, legacy, 2, Ok(1)),
    ] {
        let received = received(proxy(versions), method, json!(asked));
        assert_eq!(version_of(received), selected, "{versions:?} {method} {asked}");
    }
}

#[test]
fn a_proxy_is_initialized_from_its_left_and_initializes_to_its_right() {
    let mut proxy = Handshake::new(Endpoint::V1Proxy(ProxyVersions::ByDialect));
    let params = bytes(&asks(json!(1)));
    let mut refused = |method: &str, from| {
        i32::from(proxy.receive_request(method, from, &id(1), &params).expect_err("misplaced").code)
    };
    assert_eq!(refused("initialize", RemoteStyle::Predecessor), -32600);
    assert_eq!(refused("initialize", RemoteStyle::Successor), -32600);
    assert_eq!(refused("_proxy/initialize", RemoteStyle::Successor), -32600);
    assert_eq!(refused("proxy/initialize", RemoteStyle::Successor), -32600);
    assert!(proxy.send_request("initialize", RemoteStyle::Predecessor, 1, &params).is_err());
    assert!(proxy.send_request("_proxy/initialize", RemoteStyle::Successor, 1, &params).is_err());
    assert!(proxy.send_request("_proxy/successor", RemoteStyle::Predecessor, 1, &params).is_err());
    assert_eq!(proxy.send_request("initialize", RemoteStyle::Successor, 1, &params).expect("sent"), None);
    let lower = proxy.receive_answer(1, Ok(Bytes::from_static(br#"{"protocolVersion":0}"#)));
    assert!(lower.is_ok(), "an agent may negotiate down");
}

#[cfg(feature = "unstable_protocol_v2")]
mod v2 {
    use super::*;

    fn result() -> Value {
        json!({ "protocolVersion": 2, "info": { "name": "a", "version": "v" }, "capabilities": {}, "authMethods": [] })
    }

    fn ready_agent() -> Handshake {
        let mut agent = Handshake::new(Endpoint::V2Agent);
        agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &bytes(&asks(json!(2)))).expect("served");
        agent.answer(&id(1), Ok(bytes(&result()))).expect("selected");
        agent
    }

    #[test]
    fn an_agent_of_version_two_serves_two_and_later() {
        for (asked, selected) in [
            (json!(0), Err(-32022)),
            (json!(1), Err(-32022)),
            (json!(2), Ok(2)),
            (json!(3), Ok(2)),
            (json!(65535), Ok(2)),
            (json!("2"), Err(-32602)),
        ] {
            assert_eq!(version_of(received(Endpoint::V2Agent, "initialize", asked.clone())), selected, "{asked}");
        }
        let params = bytes(&json!({ "protocolVersion": 1 }));
        let mut agent = Handshake::new(Endpoint::V2Agent);
        let error =
            agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &params).expect_err("too low");
        assert_eq!(error.data, Some(json!({ "requested": 1, "supported": [2] })));
        // Exactly version 2 has to fit; later ones are made to.
        let strict = bytes(&json!({ "protocolVersion": 2, "info": 1 }));
        let error =
            agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &strict).expect_err("malformed");
        assert_eq!(i32::from(error.code), -32602);
        let later = bytes(&json!({ "protocolVersion": 3, "info": 1 }));
        let changed = agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &later).expect("served");
        let changed: Value = serde_json::from_slice(&changed.expect("changed")).expect("JSON");
        assert_eq!((&changed["protocolVersion"], &changed["info"]["name"]), (&json!(2), &json!("unknown")));
    }

    #[test]
    fn nothing_passes_an_agent_before_its_handshake() {
        let mut agent = Handshake::new(Endpoint::V2Agent);
        let request =
            |agent: &mut Handshake| agent.receive_request("x", RemoteStyle::Counterpart, &id(9), &Bytes::new());
        assert_eq!(i32::from(request(&mut agent).expect_err("too early").code), -32600);
        assert!(!agent.receive_notification("x") && !agent.receive_notification("$/cancel_request"));
        assert!(agent.send_notification("x").is_err());
        assert!(agent.send_request("x", RemoteStyle::Counterpart, 1, &Bytes::new()).is_err());
        assert!(
            agent.send_request("initialize", RemoteStyle::Counterpart, 1, &Bytes::new()).is_err(),
            "wrong direction"
        );
        agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &bytes(&asks(json!(2)))).expect("served");
        assert!(agent.receive_notification("$/cancel_request") && !agent.receive_notification("x"));
        assert!(agent.send_notification("$/cancel_request").is_ok() && agent.send_notification("x").is_err());
        let second = agent.receive_request("initialize", RemoteStyle::Counterpart, &id(2), &bytes(&asks(json!(2))));
        assert_eq!(i32::from(second.expect_err("one at a time").code), -32600);
        // A failure leaves it uninitialized, and it may be tried again.
        assert!(agent.answer(&id(1), Err(Error::auth_required())).is_err());
        assert!(request(&mut agent).is_err());
        let mut agent = ready_agent();
        assert!(!agent.is_settled(), "it may be repeated");
        assert!(agent.send_notification("x").is_ok() && agent.receive_notification("x"));
        assert!(request(&mut agent).is_ok() && agent.is_settled());
    }

    #[test]
    fn a_handshake_may_be_repeated_until_the_first_other_request() {
        let mut agent = ready_agent();
        let again = |agent: &mut Handshake| {
            agent.receive_request("initialize", RemoteStyle::Counterpart, &id(2), &bytes(&asks(json!(2))))
        };
        again(&mut agent).expect("repeated");
        // A failed repetition keeps what was there.
        assert!(agent.answer(&id(2), Err(Error::auth_required())).is_err());
        assert!(agent.send_notification("x").is_ok());
        assert!(agent.receive_notification("x"), "notifications do not end it");
        again(&mut agent).expect("repeated");
        agent.answer(&id(2), Ok(bytes(&result()))).expect("selected");
        agent.receive_request("x", RemoteStyle::Counterpart, &id(3), &Bytes::new()).expect("in use");
        assert_eq!(i32::from(again(&mut agent).expect_err("in use").code), -32600);
        // Too low a version is refused as before.
        let mut agent = ready_agent();
        let low = agent.receive_request("initialize", RemoteStyle::Counterpart, &id(2), &bytes(&asks(json!(1))));
        assert_eq!(i32::from(low.expect_err("too low").code), -32022);
    }

    #[test]
    fn an_answer_that_does_not_fit_fails_the_handshake() {
        let mut agent = Handshake::new(Endpoint::V2Agent);
        agent.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &bytes(&asks(json!(2)))).expect("served");
        let odd = json!({ "protocolVersion": 2, "info": 3 });
        assert_eq!(i32::from(agent.answer(&id(1), Ok(bytes(&odd))).expect_err("malformed").code), -32603);
        agent
            .receive_request("initialize", RemoteStyle::Counterpart, &id(2), &bytes(&asks(json!(5))))
            .expect("retried");
        let mut selected = result();
        selected["protocolVersion"] = json!(5);
        let told = agent.answer(&id(2), Ok(bytes(&selected))).expect("selected");
        assert_eq!(serde_json::from_slice::<Value>(&told).expect("JSON")["protocolVersion"], 2);
    }

    #[test]
    fn a_client_of_version_two_takes_version_two() {
        for (answer, lower, code) in [
            (result(), false, None),
            (result(), true, None),
            // It selects version 2 and does not fit it: no handshake.
            (json!({ "protocolVersion": 2 }), false, Some(-32600)),
            (json!({ "protocolVersion": 2, "info": "a" }), true, Some(-32600)),
            (json!({ "protocolVersion": "2" }), false, Some(-32600)),
            (json!({ "protocolVersion": 0 }), true, None),
            (json!({}), false, Some(-32600)),
            (json!({ "protocolVersion": 1 }), false, Some(-32600)),
            (json!({ "protocolVersion": 1 }), true, None),
            (json!({ "protocolVersion": 0 }), false, Some(-32600)),
            (json!({ "protocolVersion": 3 }), false, Some(-32600)),
            (json!({ "protocolVersion": 3 }), true, Some(-32600)),
            (json!({}), true, Some(-32600)),
        ] {
            let (mut client, outcome) = answered(Handshake::new(Endpoint::V2Client), &answer, lower);
            assert_eq!(outcome.err().map(|error| i32::from(error.code)), code, "{answer}");
            let ready = answer == result();
            let next = client.send_request("x", RemoteStyle::Counterpart, 2, &Bytes::new());
            assert_eq!(next.is_ok(), ready, "{answer}: only version 2 opens the connection");
            let retry = client.send_request("initialize", RemoteStyle::Counterpart, 3, &bytes(&asks(json!(2))));
            assert_eq!(retry.is_ok(), !ready, "{answer}: it may be tried again, or is in use");
        }
    }

    #[test]
    fn a_client_of_version_two_holds_back_until_its_handshake() {
        let mut client = Handshake::new(Endpoint::V2Client);
        assert!(client.send_request("x", RemoteStyle::Counterpart, 1, &Bytes::new()).is_err());
        assert!(client.send_notification("x").is_err());
        let early = client.receive_request("x", RemoteStyle::Counterpart, &id(1), &Bytes::new());
        assert_eq!(i32::from(early.expect_err("too early").code), -32600);
        let wrong = client.receive_request("initialize", RemoteStyle::Counterpart, &id(1), &bytes(&asks(json!(2))));
        assert_eq!(i32::from(wrong.expect_err("wrong direction").code), -32600);
        client.send_request("initialize", RemoteStyle::Counterpart, 1, &bytes(&asks(json!(2)))).expect("begun");
        assert!(client.send_notification("$/cancel_request").is_ok());
        assert!(client.send_request("initialize", RemoteStyle::Counterpart, 2, &bytes(&asks(json!(2)))).is_err());
        // It could not be sent: nothing happened.
        client.unsent(1);
        client.send_request("initialize", RemoteStyle::Counterpart, 3, &bytes(&asks(json!(2)))).expect("begun again");
        assert!(client.receive_answer(3, Ok(bytes(&result()))).is_ok());
        assert!(client.receive_request("x", RemoteStyle::Counterpart, &id(1), &Bytes::new()).is_ok());
    }

    #[test]
    fn a_proxy_of_version_two_is_exact_or_negotiates() {
        for (method, asked, selected) in [
            ("_proxy/initialize", 0, Err(-32600)),
            ("_proxy/initialize", 1, Err(-32600)),
            ("_proxy/initialize", 2, Ok(2)),
            ("_proxy/initialize", 3, Err(-32600)),
            ("proxy/initialize", 0, Err(-32022)),
            ("proxy/initialize", 1, Err(-32022)),
            ("proxy/initialize", 2, Ok(2)),
            ("proxy/initialize", 3, Ok(2)),
        ] {
            let received = received(Endpoint::V2Proxy(ProxyVersions::ByDialect), method, json!(asked));
            assert_eq!(version_of(received), selected, "{method} {asked}");
        }
        // Towards its successor it never takes a lower version.
        let mut proxy = Handshake::new(Endpoint::V2Proxy(ProxyVersions::ByDialect));
        proxy.send_request("initialize", RemoteStyle::Successor, 1, &bytes(&asks(json!(2)))).expect("sent");
        let lower = proxy.receive_answer(1, Ok(Bytes::from_static(br#"{"protocolVersion":1}"#)));
        assert_eq!(i32::from(lower.expect_err("lower").code), -32600);
    }
}
