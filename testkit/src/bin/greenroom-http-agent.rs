//! Serves the agent of the HTTP tests. Arguments: an address (default `127.0.0.1:0`). Prints the
//! address that it listens on, and drains when its stdin ends, or on SIGTERM or SIGINT.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use greenroom::http::AcpHttpServer;
use greenroom_testkit::http_agent;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    match serve(&address).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("greenroom-http-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(address: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let signalled = signalled()?;
    // Whoever reads this may connect, and may send a signal.
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let (end, ended) = oneshot::channel();
    // A blocking read has no end of its own, so it must not belong to the runtime.
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        end.send(())
    });
    let over = async {
        tokio::select! {
            _ = ended => {}
            () = signalled => {}
        }
    };
    AcpHttpServer::new(http_agent).serve_until(listener, over).await
}

/// Waits for a signal that asks the program to end; from now on none of them is lost.
#[cfg(unix)]
fn signalled() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn signalled() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
