//! A role for code that does not care.

use super::plain_role;

plain_role!(
    /// Talks to another untyped role; nothing is assumed about the messages.
    UntypedRole, UntypedRole
);
