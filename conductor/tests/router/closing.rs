//! The end of a hop.

use greenroom_conductor::{
    ProxyDialect::{Legacy, Modern},
    dropped,
};
use greenroom_protocol::Error;
use serde_json::json;

use crate::harness::*;

fn exit() -> Error {
    Error::new(-32603, "exit status 3")
}

fn cancel(id: &str) -> String {
    notice("$/cancel_request", &format!(r#"{{"requestId":{id}}}"#))
}

#[test]
fn every_request_to_a_dead_component_is_answered_oldest_first() {
    let mut bench = Bench::opening(&agent(&[Legacy]));
    bench.feed(Client, &request("\"p\"", "session/prompt", "{}"));
    bench.feed(Component(1), &request("9", "fs/read", "{}"));
    let sent = bench.act(|router, out| router.component_down(0, &exit(), out));
    let answers = [("client", "\"init\"", "initialize"), ("client", "\"p\"", "session/prompt"), ("1", "9", "fs/read")];
    assert_eq!(sent.len(), answers.len());
    for (sent, (to, id, method)) in sent.iter().zip(answers) {
        let data = refused(std::slice::from_ref(sent), to, id, -32603);
        assert_eq!(data, json!({ "reason": "incoming_transport_closed", "method": method, "exit": "exit status 3" }));
    }
    assert!(bench.router.is_idle());
}

#[test]
fn what_a_dead_component_asked_is_called_off() {
    let mut bench = Bench::running(&agent(&[Legacy, Legacy]));
    bench.feed(Component(1), &request("1", "_proxy/successor", &inner("a", "{}")));
    bench.feed(Component(1), &request("2", "_proxy/successor", &inner("b", "{}")));
    bench.feed(Component(1), &request("3", "c", "{}"));
    bench.feed(Component(1), &cancel("2"));
    let sent = bench.act(|router, out| router.component_down(1, &exit(), out));
    let wrapped = notice("_proxy/successor", &inner("$/cancel_request", r#"{"requestId":2}"#));
    assert_eq!(sent, [format!("0 {wrapped}"), format!("2 {}", cancel("1"))], "the second was cancelled already");
    for answer in [result("1", "{}"), result("2", "{}")] {
        assert_eq!(bench.feed(Component(2), &answer), [format!("drop: {}", dropped::UNKNOWN_RESPONSE)]);
    }
    assert!(bench.router.is_idle());
}

#[test]
fn later_requests_to_a_dead_component_fail_at_once() {
    let mut bench = Bench::running(&agent(&[Modern]));
    bench.act(|router, out| router.component_down(0, &exit(), out));
    assert_eq!(bench.act(|router, out| router.component_down(0, &exit(), out)), [""; 0], "once");
    let data = refused(&bench.feed(Client, &request("1", "a/b", "{}")), "client", "1", -32603);
    assert_eq!(data, json!({ "reason": "incoming_transport_closed", "method": "a/b", "exit": "exit status 3" }));
    let data = refused(&bench.feed(Client, &request("2", "initialize", V1)), "client", "2", -32603);
    assert_eq!(data["method"], "initialize");
    refused(&bench.feed(Component(1), &request("3", "x", "{}")), "1", "3", -32603);
    let closed = [format!("drop: {}", dropped::CLOSED)];
    assert_eq!(bench.feed(Client, &notice("a", "{}")), closed);
    assert_eq!(bench.feed(Component(0), &request("4", "ghost", "{}")), closed);
    assert!(bench.router.is_idle());
    // Up again: the ids go on, nothing late can be mistaken.
    bench.router.component_up(0);
    let sent = bench.feed(Client, &request("5", "initialize", V1));
    assert_eq!(sent, [format!("0 {}", request("2", "proxy/initialize", V1))]);
}

#[test]
fn the_end_of_the_agent_reaches_the_proxy_before_it() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    bench.feed(Component(0), &request("5", "_proxy/successor", &inner("session/new", "{}")));
    let sent = bench.act(|router, out| router.component_down(1, &exit(), out));
    assert_eq!(refused(&sent, "0", "5", -32603)["method"], "session/new");
}

#[test]
fn a_client_that_is_gone_is_called_off_everywhere() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    bench.feed(Client, &request("1", "a", "{}"));
    bench.feed(Client, &format!("[{}]", request("2", "b", "{}")));
    bench.feed(Component(0), &request("7", "ask", "{}"));
    let sent = bench.act(|router, out| router.client_closed(&exit(), out));
    assert_eq!(sent[..2], [format!("0 {}", cancel("2")), format!("0 {}", cancel("3"))]);
    refused(&sent[2..], "0", "7", -32603);
    assert!(bench.router.is_idle());
    assert_eq!(bench.act(|router, out| router.client_closed(&exit(), out)), [""; 0]);
    assert_eq!(bench.feed(Component(0), &result("2", "{}")), [format!("drop: {}", dropped::UNKNOWN_RESPONSE)]);
    assert_eq!(bench.feed(Component(0), &notice("late", "{}")), [format!("drop: {}", dropped::CLOSED)]);
    refused(&bench.feed(Component(0), &request("8", "late", "{}")), "0", "8", -32603);
}

#[test]
fn a_client_that_only_finished_gets_its_answers() {
    let mut bench = Bench::running(&agent(&[]));
    bench.feed(Client, &request("1", "a", "{}"));
    bench.feed(Component(0), &request("7", "ask", "{}"));
    let sent = bench.act(|router, out| router.client_finished(&exit(), out));
    refused(&sent, "0", "7", -32603);
    refused(&bench.feed(Component(0), &request("8", "ask", "{}")), "0", "8", -32603);
    assert_eq!(bench.feed(Component(0), &notice("n", "{}")), [format!("client {}", notice("n", "{}"))]);
    assert_eq!(bench.router.in_flight(), 1);
    assert_eq!(bench.feed(Component(0), &result("2", "{}")), [format!("client {}", result("1", "{}"))]);
    assert!(bench.router.is_idle());
    bench.feed(Component(0), &notice("n", "{}"));
    bench.act(|router, out| router.client_closed(&exit(), out));
    assert_eq!(bench.feed(Component(0), &notice("n", "{}")), [format!("drop: {}", dropped::CLOSED)]);
}

#[test]
fn a_client_that_leaves_while_components_start_leaves_nothing() {
    let mut bench = Bench::new(&agent(&[]));
    bench.feed(Client, &request("1", "initialize", V1));
    bench.act(|router, out| router.client_closed(&exit(), out));
    assert_eq!(bench.instantiated(Ok(greenroom_conductor::Instantiated::default())), [""; 0]);
    assert!(bench.router.is_idle());
}

#[test]
fn an_empty_nested_chain_ends_cleanly() {
    let mut bench = Bench::running(&nested(&[]));
    bench.feed(Client, &request("1", "a", "{}"));
    assert_eq!(bench.act(|router, out| router.client_closed(&exit(), out)), [""; 0], "nobody is left to tell");
    assert!(bench.router.is_idle());
}
