//! The rules of the lanes, step by step.

use super::*;

fn frame(text: &str) -> Frame {
    Frame::parse(text.to_owned().into())
}

fn call(id: i64, method: &str, params: &str) -> Frame {
    frame(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#))
}

fn result(id: i64, result: &str) -> Frame {
    frame(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn session(id: &str) -> Scope {
    Scope::Session(Session::new(id).unwrap())
}

/// What is decided until nothing is: short words, with ids.
fn steps(lanes: &mut Lanes) -> Vec<String> {
    let mut steps = Vec::new();
    while let Some(step) = lanes.next().unwrap() {
        let id = |frame: &Frame| frame.part(frame.envelope().id).to_owned();
        let header = |message: &Message| {
            message.session.as_ref().map_or(String::new(), |it| format!(" in {}", it.header().to_str().unwrap()))
        };
        steps.push(match step {
            Step::Initialize(message) => format!("initialize {}", id(&message.frame)),
            Step::Post(Lane::Calls, message) => format!("call {}{}", id(&message.frame), header(&message)),
            Step::Post(Lane::Responses, message) => format!("answer {}{}", id(&message.frame), header(&message)),
            Step::Open(Scope::Connection) => "open".to_owned(),
            Step::Open(Scope::Session(it)) => format!("open {}", it.header().to_str().unwrap()),
            Step::Leave(it) => format!("leave {}", it.header().to_str().unwrap()),
            Step::Refuse(answer) => format!("refuse {}", id(&answer)),
        });
    }
    steps
}

/// Lanes of an open connection.
fn ready() -> Lanes {
    let mut lanes = Lanes::new();
    lanes.accept(call(0, "initialize", "{}"), None);
    assert_eq!(steps(&mut lanes), ["initialize 0"]);
    lanes.initialized(true);
    assert_eq!(steps(&mut lanes), ["open"]);
    lanes.opened(&Scope::Connection);
    lanes
}

#[test]
fn nothing_overtakes_a_call_but_answers() {
    let mut lanes = ready();
    lanes.received(&call(5, "_ask", r#"{"sessionId":"s"}"#), &Scope::Connection);
    lanes.accept(call(1, "_one", "{}"), None);
    lanes.accept(call(2, "_two", "{}"), None);
    lanes.accept(result(5, "{}"), None);
    assert_eq!(steps(&mut lanes), ["answer 5 in s", "call 1"]);
    lanes.accept(result(6, "{}"), None);
    assert_eq!(steps(&mut lanes), [""; 0]);
    lanes.posted(Lane::Responses);
    assert_eq!(steps(&mut lanes), ["answer 6"]);
    lanes.posted(Lane::Calls);
    assert_eq!(steps(&mut lanes), ["call 2"]);
    assert!(!lanes.is_drained());
    lanes.posted(Lane::Calls);
    lanes.posted(Lane::Responses);
    assert!(lanes.is_drained());
}

#[test]
fn calls_wait_for_every_stream_and_answers_for_none() {
    let mut lanes = ready();
    lanes.accept(call(1, "session/prompt", r#"{"sessionId":"s"}"#), None);
    lanes.accept(call(2, "_x", "{}"), None);
    assert_eq!(steps(&mut lanes), ["open s"]);
    lanes.accept(result(9, "{}"), None);
    assert_eq!(steps(&mut lanes), ["answer 9"]);
    lanes.opened(&session("s"));
    assert_eq!(steps(&mut lanes), ["call 1 in s"]);
}

#[test]
fn a_result_that_names_a_session_opens_its_stream_once() {
    let mut lanes = ready();
    lanes.accept(call(1, "session/new", "{}"), None);
    assert_eq!(steps(&mut lanes), ["call 1"]);
    lanes.posted(Lane::Calls);
    lanes.received(&result(1, r#"{"sessionId":"s"}"#), &Scope::Connection);
    lanes.received(&result(1, r#"{"sessionId":"t"}"#), &Scope::Connection);
    assert_eq!(steps(&mut lanes), ["open s"]);
}

#[test]
fn the_end_of_a_stream_is_a_failure_unless_its_session_is_over() {
    let mut lanes = ready();
    lanes.accept(call(1, "session/close", r#"{"sessionId":"s"}"#), None);
    assert_eq!(steps(&mut lanes), ["open s"]);
    lanes.opened(&session("s"));
    assert_eq!(steps(&mut lanes), ["call 1 in s"]);
    lanes.posted(Lane::Calls);
    lanes.received(&result(1, "{}"), &session("s"));
    assert_eq!(steps(&mut lanes), ["leave s"]);

    lanes.accept(call(2, "session/close", r#"{"sessionId":"s"}"#), None);
    assert_eq!(steps(&mut lanes), ["open s"]);
    lanes.opened(&session("s"));
    assert_eq!(steps(&mut lanes), ["call 2 in s"]);
    lanes.received(&result(2, "{}"), &Scope::Connection);
    assert!(lanes.ended(&session("s")));
    assert!(lanes.ended(&session("s")), "left already");
    // An error ends no session.
    lanes.posted(Lane::Calls);
    lanes.accept(call(3, "session/close", r#"{"sessionId":"t"}"#), None);
    assert_eq!(steps(&mut lanes), ["open t"]);
    lanes.opened(&session("t"));
    assert_eq!(steps(&mut lanes), ["call 3 in t"]);
    let refused = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no"}}"#;
    lanes.received(&Frame::parse(refused.into()), &Scope::Connection);
    assert!(!lanes.ended(&session("t")));
    assert!(!lanes.ended(&Scope::Connection));
}

#[test]
fn what_the_agent_leaves_open_is_remembered_up_to_a_bound() {
    let mut lanes = ready();
    for id in 0..MAX_ASKED + 10 {
        lanes.received(&call(i64::try_from(id % 3).unwrap(), "_ask", r#"{"sessionId":"s"}"#), &Scope::Connection);
    }
    assert_eq!(lanes.open_asked, MAX_ASKED);
    lanes.accept(result(0, "{}"), None);
    assert_eq!(lanes.open_asked, MAX_ASKED - 1);
}

#[test]
fn a_batch_with_a_call_that_needs_its_session_is_refused_whole() {
    let mut lanes = ready();
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"_x"},{"jsonrpc":"2.0","id":2,"method":"session/prompt"}]"#;
    lanes.accept(frame(text), None);
    assert_eq!(steps(&mut lanes), ["refuse 1", "refuse 2"]);
}
