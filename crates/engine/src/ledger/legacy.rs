//! Taking over the conversations of the first system from its Redis.
//!
//! A checkpoint is opened with the master key and written as a session of ours in one write, so a run that was cut off can be made
//! again: what is there already is left alone. Nothing of it is written anywhere in the clear.

pub(crate) mod messages;
mod printed;

use confidant_seal::{LegacyError, Scope, TenantId, open_checkpoint};
use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::audience::Audience;
use crate::engine::Engine;
use crate::error::{Error, OpenError};
use crate::ledger::audit::Actor;
use crate::ledger::keyring::MasterKeys;
use crate::ledger::session::Session;
use crate::ledger::storage::RedisSettings;
use crate::store::redis::Checkpoints;
use messages::{Conversation, conversation};

/// What an import did with the checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Sessions that were imported.
    pub sessions: u64,
    /// Sessions that are here already.
    pub already: u64,
    /// Checkpoints without anything that was answered.
    pub empty: u64,
    /// Of the sessions, those of which something was left out: it was never answered, or is no text.
    pub partly: u64,
    /// Sessions, new ones and those here already, that do not hold every message that was to be taken over.
    pub incomplete: u64,
    /// Messages that were left out or are missing from those sessions. On the store itself they stay beside them.
    pub messages_left: u64,
    /// Checkpoints that do not open, or are none: the master key is another, or they were changed.
    pub refused: u64,
    /// Checkpoints that open and are not understood: of a shape that nobody has told us, or of no session that we know.
    pub unknown: u64,
    /// Keys that have the name of a checkpoint and are not strings, such as hashes and lists.
    pub unreadable: u64,
    /// What was left where it is: each row that was refused, is unknown or cannot be read.
    pub left: Vec<LeftRow>,
}

/// A row that was not imported, and stays where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftRow {
    /// The beginning of its name, as a pattern that finds it (`redis-cli --scan --pattern`). The whole name has a person in it.
    pub name: String,
    /// What type of key it is to Redis.
    pub kind: String,
    /// Why it was left.
    pub why: LeftBecause,
}

/// Why a row was not imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftBecause {
    /// It is not marked as encrypted, or is not a row of the first system at all.
    NotEncrypted,
    /// It does not open: another master key made it, or it was changed.
    DoesNotOpen,
    /// It opens, but its messages are in an unknown format.
    NotUnderstood,
    /// Its name is not a session id.
    NoSession,
    /// The session that is here under its name cannot be opened or written.
    SessionRefused,
    /// It is not a string.
    OtherType,
}

impl std::fmt::Display for LeftBecause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotEncrypted => "not an encrypted checkpoint",
            Self::DoesNotOpen => "does not open with these keys",
            Self::NotUnderstood => "opens, but its messages are in an unknown format",
            Self::NoSession => "its name is not a session id",
            Self::SessionRefused => "the session with that name cannot be opened or written",
            Self::OtherType => "not a string, as checkpoints are",
        })
    }
}

impl Imported {
    fn leave(&mut self, name: &str, kind: &str, why: LeftBecause) {
        match why {
            LeftBecause::NotEncrypted | LeftBecause::DoesNotOpen | LeftBecause::SessionRefused => {
                self.refused += 1
            }
            LeftBecause::NotUnderstood | LeftBecause::NoSession => self.unknown += 1,
            LeftBecause::OtherType => self.unreadable += 1,
        }
        self.left.push(LeftRow { name: beginning(name), kind: kind.to_owned(), why });
    }
}

/// Half of a name at most, and what stands for the rest; what patterns would take for something else, and what a terminal
/// would obey, is any character.
fn beginning(name: &str) -> String {
    let shown = (name.chars().count() / 2).min(MOST_SHOWN);
    let plain = |c: char| if c.is_control() || "*?[]\\^".contains(c) || c == '\u{fffd}' { '?' } else { c };
    name.chars().take(shown).map(plain).chain(['*']).collect()
}

/// How much of a row's name is told at most.
const MOST_SHOWN: usize = 24;

/// Whether the checkpoints are under the names that sessions of ours will have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the store itself: they are renamed first, to `legacy:…`, so that a session can have their name, and removed once a
    /// session holds all that they say. Those that do not open stay where they are: with the right key they will.
    SetAside,
    /// Elsewhere: they are only read.
    ReadOnly,
}

/// Imports every checkpoint on a Redis.
///
/// `progress` gets the number done so far and in all.
pub fn import_checkpoints<'a>(
    engine: &'a Engine,
    from: &'a RedisSettings,
    tenant: &'a TenantId,
    keys: &'a MasterKeys,
    way: Way,
    progress: &'a (dyn Fn(u64, u64) + Send + Sync),
) -> BoxFuture<'a, Result<Imported, OpenError>> {
    Box::pin(async move {
        let checkpoints = Checkpoints::connect(from).await?;
        let ids = checkpoints.ids().await?;
        let mut imported = Imported::default();
        for (name, kind) in checkpoints.others().await? {
            imported.leave(&name, &kind, LeftBecause::OtherType);
        }
        for (done, id) in (1..).zip(&ids) {
            let Some(row) = checkpoints.row(id).await? else { continue };
            let name = format!("checkpoint:{id}");
            let scope = Scope::parse(tenant.clone(), id);
            let read = opened(keys, id, &row);
            if way == Way::SetAside
                && scope.is_ok()
                && !matches!(read, Err(LeftBecause::NotEncrypted | LeftBecause::DoesNotOpen))
            {
                checkpoints.set_aside(id).await?;
            }
            match (scope, read) {
                (Ok(_), Ok(said)) if said.exchanges.is_empty() => {
                    imported.empty += 1;
                    imported.messages_left += said.left_out;
                }
                (Ok(scope), Ok(said)) => {
                    let session = engine.session(scope, Actor::cli());
                    match take_over(&checkpoints, &session, id, said, way).await {
                        Ok(taken) => imported.count(taken),
                        Err(Error::Store(error) | Error::Unloaded(error)) => return Err(error.into()),
                        Err(error) => {
                            tracing::warn!(error = error.code(), "a checkpoint could not be imported");
                            imported.leave(&name, "string", LeftBecause::SessionRefused);
                        }
                    }
                }
                (_, Err(why)) => imported.leave(&name, "string", why),
                (Err(_), Ok(_)) => imported.leave(&name, "string", LeftBecause::NoSession),
            }
            progress(done, ids.len() as u64);
        }
        Ok(imported)
    })
}

/// What became of one conversation.
struct Taken {
    /// Whether it was written now; if not, it was here already.
    made: bool,
    /// Messages that were left out.
    left_out: u64,
    /// Messages that should be in the session, and are not.
    lacking: u64,
}

impl Imported {
    fn count(&mut self, taken: Taken) {
        let Taken { made, left_out, lacking } = taken;
        if made {
            self.sessions += 1;
            self.partly += u64::from(left_out > 0);
            self.messages_left += left_out;
        } else {
            self.already += 1;
        }
        self.incomplete += u64::from(lacking > 0);
        self.messages_left += lacking;
    }
}

/// Makes a session of a checkpoint, unless there is one already.
async fn take_over(
    checkpoints: &Checkpoints,
    session: &Session,
    id: &str,
    said: Conversation,
    way: Way,
) -> Result<Taken, Error> {
    let Conversation { exchanges, left_out } = said;
    // It was said in its place, and is recalled there only.
    let audience = if session.scope.is_person() { Audience::Private } else { Audience::Room };
    let made = session.take_over(audience, exchanges.clone()).await?;
    // Read back, every message: settings may keep fewer, and a session that was there before may be about something else.
    let lacking = session.lacks(&exchanges).await?;
    if way == Way::SetAside && left_out == 0 && lacking == 0 {
        checkpoints.remove(id).await?;
    }
    Ok(Taken { made, left_out, lacking })
}

/// Opens a checkpoint with whichever key it was made.
fn opened(keys: &MasterKeys, id: &str, row: &[u8]) -> Result<Conversation, LeftBecause> {
    let Ok(text) = std::str::from_utf8(row) else { return Err(LeftBecause::NotEncrypted) };
    // The first description has the bare base64, the program an object around it.
    let wrapped;
    let row = match text.trim() {
        object if object.starts_with('{') => object.as_bytes(),
        bare => {
            wrapped = serde_json::json!({"_encrypted": true, "data": bare}).to_string();
            wrapped.as_bytes()
        }
    };
    let mut why = LeftBecause::NotEncrypted;
    for master in std::iter::once(&keys.current).chain(&keys.retired) {
        match open_checkpoint(master, id, row) {
            Ok(json) => return conversation(&json, "import").ok_or(LeftBecause::NotUnderstood),
            Err(LegacyError::OpenFailed) => why = LeftBecause::DoesNotOpen,
            Err(_) => {}
        }
    }
    Err(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_by_their_beginning_only() {
        assert_eq!(beginning("checkpoint:cli:db:main:alice"), "checkpoint:cli*");
        assert_eq!(
            beginning(&format!("checkpoint:!room:example.org:main:@alice:{}", "x".repeat(80))),
            "checkpoint:!room:example*"
        );
        assert_eq!(
            beginning("check*[\u{1b}\u{1b}\u{1b}\u{1b}\u{1b}\u{1b}\u{1b}\u{1b}\u{1b}\u{1b}"),
            "check???*"
        );
    }
}
