//! The parts that make an actor survive: mailbox, lease, stage, restarts, credit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use greenroom_actors::runtime::{
    Child, Children, Credit, Death, Flow, Inbox, LiveCount, Mailbox, Node, Outcome, RestartPolicy, Seat, Slot, Stage,
    Status, death_of,
};
use parking_lot::Mutex;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{Semaphore, mpsc, oneshot};

type Handled = Arc<Mutex<Vec<u32>>>;

/// Notes every item, panics on the poisonous ones, ends on `END`.
struct Notes {
    handled: Handled,
    aside: Handled,
    poison: Vec<u32>,
    /// Ends with the item it notes, so that a kill at the await may leave it half done.
    half: Option<u32>,
    /// What it waits for in the middle of each item.
    gate: Arc<Semaphore>,
}

const END: u32 = u32::MAX;

impl Stage for Notes {
    type Item = u32;

    async fn run(&mut self, inbox: &mut Inbox<u32>) -> Flow {
        if let Some(item) = self.half.take() {
            self.handled.lock().push(item);
        }
        while let Some(item) = inbox.begin() {
            let item = *item;
            assert!(!self.poison.contains(&item), "expected by this test");
            drop(self.gate.acquire().await);
            inbox.commit();
            if item == END {
                return Flow::Finished;
            }
            self.half = Some(item);
            tokio::task::yield_now().await;
            if let Some(item) = self.half.take() {
                self.handled.lock().push(item);
            }
        }
        Flow::Idle
    }

    fn quarantine(&mut self, item: u32) {
        self.aside.lock().push(item);
    }
}

/// What the keeper is told.
#[derive(Debug)]
enum Told {
    /// Look which children have nothing to do, and say when to look again.
    Passivate(oneshot::Sender<Option<Duration>>),
    /// A child is called for.
    Wanted(usize),
}

#[cfg(feature = "cluster")]
impl ractor::Message for Told {}

/// Calls for a child.
struct Demand(ActorRef<Told>, usize);

impl Wake for Demand {
    fn wake(self: Arc<Self>) {
        self.0.cast(Told::Wanted(self.1)).expect("the keeper lives");
    }
}

/// Restarts its children at once and tells about everything else.
struct Keeper(mpsc::UnboundedSender<String>);

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Keeper {
    type Msg = Told;
    type State = Children;
    type Arguments = Children;

    async fn pre_start(&self, _me: ActorRef<Told>, children: Children) -> Result<Children, ActorProcessingErr> {
        Ok(children)
    }

    async fn post_start(&self, me: ActorRef<Told>, children: &mut Children) -> Result<(), ActorProcessingErr> {
        children.start_all(&me.get_cell()).await?;
        Ok(())
    }

    async fn handle(&self, me: ActorRef<Told>, told: Told, children: &mut Children) -> Result<(), ActorProcessingErr> {
        match told {
            Told::Passivate(answer) => {
                let demand = |child| Waker::from(Arc::new(Demand(me.clone(), child)));
                let again = children.passivate(Duration::from_secs(1), demand);
                let _ = answer.send(again);
            }
            Told::Wanted(child) => {
                self.0.send("wanted".to_owned())?;
                assert!(children.wanted(child, &me.get_cell()).await.is_none(), "it starts");
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<Told>,
        event: SupervisionEvent,
        children: &mut Children,
    ) -> Result<(), ActorProcessingErr> {
        let Some(death) = death_of(event).and_then(|actor| children.died(actor)) else { return Ok(()) };
        match death {
            Death::Restart(child, _) => {
                assert!(children.restart(child, &me.get_cell()).await.is_none(), "it starts");
            }
            Death::Ended(_, Outcome::Finished) => self.0.send("finished".to_owned())?,
            Death::Ended(_, Outcome::Failed(error)) => self.0.send(format!("failed: {error}"))?,
            Death::GaveUp(_) => self.0.send("gave up".to_owned())?,
        }
        Ok(())
    }
}

/// One stage below a keeper.
struct Kept {
    mailbox: Mailbox<u32>,
    node: Arc<Node>,
    live: LiveCount,
    handled: Handled,
    aside: Handled,
    gate: Arc<Semaphore>,
    told: mpsc::UnboundedReceiver<String>,
    keeper: ActorRef<Told>,
}

async fn keep(poison: Vec<u32>, policy: RestartPolicy) -> Kept {
    let (mailbox, live) = (Mailbox::new(), LiveCount::new());
    let (handled, aside) = (Handled::default(), Handled::default());
    let root = Node::root("test", "keeper");
    let node = root.child("notes", "notes");
    let gate = Arc::new(Semaphore::new(1));
    let stage = Notes { handled: handled.clone(), aside: aside.clone(), poison, half: None, gate: gate.clone() };
    let seat = Seat::new(stage, mailbox.clone(), node.clone(), live.clone());
    let (tell, told) = mpsc::unbounded_channel();
    let children = Children::new(vec![Child::stage(seat, policy).passivated()]);
    let (keeper, _) = Actor::spawn(None, Keeper(tell), children).await.expect("it starts");
    Kept { mailbox, node, live, handled, aside, gate, told, keeper }
}

fn patient() -> RestartPolicy {
    RestartPolicy { deaths: usize::MAX, window: Duration::from_secs(1) }
}

#[tokio::test]
async fn a_restarted_stage_goes_on_where_it_stopped() {
    let mut kept = keep(Vec::new(), patient()).await;
    for item in 0..2000 {
        kept.mailbox.send(item).expect("open");
        match item % 40 {
            10 => drop(kept.node.kill()),
            30 => drop(kept.node.stop()),
            _ => {}
        }
        if item % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    kept.mailbox.send_last(END);
    assert_eq!(kept.told.recv().await.as_deref(), Some("finished"));
    assert_eq!(*kept.handled.lock(), (0..2000).collect::<Vec<_>>(), "each once, in order");
    assert!(kept.node.restarts() > 10, "{}", kept.node.restarts());
    assert_eq!(kept.node.snapshot().status, Status::Finished);
    kept.live.none().await;
    kept.keeper.stop(None);
}

#[tokio::test]
async fn an_item_that_breaks_its_stage_twice_is_set_aside() {
    let mut kept = keep(vec![5, 6, 99], patient()).await;
    for item in 0..100 {
        kept.mailbox.send(item).expect("open");
    }
    kept.mailbox.send_last(END);
    assert_eq!(kept.told.recv().await.as_deref(), Some("finished"));
    assert_eq!(*kept.aside.lock(), [5, 6, 99]);
    let rest: Vec<u32> = (0..100).filter(|item| ![5, 6, 99].contains(item)).collect();
    assert_eq!(*kept.handled.lock(), rest);
    assert_eq!(kept.node.restarts(), 6, "two deaths for each");
    kept.keeper.stop(None);
}

#[tokio::test]
async fn an_item_in_the_middle_of_which_its_stage_is_killed_is_not_set_aside() {
    let mut kept = keep(Vec::new(), patient()).await;
    let closed = kept.gate.clone().acquire_owned().await.expect("open");
    kept.mailbox.send(1).expect("open");
    for deaths in 1..=5 {
        while kept.mailbox.depth() > 0 || !kept.node.kill() || kept.node.restarts() < deaths {
            tokio::task::yield_now().await;
        }
    }
    drop(closed);
    kept.mailbox.send_last(END);
    assert_eq!(kept.told.recv().await.as_deref(), Some("finished"));
    assert!(kept.aside.lock().is_empty());
    assert_eq!(*kept.handled.lock(), [1]);
    kept.keeper.stop(None);
}

#[tokio::test]
async fn a_stage_that_dies_too_often_is_given_up() {
    let policy = RestartPolicy { deaths: 3, window: Duration::from_secs(60) };
    let mut kept = keep((0..10).collect(), policy).await;
    for item in 0..10 {
        kept.mailbox.send(item).expect("open");
    }
    assert_eq!(kept.told.recv().await.as_deref(), Some("gave up"));
    assert_eq!(kept.node.restarts(), 3);
    kept.live.none().await;
    kept.keeper.stop(None);
}

#[tokio::test]
async fn the_end_of_the_supervisor_ends_the_stage() {
    let kept = keep(Vec::new(), patient()).await;
    kept.mailbox.send(1).expect("open");
    kept.keeper.kill();
    kept.live.none().await;
    // The mailbox is nobody's: what is sent now waits for a reader that may come.
    kept.mailbox.send(2).expect("open");
    assert!(kept.mailbox.depth() >= 1);
    assert_eq!(kept.node.snapshot().status, Status::Down);
}

impl Kept {
    /// Lets the keeper look once which children have nothing to do; says when to look again.
    async fn passivate(&self) -> Option<Duration> {
        let (answer, again) = oneshot::channel();
        self.keeper.cast(Told::Passivate(answer)).expect("the keeper lives");
        again.await.expect("the keeper answers")
    }

    async fn until_passive(&self) {
        while self.passivate().await.is_some() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_stage_that_has_nothing_to_do_holds_no_actor_until_there_is_something() {
    let mut kept = keep(Vec::new(), RestartPolicy { deaths: 0, window: Duration::from_secs(1) }).await;
    for item in 0..100 {
        kept.until_passive().await;
        assert_eq!((kept.live.now(), kept.node.snapshot().status), (0, Status::Passive));
        assert!(!kept.node.kill() && kept.node.cell().is_none(), "there is nothing to kill");
        kept.mailbox.send(item).expect("open");
        assert_eq!(kept.told.recv().await.as_deref(), Some("wanted"));
    }
    kept.mailbox.send_last(END);
    while kept.told.recv().await.expect("it ends") != "finished" {}
    assert_eq!(*kept.handled.lock(), (0..100).collect::<Vec<_>>());
    assert_eq!(kept.node.restarts(), 0, "nothing died");
    kept.live.none().await;
    kept.keeper.stop(None);
}

#[tokio::test]
async fn a_stage_in_the_middle_of_an_item_is_not_passivated() {
    let mut kept = keep(Vec::new(), patient()).await;
    let closed = kept.gate.clone().acquire_owned().await.expect("open");
    while kept.passivate().await != Some(Duration::from_secs(1)) {
        tokio::task::yield_now().await;
    }
    kept.mailbox.send(1).expect("open");
    while kept.mailbox.depth() > 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        assert_eq!(kept.passivate().await, Some(Duration::from_secs(20)), "looked at more rarely");
        tokio::task::yield_now().await;
    }
    assert_eq!((kept.live.now(), kept.node.snapshot().status), (1, Status::Up));
    drop(closed);
    kept.mailbox.send_last(END);
    assert_eq!(kept.told.recv().await.as_deref(), Some("finished"));
    assert_eq!(*kept.handled.lock(), [1]);
    kept.keeper.stop(None);
}

#[tokio::test]
async fn nothing_is_lost_between_passivation_kill_and_call() {
    let mut kept = keep(Vec::new(), patient()).await;
    for item in 0..3000 {
        kept.mailbox.send(item).expect("open");
        for _ in 0..item % 5 {
            kept.passivate().await;
        }
        if item % 11 == 0 {
            kept.node.kill();
        }
        if item % 3 == 0 {
            tokio::task::yield_now().await;
        }
    }
    kept.mailbox.send_last(END);
    let mut called = 0;
    while kept.told.recv().await.expect("it ends") != "finished" {
        called += 1;
    }
    assert_eq!(*kept.handled.lock(), (0..3000).collect::<Vec<_>>(), "each once, in order");
    assert!(called > 100, "called for {called} times");
    assert!(kept.node.restarts() > 10, "{}", kept.node.restarts());
    kept.live.none().await;
    kept.keeper.stop(None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_returned_is_given_up_after_a_second() {
    let slot = Slot::new(7);
    let first = slot.lease().await.expect("free");
    let before = tokio::time::Instant::now();
    slot.lease().await.expect_err("taken");
    assert_eq!(before.elapsed(), Duration::from_secs(1));
    drop(first);
    assert_eq!(*slot.lease().await.expect("free again"), 7);
}

#[test]
fn a_closed_mailbox_gives_back_what_it_held() {
    let mailbox = Mailbox::new();
    mailbox.send('a').expect("open");
    let sender = mailbox.clone();
    sender.send('b').expect("open");
    assert_eq!(mailbox.close(), VecDeque::from(['a', 'b']));
    assert_eq!(sender.send('c'), Err('c'));
    sender.send_last('d');
    assert_eq!(mailbox.depth(), 0);

    let mailbox = Mailbox::new();
    mailbox.send_last(1);
    assert_eq!(mailbox.send(2), Err(2), "nothing comes after the last item");
    assert_eq!(mailbox.depth(), 1);
}

#[tokio::test]
async fn credit_lets_one_frame_overshoot_and_wakes_at_half() {
    let credit = Credit::new(100);
    let large = credit.take(250);
    assert!(credit.is_full());
    let small = credit.take(40);
    let waiting = tokio::spawn({
        let credit = credit.clone();
        async move { credit.room().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "290 of 100 bytes are used");
    drop(large);
    waiting.await.expect("40 bytes are less than half");
    assert_eq!(credit.used(), 40);
    drop(small);
    credit.room().await;
}
