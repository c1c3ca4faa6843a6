//! The stores as the stranger sees them: tables of cells that can be read and written.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rusqlite::Connection;
use tokio_postgres::{Client, NoTls};

/// What stands in one place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Something else of the same kind.
    pub(crate) fn changed(&self) -> Self {
        match self {
            Self::Null => Self::Number(1_000_003),
            Self::Number(number) => Self::Number(number.wrapping_add(1_000_003)),
            Self::Text(text) => match text.parse::<i64>() {
                Ok(number) => Self::Text((number + 1_000_003).to_string()),
                // The last digit of a hexadecimal text, or the last letter of another.
                Err(_) => Self::Text(match text.strip_suffix('0') {
                    Some(rest) => format!("{rest}1"),
                    None => format!("{}0", &text[..text.len().saturating_sub(1)]),
                }),
            },
            Self::Bytes(bytes) => {
                let mut bytes = bytes.clone();
                match bytes.last_mut() {
                    Some(last) => *last ^= 1,
                    None => bytes.push(0),
                }
                Self::Bytes(bytes)
            }
        }
    }
}

/// All of one table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// What tables that are made alike share: of a key of a Redis, what its name says before whose it is.
    pub(crate) fn kind(&self) -> String {
        let parts: Vec<&str> = self.name.split(':').collect();
        match parts.as_slice() {
            [_, first, second, .., last] if parts.len() > 3 => {
                let index = if *last == "index" { "index" } else { "" };
                format!("{first} {second} {} {} {index}", parts.len(), self.columns.last().unwrap())
            }
            _ => self.name.clone(),
        }
    }
}

/// A store, past the program.
#[async_trait]
pub(crate) trait Dump: Send {
    async fn read(&mut self) -> Vec<Table>;
    /// Makes a table what is given; false if the store does not take that.
    async fn write(&mut self, table: &Table) -> bool;
    /// Makes everything what is given.
    async fn restore(&mut self, tables: &[Table]) {
        for table in tables {
            assert!(self.write(table).await, "{} goes back", table.name);
        }
    }
}

/// The tables of `confidant.db` and `keyring.db`.
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn open(&self, file: &str) -> Connection {
        Connection::open(self.folder.join(file)).unwrap()
    }
}

#[async_trait]
impl Dump for Files {
    async fn read(&mut self) -> Vec<Table> {
        let mut tables = Vec::new();
        for file in ["confidant.db", "keyring.db"] {
            let db = self.open(file);
            let mut names = db
                .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
                .unwrap();
            let names: Vec<String> =
                names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            for name in names {
                let mut all = db.prepare(&format!("SELECT * FROM {name}")).unwrap();
                let columns: Vec<String> = all.column_names().into_iter().map(str::to_owned).collect();
                let rows = all.query_map([], |row| (0..columns.len()).map(|at| cell(row, at)).collect());
                let rows = rows.unwrap().map(Result::unwrap).collect();
                tables.push(Table { name: format!("{file}.{name}"), columns, rows });
            }
        }
        tables
    }

    async fn write(&mut self, table: &Table) -> bool {
        let (file, name) = table.name.rsplit_once('.').unwrap();
        let mut db = self.open(file);
        let tx = db.transaction().unwrap();
        tx.execute(&format!("DELETE FROM {name}"), []).unwrap();
        let places = (1..=table.columns.len()).map(|at| format!("?{at}")).collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO {name} ({}) VALUES ({places})", table.columns.join(", "));
        for row in &table.rows {
            if tx.execute(&sql, rusqlite::params_from_iter(row)).is_err() {
                return false;
            }
        }
        tx.commit().is_ok()
    }
}

fn cell(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Cell> {
    use rusqlite::types::ValueRef;
    Ok(match row.get_ref(at)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Number(number),
        ValueRef::Real(number) => Cell::Text(number.to_string()),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    })
}

impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, Value};
        Ok(ToSqlOutput::Owned(match self {
            Self::Null => Value::Null,
            Self::Number(number) => Value::Integer(*number),
            Self::Text(text) => Value::Text(text.clone()),
            Self::Bytes(bytes) => Value::Blob(bytes.clone()),
        }))
    }
}

/// The tables of a schema, by a role that no row-level security holds. Cells are texts.
pub(crate) struct Schema {
    client: Client,
    schema: String,
}

impl Schema {
    pub(crate) async fn new(url: &str, schema: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self { client, schema: schema.to_owned() }
    }

    async fn columns(&self, table: &str) -> Vec<(String, String)> {
        let sql = "SELECT column_name::text, udt_name::text FROM information_schema.columns
                   WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position";
        let rows = self.client.query(sql, &[&self.schema, &table]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

/// What belongs to the program's own life, not to what it keeps.
const OWN: [&str; 2] = ["migrations", "instances"];

#[async_trait]
impl Dump for Schema {
    async fn read(&mut self) -> Vec<Table> {
        let sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = $1 ORDER BY tablename";
        let names = self.client.query(sql, &[&self.schema]).await.unwrap();
        let mut tables = Vec::new();
        for name in names.iter().map(|row| row.get::<_, String>(0)) {
            if OWN.contains(&name.as_str()) {
                continue;
            }
            let columns = self.columns(&name).await;
            let texts =
                columns.iter().map(|(column, _)| format!("{column}::text")).collect::<Vec<_>>().join(", ");
            let sql = format!("SELECT {texts} FROM {}.{name}", self.schema);
            let rows = self.client.query(&sql, &[]).await.unwrap();
            let cell = |text: Option<String>| text.map_or(Cell::Null, Cell::Text);
            let rows =
                rows.iter().map(|row| (0..columns.len()).map(|at| cell(row.get(at))).collect()).collect();
            let columns = columns.into_iter().map(|(column, _)| column).collect();
            tables.push(Table { name, columns, rows });
        }
        tables
    }

    async fn write(&mut self, table: &Table) -> bool {
        let types = self.columns(&table.name).await;
        let places = types
            .iter()
            .enumerate()
            .map(|(at, (_, kind))| format!("${}::text::{kind}", at + 1))
            .collect::<Vec<_>>()
            .join(", ");
        let sql = format!(
            "INSERT INTO {}.{} ({}) OVERRIDING SYSTEM VALUE VALUES ({places})",
            self.schema,
            table.name,
            table.columns.join(", ")
        );
        let transaction = self.client.transaction().await.unwrap();
        // What refers to the table is checked by the program, not here.
        transaction.batch_execute("SET LOCAL session_replication_role = replica").await.unwrap();
        transaction.batch_execute(&format!("DELETE FROM {}.{}", self.schema, table.name)).await.unwrap();
        for row in &table.rows {
            let cells: Vec<Option<String>> = row
                .iter()
                .map(|cell| match cell {
                    Cell::Null => None,
                    Cell::Number(number) => Some(number.to_string()),
                    Cell::Text(text) => Some(text.clone()),
                    Cell::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                })
                .collect();
            let args: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
                cells.iter().map(|cell| cell as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
            if transaction.execute(&sql, &args).await.is_err() {
                return false;
            }
        }
        transaction.commit().await.is_ok()
    }
}
