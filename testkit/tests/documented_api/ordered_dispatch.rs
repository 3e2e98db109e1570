//! "Ordered Application Dispatch", and the cookbook recipe of that name: one queue, one consumer,
//! and an application that is not `Send`.

use std::cell::RefCell;
use std::rc::Rc;

use agent_client_protocol::schema::v1::{
    ContentBlock, ContentChunk, PromptRequest, PromptResponse, SessionNotification, SessionUpdate, StopReason,
    TextContent,
};
use agent_client_protocol::{
    Agent, Client, ConnectTo, ConnectionTo, Error, Responder, Result, on_receive_notification, on_receive_request,
};
use tokio::sync::mpsc;

/// Everything that the application has to see in order.
#[allow(clippy::large_enum_variant, reason = "as an application would write it")]
enum Event {
    Update(SessionNotification),
    Answered(Result<PromptResponse>),
    Closed,
}

/// A view of a user interface: it belongs to one thread.
#[derive(Clone, Default)]
struct View(Rc<RefCell<Vec<String>>>);

impl View {
    fn apply(&self, event: Event) -> bool {
        let (text, goes_on) = match event {
            Event::Update(update) => (text_of(&update.update), true),
            Event::Answered(answer) => (format!("{:?}", answer.map(|answer| answer.stop_reason)), true),
            Event::Closed => ("closed".to_owned(), false),
        };
        self.0.borrow_mut().push(text);
        goes_on
    }
}

fn text_of(update: &SessionUpdate) -> String {
    match update {
        SessionUpdate::AgentMessageChunk(ContentChunk { content: ContentBlock::Text(content), .. }) => {
            content.text.clone()
        }
        _ => "another update".to_owned(),
    }
}

/// Says three words, answers, says one more, and is gone.
fn agent() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |prompt: PromptRequest, responder: Responder<PromptResponse>, cx: ConnectionTo<Client>| {
            let say = |text: &str| {
                let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text)));
                let update = SessionUpdate::AgentMessageChunk(chunk);
                cx.send_notification(SessionNotification::new(prompt.session_id.clone(), update))
            };
            for word in ["one", "two", "three"] {
                say(word)?;
            }
            responder.respond(PromptResponse::new(StopReason::EndTurn))?;
            say("four")
        },
        on_receive_request!(),
    )
}

/// Connection handlers keep only senders of events: neither the view nor the connection.
async fn run(agent: impl ConnectTo<Client>, view: View) -> Result<()> {
    let (events, mut queue) = mpsc::unbounded_channel();
    let (updates, closure, results) = (events.clone(), events.clone(), events);
    let gone = |_| Error::internal_error().data("the application is gone");
    let connection = Client
        .builder()
        .on_receive_notification(
            async move |update: SessionNotification, _cx| updates.send(Event::Update(update)).map_err(gone),
            on_receive_notification!(),
        )
        .on_close(async move |_cx| closure.send(Event::Closed).map_err(gone))
        .connect_with(agent, async move |cx: ConnectionTo<Agent>| {
            let prompt = PromptRequest::new("s", vec![]);
            cx.prepare_request(prompt)
                .on_receiving_result(async move |result| results.send(Event::Answered(result)).map_err(gone))?;
            cx.incoming_closed().await;
            Ok(())
        });
    // The one consumer, sequential, on the application's own thread.
    let application = async {
        while let Some(event) = queue.recv().await {
            let goes_on = view.apply(event);
            // Slow, as applying to a screen may be; nothing overtakes all the same.
            tokio::task::yield_now().await;
            if !goes_on {
                break;
            }
        }
        Ok(())
    };
    futures::future::try_join(connection, application).await.map(|((), ())| ())
}

/// Ends by itself after its first answer: its input is closed by the link.
struct OneAnswer;

impl ConnectTo<Client> for OneAnswer {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
        let (answered, done) = tokio::sync::oneshot::channel::<()>();
        let mut answered = Some(answered);
        Agent
            .builder()
            .on_receive_request(
                async move |prompt: PromptRequest, responder: Responder<PromptResponse>, cx: ConnectionTo<Client>| {
                    let say = |text: &str| {
                        let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text)));
                        let update = SessionUpdate::AgentMessageChunk(chunk);
                        cx.send_notification(SessionNotification::new(prompt.session_id.clone(), update))
                    };
                    for word in ["one", "two", "three"] {
                        say(word)?;
                    }
                    responder.respond(PromptResponse::new(StopReason::EndTurn))?;
                    say("four")?;
                    drop(answered.take());
                    Ok(())
                },
                on_receive_request!(),
            )
            .connect_with(client, async |_cx| {
                // Both a value and a dropped sender mean: done.
                let _ = done.await;
                Ok(())
            })
            .await
    }
}

#[tokio::test]
async fn updates_results_and_closure_are_applied_in_order() {
    let view = View::default();
    run(OneAnswer, view.clone()).await.expect("a clean end");
    assert_eq!(*view.0.borrow(), ["one", "two", "three", "Ok(EndTurn)", "four", "closed"]);
}

/// An acknowledgement that the projection is drained comes from the consumer, not from the SDK.
#[tokio::test]
async fn a_foreground_waits_for_what_was_applied() {
    let view = View::default();
    let (events, mut queue) = mpsc::unbounded_channel();
    let (applied, drained) = tokio::sync::oneshot::channel();
    let (updates, results) = (events.clone(), events);
    let gone = |_| Error::internal_error().data("the application is gone");
    let connection = Client
        .builder()
        .on_receive_notification(
            async move |update: SessionNotification, _cx| updates.send(Event::Update(update)).map_err(gone),
            on_receive_notification!(),
        )
        .connect_with(agent(), async move |cx: ConnectionTo<Agent>| {
            cx.prepare_request(PromptRequest::new("s", vec![]))
                .on_receiving_result(async move |result| results.send(Event::Answered(result)).map_err(gone))?;
            drained.await.map_err(Error::into_internal_error)
        });
    let seen = view.clone();
    let application = async {
        let mut applied = Some(applied);
        while let Some(event) = queue.recv().await {
            let is_answer = matches!(event, Event::Answered(_));
            view.apply(event);
            if is_answer && let Some(applied) = applied.take() {
                let _ = applied.send(seen.0.borrow().len());
            }
        }
        Ok(())
    };
    let (count, ()) = futures::future::try_join(connection, application).await.expect("a clean end");
    assert_eq!(count, 4, "three words and the answer");
}
