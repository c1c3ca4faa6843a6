//! Every row as it is, for a copy of the whole store. Rows of an account are read and written for that account, as always;
//! the others by policies that are for copies only.

use std::error::Error;
use std::sync::LazyLock;

use async_trait::async_trait;
use bytes::BytesMut;
use confidant_postgres::{Ask, Transaction};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::super::Result;
use super::super::copy::{Cell, Copied, Dialect, Of, Part, Statement, TABLES, Table};
use super::rows::{all, damaged, get, parts, whose};
use super::{PostgresChats, Work, transact};

/// The statements of each table: one that reads, and those that write a row. Made once, since connections remember them.
static STATEMENTS: LazyLock<Vec<(Statement, Vec<Statement>)>> = LazyLock::new(|| {
    let both =
        |table| (Statement::select(table, Dialect::Postgres), Statement::insert(table, Dialect::Postgres));
    TABLES.iter().map(both).collect()
});

const COPYING: &str = "SELECT set_config('confidant.task', 'copy', true)";

#[async_trait]
impl Copied for PostgresChats {
    async fn accounts_after(&self, after: &str) -> Result<Vec<String>> {
        transact!(self, Reading, |tx| accounts_after(tx, after))
    }

    async fn rows(&self, table: &'static Table, account: &str, after: &[Cell]) -> Result<Vec<Vec<Cell>>> {
        transact!(self, Reading, |tx| rows(tx, table, account, after))
    }

    async fn put_rows(&self, part: &Part) -> Result<()> {
        transact!(self, Writing, |tx| put_rows(tx, part))
    }
}

async fn accounts_after(tx: &mut Transaction<'_>, after: &str) -> Work<Vec<String>> {
    let [found] = parts(tx.finish(&[Ask("SELECT unnest(accounts_after($1))", &[&after])]).await?)?;
    all(&found, |row| get(row, 0))
}

/// For whom a part is read or written.
fn owner<'a>(table: &Table, account: &'a [&'a (dyn ToSql + Sync)]) -> Ask<'a> {
    if table.of == Of::Nobody { Ask(COPYING, &[]) } else { whose(account) }
}

fn statements(table: &Table) -> Work<&'static (Statement, Vec<Statement>)> {
    let at = TABLES.iter().position(|other| other == table).ok_or_else(damaged)?;
    STATEMENTS.get(at).ok_or_else(damaged)
}

/// The arguments of a statement.
fn args<'a>(statement: &Statement, account: &'a &'a str, cells: &'a [Cell]) -> Vec<&'a (dyn ToSql + Sync)> {
    let arg = |at: &usize| -> &'a (dyn ToSql + Sync) {
        match at.checked_sub(1).and_then(|at| cells.get(at)) {
            Some(cell) => cell,
            None => account,
        }
    };
    statement.args.iter().map(arg).collect()
}

async fn rows(
    tx: &mut Transaction<'_>,
    table: &Table,
    account: &str,
    after: &[Cell],
) -> Work<Vec<Vec<Cell>>> {
    let select = &statements(table)?.0;
    let args = args(select, &account, after);
    let [_, found] = parts(tx.finish(&[owner(table, &[&account]), Ask(&select.sql, &args)]).await?)?;
    all(&found, |row| (0..row.len()).map(|at| get(row, at)).collect())
}

async fn put_rows(tx: &mut Transaction<'_>, part: &Part) -> Work<()> {
    let (account, inserts) = (part.account.as_str(), &statements(part.table)?.1);
    let rows: Vec<(&'static str, Vec<&(dyn ToSql + Sync)>)> = part
        .rows
        .iter()
        .flat_map(|row| inserts.iter().map(|insert| (insert.sql.as_str(), args(insert, &account, row))))
        .collect();
    let whose: [&(dyn ToSql + Sync); 1] = [&account];
    let mut asks = vec![owner(part.table, &whose)];
    asks.extend(rows.iter().map(|(sql, args)| Ask(sql, args)));
    tx.finish(&asks).await?;
    Ok(())
}

type Odd = Box<dyn Error + Sync + Send>;

impl ToSql for Cell {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Odd> {
        match self {
            Self::Nothing => Ok(IsNull::Yes),
            Self::Number(number) if *ty == Type::BOOL => (*number != 0).to_sql(ty, out),
            Self::Number(number) => number.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::BOOL, Type::INT8, Type::TEXT, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> std::result::Result<Self, Odd> {
        Ok(match *ty {
            Type::BOOL => Self::Number(i64::from(bool::from_sql(ty, raw)?)),
            Type::INT8 => Self::Number(i64::from_sql(ty, raw)?),
            Type::BYTEA => Self::Bytes(raw.to_vec()),
            _ => Self::Text(String::from_sql(ty, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Self, Odd> {
        Ok(Self::Nothing)
    }

    fn accepts(ty: &Type) -> bool {
        <Self as ToSql>::accepts(ty)
    }
}
