//! What a message costs with 3,000 open sessions, compared with one. Build it with `--release`.

use greenroom::Result;
use greenroom_testkit::session_cost::{OpenSessions, compare};

const MANY: usize = 3_000;
const ROUNDS: usize = 31;
const MESSAGES: usize = 6_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut one = OpenSessions::new(1).await?;
    let mut many = OpenSessions::new(MANY).await?;
    let lockstep = compare(&mut one, &mut many, ROUNDS, async |open| open.one_by_one(MESSAGES).await).await?;
    let burst = compare(&mut one, &mut many, ROUNDS, async |open| open.at_once(MESSAGES).await).await?;
    for (way, (few, lots)) in [("one by one", lockstep), ("at once", burst)] {
        let ratio = lots.as_secs_f64() / few.as_secs_f64();
        eprintln!("{way}: {few:.2?} a message with 1 session, {lots:.2?} with {MANY}: {ratio:.2} times");
    }
    one.close().await?;
    many.close().await
}
