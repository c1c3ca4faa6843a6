//! A whole store, row by row, for moving it to another back end.
//!
//! ```text
//! one store ─▶ accounts ─▶ rows of each account, a page at a time ─▶ the other store
//!           └▶ codes, slots, failed logins ────────────────────────▶
//! ```
//!
//! Rows go over as they are: ids, revisions, sealed bytes. Only the numbers by which a back end joins its own tables are made
//! anew. What a table is, is said once, and both back ends make their statements from it.
//!
//! A copy that was cut off goes on: what it has brought over is the beginning of what there is, row by row in the same order.
//! Anything else at the destination is somebody's, and nothing is copied.
//!
//! Easy to get wrong: copying while somebody writes. Each page is one consistent view, and the pages together are not: stop
//! every gateway first.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use async_trait::async_trait;
use confidant_display::debug_without_content;

use super::{Result, StoreError};

/// Copies everything into a store that has nothing, or what an earlier copy of the same has brought there. Returns how many rows
/// there are. [`StoreError::NotEmpty`] if anything else is in it; then nothing is written.
pub async fn copy(from: &dyn Copied, to: &dyn Copied) -> Result<u64> {
    let (mut rows, mut place) = (0, Place::default());
    let (mut there, mut is_beginning) = (Place::default(), true);
    while let Some(mut part) = next(from, &mut place).await? {
        rows += u64::try_from(part.rows.len()).unwrap_or(u64::MAX);
        if is_beginning && let Some(brought) = next(to, &mut there).await? {
            let is_part = (brought.table, &brought.account) == (part.table, &part.account);
            if !is_part || !part.rows.starts_with(&brought.rows) {
                return Err(StoreError::NotEmpty);
            }
            part.rows.drain(..brought.rows.len());
            if part.rows.is_empty() {
                continue;
            }
        }
        // From here on, nothing may be there.
        if is_beginning && next(to, &mut there).await?.is_some() {
            return Err(StoreError::NotEmpty);
        }
        is_beginning = false;
        to.put_rows(&part).await?;
    }
    if is_beginning && next(to, &mut there).await?.is_some() {
        return Err(StoreError::NotEmpty);
    }
    Ok(rows)
}

/// A store that can be copied.
#[async_trait]
pub trait Copied: Send + Sync + std::fmt::Debug {
    /// Ids of accounts after this one, in order, some of them; none at the end.
    async fn accounts_after(&self, after: &str) -> Result<Vec<String>>;
    /// Rows of a table after this key, in the order of their keys, some of them; none at the end. The account is empty where
    /// the table's rows belong to nobody.
    async fn rows(&self, table: &'static Table, account: &str, after: &[Cell]) -> Result<Vec<Vec<Cell>>>;
    /// Writes rows; all of them, or none.
    async fn put_rows(&self, part: &Part) -> Result<()>;
}

/// Rows of one table, and of one account if the table's rows have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The table.
    pub table: &'static Table,
    /// Whose; empty for nobody.
    pub account: String,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A value of a row.
#[derive(Clone, PartialEq, Eq)]
pub enum Cell {
    /// None.
    Nothing,
    /// A number; 0 and 1 for no and yes.
    Number(i64),
    /// An id or a name.
    Text(String),
    /// A tag, a hash, or something sealed.
    Bytes(Vec<u8>),
}

debug_without_content!(Cell);

/// Where a copy is: the account, the table, and the last key.
#[derive(Debug, Default)]
pub(crate) struct Place {
    accounts: Vec<String>,
    at: usize,
    has_ended: bool,
    table: usize,
    after: Option<Vec<Cell>>,
}

/// The next rows that there are.
pub(crate) async fn next(from: &dyn Copied, place: &mut Place) -> Result<Option<Part>> {
    loop {
        if !place.has_ended && place.at >= place.accounts.len() {
            let last = place.accounts.last().cloned().unwrap_or_default();
            (place.accounts, place.at) = (from.accounts_after(&last).await?, 0);
            place.has_ended = place.accounts.is_empty();
        }
        let account = place.accounts.get(place.at).cloned().unwrap_or_default();
        let mut tables = TABLES.iter().filter(|table| (table.of == Of::Nobody) == place.has_ended);
        let Some(table) = tables.nth(place.table) else {
            if place.has_ended {
                return Ok(None);
            }
            (place.at, place.table) = (place.at + 1, 0);
            continue;
        };
        let is_single = table.keys().is_empty();
        let after = place.after.take();
        let rows = match &after {
            Some(_) if is_single => Vec::new(),
            Some(after) => from.rows(table, &account, after).await?,
            None => from.rows(table, &account, &table.least()).await?,
        };
        match rows.last() {
            Some(last) => {
                place.after = Some(last.iter().take(table.keys().len()).cloned().collect());
                return Ok(Some(Part { table, account, rows }));
            }
            None => place.table += 1,
        }
    }
}

/// A table: its rows as they are in every back end.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub(crate) name: &'static str,
    pub(crate) of: Of,
    /// What orders the rows of one owner, or of one chat.
    pub(crate) key: &'static [(&'static str, KeyType)],
    /// The rest.
    pub(crate) columns: &'static [&'static str],
    /// How many rows are read at once.
    pub(crate) page: i64,
}

/// Whose the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// It is the table of accounts.
    Accounts,
    /// An account's.
    Account,
    /// A chat's. The chat's id is the first value of a row.
    Chat,
    /// A chat's, and each row has an envelope in another table. It is the last value of a row.
    Items,
    /// Nobody's, or somebody's who may be nobody.
    Nobody,
}

/// The type of a column of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyType {
    Number,
    Text,
    Bytes,
}

impl Table {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The names of a row's values, in their order.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static str> {
        let envelope = (self.of == Of::Items).then_some("envelope");
        self.keys()
            .into_iter()
            .map(|(name, _)| name)
            .chain(self.columns.iter().copied())
            .chain(envelope)
            .collect()
    }

    /// What orders the rows of one owner.
    fn keys(&self) -> Vec<(&'static str, KeyType)> {
        let chat = matches!(self.of, Of::Chat | Of::Items).then_some(("chat", KeyType::Text));
        chat.into_iter().chain(self.key.iter().copied()).collect()
    }

    /// A key before all others.
    fn least(&self) -> Vec<Cell> {
        let least = |(_, kind)| match kind {
            KeyType::Number => Cell::Number(i64::MIN),
            KeyType::Text => Cell::Text(String::new()),
            KeyType::Bytes => Cell::Bytes(Vec::new()),
        };
        self.keys().into_iter().map(least).collect()
    }
}

/// How a back end writes its statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Accounts and chats have numbers.
    Sqlite,
    /// Chats have numbers, and every row names its account.
    Postgres,
}

/// A statement, and what its arguments are: 0 is the account, others are values of the row, the first one 1.
#[derive(Debug)]
pub(crate) struct Statement {
    dialect: Dialect,
    pub(crate) sql: String,
    pub(crate) args: Vec<usize>,
}

impl Statement {
    fn new(dialect: Dialect) -> Self {
        Self { dialect, sql: String::new(), args: Vec::new() }
    }

    /// The next argument.
    fn arg(&mut self, what: usize) -> String {
        self.args.push(what);
        let sign = if self.dialect == Dialect::Sqlite { '?' } else { '$' };
        format!("{sign}{}", self.args.len())
    }

    /// How a row names the account that is an argument.
    fn account(&mut self, what: usize) -> String {
        let id = self.arg(what);
        match self.dialect {
            Dialect::Sqlite => format!("(SELECT n FROM accounts WHERE account = {id})"),
            Dialect::Postgres => id,
        }
    }

    fn push(&mut self, text: &str) {
        self.sql.push_str(text);
    }

    /// Rows of an owner after a key, whose values are the arguments from 1 on; the last argument is the limit.
    pub(crate) fn select(table: &Table, dialect: Dialect) -> Self {
        let mut select = Self::new(dialect);
        let keys = table.keys();
        let column = |name: &str| match (table.of, name, dialect) {
            (Of::Chat | Of::Items, "chat", _) => "c.chat".to_owned(),
            (Of::Nobody, "account", Dialect::Sqlite) => {
                "(SELECT a.account FROM accounts AS a WHERE a.n = t.account)".to_owned()
            }
            _ => format!("t.{name}"),
        };
        let keyed: Vec<String> = keys.iter().map(|(name, _)| column(name)).collect();
        let all = keyed.iter().cloned().chain(table.columns.iter().map(|name| column(name)));
        let mut all: Vec<String> = all.collect();
        if table.of == Of::Items {
            all.push("e.envelope".to_owned());
        }
        let _ = write!(select.sql, "SELECT {} FROM {} AS t", all.join(", "), table.name);
        match (table.of, dialect) {
            (Of::Items, Dialect::Sqlite) => select.push(" JOIN envelopes AS e ON e.n = t.envelope"),
            (Of::Items, Dialect::Postgres) => {
                select.push(" JOIN envelopes AS e ON e.chat = t.chat AND e.item = t.item");
            }
            _ => {}
        }
        if matches!(table.of, Of::Chat | Of::Items) {
            select.push(" JOIN chats AS c ON c.n = t.chat");
        }
        let whose = match table.of {
            Of::Nobody => "true".to_owned(),
            Of::Accounts => format!("t.account = {}", select.arg(0)),
            Of::Account => format!("t.account = {}", select.account(0)),
            Of::Chat | Of::Items => format!("c.account = {}", select.account(0)),
        };
        let _ = write!(select.sql, " WHERE {whose}");
        if !keyed.is_empty() {
            let after: Vec<String> = (1..=keyed.len()).map(|at| select.arg(at)).collect();
            let (keyed, after) = (keyed.join(", "), after.join(", "));
            let _ = write!(select.sql, " AND ({keyed}) > ({after}) ORDER BY {keyed}");
        }
        let _ = write!(select.sql, " LIMIT {}", table.page);
        select
    }

    /// One row; its values are the arguments from 1 on.
    pub(crate) fn insert(table: &Table, dialect: Dialect) -> Vec<Self> {
        let keys = table.keys();
        let names = || keys.iter().map(|(name, _)| *name).chain(table.columns.iter().copied()).zip(1..);
        let of_chat = matches!(table.of, Of::Chat | Of::Items);
        let mut rows = Self::new(dialect);
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        match (table.of, dialect) {
            (Of::Nobody, _) => {}
            (Of::Accounts, _) => {
                columns.push("account");
                values.push(rows.arg(0));
            }
            (Of::Account, _) | (_, Dialect::Postgres) => {
                columns.push("account");
                values.push(rows.account(0));
            }
            (Of::Chat | Of::Items, Dialect::Sqlite) => {}
        }
        for (name, at) in names() {
            columns.push(name);
            values.push(match name {
                "chat" if of_chat => rows.chat(at),
                "account" => rows.account(at),
                _ => rows.arg(at),
            });
        }
        let envelope = keys.len() + table.columns.len() + 1;
        let mut statements = Vec::new();
        if table.of == Of::Items {
            let mut apart = Self::new(dialect);
            let chat = apart.chat(1);
            if dialect == Dialect::Sqlite {
                let sealed = apart.arg(envelope);
                apart.sql = format!("INSERT INTO envelopes (chat, envelope) VALUES ({chat}, {sealed})");
                columns.push("envelope");
                values.push("last_insert_rowid()".to_owned());
            } else {
                let (account, item, sealed) = (apart.arg(0), apart.arg(2), apart.arg(envelope));
                apart.sql = format!(
                    "INSERT INTO envelopes (chat, account, item, envelope) VALUES ({chat}, {account}, {item}, {sealed})"
                );
            }
            statements.push(apart);
        }
        rows.sql =
            format!("INSERT INTO {} ({}) VALUES ({})", table.name, columns.join(", "), values.join(", "));
        statements.push(rows);
        // In one back end the item names its envelope, in the other the envelope its item.
        if dialect == Dialect::Postgres {
            statements.reverse();
        }
        statements
    }

    /// How a row names the chat whose id is an argument.
    fn chat(&mut self, what: usize) -> String {
        let account = self.account(0);
        let id = self.arg(what);
        format!("(SELECT n FROM chats WHERE account = {account} AND chat = {id})")
    }
}

const fn table(
    name: &'static str,
    of: Of,
    key: &'static [(&'static str, KeyType)],
    columns: &'static [&'static str],
    page: i64,
) -> Table {
    Table { name, of, key, columns, page }
}

const RING: &[(&str, KeyType)] =
    &[("container", KeyType::Text), ("kind", KeyType::Number), ("n", KeyType::Number)];
const SHELF: &[(&str, KeyType)] = &[("shelf", KeyType::Number)];
const REV: &[(&str, KeyType)] = &[("rev", KeyType::Number)];
const ITEM: &[(&str, KeyType)] = &[("item", KeyType::Text)];
/// Rows of a page; and of one whose rows may be large.
const SMALL: i64 = 500;
const LARGE: i64 = 8;

/// Every table, those first that others refer to.
pub(crate) static TABLES: [Table; 27] = [
    table(
        "accounts",
        Of::Accounts,
        &[],
        &["login", "rev", "generation", "epoch", "seq", "dropped", "frozen_until", "erasing", "record"],
        1,
    ),
    table("credentials", Of::Account, &[("tag", KeyType::Bytes)], &[], SMALL),
    table("rings", Of::Account, RING, &["kid", "subs", "born", "sealed"], SMALL),
    table("rotations", Of::Account, &[], &["wrap"], 1),
    table("staged", Of::Account, RING, &["kid", "subs", "sealed"], SMALL),
    table("staged_floors", Of::Account, SHELF, &["envelope"], LARGE),
    table("floors", Of::Account, SHELF, &["rev", "hash", "envelope"], LARGE),
    table("manifests", Of::Account, &[], &["rev", "chain", "hash", "envelope"], 1),
    table("list_steps", Of::Account, REV, &["live", "chain", "hash"], SMALL),
    table("data", Of::Account, &[("kind", KeyType::Text), ("name", KeyType::Text)], &["rev", "envelope"], 64),
    table(
        "chats",
        Of::Account,
        &[("chat", KeyType::Text)],
        &[
            "rev",
            "title_v",
            "draft_v",
            "created_at",
            "updated_at",
            "opened_at",
            "count",
            "gone",
            "last_seq",
            "chain",
            "hash",
            "head",
        ],
        64,
    ),
    table("deleted_chats", Of::Account, &[("chat", KeyType::Text)], &[], SMALL),
    table("items", Of::Items, ITEM, &["hash", "rev", "put_at", "seq", "bytes"], LARGE),
    table("steps", Of::Chat, REV, &["live", "chain", "hash"], SMALL),
    table("tombstones", Of::Chat, ITEM, &["removed_at"], SMALL),
    table("drafts", Of::Chat, &[], &["envelope"], LARGE),
    table(
        "letters",
        Of::Account,
        &[("chat", KeyType::Text), ("turn", KeyType::Text)],
        &["reply", "left_at", "letter", "more"],
        LARGE,
    ),
    table(
        "marks",
        Of::Account,
        &[("chat", KeyType::Text), ("turn", KeyType::Text)],
        &["asked_at", "look_at", "held", "sealed"],
        SMALL,
    ),
    table("safety", Of::Account, &[("chat", KeyType::Text)], &["rev", "sealed"], SMALL),
    table(
        "snapshots",
        Of::Account,
        &[("id", KeyType::Bytes)],
        &["chat", "expires_at", "line", "content"],
        LARGE,
    ),
    table("feed", Of::Account, &[("seq", KeyType::Number)], &["what", "name"], SMALL),
    table(
        "devices",
        Of::Account,
        &[("device", KeyType::Text)],
        &["label", "created_at", "seen_day", "cursor"],
        SMALL,
    ),
    table(
        "sessions",
        Of::Account,
        &[("id", KeyType::Bytes)],
        &["secret", "device", "epoch", "created_at", "expires_at", "seen_day"],
        SMALL,
    ),
    table(
        "codes",
        Of::Nobody,
        &[("kind", KeyType::Number), ("key", KeyType::Bytes)],
        &["account", "login", "carries", "expires_at"],
        64,
    ),
    table(
        "pairings",
        Of::Nobody,
        &[("id", KeyType::Bytes)],
        &["account", "offer", "answer", "expires_at"],
        64,
    ),
    table(
        "attempts",
        Of::Nobody,
        &[("login", KeyType::Bytes), ("network", KeyType::Bytes)],
        &["failures", "last"],
        SMALL,
    ),
    table("unscrubbed", Of::Nobody, &[("id", KeyType::Bytes)], &[], SMALL),
];
