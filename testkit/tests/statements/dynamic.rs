//! Statement 84: handlers that are added to a running connection.

use greenroom::{Agent, Client, ConnectionTo, Dispatch, HandleDispatchFrom, Handled, Result};
use greenroom_testkit::scripted::pair;

use crate::support::*;

/// Takes every notification and says so.
struct Takes(&'static str, Log);

impl HandleDispatchFrom<Agent> for Takes {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _cx: ConnectionTo<Agent>) -> Result<Handled<Dispatch>> {
        self.1.say(format!("{} {}", self.0, message.method()));
        Ok(Handled::Yes)
    }
}

#[tokio::test(start_paused = true)]
async fn statement_84_a_dynamic_handler_lives_as_long_as_its_guard_or_the_connection() {
    let (log, mut said) = log();
    let (mut peer, link) = pair(ROOM);
    let run = Client.builder().connect_with(link, async |cx: ConnectionTo<Agent>| {
        peer.send(&note("_before")).await;
        settled().await;
        // From the next message on, whatever is already on its way.
        let guard = cx.add_dynamic_handler(Takes("guarded", log.clone()))?;
        peer.send(&note("_one")).await;
        said.expect("guarded _one").await;
        drop(guard);
        peer.send(&note("_two")).await;
        settled().await;
        cx.add_dynamic_handler(Takes("detached", log.clone()))?.detach();
        peer.send(&note("_three")).await;
        said.expect("detached _three").await;

        // Adding and removing are in order with each other and with what is dispatched: what was
        // done before a message is dispatched counts for it, and nothing else does.
        for _ in 0..50 {
            let kept = cx.add_dynamic_handler(Takes("behind", log.clone()))?;
            drop(cx.add_dynamic_handler(Takes("gone", log.clone()))?);
            peer.send(&note("_four")).await;
            said.expect("detached _four").await;
            drop(kept);
        }
        assert_eq!(said.so_far(), Vec::<String>::new());
        Ok((cx, log))
    });
    let (escaped, log) = soon(run).await.expect("the script");
    escaped.add_dynamic_handler(Takes("late", log)).expect_err("the connection is over");
}
