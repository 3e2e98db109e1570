//! What a scenario does.

mod callbacks;
mod content;
mod elicitations;
mod tool_calls;
mod updates;

use super::turn::{End, Turn};
use crate::testy::command::TestyScenario;

/// What `full` consists of, in its order.
const FULL: [TestyScenario; 5] = [
    TestyScenario::SessionUpdates,
    TestyScenario::Content,
    TestyScenario::ToolCalls,
    TestyScenario::Callbacks,
    TestyScenario::CancelStatus,
];

pub(super) async fn run(turn: &mut Turn, scenario: TestyScenario) -> Result<(), End> {
    if scenario == TestyScenario::Full {
        for part in FULL {
            one(turn, part).await?;
        }
        return Ok(());
    }
    one(turn, scenario).await
}

async fn one(turn: &mut Turn, scenario: TestyScenario) -> Result<(), End> {
    match scenario {
        TestyScenario::SessionUpdates => updates::run(turn)?,
        TestyScenario::Content => content::run(turn)?,
        TestyScenario::ToolCalls => tool_calls::run(turn)?,
        TestyScenario::Callbacks => {
            callbacks::run(turn).await?;
            elicitations::run(turn).await?;
        }
        TestyScenario::Elicitations => elicitations::run(turn).await?,
        TestyScenario::CancelStatus => {
            let received = if turn.sessions.was_cancelled(&turn.session) { "yes" } else { "no" };
            turn.say(format!("session/cancel received: {received}"))?;
        }
        // It is made of the others.
        TestyScenario::Full => {}
    }
    Ok(())
}
