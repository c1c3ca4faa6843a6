//! What makes a file, and a session, the same one again.
//!
//! A [`Fingerprint`] answers "has this file changed?", mostly without reading it: names, sizes and times of all the
//! files behind a session, and a hash of their bytes for when only the times moved. A [`Key`] answers "has this session
//! been stored?". Easy to get wrong: both say something about content (a hash confirms a guess), so keep them sealed.

use std::io::Read;
use std::time::UNIX_EPOCH;

use confidant_display::debug_without_content;
use ring::digest::{Context, SHA256};
use serde_json::{Map, Value};

use super::lines::unreadable;
use super::{Agent, SessionFile};
use crate::{Error, Result, regular};

/// The state of a file and of those that belong to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Names, sizes and times.
    stamp: [u8; 32],
    /// Names and bytes.
    content: [u8; 32],
}

/// Who, which session, and what was in it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    agent: Agent,
    session: String,
    content: [u8; 32],
}

impl Fingerprint {
    /// Takes the fingerprint of a file. Bytes are only read if names, sizes or times are not those of `known`.
    pub fn take(file: &SessionFile, known: Option<&Self>) -> Result<Self> {
        let pieces = file.pieces();
        let mut stamp = Context::new(&SHA256);
        for piece in &pieces {
            let metadata = std::fs::symlink_metadata(&piece.path).map_err(|_| unreadable())?;
            let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            add(&mut stamp, piece.name.as_encoded_bytes());
            stamp.update(&metadata.len().to_be_bytes());
            stamp.update(&modified.map_or(0, |at| at.as_nanos()).to_be_bytes());
        }
        let stamp = bytes(stamp);
        if let Some(known) = known.filter(|known| known.stamp == stamp) {
            return Ok(*known);
        }
        // The stamp is older than the hash and the hash older than what is imported, so a file that is being written
        // to is read once too often and never once too seldom.
        let mut content = Context::new(&SHA256);
        let mut buffer = vec![0; 64 << 10];
        for piece in &pieces {
            add(&mut content, piece.name.as_encoded_bytes());
            let mut reader = regular::open(&piece.path).map_err(|_| unreadable())?;
            let mut length = 0_u64;
            loop {
                let read = reader.read(&mut buffer).map_err(|_| unreadable())?;
                if read == 0 {
                    break;
                }
                length += read as u64;
                content.update(&buffer[..read]);
            }
            content.update(&length.to_be_bytes());
        }
        Ok(Self { stamp, content: bytes(content) })
    }

    /// Whether the bytes are the same.
    #[must_use]
    pub fn same_content(&self, other: &Self) -> bool {
        self.content == other.content
    }

    /// Its byte form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&[VERSION][..], &self.stamp, &self.content].concat()
    }

    /// From its byte form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let halves = bytes.split_first().filter(|(version, rest)| **version == VERSION && rest.len() == 64);
        let halves = halves.and_then(|(_, rest)| rest.split_first_chunk::<32>());
        let parts = halves.and_then(|(stamp, content)| Some((*stamp, <[u8; 32]>::try_from(content).ok()?)));
        let (stamp, content) = parts.ok_or_else(|| {
            Error::invalid(
                "the fingerprint of a session file is damaged",
                "drop it: the file will be read again",
            )
        })?;
        Ok(Self { stamp, content })
    }
}

impl Key {
    pub(crate) fn of(agent: Agent, session: &str, members: &Map<String, Value>) -> Self {
        let mut context = Context::new(&SHA256);
        add_members(&mut context, members);
        Self { agent, session: session.trim().to_owned(), content: bytes(context) }
    }

    /// The same under another id.
    pub(crate) fn called(self, id: &str) -> Self {
        Self { session: id.to_owned(), ..self }
    }

    /// Whose session it is.
    #[must_use]
    pub fn agent(&self) -> Agent {
        self.agent
    }

    /// The session's id.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The hash of its content, the same whatever the order of members.
    #[must_use]
    pub fn content(&self) -> [u8; 32] {
        self.content
    }

    /// One hash of all three.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        add(&mut context, self.agent.name().as_bytes());
        add(&mut context, self.session.as_bytes());
        add(&mut context, &self.content);
        bytes(context)
    }
}

// A hash of content confirms a guess of it.
debug_without_content!(Fingerprint(***));

/// Ids are personal data.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({}, ***)", self.agent.name())
    }
}

/// Members in the order of their names: whether JSON objects keep an order is a build option of the parser.
fn add_members(context: &mut Context, members: &Map<String, Value>) {
    let mut names: Vec<&String> = members.keys().collect();
    names.sort_unstable();
    context.update(b"{");
    context.update(&(names.len() as u64).to_be_bytes());
    for name in names {
        add(context, name.as_bytes());
        add_value(context, &members[name]);
    }
}

fn add_value(context: &mut Context, value: &Value) {
    match value {
        Value::Object(members) => add_members(context, members),
        Value::Array(items) => {
            context.update(b"[");
            context.update(&(items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| add_value(context, item));
        }
        Value::String(text) => {
            context.update(b"\"");
            add(context, text.as_bytes());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            context.update(b"#");
            add(context, value.to_string().as_bytes());
        }
    }
}

fn add(context: &mut Context, part: &[u8]) {
    context.update(&(part.len() as u64).to_be_bytes());
    context.update(part);
}

fn bytes(context: Context) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_and_back() {
        let fingerprint = Fingerprint { stamp: [1; 32], content: [2; 32] };
        assert_eq!(Fingerprint::from_bytes(&fingerprint.to_bytes()), Ok(fingerprint));
        for bad in [&[][..], &[1; 64], &[1; 66], &[2; 65]] {
            assert!(Fingerprint::from_bytes(bad).is_err());
        }
    }

    #[test]
    fn the_order_of_members_is_no_content() {
        let parse = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let key = |text: &str| Key::of(Agent::Generic, "s", &parse(text));
        assert_eq!(key(r#"{"a":1,"b":{"c":[],"d":"x"}}"#), key(r#"{"b":{"d":"x","c":[]},"a":1}"#));
        let different =
            [json!({"a": 1}), json!({"a": "1"}), json!({"a": [1]}), json!({"a": {"1": null}}), json!({})];
        let mut keys: Vec<_> = different.iter().map(|value| key(&value.to_string()).to_bytes()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), different.len());
    }
}
