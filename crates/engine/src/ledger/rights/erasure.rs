//! Erasure, and the receipt that proves it.
//!
//! The key goes first, in the keyring, so that from that moment on nothing opens, whatever copies of the data exist; then
//! the rows, then what journals and free pages still hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use confidant_display::Hinted as _;
use confidant_seal::{Kid, Tag, TenantId, UserId};
use futures_util::future::join_all;

use super::receipt::Receipt;
use crate::concepts;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::access::end_tokens;
use crate::ledger::audit::{Action, Actor, AuditRecord};
use crate::ledger::epoch::Epoch;
use crate::ledger::session::Session;
use crate::store::{KeyName, Known, Names};

/// Whose data ends.
pub(super) enum Subject {
    /// With what went already of what was derived from it.
    Session(BTreeMap<String, u64>),
    /// With what went already of what was derived.
    Person(BTreeMap<String, u64>, Whose),
}

/// A person of a tenant.
pub(crate) struct Whose {
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
}

/// Ends the sessions of `scopes`, which are all of `subject`'s, each with its name if that is known. `tag` and `tenant` say whose
/// they are.
pub(super) async fn erase(
    inner: &Arc<Inner>,
    actor: &Actor,
    subject: Subject,
    (tag, tenant, epoch): (Tag, Tag, Epoch),
    scopes: &[(Names, Option<KeyName>)],
) -> Result<Receipt, Error> {
    let (mut keys, mut scopes): (Vec<Kid>, Vec<_>) = (Vec::new(), scopes.to_vec());
    for (names, name) in &mut scopes {
        let Some(row) = inner.ledger.keyring.store().get(names.scope).await? else { continue };
        keys.push(row.kid);
        // The last moment to learn it: the name goes with the key.
        if name.is_none()
            && let Ok(readable) = inner.ledger.keyring.scope_of(&row)
        {
            *name = inner.ledger.keyring.key_name(&inner.ledger.naming, &readable, names.scope);
        }
    }
    // Found by the log of what was captured, so they go while it is there: a second try finds the rest.
    let mut captures = 0;
    for (names, _) in &scopes {
        let forgotten = concepts::forget(inner, names.scope, None).await?;
        captures += forgotten.captures;
        keys.extend(forgotten.keys);
    }
    if let Subject::Person(..) = &subject {
        let forgotten = concepts::forget_person(inner, tag).await?;
        captures += forgotten.captures;
        keys.extend(forgotten.keys);
    }
    // The keys first: whatever happens after this line, nothing of it opens again.
    let tags: Vec<Tag> = scopes.iter().map(|(names, _)| names.scope).collect();
    inner.ledger.keyring.destroy(&tags).await?;
    silence(inner, &tags).await;
    let (mut sessions, mut records) = (0, 0);
    for (names, name) in &scopes {
        inner.ledger.slots.forget(names.scope);
        let note = AuditRecord::new(inner.ledger.now(), actor, Action::SessionErased).about(names.scope);
        let note = note.within(tenant);
        let notes = match &subject {
            Subject::Person(..) => vec![note.pending(&inner.ledger.keyring)],
            // The record that the receipt names is the same.
            Subject::Session(_) => Vec::new(),
        };
        let known = Known { tenant: names.tenant, name: name.as_ref() };
        let gone = inner.ledger.store.erase(names.scope, Some(known), notes).await?;
        records += gone;
        sessions += u64::from(gone > 0);
        inner.ledger.counters.erased.add();
    }
    let (word, action, tokens, mut derived) = match subject {
        Subject::Session(derived) => ("session", Action::SessionErased, 0, derived),
        Subject::Person(derived, whose) => {
            let tokens = end_tokens(inner, &whose).await?;
            ("person", Action::PersonErased, tokens, derived)
        }
    };
    if captures > 0 {
        derived.insert("captures".to_owned(), captures);
    }
    let note =
        AuditRecord::new(inner.ledger.now(), actor, action).about(tag).within(tenant).counting(sessions);
    let what = Receipt { epoch, sessions, records, tokens, derived, ..Receipt::of(word, tag, &keys) };
    proved(inner, what, note).await
}

/// Ends what is kept of a chat's concepts; nothing if nothing was. The chat's session and its turns are left as they are.
pub(crate) async fn erase_concepts(session: &Session) -> Result<Option<Receipt>, Error> {
    let Some(gone) = session.end_concepts().await? else { return Ok(None) };
    let derived = BTreeMap::from([("captures".to_owned(), gone.captures)]);
    let what = Receipt { derived, ..Receipt::of("concepts", session.names.scope, &gone.keys) };
    let note = session.record(Action::ContextErased).counting(gone.captures);
    proved(&session.inner, what, note).await.map(Some)
}

/// The receipt of what went, with the record of it.
async fn proved(inner: &Inner, what: Receipt, note: AuditRecord) -> Result<Receipt, Error> {
    let at = note.at;
    let head = inner.ledger.record(note).await?;
    inner.ledger.store.scrub().await?;
    let mut receipt = Receipt {
        at,
        audit_lane: head.lane,
        audit_seq: head.seq,
        audit_tag: Tag::from_bytes(head.tag).to_string(),
        ..what
    };
    receipt.signature = sign(inner, &receipt);
    Ok(receipt)
}

/// What turns of these sessions say is heard by no other process any more.
async fn silence(inner: &Inner, tags: &[Tag]) {
    if let Some(relay) = inner.relay.get() {
        // At once: where it cannot be reached, each takes a while.
        join_all(tags.iter().map(|tag| relay.silence(*tag))).await;
    }
}

/// Why there is no receipt, though everything went that could be reached.
pub(super) fn incomplete(error: Error) -> Error {
    let (what, hint) = error.what_and_hint("run `confidant doctor`");
    Error::Derived {
        what: format!("only what could be reached was erased, with its keys, so there is no receipt: {what}"),
        hint: format!("{hint}; then erase again to remove the rest and get the receipt"),
    }
}

/// The signature that a receipt with this content has.
fn sign(inner: &Inner, receipt: &Receipt) -> String {
    let unsigned = Receipt { signature: String::new(), ..receipt.clone() };
    let bytes = serde_json::to_vec(&unsigned).expect("a receipt has string keys only, so it is always JSON");
    let mac = inner.ledger.keyring.audit_key().derive("receipt").mac("receipt", &bytes);
    hex::encode(mac)
}

/// Whether a receipt has the signature that its content wants. Compared as keyed hashes, so that the time it takes says
/// nothing of the signature.
pub(super) fn is_signed(inner: &Inner, receipt: &Receipt) -> bool {
    let key = inner.ledger.keyring.audit_key().derive("receipt");
    let blinded = |signature: &str| key.mac("compare", signature.as_bytes());
    blinded(&sign(inner, receipt)) == blinded(&receipt.signature)
}
