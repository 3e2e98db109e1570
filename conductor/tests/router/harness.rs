//! One router, frames in as text, actions out as text.

use bytes::Bytes;
use greenroom_conductor::{Action, ChainShape, Hop, Instantiated, Mode, ProxyDialect, Router};
use greenroom_protocol::{Error, Frame};

pub(crate) use Hop::{Client, Component};

pub(crate) struct Bench {
    pub(crate) router: Router,
}

impl Bench {
    pub(crate) fn new(shape: &ChainShape) -> Self {
        Self { router: Router::new(shape) }
    }

    /// A running chain. The initialize is number 1 on the first hop and stays open until
    /// [`settle`](Self::settle).
    pub(crate) fn opening(shape: &ChainShape) -> Self {
        let mut bench = Self::new(shape);
        let method = match shape.mode {
            Mode::Agent => "initialize",
            Mode::Proxy => "proxy/initialize",
        };
        let asked = bench.feed(Client, &request("\"init\"", method, V1));
        assert_eq!(asked, ["instantiate"]);
        bench.instantiated(Ok(Instantiated::default()));
        bench
    }

    /// A chain whose initialize was already answered by its first component.
    pub(crate) fn running(shape: &ChainShape) -> Self {
        let mut bench = Self::opening(shape);
        let first = if shape.components() == 0 { Client } else { Component(0) };
        let answered = bench.feed(first, &result("1", V1));
        assert_eq!(answered, [format!("client {}", result("\"init\"", V1))]);
        assert!(bench.router.is_idle());
        bench
    }

    pub(crate) fn feed(&mut self, from: Hop, text: &str) -> Vec<String> {
        let frame = Frame::parse(Bytes::copy_from_slice(text.as_bytes()));
        self.act(|router, out| router.handle(from, &frame, out))
    }

    pub(crate) fn instantiated(&mut self, outcome: Result<Instantiated, Error>) -> Vec<String> {
        self.act(|router, out| router.instantiated(outcome, out))
    }

    pub(crate) fn act(&mut self, act: impl FnOnce(&mut Router, &mut Vec<Action>)) -> Vec<String> {
        let mut out = Vec::new();
        act(&mut self.router, &mut out);
        out.into_iter().map(show).collect()
    }
}

pub(crate) fn show(action: Action) -> String {
    match action {
        Action::Send { to, message } => {
            let text = message.into_text();
            format!("{} {}", hop(to), std::str::from_utf8(&text).expect("utf-8"))
        }
        Action::Instantiate { .. } => "instantiate".into(),
        Action::Recreate { component } => format!("recreate {component}"),
        Action::Drop { reason } => format!("drop: {reason}"),
    }
}

fn hop(hop: Hop) -> String {
    match hop {
        Client => "client".into(),
        Component(component) => component.to_string(),
    }
}

/// An agent behind proxies of these dialects.
pub(crate) fn agent(proxies: &[ProxyDialect]) -> ChainShape {
    ChainShape::agent(proxies.to_vec())
}

/// A nested chain of proxies of these dialects.
pub(crate) fn nested(proxies: &[ProxyDialect]) -> ChainShape {
    ChainShape::proxy(proxies.to_vec())
}

pub(crate) const V1: &str = r#"{"protocolVersion":1}"#;
pub(crate) const V2: &str = r#"{"protocolVersion":2}"#;

pub(crate) fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(crate) fn notice(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// The params of an envelope.
pub(crate) fn inner(method: &str, params: &str) -> String {
    format!(r#"{{"method":"{method}","params":{params}}}"#)
}

pub(crate) fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub(crate) fn error(id: &str, error: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

pub(crate) fn refusal(id: &str, code: i32) -> String {
    error(id, &format!(r#"{{"code":{code},"message":"no"}}"#))
}

/// Checks that the only action answers this id with an error of this code; gives its data.
pub(crate) fn refused(actions: &[String], to: &str, id: &str, code: i32) -> serde_json::Value {
    assert_eq!(actions.len(), 1, "{actions:?}");
    let (hop, text) = actions[0].split_once(' ').expect("a message");
    assert_eq!(hop, to, "{actions:?}");
    assert!(text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#)), "{actions:?}");
    let mut value: serde_json::Value = serde_json::from_str(text).expect("json");
    assert_eq!(value["error"]["code"], code, "{actions:?}");
    value["error"]["data"].take()
}
