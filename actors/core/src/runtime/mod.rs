//! What makes an actor survive its own death.
//!
//! `ractor` gives every actor supervision, but drops the mailbox and the state of an actor that
//! dies, while senders were told `Ok`. Four small parts change that, and every actor of this
//! crate is built from them:
//!
//! * [`Mailbox`]: a **durable mailbox**. The typed queue lives outside the actor; `ractor` carries
//!   only the wake-up, control and supervision.
//! * [`Slot`]: **leased state**. A restarted actor goes on exactly where the last one stopped,
//!   even in the middle of a partly written frame.
//! * [`Stage`]: what an actor does, free of wake-ups, leases and restarts. One generic `ractor`
//!   actor runs any stage: it peeks, runs and commits, and sets an item aside that broke it twice.
//! * [`Children`]: restart intensity and back-off, decided by a pure function; and **passivation**: an
//!   actor that waits for nothing but its mailbox ends while that is empty, and is started again for
//!   the next item.
//!
//! Around them: [`Credit`] bounds memory, [`Scope`] finds handlers that wait for themselves,
//! [`Node`] is the live tree that everybody can look at, [`Live`] proves that nothing is left.

mod children;
mod credit;
mod live;
mod mailbox;
mod node;
mod restart;
mod scope;
mod slot;
mod stage;

pub use children::{Child, Children, Death, death_of};
pub use credit::{Credit, Permit};
pub use live::{Live, LiveCount};
pub use mailbox::Mailbox;
pub use node::{Fault, Node, Outcome, Snapshot, Status};
pub use restart::{RestartBudget, RestartPolicy, Verdict};
pub use scope::{Scope, Scoped};
pub use slot::{Lease, LeaseTimeout, Slot};
pub use stage::{Control, Flow, Inbox, Seat, Stage};
