//! The custom adapter of the documentation: it buffers its output, and can be asked to finish.

use std::collections::VecDeque;

use futures_util::future::{Either, select};
use futures_util::{FutureExt as _, StreamExt as _};
use greenroom::{Channel, ConnectTo, ConnectionDriver, Error, Result, TransportFrame, UntypedRole};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::oneshot;

use crate::support::Log;

/// As in the chapter about connection drivers, word for word where it is about the protocol.
pub(crate) struct BufferedAdapter {
    channel: Channel,
    driver: ConnectionDriver,
}

impl ConnectTo<UntypedRole> for BufferedAdapter {
    async fn connect_to(self, peer: impl ConnectTo<UntypedRole>) -> Result<()> {
        let bridge = Box::pin(ConnectTo::<UntypedRole>::connect_to(self.channel, peer));
        match select(bridge, self.driver).await {
            Either::Left((result, mut driver)) => {
                result?;
                if driver.request_finish() { driver.await } else { driver.now_or_never().unwrap_or(Ok(())) }
            }
            Either::Right((result, _bridge)) => result,
        }
    }

    fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
        (self.channel, Some(self.driver))
    }
}

impl BufferedAdapter {
    /// Over any two streams; says when it is asked to finish and when everything is flushed.
    pub(crate) fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        log: Log,
    ) -> Self {
        let (channel, far) = Channel::duplex();
        let (finish, finished) = oneshot::channel();
        let asked = log.clone();
        let driver = ConnectionDriver::with_finish(run(far, reader, writer, finished, log), move || {
            asked.say("asked");
            let _ = finish.send(());
        });
        Self { channel, driver }
    }
}

fn broken(error: std::io::Error) -> Error {
    Error::internal_error().data(error.to_string())
}

async fn run(
    far: Channel,
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    mut finished: oneshot::Receiver<()>,
    log: Log,
) -> Result<()> {
    let Channel { mut rx, tx } = far;
    let mut tx = Some(tx);
    let mut lines = BufReader::new(reader).lines();
    let mut buffer: VecDeque<u8> = VecDeque::new();
    let (mut listening, mut finishing, mut open, mut reading) = (true, false, true, true);
    // Over when the output is flushed, and the input has ended or does not matter any more.
    while open || (reading && !finishing) {
        if open && rx_ended(&rx) && buffer.is_empty() {
            writer.shutdown().await.map_err(broken)?;
            log.say("flushed");
            open = false;
            continue;
        }
        let front = buffer.as_slices().0;
        tokio::select! {
            asked = &mut finished, if listening => {
                listening = false;
                // Dropped is not asked.
                if asked.is_ok() {
                    finishing = true;
                    rx.close();
                }
            }
            frame = rx.next(), if !rx_ended(&rx) => {
                if let Some(frame) = frame {
                    buffer.extend(frame.to_json()?.into_bytes());
                    buffer.push_back(b'\n');
                }
            }
            written = writer.write(front), if !front.is_empty() => {
                let written = written.map_err(broken)?;
                buffer.drain(..written);
            }
            line = lines.next_line(), if reading => match line.map_err(broken)? {
                // What comes during the drain is for nobody.
                Some(_) if finishing => {}
                Some(line) => {
                    let sent = tx.as_ref().is_some_and(|tx| tx.unbounded_send(TransportFrame::parse_json(&line)).is_ok());
                    assert!(sent, "the connection still reads");
                }
                None => (reading, tx) = (false, None),
            }
        }
    }
    Ok(())
}

fn rx_ended(rx: &futures_channel::mpsc::UnboundedReceiver<TransportFrame>) -> bool {
    futures_util::stream::FusedStream::is_terminated(rx)
}
