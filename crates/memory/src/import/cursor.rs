//! Cursor: one database for all conversations, keys and JSON values. Best effort: nothing of it is documented.
//!
//! `composerData:<id>` has a conversation's name and the order of its bubbles (or, older, the bubbles themselves),
//! `bubbleId:<conversation>:<bubble>` has each. Easy to get wrong: times of single messages are not to be trusted.

use rusqlite::Connection;
use serde_json::Value;

use super::draft::{Draft, Role};
use super::lines::LONGEST_LINE;
use super::sink::Sink;
use super::sqlite::{Database, not_a_database};
use super::text::{self, member};
use super::time;
use super::{Agent, SessionFile};
use crate::Result;

/// Reads the conversations of a database.
pub(crate) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    let database = Database::open(file.path())?;
    let connection = database.connection();
    for id in conversations(connection).map_err(|_| not_a_database())? {
        if !sink.wants(&id) {
            continue;
        }
        let Ok(Some(data)) = value(connection, &format!("composerData:{id}")) else {
            sink.skip();
            continue;
        };
        let mut draft = Draft::new(Agent::Cursor);
        draft.name(&id);
        draft.sum_up(member(&data, "name").unwrap_or_default());
        draft.touch(data.get("createdAt").and_then(time::of));
        draft.touch(data.get("lastUpdatedAt").and_then(time::of));
        let told = tell(connection, &id, &data, &mut draft, sink);
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

fn conversations(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT substr(key, 14) FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' \
               ORDER BY key LIMIT 100000";
    let mut keys = connection.prepare(sql)?;
    let rows = keys.query_map([], |row| row.get::<_, String>(0))?;
    Ok(rows.filter_map(std::result::Result::ok).filter(|id| !id.is_empty()).collect())
}

fn value(connection: &Connection, key: &str) -> rusqlite::Result<Option<Value>> {
    let sql = format!(
        "SELECT CAST(value AS BLOB) FROM cursorDiskKV WHERE key = ?1 AND octet_length(value) <= {LONGEST_LINE} LIMIT 1"
    );
    let mut values = connection.prepare_cached(&sql)?;
    let mut rows = values.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let bytes: Option<Vec<u8>> = row.get(0)?;
    Ok(bytes.and_then(|bytes| confidant_redact::read_json(&bytes).ok()))
}

fn tell(
    connection: &Connection,
    id: &str,
    data: &Value,
    draft: &mut Draft,
    sink: &mut Sink<'_>,
) -> rusqlite::Result<()> {
    let list = |name: &str| data.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list("conversation").iter().for_each(|bubble| tell_bubble(bubble, draft));
    for header in list("fullConversationHeadersOnly") {
        let Some(bubble) = member(header, "bubbleId") else { continue };
        match value(connection, &format!("bubbleId:{id}:{bubble}"))? {
            Some(bubble) => tell_bubble(&bubble, draft),
            None => sink.skip(),
        }
    }
    Ok(())
}

fn tell_bubble(bubble: &Value, draft: &mut Draft) {
    let said = member(bubble, "text").unwrap_or_default();
    match bubble.get("type").and_then(Value::as_u64) {
        Some(1) => draft.user(said, None),
        Some(2) => draft.say(Role::Assistant, said, None),
        _ => {}
    }
    let Some(call) = bubble.get("toolFormerData") else { return };
    let name = member(call, "name");
    for part in ["rawArgs", "result"] {
        let Some(part) = call.get(part) else { continue };
        let parsed = part.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let part = parsed.as_ref().unwrap_or(part);
        draft.todos.see(name.unwrap_or_default(), part);
        draft.tool(name, text::of_value(part), None);
    }
}
