//! Whatever a Matrix server says happened in a room: it is read or it is nothing, and what is said of it brings no markup.
//!
//! The two files are read as they are: the crate that they are of has the whole of the SDK.

#![no_main]
#![expect(dead_code, reason = "the channel uses more of these files")]

#[path = "../../crates/matrix/src/heard.rs"]
mod heard;
#[path = "../../crates/matrix/src/html.rs"]
mod html;

use heard::{Heard, What, is_taken_back};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = is_taken_back(text);
    let said = match Heard::read(text).map(|heard| heard.what) {
        Some(What::Message(message) | What::Edit { message, .. }) => message.text,
        _ => text.to_owned(),
    };
    let html = html::of(&said).unwrap_or_default();
    for tag in ["<script", "<img", "<iframe", "<style", "<svg", "<a href=\"javascript:"] {
        assert!(!html.to_lowercase().contains(tag));
    }
});
