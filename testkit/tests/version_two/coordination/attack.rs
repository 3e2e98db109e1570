//! Loads come and go while every actor of the client dies again and again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom::coordination::SharedSessions;
use greenroom::runtime::RestartPolicy;
use greenroom::schema::v2;
use greenroom::{
    Agent, Client, ConnectionOptions, Error, Responder, Result, UntypedMessage, V2ConnectionTo,
    on_receive_notification, on_receive_request,
};
use greenroom_testkit::chaos::{FaultKind, Flavour, Monkey, Random, Report};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::super::support::{hello, initialized};
use super::{says, text};

const SESSIONS: u64 = 3;

/// Updates of each session that the agent replays.
const HISTORY: u64 = 10;

/// What the agent knows of a session: how often it was resumed, and whether it is open.
type Known = Arc<Mutex<HashMap<String, (u64, bool)>>>;

/// Serves sessions: replays a history with the number of the resume, then says a little more.
async fn serve(
    known: &Known,
    request: UntypedMessage,
    responder: Responder<Value>,
    cx: V2ConnectionTo<Client>,
) -> Result<()> {
    let session = request.params["sessionId"].as_str().unwrap_or_default().to_owned();
    let say = |line: String| {
        let note = says(&session, &line);
        cx.send_notification(UntypedMessage::new("session/update", note["params"].clone())?)
    };
    match request.method.as_str() {
        "initialize" => responder.respond(initialized()),
        "session/resume" => {
            let round = {
                let mut known = known.lock();
                let (round, open) = known.entry(session.clone()).or_default();
                if std::mem::replace(open, true) {
                    return responder.respond_with_error(Error::internal_error().data("it is open already"));
                }
                *round += 1;
                *round
            };
            (0..HISTORY).try_for_each(|line| say(format!("{round}.{line}")))?;
            responder.respond(json!({ "_meta": { "round": round } }))?;
            (HISTORY..2 * HISTORY).try_for_each(|line| say(format!("{round}.{line}")))
        }
        "session/close" => {
            let was_open = known.lock().get_mut(&session).is_some_and(|(_, open)| std::mem::replace(open, false));
            if !was_open {
                return responder.respond_with_error(Error::internal_error().data("it is not open"));
            }
            responder.respond(json!({}))
        }
        _ => responder.respond_with_error(Error::method_not_found()),
    }
}

/// One part of the program: loads sessions, reads some of what they say, drops them at any moment.
async fn view(sessions: SharedSessions, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    for _ in 0..25 {
        let id = format!("s{}", random.below(SESSIONS));
        let mut load = sessions.load(id.as_str());
        if random.once_in(3) {
            for _ in 0..random.below(10) {
                yield_now().await;
            }
            // Its session may be there already.
            drop(load);
            continue;
        }
        let mut session = (&mut load).await.map_err(|error| format!("{id}: {error:?}"))?;
        let round = session.response().meta.as_ref().map_or(0, |meta| meta["round"].as_u64().unwrap_or(0));
        for line in 0..HISTORY + random.below(HISTORY + 1) {
            let update = session.next_update().await.map_err(|error| format!("{id}: {error:?}"))?;
            let (read, expected) = (text(update), format!("{round}.{line}"));
            if read != expected {
                return Err(format!("{id}: {read} instead of {expected}"));
            }
        }
    }
    Ok(())
}

async fn run(seed: u64) -> Report {
    let mut options = ConnectionOptions::default();
    options.restart = RestartPolicy { deaths: usize::MAX, window: Duration::from_micros(1) };
    options.session_restart = options.restart;
    let known = Known::default();
    let at_agent = known.clone();
    let agent = Agent.v2().on_receive_request(
        async move |request: UntypedMessage, responder: Responder<Value>, cx: V2ConnectionTo<Client>| {
            serve(&at_agent, request, responder, cx).await
        },
        on_receive_request!(),
    );
    let (seen, watched) = (Arc::new(Mutex::new(0_u64)), Arc::new(Mutex::new(Report::default())));
    let counting = seen.clone();
    let report = watched.clone();
    // One that looks and passes on: coordinated updates come behind it.
    let client = Client.v2().options(options).on_receive_notification(
        async move |update: v2::UpdateSessionNotification, cx: V2ConnectionTo<Agent>| {
            *counting.lock() += 1;
            Ok(greenroom::Handled::No { message: (update, cx), retry: false })
        },
        on_receive_notification!(),
    );
    let work = client.connect_with(agent, async move |cx: V2ConnectionTo<Agent>| {
        cx.send_request(hello()).block_task().await?;
        let sessions = cx.coordinate_sessions("/work")?;
        let attack = Monkey::new(seed).pace(8).attack(vec![cx.tree()]);
        let mut views = JoinSet::new();
        for number in 0..4 {
            views.spawn(view(sessions.clone(), seed * 10 + number));
        }
        while let Some(ended) = views.join_next().await {
            ended.map_err(Error::into_internal_error)?.map_err(|fault| Error::internal_error().data(fault))?;
        }
        let mut done = attack.stop().await;
        for node in cx.tree().flatten() {
            done.restarted(node.kind(), u64::from(node.restarts()));
        }
        report.lock().add(&done);
        // Every session that was resumed is closed in the end.
        let until = async {
            while known.lock().values().any(|(_, open)| *open) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(10), until)
            .await
            .map_err(|_| Error::internal_error().data("a session stays open"))?;
        drop(sessions);
        Ok(())
    });
    timeout(Duration::from_secs(60), work).await.expect("nothing hangs").expect("nothing is lost");
    assert!(*seen.lock() > 0);
    watched.lock().clone()
}

#[test]
fn kills_in_the_middle_lose_nothing() {
    let mut report = Report::default();
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        for seed in 1..=6 {
            eprintln!("{flavour}, seed {seed}");
            report.add(&flavour.runtime().block_on(run(seed)));
        }
    }
    eprintln!("{report}");
    for actor in ["coordination", "sessions", "dispatch"] {
        assert!(FaultKind::ALL.iter().any(|fault| report.attacks(actor, *fault) > 0), "{actor} was spared");
    }
    assert!(report.restarts("coordination") > 0, "it was never started again");
}
