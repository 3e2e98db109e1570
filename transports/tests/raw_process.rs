//! A started agent process without a connection.
#![cfg(unix)]

mod vanish;

use std::error::Error as _;

use futures_util::{AsyncReadExt as _, AsyncWriteExt as _};
use greenroom_transports::AcpAgent;
use vanish::{is_in_table, until_gone};

fn bash(script: &str) -> AcpAgent {
    AcpAgent::from_args(["GREETING=hello", "bash", "-c", script]).unwrap()
}

#[tokio::test]
async fn its_pipes_and_its_end_are_the_callers() {
    let (mut stdin, mut stdout, mut stderr, mut child) =
        bash("cat; echo $GREETING; echo words >&2; exit 3").spawn_process().unwrap();
    assert!(child.try_status().unwrap().is_none());
    stdin.write_all(b"line\n").await.unwrap();
    stdin.close().await.unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    stdout.read_to_string(&mut out).await.unwrap();
    stderr.read_to_string(&mut err).await.unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("line\nhello\n", "words\n"));
    let status = child.status().await.unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(child.try_status().unwrap(), Some(status));
    assert_eq!(child.status().await.unwrap(), status);
    child.kill().unwrap_err();
}

#[tokio::test]
async fn killing_or_dropping_it_ends_it() {
    let (_stdin, _stdout, _stderr, mut child) = bash("sleep 1000").spawn_process().unwrap();
    child.kill().unwrap();
    assert!(!child.status().await.unwrap().success());
    let (_stdin, _stdout, _stderr, child) = bash("sleep 1000").spawn_process().unwrap();
    let id = child.id();
    assert!(is_in_table(id));
    drop(child);
    until_gone(id).await;
}

#[tokio::test]
async fn a_missing_program_is_an_error_that_names_it() {
    let error = AcpAgent::from_args(["/no/such/agent"]).unwrap().spawn_process().unwrap_err();
    assert!(error.message.contains("there is no such file"), "{error}");
    assert!(error.source().unwrap().to_string().contains("/no/such/agent"));
}
