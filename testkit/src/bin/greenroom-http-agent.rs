//! Serves the agent of the HTTP tests. Arguments: an address (default `127.0.0.1:0`). Prints the
//! address that it listens on, and drains when its stdin ends.

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
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let (end, ended) = oneshot::channel();
    // A blocking read has no end of its own, so it must not belong to the runtime.
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        end.send(())
    });
    AcpHttpServer::new(http_agent).serve_until(listener, async { drop(ended.await) }).await
}
