//! Writes `vectors/chats-v1.json` anew: `cargo run -p confidant-chat-format --example chats_vectors`.

mod build;
mod must_fail;
mod shape;
mod snapshots;

fn main() -> std::io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/chats-v1.json");
    std::fs::write(path, build::text())
}
