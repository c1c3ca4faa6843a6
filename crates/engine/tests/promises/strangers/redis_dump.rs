//! A Redis as the stranger sees it: each key a table, each field, member or element a row.

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;

use super::dump::{Cell, Dump, Table};

/// All keys that begin with a prefix.
pub(crate) struct Keys {
    connection: MultiplexedConnection,
    prefix: String,
}

impl Keys {
    pub(crate) async fn new(url: &str, prefix: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        Self { connection, prefix: prefix.to_owned() }
    }

    async fn ask<T: redis::FromRedisValue>(&mut self, cmd: &redis::Cmd) -> T {
        cmd.query_async(&mut self.connection).await.unwrap()
    }

    async fn names(&mut self) -> Vec<String> {
        let mut names: Vec<String> = self.ask(redis::cmd("KEYS").arg(format!("{}*", self.prefix))).await;
        // Leases are of the program's own life.
        names.retain(|name| !name.contains(":instance"));
        names.sort();
        names
    }

    async fn rows(&mut self, name: &str, kind: &str) -> Vec<Vec<Cell>> {
        let pairs = |flat: Vec<Vec<u8>>| {
            flat.chunks(2).map(|pair| pair.iter().map(|bytes| Cell::Bytes(bytes.clone())).collect()).collect()
        };
        match kind {
            "string" => {
                let value: Vec<u8> = self.ask(redis::cmd("GET").arg(name)).await;
                vec![vec![Cell::Bytes(value)]]
            }
            "hash" => pairs(self.flat(redis::cmd("HGETALL").arg(name)).await),
            "zset" => pairs(self.flat(redis::cmd("ZRANGE").arg(name).arg(0).arg(-1).arg("WITHSCORES")).await),
            "list" => {
                let all: Vec<Vec<u8>> = self.ask(redis::cmd("LRANGE").arg(name).arg(0).arg(-1)).await;
                all.into_iter().map(|one| vec![Cell::Bytes(one)]).collect()
            }
            _ => {
                let all: Vec<Vec<u8>> = self.ask(redis::cmd("SMEMBERS").arg(name)).await;
                all.into_iter().map(|one| vec![Cell::Bytes(one)]).collect()
            }
        }
    }

    async fn flat(&mut self, cmd: &redis::Cmd) -> Vec<Vec<u8>> {
        self.ask(cmd).await
    }

    /// How long it lives: in milliseconds, or less than nothing for ever.
    async fn lifetime(&mut self, name: &str) -> i64 {
        self.ask(redis::cmd("PTTL").arg(name)).await
    }
}

fn columns(kind: &str) -> Vec<String> {
    let columns: &[&str] = match kind {
        "hash" => &["field", "value", "hash"],
        "zset" => &["member", "score", "zset"],
        "string" => &["value", "string"],
        "list" => &["element", "list"],
        _ => &["member", "set"],
    };
    columns.iter().map(|column| (*column).to_owned()).collect()
}

#[async_trait]
impl Dump for Keys {
    async fn read(&mut self) -> Vec<Table> {
        let mut tables = Vec::new();
        for name in self.names().await {
            let kind: String = self.ask(redis::cmd("TYPE").arg(&name)).await;
            let mut rows = self.rows(&name, &kind).await;
            let lifetime = self.lifetime(&name).await;
            // The last column is the key's lifetime, the same for all rows.
            rows.iter_mut().for_each(|row| row.push(Cell::Number(lifetime)));
            tables.push(Table { name, columns: columns(&kind), rows });
        }
        tables
    }

    async fn write(&mut self, table: &Table) -> bool {
        let (name, kind) = (&table.name, table.columns.last().unwrap().clone());
        let mut all = redis::pipe();
        all.atomic().cmd("DEL").arg(name).ignore();
        let bytes = |cell: &Cell| match cell {
            Cell::Null => Vec::new(),
            Cell::Number(number) => number.to_string().into_bytes(),
            Cell::Text(text) => text.clone().into_bytes(),
            Cell::Bytes(bytes) => bytes.clone(),
        };
        let mut lifetime = None;
        for row in &table.rows {
            let (own, cells) = row.split_last().unwrap();
            // Whoever changed one of them changed the key's.
            if let Cell::Number(number) = own
                && lifetime.is_none_or(|known| known == *number || known < 0)
            {
                lifetime = Some(*number);
            }
            match kind.as_str() {
                "hash" => all.cmd("HSET").arg(name).arg(bytes(&cells[0])).arg(bytes(&cells[1])),
                "zset" => {
                    let score = bytes(&cells[1]);
                    if std::str::from_utf8(&score).ok().and_then(|text| text.parse::<f64>().ok()).is_none() {
                        return false;
                    }
                    all.cmd("ZADD").arg(name).arg(score).arg(bytes(&cells[0]))
                }
                "string" => all.cmd("SET").arg(name).arg(bytes(&cells[0])),
                "list" => all.cmd("RPUSH").arg(name).arg(bytes(&cells[0])),
                _ => all.cmd("SADD").arg(name).arg(bytes(&cells[0])),
            };
        }
        if let Some(lifetime) = lifetime.filter(|lifetime| *lifetime > 0) {
            all.cmd("PEXPIRE").arg(name).arg(lifetime).ignore();
        }
        all.query_async::<redis::Value>(&mut self.connection).await.is_ok()
    }

    async fn restore(&mut self, tables: &[Table]) {
        for name in self.names().await {
            if !tables.iter().any(|table| table.name == name) {
                self.ask::<redis::Value>(redis::cmd("DEL").arg(name)).await;
            }
        }
        for table in tables {
            assert!(self.write(table).await, "{} goes back", table.name);
        }
    }
}
