//! A session as it comes in: whatever an agent did, as JSON.
//!
//! The form is the one that seed documents call `raw_session`: `session_id`, `timestamp`, `tool_name`, `success`,
//! `summary`, `error_message`, `output`, `tags`, and, beyond those, `messages` of `{role, content, timestamp?, tool?}`
//! (role: `user`, `assistant`, `tool`, `system`). Unknown members are kept and treated as text. Nothing here is safe to
//! write anywhere: a [`Session`] only becomes storable through the [`Gate`](crate::Gate).

use confidant_display::debug_without_content;
use serde_json::{Map, Value};

use crate::{Error, Result, private};

/// An unredacted session.
#[derive(Clone, PartialEq)]
pub struct Session {
    id: String,
    members: Map<String, Value>,
}

impl Session {
    /// The session with this id and these members, without its [private parts](private). `session_id` among them must agree
    /// or be missing.
    pub fn new(id: &str, members: Map<String, Value>) -> Result<Self> {
        let id = check_id(id)?;
        let members = private::without_in(members);
        match members.get("session_id") {
            None | Some(Value::Null) => {}
            Some(Value::String(inner)) if *inner == id => {}
            Some(_) => {
                return Err(Error::invalid(
                    "the session's own session_id does not match the request's session_id",
                    "leave one out, or make them the same",
                ));
            }
        }
        Ok(Self { id, members })
    }

    /// The same under another id.
    pub(crate) fn called(mut self, id: &str) -> Result<Self> {
        self.members.remove("session_id");
        Self::new(id, self.members)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its members, `session_id` not necessarily among them.
    #[must_use]
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }
}

// A session's content is nobody's business.
debug_without_content!(Session(***));

/// Accepts an id that can be a key and a line of output.
pub fn check_id(id: &str) -> Result<String> {
    let id = id.trim();
    let good = !id.is_empty() && id.len() <= LONGEST_ID && !id.chars().any(char::is_control);
    if good {
        return Ok(id.to_owned());
    }
    Err(Error::invalid(
        format!("session_id must have 1 to {LONGEST_ID} bytes and no control characters"),
        "use the id that the agent gave its session",
    ))
}

const LONGEST_ID: usize = 512;
