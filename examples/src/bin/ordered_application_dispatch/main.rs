//! An application with an order of its own: one queue, one consumer, and a view that belongs to one
//! thread.
//!
//! Handlers and callbacks run in the order of the wire, and whatever they put into the queue is in
//! that order too. They hold nothing but a sender: neither the view nor the connection.
//!
//! `ordered_application_dispatch --command "my-agent --flag" "the prompt"`

mod view;

use std::str::FromStr;

use greenroom::schema::{
    InitializeRequest, NewSessionRequest, PromptRequest, PromptResponse, ProtocolVersion, SessionNotification,
};
use greenroom::{AcpAgent, Agent, Client, ConnectionTo, Error, Result, on_receive_notification};
use tokio::sync::{mpsc, oneshot};

use view::View;

/// Everything that the application has to see in order.
enum Event {
    Update(Box<SessionNotification>),
    Answered(Box<Result<PromptResponse>>),
    Closed,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some("--command"), Some(command), Some(prompt)) =
        (arguments.next().as_deref(), arguments.next(), arguments.next())
    else {
        return Err(Error::invalid_params().data("usage: ordered_application_dispatch --command COMMAND PROMPT"));
    };
    let (events, queue) = mpsc::unbounded_channel();
    let (updates, closure) = (events.clone(), events.clone());
    let (applied, drained) = oneshot::channel();
    let connection = Client
        .builder()
        .name("ordered-application-dispatch")
        .on_receive_notification(
            async move |update: SessionNotification, _cx| {
                updates.send(Event::Update(Box::new(update))).map_err(Error::into_internal_error)
            },
            on_receive_notification!(),
        )
        .on_close(async move |_cx| closure.send(Event::Closed).map_err(Error::into_internal_error))
        .connect_with(AcpAgent::from_str(&command)?, async move |agent: ConnectionTo<Agent>| {
            agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let cwd = std::env::current_dir().map_err(Error::into_internal_error)?;
            let session = agent.send_request(NewSessionRequest::new(cwd)).block_task().await?;
            let prompt = PromptRequest::new(session.session_id, vec![prompt.into()]);
            agent.prepare_request(prompt).on_receiving_result(async move |answer| {
                events.send(Event::Answered(Box::new(answer))).map_err(Error::into_internal_error)
            })?;
            // Received is not applied: only the consumer knows when it is done. It is gone when the
            // agent was gone before.
            let _ = drained.await;
            Ok(())
        });
    let (connected, applied) = tokio::join!(connection, consume(queue, View::default(), applied));
    connected.and(applied)
}

/// The one consumer. It is slow, as drawing may be, and nothing overtakes all the same.
async fn consume(mut queue: mpsc::UnboundedReceiver<Event>, view: View, applied: oneshot::Sender<()>) -> Result<()> {
    let mut applied = Some(applied);
    while let Some(event) = queue.recv().await {
        tokio::task::yield_now().await;
        match event {
            Event::Update(update) => view.update(update.update)?,
            Event::Answered(answer) => {
                view.line(&format!("answered: {:?}", (*answer)?.stop_reason))?;
                // The foreground may end now.
                applied.take();
            }
            Event::Closed => {
                view.line("closed")?;
                applied.take();
            }
        }
    }
    view.line(&format!("{} updates, all of them applied", view.count()))
}
