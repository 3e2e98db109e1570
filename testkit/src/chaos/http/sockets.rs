//! What is left of sockets, as the system sees it.

use std::time::Duration;

use tokio::time::sleep;

/// Sockets of this process that still have one of these ports. Only where the system tells.
pub(super) async fn sockets_left(ports: &[u16]) -> Option<String> {
    let mut left = open_sockets(ports);
    for _ in 0..500 {
        if left == 0 {
            return None;
        }
        sleep(Duration::from_millis(2)).await;
        left = open_sockets(ports);
    }
    Some(format!("{left} sockets are left"))
}

fn open_sockets(ports: &[u16]) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    let is_ours = |address: &str| {
        let port = address.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
        port.is_some_and(|port| ports.contains(&port))
    };
    let is_open = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        // Without an inode it belongs to no process any more.
        matches!(fields[..], [_, near, far, _, _, _, _, _, _, inode, ..] if inode != "0" && (is_ours(near) || is_ours(far)))
    };
    table.lines().skip(1).filter(|line| is_open(line)).count()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn an_open_socket_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if cfg!(target_os = "linux") {
            assert_eq!(open_sockets(&[port]), 1);
        }
        drop(listener);
        assert_eq!(sockets_left(&[port]).await, None);
    }
}
