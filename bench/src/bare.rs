//! The floor: two sealed records as two rows of a plain table, in one SQLite commit, on one thread, without async.
//!
//! The same plaintexts in size, the same envelope and the same PRAGMAs as the engine has; no session row, no compare-and-set, no
//! chain, no audit record, no fold. What ours costs beyond this is what those cost.

use std::path::Path;

use anyhow::{Context as _, Result};
use confidant_engine::storage::Durability;
use confidant_seal::{Context, Key, Suite, seal};
use rusqlite::{Connection, params};

use crate::meter::{Cost, Meter, middle};
use crate::words::Words;

/// The cost of a bare turn, the median of `rounds` rounds.
pub(crate) fn measure(folder: &Path, durability: Durability, turns: usize, rounds: usize) -> Result<Cost> {
    let mut bare = Bare::open(folder, durability)?;
    bare.round(turns / 10 + 1)?;
    let costs = (0..rounds).map(|_| bare.round(turns)).collect::<Result<Vec<Cost>>>()?;
    middle(costs, |cost| cost.cpu_ms).context("at least one round")
}

/// The floor's database and what is sealed into it.
pub(crate) struct Bare {
    connection: Connection,
    key: Key,
    words: Words,
}

impl Bare {
    pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let path = folder.join("bare.db");
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON; PRAGMA trusted_schema = OFF;",
        )?;
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        anyhow::ensure!(mode == "wal", "no WAL in the temporary folder");
        connection.execute_batch(match durability {
            Durability::Power => "PRAGMA synchronous = FULL",
            Durability::Process => "PRAGMA synchronous = NORMAL",
        })?;
        connection.execute_batch("CREATE TABLE entries (id INTEGER PRIMARY KEY, sealed BLOB NOT NULL)")?;
        Ok(Self { connection, key: Key::random(), words: Words::new() })
    }

    /// One block of turns.
    pub(crate) fn round(&mut self, turns: usize) -> Result<Cost> {
        let plain: Vec<[Vec<u8>; 2]> = (0..turns).map(|_| entries(&mut self.words)).collect();
        let mut begin = self.connection.prepare("BEGIN IMMEDIATE")?;
        let mut insert = self.connection.prepare("INSERT INTO entries (sealed) VALUES (?1)")?;
        let mut commit = self.connection.prepare("COMMIT")?;
        let mut meter = Meter::start()?;
        for two in &plain {
            meter.begin();
            begin.execute([])?;
            for one in two {
                let sealed = seal(&self.key, Suite::ChaCha20Poly1305, &CONTEXT, 1, one);
                insert.execute(params![sealed.as_bytes()])?;
            }
            commit.execute([])?;
            meter.end();
        }
        Ok(meter.finish()?.0)
    }
}

/// A request and its answer in the form that the engine stores them in.
pub(crate) fn entries(words: &mut Words) -> [Vec<u8>; 2] {
    let id = "01999999-9999-7999-8999-999999999999";
    let (question, answer, at) = (words.message(), words.message(), 1_790_000_000_000_i64);
    [
        format!(
            r#"{{"kind":"accepted","request_id":"{id}","at":{at},"audience":"room","content":"{question}","tokens":150}}"#
        )
        .into_bytes(),
        format!(
            r#"{{"kind":"answered","request_id":"{id}","at":{at},"replies":[{{"from":"ai","content":"{answer}","tokens":150,"name":"bench"}}]}}"#
        )
        .into_bytes(),
    ]
}

/// As long as the engine's.
pub(crate) const CONTEXT: Context<'_> = Context {
    purpose: "session",
    owner: "AAAAAAAAAARhY21lAAAAAAAAAAZtYXRyaXgAAAAAAAAAEiFyb29tMTpleGFtcGxlLm9yZwAAAAAAAAAETWFpbgAAAAAAAAA",
    container: "6c3fb748b5227a7c",
    object: "1234",
    field: "00112233445566778899aabbccddeeff",
};
