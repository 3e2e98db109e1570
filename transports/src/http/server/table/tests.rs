use super::*;
use crate::http::server::message::check;

fn table() -> Table {
    let limits = ServerLimits { sessions: 3, unconfirmed_streams: 2, open_requests: 3, ..ServerLimits::default() };
    Table::new(Limits::of(&limits))
}

fn frame(text: &str) -> Frame {
    Frame::parse(text.to_owned().into())
}

impl Table {
    fn asked(&mut self, text: &str) -> bool {
        let checked = check(frame(text), None).expect("accepted");
        self.expect(checked.expected)
    }

    /// The session that a frame of the agent goes to; `None` for the connection.
    fn goes_to(&mut self, text: &str) -> Option<String> {
        self.target(&frame(text)).session.as_deref().map(str::to_owned)
    }
}

#[test]
fn requests_are_counted_and_settled_one_by_one() {
    let mut table = table();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"sessionId":"s"}}"#;
    assert!(table.asked(call) && table.asked(call) && table.asked(call));
    assert!(!table.asked(call), "three are open");
    assert!(table.asked(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#), "nobody can tell its answer from others");
    table.goes_to(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!(table.asked(call));
    table.goes_to(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
    assert!(!table.asked(call), "another id");
    for _ in 0..5 {
        table.goes_to(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#);
    }
    assert_eq!((table.open, table.routes.len()), (0, 0));
}

#[test]
fn an_answer_goes_to_its_session_only_if_that_has_a_stream() {
    let mut table = table();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"sessionId":"s"}}"#;
    table.asked(call);
    assert_eq!(table.goes_to(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), None);
    table.asked(call);
    table.for_listener("s").expect("confirmed by the result");
    assert_eq!(table.goes_to(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).as_deref(), Some("s"));
}

#[test]
fn new_streams_are_told_once() {
    let mut table = table();
    let update = r#"{"jsonrpc":"2.0","method":"u","params":{"sessionId":"s"}}"#;
    assert_eq!(table.goes_to(update).as_deref(), Some("s"));
    assert_eq!(table.take_changes().new.len(), 1);
    assert_eq!(table.goes_to(update).as_deref(), Some("s"));
    assert_eq!(table.take_changes().new.len(), 0);
    // Also when it comes inside of a batch.
    assert_eq!(table.goes_to(&format!("[{}]", update.replace("\"s\"", "\"t\""))).as_deref(), Some("t"));
    assert_eq!(table.take_changes().new.len(), 1);
}

#[test]
fn a_stream_that_nobody_confirmed_is_gone_with_its_listener() {
    let mut table = table();
    let stream = table.for_listener("s").expect("room");
    assert!(table.listener_left(&stream));
    assert!(table.sessions.is_empty());
    let stream = table.for_listener("s").expect("room");
    table.goes_to(r#"{"jsonrpc":"2.0","method":"u","params":{"sessionId":"s"}}"#);
    assert!(!table.listener_left(&stream));
}

#[test]
fn strangers_do_not_use_up_the_sessions() {
    let mut table = table();
    for session in ["a", "b"] {
        table.for_listener(session).expect("room");
    }
    assert_eq!(table.for_listener("c").err(), Some(Unknown::Session));
    assert_eq!(table.goes_to(r#"{"jsonrpc":"2.0","method":"u","params":{"sessionId":"c"}}"#).as_deref(), Some("c"));
    assert_eq!(table.goes_to(r#"{"jsonrpc":"2.0","method":"u","params":{"sessionId":"d"}}"#), None, "no room");
}

#[test]
fn closing_forgets_a_session_only_when_it_succeeds() {
    let mut table = table();
    table.for_listener("s").expect("room");
    let close = r#"{"jsonrpc":"2.0","id":1,"method":"session/close","params":{"sessionId":"s"}}"#;
    table.asked(close);
    let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#;
    assert_eq!(table.goes_to(failed).as_deref(), Some("s"));
    table.asked(close);
    assert_eq!(table.goes_to(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), None, "nobody reads there");
    assert_eq!(table.take_changes().closed.len(), 1);
    assert!(table.sessions.is_empty());
}
