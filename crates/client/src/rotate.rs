//! A new account key: every ring sealed again, in one commit.
//!
//! ```text
//! load every chat's keys ─▶ begin (frozen) ─▶ look again ─▶ keep the new key ─▶ stage rings and floors ─▶ commit
//! ```
//!
//! Killed before the commit, nothing has changed, and the next [`Device::rotate`] begins anew. Killed after it, the next
//! sync finds the new generation and opens it with the key that was kept. Easy to get wrong: a credential that was not
//! presented. It is gone with the old key.

use confidant_chat_format::{
    AccountKey, BoxKey, ChatId, Entry, Floor, Manifest, Mark, Place, Refused, Ring, RingOf, Shelf,
    rings_digest, seal_record,
};
use confidant_chat_protocol::limits::MAX_BATCH;
use confidant_chat_protocol::{
    AccountChanged, Envelope, FloorSent, KeyEntry, List, MailboxPut, RingKind, RingRows, RotationBegin,
    RotationBegun, RotationCommit, RotationStage, RotationStaged,
};
use confidant_seal::Key;

use crate::credential::{Credential, Signing};
use crate::device::Device;
use crate::error::Error;
use crate::state::{Bin, Book, Kept, Rotating};
use crate::sync::{NONE, Phase};
use crate::write::seal_manifest;

/// What is staged, and what the commit says.
struct Prepared {
    stages: Vec<RotationStage>,
    commit: RotationCommit,
    book: Book,
}

impl Device {
    /// Replaces the account key. `by` signs; `keep` are the credentials that remain, `by` among them or replaced by them:
    /// all others are removed, and other devices are logged out. `conflict`: something changed meanwhile; do it again.
    pub async fn rotate(&mut self, by: &Credential, keep: &[Credential]) -> Result<(), Error> {
        let by = self.link.ready(by).await?;
        let mut kept = Vec::new();
        for credential in keep {
            kept.push(self.link.ready(credential).await?);
        }
        self.connect().await?;
        self.flush().await?;
        self.load_all().await?;
        let generation = self.state.generation;
        let rev = self.account_rev().await?;
        let begin = RotationBegin { account_rev: rev };
        let begun: RotationBegun = self.link.prove("/account/rotation/begin", &begin, &by).await?;
        // A rotation of this device that was committed before it was killed was found by the sync above.
        if self.state.generation != generation || begun.generation != generation.saturating_add(1) {
            return Err(Refused::KeyRefused.into());
        }
        // Frozen: what is loaded now is what is committed.
        self.load_all().await?;
        let new = self.ak().next().ok_or(Refused::KeyRefused)?;
        let prepared = self.prepare(&new, &kept)?;
        self.state.rotating = Some(Rotating { generation: new.generation(), ak: Kept(new.key().clone()) });
        self.save()?;
        for stage in &prepared.stages {
            let _: RotationStaged = self.link.post("/account/rotation/stage", stage).await?;
        }
        let changed: AccountChanged =
            self.link.prove("/account/rotation/commit", &prepared.commit, &by).await?;
        if changed.generation != new.generation() {
            return Err(Error::Unexpected);
        }
        self.state.account_rev = changed.account_rev;
        self.state.wraps.clear();
        self.adopt(&new)?;
        self.account = Some(prepared.book.open(&self.state.account, &new)?);
        self.state.book = Some(prepared.book);
        self.save()
    }

    /// Loads every chat of the account: the keys of all of them are sealed again.
    async fn load_all(&mut self) -> Result<(), Error> {
        self.sync(Phase::All).await?;
        let missing: Vec<ChatId> =
            self.listed().into_iter().filter(|chat| !self.rooms.contains_key(chat)).collect();
        for batch in missing.chunks(MAX_BATCH) {
            let wanted = batch.iter().map(|chat| (chat.clone(), NONE)).collect();
            let (found, gone) = self.fetch(wanted).await?;
            if !gone.is_empty() {
                return Err(Refused::Withheld.into());
            }
            let mut synced = crate::sync::Synced::default();
            for (chat, parts) in found {
                self.take_chat(&chat, parts, &mut synced)?;
                self.save_room(&chat)?;
            }
        }
        Ok(())
    }

    fn prepare(&self, new: &AccountKey, kept: &[Signing]) -> Result<Prepared, Error> {
        let id = &self.state.account;
        let (account, old) = (self.account.as_ref().ok_or(Error::Offline)?, self.ak());
        let mut book = self.state.book.clone().ok_or(Error::Offline)?;
        let (own, letters) =
            (book.keys.rows(&old, id, RingOf::Account), book.boxes.rows(&old, id, RingOf::Box));
        let chats: Vec<(&ChatId, Vec<Entry>)> =
            self.rooms.iter().map(|(chat, room)| (chat, room.rows(&old, id))).collect();
        let rows = own.iter().map(|row| (RingOf::Account, row));
        let rows = rows.chain(letters.iter().map(|row| (RingOf::Box, row)));
        let rows = rows
            .chain(chats.iter().flat_map(|(chat, rows)| rows.iter().map(|row| (RingOf::Chat(chat), row))));
        let rings = rings_digest(rows);

        let mut staged = vec![
            ring_rows(RingKind::Account, None, book.keys.rows(new, id, RingOf::Account))?,
            ring_rows(RingKind::Mailbox, None, book.boxes.rows(new, id, RingOf::Box))?,
        ];
        for (chat, room) in &self.rooms {
            staged.push(ring_rows(RingKind::Chat, Some(chat.clone()), room.rows(new, id))?);
        }

        let (uk, mail) = (Key::random(), Key::random());
        let entry = |of, n: u32, key: &Key| Entry::seal(new, id, of, n + 1, key, new.generation());
        let ring = entry(RingOf::Account, book.keys.count(), &uk);
        let mailbox = entry(RingOf::Box, book.boxes.count(), &mail);
        book.keys.push(uk, new.generation());
        book.boxes.push(mail.clone(), new.generation());
        book.box_pub = BoxKey::from_key(&mail).public_key();
        let opened: Ring = book.keys.ring(new, id, RingOf::Account)?;
        let held = opened.newest();
        let floors = self.restaged_floors(&mut book, account.floors(), held)?;
        let manifest = Manifest {
            g: new.generation(),
            uk: book.keys.count(),
            box_n: book.boxes.count(),
            box_pub: book.box_pub,
            at: self.now(),
            device: self.state.device.clone(),
            ..account.manifest().clone()
        };
        let before = (account.mark(), account.manifest().chain);
        let head = seal_manifest(&book, before, manifest, |rev, json| {
            seal_record(held, id, &Place::Manifest, rev, json)
        })?;
        book.manifest = Bin::of(head.envelope.sealed());

        let rev = self.state.account_rev;
        let credentials = kept.iter().map(|one| one.new_credential(new, id, rev.saturating_add(1)));
        let commit = RotationCommit {
            generation: new.generation(),
            account_rev: rev,
            rings,
            credentials: List::new(credentials.collect::<Result<_, _>>()?)?,
            ring: ring.try_into()?,
            mailbox: MailboxPut { entry: mailbox.try_into()?, box_pub: book.box_pub },
            manifest: head,
        };
        let mut stages = Vec::new();
        for part in staged.chunks(RINGS) {
            let generation = new.generation();
            stages.push(RotationStage {
                generation,
                rings: List::new(part.to_vec())?,
                floors: List::default(),
            });
        }
        let generation = new.generation();
        stages.push(RotationStage { generation, rings: List::default(), floors: List::new(floors)? });
        Ok(Prepared { stages, commit, book })
    }

    /// Every floor under the new key of the account, with the heads that this device has verified.
    fn restaged_floors(
        &self,
        book: &mut Book,
        marks: &std::collections::BTreeMap<ChatId, Mark>,
        held: &confidant_chat_format::Held,
    ) -> Result<Vec<FloorSent>, Error> {
        let mut floors = Vec::new();
        for (shelf, slot) in Shelf::all().zip(&mut book.floors) {
            let here = marks.iter().filter(|(chat, _)| Shelf::of(chat) == shelf);
            // No head may be ahead of its floor here: it would be of a generation that is over.
            let newest = |chat: &ChatId, mark: &Mark| self.rooms.get(chat).map_or(*mark, |room| room.mark);
            let chats = here.map(|(chat, mark)| (chat.clone(), newest(chat, mark))).collect();
            let json = Floor { v: 1, chats }.to_json();
            let rev = slot.sealed().rev().unwrap_or(0).saturating_add(1);
            let sealed = seal_record(held, &self.state.account, &Place::Floor(shelf), rev, &json);
            *slot = Bin::of(&sealed);
            floors.push(FloorSent { shelf, envelope: Envelope::new(sealed)? });
        }
        Ok(floors)
    }
}

fn ring_rows(kind: RingKind, chat: Option<ChatId>, rows: Vec<Entry>) -> Result<RingRows, Error> {
    let entries = rows.into_iter().map(KeyEntry::try_from).collect::<Result<Vec<_>, _>>()?;
    Ok(RingRows { kind, chat, entries: List::new(entries)? })
}

/// Rings in one request.
const RINGS: usize = 500;
