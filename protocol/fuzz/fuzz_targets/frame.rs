//! Any bytes: no panic, and never another opinion than `serde_json`'s.
//!
//! `cargo +nightly fuzz run frame -- -dict=json.dict` in the folder `protocol/fuzz`.

#![no_main]

#[path = "../../tests/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|text: &[u8]| reference::check(text));
