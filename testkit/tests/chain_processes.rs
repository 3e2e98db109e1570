//! Chains of programs: a proxy that closes on the wrong dialect, or does not get over it, is started
//! anew, and no process is left.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use greenroom::{AcpAgent, ConnectionOptions};
use greenroom_conductor::{CommandLineComponents, ConductorImpl, RunningChain};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// This process's children, dead or alive. Alone in this file, so that no other test has children
/// at the same time.
fn children() -> usize {
    let parent = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("a process table").flatten();
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    // "pid (name) state ppid …"
    let parents = stats.filter_map(|stat| stat.rsplit_once(") ")?.1.split(' ').nth(1).map(str::to_owned));
    parents.filter(|found| *found == parent).count()
}

/// Closes on the first line that it is ever sent; a second process answers the line with its
/// params, and with the process's own id.
const FASTIDIOUS: &str = r#"
read -r line
if test ! -e "$1"; then : > "$1"; exit 0; fi
case $line in *'"proxy/initialize"'*) ;; *) exit 3;; esac
id=${line#*'"id":'}
id=${id%%[,\}]*}
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' "$id"
while read -r line; do :; done
"#;

/// Closes on the first line, always.
const HOPELESS: &str = "read -r line; : > \"$1\"; exit 3";

/// Says about every line what it said about the first, like released conductors of the legacy
/// dialect that were asked with the modern name; here it is the other way round. Lists its starts.
const STUBBORN: &str = r#"
echo start >> "$1"
read -r line
case $line in
    *'"proxy/initialize"'*) reply='"result":{"protocolVersion":1}' ;;
    *) reply='"error":{"code":-32600,"message":"expected something else"}' ;;
esac
while :; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$reply"
    read -r line || exit 0
done
"#;

/// Refuses every name, and counts. Lists its lines.
const AVERSE: &str = r#"
n=0
while read -r line; do
    n=$((n + 1))
    echo line >> "$1"
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"no","data":%s}}\n' "$id" "$n"
done
"#;

async fn chain(script: &str, marker: &Path) -> (Local, RunningChain) {
    let proxy = AcpAgent::from_args(["sh", "-c", script, "proxy", &marker.display().to_string()]).expect("a command");
    let agent = AcpAgent::from_args([env!("CARGO_BIN_EXE_testy")]).expect("a command");
    let (mut peer, link) = pair(4096);
    let components = CommandLineComponents(vec![proxy, agent]);
    let chain = ConductorImpl::new_agent("programs", components).start(link).await.expect("a chain");
    let initialize = json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": { "protocolVersion": 1 } });
    peer.send(&initialize).await;
    (peer, chain)
}

async fn answer(peer: &mut Local) -> Value {
    timeout(Duration::from_secs(20), peer.receive()).await.expect("an answer")
}

async fn no_children() {
    let gone = async {
        while children() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(5), gone).await.expect("no process is left");
}

/// A file that is not there, and will not be there again.
struct Marker(PathBuf);

impl Marker {
    fn new(name: &str) -> Self {
        let file = format!("greenroom-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(file))
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// One test, so that children are those of one chain.
#[tokio::test]
async fn programs_of_a_chain() {
    a_proxy_that_closes_on_the_wrong_dialect_is_started_anew().await;
    a_proxy_that_closes_on_both_ends_the_chain().await;
    a_proxy_that_sticks_to_its_first_error_is_started_anew().await;
    a_proxy_that_refuses_both_names_twice_is_believed().await;
    the_last_words_of_a_program_wait_for_a_slow_client().await;
    a_chain_that_is_killed_leaves_no_process().await;
    a_chain_that_is_dropped_while_it_starts_leaves_no_process().await;
}

async fn a_proxy_that_closes_on_the_wrong_dialect_is_started_anew() {
    let marker = Marker::new("fastidious");
    let (mut peer, chain) = chain(FASTIDIOUS, &marker.0).await;
    let expected = json!({ "jsonrpc": "2.0", "id": "i", "result": { "protocolVersion": 1 } });
    assert_eq!(answer(&mut peer).await, expected);
    assert!(marker.0.exists(), "the first process read a line and closed");
    peer.close().await;
    peer.expect_end().await;
    timeout(Duration::from_secs(20), chain.closed()).await.expect("an end").expect("a clean end");
    assert_eq!(children(), 0);
}

async fn a_proxy_that_closes_on_both_ends_the_chain() {
    let marker = Marker::new("hopeless");
    let (mut peer, chain) = chain(HOPELESS, &marker.0).await;
    let refusal = answer(&mut peer).await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("i"), &json!(-32603)), "{refusal}");
    peer.expect_end().await;
    let error = timeout(Duration::from_secs(20), chain.closed()).await.expect("an end").expect_err("no clean end");
    assert!(error.to_string().contains("exit status: 3"), "{error}");
    assert_eq!(children(), 0);
}

async fn a_proxy_that_sticks_to_its_first_error_is_started_anew() {
    let marker = Marker::new("stubborn");
    let (mut peer, chain) = chain(STUBBORN, &marker.0).await;
    let expected = json!({ "jsonrpc": "2.0", "id": "i", "result": { "protocolVersion": 1 } });
    assert_eq!(answer(&mut peer).await, expected);
    assert_eq!(std::fs::read_to_string(&marker.0).expect("its starts"), "start\nstart\n");
    // The second one is asked from now on, and the first one is ended: it and the agent are left.
    peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "_ask" })).await;
    assert_eq!(answer(&mut peer).await["result"], json!({ "protocolVersion": 1 }));
    let alone = async {
        while children() > 2 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), alone).await.expect("the first process is ended");
    peer.close().await;
    peer.expect_end().await;
    timeout(Duration::from_secs(20), chain.closed()).await.expect("an end").expect("a clean end");
    assert_eq!(children(), 0);
}

async fn a_proxy_that_refuses_both_names_twice_is_believed() {
    let marker = Marker::new("averse");
    let (mut peer, chain) = chain(AVERSE, &marker.0).await;
    let refusal = answer(&mut peer).await;
    assert_eq!(refusal["error"], json!({ "code": -32600, "message": "no", "data": 1 }), "by the second process");
    assert_eq!(std::fs::read_to_string(&marker.0).expect("its lines"), "line\n".repeat(3));
    // It is no reason to end the chain: another try is allowed.
    peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": { "protocolVersion": 1 } })).await;
    assert_eq!(answer(&mut peer).await["id"], 2);
    peer.close().await;
    peer.expect_end().await;
    timeout(Duration::from_secs(20), chain.closed()).await.expect("an end").expect("a clean end");
    assert_eq!(children(), 0);
}

/// Answers initialize, then says a lot, and is gone.
const PARTING: &str = r#"
read -r line
printf '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}\n'
read -r line
n=0
while [ $n -lt 40 ]; do
    printf '{"jsonrpc":"2.0","method":"_said","params":[%s,"%01000d"]}\n' "$n" 0
    n=$((n + 1))
done
printf '{"jsonrpc":"2.0","id":2,"result":"all of it"}\n'
"#;

/// The pipe takes it all at once, the chain only little by little: an end of the process is no end of
/// what it said.
async fn the_last_words_of_a_program_wait_for_a_slow_client() {
    let agent = AcpAgent::from_args(["sh", "-c", PARTING]).expect("a command");
    let (mut peer, link) = pair(1024);
    let mut options = ConnectionOptions::default();
    options.incoming_credit = 8 * 1024;
    let conductor = ConductorImpl::new_agent("parting", CommandLineComponents(vec![agent])).options(options);
    let chain = conductor.start(link).await.expect("a chain");
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } })).await;
    assert_eq!(answer(&mut peer).await["id"], 1);
    peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "_ask" })).await;
    no_children().await;
    // Longer than a connection waits for a far side that says nothing.
    sleep(Duration::from_millis(700)).await;
    for n in 0..40 {
        assert_eq!(answer(&mut peer).await["params"][0], n);
    }
    assert_eq!(answer(&mut peer).await["result"], "all of it");
    peer.expect_end().await;
    timeout(Duration::from_secs(20), chain.closed()).await.expect("an end").expect_err("the agent left");
    assert_eq!(children(), 0);
}

async fn a_chain_that_is_killed_leaves_no_process() {
    let marker = Marker::new("killed");
    std::fs::write(&marker.0, "").expect("a writable directory");
    let (mut peer, chain) = chain(FASTIDIOUS, &marker.0).await;
    // Closed on the legacy name, restarted, answered on the modern one.
    answer(&mut peer).await;
    assert_eq!(children(), 2);
    assert!(chain.tree().kill());
    timeout(Duration::from_secs(20), chain.closed()).await.expect("an end").expect_err("no clean end");
    no_children().await;
}

async fn a_chain_that_is_dropped_while_it_starts_leaves_no_process() {
    for turns in 0..40 {
        let marker = Marker::new("dropped");
        let (_peer, chain) = chain(FASTIDIOUS, &marker.0).await;
        // Cut off at a different point each time.
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        drop(chain);
    }
    no_children().await;
}
