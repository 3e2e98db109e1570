//! Batches: split towards the hops, regrouped towards the sender.

use greenroom_conductor::{Batches, ChainShape, Instantiated, ProxyDialect::Legacy, dropped};
use greenroom_protocol::Error;

use crate::harness::*;

fn array(entries: &[String]) -> String {
    format!("[{}]", entries.join(","))
}

#[test]
fn replies_return_as_one_array_in_the_order_of_the_entries() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    let batch = array(&[
        request("\"a\"", "x/one", "{}"),
        notice("x/note", "{}"),
        "5".into(),
        request("2", "x/two", "[1]"),
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#.into(),
    ]);
    let sent = bench.feed(Client, &batch);
    assert_eq!(
        sent,
        [
            format!("0 {}", request("2", "x/one", "{}")),
            format!("0 {}", notice("x/note", "{}")),
            format!("0 {}", request("3", "x/two", "[1]")),
            format!("drop: {}", dropped::MALFORMED_RESPONSE),
        ]
    );
    // Others are not held up, and another batch does not mix.
    bench.feed(Client, &array(&[request("\"b\"", "x/three", "{}")]));
    assert_eq!(bench.feed(Component(0), &result("4", "4")), [format!("client [{}]", result("\"b\"", "4"))]);
    assert_eq!(bench.feed(Component(0), &result("3", "3")), [""; 0]);
    let done = bench.feed(Component(0), &refusal("2", 9));
    let [done] = &done[..] else { panic!("{done:?}") };
    let entries: Vec<serde_json::Value> =
        serde_json::from_str(done.strip_prefix("client ").expect("client")).expect("array");
    assert_eq!(entries.len(), 3);
    assert_eq!((&entries[0]["id"], &entries[0]["error"]["code"]), (&"a".into(), &9.into()));
    assert_eq!((&entries[1]["id"], &entries[1]["error"]["code"]), (&serde_json::Value::Null, &(-32600).into()));
    assert_eq!((&entries[2]["id"], &entries[2]["result"]), (&2.into(), &3.into()));
    assert!(bench.router.is_idle());
}

#[test]
fn equal_ids_keep_their_own_places() {
    let mut bench = Bench::running(&agent(&[]));
    bench.feed(Client, &array(&[request("1", "x/one", "{}"), request("1", "x/two", "{}")]));
    bench.feed(Component(0), &result("3", "\"second\""));
    let done = bench.feed(Component(0), &result("2", "\"first\""));
    assert_eq!(done, [format!("client [{},{}]", result("1", "\"first\""), result("1", "\"second\""))]);
    assert!(bench.router.is_idle());
}

#[test]
fn refusals_fill_their_places_at_once() {
    let mut bench = Bench::running(&agent(&[]));
    let sent =
        bench.feed(Client, &array(&[request("1", "proxy/initialize", V1), request("2", "proxy/successor", "{}")]));
    let [done] = &sent[..] else { panic!("{sent:?}") };
    assert!(done.starts_with("client [") && done.matches("-32600").count() == 2, "{done}");
    assert!(bench.router.is_idle());
}

#[test]
fn a_batch_without_requests_gets_no_reply() {
    let mut bench = Bench::running(&agent(&[]));
    let sent = bench.feed(Client, &array(&[notice("a", "{}"), notice("b", "{}")]));
    assert_eq!(sent, [format!("0 {}", notice("a", "{}")), format!("0 {}", notice("b", "{}"))]);
    bench.feed(Component(0), &request("1", "ask", "{}"));
    let sent = bench.feed(Client, &array(&[result("1", "{}"), result("8", "{}")]));
    assert_eq!(sent, [format!("0 {}", result("1", "{}")), format!("drop: {}", dropped::UNKNOWN_RESPONSE)]);
    assert!(bench.router.is_idle());
}

#[test]
fn components_may_send_batches_too() {
    let mut bench = Bench::running(&agent(&[Legacy]));
    let sent = bench.feed(
        Component(0),
        &array(&[request("1", "_proxy/successor", &inner("right", "{}")), request("2", "left", "{}")]),
    );
    assert_eq!(sent, [format!("1 {}", request("1", "right", "{}")), format!("client {}", request("1", "left", "{}"))]);
    bench.feed(Client, &result("1", "2"));
    let done = bench.feed(Component(1), &result("1", "1"));
    assert_eq!(done, [format!("0 [{},{}]", result("1", "1"), result("2", "2"))]);
    assert!(bench.router.is_idle());
}

#[test]
fn a_batch_may_open_the_chain() {
    let mut bench = Bench::new(&agent(&[]));
    assert_eq!(bench.feed(Client, &array(&[request("1", "initialize", V1), request("2", "x", "{}")])), ["instantiate"]);
    let sent = bench.instantiated(Ok(Instantiated::default()));
    assert_eq!(sent, [format!("0 {}", request("1", "initialize", V1)), format!("0 {}", request("2", "x", "{}"))]);
    bench.feed(Component(0), &result("2", "{}"));
    let done = bench.feed(Component(0), &result("1", V1));
    assert_eq!(done, [format!("client [{},{}]", result("1", V1), result("2", "{}"))]);
    assert!(bench.router.is_idle());
}

#[test]
fn a_receiver_that_dies_completes_the_array() {
    let mut bench = Bench::running(&agent(&[]));
    bench.feed(Client, &array(&[request("1", "x", "{}"), request("2", "y", "{}")]));
    bench.feed(Component(0), &result("3", "{}"));
    let sent = bench.act(|router, out| router.component_down(0, &Error::new(-32603, "exit 1"), out));
    let [done] = &sent[..] else { panic!("{sent:?}") };
    assert!(done.starts_with("client [") && done.contains("incoming_transport_closed"), "{done}");
    assert!(bench.router.is_idle());
}

#[test]
fn batches_can_be_refused_as_a_whole() {
    let mut bench = Bench::new(&ChainShape { batches: Batches::Reject, ..agent(&[]) });
    refused(&bench.feed(Client, &array(&[request("1", "initialize", V1)])), "client", "null", -32600);
    assert_eq!(bench.feed(Client, &request("1", "initialize", V1)), ["instantiate"]);
}
