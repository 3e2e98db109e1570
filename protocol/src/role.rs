//! Identities of roles, and where a peer stands as seen from a connection.

use std::any::TypeId;

/// Which role a connection plays. Comparable within one process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RoleId {
    /// A role that a type stands for.
    Singleton(&'static str, TypeId),
}

impl RoleId {
    /// The identity of a role's type.
    #[must_use]
    pub fn from_singleton<R: 'static>(_role: &R) -> Self {
        Self::Singleton(std::any::type_name::<R>(), TypeId::of::<R>())
    }
}

/// How messages from and to a logical peer travel on one physical connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemoteStyle {
    /// The peer is the other end: messages travel plain.
    Counterpart,
    /// The peer stands on the client's side of a proxy: messages travel plain.
    Predecessor,
    /// The peer stands on the agent's side of a proxy: messages travel in a successor envelope.
    Successor,
}
