//! A router between simulated peers that know one dialect each, as released ones do.
//!
//! The peers share no code with the router: they read with serde and write with `format!`.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use greenroom_conductor::{Action, ChainShape, Hop, Instantiated, Mode, ProxyDialect, Router};
use greenroom_protocol::{Dialect, Error, Frame};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::harness::{error, inner, notice, request, result};

#[derive(Deserialize)]
pub(crate) struct Message {
    #[serde(default, deserialize_with = "present")]
    id: Option<Box<RawValue>>,
    method: Option<String>,
    #[serde(default, deserialize_with = "present")]
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Box<RawValue>>,
    #[serde(rename = "requestId", default, deserialize_with = "present")]
    request_id: Option<Box<RawValue>>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

fn read(text: &str) -> Message {
    serde_json::from_str(text).expect("the router writes valid messages")
}

fn text(value: Option<&RawValue>) -> &str {
    value.map_or("", RawValue::get)
}

/// A call as text; empty params are left out.
pub(crate) fn call(id: Option<&str>, method: &str, params: &str) -> String {
    match (id, params) {
        (Some(id), "") => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#),
        (None, "") => format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#),
        (Some(id), params) => request(id, method, params),
        (None, params) => notice(method, params),
    }
}

/// A call inside an envelope, as its dialect's released peers write it.
pub(crate) fn wrapped(dialect: Dialect, id: Option<&str>, method: &str, params: &str) -> String {
    call(id, dialect.successor(), &inner(method, if params.is_empty() { "null" } else { params }))
}

fn cancel(id: &str) -> (&'static str, String) {
    ("$/cancel_request", format!(r#"{{"requestId":{id}}}"#))
}

/// A proxy that passes everything on. What it does not know it takes for ordinary traffic, so a
/// foreign proxy-initialize comes back as an echo.
struct PassThrough {
    name: String,
    dialect: Dialect,
    count: u32,
    /// By own id: the id of the request that waits, and whether the own one went out wrapped.
    waiting: HashMap<String, (String, bool)>,
    foreign_names: u32,
}

impl PassThrough {
    fn new(name: String, dialect: Dialect) -> Self {
        Self { name, dialect, count: 0, waiting: HashMap::new(), foreign_names: 0 }
    }

    fn receive(&mut self, line: &str, out: &mut Vec<String>) {
        let message = read(line);
        let id = message.id.as_deref().map(RawValue::get);
        let Some(method) = message.method.as_deref() else {
            let Some((theirs, _)) = self.waiting.remove(id.expect("an id")) else { panic!("{} got {line}", self.name) };
            out.push(match (&message.result, &message.error) {
                (Some(value), _) => result(&theirs, value.get()),
                (_, value) => error(&theirs, text(value.as_deref())),
            });
            return;
        };
        let params = text(message.params.as_deref());
        assert_ne!(method, self.dialect.other().successor(), "{} got the foreign envelope", self.name);
        if method == self.dialect.initialize() {
            self.pass(id, "initialize", params, true, out);
        } else if method == self.dialect.successor() {
            let inside = read(params);
            let inner_method = inside.method.as_deref().expect("an inner method");
            let inner_params = text(inside.params.as_deref());
            let inner_params =
                if self.dialect == Dialect::Modern && inner_params == "null" { "" } else { inner_params };
            self.pass(id, inner_method, inner_params, false, out);
        } else {
            self.foreign_names += u32::from(method == self.dialect.other().initialize());
            self.pass(id, method, params, true, out);
        }
    }

    fn pass(&mut self, id: Option<&str>, method: &str, params: &str, right: bool, out: &mut Vec<String>) {
        if method == "$/cancel_request" {
            return self.cancel(params, out);
        }
        let ours = id.map(|id| {
            self.count += 1;
            let ours = format!("\"{}-{}\"", self.name, self.count);
            self.waiting.insert(ours.clone(), (id.to_owned(), right));
            ours
        });
        out.push(match right {
            true => wrapped(self.dialect, ours.as_deref(), method, params),
            false => call(ours.as_deref(), method, params),
        });
    }

    fn cancel(&self, params: &str, out: &mut Vec<String>) {
        let message = read(params);
        let theirs = text(message.request_id.as_deref());
        let Some((ours, (_, right))) = self.waiting.iter().find(|(_, (id, _))| id == theirs) else { return };
        let (method, params) = cancel(ours);
        out.push(match *right && self.dialect == Dialect::Legacy {
            true => wrapped(self.dialect, None, method, &params),
            false => call(None, method, &params),
        });
    }
}

/// One logical end of a chain: a client or an agent.
#[derive(Default)]
pub(crate) struct End {
    /// Calls that arrived, as "method params", and cancels as "cancel".
    pub(crate) seen: Vec<String>,
    /// Requests that wait until they are cancelled or [`Network::finish`] comes.
    waiting: Vec<String>,
    /// Responses by id, as they came.
    pub(crate) answers: HashMap<String, Vec<String>>,
    pub(crate) refuse_initialize: bool,
}

/// What an end says when it fails a request.
pub(crate) const EXTENDED: &str = r#"{"code":-32042,"message":"m","data":null,"ext":{"a":1.0}}"#;

impl End {
    fn receive(&mut self, message: &Message, out: &mut Vec<String>) {
        let id = message.id.as_deref().map(RawValue::get);
        let params = text(message.params.as_deref());
        let Some(method) = message.method.as_deref() else {
            let answer = message.result.as_deref().or(message.error.as_deref());
            self.answers.entry(id.expect("an id").to_owned()).or_default().push(text(answer).to_owned());
            return;
        };
        if method == "$/cancel_request" {
            self.seen.push("cancel".into());
            let cancelled = read(params);
            let place = self.waiting.iter().position(|id| id == text(cancelled.request_id.as_deref()));
            if let Some(place) = place {
                out.push(error(&self.waiting.remove(place), r#"{"code":-32800,"message":"cancelled"}"#));
            }
            return;
        }
        self.seen.push(format!("{method} {params}"));
        let Some(id) = id else { return };
        match method {
            "x/wait" => self.waiting.push(id.to_owned()),
            "x/fail" => out.push(error(id, EXTENDED)),
            "initialize" if self.refuse_initialize => out.push(error(id, EXTENDED)),
            _ => out.push(result(id, if params.is_empty() { "null" } else { params })),
        }
    }
}

pub(crate) struct Network {
    pub(crate) router: Router,
    mode: Mode,
    outer: Dialect,
    proxies: Vec<PassThrough>,
    pub(crate) left: End,
    pub(crate) right: End,
    /// By hop: lines on their way to the peer, and lines on their way to the router.
    to_peer: Vec<VecDeque<String>>,
    to_router: Vec<VecDeque<String>>,
    dead: Option<usize>,
    pub(crate) dropped: Vec<&'static str>,
}

impl Network {
    /// A chain of proxies that speak these dialects, addressed without knowing that.
    pub(crate) fn new(mode: Mode, outer: Dialect, dialects: &[Dialect]) -> Self {
        let auto = vec![ProxyDialect::Auto; dialects.len()];
        let shape = if mode == Mode::Agent { ChainShape::agent(auto) } else { ChainShape::proxy(auto) };
        let hops = shape.components() + 1;
        let proxies =
            dialects.iter().enumerate().map(|(index, dialect)| PassThrough::new(format!("p{index}"), *dialect));
        Self {
            router: Router::new(&shape),
            mode,
            outer,
            proxies: proxies.collect(),
            left: End::default(),
            right: End::default(),
            to_peer: vec![VecDeque::new(); hops],
            to_router: vec![VecDeque::new(); hops],
            dead: None,
            dropped: Vec::new(),
        }
    }

    /// The left end initialises the chain.
    pub(crate) fn initialize(&mut self, params: &str) {
        let method = if self.mode == Mode::Agent { "initialize" } else { self.outer.initialize() };
        self.to_router[0].push_back(call(Some("\"init\""), method, params));
    }

    /// The left end sends this line as it is.
    pub(crate) fn left_sends(&mut self, line: String) {
        self.to_router[0].push_back(line);
    }

    /// The right end calls: plain as an agent, wrapped as what is beyond a nested chain.
    pub(crate) fn right_calls(&mut self, id: Option<&str>, method: &str, params: &str) {
        let hop = self.right_hop();
        let line = match self.mode {
            Mode::Agent => call(id, method, params),
            Mode::Proxy => wrapped(self.outer, id, method, params),
        };
        self.to_router[hop].push_back(line);
    }

    /// The right end cancels, the way its hop does.
    pub(crate) fn right_cancels(&mut self, id: &str) {
        let (method, params) = cancel(id);
        let hop = self.right_hop();
        let line = match (self.mode, self.outer) {
            (Mode::Proxy, Dialect::Legacy) => wrapped(self.outer, None, method, &params),
            _ => call(None, method, &params),
        };
        self.to_router[hop].push_back(line);
    }

    pub(crate) fn left_cancels(&mut self, id: &str) {
        let (method, params) = cancel(id);
        self.to_router[0].push_back(call(None, method, &params));
    }

    fn right_hop(&self) -> usize {
        if self.mode == Mode::Agent { self.to_router.len() - 1 } else { 0 }
    }

    /// Moves one line; `choice` picks which. False when nothing is on its way.
    pub(crate) fn step(&mut self, choice: usize) -> bool {
        let hops = self.to_peer.len();
        let busy: Vec<usize> = (0..2 * hops)
            .filter(|queue| {
                !if *queue < hops { &self.to_peer[*queue] } else { &self.to_router[queue - hops] }.is_empty()
            })
            .collect();
        if busy.is_empty() {
            return false;
        }
        match busy[choice % busy.len()] {
            hop if hop < hops => {
                let line = self.to_peer[hop].pop_front().expect("busy");
                self.deliver(hop, &line);
            }
            queue => {
                let hop = queue - hops;
                let line = self.to_router[hop].pop_front().expect("busy");
                let from = if hop == 0 { Hop::Client } else { Hop::Component(hop - 1) };
                let frame = Frame::parse(Bytes::from(line));
                self.act(&|router, out| router.handle(from, &frame, out));
            }
        }
        true
    }

    /// Moves everything that is on its way.
    pub(crate) fn drain(&mut self) {
        while self.step(0) {}
    }

    /// Answers what waits for a cancel, then moves everything.
    pub(crate) fn finish(&mut self) {
        self.drain();
        let (left, right) = (std::mem::take(&mut self.left.waiting), std::mem::take(&mut self.right.waiting));
        let hop = self.right_hop();
        self.to_router[0].extend(left.iter().map(|id| result(id, "\"late\"")));
        self.to_router[hop].extend(right.iter().map(|id| result(id, "\"late\"")));
        self.drain();
    }

    /// A component dies with everything that was on its way to or from it.
    pub(crate) fn kill(&mut self, component: usize) {
        self.dead = Some(component + 1);
        self.to_peer[component + 1].clear();
        self.to_router[component + 1].clear();
        let cause = Error::new(-32603, "killed");
        self.act(&|router, out| router.component_down(component, &cause, out));
    }

    pub(crate) fn foreign_names(&self) -> Vec<u32> {
        self.proxies.iter().map(|proxy| proxy.foreign_names).collect()
    }

    fn act(&mut self, act: &dyn Fn(&mut Router, &mut Vec<Action>)) {
        let mut out = Vec::new();
        act(&mut self.router, &mut out);
        for action in out {
            match action {
                Action::Send { to, message } => {
                    let hop = if let Hop::Component(component) = to { component + 1 } else { 0 };
                    assert_ne!(Some(hop), self.dead, "nothing is sent to the dead");
                    let text = message.into_text();
                    self.to_peer[hop].push_back(String::from_utf8(text.to_vec()).expect("utf-8"));
                }
                Action::Instantiate { .. } => {
                    self.act(&|router, out| router.instantiated(Ok(Instantiated::default()), out));
                }
                Action::Recreate { component } => {
                    self.dead = None;
                    let fresh = PassThrough::new(format!("p{component}'"), self.proxies[component].dialect);
                    self.proxies[component] = fresh;
                    self.act(&|router, out| router.recreated(component, Ok(()), out));
                }
                Action::Drop { reason } => self.dropped.push(reason),
            }
        }
    }

    fn deliver(&mut self, hop: usize, line: &str) {
        let mut out = Vec::new();
        if hop > 0 && hop <= self.proxies.len() {
            self.proxies[hop - 1].receive(line, &mut out);
        } else {
            let lines: Vec<Box<RawValue>> = match line.starts_with('[') {
                true => serde_json::from_str(line).expect("an array"),
                false => vec![serde_json::from_str(line).expect("json")],
            };
            for line in lines {
                self.deliver_to_end(hop, line.get(), &mut out);
            }
        }
        self.to_router[hop].extend(out);
    }

    fn deliver_to_end(&mut self, hop: usize, line: &str, out: &mut Vec<String>) {
        let message = read(line);
        if self.mode == Mode::Agent {
            return if hop == 0 { self.left.receive(&message, out) } else { self.right.receive(&message, out) };
        }
        // Upstream of a nested chain is both ends at once; envelopes come from the last proxy.
        let method = message.method.as_deref().unwrap_or_default();
        assert_ne!(method, self.outer.other().successor(), "the outer hop has another dialect");
        if method == self.outer.successor() {
            let mut inside = read(text(message.params.as_deref()));
            inside.id = message.id;
            inside.params = inside.params.filter(|params| params.get() != "null");
            return self.right.receive(&inside, out);
        }
        // A plain cancel on a modern hop may be meant for either end.
        let cancelled = read(
            message
                .params
                .as_deref()
                .map_or("{}", |params| if method == "$/cancel_request" { params.get() } else { "{}" }),
        );
        let for_right = self.right.waiting.iter().any(|id| id == text(cancelled.request_id.as_deref()));
        if for_right { self.right.receive(&message, out) } else { self.left.receive(&message, out) }
    }
}
