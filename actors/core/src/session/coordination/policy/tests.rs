//! The chapter "Session Operation Coordination", row by row.

use greenroom_protocol::Error;

use super::{Effect, Load, Operation, Policy, SessionId};

/// What happens.
#[derive(Clone, Debug)]
enum On {
    Load(Load),
    Release(Load),
    Resumed(Operation),
    Refused(Operation),
    Closed(Operation),
    NotClosed(Operation),
    Overflow,
    End,
}
use On::*;

fn error(text: &str) -> Error {
    Error::internal_error().data(text.to_owned())
}

fn id() -> SessionId {
    SessionId::new("s")
}

/// Effects, short.
fn told(effects: Vec<Effect>) -> Vec<String> {
    let reason = |error: &Error| error.data.as_ref().and_then(|data| data.as_str()).unwrap_or("?").to_owned();
    effects
        .iter()
        .map(|effect| match effect {
            Effect::Resume(_, operation) => format!("resume {operation}"),
            Effect::Close(_, operation) => format!("close {operation}"),
            Effect::Discard(_) => "discard".to_owned(),
            Effect::Deliver(_, load) => format!("deliver {load}"),
            Effect::Fail(load, error) => format!("fail {load}: {}", reason(error)),
            Effect::Forget(_) => "forget".to_owned(),
        })
        .collect()
}

fn step(policy: &mut Policy, on: On) -> Vec<String> {
    told(match on {
        Load(load) => policy.load(&id(), load),
        Release(load) => policy.release(&id(), load),
        Resumed(operation) => policy.resumed(&id(), operation, None),
        Refused(operation) => policy.resumed(&id(), operation, Some(error("refused"))),
        Closed(operation) => policy.closed(&id(), operation, None),
        NotClosed(operation) => policy.closed(&id(), operation, Some(error("not closed"))),
        Overflow => policy.overflowed(&id(), &error("overflow")),
        End => policy.end(&error("ended")),
    })
}

/// Each row: what happens, and what is done about it.
fn table(rows: &[(On, &[&str])]) -> Policy {
    let mut policy = Policy::default();
    for (number, (on, expected)) in rows.iter().enumerate() {
        assert_eq!(step(&mut policy, on.clone()), *expected, "row {number}: {on:?}");
    }
    policy
}

#[test]
fn concurrent_loads_share_one_resume() {
    table(&[
        (Load(1), &["resume 1"]),
        (Load(2), &[]),
        (Load(3), &[]),
        (Resumed(1), &["deliver 1", "deliver 2", "deliver 3"]),
        // An active session is shared at once.
        (Load(4), &["deliver 4"]),
    ]);
}

#[test]
fn dropping_some_loads_leaves_the_others_alone() {
    table(&[
        (Load(1), &["resume 1"]),
        (Load(2), &[]),
        (Release(1), &[]),
        (Resumed(1), &["deliver 2"]),
        (Load(3), &["deliver 3"]),
        (Release(2), &[]),
        (Release(3), &["discard", "close 2"]),
        (Closed(2), &["forget"]),
    ]);
}

#[test]
fn a_result_that_is_never_consumed_is_released_like_one_that_was() {
    // Delivered is all that counts: whether the application looked at it makes no difference.
    table(&[
        (Load(1), &["resume 1"]),
        (Resumed(1), &["deliver 1"]),
        (Release(1), &["discard", "close 2"]),
        // Once is once.
        (Release(1), &[]),
        (Closed(2), &["forget"]),
        (Release(1), &[]),
    ]);
}

#[test]
fn an_abandoned_replay_is_discarded_at_once_and_the_session_closed_behind_its_resume() {
    let mut policy = table(&[(Load(1), &["resume 1"]), (Load(2), &[]), (Release(1), &[])]);
    assert!(policy.keeps(&id()));
    assert_eq!(step(&mut policy, Release(2)), ["discard"]);
    assert!(!policy.keeps(&id()), "replay that nobody will see is not kept");
    // Neither cancelled nor detached: its answer is waited for, then the session is closed.
    assert_eq!(step(&mut policy, Resumed(1)), ["close 2"]);
    assert!(!policy.keeps(&id()));
    assert_eq!(step(&mut policy, Closed(2)), ["forget"]);
    assert_eq!(step(&mut policy, Load(3)), ["resume 3"]);
}

#[test]
fn a_replacement_waits_for_the_old_resume_and_its_close() {
    table(&[
        (Load(1), &["resume 1"]),
        (Release(1), &["discard"]),
        (Load(2), &[]),
        (Resumed(1), &["close 2"]),
        (Load(3), &[]),
        (Closed(2), &["resume 3"]),
        (Resumed(3), &["deliver 2", "deliver 3"]),
    ]);
}

#[test]
fn a_replacement_during_a_close_starts_a_fresh_replay() {
    table(&[
        (Load(1), &["resume 1"]),
        (Resumed(1), &["deliver 1"]),
        (Release(1), &["discard", "close 2"]),
        (Load(2), &[]),
        (Closed(2), &["resume 3"]),
        (Resumed(3), &["deliver 2"]),
    ]);
}

#[test]
fn a_replacement_that_left_again_starts_nothing() {
    table(&[
        (Load(1), &["resume 1"]),
        (Release(1), &["discard"]),
        (Load(2), &[]),
        (Release(2), &[]),
        (Resumed(1), &["close 2"]),
        (Load(3), &[]),
        (Release(3), &[]),
        (Closed(2), &["forget"]),
    ]);
}

#[test]
fn a_refused_resume_fails_its_own_loads_and_a_later_one_may_retry() {
    table(&[
        (Load(1), &["resume 1"]),
        (Load(2), &[]),
        (Refused(1), &["discard", "forget", "fail 1: refused", "fail 2: refused"]),
        (Load(3), &["resume 2"]),
        // Those that failed are dropped by and by; that is nobody else's business.
        (Release(1), &[]),
        (Release(2), &[]),
        (Resumed(2), &["deliver 3"]),
    ]);
}

#[test]
fn a_refused_resume_that_nobody_waits_for_lets_the_waiting_one_retry_without_a_close() {
    table(&[
        (Load(1), &["resume 1"]),
        (Release(1), &["discard"]),
        (Load(2), &[]),
        (Refused(1), &["resume 2"]),
        (Resumed(2), &["deliver 2"]),
    ]);
    table(&[(Load(1), &["resume 1"]), (Release(1), &["discard"]), (Refused(1), &["forget"]), (Load(2), &["resume 2"])]);
}

#[test]
fn a_failed_close_fails_those_that_wait_and_blocks_the_session() {
    let mut policy = table(&[
        (Load(1), &["resume 1"]),
        (Resumed(1), &["deliver 1"]),
        (Release(1), &["discard", "close 2"]),
        (Load(2), &[]),
        (Load(3), &[]),
        (NotClosed(2), &["forget", "fail 2: not closed", "fail 3: not closed"]),
        // There is no automatic retry, and no way around it before the next connection.
        (Load(4), &["fail 4: not closed"]),
        (Closed(2), &[]),
        (Release(4), &[]),
        (Load(5), &["fail 5: not closed"]),
    ]);
    let other = SessionId::new("other");
    assert_eq!(told(policy.load(&other, 6)), ["resume 3"], "only that session is blocked");
}

#[test]
fn an_answer_of_an_older_operation_hits_nothing() {
    table(&[
        (Load(1), &["resume 1"]),
        (Refused(1), &["discard", "forget", "fail 1: refused"]),
        (Load(2), &["resume 2"]),
        (Resumed(1), &[]),
        (Refused(1), &[]),
        (Resumed(2), &["deliver 2"]),
        (Release(2), &["discard", "close 3"]),
        (Closed(2), &[]),
        (Closed(3), &["forget"]),
    ]);
}

#[test]
fn the_end_fails_whoever_waits_and_what_comes_later() {
    table(&[
        (Load(1), &["resume 1"]),
        (Load(2), &[]),
        (End, &["fail 1: ended", "fail 2: ended"]),
        // Synthetic failures of unanswered requests may come after the end.
        (Refused(1), &[]),
        (Release(1), &[]),
        (Load(3), &["fail 3: ended"]),
        (End, &[]),
    ]);
    table(&[
        (Load(1), &["resume 1"]),
        (Release(1), &["discard"]),
        (Load(2), &[]),
        (End, &["fail 2: ended"]),
        (Resumed(1), &[]),
    ]);
    table(&[
        (Load(1), &["resume 1"]),
        (Resumed(1), &["deliver 1"]),
        (End, &[]),
        (Release(1), &[]),
        (NotClosed(2), &[]),
    ]);
}

#[test]
fn a_log_that_overflows_during_its_replay_is_abandoned() {
    table(&[
        (Load(1), &["resume 1"]),
        (Overflow, &["discard", "fail 1: overflow"]),
        (Overflow, &[]),
        (Resumed(1), &["close 2"]),
        (Closed(2), &["forget"]),
    ]);
}

#[test]
fn a_log_that_overflows_later_takes_no_new_readers() {
    let mut policy = table(&[
        (Load(1), &["resume 1"]),
        (Resumed(1), &["deliver 1"]),
        (Overflow, &[]),
        (Load(2), &["fail 2: overflow"]),
        (Release(2), &[]),
    ]);
    assert!(!policy.keeps(&id()));
    assert_eq!(step(&mut policy, Release(1)), ["discard", "close 2"]);
}

/// Whatever happens in whatever order: a load is settled at most once, and never both ways; at most one
/// operation of a session is under way; none is under way and nobody waits once everything is answered
/// and released.
#[test]
fn nothing_is_settled_twice_or_forgotten_in_any_order() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut chance = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for _ in 0..2_000 {
        let mut policy = Policy::default();
        let (mut loads, mut settled, mut open) = (Vec::new(), Vec::new(), None);
        for step in 0..60 {
            let winding_up = step >= 40;
            let effects = match chance(4) {
                0 if !winding_up => {
                    loads.push(step);
                    policy.load(&id(), step)
                }
                1 => match loads.is_empty() {
                    true => continue,
                    false => {
                        let at = usize::try_from(chance(loads.len() as u64)).unwrap();
                        policy.release(&id(), loads.swap_remove(at))
                    }
                },
                _ => match open.take() {
                    None => continue,
                    Some((true, operation)) => policy.resumed(&id(), operation, (chance(3) == 0).then(|| error("no"))),
                    Some((false, operation)) => policy.closed(&id(), operation, None),
                },
            };
            for effect in effects {
                match effect {
                    Effect::Resume(_, operation) => assert_eq!(open.replace((true, operation)), None),
                    Effect::Close(_, operation) => assert_eq!(open.replace((false, operation)), None),
                    Effect::Deliver(_, load) | Effect::Fail(load, _) => {
                        assert!(!settled.contains(&load), "{load} is settled twice");
                        settled.push(load);
                    }
                    Effect::Discard(_) | Effect::Forget(_) => {}
                }
            }
        }
        // Releases everything and answers everything.
        while let Some(load) = loads.pop() {
            for effect in policy.release(&id(), load) {
                if let Effect::Close(_, operation) = effect {
                    assert_eq!(open.replace((false, operation)), None);
                }
            }
        }
        while let Some((resume, operation)) = open.take() {
            let effects = match resume {
                true => policy.resumed(&id(), operation, None),
                false => policy.closed(&id(), operation, None),
            };
            for effect in effects {
                match effect {
                    Effect::Close(_, operation) => open = Some((false, operation)),
                    Effect::Forget(_) => {}
                    other => panic!("nobody is left for {other:?}"),
                }
            }
        }
        assert!(policy.sessions.is_empty(), "{policy:?}");
    }
}
