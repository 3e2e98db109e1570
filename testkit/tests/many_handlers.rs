//! Dispatch costs the same with 3 and with 300 handlers, and needs no deep stack.

use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom::{
    Agent, Client, Handlers, JsonRpcMessage, JsonRpcRequest, Responder, Result, UntypedMessage, on_receive_request,
};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};

/// How often any of the handlers' types was compared with a method.
static COMPARED: AtomicUsize = AtomicUsize::new(0);

/// A request named `m/N`.
#[derive(Clone, Debug)]
struct Numbered<const N: usize>(UntypedMessage);

impl<const N: usize> JsonRpcMessage for Numbered<N> {
    fn matches_method(method: &str) -> bool {
        COMPARED.fetch_add(1, Ordering::Relaxed);
        method.strip_prefix("m/").is_some_and(|number| number.parse() == Ok(N))
    }

    fn method(&self) -> &str {
        &self.0.method
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage> {
        Ok(self.0.clone())
    }

    fn parse_message(method: &str, params: &impl serde::Serialize) -> Result<Self> {
        UntypedMessage::new(method, params).map(Self)
    }
}

impl<const N: usize> JsonRpcRequest for Numbered<N> {
    type Response = Value;
}

type AgentBuilder = greenroom::Builder<Agent, Handlers<'static, Client>>;

fn handler<const N: usize>(builder: AgentBuilder) -> AgentBuilder {
    builder.on_receive_request(
        async |_: Numbered<N>, responder: Responder<Value>, _cx| responder.respond(json!(N)),
        on_receive_request!(),
    )
}

macro_rules! ten {
    ($builder:ident, $($tens:literal)*) => {
        $(
            $builder = handler::<{ $tens * 10 }>($builder);
            $builder = handler::<{ $tens * 10 + 1 }>($builder);
            $builder = handler::<{ $tens * 10 + 2 }>($builder);
            $builder = handler::<{ $tens * 10 + 3 }>($builder);
            $builder = handler::<{ $tens * 10 + 4 }>($builder);
            $builder = handler::<{ $tens * 10 + 5 }>($builder);
            $builder = handler::<{ $tens * 10 + 6 }>($builder);
            $builder = handler::<{ $tens * 10 + 7 }>($builder);
            $builder = handler::<{ $tens * 10 + 8 }>($builder);
            $builder = handler::<{ $tens * 10 + 9 }>($builder);
        )*
    };
}

/// 300 handlers, of 300 types.
fn three_hundred() -> AgentBuilder {
    let mut builder = Agent.builder().with_handler(Handlers::default());
    ten!(builder, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29);
    builder
}

async fn ask(peer: &mut Local, number: usize) {
    let method = format!("m/{number}");
    peer.send(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": { "k": "v" } })).await;
    peer.expect(json!({ "jsonrpc": "2.0", "id": number, "result": number })).await;
}

#[test]
fn three_hundred_handlers_on_a_small_stack() {
    let small = std::thread::Builder::new().stack_size(512 * 1024);
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (mut peer, link) = pair(64 * 1024);
            tokio::spawn(three_hundred().connect_to(link));
            // Each once: the first message with a method compares it with every type.
            for number in 0..300 {
                ask(&mut peer, number).await;
            }
            let compared = COMPARED.load(Ordering::Relaxed);
            assert!(compared >= 300 * 300, "each method was looked up once: {compared}");
            for number in (0..300).rev() {
                ask(&mut peer, number).await;
            }
            assert_eq!(COMPARED.load(Ordering::Relaxed), compared, "a known method is found in a table");
        });
    };
    small.spawn(work).expect("a thread").join().expect("the stack is large enough");
}
