//! A relay that looks at what passes.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use greenroom_protocol::{Channel, Error, RawJsonRpcMessage, Result, TransportFrame};

fn frame(text: &str) -> TransportFrame {
    TransportFrame::parse_json(text)
}

fn method(message: &RawJsonRpcMessage) -> String {
    match message {
        RawJsonRpcMessage::Request(request) => request.method.to_string(),
        RawJsonRpcMessage::Notification(notification) => notification.method.to_string(),
        RawJsonRpcMessage::Response(_) => "response".to_owned(),
    }
}

fn poll(future: std::pin::Pin<&mut impl Future<Output = Result<()>>>) -> Poll<Result<()>> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn next(channel: &mut Channel) -> Option<String> {
    channel.rx.try_recv().ok().map(|frame| frame.to_json().expect("text"))
}

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ask"}"#;
const BATCH: &str = r#"[{"jsonrpc":"2.0","method":"one"},7,{"jsonrpc":"2.0","method":"two"}]"#;
const BROKEN: &str = r#"{"jsonrpc":"2.0", broken"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":null}"#;

#[test]
fn frames_pass_whole_and_messages_are_shown_in_order() {
    let (left, mut client) = Channel::duplex();
    let (right, mut agent) = Channel::duplex();
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let mut bridge = Box::pin(Channel::bridge_with_inspection(
        left,
        right,
        |message| {
            asked.push(method(message));
            Ok(())
        },
        |message| {
            answered.push(method(message));
            Ok(())
        },
    ));
    for text in [ASK, BATCH, BROKEN] {
        client.tx.unbounded_send(frame(text)).expect("open");
    }
    // One side closes, the other still answers.
    client.tx.close_channel();
    assert!(poll(bridge.as_mut()).is_pending());
    assert_eq!([next(&mut agent), next(&mut agent), next(&mut agent)].map(Option::unwrap), [ASK, BATCH, BROKEN]);
    assert!(matches!(agent.rx.try_recv(), Err(error) if error.is_closed()), "told of the end");
    agent.tx.unbounded_send(frame(ANSWER)).expect("open");
    assert!(poll(bridge.as_mut()).is_pending());
    assert_eq!(next(&mut client).expect("an answer"), ANSWER);
    drop(agent);
    assert!(matches!(poll(bridge.as_mut()), Poll::Ready(Ok(()))));
    drop(bridge);
    assert_eq!((asked, answered), (vec!["ask".into(), "one".into(), "two".into()], vec!["response".to_owned()]));
}

#[test]
fn an_error_of_a_callback_ends_both_directions() {
    let (left, mut client) = Channel::duplex();
    let (right, mut agent) = Channel::duplex();
    let refuse = |message: &RawJsonRpcMessage| {
        if method(message) == "two" { Err(Error::invalid_request().data("two")) } else { Ok(()) }
    };
    let bridge = Channel::bridge_with_inspection(left, right, refuse, |_| Ok(()));
    client.tx.unbounded_send(frame(ASK)).expect("open");
    client.tx.unbounded_send(frame(BATCH)).expect("open");
    {
        let mut bridge = pin!(bridge);
        let Poll::Ready(Err(error)) = poll(bridge.as_mut()) else { panic!("an error") };
        assert_eq!(error.data, Some("two".into()));
    }
    assert_eq!(next(&mut agent).expect("what came before"), ASK);
    assert!(next(&mut agent).is_none(), "the refused frame does not pass, not in part either");
    assert!(agent.tx.is_closed());
    assert!(matches!(client.rx.try_recv(), Err(error) if error.is_closed()));
}

#[test]
fn a_flood_in_one_direction_lets_the_other_one_through() {
    let (left, client) = Channel::duplex();
    let (right, agent) = Channel::duplex();
    for _ in 0..1000 {
        client.tx.unbounded_send(frame(ASK)).expect("open");
    }
    agent.tx.unbounded_send(frame(ANSWER)).expect("open");
    let mut client = client;
    let mut bridge = pin!(Channel::bridge_with_inspection(left, right, |_| Ok(()), |_| Ok(())));
    assert!(poll(bridge.as_mut()).is_pending());
    assert_eq!(next(&mut client).expect("in the first turn"), ANSWER);
    let mut agent = agent;
    let first = std::iter::from_fn(|| next(&mut agent)).count();
    assert!((1..1000).contains(&first), "{first}");
    let mut passed = first;
    while passed < 1000 {
        assert!(poll(bridge.as_mut()).is_pending());
        passed += std::iter::from_fn(|| next(&mut agent)).count();
    }
}
