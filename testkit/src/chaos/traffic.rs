//! What the two sides of a soak do: everything at once, under attack.

use std::sync::Arc;
use std::time::Duration;

use greenroom::runtime::Node;
use greenroom::{Error, Result};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::ending::Reader;
use super::lanes::drive as drive_lane;
use super::monkey::Monkey;
use super::random::Random;
use super::report::Report;
use super::sessions::{Doomed, converse};
use super::soak::{Soak, Stage};
use super::workload::produce;

/// Everybody who must not fail when one session does.
const OTHERS: [&str; 8] = ["reader", "writer", "incoming", "dispatch", "outgoing", "pending", "tasks", "sessions"];

/// Sessions of a run, beside the other traffic.
const SESSIONS: u64 = 3;

/// Streams of a run whose handlers come and go.
const LANES: u64 = 2;

/// What is said in sessions. Each may leave a reader behind.
type Conversations = JoinSet<Result<Option<Reader>>>;

impl Soak {
    /// Both sides send everything, under attack.
    pub(super) async fn traffic(
        &self,
        stage: &Stage,
        trees: &[Arc<Node>],
        random: &mut Random,
        report: &mut Report,
    ) -> Result<Vec<Reader>, Vec<String>> {
        let mut monkey = Monkey::new(random.number()).pace(3 + random.below(30));
        if !self.durable {
            monkey = monkey.losing_mailboxes();
        }
        if let Some(targets) = &self.targets {
            monkey = monkey.targets(targets.clone());
        } else if stage.dooms {
            monkey = monkey.targets(OTHERS);
        }
        let attack = monkey.attack(trees.to_vec());
        // A quarter of all messages belongs to sessions, a sixteenth to lanes.
        let (mut doomed, mut conversations) = match self.sessions(stage, random).await {
            Ok(started) => started,
            Err(error) => return Err(vec![format!("the sessions did not open: {error:?}")]),
        };
        let streams = (self.messages / 16) as u64 / LANES;
        let mut lanes = JoinSet::new();
        if stage.parks() {
            for _ in 0..LANES {
                lanes.spawn(drive_lane(stage.driven.clone(), stage.agent.lanes.clone(), streams, random.number()));
            }
        }
        let plain = self.messages - self.messages / 4 - self.messages / 16;
        let half = plain / 2;
        let (done, linked_done) = oneshot::channel();
        // As a task of the connection on one side, as a free task on the other.
        let (cx, ledger, seed) = (stage.linked.connection().clone(), stage.client.ledger.clone(), random.number());
        let spawned = stage.linked.connection().spawn(async move {
            produce(cx, ledger, half, seed).await?;
            let _ = done.send(());
            Ok(())
        });
        let ours = produce(stage.driven.clone(), stage.agent.ledger.clone(), plain - half, random.number());
        let both = async {
            spawned?;
            let (ours, theirs) = tokio::join!(ours, linked_done);
            ours?;
            theirs.map_err(Error::into_internal_error)?;
            while let Some(ended) = lanes.join_next().await {
                ended.map_err(Error::into_internal_error)??;
            }
            let mut sessions = Vec::new();
            while let Some(ended) = conversations.join_next().await {
                sessions.extend(ended.map_err(Error::into_internal_error)??);
            }
            // Notifications are not answered: the last ones may still be under way.
            while !stage.is_settled() {
                sleep(Duration::from_millis(1)).await;
            }
            while let Some(ended) = doomed.join_next().await {
                report.add(&ended.map_err(Error::into_internal_error)?);
            }
            Ok::<_, Error>(sessions)
        };
        let outcome = timeout(self.patience, both).await;
        report.add(&attack.stop().await);
        let (mut sessions, mut faults) = (Vec::new(), Vec::new());
        match outcome {
            Ok(Ok(open)) => sessions = open,
            Ok(Err(error)) => faults.push(format!("sending failed: {error:?}")),
            Err(_) => faults.extend(trees.iter().map(|tree| format!("hung:\n{}", tree.snapshot()))),
        }
        for books in stage.books() {
            faults.extend(books.check());
            report.messages += books.sent();
            report.interrupted += books.interrupted();
        }
        for node in trees.iter().flat_map(Node::flatten) {
            report.restarted(node.kind(), u64::from(node.restarts()));
        }
        if faults.is_empty() { Ok(sessions) } else { Err(faults) }
    }

    /// Starts what is said in sessions: one that has to fail, if one has to, and the others.
    async fn sessions(&self, stage: &Stage, random: &mut Random) -> Result<(JoinSet<Report>, Conversations)> {
        let messages = (self.messages / 4) as u64;
        let (mut doomed, mut conversations) = (JoinSet::new(), JoinSet::new());
        #[cfg(feature = "unstable_protocol_v2")]
        if let Some((second, connection)) = &stage.second {
            second.greet(connection).await?;
            if stage.dooms {
                doomed = second.doom(connection, random.number()).await?;
            }
            second.converse(connection, messages, random, &mut conversations)?;
            return Ok((doomed, conversations));
        }
        if stage.dooms {
            let session = Doomed::open(&stage.driven, &stage.agent.sessions, random.number()).await?;
            doomed.spawn(session.fail(random.number()));
        }
        for _ in 0..SESSIONS {
            let sessions = stage.agent.sessions.clone();
            conversations.spawn(converse(stage.driven.clone(), sessions, messages / SESSIONS, random.number()));
        }
        Ok((doomed, conversations))
    }
}

impl Stage {
    /// Whether a connection keeps what nobody takes. Those of version 2 do not.
    fn parks(&self) -> bool {
        #[cfg(feature = "unstable_protocol_v2")]
        return self.second.is_none();
        #[cfg(not(feature = "unstable_protocol_v2"))]
        true
    }

    /// Whether everything has arrived, and is answered.
    fn is_settled(&self) -> bool {
        #[cfg(feature = "unstable_protocol_v2")]
        if self.second.as_ref().is_some_and(|(second, _)| !second.is_settled()) {
            return false;
        }
        self.books().iter().all(|books| books.is_complete())
    }
}
