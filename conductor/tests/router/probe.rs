//! The dialect probe: the nine steps of spec §3.5.

use greenroom_conductor::{
    Instantiated,
    ProxyDialect::{Auto, Legacy},
};
use greenroom_protocol::Error;

use crate::harness::*;

const NAMES: [&str; 2] = ["_proxy/initialize", "proxy/initialize"];
const BOTH: [&str; 2] = ["_proxy/successor", "proxy/successor"];

/// A chain of one proxy of unknown dialect that was asked to initialise for this version, and the
/// index of the name that it was asked with.
fn probing(params: &str) -> (Bench, usize) {
    let mut bench = Bench::new(&agent(&[Auto]));
    bench.feed(Client, &request("\"i\"", "initialize", params));
    let sent = bench.instantiated(Ok(Instantiated::default()));
    let first = usize::from(params == V2);
    assert_eq!(sent, [format!("0 {}", request("1", NAMES[first], params))]);
    (bench, first)
}

fn cancel(id: &str) -> String {
    notice("$/cancel_request", &format!(r#"{{"requestId":{id}}}"#))
}

/// The spelling in which the hop gets a message from its successor.
fn spoken(bench: &mut Bench) -> String {
    let sent = bench.feed(Component(1), &notice("x", "{}"));
    assert_eq!(sent.len(), 1);
    sent[0].split('"').nth(7).expect("a method").to_owned()
}

#[test]
fn initialising_the_successor_settles_the_dialect() {
    for params in [V1, V2] {
        let (mut bench, first) = probing(params);
        assert_eq!(bench.feed(Client, &notice("held", "{}")), [""; 0]);
        assert_eq!(bench.feed(Component(1), &notice("early", "{}")), [""; 0]);
        let sent = bench.feed(Component(0), &request("7", BOTH[first], &inner("initialize", params)));
        assert_eq!(
            sent,
            [
                format!("0 {}", notice("held", "{}")),
                format!("0 {}", notice(BOTH[first], &inner("early", "{}"))),
                format!("1 {}", request("1", "initialize", params)),
            ]
        );
        assert_eq!(spoken(&mut bench), BOTH[first]);
        // From now on an error is an answer, whatever its code.
        let back = bench.feed(Component(0), &refusal("1", -32601));
        assert_eq!(back, [format!("client {}", refusal("\"i\"", -32601))]);
        // And a repeated initialize is no probe.
        let other = if params == V1 { V2 } else { V1 };
        let sent = bench.feed(Client, &request("8", "initialize", other));
        assert_eq!(sent, [format!("0 {}", request("2", NAMES[first], other))]);
        assert_eq!(bench.feed(Client, &notice("free", "{}")), [format!("0 {}", notice("free", "{}"))]);
    }
}

#[test]
fn a_result_settles_the_dialect() {
    let (mut bench, first) = probing(V1);
    assert_eq!(bench.feed(Client, &request("5", "held", "{}")), [""; 0]);
    let sent = bench.feed(Component(0), &result("1", V1));
    assert_eq!(sent, [format!("client {}", result("\"i\"", V1)), format!("0 {}", request("2", "held", "{}"))]);
    assert_eq!(spoken(&mut bench), BOTH[first]);
    // Known by now: no probe, and nothing waits.
    assert_eq!(bench.feed(Client, &request("6", "initialize", V2)), [format!("0 {}", request("3", NAMES[first], V2))]);
    assert_eq!(bench.feed(Client, &notice("x", "{}")), [format!("0 {}", notice("x", "{}"))]);
}

#[test]
fn an_unknown_name_is_tried_in_the_other_spelling_once() {
    for params in [V1, V2] {
        for code in [-32601, -32600] {
            let (mut bench, first) = probing(params);
            bench.feed(Client, &notice("held", "{}"));
            let sent = bench.feed(Component(0), &refusal("1", code));
            assert_eq!(sent, [format!("0 {}", request("2", NAMES[1 - first], params))]);
            let mut sent = bench.feed(Component(0), &refusal("2", code));
            if code == -32600 {
                // It may stick to its first error. Nobody can start it anew, so that is the answer.
                assert_eq!(sent, ["recreate 0"]);
                assert_eq!(bench.feed(Component(0), &result("2", V1)).len(), 1, "it has answered");
                sent = bench.act(|router, out| router.recreated(0, Err(Error::new(-32603, "no factory")), out));
            }
            assert_eq!(sent, [format!("client {}", refusal("\"i\"", code)), format!("0 {}", notice("held", "{}"))]);
            assert!(bench.router.is_idle());
            // It lives, and is asked again with the next initialize.
            let sent = bench.feed(Client, &request("8", "initialize", params));
            assert!(sent.len() == 1 && sent[0].contains(NAMES[first]), "{sent:?}");
        }
    }
}

/// As released conductors of the legacy dialect do when they are asked with the modern name.
#[test]
fn a_component_that_sticks_to_its_first_error_is_started_anew_for_the_other_name() {
    for params in [V1, V2] {
        let (mut bench, first) = probing(params);
        bench.feed(Client, &notice("held", "{}"));
        bench.feed(Component(0), &refusal("1", -32600));
        assert_eq!(bench.feed(Component(0), &refusal("2", -32600)), ["recreate 0"]);
        let sent = bench.act(|router, out| router.recreated(0, Ok(()), out));
        let [sent] = &sent[..] else { panic!("{sent:?}") };
        let again: serde_json::Value = serde_json::from_str(&sent[2..]).expect("json");
        assert_eq!(again["method"], NAMES[1 - first]);
        let id = again["id"].to_string();
        let sent = bench.feed(Component(0), &request("7", BOTH[1 - first], &inner("initialize", params)));
        assert_eq!(sent.len(), 2, "what was held, and initialize: {sent:?}");
        bench.feed(Component(1), &result("1", params));
        assert_eq!(bench.feed(Component(0), &result(&id, params)), [format!("client {}", result("\"i\"", params))]);
        assert_eq!(spoken(&mut bench), BOTH[1 - first]);
        assert!(bench.router.is_idle());
    }
}

#[test]
fn a_component_is_started_anew_once_only() {
    for closes_first in [false, true] {
        let (mut bench, _) = probing(V2);
        if closes_first {
            bench.act(|router, out| router.component_down(0, &Error::new(-32603, "exit 1"), out));
        } else {
            bench.feed(Component(0), &refusal("1", -32600));
            bench.feed(Component(0), &refusal("2", -32600));
        }
        let sent = bench.act(|router, out| router.recreated(0, Ok(()), out));
        let again: serde_json::Value = serde_json::from_str(&sent[0][2..]).expect("json");
        let sent = bench.feed(Component(0), &refusal(&again["id"].to_string(), -32600));
        assert_eq!(sent, [format!("client {}", refusal("\"i\"", -32600))]);
        assert!(bench.router.is_idle());
    }
}

#[test]
fn a_cancelled_probe_needs_no_new_component() {
    let (mut bench, _) = probing(V2);
    bench.feed(Component(0), &refusal("1", -32600));
    bench.feed(Client, &cancel("\"i\""));
    refused(&bench.feed(Component(0), &refusal("2", -32600)), "client", "\"i\"", -32800);
    assert!(bench.router.is_idle());

    for lives in [true, false] {
        let (mut bench, _) = probing(V2);
        bench.feed(Component(0), &refusal("1", -32600));
        bench.feed(Component(0), &refusal("2", -32600));
        refused(&bench.feed(Client, &cancel("\"i\"")), "client", "\"i\"", -32800);
        let outcome = if lives { Ok(()) } else { Err(Error::new(-32603, "no factory")) };
        assert_eq!(bench.act(|router, out| router.recreated(0, outcome, out)), [""; 0]);
        assert!(bench.router.is_idle());
    }
}

#[test]
fn other_errors_are_the_answer() {
    for code in [-32022, -32602, -32603, -32000, 7] {
        let (mut bench, _) = probing(V2);
        assert_eq!(bench.feed(Component(0), &refusal("1", code)), [format!("client {}", refusal("\"i\"", code))]);
        assert!(bench.router.is_idle());
    }
}

#[test]
fn an_echo_is_answered_and_leads_to_the_other_name() {
    for params in [V1, V2] {
        for code in [-32601, -32603, 5] {
            let (mut bench, first) = probing(params);
            let echo = request("\"e\"", BOTH[1 - first], &inner(NAMES[first], params));
            refused(&bench.feed(Component(0), &echo), "0", "\"e\"", -32601);
            // Whatever it makes of that, the other name is next.
            let sent = bench.feed(Component(0), &refusal("1", code));
            assert_eq!(sent, [format!("0 {}", request("2", NAMES[1 - first], params))]);
            let sent = bench.feed(Component(0), &request("7", BOTH[1 - first], &inner("initialize", params)));
            assert_eq!(sent, [format!("1 {}", request("1", "initialize", params))]);
            assert_eq!(spoken(&mut bench), BOTH[1 - first]);
            bench.feed(Component(1), &result("1", params));
            assert_eq!(bench.feed(Component(0), &result("2", params)), [format!("client {}", result("\"i\"", params))]);
            assert!(bench.router.is_idle());
            // A late echo is a proxy that plays conductor.
            refused(&bench.feed(Component(0), &echo), "0", "\"e\"", -32600);
        }
    }
}

#[test]
fn a_configured_dialect_is_not_probed() {
    let mut bench = Bench::opening(&agent(&[Legacy]));
    let echo = request("5", "proxy/successor", &inner("_proxy/initialize", V1));
    refused(&bench.feed(Component(0), &echo), "0", "5", -32600);
    assert_eq!(bench.feed(Component(0), &refusal("1", -32601)), [format!("client {}", refusal("\"init\"", -32601))]);
    assert!(bench.router.is_idle());
}

#[test]
fn closing_on_the_probe_asks_for_a_new_component() {
    for params in [V1, V2] {
        let (mut bench, first) = probing(params);
        bench.feed(Client, &request("5", "held", "{}"));
        let exit = Error::new(-32603, "exit 1");
        assert_eq!(bench.act(|router, out| router.component_down(0, &exit, out)), ["recreate 0"]);
        assert_eq!(bench.feed(Client, &notice("held too", "{}")), [""; 0]);
        assert_eq!(bench.feed(Component(0), &result("1", V1)).len(), 1, "the dead one says nothing any more");
        let sent = bench.act(|router, out| router.recreated(0, Ok(()), out));
        let [sent] = &sent[..] else { panic!("{sent:?}") };
        let retry: serde_json::Value = serde_json::from_str(&sent[2..]).expect("json");
        assert_eq!(retry["method"], NAMES[1 - first]);
        let sent = bench.feed(Component(0), &result(&retry["id"].to_string(), params));
        assert_eq!(
            sent,
            [
                format!("client {}", result("\"i\"", params)),
                format!("0 {}", request("2", "held", "{}")),
                format!("0 {}", notice("held too", "{}")),
            ]
        );
        assert_eq!(spoken(&mut bench), BOTH[1 - first]);
    }
}

#[test]
fn closing_twice_is_the_end() {
    let (mut bench, _) = probing(V1);
    let exit = Error::new(-32603, "exit 1");
    bench.act(|router, out| router.component_down(0, &exit, out));
    bench.act(|router, out| router.recreated(0, Ok(()), out));
    let sent = bench.act(|router, out| router.component_down(0, &exit, out));
    let data = refused(&sent, "client", "\"i\"", -32603);
    assert_eq!(
        data,
        serde_json::json!({ "reason": "incoming_transport_closed", "method": "initialize", "exit": "exit 1" })
    );
    assert!(bench.router.is_idle());
}

#[test]
fn a_component_that_cannot_be_recreated_names_the_setting() {
    let (mut bench, _) = probing(V1);
    bench.act(|router, out| router.component_down(0, &Error::new(-32603, "exit 1"), out));
    let sent = bench.act(|router, out| router.recreated(0, Err(Error::new(-32603, "no factory")), out));
    let data = refused(&sent, "client", "\"i\"", -32603);
    let exit = data["exit"].as_str().expect("text");
    assert!(exit.contains("no factory") && exit.contains("ProxyDialect"), "{exit}");
    refused(&bench.feed(Client, &request("5", "x", "{}")), "client", "5", -32603);
    assert!(bench.router.is_idle());
}

#[test]
fn a_cancelled_probe_is_not_tried_again() {
    let (mut bench, _) = probing(V1);
    assert_eq!(bench.feed(Client, &cancel("\"i\"")), [format!("0 {}", cancel("1"))]);
    refused(&bench.feed(Component(0), &refusal("1", -32601)), "client", "\"i\"", -32800);
    assert!(bench.router.is_idle());

    // During the second attempt the cancel carries the second id.
    let (mut bench, _) = probing(V1);
    bench.feed(Component(0), &refusal("1", -32601));
    assert_eq!(bench.feed(Client, &cancel("\"i\"")), [format!("0 {}", cancel("2"))]);
    assert_eq!(bench.feed(Component(0), &result("2", V1)), [format!("client {}", result("\"i\"", V1))]);
    assert!(bench.router.is_idle());

    // While the component is being recreated there is nobody to tell.
    let (mut bench, _) = probing(V1);
    bench.act(|router, out| router.component_down(0, &Error::new(-32603, "exit 1"), out));
    refused(&bench.feed(Client, &cancel("\"i\"")), "client", "\"i\"", -32800);
    bench.feed(Client, &notice("held", "{}"));
    let sent = bench.act(|router, out| router.recreated(0, Ok(()), out));
    assert_eq!(sent, [format!("0 {}", notice("held", "{}"))]);
    assert!(bench.router.is_idle());
}

#[test]
fn a_waiting_request_can_be_cancelled() {
    let (mut bench, _) = probing(V1);
    bench.feed(Client, &request("5", "held", "{}"));
    bench.feed(Client, &request("6", "held", "{}"));
    assert_eq!(bench.feed(Component(0), &result("2", "{}")).len(), 1, "nobody can have answered it");
    refused(&bench.feed(Client, &cancel("5")), "client", "5", -32800);
    let sent = bench.feed(Component(0), &result("1", V1));
    assert_eq!(sent, [format!("client {}", result("\"i\"", V1)), format!("0 {}", request("3", "held", "{}"))]);
}

#[test]
fn a_second_initialize_waits_for_the_first() {
    let (mut bench, first) = probing(V1);
    assert_eq!(bench.feed(Client, &request("5", "initialize", V2)), [""; 0]);
    assert_eq!(bench.feed(Client, &notice("behind", "{}")), [""; 0]);
    // The first one fails without settling the dialect, so the second one probes again.
    let sent = bench.feed(Component(0), &refusal("1", -32022));
    assert_eq!(
        sent,
        [format!("client {}", refusal("\"i\"", -32022)), format!("0 {}", request("2", NAMES[1 - first], V2)),]
    );
    let sent = bench.feed(Component(0), &result("2", V2));
    assert_eq!(sent, [format!("client {}", result("5", V2)), format!("0 {}", notice("behind", "{}"))]);
    assert!(bench.router.is_idle());
}

#[test]
fn the_end_of_the_requester_ends_the_probe() {
    let (mut bench, _) = probing(V1);
    bench.feed(Component(1), &notice("held", "{}"));
    let sent = bench.act(|router, out| router.client_closed(&Error::new(-32603, "gone"), out));
    assert_eq!(
        sent,
        [format!("0 {}", cancel("1")), format!("0 {}", notice("_proxy/successor", &inner("held", "{}"))),]
    );
    assert!(bench.router.is_idle());
}

#[test]
fn responses_do_not_wait_for_a_probe() {
    let (mut bench, _) = probing(V1);
    let sent = bench.feed(Component(0), &request("9", "_proxy/successor", &inner("ask", "{}")));
    assert_eq!(sent, [format!("1 {}", request("1", "ask", "{}"))]);
    assert_eq!(bench.feed(Component(1), &result("1", "{}")), [format!("0 {}", result("9", "{}"))]);
    assert_eq!(bench.feed(Component(0), &request("8", "ask", "{}")), [format!("client {}", request("1", "ask", "{}"))]);
}
