//! Erasure, and the receipt that proves it.
//!
//! The key goes first, in the keyring, so that from that moment on nothing opens, whatever copies of the data exist; then
//! the rows, then what journals and free pages still hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use confidant_seal::{Kid, Tag};
use serde::{Deserialize, Serialize};

use crate::audit::{Action, Actor, AuditRecord, Lane};
use crate::clock::Millis;
use crate::concepts;
use crate::engine::Inner;
use crate::error::Error;
use crate::store::{KeyName, Known, Names, TokenSelector};

/// Proof of an erasure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// What was erased: `session` or `person`.
    pub erased: String,
    /// Whose, as a tag: only the keyring can tell whom it stands for.
    pub subject: String,
    /// When.
    pub at: Millis,
    /// Sessions that went.
    pub sessions: u64,
    /// Log records that went.
    pub records: u64,
    /// Access tokens of the person that went.
    pub tokens: u64,
    /// What was derived from the person's conversations and went, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub derived: BTreeMap<String, u64>,
    /// The data keys that were destroyed, by id.
    pub keys: Vec<String>,
    /// The lane of the audit log that has the record of it.
    #[serde(skip_serializing_if = "Lane::is_zero", default)]
    pub audit_lane: Lane,
    /// That record's sequence.
    pub audit_seq: u64,
    /// That record's tag.
    pub audit_tag: String,
    /// Signature with the audit key over all of the above.
    pub signature: String,
}

/// Whose data ends.
pub(super) enum Subject {
    /// With what went already of what was derived from it.
    Session(BTreeMap<String, u64>),
    /// With what went already of what was derived.
    Person(BTreeMap<String, u64>),
}

/// Ends the sessions of `scopes`, which are all of `subject`'s, each with its name if that is known.
pub(super) async fn erase(
    inner: &Arc<Inner>,
    actor: &Actor,
    subject: Subject,
    tag: Tag,
    scopes: &[(Names, Option<KeyName>)],
) -> Result<Receipt, Error> {
    let (mut keys, mut scopes): (Vec<Kid>, Vec<_>) = (Vec::new(), scopes.to_vec());
    for (names, name) in &mut scopes {
        let Some(row) = inner.keyring.store().get(names.scope).await? else { continue };
        keys.push(row.kid);
        // The last moment to learn it: the name goes with the key.
        if name.is_none()
            && let Ok(readable) = inner.keyring.scope_of(&row)
        {
            *name = inner.keyring.key_name(&inner.naming, &readable, names.scope);
        }
    }
    // Found by the log of what was captured, so they go while it is there: a second try finds the rest.
    let mut captures = 0;
    for (names, _) in &scopes {
        let forgotten = concepts::forget(inner, names.scope, None).await?;
        captures += forgotten.captures;
        keys.extend(forgotten.keys);
    }
    // The keys first: whatever happens after this line, nothing of it opens again.
    let tags: Vec<Tag> = scopes.iter().map(|(names, _)| names.scope).collect();
    inner.keyring.destroy(&tags).await?;
    let (mut sessions, mut records) = (0, 0);
    for (names, name) in &scopes {
        inner.slots.forget(names.scope);
        let note = AuditRecord::new(inner.now(), actor, Action::SessionErased).about(names.scope);
        let notes = match &subject {
            Subject::Person(_) => vec![note.pending(&inner.keyring)],
            // The record that the receipt names is the same.
            Subject::Session(_) => Vec::new(),
        };
        let known = Known { tenant: names.tenant, name: name.as_ref() };
        let gone = inner.store.erase(names.scope, Some(known), notes).await?;
        records += gone;
        sessions += u64::from(gone > 0);
        inner.counters.erased.add();
    }
    let (word, action, tokens, mut derived) = match subject {
        Subject::Session(derived) => ("session", Action::SessionErased, 0, derived),
        Subject::Person(derived) => {
            let tokens = inner.store.remove_tokens(TokenSelector::Person(tag), Vec::new()).await?;
            ("person", Action::PersonErased, tokens, derived)
        }
    };
    if captures > 0 {
        derived.insert("captures".to_owned(), captures);
    }
    let at = inner.now();
    let note = AuditRecord::new(at, actor, action).about(tag).counting(sessions);
    let head = inner.record(note).await?;
    inner.store.scrub().await?;
    let mut receipt = Receipt {
        erased: word.to_owned(),
        subject: tag.to_string(),
        at,
        sessions,
        records,
        tokens,
        derived,
        keys: keys.iter().map(Kid::to_string).collect(),
        audit_lane: head.lane,
        audit_seq: head.seq,
        audit_tag: Tag::from_bytes(head.tag).to_string(),
        signature: String::new(),
    };
    receipt.signature = sign(inner, &receipt);
    Ok(receipt)
}

/// The signature that a receipt with this content has.
fn sign(inner: &Inner, receipt: &Receipt) -> String {
    use std::fmt::Write as _;
    let unsigned = Receipt { signature: String::new(), ..receipt.clone() };
    let bytes = serde_json::to_vec(&unsigned).expect("a receipt has string keys only, so it is always JSON");
    let mac = inner.keyring.audit_key().derive("receipt").mac("receipt", &bytes);
    mac.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Whether a receipt has the signature that its content wants. Compared as keyed hashes, so that the time it takes says
/// nothing of the signature.
pub(super) fn is_signed(inner: &Inner, receipt: &Receipt) -> bool {
    let key = inner.keyring.audit_key().derive("receipt");
    let blinded = |signature: &str| key.mac("compare", signature.as_bytes());
    blinded(&sign(inner, receipt)) == blinded(&receipt.signature)
}
