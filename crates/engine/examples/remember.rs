//! The engine as a library: a conversation that is there again after a restart, and that its person can have erased.
//!
//! ```sh
//! cargo run -p confidant-engine --example remember
//! ```

use std::error::Error;
use std::sync::Arc;

use confidant_engine::model::Extractive;
use confidant_engine::storage::Durability;
use confidant_engine::{Actor, Engine, MasterKey, Parts, Scope, StaticKeys, Storage, TenantId, TurnRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    // Keep this key: without it nothing opens again.
    let keys = Arc::new(StaticKeys::new(MasterKey::random()));
    let say = |query: &str| TurnRequest { query: query.to_owned(), ..TurnRequest::default() };
    let alice = Scope::parse(TenantId::new("acme")?, "discord_conv:111")?;

    // Answers with quotes of what was said; any `Model` will do, such as `Remote`.
    let open = async || {
        let storage = Storage::sqlite(folder.path(), folder.path(), Durability::Process)?;
        let parts = Parts::new(storage, Arc::clone(&keys) as _, Arc::new(Extractive::new()));
        Ok::<_, Box<dyn Error>>(Engine::open(parts).await?)
    };

    let engine = open().await?;
    engine
        .session(alice.clone(), Actor::cli())
        .turn(say("Hello, I'm Alice and I prefer Rust"))
        .finish()
        .await?;
    engine.stop(std::time::Duration::from_secs(5)).await;

    let engine = open().await?;
    let session = engine.session(alice.clone(), Actor::cli());
    let answer = session.turn(say("What is my name?")).finish().await?;
    print(&answer.content);

    // Somebody else is told nothing of it.
    let bob = engine.session(Scope::parse(TenantId::new("acme")?, "discord_conv:222")?, Actor::cli());
    print(&bob.turn(say("What is my name?")).finish().await?.content);

    let receipt = session.erase().await?;
    print(&serde_json::to_string_pretty(&receipt)?);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn print(text: &str) {
    println!("{text}\n");
}
