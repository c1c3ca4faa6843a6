//! Writes docs/PROTOCOL.md: `cargo run -p confidant-chat-protocol --example protocol > docs/PROTOCOL.md`.

#![expect(clippy::print_stdout, reason = "the page is what this prints")]

fn main() {
    print!("{}", confidant_chat_protocol::describe::page());
}
