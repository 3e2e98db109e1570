//! A connection over HTTP with server-sent events.
//!
//! One future owns everything: both lanes, all streams, every request under way. It ends in order
//! after the end of the local output, and fails as a whole with the first stream or request that
//! does. Nothing in it waits for the local connection: reading stops while the credit is used up,
//! posting goes on.

mod events;
mod lanes;
mod message;
mod requests;
mod resume;
mod routes;

use std::collections::HashMap;

use futures_core::stream::BoxStream;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{AbortHandle, FuturesUnordered, SelectAll, StreamExt as _, abortable};
use greenroom_actors::runtime::Credit;
use greenroom_actors::{FrameReceiver, FrameSender, Inbound};
use greenroom_protocol::{Error, Frame};
use reqwest::{Client, Response, Url};
use tokio::time::{Instant, sleep, sleep_until};

use self::lanes::{Lane, Lanes, Step};
use self::message::{Scope, Session};
use self::requests::{Initialized, Requests};
use self::resume::{Attempt, Resumption};
use super::FRAME_COST;
use super::failure::{Action, Failure};
use super::options::HttpClientOptions;

/// Messages taken from the streams in one turn.
const BURST: usize = 64;

/// Runs one connection.
pub(super) async fn drive(
    http: Client,
    url: Url,
    options: HttpClientOptions,
    receiver: FrameReceiver,
    sender: FrameSender,
) -> Result<(), Error> {
    let requests = Requests { http, url, options, connection: None };
    let mut driver = Driver {
        lanes: Lanes::new(),
        requests: Farewell(requests),
        receiver,
        sender,
        credit: Credit::new(options.incoming_credit),
        work: FuturesUnordered::new(),
        streams: SelectAll::new(),
        sessions: HashMap::new(),
        resumption: Resumption::new(options.resume_attempts),
        ended: None,
        options,
    };
    let result = driver.run().await.map_err(|failure| failure.to_error());
    if result.is_ok() {
        driver.farewell().await;
    }
    let Driver { sender, .. } = driver;
    sender.finish(result.clone().err());
    result
}

/// Something that was under way is done.
enum Done {
    Initialized(Result<Initialized, Failure>),
    Posted(Lane, Result<(), Failure>),
    Opened(Scope, Result<Response, Failure>),
    Resumed(Scope, u64, Result<Response, Failure>),
}

/// Something came out of a stream.
enum Event {
    Said(Scope, events::Said),
    Over(Scope, Failure),
}

struct Driver {
    lanes: Lanes,
    requests: Farewell,
    receiver: FrameReceiver,
    sender: FrameSender,
    /// Bounds what was read and is not worked off.
    credit: Credit,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
    streams: SelectAll<BoxStream<'static, Event>>,
    /// How to stop reading a session's stream.
    sessions: HashMap<Session, AbortHandle>,
    resumption: Resumption,
    /// When the local output ended.
    ended: Option<Instant>,
    options: HttpClientOptions,
}

impl Driver {
    async fn run(&mut self) -> Result<(), Failure> {
        loop {
            while let Some(step) = self.lanes.next()? {
                self.start(step);
            }
            // An `initialize` that nobody waits for any more is abandoned; the server then forgets
            // the connection by itself.
            if self.ended.is_some() && (self.lanes.is_drained() || self.lanes.only_initializes()) {
                return Ok(());
            }
            // Each post has its own deadline; only `initialize` has none, while somebody waits for it.
            let patience = self.ended.filter(|_| !self.requests.is_connected());
            let deadline = self.options.post_deadline;
            tokio::select! {
                Some(done) = self.work.next(), if !self.work.is_empty() => self.done(done)?,
                item = self.receiver.recv(), if self.ended.is_none() => self.accept(item),
                event = next_event(&self.credit, &mut self.streams), if !self.streams.is_empty() => {
                    self.events(event)?;
                }
                () = sleep_until(patience.unwrap_or_else(Instant::now) + deadline), if patience.is_some() => {
                    return Err(Failure::Deadline(Action::Initialize, deadline));
                }
            }
        }
    }

    fn accept(&mut self, item: Inbound) {
        let mut next = Some(item);
        while let Some(item) = next {
            match item {
                Inbound::Frame(frame, permit) => self.lanes.accept(frame, permit),
                Inbound::Eof(_) => {
                    self.ended = Some(Instant::now());
                    return;
                }
            }
            next = self.receiver.try_recv();
        }
    }

    fn start(&mut self, step: Step) {
        let requests = self.requests.0.clone();
        match step {
            Step::Initialize(message) => {
                self.work.push(requests.initialize(message).map(Done::Initialized).boxed());
            }
            Step::Post(lane, message) => {
                self.work.push(requests.post(message).map(move |result| Done::Posted(lane, result)).boxed());
            }
            Step::Open(scope) => {
                let opened = scope.clone();
                self.work.push(requests.open(scope, None).map(move |result| Done::Opened(opened, result)).boxed());
            }
            Step::Leave(session) => {
                self.resumption.forget(&Scope::Session(session.clone()));
                if let Some(handle) = self.sessions.remove(&session) {
                    handle.abort();
                }
            }
            Step::Refuse(answer) => self.deliver(answer),
        }
    }

    fn done(&mut self, done: Done) -> Result<(), Failure> {
        match done {
            Done::Initialized(result) => {
                let Initialized { response, connection } = result?;
                let connected = response.kind() == greenroom_protocol::FrameKind::Result;
                self.requests.0.connection = connection;
                if !connected {
                    // With an error there is nothing to forget, unless the server says so all the same.
                    part(self.requests.take());
                }
                self.deliver(response);
                self.lanes.initialized(connected);
            }
            Done::Posted(lane, result) => {
                result?;
                self.lanes.posted(lane);
            }
            Done::Opened(scope, result) => {
                let messages = events::messages(result?, self.options.max_message);
                self.lanes.opened(&scope);
                self.read(scope, messages);
            }
            // The session may have been closed in the meantime, and opened again.
            Done::Resumed(scope, attempt, result) if self.resumption.arrived(&scope, attempt) => match result {
                Ok(response) => {
                    self.lanes.is_heard(&scope, true);
                    self.read(scope, events::messages(response, self.options.max_message));
                }
                Err(failure) => self.over(scope, failure)?,
            },
            Done::Resumed(..) => {}
        }
        Ok(())
    }

    fn read(&mut self, scope: Scope, messages: BoxStream<'static, Result<events::Said, Failure>>) {
        let (messages, handle) = abortable(messages);
        if let Some(session) = scope.session() {
            self.sessions.insert(session.clone(), handle.clone());
        }
        let last = scope.clone();
        let end = async move { Event::Over(last, Failure::StreamEnded) };
        let events = messages
            .map(move |said| match said {
                Ok(said) => Event::Said(scope.clone(), said),
                Err(failure) => Event::Over(scope.clone(), failure),
            })
            .chain(end.into_stream())
            // One end is enough.
            .scan(false, |over, event| {
                let go_on = !std::mem::replace(over, matches!(event, Event::Over(..)));
                std::future::ready(go_on.then_some(event))
            })
            // A stream that is left says nothing more.
            .take_while(move |_| std::future::ready(!handle.is_aborted()));
        self.streams.push(events.boxed());
    }

    /// Works off one event, and those that are there already, while there is credit.
    fn events(&mut self, first: Event) -> Result<(), Failure> {
        self.event(first)?;
        for _ in 1..BURST {
            if self.credit.is_full() {
                break;
            }
            match self.streams.next().now_or_never().flatten() {
                Some(event) => self.event(event)?,
                None => break,
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Said(scope, said) => {
                if let Some(id) = said.id {
                    self.resumption.heard(&scope, &id);
                }
                if let Some(frame) = said.frame {
                    self.lanes.received(&frame, &scope);
                    self.deliver(frame);
                }
                Ok(())
            }
            Event::Over(scope, failure) => {
                if let Some(session) = scope.session() {
                    self.sessions.remove(session);
                }
                self.over(scope, failure)
            }
        }
    }

    /// A stream is over, or could not be resumed: goes on with it if that is possible.
    fn over(&mut self, scope: Scope, failure: Failure) -> Result<(), Failure> {
        if self.lanes.needs(&scope)
            && let Some(Attempt { number, behind, pause }) = self.resumption.next(&scope, &failure)
        {
            self.lanes.is_heard(&scope, false);
            let requests = self.requests.0.clone();
            tracing::debug!(?pause, "an event stream ended early: asking for what comes behind the last event");
            let resumed = async move {
                sleep(pause).await;
                let result = requests.open(scope.clone(), Some(behind)).await;
                Done::Resumed(scope, number, result)
            };
            self.work.push(resumed.boxed());
            return Ok(());
        }
        self.resumption.forget(&scope);
        // How a stream ends that nobody needs is no matter.
        if self.lanes.ended(&scope) { Ok(()) } else { Err(failure) }
    }

    fn deliver(&self, frame: Frame) {
        let permit = self.credit.take(frame.text().len() + FRAME_COST);
        self.sender.send(frame, permit);
    }

    /// Says goodbye in order, while the streams are still open.
    async fn farewell(&mut self) {
        self.requests.take().delete().await;
    }
}

/// The next event, once there is credit for it. Cancel-safe.
async fn next_event(credit: &Credit, streams: &mut SelectAll<BoxStream<'static, Event>>) -> Event {
    loop {
        credit.room().await;
        if let Some(event) = streams.next().await {
            return event;
        }
        // Only a stream that was left; the caller looks again once another is open.
        std::future::pending::<()>().await;
    }
}

/// Tells the server that the connection is over, however its driver ends.
struct Farewell(Requests);

impl Farewell {
    fn is_connected(&self) -> bool {
        self.0.connection.is_some()
    }

    /// What has the connection's id now, and only that, has to say goodbye.
    fn take(&mut self) -> Requests {
        let parting = self.0.clone();
        self.0.connection = None;
        parting
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        part(self.take());
    }
}

/// Says goodbye on its own: nobody waits for it, and it takes no longer than its deadline.
fn part(requests: Requests) {
    if requests.connection.is_some()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        runtime.spawn(requests.delete());
    }
}
