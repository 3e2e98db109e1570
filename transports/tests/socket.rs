//! Sockets as byte links.
#![cfg(unix)]

use greenroom_transports::Socket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// The sending direction closes with the writer; the other direction stays usable.
async fn half_close(near: Socket, far: Socket) {
    let ((mut near_reader, mut near_writer), (mut far_reader, mut far_writer)) = (near.into_ends(), far.into_ends());
    near_writer.write_all("中😀é\n".as_bytes()).await.unwrap();
    near_writer.shutdown().await.unwrap();
    let mut text = String::new();
    far_reader.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "中😀é\n");
    far_writer.write_all(b"last\n").await.unwrap();
    drop((far_reader, far_writer));
    let mut text = String::new();
    near_reader.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "last\n");
}

#[tokio::test]
async fn unix_sockets_carry_both_directions() {
    let (near, far) = UnixStream::pair().unwrap();
    half_close(Socket::unix(near), Socket::unix(far)).await;
}

#[tokio::test]
async fn tcp_connections_carry_both_directions_without_delay() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = Socket::connect_tcp(listener.local_addr().unwrap()).await.unwrap();
    let far = listener.accept().await.unwrap().0.into_std().unwrap();
    // A second handle on the same socket, to see its options.
    let options = far.try_clone().unwrap();
    assert!(!options.nodelay().unwrap());
    let far = Socket::tcp(TcpStream::from_std(far).unwrap()).unwrap();
    assert!(options.nodelay().unwrap());
    drop(options);
    half_close(near, far).await;
}

#[tokio::test]
async fn connecting_to_nobody_is_an_error() {
    let absent = std::env::temp_dir().join(format!("greenroom-absent-{}.sock", std::process::id()));
    assert!(Socket::connect_unix(&absent).await.is_err());
}
