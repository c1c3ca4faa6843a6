//! Writes `vectors/seal-v1.json` anew: `cargo run -p confidant-seal --example vectors`.

mod build;

fn main() -> std::io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/seal-v1.json");
    std::fs::write(path, build::text())
}
