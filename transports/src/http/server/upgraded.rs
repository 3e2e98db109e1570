//! The socket below a WebSocket, once HTTP has let go of it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// An upgraded connection: the plain TCP socket where it is one, or whatever the host serves HTTP
/// over.
pub(super) enum Io {
    Tcp(TcpStream),
    Other(TokioIo<Upgraded>),
}

impl Io {
    /// Also gives what the client sent behind its request for the upgrade.
    ///
    /// Whoever accepted the socket, from here on messages do not wait for the acknowledgement of the
    /// last: with the delay of TCP for small segments a stream of them stalls for 40 ms at a time.
    pub(super) fn new(upgraded: Upgraded) -> (Self, Bytes) {
        match upgrade::downcast::<TokioIo<TcpStream>>(upgraded) {
            Ok(parts) => Self::tcp(parts.io.into_inner(), parts.read_buf),
            // A host that serves HTTP/1 only wraps the socket less.
            Err(other) => match other.downcast::<TokioIo<TcpStream>>() {
                Ok(parts) => Self::tcp(parts.io.into_inner(), parts.read_buf),
                Err(other) => (Self::Other(TokioIo::new(other)), Bytes::new()),
            },
        }
    }

    fn tcp(socket: TcpStream, read: Bytes) -> (Self, Bytes) {
        // Refused only when the client is gone already.
        let _ = socket.set_nodelay(true);
        (Self::Tcp(socket), read)
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Other(socket) => Pin::new(socket).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Other(socket) => Pin::new(socket).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_flush(cx),
            Self::Other(socket) => Pin::new(socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Other(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::service::service_fn;
    use hyper::{Request, Response, StatusCode};
    use hyper_util::rt::TokioExecutor;
    use hyper_util::server::conn::auto;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::mpsc;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nahead";

    /// Upgrades one connection of a host that serves HTTP, or HTTP/1 only, over `served`.
    async fn upgraded<S>(served: S, mut client: impl AsyncRead + AsyncWrite + Unpin, only_1: bool) -> (Io, Bytes)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, mut upgrades) = mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<_>| {
            sender.send(hyper::upgrade::on(request)).expect("a test that waits");
            async {
                let mut response = Response::new(String::new());
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                response.headers_mut().insert("upgrade", "x".parse().expect("a value"));
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        client.write_all(REQUEST).await.expect("a request");
        if only_1 {
            let http = hyper::server::conn::http1::Builder::new();
            http.serve_connection(TokioIo::new(served), service).with_upgrades().await.expect("an upgrade");
        } else {
            let http = auto::Builder::new(TokioExecutor::new());
            http.serve_connection_with_upgrades(TokioIo::new(served), service).await.expect("an upgrade");
        }
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 101");
        Io::new(upgrades.recv().await.expect("one").await.expect("a socket"))
    }

    #[tokio::test]
    async fn a_host_that_leaves_the_delay_on_is_put_right() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        for only_1 in [false, true] {
            let client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("a connection");
            let (served, _) = listener.accept().await.expect("a socket");
            assert!(!served.nodelay().expect("an option"));
            let (io, ahead) = upgraded(served, client, only_1).await;
            assert_eq!(ahead, "ahead", "what came with the request is not lost");
            let Io::Tcp(socket) = io else { panic!("a TCP socket") };
            assert!(socket.nodelay().expect("an option"));
        }
    }

    #[tokio::test]
    async fn any_other_socket_is_used_as_it_is() {
        let (served, client) = tokio::io::duplex(4096);
        let (mut io, ahead) = upgraded(served, client, false).await;
        assert!(matches!(io, Io::Other(_)));
        let mut rest = ahead.to_vec();
        io.read_to_end(&mut rest).await.expect("the rest");
        assert_eq!(rest, b"ahead");
    }
}
