//! What the server is asked to pass on to everybody who listens: `LISTEN` and `NOTIFY`, on a connection of its own.
//!
//! ```text
//! Pool::listen ─┬─▶ Voice: says payloads to everybody who listens, this connection included
//!               └─▶ Ear:   what was said since, in the order of commits; ends with the connection
//! ```
//!
//! Easy to get wrong: an ear that ends. What is said while nobody listens is lost, so whoever listens again has to find out
//! by other means what was said in between. An ear that is not emptied ends as well: what waits for it is bounded.

use std::future::poll_fn;

use confidant_display::debug_without_content;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

use super::error::PostgresError;
use super::pool::{ANSWER, Pool, Result, failure, timed_out};

/// Says something to everybody who listens. Dropping it ends the ear as well.
pub struct Voice {
    client: Client,
    channel: String,
}

debug_without_content!(Voice);

/// Hears what is said.
pub struct Ear(mpsc::Receiver<String>);

debug_without_content!(Ear);

impl Pool {
    /// Listens to a channel, whose name is a plain word. Everything that is said from now on is heard.
    pub async fn listen(&self, channel: &str) -> Result<(Voice, Ear)> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if channel.is_empty() || channel.len() > LONGEST_NAME || !channel.chars().all(is_plain) {
            return Err(PostgresError::Failed("PostgreSQL: the name of a channel".to_owned()));
        }
        let (sender, receiver) = mpsc::channel(HEARD);
        let mut config = self.config.clone();
        // So that whoever looks at the server's connections knows what it is for.
        config.application_name(format!("confidant news {}", self.schema));
        let connecting = async {
            match &self.tls {
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    tokio::spawn(pass_on(connection, sender));
                    Ok(client)
                }
                Some(tls) => {
                    let (client, connection) = config.connect(tls.clone()).await?;
                    tokio::spawn(pass_on(connection, sender));
                    Ok(client)
                }
            }
        };
        let client = match timeout(self.connecting(), connecting).await {
            Ok(made) => made.map_err(|error: tokio_postgres::Error| failure(&error))?,
            Err(_) => return Err(timed_out()),
        };
        let listening = format!("LISTEN {channel}");
        match timeout(ANSWER, client.batch_execute(&listening)).await {
            Ok(listens) => listens.map_err(|error| failure(&error))?,
            Err(_) => return Err(timed_out()),
        }
        Ok((Voice { client, channel: channel.to_owned() }, Ear(receiver)))
    }
}

impl Voice {
    /// Says these payloads, all of them or none, in this order. Each has fewer than 8000 bytes and is another than the rest.
    /// After an error they may have been said.
    pub async fn say(&self, payloads: &[String]) -> Result<()> {
        let sql = "SELECT pg_notify($1, said) FROM unnest($2::text[]) WITH ORDINALITY AS u (said, place) ORDER BY place";
        match timeout(ANSWER, self.client.query(sql, &[&self.channel, &payloads])).await {
            Ok(said) => said.map(drop).map_err(|error| failure(&error)),
            Err(_) => Err(timed_out()),
        }
    }
}

impl Ear {
    /// What was said next; `None` once the connection is gone. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }
}

/// Drives a connection until it ends, or until nobody takes what it hears.
async fn pass_on<S, T>(mut connection: Connection<S, T>, heard: mpsc::Sender<String>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        // Waiting for room would keep back the answers to what is asked on this connection.
        if let AsyncMessage::Notification(said) = message
            && heard.try_send(said.payload().to_owned()).is_err()
        {
            return;
        }
    }
}

/// What may wait to be taken.
const HEARD: usize = 8192;
/// Longer names are cut short by the server.
const LONGEST_NAME: usize = 63;
