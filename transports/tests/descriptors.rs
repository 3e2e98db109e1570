//! Nothing is left open. Alone in its program: other tests would open descriptors meanwhile.
#![cfg(target_os = "linux")]

use std::time::Duration;

use greenroom_transports::{AcpAgent, AgentProcess, Ladder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn cycle(abrupt: bool) {
    let late = Duration::from_secs(30);
    let ladder = Ladder { eof_grace: late, term_grace: late, kill_grace: late };
    let process = AcpAgent::from_args(["cat"]).unwrap().with_ladder(ladder).start().unwrap();
    let AgentProcess { mut stdin, mut stdout, mut driver, id, .. } = process;
    stdin.write_all(b"x").await.unwrap();
    stdout.read_exact(&mut [0]).await.unwrap();
    if abrupt {
        drop(driver);
        // Its end of the pipe closes when it is dead.
        stdout.read_to_end(&mut Vec::new()).await.unwrap();
        return;
    }
    driver.request_finish();
    drop((stdin, stdout));
    driver.await.unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
}

#[tokio::test]
async fn fifty_processes_leave_no_descriptor() {
    // The first one opens what the runtime keeps for signals.
    cycle(false).await;
    let before = open_descriptors();
    for round in 0..50 {
        cycle(round % 5 == 0).await;
    }
    assert_eq!(open_descriptors(), before);
}
