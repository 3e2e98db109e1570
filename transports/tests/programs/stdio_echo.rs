//! Sends every byte of stdin back to stdout through `Stdio`. The tests start it.
//!
//! - `--once`: ends after the first piece, with stdin still open.
//! - `--again`: tries a second `Stdio` while the first is open and a third after it, and reports
//!   both on stderr.

use std::error::Error;

use greenroom_transports::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn main() -> Result<(), Box<dyn Error>> {
    let modes: Vec<_> = std::env::args().skip(1).collect();
    let chosen = |mode: &str| modes.iter().any(|given| given == mode);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(echo(chosen("--once"), chosen("--again")))
}

async fn echo(once: bool, again: bool) -> Result<(), Box<dyn Error>> {
    let (mut reader, mut writer) = Stdio::new().into_ends()?;
    if again {
        let refused = Stdio::new().into_ends().err().map(|error| error.to_string());
        eprintln!("{}", refused.unwrap_or_else(|| "a second one was opened".into()));
    }
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            break;
        }
        writer.write_all(&buffer[..length]).await?;
        writer.flush().await?;
        if once {
            break;
        }
    }
    writer.shutdown().await?;
    drop((reader, writer));
    if again {
        eprintln!("{}", Stdio::new().into_ends().map_or_else(|error| error.to_string(), |_| "opened again".into()));
    }
    Ok(())
}
