//! What routing one message costs, without reading and writing: `cargo run --release --example
//! route_cost`. Numbers are nanoseconds a message, the best of several rounds.

use std::io::Write as _;
use std::time::Instant;

use greenroom_conductor::{Action, ChainShape, Hop, Instantiated, ProxyDialect, Router};
use greenroom_protocol::Frame;

const ROUNDS: usize = 300;
const MESSAGES: usize = 1_000;

fn frame(text: String) -> Frame {
    Frame::parse(text.into())
}

fn call(id: Option<usize>, method: &str, params: &str) -> Frame {
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    frame(format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#))
}

fn envelope(params: &str) -> String {
    format!(r#"{{"method":"session/update","params":{params}}}"#)
}

fn results(first: usize) -> Vec<Frame> {
    let result = |id| frame(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"end_turn"}}}}"#));
    (first..first + MESSAGES).map(result).collect()
}

/// Feeds all frames, each into an empty list of actions; nanoseconds a frame.
fn feed(router: &mut Router, from: Hop, frames: &[Frame], out: &mut Vec<Action>) -> f64 {
    let start = Instant::now();
    for frame in frames {
        out.clear();
        router.handle(from, frame, out);
    }
    start.elapsed().as_nanos() as f64 / frames.len() as f64
}

/// A chain of one proxy and an agent, both initialised.
fn running() -> Router {
    let mut router = Router::new(&ChainShape::agent(vec![ProxyDialect::Modern]));
    let mut out = Vec::new();
    router.handle(Hop::Client, &call(Some(0), "initialize", r#"{"protocolVersion":1}"#), &mut out);
    router.instantiated(Ok(Instantiated::default()), &mut out);
    router.handle(Hop::Component(0), &frame(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into()), &mut out);
    router
}

fn main() -> std::io::Result<()> {
    let params = format!(r#"{{"sessionId":"sess-0123456789","update":{{"text":"{}"}}}}"#, "x".repeat(120));
    let wrapped = envelope(&params);
    let agent = Hop::Component(1);
    let proxy = Hop::Component(0);
    let mut stdout = std::io::stdout().lock();
    for (name, from, to, method, params) in [
        ("plain to plain", Hop::Client, proxy, "session/update", &params),
        ("plain to wrapped", agent, proxy, "session/update", &params),
        ("wrapped to plain", proxy, agent, "proxy/successor", &wrapped),
    ] {
        let notifications: Vec<Frame> = (0..MESSAGES).map(|_| call(None, method, params)).collect();
        let requests: Vec<Frame> = (0..MESSAGES).map(|id| call(Some(id), method, params)).collect();
        let mut out = Vec::with_capacity(4);
        let mut best = [f64::MAX; 4];
        let mut router = running();
        // The receiver counts from where the chain already is.
        let mut next = usize::from(to == proxy) + 1;
        for _ in 0..ROUNDS {
            let mut keep = |place: usize, nanoseconds: f64| best[place] = best[place].min(nanoseconds);
            keep(0, feed(&mut router, from, &notifications, &mut out));
            // All requests in flight at once, then all answers.
            keep(1, feed(&mut router, from, &requests, &mut out));
            let answers = results(next);
            next += MESSAGES;
            keep(2, feed(&mut router, to, &answers, &mut out));
            assert!(router.is_idle());
            // One request in flight at a time.
            let answers = results(next);
            next += MESSAGES;
            let start = Instant::now();
            for (request, answer) in requests.iter().zip(&answers) {
                out.clear();
                router.handle(from, request, &mut out);
                router.handle(to, answer, &mut out);
            }
            keep(3, start.elapsed().as_nanos() as f64 / MESSAGES as f64);
            assert!(router.is_idle());
        }
        let [notification, request, response, pair] = best;
        writeln!(
            stdout,
            "{name:17} notification {notification:5.0}  request {request:5.0}  response {response:5.0}  \
             request and response, one in flight {pair:5.0}"
        )?;
    }
    Ok(())
}
