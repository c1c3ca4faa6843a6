//! The floor under a sync: as many envelopes of the same sizes, read from the same kind of database and opened. No protocol,
//! no account, no lists that are compared, nothing kept.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use confidant_seal::{Context, Key, Sealed, Suite, open, seal};
use rusqlite::Connection;
use tokio_postgres::NoTls;

/// How long it takes on SQLite, the median of some rounds.
pub(crate) fn sqlite(folder: &Path, sizes: &[usize], rounds: usize) -> Result<Duration> {
    let (path, key) = (folder.join("floor.db"), Key::random());
    let mut database = Connection::open(&path)?;
    database.execute_batch("CREATE TABLE rows (n INTEGER PRIMARY KEY, envelope BLOB NOT NULL)")?;
    let writing = database.transaction()?;
    for sealed in sealed(&key, sizes) {
        writing.execute("INSERT INTO rows (envelope) VALUES (?1)", [sealed.as_bytes()])?;
    }
    writing.commit()?;
    drop(database);
    let mut times = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        let database = Connection::open(&path)?;
        let mut statement = database.prepare("SELECT envelope FROM rows ORDER BY n")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            opened(&key, row.get(0)?)?;
        }
        times.push(began.elapsed());
    }
    median(times)
}

/// The same on PostgreSQL.
pub(crate) async fn postgres(url: &str, sizes: &[usize], rounds: usize) -> Result<Duration> {
    let key = Key::random();
    let (mut client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let carried = tokio::spawn(connection);
    client
        .batch_execute("CREATE TEMPORARY TABLE floor (n BIGSERIAL PRIMARY KEY, envelope BYTEA NOT NULL)")
        .await?;
    let writing = client.transaction().await?;
    let put = writing.prepare("INSERT INTO floor (envelope) VALUES ($1)").await?;
    for sealed in sealed(&key, sizes) {
        writing.execute(&put, &[&sealed.as_bytes()]).await?;
    }
    writing.commit().await?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        for row in client.query("SELECT envelope FROM floor ORDER BY n", &[]).await? {
            opened(&key, row.get(0))?;
        }
        times.push(began.elapsed());
    }
    drop(client);
    carried.await??;
    median(times)
}

fn sealed(key: &Key, sizes: &[usize]) -> impl Iterator<Item = Sealed> {
    // What an envelope adds to what is in it.
    let around = seal(key, Suite::Aes256Gcm, &PLACE, 1, &[]).as_bytes().len();
    sizes.iter().map(move |size| {
        let plain = vec![b'x'; size.saturating_sub(around)];
        seal(key, Suite::Aes256Gcm, &PLACE, 1, &plain)
    })
}

fn opened(key: &Key, bytes: Vec<u8>) -> Result<()> {
    let opened = open(key, &PLACE, &Sealed::from_bytes(bytes)).ok().context("it does not open")?;
    std::hint::black_box(opened.data.len());
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Result<Duration> {
    times.sort_unstable();
    times.get(times.len() / 2).copied().context("nothing was measured")
}

const PLACE: Context<'static> =
    Context { purpose: "message", owner: "acct", container: "chat", object: "msg", field: "content" };
