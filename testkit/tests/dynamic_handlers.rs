//! Handlers that come and go while a connection runs.

use greenroom::{
    Agent, Client, ConnectionTo, Dispatch, DynamicHandlerGuard, Error, HandleDispatchFrom, Handled, Responder, Result,
    Role, UntypedMessage, on_receive_request,
};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// Takes what has this method: notes notifications, answers requests with its name.
struct Takes {
    name: &'static str,
    method: &'static str,
    notes: mpsc::UnboundedSender<(&'static str, Value)>,
}

impl<C: Role> HandleDispatchFrom<C> for Takes {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<C>) -> Result<Handled<Dispatch>> {
        if message.method() != self.method {
            return Ok(Handled::No { message, retry: false });
        }
        match message {
            Dispatch::Request(request, responder) => {
                let _ = self.notes.send((self.name, request.params));
                responder.respond(json!(self.name))?;
            }
            Dispatch::Notification(note) => drop(self.notes.send((self.name, note.params))),
            Dispatch::Response(_, router) => router.route(json!(format!("seen by {}", self.name)))?,
        }
        Ok(Handled::Yes)
    }
}

struct Side {
    peer: Local,
    cx: ConnectionTo<Agent>,
    notes: mpsc::UnboundedReceiver<(&'static str, Value)>,
    sender: mpsc::UnboundedSender<(&'static str, Value)>,
    _end: oneshot::Sender<()>,
}

impl Side {
    /// A client whose agent is a script. Its one registered handler takes requests named `static`.
    async fn new() -> Self {
        let (peer, link) = pair(64 * 1024);
        let (give, take) = oneshot::channel();
        let (_end, end) = oneshot::channel::<()>();
        let client = Client.builder().on_receive_request(
            async |request: UntypedMessage, responder: Responder<Value>, _cx: ConnectionTo<Agent>| {
                if request.method == "static" {
                    responder.respond(json!("static"))?;
                    return Ok(Handled::Yes);
                }
                Ok(Handled::No { message: (request, responder), retry: false })
            },
            on_receive_request!(),
        );
        tokio::spawn(client.connect_with(link, async move |cx: ConnectionTo<Agent>| {
            give.send(cx).expect("the test waits");
            let _ = end.await;
            Ok(())
        }));
        let (sender, notes) = mpsc::unbounded_channel();
        Self { peer, cx: take.await.expect("a connection"), notes, sender, _end }
    }

    fn add(&self, name: &'static str, method: &'static str) -> DynamicHandlerGuard<Agent> {
        let notes = self.sender.clone();
        self.cx.add_dynamic_handler(Takes { name, method, notes }).expect("the connection runs")
    }

    async fn ask(&mut self, id: i64, method: &str) -> Value {
        self.peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} })).await;
        self.peer.receive().await
    }

    async fn note(&mut self, method: &str, params: Value) {
        self.peer.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Waits until everything sent so far is dispatched.
    async fn settle(&mut self) {
        assert_eq!(self.ask(-1, "static").await["result"], "static");
    }
}

fn unknown(id: i64, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found", "data": method } })
}

#[tokio::test]
async fn a_handler_is_there_for_as_long_as_its_guard() {
    let mut side = Side::new().await;
    assert_eq!(side.ask(1, "late").await, unknown(1, "late"));
    let guard = side.add("first", "late");
    assert_eq!(side.ask(2, "late").await["result"], "first");
    drop(guard);
    assert_eq!(side.ask(3, "late").await, unknown(3, "late"));
    side.add("detached", "late").detach();
    assert_eq!(side.ask(4, "late").await["result"], "detached");
}

#[tokio::test]
async fn added_handlers_come_after_the_registered_ones_in_their_own_order() {
    let mut side = Side::new().await;
    let _hidden = side.add("hidden", "static");
    let first = side.add("first", "m");
    let _second = side.add("second", "m");
    assert_eq!(side.ask(1, "static").await["result"], "static");
    assert_eq!(side.ask(2, "m").await["result"], "first");
    drop(first);
    assert_eq!(side.ask(3, "m").await["result"], "second");
}

#[tokio::test]
async fn an_added_handler_may_see_responses() {
    let mut side = Side::new().await;
    let _guard = side.add("spy", "ours");
    let request = side.cx.prepare_request(UntypedMessage::new("ours", json!({})).expect("JSON")).block_task();
    let asked = side.peer.receive().await;
    side.peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": 1 })).await;
    assert_eq!(request.await.expect("an answer"), json!("seen by spy"));
}

#[tokio::test]
async fn what_came_before_its_handler_is_kept_for_it_in_order() {
    let mut side = Side::new().await;
    // Nobody has a handler for this session yet (spec §1.A A5).
    for number in 0..5 {
        side.note("session/update", json!({ "sessionId": "s", "n": number })).await;
    }
    side.settle().await;
    let _guard = side.add("session", "session/update");
    // More of them may come before the loop wakes up: they are newer all the same.
    for number in 5..8 {
        side.note("session/update", json!({ "sessionId": "s", "n": number })).await;
    }
    for number in 0..8 {
        assert_eq!(side.notes.recv().await, Some(("session", json!({ "sessionId": "s", "n": number }))));
    }
}

/// Passes everything on; with the first message, adds a handler that takes what it passes on.
struct Recruits(Option<mpsc::UnboundedSender<(&'static str, Value)>>);

impl<C: Role> HandleDispatchFrom<C> for Recruits {
    async fn handle_dispatch_from(&mut self, message: Dispatch, cx: ConnectionTo<C>) -> Result<Handled<Dispatch>> {
        if let Some(notes) = self.0.take() {
            cx.add_dynamic_handler(Takes { name: "recruit", method: "session/update", notes })?.detach();
        }
        Ok(Handled::No { message, retry: false })
    }
}

/// A handler that comes in the middle, while what was kept is offered to another one.
#[tokio::test]
async fn what_was_offered_in_vain_comes_before_what_was_not_offered_yet() {
    let mut side = Side::new().await;
    for number in 0..5 {
        side.note("session/update", json!({ "sessionId": "s", "n": number })).await;
    }
    side.settle().await;
    side.cx.add_dynamic_handler(Recruits(Some(side.sender.clone()))).expect("runs").detach();
    for number in 0..5 {
        assert_eq!(side.notes.recv().await, Some(("recruit", json!({ "sessionId": "s", "n": number }))));
    }
}

#[tokio::test]
async fn what_belongs_to_no_session_is_not_kept() {
    let mut side = Side::new().await;
    side.note("other", json!({ "n": 1 })).await;
    assert_eq!(
        side.ask(7, "session/request_permission").await["error"]["code"],
        -32601,
        "requests are answered at once"
    );
    let _guard = side.add("late", "other");
    side.note("other", json!({ "n": 2 })).await;
    assert_eq!(side.notes.recv().await, Some(("late", json!({ "n": 2 }))));
}

#[tokio::test]
async fn at_most_1024_messages_are_kept_and_the_oldest_go_first() {
    let mut side = Side::new().await;
    for number in 0..1030 {
        side.note("session/update", json!({ "sessionId": "s", "n": number })).await;
    }
    side.settle().await;
    let _guard = side.add("session", "session/update");
    for number in 6..1030 {
        assert_eq!(side.notes.recv().await.map(|(_, note)| note["n"].clone()), Some(json!(number)));
    }
}

/// Passes everything on and wants to see it again.
struct Later;

impl<C: Role> HandleDispatchFrom<C> for Later {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<C>) -> Result<Handled<Dispatch>> {
        Ok(Handled::No { message, retry: true })
    }
}

#[tokio::test]
async fn a_request_that_a_handler_wants_again_waits_and_is_answered_once() {
    let mut side = Side::new().await;
    side.cx.add_dynamic_handler(Later).expect("runs").detach();
    side.peer.send(&json!({ "jsonrpc": "2.0", "id": "w", "method": "wanted", "params": {} })).await;
    side.settle().await;
    let _guard = side.add("now", "wanted");
    side.peer.expect(json!({ "jsonrpc": "2.0", "id": "w", "result": "now" })).await;
}

#[tokio::test]
async fn a_kept_request_is_answered_at_the_end_of_the_input() {
    let mut side = Side::new().await;
    side.cx.add_dynamic_handler(Later).expect("runs").detach();
    side.peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "wanted", "params": {} })).await;
    side.peer.close().await;
    side.peer.expect(unknown(1, "wanted")).await;
}

/// Panics or fails, as its message says.
struct Breaks;

impl<C: Role> HandleDispatchFrom<C> for Breaks {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<C>) -> Result<Handled<Dispatch>> {
        match message.method() {
            "panic" => panic!("expected by the test"),
            "fail" => Err(Error::invalid_params().data("no")),
            _ => Ok(Handled::No { message, retry: false }),
        }
    }
}

#[tokio::test]
async fn an_added_handler_that_breaks_harms_only_its_message() {
    let mut side = Side::new().await;
    side.cx.add_dynamic_handler(Breaks).expect("runs").detach();
    let panicked = side.ask(1, "panic").await;
    assert_eq!(panicked["error"]["code"], -32603);
    assert_eq!(panicked["error"]["data"], json!({ "reason": "interrupted", "method": "panic" }));
    assert_eq!(side.ask(2, "fail").await["error"]["code"], -32602);
    assert_eq!(side.ask(3, "static").await["result"], "static");
}

#[tokio::test]
async fn no_handler_can_be_added_after_the_end() {
    let side = Side::new().await;
    let Side { peer, cx, sender, _end, .. } = side;
    drop(_end);
    drop(peer);
    cx.terminated().await;
    let error = cx.add_dynamic_handler(Takes { name: "late", method: "m", notes: sender }).expect_err("it is over");
    assert!(greenroom::is_connection_terminated(&error), "{error:?}");
}

/// Handlers may hold the connection: that must not keep it in memory after its end.
struct Holds(
    #[expect(dead_code, reason = "only held")] ConnectionTo<Agent>,
    #[expect(dead_code, reason = "only held")] oneshot::Sender<()>,
);

impl HandleDispatchFrom<Agent> for Holds {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<Agent>) -> Result<Handled<Dispatch>> {
        Ok(Handled::No { message, retry: false })
    }
}

#[tokio::test]
async fn detached_handlers_are_dropped_with_their_connection() {
    let side = Side::new().await;
    let (held, dropped) = oneshot::channel();
    side.cx.add_dynamic_handler(Holds(side.cx.clone(), held)).expect("runs").detach();
    let cx = side.cx.clone();
    drop(side);
    cx.terminated().await;
    assert!(dropped.await.is_err(), "the handler was dropped although a handle is still there");
}
