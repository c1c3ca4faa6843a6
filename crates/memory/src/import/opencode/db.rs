//! The database. Columns differ between versions, so those that are there are asked for.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::{Value, json};

use super::{Family, Teller, is_reverted, tell_info, tell_message, tell_part};
use crate::Result;
use crate::import::draft::Draft;
use crate::import::lines::LONGEST_LINE;
use crate::import::sink::Sink;
use crate::import::sqlite::{Database, columns, not_a_database};
use crate::import::{Agent, time};

/// Reads the sessions of a database, one after the other.
pub(super) fn read(path: &Path, sink: &mut Sink<'_>) -> Result<()> {
    let database = Database::open(path)?;
    let tables = Tables::of(database.connection()).map_err(|_| not_a_database())?;
    let family = Family::of(tables.sessions().map_err(|_| not_a_database())?);
    for id in &family.roots {
        if !sink.wants(id) {
            continue;
        }
        let mut draft = Draft::new(Agent::OpenCode);
        let told = tables.tell(id, Teller::Main, &mut draft, sink);
        let told = told.and_then(|()| {
            family
                .below(id)
                .iter()
                .try_for_each(|child| tables.tell(child, Teller::SubAgent, &mut draft, sink))
        });
        if told.is_err() || !database.is_still_the_same() {
            return Err(not_a_database());
        }
        sink.finish(draft)?;
        if sink.found() {
            break;
        }
    }
    Ok(())
}

struct Tables<'a> {
    connection: &'a Connection,
    session: Vec<String>,
    message: Vec<String>,
    has_todo: bool,
}

impl<'a> Tables<'a> {
    fn of(connection: &'a Connection) -> rusqlite::Result<Self> {
        let session = columns(connection, "session")?;
        let message = columns(connection, "message")?;
        let has_todo = columns(connection, "todo")?.iter().any(|column| column == "content");
        Ok(Self { connection, session, message, has_todo })
    }

    /// Every session with its parent.
    fn sessions(&self) -> rusqlite::Result<Vec<(String, Option<String>)>> {
        let parent = either(&self.session, &["parent_id"]);
        let created = either(&self.session, &["time_created", "created_at"]);
        let sql = format!("SELECT id, {parent} FROM session ORDER BY {created}, id LIMIT {MOST_SESSIONS}");
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))?;
        // A row whose id is no text is no session.
        Ok(rows.filter_map(std::result::Result::ok).collect())
    }

    fn tell(&self, id: &str, teller: Teller, draft: &mut Draft, sink: &mut Sink<'_>) -> rusqlite::Result<()> {
        let info = self.info(id)?;
        if teller == Teller::Main {
            tell_info(&info, draft);
        }
        let created = either(&self.message, &["time_created", "created_at"]);
        let sql = format!(
            "SELECT id, {created}, CASE WHEN octet_length(data) <= {LONGEST_LINE} THEN data END FROM message \
             WHERE session_id = ?1 ORDER BY {created}, id"
        );
        let mut messages = self.connection.prepare_cached(&sql)?;
        let mut rows = messages.query([id])?;
        while let Some(row) = rows.next()? {
            let (Ok(message), Some(data)) = (row.get::<_, String>(0), json_at(row, 2)) else {
                sink.skip();
                continue;
            };
            if is_reverted(&info, &message) {
                continue;
            }
            let said = tell_message(&data, row.get(1).ok().and_then(|at: i64| time::of(&at.into())), draft);
            self.parts(&message, |part| match part {
                Some(part) => tell_part(&part, &said, teller, draft),
                None => sink.skip(),
            })?;
        }
        if teller == Teller::Main && self.has_todo {
            self.todos(id, draft)?;
        }
        Ok(())
    }

    /// The row in the form that the files had.
    fn info(&self, id: &str) -> rusqlite::Result<Value> {
        let names = ["directory", "title", "version", "revert", "time_updated"];
        let wanted: Vec<&str> = names.iter().map(|name| either(&self.session, &[name])).collect();
        let sql = format!("SELECT {} FROM session WHERE id = ?1 LIMIT 1", wanted.join(", "));
        self.connection.prepare_cached(&sql)?.query_row([id], |row| {
            let text = |at: usize| row.get::<_, Option<String>>(at).ok().flatten();
            Ok(json!({
                "id": id, "directory": text(0), "title": text(1), "version": text(2),
                "revert": json_at(row, 3), "time": {"updated": row.get::<_, Option<i64>>(4).ok().flatten()},
            }))
        })
    }

    fn parts(&self, message: &str, mut each: impl FnMut(Option<Value>)) -> rusqlite::Result<()> {
        let sql = format!(
            "SELECT CASE WHEN octet_length(data) <= {LONGEST_LINE} THEN data END FROM part \
             WHERE message_id = ?1 ORDER BY id"
        );
        let mut parts = self.connection.prepare_cached(&sql)?;
        let mut rows = parts.query([message])?;
        while let Some(row) = rows.next()? {
            each(json_at(row, 0));
        }
        Ok(())
    }

    fn todos(&self, id: &str, draft: &mut Draft) -> rusqlite::Result<()> {
        let sql = "SELECT content, status FROM todo WHERE session_id = ?1 LIMIT 1000";
        let mut todos = self.connection.prepare_cached(sql)?;
        let rows = todos.query_map([id], |row| {
            Ok(json!({"content": row.get::<_, String>(0)?, "status": row.get::<_, Option<String>>(1)?}))
        })?;
        let list: Vec<Value> = rows.filter_map(std::result::Result::ok).collect();
        if !list.is_empty() {
            draft.todos.replace(Some(&list.into()));
        }
        Ok(())
    }
}

/// The first of these columns that is there, or nothing in its place.
fn either<'n>(columns: &[String], names: &[&'n str]) -> &'n str {
    names.iter().find(|name| columns.iter().any(|column| column == *name)).copied().unwrap_or("NULL")
}

fn json_at(row: &Row<'_>, at: usize) -> Option<Value> {
    let (ValueRef::Text(bytes) | ValueRef::Blob(bytes)) = row.get_ref(at).ok()? else { return None };
    confidant_redact::read_json(bytes).ok()
}

const MOST_SESSIONS: usize = 1_000_000;
