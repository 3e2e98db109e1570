//! A connection over one WebSocket.
//!
//! One message a text frame, in both directions. The two directions do not wait for each other:
//! reading stops while the credit is used up, writing while the server does not read.

mod handshake;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use greenroom_actors::runtime::Credit;
use greenroom_actors::{FrameReceiver, FrameSender, Inbound};
use greenroom_protocol::Error;
use reqwest::{Client, Upgraded, Url};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use super::failure::{Action, Failure, Trouble};
use super::options::HttpClientOptions;
use super::{FRAME_COST, read_frame};

/// Buffers of one socket, in bytes. The library's own default would take 128 KiB for reading, even
/// from a connection that is idle.
const READ_BUFFER: usize = 16 * 1024;
const WRITE_BUFFER: usize = 64 * 1024;

/// Messages that share a flush.
const BURST: usize = 64;

type Socket = WebSocketStream<Upgraded>;

/// Runs one connection.
pub(super) async fn drive(
    http: Client,
    url: Url,
    options: HttpClientOptions,
    mut receiver: FrameReceiver,
    sender: FrameSender,
) -> Result<(), Error> {
    let result = run(http, url, options, &mut receiver, &sender).await.map_err(|failure| failure.to_error());
    sender.finish(result.clone().err());
    result
}

async fn run(
    http: Client,
    url: Url,
    options: HttpClientOptions,
    receiver: &mut FrameReceiver,
    sender: &FrameSender,
) -> Result<(), Failure> {
    let deadline = options.open_deadline;
    let upgraded = timeout(deadline, handshake::open(http, url))
        .await
        .unwrap_or(Err(Failure::Deadline(Action::OpenWebSocket, deadline)))?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(options.max_message))
        .max_frame_size(Some(options.max_message));
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    let (mut sink, mut stream) = socket.split();
    let reading = read(&mut stream, sender, options);
    tokio::pin!(reading);
    tokio::select! {
        ended = &mut reading => return Err(ended),
        written = write(&mut sink, receiver) => written.map_err(|error| broken(&error, options.max_message))?,
    }
    // Whatever the server still had to say counts, until it closes its half; how it ends does not.
    let _ = timeout(options.finish_deadline, reading).await;
    Ok(())
}

/// Writes everything that the connection sends, then the close.
async fn write(sink: &mut SplitSink<Socket, Message>, receiver: &mut FrameReceiver) -> Result<(), tungstenite::Error> {
    loop {
        let mut next = Some(receiver.recv().await);
        // What is there already shares a flush, and holds its credit until then.
        let mut permits = Vec::new();
        while let Some(item) = next {
            match item {
                Inbound::Frame(frame, permit) => {
                    permits.extend(permit);
                    match Utf8Bytes::try_from(frame.text().clone()) {
                        Ok(text) => sink.feed(Message::Text(text)).await?,
                        // Only something malformed that a relay passes on; a server would close.
                        Err(_) => tracing::warn!(bytes = frame.text().len(), "what is no JSON text was not sent"),
                    }
                }
                Inbound::Eof(_) => {
                    sink.flush().await?;
                    return sink.close().await;
                }
            }
            next = if permits.len() < BURST { receiver.try_recv() } else { None };
        }
        sink.flush().await?;
    }
}

/// Reads until the WebSocket is over; says how that came.
async fn read(stream: &mut SplitStream<Socket>, sender: &FrameSender, options: HttpClientOptions) -> Failure {
    let credit = Credit::new(options.incoming_credit);
    loop {
        credit.room().await;
        match stream.next().await {
            Some(Ok(Message::Text(text))) => {
                let text = Bytes::from(text);
                let permit = credit.take(text.len() + FRAME_COST);
                sender.send(read_frame(text), permit);
            }
            // The library answers pings; binary frames have no meaning here.
            Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(frame))) => return Failure::Closed(frame.map(|frame| frame.code.into())),
            Some(Err(error)) => return broken(&error, options.max_message),
            None => return Failure::Closed(None),
        }
    }
}

/// What an error of the library means.
fn broken(error: &tungstenite::Error, limit: usize) -> Failure {
    match error {
        tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => Failure::Closed(None),
        tungstenite::Error::Io(error) => Failure::Socket(Trouble::of_io(error)),
        tungstenite::Error::Capacity(_) => Failure::TooLong(limit),
        _ => Failure::Socket(Trouble::Protocol),
    }
}
