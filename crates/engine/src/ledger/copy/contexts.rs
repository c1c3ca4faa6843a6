//! What is in scope of conversations. They are found by their keys: one whose key is gone opens nowhere.

use confidant_seal::Tag;

use super::{AT_ONCE, differs, is_over, living};
use crate::clock::{Clock as _, SystemClock};
use crate::concepts::is_conversation;
use crate::error::{OpenError, StoreError};
use crate::ledger::keyring::Keyring;
use crate::ledger::storage::Storage;
use crate::store::contexts::{CapturesOf, ContextRow, Contexts, ConversationName, WholeContext};
use crate::store::{DataKeys, KeyRow};

/// Removes contexts that an earlier run copied and whose keys are gone or over since. To be done before those go at the destination.
pub(super) async fn remove_ended(from: &Storage, to: &Storage, keyring: &Keyring) -> Result<(), OpenError> {
    let mut after = None;
    while let Some((names, last)) = page(&*to.keys, keyring, after).await? {
        after = Some(last);
        for name in names {
            let row = from.keys.get(name.conversation).await?;
            let lives = match row {
                Some(row) => living::key(from, keyring, row).await?.is_some(),
                None => false,
            };
            if !lives {
                to.store.erase_context(name, Vec::new()).await?;
            }
        }
    }
    Ok(())
}

/// Copies every context whose key went over, with its records, unless it is there; says how many there are.
pub(super) async fn copy(from: &Storage, to: &Storage, keyring: &Keyring) -> Result<u64, OpenError> {
    let (mut after, mut count) = (None, 0);
    while let Some((names, last)) = page(&*from.keys, keyring, after).await? {
        after = Some(last);
        for name in names {
            let key = to.keys.get(name.conversation).await?;
            count += u64::from(copy_one(&*from.store, &*to.store, name, key).await?);
        }
    }
    Ok(count)
}

/// The conversations among some keys, and the last of those keys; nothing after the last of all.
async fn page(
    keys: &dyn DataKeys,
    keyring: &Keyring,
    after: Option<Tag>,
) -> Result<Option<(Vec<ConversationName>, Tag)>, OpenError> {
    let rows = keys.list(after, AT_ONCE).await?;
    let Some(last) = rows.last().map(|row| row.scope) else { return Ok(None) };
    Ok(Some((rows.iter().filter_map(|row| conversation(keyring, row)).collect(), last)))
}

pub(super) fn conversation(keyring: &Keyring, row: &KeyRow) -> Option<ConversationName> {
    let scope = keyring.scope_of(row).ok().filter(is_conversation)?;
    let names = keyring.names(&scope);
    Some(ConversationName { tenant: names.tenant, conversation: names.scope })
}

/// Copies one; false if there is none.
async fn copy_one(
    from: &dyn Contexts,
    to: &dyn Contexts,
    name: ConversationName,
    key: Option<KeyRow>,
) -> Result<bool, OpenError> {
    let here = if key.is_some() { whole(from, name).await? } else { None };
    let (there, expires_at) = (whole(to, name).await?, key.and_then(|key| key.expires_at));
    if !is_same(here.as_ref(), there.as_ref()) {
        match here.clone() {
            Some(here) => to.adopt_context(name, here, expires_at).await?,
            None => to.erase_context(name, Vec::new()).await.map(drop)?,
        }
        let there = whole(to, name).await?;
        if there.is_none() && is_over(expires_at, SystemClock.now()) {
            return Ok(false);
        }
        if !is_same(there.as_ref(), here.as_ref()) {
            return Err(differs());
        }
    }
    // Stores that never wait would keep everybody else waiting.
    tokio::task::yield_now().await;
    Ok(here.is_some())
}

/// Whether two are the same. A context that the operator chose to have readable is the same JSON, not the same bytes: a
/// store may have it as JSON.
fn is_same(one: Option<&WholeContext>, other: Option<&WholeContext>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one == other };
    let json = |content: &[u8]| match content.first() {
        Some(b'{') => serde_json::from_slice::<serde_json::Value>(content).ok(),
        _ => None,
    };
    let as_other = ContextRow { content: other.row.content.clone(), ..one.row.clone() };
    let content = one.row.content == other.row.content
        || json(&one.row.content).is_some_and(|it| Some(it) == json(&other.row.content));
    content && as_other == other.row && one.captures == other.captures
}

async fn whole(store: &dyn Contexts, name: ConversationName) -> Result<Option<WholeContext>, StoreError> {
    let Some(row) = store.context(name).await? else { return Ok(None) };
    Ok(Some(WholeContext { row, captures: store.captures(CapturesOf::Conversation(name)).await? }))
}
