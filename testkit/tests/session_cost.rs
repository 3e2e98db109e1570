//! A message of one session costs the same, however many others are open.
//!
//! The program `session-cost` measures it properly, in a release build. This test finds what grows with
//! the number of sessions: work for each of 3,000 would make a message many times as expensive. Both
//! connections take turns, so that whatever else the machine does hits both, and medians are compared.

use greenroom_testkit::session_cost::{OpenSessions, compare};

/// Far above what caches do, far below what one look at each session does.
const LIMIT: f64 = 1.8;

#[test]
fn a_message_costs_no_more_with_thousands_of_sessions() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (few, many) = runtime.block_on(async {
        let mut one = OpenSessions::new(1).await.expect("a session");
        let mut thousands = OpenSessions::new(3_000).await.expect("sessions");
        // Everything is touched once before it counts.
        thousands.one_by_one(3_000).await.expect("messages");
        let times = compare(&mut one, &mut thousands, 25, async |open| open.one_by_one(200).await).await;
        one.close().await.expect("a good end");
        thousands.close().await.expect("a good end");
        times.expect("messages")
    });
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    assert!(ratio < LIMIT, "{few:?} a message with one session, {many:?} with 3,000: {ratio:.2} times");
    eprintln!("{few:?} a message with one session, {many:?} with 3,000: {ratio:.2} times");
}
