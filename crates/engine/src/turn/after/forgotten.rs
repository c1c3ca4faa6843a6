//! Erasures that a message asked for. A client that lost the reply sends the message again, and by then something new may
//! have been said, which it did not ask to erase.
//!
//! The log that could have remembered is what was erased, so the keyring does: the turn's name, which is a keyed tag, with
//! the receipt, sealed. For a week, and no more than so many: they lie on a few shelves, each of which is one row.

use std::time::Duration;

use confidant_seal::{Context, Key, Sealed, Suite, open, seal};
use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::rights::Receipt;
use crate::ledger::session::Session;

/// The rows of the keyring that they are in, by the first digit of the turn's name.
pub(crate) const SHELVES: [&str; 16] = [
    "forgotten.0",
    "forgotten.1",
    "forgotten.2",
    "forgotten.3",
    "forgotten.4",
    "forgotten.5",
    "forgotten.6",
    "forgotten.7",
    "forgotten.8",
    "forgotten.9",
    "forgotten.a",
    "forgotten.b",
    "forgotten.c",
    "forgotten.d",
    "forgotten.e",
    "forgotten.f",
];
/// A shelf holds no more than these, the newest.
const KEPT: usize = 64;
/// Nobody retries for longer.
const KEPT_FOR: Duration = Duration::from_secs(7 * 86_400);

/// One message that erased something.
#[derive(Clone, Serialize, Deserialize)]
struct Carried {
    /// The turn's name, a tag in hex.
    request: String,
    receipt: Receipt,
}

impl Carried {
    fn is_kept(&self, now: Millis) -> bool {
        self.receipt.at.plus(KEPT_FOR) > now
    }
}

/// What came of a message, if it erased something before, here or in another process.
pub(in crate::turn) async fn receipt(session: &Session, request_id: &str) -> Result<Option<Receipt>, Error> {
    let (inner, request) = (&session.inner, name(session, request_id));
    let (_, mut known) = look(inner, shelf(&request)).await?;
    known.retain(|carried| carried.request == request && carried.is_kept(inner.ledger.now()));
    Ok(known.pop().map(|carried| carried.receipt))
}

/// Remembers what came of a message.
pub(in crate::turn) async fn keep(
    session: &Session,
    request_id: &str,
    receipt: &Receipt,
) -> Result<(), Error> {
    let request = name(session, request_id);
    let shelf = shelf(&request);
    put(&session.inner, shelf, Some(Carried { request, receipt: receipt.clone() })).await
}

/// Lets go of what is older than it is kept.
pub(crate) async fn sweep(inner: &Inner) -> Result<(), Error> {
    for shelf in SHELVES {
        let (_, known) = look(inner, shelf).await?;
        if known.iter().any(|carried| !carried.is_kept(inner.ledger.now())) {
            put(inner, shelf, None).await?;
        }
    }
    Ok(())
}

/// A turn's name. Whoever has not the key learns neither the session nor the message from it.
fn name(session: &Session, request_id: &str) -> String {
    session.inner.ledger.keyring.request(session.scope(), request_id).to_string()
}

fn shelf(request: &str) -> &'static str {
    let digit = request.chars().next().and_then(|digit| digit.to_digit(16)).unwrap_or(0);
    SHELVES[digit as usize]
}

/// What is on a shelf, sealed and opened. One that does not open has nothing on it: whoever wants to be forgotten is.
async fn look(inner: &Inner, shelf: &'static str) -> Result<(Option<Sealed>, Vec<Carried>), Error> {
    let Some((_, sealed)) = inner.ledger.keyring.store().named(shelf).await? else {
        return Ok((None, Vec::new()));
    };
    let opened = open(&key(inner), &context(shelf), &sealed).ok();
    let known = opened.and_then(|opened| serde_json::from_slice(&opened.data).ok());
    Ok((Some(sealed), known.unwrap_or_default()))
}

/// Adds to a shelf, and leaves on it what is kept still.
async fn put(inner: &Inner, shelf: &'static str, new: Option<Carried>) -> Result<(), Error> {
    loop {
        let (before, mut known) = look(inner, shelf).await?;
        known.extend(new.clone());
        known.retain(|carried| carried.is_kept(inner.ledger.now()));
        let excess = known.len().saturating_sub(KEPT);
        known.drain(..excess);
        let plain = serde_json::to_vec(&known).map_err(|_| Error::Internal)?;
        let sealed = seal(&key(inner), Suite::ChaCha20Poly1305, &context(shelf), 1, &plain);
        let (keys, root) = (inner.ledger.keyring.store(), inner.ledger.keyring.root());
        if keys.put_named(shelf, before.as_ref(), root, &sealed).await? {
            return Ok(());
        }
    }
}

/// Of the audit key, which survives a rotation of the root.
fn key(inner: &Inner) -> Key {
    inner.ledger.keyring.audit_key().derive("forgotten")
}

fn context(shelf: &str) -> Context<'_> {
    Context { purpose: "forgotten", owner: "", container: "", object: shelf, field: "" }
}
