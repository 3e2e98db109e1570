//! "Sending Requests".

use std::sync::{Arc, Mutex};

use agent_client_protocol::{
    Agent, Client, ConnectTo, ConnectionTo, Error, Responder, Result, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn message(method: &str) -> UntypedMessage {
    UntypedMessage::new(method, json!({})).expect("params")
}

/// Echoes what arrives, in order: a request with its method, and tells of every notification.
fn agent(seen: Arc<Mutex<Vec<String>>>) -> impl ConnectTo<Client> {
    let told = seen.clone();
    Agent
        .builder()
        .on_receive_request(
            async move |request: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
                seen.lock().unwrap().push(request.method.clone());
                if request.method == "fail" {
                    return responder.respond_with_error(Error::invalid_params());
                }
                responder.respond(json!(request.method))?;
                cx.send_notification(UntypedMessage::new("after", json!({ "of": request.method }))?)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: UntypedMessage, _cx| {
                told.lock().unwrap().push(notification.method);
                Ok(())
            },
            on_receive_notification!(),
        )
}

/// An application's queue.
#[derive(Clone)]
struct Queue(mpsc::UnboundedSender<String>);

impl Queue {
    fn enqueue(&self, result: Result<Value>) -> Result<()> {
        let text = match result {
            Ok(value) => value.to_string(),
            Err(error) => error.reason().to_owned(),
        };
        self.0.send(text).map_err(Error::into_internal_error)
    }
}

/// Handling that is selected before publication: what the peer sends next waits for it, for
/// success and for failure alike, even when the request is sent from another task.
#[tokio::test]
async fn select_handling_before_publication() {
    let (sender, mut queue) = mpsc::unbounded_channel();
    let application_queue = Queue(sender);
    let updates = application_queue.clone();
    Client
        .builder()
        .on_receive_notification(
            async move |update: UntypedMessage, _cx| updates.enqueue(Ok(update.params)),
            on_receive_notification!(),
        )
        .connect_with(agent(Arc::default()), async |connection| {
            let requests = connection.clone();
            let queue_of_task = application_queue.clone();
            tokio::spawn(async move {
                for method in ["one", "fail", "two"] {
                    let (connection, request) = (requests.clone(), message(method));
                    let application_queue = queue_of_task.clone();
                    connection.prepare_request(request).on_receiving_result(async move |result| {
                        // Time in which the notification behind the answer could overtake.
                        tokio::task::yield_now().await;
                        application_queue.enqueue(result)?;
                        Ok(())
                    })?;
                }
                Ok::<(), Error>(())
            })
            .await
            .expect("no panic")?;
            let mut seen = Vec::new();
            while seen.len() < 5 {
                seen.push(queue.recv().await.expect("an event"));
            }
            assert_eq!(seen, [r#""one""#, r#"{"of":"one"}"#, "invalid params", r#""two""#, r#"{"of":"two"}"#]);
            Ok(())
        })
        .await
        .expect("a conversation");
}

#[tokio::test]
async fn unordered_consumption_sends_during_the_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let result = Client
        .connect_with(agent(seen.clone()), async |connection| {
            let (request, notification) = (message("request"), message("notification"));
            let response = connection.prepare_request(request).block_task();
            connection.send_notification(notification)?; // Queued after the request.
            let result = response.await?;
            connection.send_request(message("last")).block_task().await?;
            Ok(result)
        })
        .await
        .expect("an answer");
    assert_eq!(result, json!("request"));
    assert_eq!(*seen.lock().unwrap(), ["request", "notification", "last"]);
}

#[tokio::test]
async fn order_follows_publication_and_not_preparation() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    Client
        .connect_with(agent(seen.clone()), async |connection| {
            let prepared = connection.prepare_request(message("prepared"));
            drop(connection.prepare_request(message("never sent")));
            connection.send_notification(message("between"))?;
            prepared.detach()?;
            connection.send_request(message("last")).block_task().await?;
            Ok(())
        })
        .await
        .expect("a conversation");
    assert_eq!(*seen.lock().unwrap(), ["between", "prepared", "last"]);
}

/// Explicit cancellation control beside an ordered callback.
#[tokio::test]
async fn cancellation_after_selecting_a_consumer() {
    /// Somebody who may lose interest.
    #[derive(Default)]
    struct Caller(Option<Box<dyn FnOnce() -> Result<()> + Send>>);

    impl Caller {
        fn on_abandoned(&mut self, handler: impl FnOnce() -> Result<()> + Send + 'static) {
            self.0 = Some(Box::new(handler));
        }
    }

    let agent = Agent.builder().on_receive_request(
        async |_: UntypedMessage, responder: Responder<Value>, cx: ConnectionTo<Client>| {
            cx.spawn(async move {
                let marker = responder.cancellation();
                let never = marker.run_until_cancelled(std::future::pending()).await;
                responder.respond_with_result(never)
            })
        },
        on_receive_request!(),
    );
    let (sender, mut queue) = mpsc::unbounded_channel();
    let application_queue = Queue(sender);
    Client
        .connect_with(agent, async |connection| {
            let (request, mut caller) = (message("long"), Caller::default());
            let prepared = connection.prepare_request(request);
            let cancellation = prepared.cancellation_handle();
            cancellation.cancel()?; // Before publication: does nothing, and is not remembered.
            prepared.on_receiving_result(async move |result| {
                application_queue.enqueue(result)?;
                Ok(())
            })?;
            caller.on_abandoned(move || cancellation.cancel());
            caller.0.take().expect("a handler")()?;
            assert_eq!(queue.recv().await.expect("the eventual result"), "request cancelled");
            Ok(())
        })
        .await
        .expect("a conversation");
}
