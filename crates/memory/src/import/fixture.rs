//! The seed's fixture form: one JSON object, from id to session.

use std::path::Path;

use serde_json::{Map, Value};

use super::lines::whole_json;
use super::sink::Sink;
use super::{Agent, SessionFile};
use crate::{Error, Result, Session};

/// Reads the sessions of a map. An entry that is no session, or that has another id than its name, is skipped.
pub(crate) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    let Some(Value::Object(sessions)) = whole_json(file.path())? else {
        sink.skip();
        return Ok(());
    };
    for (id, session) in sessions {
        match session {
            Value::Object(members) if agrees(&id, &members) => {
                if sink.wants(&id) {
                    sink.whole(Agent::Fixture, &id, members)?;
                }
            }
            _ => sink.skip(),
        }
    }
    Ok(())
}

/// One session of a map.
pub(crate) fn find(path: &Path, id: &str) -> Result<Option<Session>> {
    let Some(Value::Object(mut sessions)) = whole_json(path)? else {
        return Err(Error::invalid(
            "the file of fixtures is not a JSON object from session id to session",
            "correct it, or remove it from the configuration",
        ));
    };
    match sessions.remove(id) {
        None => Ok(None),
        Some(Value::Object(members)) => Session::new(id, members).map(Some),
        Some(_) => Err(Error::invalid(
            "the fixture of this session is not a JSON object",
            "correct the file of fixtures",
        )),
    }
}

/// Whether a value looks like such a map.
pub(crate) fn is_map(value: &Value) -> bool {
    let Some(sessions) = value.as_object().filter(|sessions| !sessions.is_empty()) else { return false };
    sessions.values().all(|session| {
        let has = |name: &str| session.get(name).is_some();
        session.is_object() && (has("session_id") || has("tool_name")) && (has("summary") || has("messages"))
    })
}

fn agrees(id: &str, members: &Map<String, Value>) -> bool {
    members.get("session_id").is_none_or(|inner| inner.is_null() || inner.as_str() == Some(id))
}
