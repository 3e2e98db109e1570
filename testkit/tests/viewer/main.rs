//! The viewer of recordings: its server, and its page in a real browser.
//!
//! Needs Debian's `chromium` and `chromium-driver`.

mod driver;
mod page;
mod recorded;
mod served;
