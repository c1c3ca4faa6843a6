//! A new account key, as the server sees it: freeze, stage, commit.
//!
//! The server cannot open an entry, but it sees which key sealed it. All staged entries have the generation that is coming and
//! one key, the same as the two entries of the commit: entries of an attempt that was given up are never mixed in.

use std::collections::HashMap;

use confidant_chat_format::{AccountId, PublicKey, Refused, Shelf};
use confidant_chat_protocol::{
    AccountChanged, Body as _, LogoutReason, RingKind, RingRows, RotationBegin, RotationBegun,
    RotationCommit, RotationStage, RotationStaged,
};
use confidant_seal::{Kid, Sealed};

use super::credentials::{check_set, next_rev, taken};
use super::hub::SessionFilter;
use super::identity::{Known, Proven};
use super::record::AccountRecord;
use super::refusals::{Answer, conflict, malformed, not_found, unavailable};
use super::rows::{open_entry, seal_entry};
use super::witness::Act;
use super::{Answered, Caller, Inner};
use crate::store::{
    AccountState, BeginRotation, CommitRotation, FloorPut, HaveList, ListPut, ManifestPut, RingEntry,
    RingName, Stage, Staged, StoreError, limits,
};

impl Inner {
    pub(crate) async fn begin_rotation(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, request, .. } = self.proven::<RotationBegin>(caller, body).await?;
        next_rev(&known, request.account_rev)?;
        let session = self.session_of(caller, &known.account).await?;
        let generation = next_generation(&known)?;
        let begin = BeginRotation {
            account: known.account.clone(),
            expected: known.row.rev,
            session: session.id,
            now: self.now(),
        };
        let frozen = self.store.begin_rotation(begin).await?;
        self.hub.end(&known.account, &SessionFilter::AllBut(session.id), LogoutReason::Rotated);
        let rings = self.count_rings(&known.account).await?;
        Answered::json(&RotationBegun { generation, rings, expires_at: frozen.until.0 })
    }

    async fn count_rings(&self, account: &AccountId) -> Answer<u32> {
        let (mut count, mut after): (u32, Option<(RingName, u32)>) = (0, None);
        loop {
            let page = self.store.rings(account, after.clone()).await?;
            let Some(last) = page.last() else { return Ok(count) };
            let next = Some((last.of.clone(), last.entry.n));
            for row in page {
                if after.as_ref().is_none_or(|(of, _)| *of != row.of) {
                    count = count.saturating_add(1);
                }
                after = Some((row.of, row.entry.n));
            }
            after = next;
        }
    }

    pub(crate) async fn stage(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let session = self.session(caller).await?;
        let request = RotationStage::read(body)?;
        let known = self.known(&session.account).await?;
        let frozen = matches!(known.row.state, AccountState::Rotating { .. });
        if !frozen || next_generation(&known)? != request.generation {
            return Err(conflict());
        }
        let rings = request.rings.into_vec();
        let wrap = rings.iter().flat_map(|rows| rows.entries.iter()).map(|entry| entry.sealed.kid()).next();
        let mut entries = Vec::new();
        for rows in rings {
            self.seal_staged(&known, rows, wrap, request.generation, &mut entries).await?;
        }
        let floors = request.floors.into_vec().into_iter();
        let floors = floors.map(|floor| (floor.shelf, floor.envelope.into_sealed())).collect();
        let staged = self.stage_all(&known, wrap, entries, floors).await?;
        Answered::json(&RotationStaged { rings: staged.rings, floors: staged.floors })
    }

    async fn stage_all(
        &self,
        known: &Known,
        wrap: Option<Kid>,
        entries: Vec<RingEntry>,
        floors: Vec<(Shelf, Sealed)>,
    ) -> Answer<Staged> {
        let stage = |entries: &[RingEntry], floors| Stage {
            account: known.account.clone(),
            epoch: known.row.epoch,
            wrap,
            entries: entries.to_vec(),
            floors,
            now: self.now(),
        };
        let mut staged = self.store.stage(stage(&[], floors)).await?;
        for part in entries.chunks(limits::STAGED_A_CALL) {
            staged = self.store.stage(stage(part, Vec::new())).await?;
        }
        Ok(staged)
    }

    /// Seals the entries of one ring for the store. Another generation or another key than the others': `key-refused`.
    async fn seal_staged(
        &self,
        known: &Known,
        rows: RingRows,
        wrap: Option<Kid>,
        generation: u32,
        out: &mut Vec<RingEntry>,
    ) -> Answer<()> {
        let of = match (rows.kind, rows.chat) {
            (RingKind::Chat, Some(chat)) => RingName::Chat(chat),
            (RingKind::Account, _) => RingName::Account,
            (RingKind::Mailbox, _) => RingName::Box,
            (RingKind::Chat, None) => return Err(malformed("a chat's ring has a chat")),
        };
        let key = self.ring_key(&known.account, &of).await?.ok_or_else(not_found)?;
        let publics = match of {
            RingName::Box => self.box_publics(known).await?,
            RingName::Account | RingName::Chat(_) => HashMap::new(),
        };
        for entry in rows.entries.into_vec() {
            if Some(entry.sealed.kid()) != wrap || entry.sealed.rev() != generation {
                return Err(Refused::KeyRefused.into());
            }
            let box_pub = publics.get(&entry.n);
            if of == RingName::Box && box_pub.is_none() {
                return Err(conflict());
            }
            out.push(seal_entry(&key, &known.account, of.clone(), entry.into(), box_pub));
        }
        Ok(())
    }

    /// The public keys of the mailbox's entries, by number.
    async fn box_publics(&self, known: &Known) -> Answer<HashMap<u32, PublicKey>> {
        let mut publics = HashMap::new();
        for row in self.store.ring(&known.account, &RingName::Box).await? {
            let (entry, public) = open_entry(&known.key, &known.account, &RingName::Box, row)?;
            publics.extend(public.map(|public| (entry.n, public)));
        }
        Ok(publics)
    }

    pub(crate) async fn commit_rotation(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, request, .. } = self.proven_in_rotation::<RotationCommit>(caller, body).await?;
        let rev = next_rev(&known, request.account_rev)?;
        let generation = next_generation(&known)?;
        if generation != request.generation {
            return Err(conflict());
        }
        let session = self.session_of(caller, &known.account).await?;
        let credentials = taken(&request.credentials, rev)?;
        check_set(&credentials)?;
        let account = &known.account;
        let wrap = request.ring.sealed.kid();
        let new = [&request.ring, &request.mailbox.entry];
        if new.iter().any(|entry| entry.sealed.kid() != wrap || entry.sealed.rev() != generation) {
            return Err(Refused::KeyRefused.into());
        }
        let tags = self.tags(&credentials);
        let record = AccountRecord { credentials, ..known.record.clone() };
        let manifest = request.manifest;
        let list = ListPut {
            floors: self.staged_floors(account).await?,
            manifest: ManifestPut {
                expected: manifest.envelope.rev().checked_sub(1).ok_or_else(conflict)?,
                envelope: manifest.envelope.into_sealed(),
                live: manifest.live,
                chain: manifest.chain,
            },
        };
        let commit = CommitRotation {
            account: account.clone(),
            epoch: known.row.epoch,
            expected: known.row.rev,
            session: session.id,
            wrap,
            digest: request.rings,
            append: [
                seal_entry(&known.key, account, RingName::Account, request.ring.into(), None),
                seal_entry(
                    &known.key,
                    account,
                    RingName::Box,
                    request.mailbox.entry.into(),
                    Some(&request.mailbox.box_pub),
                ),
            ],
            list,
            record: record.seal(&known.key, account, rev),
            login: None,
            credentials: tags,
            now: self.now(),
        };
        let room = self.hub.room(account);
        let _turn = room.turn().await;
        let account_rev = self.store.commit_rotation(commit).await?;
        self.vault.raise(account, account_rev).await?;
        self.hub.end(account, &SessionFilter::AllBut(session.id), LogoutReason::Rotated);
        self.publish_account(account).await?;
        self.witness(account, Act::KeyRotated).await;
        Answered::json(&AccountChanged { account_rev, generation })
    }

    /// The floors that were staged, each against the one that is there. Not all sixteen: `conflict`.
    async fn staged_floors(&self, account: &AccountId) -> Answer<Vec<FloorPut>> {
        let there = self.store.list(account, HaveList::default()).await?.floors;
        let staged = self.store.staged_floors(account).await?;
        if staged.len() != there.len() {
            return Err(conflict());
        }
        let put = |(shelf, envelope)| {
            let floor = there.iter().find(|floor| floor.shelf == shelf);
            let expected = floor.map(|floor| floor.rev).ok_or(StoreError::Conflict { now: 0 })?;
            Ok(FloorPut { shelf, expected, envelope })
        };
        staged.into_iter().map(put).collect()
    }
}

fn next_generation(known: &Known) -> Answer<u32> {
    let next = known.row.generation.checked_add(1);
    next.ok_or_else(|| unavailable("the account key cannot be replaced once more"))
}
