//! A chain beside a connection of its application.

use std::fmt;
use std::marker::PhantomData;

use greenroom::{ConnectionTo, Result, Role, RunWithConnectionTo};

use crate::chain::RunningChain;
use crate::component::ConductorHostRole;

/// A chain as the background work of a connection, for `with_runner` of a builder: it runs while the
/// connection does. When the chain ends by itself, this work is done; an error of the chain ends the
/// connection with it.
pub struct ConductorRunner<Host: ConductorHostRole> {
    chain: RunningChain,
    host: PhantomData<fn() -> Host>,
}

impl<Host: ConductorHostRole> ConductorRunner<Host> {
    /// The chain as background work. Dropped, the chain ends.
    #[must_use]
    pub fn new(chain: RunningChain) -> Self {
        Self { chain, host: PhantomData }
    }
}

impl<Host: ConductorHostRole> RunWithConnectionTo<Host::Counterpart> for ConductorRunner<Host>
where
    Host::Counterpart: Role,
{
    async fn run_with_connection_to(self, _connection: ConnectionTo<Host::Counterpart>) -> Result<()> {
        self.chain.closed().await
    }
}

impl<Host: ConductorHostRole> fmt::Debug for ConductorRunner<Host> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConductorRunner").field("chain", &self.chain).finish()
    }
}
