//! Contexts behind a running engine that cannot be loaded or saved, on each store in its own way.

use super::failure::Table;
use super::*;

/// What can be broken, and mended.
pub(super) enum Outage {
    Sqlite(Table),
    Postgres(tokio_postgres::Client),
    /// The one context there is, and the index that is written before it.
    Redis {
        url: String,
        context: String,
        index: String,
    },
}

impl Outage {
    /// On a Redis there must be a context by now, so that its name is known.
    pub(super) async fn of(place: &Place) -> Self {
        if let Some(settings) = place.as_postgres() {
            let url = server("CONFIDANT_TEST_POSTGRES").unwrap();
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            let schema = &settings.schema;
            let make = format!(
                "SET search_path = {schema}; SET confidant.tenant = '*';
                 CREATE OR REPLACE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$"
            );
            client.batch_execute(&make).await.unwrap();
            return Self::Postgres(client);
        }
        let Some(settings) = place.as_redis() else { return Self::Sqlite(Table::of(place)) };
        let is_cluster = settings.address.shown().ends_with("(Cluster)");
        let variable = if is_cluster { "CONFIDANT_TEST_REDIS_CLUSTER" } else { "CONFIDANT_TEST_REDIS" };
        let url = server(variable).unwrap();
        let mut names = Vec::new();
        for kind in ["context", "contexts"] {
            let pattern = format!("{}confidant:{kind}:*", settings.prefix);
            names.extend(ask::<Vec<String>>(&url, &["KEYS", &pattern]).await);
        }
        let [context, index] = names.try_into().unwrap();
        Self::Redis { url, context, index }
    }

    /// Runs SQL, where there are tables.
    pub(super) async fn run(&self, sql: &str) {
        match self {
            Self::Sqlite(table) => table.run(sql),
            Self::Postgres(client) => client.batch_execute(sql).await.unwrap(),
            Self::Redis { .. } => panic!("a Redis has no tables"),
        }
    }

    pub(super) async fn loads(&self, work: bool) {
        let (from, to) =
            if work { ("away", "conversation_context") } else { ("conversation_context", "away") };
        let rename = format!("ALTER TABLE {from} RENAME TO {to}");
        match self {
            Self::Sqlite(table) => table.run(&rename),
            Self::Postgres(client) => client.batch_execute(&rename).await.unwrap(),
            Self::Redis { url, context, .. } => hide(url, context, work).await,
        }
    }

    pub(super) async fn saves(&self, work: bool) {
        match self {
            Self::Sqlite(table) => {
                for event in ["INSERT", "UPDATE"] {
                    table.run(&if work {
                        format!("DROP TRIGGER no_{event}")
                    } else {
                        format!(
                            "CREATE TRIGGER no_{event} BEFORE {event} ON conversation_context
                             BEGIN SELECT RAISE(ABORT, 'no'); END"
                        )
                    });
                }
            }
            Self::Postgres(client) => {
                let sql = if work {
                    "DROP TRIGGER no ON conversation_context"
                } else {
                    "CREATE TRIGGER no BEFORE INSERT OR UPDATE ON conversation_context
                     FOR EACH ROW EXECUTE FUNCTION no()"
                };
                client.batch_execute(sql).await.unwrap();
            }
            Self::Redis { url, index, .. } => hide(url, index, work).await,
        }
    }
}

/// Puts something of another kind in a key's place, or what was there back.
async fn hide(url: &str, key: &str, back: bool) {
    let away = format!("{key}:away");
    let (from, to) = if back { (away.as_str(), key) } else { (key, away.as_str()) };
    ask::<()>(url, &["RENAME", from, to]).await;
    if !back {
        ask::<()>(url, &["SET", key, "x"]).await;
    }
}

pub(super) async fn ask<T: ::redis::FromRedisValue>(url: &str, words: &[&str]) -> T {
    let mut cmd = ::redis::Cmd::new();
    cmd.arg(words);
    match url.strip_prefix("redis+cluster://") {
        Some(nodes) => {
            let nodes = nodes.split(',').map(|node| format!("redis://{node}"));
            let client = ::redis::cluster::ClusterClient::new(nodes.collect::<Vec<_>>()).unwrap();
            cmd.query_async(&mut client.get_async_connection().await.unwrap()).await.unwrap()
        }
        None => {
            let client = ::redis::Client::open(url).unwrap();
            cmd.query_async(&mut client.get_multiplexed_async_connection().await.unwrap()).await.unwrap()
        }
    }
}
