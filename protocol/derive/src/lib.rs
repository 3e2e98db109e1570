//! Derive macros for messages of the Agent Client Protocol.
