//! What is over, and what only seems to be.
//!
//! A store that ends things by itself takes no row whose time has come, so such a row stays behind with what it opens. What is
//! easy to get wrong: the keyring hears of a turn later than the log does, so a key may seem to be over whose session goes on.

use super::contexts::conversation;
use super::is_over;
use crate::clock::{Clock as _, SystemClock};
use crate::concepts::Until;
use crate::error::OpenError;
use crate::ledger::keyring::Keyring;
use crate::ledger::storage::Storage;
use crate::store::KeyRow;

/// A key as it goes over; nothing if what it opens is over.
pub(super) async fn key(from: &Storage, keyring: &Keyring, row: KeyRow) -> Result<Option<KeyRow>, OpenError> {
    let now = SystemClock.now();
    if !is_over(row.expires_at, now) {
        return Ok(Some(row));
    }
    let until = match conversation(keyring, &row) {
        Some(name) => Until::of_context(keyring, &*from.store, now, name).await?,
        None => Until::of_session(&*from.keys, &*from.store, now, row.scope).await?,
    };
    Ok(match until {
        Until::Over => None,
        Until::At(at) => Some(KeyRow { expires_at: Some(at), ..row }),
        Until::Ever => Some(KeyRow { expires_at: None, ..row }),
    })
}
