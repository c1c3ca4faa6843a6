//! Every row as it is, for a copy of the whole store.

use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params, params_from_iter};

use super::super::copy::{Cell, Copied, Dialect, Part, Statement, Table};
use super::super::{Result, StoreError};
use super::rows::all;
use super::{NAME, SqliteChats, Work};

#[async_trait]
impl Copied for SqliteChats {
    async fn accounts_after(&self, after: &str) -> Result<Vec<String>> {
        let after = after.to_owned();
        self.read_with(move |c| {
            let sql = "SELECT account FROM accounts WHERE account > ?1 ORDER BY account LIMIT 500";
            Ok(all(c, sql, params![after], |row| row.get(0))?)
        })
        .await
    }

    async fn rows(&self, table: &'static Table, account: &str, after: &[Cell]) -> Result<Vec<Vec<Cell>>> {
        let values = values(account, after);
        self.read_with(move |c| {
            let select = Statement::select(table, Dialect::Sqlite);
            let args = select.args.iter().map(|at| &values[*at]);
            let rows = all(c, &select.sql, params_from_iter(args), |row| {
                (0..row.as_ref().column_count()).map(|at| Ok(cell(row.get_ref(at)?))).collect()
            })?;
            let rows: Vec<Option<Vec<Cell>>> = rows;
            // A value that we never write.
            rows.into_iter().collect::<Option<_>>().ok_or(StoreError::Corrupt(NAME).into())
        })
        .await
    }

    async fn put_rows(&self, part: &Part) -> Result<()> {
        let Part { table, account, rows } = part.clone();
        self.write_with(move |c| put(c, table, &account, &rows)).await
    }
}

fn put(c: &Connection, table: &Table, account: &str, rows: &[Vec<Cell>]) -> Work<()> {
    let inserts = Statement::insert(table, Dialect::Sqlite);
    for row in rows {
        let values = values(account, row);
        for insert in &inserts {
            let args = insert.args.iter().map(|at| &values[*at]);
            c.prepare_cached(&insert.sql)?.execute(params_from_iter(args))?;
        }
    }
    Ok(())
}

/// The account, then the values of a row or key.
fn values(account: &str, cells: &[Cell]) -> Vec<Cell> {
    std::iter::once(Cell::Text(account.to_owned())).chain(cells.iter().cloned()).collect()
}

fn cell(value: ValueRef<'_>) -> Option<Cell> {
    match value {
        ValueRef::Null => Some(Cell::Nothing),
        ValueRef::Integer(number) => Some(Cell::Number(number)),
        ValueRef::Text(text) => std::str::from_utf8(text).ok().map(|text| Cell::Text(text.to_owned())),
        ValueRef::Blob(bytes) => Some(Cell::Bytes(bytes.to_vec())),
        ValueRef::Real(_) => None,
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Nothing => ToSqlOutput::Owned(Value::Null),
            Self::Number(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}
