//! The stage without a runtime around it: what goes first, and what is shown when.

use std::sync::Weak;

use greenroom_protocol::schema::v2::{ContentBlock, ContentChunk, TextContent};
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::role::acp::Agent;

type Answer = oneshot::Receiver<Result<Delivered>>;

fn coordination(cap: usize) -> Coordination<Agent> {
    Coordination {
        connection: Weak::new(),
        counterpart: Agent,
        number: 1,
        cwd: "/".into(),
        cap,
        events: Mailbox::new(),
        commands: Mailbox::new(),
        wanted: Wanted::default(),
        end: End::new(),
        observer: None,
        state: State::default(),
    }
}

fn id() -> SessionId {
    SessionId::new("s")
}

fn update(text: &str) -> SessionUpdate {
    let content = ContentBlock::Text(TextContent::new(text));
    SessionUpdate::AgentMessageChunk(ContentChunk::new(content, "m"))
}

fn said(text: &str) -> Event {
    Event::Update(id(), Box::new(update(text)), text.len())
}

fn resumed(operation: Operation) -> Event {
    Event::Resumed(id(), operation, Ok(ResumeSessionResponse::new()))
}

impl Coordination<Agent> {
    /// Queues a load, as its owner does.
    fn wants(&self, load: Load) -> Answer {
        let (give, answer) = oneshot::channel();
        assert!(self.commands.send(Command::Load(id(), load, give)).is_ok());
        answer
    }

    fn drops(&self, load: Load) {
        assert!(self.commands.send(Command::Release(id(), load)).is_ok());
    }

    async fn sees(&mut self, events: impl IntoIterator<Item = Event>) -> Flow {
        self.run(&mut Inbox::of(events)).await
    }
}

fn log(answer: &mut Answer) -> SessionLog {
    answer.try_recv().expect("an answer").expect("a session").log
}

#[tokio::test]
async fn a_release_that_is_queued_already_goes_before_an_answer() {
    let mut it = coordination(usize::MAX);
    let mut answer = it.wants(1);
    it.sees([]).await;
    it.drops(1);
    it.sees([resumed(1)]).await;
    assert_eq!(answer.try_recv().map(|_| ()), Err(TryRecvError::Closed), "nobody is shown the session");
    let waiting = it.wants(2);
    it.sees([]).await;
    assert!(it.state.replays.is_empty(), "it is being closed, and the next one waits");
    drop(waiting);
}

#[tokio::test]
async fn a_load_that_is_queued_already_goes_before_an_answer() {
    let mut it = coordination(usize::MAX);
    let mut first = it.wants(1);
    it.sees([]).await;
    it.drops(1);
    let mut second = it.wants(2);
    let mut third = it.wants(3);
    // Abandoned before the second came: that one waits for the close.
    it.sees([resumed(1)]).await;
    assert_eq!(second.try_recv().map(|_| ()), Err(TryRecvError::Empty));
    it.sees([Event::Closed(id(), 2, Ok(())), resumed(3)]).await;
    let (second, third) = (log(&mut second), log(&mut third));
    it.sees([said("both")]).await;
    assert_eq!((second.len(), third.len()), (1, 1));
    assert_eq!(first.try_recv().map(|_| ()), Err(TryRecvError::Closed));
}

#[tokio::test]
async fn the_log_is_shown_behind_the_answer_and_goes_on_growing() {
    let mut it = coordination(usize::MAX);
    let mut answer = it.wants(1);
    it.sees([said("unknown"), said("replayed"), said("too")]).await;
    assert_eq!(answer.try_recv().map(|_| ()), Err(TryRecvError::Empty), "no partial replay");
    it.sees([resumed(1)]).await;
    let shown = log(&mut answer);
    assert_eq!(shown.updates(), [update("unknown"), update("replayed"), update("too")]);
    it.sees([said("live")]).await;
    assert_eq!(shown.get(3), Some(update("live")));
    // A later load sees the same log, from its beginning.
    let mut later = it.wants(2);
    it.sees([]).await;
    assert_eq!(log(&mut later).len(), 4);
}

#[tokio::test]
async fn a_fresh_replay_has_a_fresh_log() {
    let mut it = coordination(usize::MAX);
    let mut answer = it.wants(1);
    it.sees([said("old"), resumed(1)]).await;
    let old = log(&mut answer);
    it.drops(1);
    let mut again = it.wants(2);
    it.sees([said("between"), Event::Closed(id(), 2, Ok(())), said("new"), resumed(3)]).await;
    assert_eq!(log(&mut again).updates(), [update("new")]);
    assert_eq!(old.updates(), [update("old")]);
    assert!(old.wait_for(1).await.is_err(), "nobody waits for a log that takes no more");
}

#[tokio::test]
async fn a_full_log_ends_and_keeps_what_it_has() {
    let mut it = coordination(8);
    let mut answer = it.wants(1);
    it.sees([said("1234"), resumed(1), said("5678"), said("9")]).await;
    let shown = log(&mut answer);
    assert_eq!(shown.len(), 2);
    let error = shown.wait_for(2).await.expect_err("it is full");
    assert_eq!(error.origin(), greenroom_protocol::Origin::Overflow);
    let mut late = it.wants(2);
    it.sees([said("")]).await;
    assert!(late.try_recv().expect("an answer").is_err());
    assert_eq!(shown.len(), 2);
}

#[tokio::test]
async fn the_end_is_told_to_everybody_behind_what_came_before() {
    let mut it = coordination(usize::MAX);
    let mut answer = it.wants(1);
    let flow = it.sees([resumed(1), said("last"), Event::End(Error::internal_error().data("gone"))]).await;
    assert!(matches!(flow, Flow::Finished), "{flow:?}");
    let shown = log(&mut answer);
    assert_eq!(shown.wait_for(0).await.expect("the last word"), update("last"));
    assert_eq!(shown.wait_for(1).await.expect_err("the end").data, Some("gone".into()));
    assert!(it.commands.is_closed());
    it.end.clone().over().await;
}

#[tokio::test]
async fn a_coordination_that_is_dropped_tells_everybody() {
    let mut it = coordination(usize::MAX);
    let mut first = it.wants(1);
    it.sees([resumed(1)]).await;
    let shown = log(&mut first);
    let mut late = it.wants(2);
    let end = it.end.clone();
    drop(it);
    assert_eq!(late.try_recv().map(|_| ()), Err(TryRecvError::Closed));
    assert!(shown.wait_for(0).await.is_err());
    end.over().await;
}
