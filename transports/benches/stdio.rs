//! Round trip of a line through a child process that echoes it: `Stdio` against tokio's own stdin
//! and stdout, which move every read and write to a blocking thread.
//!
//! The program starts itself as the child. Run it with
//! `cargo bench -p greenroom-transports --features stdio,process --bench stdio`.

use std::error::Error;
use std::time::{Duration, Instant};

use greenroom_transports::{AcpAgent, AcpAgentConfig, AgentProcess, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Set in the environment of the child; its value is the way it echoes.
const CHILD: &str = "GREENROOM_BENCH_CHILD";
const ROUNDS: u32 = 20_000;

fn main() -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match std::env::var(CHILD).as_deref() {
        Ok("stdio") => runtime.block_on(async {
            let (reader, writer) = Stdio::new().into_ends()?;
            echo(reader, writer).await
        }),
        Ok(_) => runtime.block_on(echo(tokio::io::stdin(), tokio::io::stdout())),
        Err(_) => runtime.block_on(compare()),
    }
}

async fn echo(mut reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) -> Outcome {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut buffer).await? {
            0 => return Ok(()),
            length => writer.write_all(&buffer[..length]).await?,
        }
        writer.flush().await?;
    }
}

async fn compare() -> Outcome {
    for length in [100, 4096, 1024 * 1024] {
        for child in ["stdio", "tokio"] {
            let mut best = Duration::MAX;
            for _ in 0..3 {
                best = best.min(round_trip(child, length).await?);
            }
            eprintln!("{length:>8} bytes  {child:<6} {:>9.2} us", best.as_secs_f64() * 1e6);
        }
    }
    Ok(())
}

async fn round_trip(child: &str, length: usize) -> Outcome<Duration> {
    let process = AcpAgent::new(AcpAgentConfig::new(std::env::current_exe()?).env(CHILD, child)).start()?;
    let AgentProcess { mut stdin, mut stdout, mut driver, .. } = process;
    let rounds = (ROUNDS / u32::try_from(length / 1000)?.max(1)).max(100);
    let line = vec![b'x'; length];
    let mut back = vec![0; length];
    let started = Instant::now();
    for _ in 0..rounds {
        let (sent, received) = tokio::join!(stdin.write_all(&line), stdout.read_exact(&mut back));
        sent?;
        received?;
    }
    let time = started.elapsed() / rounds;
    driver.request_finish();
    drop((stdin, stdout));
    driver.await?;
    Ok(time)
}
