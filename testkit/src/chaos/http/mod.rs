//! One run over real sockets: a server and its clients, under attack from all sides.
//!
//! Four connections to one server talk at the same time, while a monkey breaks the actors of the
//! server, of the agents and of the clients. Two connections go through all of it: one over a
//! WebSocket, one over SSE whose streams are cut again and again, and resumed. Two are ended in the
//! middle: by their socket, or by the supervisor of one end. Whoever survives loses nothing and gets
//! nothing twice; whoever is ended takes nobody along, and leaves no call without an outcome, no gap
//! before what came, no actor, no task and no descriptor.

mod desk;
mod ending;
mod forwarder;
mod pair;
mod sockets;
mod stage;

use std::time::Duration;

use greenroom::http::RunningServer;
use greenroom::runtime::Node;
use greenroom::{Error, Result};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::ending::{Death, Ending, SOON, die};
use self::pair::Pair;
use self::sockets::sockets_left;
use self::stage::Stage;
use super::monkey::{Attack, Monkey};
use super::random::Random;
use super::report::Report;
use super::soak::{Fault, nothing_left};

/// Times that a stream is cut in one run, at most; each takes at least a tenth of a second to go on.
const CUTS: u64 = 10;

/// One run.
#[derive(Clone, Debug)]
pub struct HttpSoak {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// Messages that are sent, over all connections and both directions.
    pub messages: usize,
    /// How long all of them may take.
    pub patience: Duration,
    /// False to lose the mailbox of every actor that is attacked. Then the run must fail.
    pub durable: bool,
}

impl HttpSoak {
    /// A run with this seed, under the usual conditions.
    #[must_use]
    pub fn new(seed: u64, messages: usize) -> Self {
        Self { seed, messages, patience: Duration::from_secs(60), durable: true }
    }

    /// Does the run. Nothing else may run in the runtime: every task that is left is a fault.
    ///
    /// # Errors
    /// Everything that was lost, repeated, out of order, late, unanswered or left over.
    pub async fn run(&self) -> Result<Report, Fault> {
        let fail = |faults| Err(Fault::new(self.seed, faults));
        let before = Handle::current().metrics().num_alive_tasks();
        let mut random = Random::new(self.seed);
        let mut report = Report::default();
        report.runs = 1;
        let tree = Node::root("http-soak", "soak");
        let mut monkey = Monkey::new(random.number()).pace(1 + random.below(8)).evenly();
        if !self.durable {
            monkey = monkey.losing_mailboxes();
        }
        let attack = monkey.attack(vec![tree.clone()]);
        let stage = match timeout(self.patience, Stage::set(&tree, &mut random)).await {
            Ok(Ok(stage)) => stage,
            Ok(Err(error)) => return fail(vec![format!("the connections did not open: {error:?}")]),
            Err(_) => return fail(vec![format!("the connections do not open:\n{}", tree.snapshot())]),
        };
        let ports = stage.ports();
        let (stage, mut faults) = self.traffic(stage, attack, &mut random, &mut report).await;
        if faults.is_empty() {
            faults = stage.end(Ending::of(self.seed), &mut report).await;
        } else {
            drop(stage);
        }
        faults.extend(nothing_left(&[tree], before).await);
        faults.extend(sockets_left(&ports).await);
        if faults.is_empty() { Ok(report) } else { fail(faults) }
    }

    /// Everybody talks, the monkey rages, sockets are cut, and two connections die.
    async fn traffic(
        &self,
        mut stage: Stage,
        attack: Attack,
        random: &mut Random,
        report: &mut Report,
    ) -> (Stage, Vec<String>) {
        let each = self.messages / (stage.survivors.len() + stage.victims.len());
        let mut talking: Vec<_> = stage.survivors.iter().map(|pair| pair.talk(each, random)).collect();
        talking.extend(stage.victims.iter().map(|(pair, _)| pair.talk(each, random)));
        let victims = std::mem::take(&mut stage.victims);
        let mut faults = Vec::new();
        let mut doomed = JoinSet::new();
        let mut books: Vec<_> = Vec::new();
        for ((pair, front), turn) in victims.into_iter().zip(self.seed..) {
            let death = Death::of(turn);
            report.ended(format!("{death:?} ({})", pair.name));
            books.extend(pair.lanes().cloned());
            let goodbye = random.once_in(2);
            doomed.spawn(die(pair, front, (death, goodbye), Duration::from_micros(random.below(40_000))));
        }
        let survivors: Vec<_> = stage.survivors.iter().flat_map(Pair::lanes).cloned().collect();
        let is_over = async {
            for talk in &mut talking {
                while let Some(ended) = talk.join_next().await {
                    ended.map_err(Error::into_internal_error)??;
                }
            }
            // Notifications are not answered: the last ones may still be under way.
            while !survivors.iter().all(|lane| lane.ledger.is_complete()) {
                sleep(Duration::from_millis(1)).await;
            }
            Ok::<_, Error>(())
        };
        let cutting = async {
            for _ in 0..random.below(CUTS) {
                sleep(Duration::from_micros(random.below(60_000))).await;
                report.cuts += u64::from(stage.front.cut_stream(random));
            }
            // Always again would leave no time to go on.
            std::future::pending::<()>().await;
        };
        let outcome = timeout(self.patience, async {
            tokio::select! {
                outcome = is_over => outcome,
                () = cutting => Ok(()),
            }
        });
        match outcome.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => faults.push(format!("sending failed: {error:?}")),
            Err(_) => faults.push(format!("hung:\n{}", stage.tree.snapshot())),
        }
        while let Some(fault) = doomed.join_next().await {
            faults.extend(fault.unwrap_or_else(|broken| Some(format!("an ending broke: {broken}"))));
        }
        report.add(&attack.stop().await);
        faults.extend(survivors.iter().flat_map(|lane| lane.ledger.check()));
        faults.extend(books.iter().flat_map(|lane| lane.ledger.check_ended()));
        for lane in survivors.iter().chain(&books) {
            report.messages += lane.ledger.sent();
            report.interrupted += lane.ledger.interrupted();
        }
        faults.extend(stage.desk.strays());
        for node in stage.tree.flatten() {
            report.restarted(node.kind(), u64::from(node.restarts()));
        }
        if faults.is_empty() && timeout(SOON, only(&stage.server, stage.survivors.len())).await.is_err() {
            faults.push(format!("the server keeps a dead connection:\n{}", stage.server.snapshot()));
        }
        (stage, faults)
    }
}

/// Waits until the server has no more than so many connections.
async fn only(server: &RunningServer, connections: usize) {
    while server.connections() > connections {
        sleep(Duration::from_millis(1)).await;
    }
}
