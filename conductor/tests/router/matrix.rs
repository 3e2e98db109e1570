//! Every pair of dialects, with every version, as an agent chain and nested in either dialect.

use greenroom_conductor::{Mode, dropped};
use greenroom_protocol::Dialect::{self, Legacy, Modern};

use crate::harness::{V1, V2};
use crate::network::{EXTENDED, Network, call};

/// All chains of two; the name says which one failed.
fn chains() -> impl Iterator<Item = (String, Mode, Dialect, [Dialect; 2], &'static str)> {
    let outer = [(Mode::Agent, Legacy), (Mode::Proxy, Legacy), (Mode::Proxy, Modern)];
    outer.into_iter().flat_map(|(mode, outer)| {
        [Legacy, Modern].into_iter().flat_map(move |first| {
            [Legacy, Modern].into_iter().flat_map(move |second| {
                [V1, V2].map(|version| {
                    let name = format!("{mode:?} {outer:?} {first:?} {second:?} {version}");
                    (name, mode, outer, [first, second], version)
                })
            })
        })
    })
}

fn initialized(mode: Mode, outer: Dialect, dialects: &[Dialect], version: &str) -> Network {
    let mut network = Network::new(mode, outer, dialects);
    network.initialize(version);
    network.drain();
    assert_eq!(network.right.seen, [format!("initialize {version}")]);
    assert_eq!(network.left.answers["\"init\""], [version]);
    assert!(network.router.is_idle() && network.dropped.is_empty());
    network.right.seen.clear();
    network
}

const IDS: [&str; 8] = ["1", "0", "-7", "9007199254740993", "\"1\"", "\"a-b\"", "null", "\"\\u00e9\""];
const PARAMS: [&str; 5] = [r#"{"sessionId":"s","_meta":{"k":[1.0,1e2]}}"#, "[1, 2 ,3]", "{}", "", "null"];

#[test]
fn the_first_guess_depends_on_the_version_and_is_made_once() {
    for (name, mode, outer, dialects, version) in chains() {
        let network = initialized(mode, outer, &dialects, version);
        let guess = if version == V1 { Legacy } else { Modern };
        let wrong = dialects.map(|dialect| u32::from(dialect != guess));
        assert_eq!(network.foreign_names(), wrong, "{name}");
    }
}

#[test]
fn a_refused_initialize_reaches_the_client_unchanged() {
    for (name, mode, outer, dialects, version) in chains() {
        let mut network = Network::new(mode, outer, &dialects);
        network.right.refuse_initialize = true;
        network.initialize(version);
        network.drain();
        assert_eq!(network.left.answers["\"init\""], [EXTENDED], "{name}");
        assert!(network.router.is_idle(), "{name}");
    }
}

#[test]
fn requests_and_their_answers_pass_both_ways() {
    for (name, mode, outer, dialects, version) in chains() {
        let mut network = initialized(mode, outer, &dialects, version);
        for (method, answer) in [("x/ok", None), ("x/fail", Some(EXTENDED))] {
            for (id, params) in IDS.iter().flat_map(|id| PARAMS.map(|params| (id, params))) {
                let arrives = if params == "null" { "" } else { params };
                network.left_sends(call(Some(id), method, params));
                network.drain();
                // Null and absent params are the same; which of both arrives depends on the hops.
                let seen = network.right.seen.pop().expect("a request").replace(" null", " ");
                assert_eq!(seen, format!("{method} {arrives}"), "{name}");
                let expected = answer.unwrap_or(if arrives.is_empty() { "null" } else { params });
                assert_eq!(network.left.answers.remove(*id), Some(vec![expected.to_owned()]), "{name} {id} {params}");

                network.right_calls(Some(id), method, params);
                network.drain();
                let seen = network.left.seen.pop().expect("a request").replace(" null", " ");
                assert_eq!(seen, format!("{method} {arrives}"), "{name}");
                let answers = if mode == Mode::Agent { &mut network.right.answers } else { &mut network.left.answers };
                assert_eq!(answers.remove(*id), Some(vec![expected.to_owned()]), "{name} {id} {params}");
            }
        }
        assert!(network.router.is_idle() && network.dropped.is_empty(), "{name}");
        assert!(network.left.seen.is_empty() && network.right.seen.is_empty(), "{name}");
    }
}

#[test]
fn notifications_pass_both_ways_in_order() {
    for (name, mode, outer, dialects, version) in chains() {
        let mut network = initialized(mode, outer, &dialects, version);
        for (index, params) in PARAMS.iter().enumerate() {
            network.left_sends(call(None, &format!("n/{index}"), params));
            network.right_calls(None, &format!("n/{index}"), params);
        }
        network.drain();
        for seen in [&network.left.seen, &network.right.seen] {
            let seen: Vec<String> = seen.iter().map(|seen| seen.replace(" null", " ")).collect();
            let sent =
                PARAMS.iter().enumerate().map(|(index, params)| format!("n/{index} {params}").replace(" null", " "));
            assert_eq!(seen, sent.collect::<Vec<_>>(), "{name}");
        }
        assert!(network.router.is_idle() && network.dropped.is_empty(), "{name}");
    }
}

#[test]
fn cancels_pass_both_ways_once() {
    for (name, mode, outer, dialects, version) in chains() {
        let mut network = initialized(mode, outer, &dialects, version);
        for id in IDS {
            network.left_sends(call(Some(id), "x/wait", "{}"));
            network.drain();
            network.left_cancels(id);
            network.left_cancels(id);
            network.drain();
            assert_eq!(network.right.seen, ["x/wait {}", "cancel"], "{name} {id}");
            let cancelled = vec![r#"{"code":-32800,"message":"cancelled"}"#.to_owned()];
            assert_eq!(network.left.answers.remove(id), Some(cancelled.clone()), "{name} {id}");
            network.right.seen.clear();

            network.right_calls(Some(id), "x/wait", "{}");
            network.drain();
            network.right_cancels(id);
            network.right_cancels(id);
            network.drain();
            assert_eq!(network.left.seen, ["x/wait {}", "cancel"], "{name} {id}");
            let answers = if mode == Mode::Agent { &mut network.right.answers } else { &mut network.left.answers };
            assert_eq!(answers.remove(id), Some(cancelled), "{name} {id}");
            network.left.seen.clear();
        }
        assert!(network.router.is_idle(), "{name}");
        assert_eq!(network.dropped, vec![dropped::STALE_CANCEL; 2 * IDS.len()], "{name}");
    }
}

#[test]
fn answers_out_of_order_find_their_requests() {
    for (name, mode, outer, dialects, version) in chains() {
        let mut network = initialized(mode, outer, &dialects, version);
        for id in IDS {
            network.left_sends(call(Some(id), "x/wait", "{}"));
        }
        network.drain();
        for id in IDS.iter().rev() {
            network.left_cancels(id);
            network.drain();
            assert_eq!(network.left.answers.remove(*id).map(|answers| answers.len()), Some(1), "{name} {id}");
        }
        assert!(network.router.is_idle(), "{name}");
    }
}
