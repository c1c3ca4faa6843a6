//! Taking over the conversations of the first system from its Redis.
//!
//! A checkpoint is opened with the master key and written as a session of ours in one write, so a run that was cut off can be made
//! again: what is there already is left alone. Nothing of it is written anywhere in the clear.

pub(crate) mod messages;
mod printed;

use confidant_seal::{Scope, TenantId, open_checkpoint};
use serde::Serialize;

use crate::audience::Audience;
use crate::audit::Actor;
use crate::engine::{Engine, RedisSettings};
use crate::error::{Error, OpenError};
use crate::keyring::MasterKeys;
use crate::session::Session;
use crate::store::redis::Checkpoints;
use messages::{Conversation, conversation};

/// What became of checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Sessions that were taken over.
    pub sessions: u64,
    /// Sessions that are here already.
    pub already: u64,
    /// Checkpoints without anything that was answered.
    pub empty: u64,
    /// Of the sessions, those of which something that was never answered was left out. On the store itself it stays beside them.
    pub partly: u64,
    /// Checkpoints that do not open, or are none: the master key is another, or they were changed.
    pub refused: u64,
    /// Checkpoints that open and are not understood: of a shape that nobody has told us, or of no session that we know.
    pub unknown: u64,
}

/// Whether the checkpoints are under the names that sessions of ours will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the store itself: they are renamed first, to `legacy:…`, so that a session can have their name, and removed once a
    /// session holds all that they say. Those that do not open stay where they are: with the right key they will.
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
        let Some(row) = checkpoints.row(id).await? else { continue };
        let (scope, read) = (Scope::parse(tenant.clone(), id), opened(keys, id, &row));
        if way == Way::SetAside && scope.is_ok() && !matches!(read, Read::Refused) {
            checkpoints.set_aside(id).await?;
        }
        match (scope, read) {
            (Ok(_), Read::Said(said)) if said.exchanges.is_empty() => imported.empty += 1,
            (Ok(scope), Read::Said(said)) => {
                let session = engine.session(scope, Actor::cli());
                let left_out = said.left_out;
                match take_over(&checkpoints, &session, id, said, way).await {
                    Ok(true) => {
                        imported.sessions += 1;
                        imported.partly += u64::from(left_out);
                    }
                    Ok(false) => imported.already += 1,
                    Err(Error::Store(error) | Error::Unloaded(error)) => return Err(error.into()),
                    Err(_) => imported.refused += 1,
                }
            }
            (_, Read::Unknown) | (Err(_), Read::Said(_)) => imported.unknown += 1,
            (_, Read::Refused) => imported.refused += 1,
        }
        progress(done, ids.len() as u64);
    }
    Ok(imported)
}

/// Makes a session of a checkpoint; false if there is one already.
async fn take_over(
    checkpoints: &Checkpoints,
    session: &Session,
    id: &str,
    said: Conversation,
    way: Way,
) -> Result<bool, Error> {
    let Conversation { exchanges, left_out } = said;
    // It was said in its place, and is recalled there only.
    let audience = if session.scope.is_person() { Audience::Private } else { Audience::Room };
    let last = exchanges.last().cloned();
    let made = session.take_over(audience, exchanges).await?;
    // Read back first: a session that was there before may be about something else.
    if way == Way::SetAside
        && !left_out
        && let Some(last) = &last
        && session.holds(last).await?
    {
        checkpoints.remove(id).await?;
    }
    Ok(made)
}

/// What became of opening a checkpoint.
enum Read {
    Said(Conversation),
    /// It opened, and does not say what a conversation does.
    Unknown,
    Refused,
}

fn opened(keys: &MasterKeys, id: &str, row: &[u8]) -> Read {
    let Ok(text) = std::str::from_utf8(row) else { return Read::Refused };
    // The first description has the bare base64, the program an object around it.
    let wrapped;
    let row = match text.trim() {
        object if object.starts_with('{') => object.as_bytes(),
        bare => {
            wrapped = serde_json::json!({"_encrypted": true, "data": bare}).to_string();
            wrapped.as_bytes()
        }
    };
    let mut masters = std::iter::once(&keys.current).chain(&keys.retired);
    match masters.find_map(|master| open_checkpoint(master, id, row).ok()) {
        None => Read::Refused,
        Some(json) => conversation(&json, "import").map_or(Read::Unknown, Read::Said),
    }
}
