//! The tests' servers, and the ways around the engine to them.

use std::sync::Arc;

use confidant_engine::storage::PostgresSettings;
use confidant_engine::turn::{Final, MemoryState};
use confidant_engine::{Engine, Parts, Storage};
use tokio_postgres::{Client, NoTls};

use crate::rig::*;

/// Settings for the usual server, with a schema of their own.
pub(crate) fn settings() -> Option<PostgresSettings> {
    server("CONFIDANT_TEST_POSTGRES").map(|url| postgres_settings(&url))
}

pub(crate) async fn engine_at(settings: &PostgresSettings, model: &Arc<Recorder>) -> Engine {
    let storage = Storage::postgres(settings).await.unwrap();
    Engine::open(Parts::new(storage, keys(&[1]), Arc::clone(model) as _)).await.unwrap()
}

/// A connection of the tests' own, by the role that owns the tables and is no superuser, with nothing said of a tenant.
pub(crate) async fn raw(url: &str, schema: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    client
}

/// The server that may be broken. One test at a time has it.
pub(crate) struct Breakable {
    pub(crate) url: String,
    program: String,
    _alone: tokio::sync::MutexGuard<'static, ()>,
}

static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

impl Breakable {
    pub(crate) async fn take() -> Option<Self> {
        let _alone = ALONE.lock().await;
        let url = server("CONFIDANT_TEST_POSTGRES_BREAKABLE")?;
        Some(Self { url, program: server("CONFIDANT_TEST_POSTGRES_BREAK")?, _alone })
    }

    /// `restart`, `stop` or `start`, as a loss of power would, not in good order.
    pub(crate) async fn turn(&self, how: &str) {
        let mut command = std::process::Command::new(&self.program);
        command.arg(how);
        let done = tokio::task::spawn_blocking(move || command.status().unwrap()).await.unwrap();
        assert!(done.success(), "{how}");
    }

    pub(crate) fn settings(&self) -> PostgresSettings {
        postgres_settings(&self.url)
    }
}

/// Asks until there is an answer that was kept, as a client does that was told to send it again.
pub(crate) async fn insist(engine: &Engine, id: &str, request: &str, query: &str) -> Final {
    for _ in 0..1200 {
        match session(engine, id).turn(says_as(request, query)).finish().await {
            Ok(answer) if answer.metadata.memory == MemoryState::Kept => return answer,
            Ok(_) => {}
            Err(error) => assert!(error.to_string().contains("; hint: "), "{error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("no answer");
}

pub(crate) fn whole(turns: usize) -> Vec<String> {
    (0..turns).flat_map(|i| [format!("human:q{i}"), format!("ai:noted: q{i}")]).collect()
}
