//! How much memory a socket takes that nobody speaks on.
//!
//! `cargo run --release -p confidant-chats-http --example idle_sockets [COUNT]`
//!
//! Opens so many sockets (2000), each with a session of its own, to a server in this process, and prints what that added. The
//! clients are bare connections without a buffer, so nearly all of it is the server's. What the kernel has is not in it.

#![expect(clippy::print_stdout, reason = "the numbers are what this is for")]
#![expect(clippy::unwrap_used, reason = "nobody uses this but those who measure")]

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/chats_http/device.rs"]
mod device;
#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/chats_http/world.rs"]
mod world;

use confidant_chats_http::Patience;
use world::World;

/// Accounts may have so many sockets at once.
const PER_ACCOUNT: usize = 50;

#[tokio::main]
async fn main() {
    let count = std::env::args().nth(1).map_or(2000, |count| count.parse().unwrap());
    let world = World::with(Patience::default(), count + 100).await;
    let mut sessions = Vec::new();
    for at in 0..count.div_ceil(PER_ACCOUNT) {
        sessions.push(world.register(&format!("person-{at}")).await.1);
    }
    // What is made once is made before it is measured.
    let mut sockets = Vec::new();
    for session in &sessions {
        sockets.push(world.open(session).await.into_inner());
    }
    let (before, made) = (resident(), sockets.len());
    for at in made..count.max(made) {
        sockets.push(world.open(&sessions[at / PER_ACCOUNT]).await.into_inner());
    }
    let after = resident();
    let added = sockets.len() - made;
    let each = after.saturating_sub(before) / added.max(1);
    println!(
        "{} sockets; {before} bytes before, {after} after the last {added}: {each} bytes each",
        sockets.len()
    );
}

/// What this process has in memory, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
