//! Taking over the conversations of the first system from its Redis.
//!
//! A checkpoint is opened with the master key and written as a session of ours in one write, so a run that was cut off can be made
//! again: what is there already is left alone. Nothing of it is written anywhere in the clear.

use confidant_seal::{Scope, TenantId, open_checkpoint};
use serde::{Deserialize, Serialize};

use crate::audience::Audience;
use crate::audit::Actor;
use crate::engine::{Engine, RedisSettings};
use crate::error::{Error, OpenError};
use crate::keyring::MasterKeys;
use crate::store::redis::Checkpoints;

/// What became of checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Sessions that were taken over.
    pub sessions: u64,
    /// Sessions that are here already.
    pub already: u64,
    /// Checkpoints without anything that was answered.
    pub empty: u64,
    /// Checkpoints that do not open, or are none: the master key is another, or they were changed.
    pub refused: u64,
}

/// Whether the checkpoints are under the names that sessions of ours will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the store itself: they are renamed first, to `legacy:…`.
    SetAside,
    /// Elsewhere: they are only read.
    ReadOnly,
}

/// Takes over every checkpoint on a Redis.
///
/// `progress` gets the number done so far and in all.
pub async fn import_checkpoints(
    engine: &Engine,
    from: &RedisSettings,
    tenant: &TenantId,
    keys: &MasterKeys,
    way: Way,
    progress: &(dyn Fn(u64, u64) + Send + Sync),
) -> Result<Imported, OpenError> {
    let checkpoints = Checkpoints::connect(from).await?;
    let ids = checkpoints.ids().await?;
    let mut imported = Imported::default();
    for (done, id) in (1..).zip(&ids) {
        let exchanges = match checkpoints.row(id).await? {
            Some(row) => opened(keys, id, &row),
            None => continue,
        };
        let scope = Scope::parse(tenant.clone(), id).ok();
        match (scope, exchanges) {
            (Some(_), Some(exchanges)) if exchanges.is_empty() => imported.empty += 1,
            (Some(scope), Some(exchanges)) => {
                if way == Way::SetAside {
                    checkpoints.set_aside(id).await?;
                }
                // It was said in its place, and is recalled there only.
                let audience = if scope.is_person() { Audience::Private } else { Audience::Room };
                let session = engine.session(scope, Actor::cli());
                match session.take_over(audience, &exchanges, "import").await {
                    Ok(true) => imported.sessions += 1,
                    Ok(false) => imported.already += 1,
                    Err(Error::Store(error) | Error::Unloaded(error)) => return Err(error.into()),
                    Err(_) => imported.refused += 1,
                }
            }
            _ => imported.refused += 1,
        }
        progress(done, ids.len() as u64);
    }
    Ok(imported)
}

fn opened(keys: &MasterKeys, id: &str, row: &[u8]) -> Option<Vec<(String, String)>> {
    // The first description has the bare base64, the program an object around it.
    let wrapped;
    let row = match std::str::from_utf8(row).ok()?.trim() {
        object if object.starts_with('{') => object.as_bytes(),
        bare => {
            wrapped = serde_json::json!({"_encrypted": true, "data": bare}).to_string();
            wrapped.as_bytes()
        }
    };
    let mut masters = std::iter::once(&keys.current).chain(&keys.retired);
    let json = masters.find_map(|master| open_checkpoint(master, id, row).ok())?;
    exchanges(&json)
}

/// What a checkpoint holds: at the top, or where the first system's library puts it.
#[derive(Deserialize)]
struct Checkpoint {
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    channel_values: Channels,
}

#[derive(Default, Deserialize)]
struct Channels {
    #[serde(default)]
    messages: Vec<Message>,
}

/// A message, in the ways that they were written.
#[derive(Deserialize)]
struct Message {
    #[serde(alias = "role", rename = "type", default)]
    kind: String,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    data: Option<Content>,
}

#[derive(Deserialize)]
struct Content {
    content: String,
}

/// Questions with their answers. What was never answered, and what the system itself said, is left out.
fn exchanges(json: &[u8]) -> Option<Vec<(String, String)>> {
    if json.is_empty() {
        return Some(Vec::new());
    }
    let checkpoint: Checkpoint = serde_json::from_slice(json).ok()?;
    let mut exchanges: Vec<(String, String)> = Vec::new();
    let mut asked: Option<String> = None;
    for message in checkpoint.messages.into_iter().chain(checkpoint.channel_values.messages) {
        let Some(content) = message.content.or(message.data.map(|data| data.content)) else { continue };
        match message.kind.as_str() {
            "human" | "user" => match &mut asked {
                Some(before) => *before = format!("{before}\n{content}"),
                None => asked = Some(content),
            },
            "ai" | "assistant" => match (asked.take(), exchanges.last_mut()) {
                (Some(question), _) => exchanges.push((question, content)),
                (None, Some((_, before))) => *before = format!("{before}\n{content}"),
                (None, None) => {}
            },
            _ => {}
        }
    }
    Some(exchanges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_paired_however_they_were_written() {
        let pairs = |json: serde_json::Value| exchanges(json.to_string().as_bytes());
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let seed = serde_json::json!({"messages": [
            {"type": "system", "content": "room"},
            {"type": "human", "content": "Hello"},
            {"type": "ai", "content": "Hi"},
            {"type": "ai", "content": "there"},
            {"type": "human", "content": "One"},
            {"type": "human", "content": "two"},
            {"type": "ai", "content": "Three"},
            {"type": "human", "content": "never answered"},
        ]});
        assert_eq!(pairs(seed), Some(vec![pair("Hello", "Hi\nthere"), pair("One\ntwo", "Three")]));
        let library = serde_json::json!({"v": 1, "channel_values": {"messages": [
            {"type": "human", "data": {"content": "a"}}, {"role": "assistant", "content": "b"},
        ]}});
        assert_eq!(pairs(library), Some(vec![pair("a", "b")]));
        assert_eq!(pairs(serde_json::json!({"v": 1})), Some(vec![]));
        assert_eq!((exchanges(b""), exchanges(b"[1]")), (Some(vec![]), None));
    }
}
