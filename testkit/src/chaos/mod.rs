//! Breaking actors on purpose.
