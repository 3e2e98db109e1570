//! Sockets that break: a forwarder between client and server that cuts connections when it is told.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::super::random::Random;

/// Most bytes that are passed on at once, towards the server.
const CHUNK: usize = 8 * 1024;

/// What is known about one connection.
#[derive(Default)]
struct Pipe {
    /// Its last request asked for a stream of events.
    carries_events: AtomicBool,
    /// An event with an id has come since.
    heard: AtomicBool,
    cut: Notify,
    over: AtomicBool,
}

impl Pipe {
    fn cut(&self) {
        self.over.store(true, Ordering::Release);
        self.cut.notify_one();
    }
}

/// Forwards TCP connections to one server. Dropping it cuts all of them.
pub(super) struct Forwarder {
    address: SocketAddr,
    pipes: Arc<Mutex<Vec<Arc<Pipe>>>>,
    listening: JoinHandle<()>,
}

impl Forwarder {
    /// Listens on a port of its own. Small numbers in `widest` cut messages into small pieces.
    pub(super) async fn start(to: SocketAddr, widest: usize) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let pipes: Arc<Mutex<Vec<Arc<Pipe>>>> = Arc::default();
        let known = pipes.clone();
        let listening = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let pipe = Arc::new(Pipe::default());
                let mut pipes = known.lock();
                pipes.retain(|pipe| !pipe.over.load(Ordering::Acquire));
                pipes.push(pipe.clone());
                drop(pipes);
                tokio::spawn(async move {
                    forward(near, to, &pipe, widest).await;
                    pipe.over.store(true, Ordering::Release);
                });
            }
        });
        Ok(Self { address, pipes, listening })
    }

    /// Where clients reach the server.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts one of the connections that carry a stream which can go on elsewhere: one on which an
    /// event with an id has come. False when there is none.
    pub(super) fn cut_stream(&self, random: &mut Random) -> bool {
        let pipes = self.pipes.lock();
        let streams: Vec<_> = pipes.iter().filter(|pipe| resumable(pipe)).collect();
        if streams.is_empty() {
            return false;
        }
        random.pick(&streams).cut();
        true
    }

    /// Cuts all of them. Returns how many.
    pub(super) fn cut_all(&self) -> usize {
        let pipes = self.pipes.lock();
        let open = pipes.iter().filter(|pipe| !pipe.over.load(Ordering::Acquire));
        open.map(|pipe| pipe.cut()).count()
    }
}

fn resumable(pipe: &Pipe) -> bool {
    let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
    is(&pipe.carries_events) && is(&pipe.heard) && !is(&pipe.over)
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut_all();
    }
}

/// Carries one connection until one side ends it, or it is cut.
async fn forward(mut near: TcpStream, to: SocketAddr, pipe: &Pipe, widest: usize) {
    let Ok(mut far) = TcpStream::connect(to).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_read, near_write) = near.split();
    let (far_read, far_write) = far.split();
    // What is under way when it is cut is lost.
    tokio::select! {
        () = pipe.cut.notified() => {}
        () = copy(near_read, far_write, CHUNK, |bytes| requested(pipe, bytes)) => {}
        () = copy(far_read, near_write, widest, |bytes| said(pipe, bytes)) => {}
    }
}

/// Clients write the head of a request in one piece.
fn requested(pipe: &Pipe, bytes: &[u8]) {
    if bytes.starts_with(b"GET ") {
        pipe.heard.store(false, Ordering::Release);
        pipe.carries_events.store(true, Ordering::Release);
    } else if bytes.starts_with(b"POST ") || bytes.starts_with(b"DELETE ") {
        pipe.carries_events.store(false, Ordering::Release);
    }
}

fn said(pipe: &Pipe, bytes: &[u8]) {
    if bytes.windows(5).any(|window| window == b"\nid: ") {
        pipe.heard.store(true, Ordering::Release);
    }
}

async fn copy(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, widest: usize, look: impl Fn(&[u8])) {
    let mut buffer = vec![0; widest];
    loop {
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                look(&buffer[..count]);
                if to.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says this to everybody, and then waits.
    async fn saying(text: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    socket.read_exact(&mut [0; 4]).await.expect("a request");
                    socket.write_all(text).await.expect("a reader");
                    let _ = tokio::io::copy(&mut socket, &mut tokio::io::sink()).await;
                });
            }
        });
        address
    }

    async fn ask(forwarder: &Forwarder, request: &[u8], answer: &[u8]) -> TcpStream {
        let mut socket = TcpStream::connect(forwarder.address()).await.expect("it listens");
        socket.write_all(request).await.expect("it reads");
        let mut heard = vec![0; answer.len()];
        socket.read_exact(&mut heard).await.expect("an answer");
        assert_eq!(heard, answer);
        socket
    }

    #[tokio::test]
    async fn only_streams_that_can_go_on_are_cut() {
        let (head, event) = (&b"acp-connection-id: 1\n"[..], &b"head\nid: 1\n"[..]);
        let mut random = Random::new(1);
        for (request, answer, stream) in
            [(&b"GET "[..], event, true), (b"GET ", head, false), (b"POST ", event, false), (b"DELETE ", event, false)]
        {
            let forwarder = Forwarder::start(saying(answer).await, 64).await.expect("a port");
            let mut socket = ask(&forwarder, request, answer).await;
            assert_eq!(forwarder.cut_stream(&mut random), stream, "{request:?} {answer:?}");
            assert_eq!(forwarder.cut_all(), usize::from(!stream), "each once");
            assert!(!matches!(socket.read(&mut [0]).await, Ok(1..)), "the socket is cut");
        }
    }
}
