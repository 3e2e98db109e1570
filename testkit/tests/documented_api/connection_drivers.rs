//! "Migrating Connection Drivers", and the component boundary of "Transport Architecture".

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol::{
    Agent, Channel, Client, ConnectTo, ConnectionDriver, DynConnectTo, RawJsonRpcMessage, Responder, Result,
    TransportFrame, UntypedMessage, UntypedRole, on_receive_request,
};
use futures::channel::mpsc;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, select};
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

fn echo() -> impl ConnectTo<Client> {
    Agent.builder().on_receive_request(
        async |request: UntypedMessage, responder: Responder<Value>, _cx| responder.respond(request.params),
        on_receive_request!(),
    )
}

fn ask(id: i64) -> TransportFrame {
    TransportFrame::Single(RawJsonRpcMessage::request("ask".into(), json!({ "a": id }), id.into()).expect("params"))
}

/// A component that is known to own work: its driver is polled while the channel is used.
#[tokio::test]
async fn components_that_use_the_default_conversion() -> Result<()> {
    let component = DynConnectTo::<Client>::new(echo());
    let (channel, driver) = component.into_channel_and_future();
    let driver = driver.expect("this component owns connection work");
    let Channel { mut rx, tx } = channel;
    let traffic = async move {
        tx.unbounded_send(ask(1)).expect("open");
        let Some(TransportFrame::Single(RawJsonRpcMessage::Response(response))) = rx.next().await else {
            panic!("an answer");
        };
        drop(tx);
        response
    };
    let (driven, response) = tokio::join!(driver, traffic);
    driven?;
    assert_eq!(serde_json::to_value(RawJsonRpcMessage::Response(response)).expect("json")["result"], json!({ "a": 1 }));
    Ok(())
}

/// An override that owns its work, and one whose work is driven elsewhere.
mod custom_conversion_overrides {
    use super::*;

    pub(super) struct Owning {
        pub(super) component: DynConnectTo<Client>,
    }

    impl Owning {
        fn into_channel_transport(self) -> (Channel, BoxFuture<'static, Result<()>>) {
            let (channel, driver) = self.component.into_channel_and_future();
            (channel, driver.expect("owned work").boxed())
        }
    }

    impl ConnectTo<Client> for Owning {
        async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
            self.component.connect_to(client).await
        }

        fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
            let (channel, future) = self.into_channel_transport();
            (channel, Some(ConnectionDriver::new(future)))
        }
    }

    pub(super) struct Passive {
        pub(super) channel: Channel,
    }

    impl ConnectTo<Client> for Passive {
        async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
            ConnectTo::<Client>::connect_to(self.channel, client).await
        }

        fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
            (self.channel, None)
        }
    }
}

async fn asks(component: impl ConnectTo<Client>) -> Result<Value> {
    Client
        .connect_with(component, async |cx| cx.send_request(UntypedMessage::new("ask", json!([7]))?).block_task().await)
        .await
}

#[tokio::test]
async fn overrides_work_with_and_without_a_driver() {
    let owning = custom_conversion_overrides::Owning { component: DynConnectTo::new(echo()) };
    assert_eq!(asks(owning).await.expect("an answer"), json!([7]));
    let (ours, theirs) = Channel::duplex();
    let serving = tokio::spawn(echo().connect_to(theirs));
    let passive = custom_conversion_overrides::Passive { channel: ours };
    assert_eq!(asks(passive).await.expect("an answer"), json!([7]));
    serving.await.expect("no panic").expect("a clean end");
    let channel = Channel::duplex().0;
    let (_channel, driver) = ConnectTo::<Client>::into_channel_and_future(channel);
    assert!(driver.is_none(), "an existing channel has no driver");
}

/// Tracing, error annotation and cleanup decorate the future; the finish capability stays.
struct Decorated<C> {
    component: C,
    completed: Arc<AtomicBool>,
}

impl<C: ConnectTo<Client>> ConnectTo<Client> for Decorated<C> {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<()> {
        self.component.connect_to(client).await
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        let Self { component, completed } = self;
        let (channel, driver) = component.into_channel_and_future();
        let driver = driver.map(|driver| {
            driver.map_future(|work| work.inspect(move |_result| completed.store(true, Ordering::Release)))
        });
        (channel, driver)
    }
}

#[tokio::test]
async fn a_driver_is_decorated() {
    let completed = Arc::new(AtomicBool::new(false));
    let decorated = Decorated { component: echo(), completed: completed.clone() };
    assert_eq!(asks(decorated).await.expect("an answer"), json!([7]));
    let (_channel, driver) = Decorated { component: echo(), completed: completed.clone() }.into_channel_and_future();
    assert!(!driver.expect("work").request_finish(), "opaque work stays opaque");
    let cooperative = ConnectionDriver::with_finish(async { Ok(()) }, || {});
    let mut decorated = cooperative.map_future(|work| work.map(|result| result));
    assert!(decorated.request_finish() && decorated.request_finish(), "asked again, still supported");
    decorated.await.expect("done");
}

/// A transport that buffers what it accepted, and proves that it was flushed.
struct Buffering {
    channel: Channel,
    driver: ConnectionDriver,
}

/// What the far side of the buffering transport has got.
type Flushed = Arc<parking_lot::Mutex<Vec<String>>>;

async fn run_custom_adapter(
    mut outgoing: mpsc::UnboundedReceiver<TransportFrame>,
    incoming: mpsc::UnboundedSender<TransportFrame>,
    finish: oneshot::Receiver<()>,
    flushed: Flushed,
) -> Result<()> {
    let mut buffer = Vec::new();
    let mut finish = Some(finish);
    loop {
        let asked = async {
            match &mut finish {
                Some(finish) => finish.await.is_ok(),
                None => std::future::pending().await,
            }
        };
        match select(Box::pin(asked), outgoing.next()).await {
            // Seal, drain every accepted frame, flush; no waiting for the remote end.
            Either::Left((true, _)) => break,
            // A dropped sender is no finish request.
            Either::Left((false, _)) => finish = None,
            Either::Right((Some(frame), _)) => buffer.push(frame.to_json()?),
            Either::Right((None, _)) => break,
        }
    }
    outgoing.close();
    while let Some(frame) = outgoing.next().await {
        buffer.push(frame.to_json()?);
    }
    tokio::task::yield_now().await;
    flushed.lock().append(&mut buffer);
    drop(incoming);
    Ok(())
}

fn buffering(flushed: &Flushed) -> Buffering {
    let (channel, far) = Channel::duplex();
    let (finish_tx, finish_rx) = oneshot::channel();
    let future = run_custom_adapter(far.rx, far.tx, finish_rx, flushed.clone());
    let driver = ConnectionDriver::with_finish(future, move || {
        let _ = finish_tx.send(());
    });
    Buffering { channel, driver }
}

impl ConnectTo<UntypedRole> for Buffering {
    async fn connect_to(self, peer: impl ConnectTo<UntypedRole>) -> Result<()> {
        let bridge = Box::pin(ConnectTo::<UntypedRole>::connect_to(self.channel, peer));
        match select(bridge, self.driver).await {
            Either::Left((result, mut driver)) => {
                result?; // The peer's accepted output has been handed off.
                if driver.request_finish() {
                    driver.await // Prove physical drain; propagate its errors.
                } else {
                    // Preserve a ready error, then cancel opaque work.
                    driver.now_or_never().unwrap_or(Ok(()))
                }
            }
            Either::Right((result, _bridge)) => result,
        }
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        (self.channel, Some(self.driver))
    }
}

/// A peer that says two things and is done.
struct Finite;

impl ConnectTo<UntypedRole> for Finite {
    async fn connect_to(self, transport: impl ConnectTo<UntypedRole>) -> Result<()> {
        UntypedRole
            .builder()
            .connect_with(transport, async |cx| {
                cx.send_notification(UntypedMessage::new("one", Value::Null)?)?;
                cx.send_notification(UntypedMessage::new("two", Value::Null)?)
            })
            .await
    }
}

fn methods(flushed: &Flushed) -> Vec<String> {
    let read = |text: &String| serde_json::from_str::<Value>(text).expect("json")["method"].as_str().map(str::to_owned);
    flushed.lock().iter().filter_map(read).collect()
}

/// The normalized way: the connection asks the driver to finish, and waits for it.
#[tokio::test]
async fn what_was_accepted_is_flushed_before_the_end() {
    let flushed = Flushed::default();
    Finite.connect_to(buffering(&flushed)).await.expect("a clean end");
    assert_eq!(methods(&flushed), ["one", "two"]);
}

/// The direct way: a bare join would wait for ever after the finite peer is done.
#[tokio::test]
async fn a_direct_entry_point_flushes_as_well() {
    let flushed = Flushed::default();
    let connected = buffering(&flushed).connect_to(Finite);
    tokio::time::timeout(std::time::Duration::from_secs(20), connected).await.expect("in time").expect("a clean end");
    assert_eq!(methods(&flushed), ["one", "two"]);
}
