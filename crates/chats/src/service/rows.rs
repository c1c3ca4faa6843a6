//! Rows of rings and labels of devices, sealed by the server around what the client sealed.
//!
//! ```text
//! ring of a chat:      seal(chat's key,    (ring, acct, chat, "{n}:{kid}", chat),    rev of the inner one, inner envelope)
//! ring of the account: seal(account's key, (ring, acct, "",   "{n}:{kid}", account), …, inner envelope)
//! ring of the mailbox: seal(account's key, (ring, acct, "",   "{n}:{kid}", box),     …, box_pub (32) ‖ inner envelope)
//! label of a device:   seal(account's key, (device, acct, "", device id, label),     …, inner envelope, or nothing)
//! ```
//!
//! So a stolen database has no entry of a ring, and a destroyed chat's key takes its ring along in every copy. The mailbox's
//! public key stands in the row of its entry: the two change together, or not at all.

use confidant_chat_format::{AccountId, DeviceId, Entry, PublicKey, Refused};
use confidant_chat_protocol::KeyEntry;
use confidant_seal::{Context, Key, Sealed, open, seal};

use super::Inner;
use super::record::SUITE;
use super::refusals::Answer;
use crate::store::{RingEntry, RingName, StoreError};

/// Seals a client's entry for the store. `box_pub` belongs to an entry of the mailbox's ring.
pub(crate) fn seal_entry(
    key: &Key,
    account: &AccountId,
    of: RingName,
    entry: Entry,
    box_pub: Option<&PublicKey>,
) -> RingEntry {
    let mut data = box_pub.map(|key| key.as_bytes().to_vec()).unwrap_or_default();
    data.extend_from_slice(entry.sealed.as_bytes());
    let (object, rev) = (object(&entry), entry.sealed.rev().unwrap_or(0));
    let sealed = seal(key, SUITE, &context(account, &of, &object), rev, &data);
    RingEntry { of, entry: Entry { sealed, ..entry } }
}

/// What the client sealed, and the mailbox's public key in rows of the mailbox. Else `key-refused`.
pub(crate) fn open_entry(
    key: &Key,
    account: &AccountId,
    of: &RingName,
    entry: Entry,
) -> Result<(Entry, Option<PublicKey>), Refused> {
    let object = object(&entry);
    let opened = open(key, &context(account, of, &object), &entry.sealed).map_err(|_| Refused::KeyRefused)?;
    let (box_pub, inner) = match of {
        RingName::Box => {
            let (box_pub, inner) = opened.data.split_first_chunk::<32>().ok_or(Refused::KeyRefused)?;
            (Some(PublicKey::from_bytes(*box_pub)), inner)
        }
        RingName::Account | RingName::Chat(_) => (None, opened.data.as_slice()),
    };
    let sealed = Sealed::from_bytes(inner.to_vec());
    if sealed.rev() == Some(opened.rev) {
        Ok((Entry { sealed, ..entry }, box_pub))
    } else {
        Err(Refused::KeyRefused)
    }
}

/// Seals a device's label; a device without one has a sealed nothing.
pub(crate) fn seal_label(
    key: &Key,
    account: &AccountId,
    device: &DeviceId,
    label: Option<&Sealed>,
) -> Sealed {
    let (rev, bytes) = label.map_or((0, [].as_slice()), |label| (label.rev().unwrap_or(0), label.as_bytes()));
    seal(key, SUITE, &label_context(account, device), rev, bytes)
}

/// The label that the client sealed, if it has one. Else `record-refused`.
pub(crate) fn open_label(
    key: &Key,
    account: &AccountId,
    device: &DeviceId,
    sealed: &Sealed,
) -> Result<Option<Sealed>, Refused> {
    let opened = open(key, &label_context(account, device), sealed).map_err(|_| Refused::RecordRefused)?;
    Ok((!opened.data.is_empty()).then(|| Sealed::from_bytes(opened.data.to_vec())))
}

impl Inner {
    /// The key that a ring's rows are sealed under.
    pub(crate) async fn ring_key(&self, account: &AccountId, of: &RingName) -> Answer<Option<Key>> {
        let chat = match of {
            RingName::Chat(chat) => Some(chat),
            RingName::Account | RingName::Box => None,
        };
        Ok(self.vault.key(account, chat).await?)
    }

    /// Rows of a ring as they are sent, and the public key of the newest row of a mailbox. A chat that was deleted meanwhile is
    /// `not-found`. One whose key was lost has no rows: its devices say `ring-gap`, and one that has the keys can put them back.
    pub(crate) async fn open_ring(
        &self,
        account: &AccountId,
        of: &RingName,
        rows: Vec<Entry>,
    ) -> Answer<(Vec<KeyEntry>, Option<PublicKey>)> {
        let Some(key) = self.ring_key(account, of).await? else {
            if self.store.ring(account, of).await?.is_empty() {
                return Err(StoreError::NotFound.into());
            }
            return lost(of, Refused::AccountMissing);
        };
        let (mut opened, mut newest) = (Vec::with_capacity(rows.len()), None);
        for row in rows {
            let (entry, box_pub) = match open_entry(&key, account, of, row) {
                Err(refused) => return lost(of, refused),
                opened => opened?,
            };
            opened.push(KeyEntry::try_from(entry)?);
            newest = box_pub;
        }
        Ok((opened, newest))
    }
}

/// A chat whose ring does not open is one of many; without its own ring, an account is nothing.
fn lost(of: &RingName, refused: Refused) -> Answer<(Vec<KeyEntry>, Option<PublicKey>)> {
    match of {
        RingName::Chat(_) => Ok((Vec::new(), None)),
        RingName::Account | RingName::Box => Err(refused.into()),
    }
}

fn object(entry: &Entry) -> String {
    format!("{}:{}", entry.n, entry.kid)
}

fn context<'a>(account: &'a AccountId, of: &'a RingName, object: &'a str) -> Context<'a> {
    let field = match of {
        RingName::Chat(_) => "chat",
        RingName::Account => "account",
        RingName::Box => "box",
    };
    Context { purpose: "ring", owner: account.as_str(), container: of.of().container(), object, field }
}

fn label_context<'a>(account: &'a AccountId, device: &'a DeviceId) -> Context<'a> {
    let (owner, object) = (account.as_str(), device.as_str());
    Context { purpose: "device", owner, container: "", object, field: "label" }
}

#[cfg(test)]
mod tests {
    use confidant_chat_format::{AccountKey, ChatId, RingOf};

    use super::*;

    #[test]
    fn a_row_opens_in_its_place_only() {
        let (key, account, ak) = (Key::random(), AccountId::random(), AccountKey::first());
        let chat = ChatId::random();
        let box_pub = PublicKey::from_bytes([3; 32]);
        let names = [RingName::Chat(chat.clone()), RingName::Account, RingName::Box];
        for of in &names {
            let made = Entry::seal(&ak, &account, of.of(), 1, &Key::random(), 1);
            let public = (*of == RingName::Box).then_some(&box_pub);
            let row = seal_entry(&key, &account, of.clone(), made.clone(), public).entry;
            assert!(row.sealed.as_bytes().len() < crate::store::limits::ENTRY_BYTES);
            let opened = open_entry(&key, &account, of, row.clone());
            assert_eq!(opened, Ok((made, public.copied())));
            let others = names.iter().filter(|other| *other != of).cloned();
            for other in others.chain([RingName::Chat(ChatId::random())]) {
                assert_eq!(open_entry(&key, &account, &other, row.clone()).err(), Some(Refused::KeyRefused));
            }
            let (object, place) = (object(&row), of.clone());
            let data = open(&key, &context(&account, &place, &object), &row.sealed).unwrap().data;
            let other = seal(&key, SUITE, &context(&account, &place, &object), 2, &data);
            let other = Entry { sealed: other, ..row.clone() };
            assert_eq!(open_entry(&key, &account, of, other).err(), Some(Refused::KeyRefused));
            let moved = Entry { n: 2, ..row.clone() };
            assert_eq!(open_entry(&key, &account, of, moved).err(), Some(Refused::KeyRefused));
            assert_eq!(
                open_entry(&key, &AccountId::random(), of, row.clone()).err(),
                Some(Refused::KeyRefused)
            );
            assert_eq!(open_entry(&Key::random(), &account, of, row).err(), Some(Refused::KeyRefused));
        }
        assert_eq!(RingOf::Chat(&chat), names[0].of());
    }

    #[test]
    fn a_label_is_of_one_device() {
        let (key, account, device) = (Key::random(), AccountId::random(), DeviceId::random());
        let none = seal_label(&key, &account, &device, None);
        assert_eq!(open_label(&key, &account, &device, &none), Ok(None));
        let label = Sealed::from_bytes(vec![5; 100]);
        let sealed = seal_label(&key, &account, &device, Some(&label));
        assert_eq!(open_label(&key, &account, &device, &sealed), Ok(Some(label)));
        let longest = Sealed::from_bytes(vec![5; confidant_chat_protocol::limits::MAX_KEY]);
        let sealed_longest = seal_label(&key, &account, &device, Some(&longest));
        assert!(sealed_longest.as_bytes().len() <= crate::store::limits::ENTRY_BYTES);
        let other = open_label(&key, &account, &DeviceId::random(), &sealed);
        assert_eq!(other, Err(Refused::RecordRefused));
    }
}
