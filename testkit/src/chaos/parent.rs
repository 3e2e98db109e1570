//! An actor to hang connections below.

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

/// Outlives whatever dies below it, and does nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Parent;

#[cfg_attr(feature = "async-trait", ractor::async_trait)]
impl Actor for Parent {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _me: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<()>,
        event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        // By default an actor stops when a child does.
        drop(event);
        Ok(())
    }
}
