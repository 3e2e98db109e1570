//! `greenroom agent`: relaying, byte for byte, and ending in order.

use serde_json::{Value, json};

use crate::support::{ARROW, Conversation, PASS_THROUGH, TESTY, children, eventually, leaving_agent, signal};

const CHAINS: [&[&str]; 3] = [&[TESTY], &[PASS_THROUGH, TESTY], &[PASS_THROUGH, ARROW, PASS_THROUGH, TESTY]];

#[test]
fn a_whole_conversation_through_zero_one_and_three_proxies() {
    for chain in CHAINS {
        let mut client = Conversation::start(chain);
        let session = client.open();
        client.prompt(3, &session, "echo hello");
        let (answer, before) = client.answer(&json!(3));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{chain:?}: {answer}");
        let texts: Vec<&Value> = before.iter().map(|update| &update["params"]["update"]["content"]["text"]).collect();
        let expected = if chain.contains(&ARROW) { "→ hello" } else { "hello" };
        assert_eq!(texts, [expected], "{chain:?}");
        client.close();
        assert_eq!(client.wait(), Some(0), "{chain:?}");
    }
}

/// Row C10 and more: ids come back exactly as they were spelled, whatever the hops use.
#[test]
fn ids_are_restored_exactly() {
    for chain in CHAINS {
        let mut client = Conversation::start(chain);
        client.open();
        for id in [json!("abc-1"), json!("1"), json!(1), json!(9_007_199_254_740_993_i64), json!(-5), Value::Null] {
            client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "session/new", "params": { "cwd": "/", "mcpServers": [] } }));
            let (answer, _) = client.answer(&id);
            assert!(answer["result"]["sessionId"].is_string(), "{chain:?} {id}: {answer}");
        }
    }
}

#[test]
fn an_unknown_method_is_refused_by_the_agent() {
    for chain in CHAINS {
        let mut client = Conversation::start(chain);
        client.open();
        let answer = client.request(9, "_vendor/unknown", &json!({ "a": [1, null] }));
        assert_eq!(answer["error"]["code"], -32601, "{chain:?}: {answer}");
    }
}

/// A session-wide cancel and the cancellation of one request, both across every hop.
#[test]
fn cancelling_reaches_the_agent() {
    for chain in CHAINS {
        let mut client = Conversation::start(chain);
        let session = client.open();
        client.prompt(3, &session, "wait_for_cancel");
        client.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
        let (answer, _) = client.answer(&json!(3));
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{chain:?}: {answer}");

        client.prompt(4, &session, "wait_for_cancel");
        client.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 4 } }));
        let (answer, _) = client.answer(&json!(4));
        assert_eq!(answer["error"]["code"], -32800, "{chain:?}: {answer}");
    }
}

/// Case C22: the prompt and its cancellation come in one write.
#[test]
fn a_prompt_that_is_cancelled_in_the_same_write_ends_as_cancelled() {
    for chain in CHAINS {
        let mut client = Conversation::start(chain);
        let session = client.open();
        let prompt = json!({ "jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {
            "sessionId": session, "prompt": [{ "type": "text", "text": "wait_for_cancel" }],
        } });
        let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
        client.write(format!("{prompt}\n{cancel}\n").as_bytes());
        let (answer, _) = client.answer(&json!(3));
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{chain:?}: {answer}");
        // The next turn is its own.
        client.prompt(4, &session, "hello");
        let (answer, _) = client.answer(&json!(4));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{chain:?}: {answer}");
    }
}

/// Noise, blank lines, a byte order mark and malformed input harm only themselves.
#[test]
fn odd_input_leaves_the_chain_alive() {
    let mut client = Conversation::start(&[PASS_THROUGH, TESTY]);
    client.write(b"\xEF\xBB\xBF\n\r\nWelcome back\n");
    client.open();
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":7,\n");
    let refused = client.receive();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32700)));
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}\r\n");
    assert_eq!(client.receive()["error"]["code"], -32600);
    // A last line without a line end, then the end of the input: still answered.
    client.write(br#"{"jsonrpc":"2.0","id":"last","method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#);
    client.close();
    let (answer, _) = client.answer(&json!("last"));
    assert!(answer["result"]["sessionId"].is_string(), "{answer}");
    assert_eq!(client.wait(), Some(0));
}

#[test]
fn a_dead_component_fails_what_waits_and_names_its_exit() {
    for (chain, victim) in [(&[PASS_THROUGH, TESTY][..], 1), (&[PASS_THROUGH, TESTY], 0), (&[TESTY], 0)] {
        let mut client = Conversation::start(chain);
        let session = client.open();
        client.prompt(3, &session, "wait_for_cancel");
        // The answer to a later message: the prompt has reached the agent.
        client.send(&json!({ "jsonrpc": "2.0", "id": 4, "method": "_marker", "params": {} }));
        client.answer(&json!(4));
        let mut components = children(client.child.id());
        components.sort_unstable();
        assert_eq!(components.len(), chain.len());
        let killed = std::time::Instant::now();
        signal(components[victim], "KILL");
        let (answer, _) = client.answer(&json!(3));
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(answer.to_string().contains("SIGKILL") || answer.to_string().contains("signal: 9"), "{answer}");
        assert_eq!(client.wait(), Some(1), "the chain is over, and says so");
        // The rest is asked to end, not left until the limit of ten seconds kills it.
        assert!(killed.elapsed() < std::time::Duration::from_secs(8), "{chain:?}: {:?}", killed.elapsed());
    }
}

/// An agent that exits right after its answer takes nothing along that is still on its way.
#[test]
fn the_last_words_of_an_agent_pass_every_proxy() {
    let agent = leaving_agent(2000);
    for proxies in [0, 1, 3] {
        let mut chain = vec![PASS_THROUGH; proxies];
        chain.push(&agent);
        let mut client = Conversation::start(&chain);
        let session = client.open();
        client.prompt(3, &session, "all of it");
        let (answer, before) = client.answer(&json!(3));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{proxies} proxies: {answer}");
        let texts: Vec<&str> =
            before.iter().filter_map(|update| update["params"]["update"]["content"]["text"].as_str()).collect();
        let expected: Vec<String> = (0..2000).map(|n| format!("{n} ")).collect();
        assert_eq!(texts, expected, "{proxies} proxies");
        assert_eq!(client.wait(), Some(1), "the chain is over, and says so");
    }
}

/// SIGTERM is an orderly end: nothing is left behind.
#[test]
fn a_terminated_conductor_takes_its_children_along() {
    let mut client = Conversation::start(&[PASS_THROUGH, TESTY]);
    client.open();
    let components = children(client.child.id());
    assert_eq!(components.len(), 2);
    signal(client.child.id(), "TERM");
    assert_eq!(client.wait(), Some(0));
    for component in components {
        eventually("the component is gone", || !std::path::Path::new(&format!("/proc/{component}")).exists());
    }
}

#[test]
fn a_component_that_cannot_start_is_an_error_of_every_request() {
    let mut client = Conversation::start(&[PASS_THROUGH, "no-such-agent"]);
    for id in 1..3 {
        let answer = client.request(id, "initialize", &json!({ "protocolVersion": 1 }));
        assert!(answer["error"].to_string().contains("no-such-agent"), "{answer}");
    }
    client.close();
    assert_eq!(client.wait(), Some(1));
}
