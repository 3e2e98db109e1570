//! Tools made of closures.

use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use greenroom_protocol::{BoxFuture, Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::context::McpConnectionTo;
use super::line::{Head, Tail, line};
use super::tool::McpTool;
use crate::connection_to::ConnectionTo;
use crate::role::Role;
use crate::run::{NullRun, RunWithConnectionTo};

/// A tool that calls a closure, and what has to run beside the server that offers it. Pass
/// [`tool_fn!()`](crate::tool_fn) as `to_future`.
///
/// Calls run at the same time. Giving a call up drops its future at an `.await`.
pub fn tool_fn<P, Ret, F, Counterpart>(
    name: impl ToString,
    description: impl ToString,
    function: F,
    to_future: impl for<'a> Fn(&'a F, P, McpConnectionTo<Counterpart>) -> BoxFuture<'a, Result<Ret, Error>>
    + Send
    + Sync
    + 'static,
) -> (impl McpTool<Counterpart> + 'static, impl RunWithConnectionTo<Counterpart>)
where
    Counterpart: Role,
    P: JsonSchema + DeserializeOwned + 'static + Send,
    Ret: JsonSchema + Serialize + 'static + Send,
    F: AsyncFn(P, McpConnectionTo<Counterpart>) -> Result<Ret, Error> + Send + Sync + 'static,
{
    let (name, description) = (name.to_string(), description.to_string());
    (Function { name, description, function, to_future, _types: PhantomData::<fn(P) -> Ret> }, NullRun)
}

struct Function<P, Ret, F, ToFut> {
    name: String,
    description: String,
    function: F,
    to_future: ToFut,
    _types: PhantomData<fn(P) -> Ret>,
}

impl<P, Ret, F, ToFut, Counterpart> McpTool<Counterpart> for Function<P, Ret, F, ToFut>
where
    Counterpart: Role,
    P: JsonSchema + DeserializeOwned + 'static + Send,
    Ret: JsonSchema + Serialize + 'static + Send,
    F: Send + Sync,
    ToFut: for<'a> Fn(&'a F, P, McpConnectionTo<Counterpart>) -> BoxFuture<'a, Result<Ret, Error>> + Send + Sync,
{
    type Input = P;
    type Output = Ret;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn call_tool(
        &self,
        input: P,
        connection: McpConnectionTo<Counterpart>,
    ) -> impl Future<Output = Result<Ret, Error>> + Send {
        (self.to_future)(&self.function, input, connection)
    }
}

/// A tool that calls a closure which may change what it captured, or borrow it, and the queue that
/// has to run beside the server. Pass [`tool_fn_mut!()`](crate::tool_fn_mut) as `to_future`.
///
/// Calls run one after the other, in order. A call that is given up while it waits never enters the
/// closure and keeps no memory, and one that runs is dropped at an `.await`; the calls behind it go on.
pub fn tool_fn_mut<P, Ret, F, Counterpart>(
    name: impl ToString,
    description: impl ToString,
    function: F,
    to_future: impl for<'a> Fn(&'a mut F, P, McpConnectionTo<Counterpart>) -> BoxFuture<'a, Result<Ret, Error>>
    + Send
    + 'static,
) -> (impl McpTool<Counterpart> + 'static, impl RunWithConnectionTo<Counterpart>)
where
    Counterpart: Role,
    P: JsonSchema + DeserializeOwned + 'static + Send,
    Ret: JsonSchema + Serialize + 'static + Send,
    F: AsyncFnMut(P, McpConnectionTo<Counterpart>) -> Result<Ret, Error> + Send,
{
    let (name, description) = (name.to_string(), description.to_string());
    let (queue, calls) = line();
    (Queued::<P, Ret, Counterpart> { name, description, queue }, Queue { function, to_future, calls })
}

/// A call that waits for its turn.
struct QueuedCall<P, Ret, Counterpart: Role> {
    input: P,
    connection: McpConnectionTo<Counterpart>,
    /// Closed by a caller that gave up.
    done: oneshot::Sender<Result<Ret>>,
}

/// The end of the callers. A call waits for as long as its caller does: what bounds the callers
/// bounds the line.
struct Queued<P, Ret, Counterpart: Role> {
    name: String,
    description: String,
    queue: Tail<QueuedCall<P, Ret, Counterpart>>,
}

impl<P, Ret, Counterpart> McpTool<Counterpart> for Queued<P, Ret, Counterpart>
where
    Counterpart: Role,
    P: JsonSchema + DeserializeOwned + 'static + Send,
    Ret: JsonSchema + Serialize + 'static + Send,
{
    type Input = P;
    type Output = Ret;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    async fn call_tool(&self, input: P, connection: McpConnectionTo<Counterpart>) -> Result<Ret> {
        let gone = || Error::internal_error().data("what runs this tool has ended: keep its runner with the server");
        let (done, outcome) = oneshot::channel();
        // Kept until the answer is there: a caller that gives up leaves the line.
        let _place = self.queue.enter(QueuedCall { input, connection, done }).ok_or_else(gone)?;
        outcome.await.map_err(|_| gone())?
    }
}

/// The end that runs the closure.
struct Queue<P, Ret, F, ToFut, Counterpart: Role> {
    function: F,
    to_future: ToFut,
    calls: Head<QueuedCall<P, Ret, Counterpart>>,
}

impl<P, Ret, F, ToFut, Counterpart> RunWithConnectionTo<Counterpart> for Queue<P, Ret, F, ToFut, Counterpart>
where
    Counterpart: Role,
    P: Send,
    Ret: Send,
    F: Send,
    ToFut: for<'a> Fn(&'a mut F, P, McpConnectionTo<Counterpart>) -> BoxFuture<'a, Result<Ret, Error>> + Send,
{
    async fn run_with_connection_to(mut self, _connection: ConnectionTo<Counterpart>) -> Result<()> {
        while let Some(QueuedCall { input, connection, mut done }) = self.calls.next().await {
            if done.is_canceled() {
                continue;
            }
            // What it panics with harms this call and no other.
            let work = AssertUnwindSafe((self.to_future)(&mut self.function, input, connection)).catch_unwind();
            let outcome = tokio::select! {
                biased;
                outcome = work => outcome.unwrap_or_else(|_panic| Err(Error::internal_error().data("the tool panicked"))),
                () = done.cancellation() => continue,
            };
            let _ = done.send(outcome);
        }
        Ok(())
    }
}
