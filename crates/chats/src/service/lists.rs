//! Drafts, account data and the manifest: records outside every chat's list.

use confidant_chat_format::{FieldName, Refused};
use confidant_chat_protocol::{
    ChatDraftUpdated, DataRecords, DataSent, DataUpdated, DeleteData, DeleteDraft, DraftDeleted, Envelope,
    List, ManifestStored, ServerEvent, ServerFrame, UpdateData, UpdateDraft, UpdateManifest, WriteConflict,
    limits,
};

use super::Inner;
use super::frames::Step;
use super::parts::{ITEM_SIZE, base64};
use super::refusals::Answer;
use super::rows::seal_entry;
use super::socket::Peer;
use super::writes::list_of;
use crate::store::{HaveList, ListWrite, PutData, PutDraft, RingName, StoreError};

/// A draft that was stored, or what there is now.
pub(crate) enum Drafted {
    Stored(ChatDraftUpdated, u64),
    Conflict(WriteConflict),
}

impl Inner {
    pub(crate) async fn draft_step(&self, peer: &Peer, update: UpdateDraft) -> Answer<Vec<Step>> {
        Ok(vec![match self.update_draft(peer, update).await? {
            Drafted::Stored(stored, seq) => Step::change(seq, ServerEvent::ChatDraftUpdated(stored)),
            Drafted::Conflict(conflict) => Step::event(ServerEvent::WriteConflict(conflict)),
        }])
    }

    pub(crate) async fn update_draft(&self, peer: &Peer, update: UpdateDraft) -> Answer<Drafted> {
        let UpdateDraft { chat, expected, draft } = update;
        let room = self.hub.room(&peer.account);
        let _turn = room.turn().await;
        let put = PutDraft {
            account: peer.account.clone(),
            chat: chat.clone(),
            expected,
            envelope: Some(draft.sealed().clone()),
            now: self.now(),
        };
        let draft_v = draft.rev();
        match self.store.put_draft(put).await {
            Err(StoreError::Conflict { now }) => {
                Ok(Drafted::Conflict(WriteConflict { chat: Some(chat), draft_v: Some(now), ..NOTHING }))
            }
            seq => {
                let seq = seq?;
                let news = ChatDraftUpdated { chat: chat.clone(), draft_v, draft: Some(draft) };
                self.tell(peer, seq, ServerEvent::ChatDraftUpdated(news));
                Ok(Drafted::Stored(ChatDraftUpdated { chat, draft_v, draft: None }, seq))
            }
        }
    }

    pub(crate) async fn delete_draft(&self, peer: &Peer, delete: DeleteDraft) -> Answer<Vec<Step>> {
        let DeleteDraft { chat, expected } = delete;
        let room = self.hub.room(&peer.account);
        let _turn = room.turn().await;
        let put = PutDraft {
            account: peer.account.clone(),
            chat: chat.clone(),
            expected,
            envelope: None,
            now: self.now(),
        };
        match self.store.put_draft(put).await {
            Err(StoreError::Conflict { now }) => {
                Ok(conflict(WriteConflict { chat: Some(chat), draft_v: Some(now), ..NOTHING }))
            }
            seq => {
                let gone = DraftDeleted { chat, draft_v: expected.saturating_add(1) };
                Ok(self.done(peer, seq?, ServerEvent::DraftDeleted(gone)))
            }
        }
    }

    pub(crate) async fn update_data(&self, peer: &Peer, update: UpdateData) -> Answer<Vec<Step>> {
        let UpdateData { kind, name, expected, data } = update;
        let rev = data.rev();
        let updated =
            |data| DataUpdated { kind: kind.clone(), name: name.clone(), rev, removed: false, data };
        let (news, answer) = (updated(Some(data.clone())), updated(None));
        let put = PutData {
            account: peer.account.clone(),
            kind: kind.clone(),
            name: name.clone(),
            expected,
            envelope: Some(data.into_sealed()),
            now: self.now(),
        };
        self.put_data(peer, put, news, answer).await
    }

    pub(crate) async fn delete_data(&self, peer: &Peer, delete: DeleteData) -> Answer<Vec<Step>> {
        let DeleteData { kind, name, expected } = delete;
        let rev = expected.saturating_add(1);
        let gone = DataUpdated { kind: kind.clone(), name: name.clone(), rev, removed: true, data: None };
        let put =
            PutData { account: peer.account.clone(), kind, name, expected, envelope: None, now: self.now() };
        self.put_data(peer, put, gone.clone(), gone).await
    }

    async fn put_data(
        &self,
        peer: &Peer,
        put: PutData,
        news: DataUpdated,
        answer: DataUpdated,
    ) -> Answer<Vec<Step>> {
        let room = self.hub.room(&peer.account);
        let _turn = room.turn().await;
        match self.store.put_data(put).await {
            Err(StoreError::Conflict { now }) => Ok(conflict(WriteConflict { data: Some(now), ..NOTHING })),
            seq => {
                let seq = seq?;
                self.tell(peer, seq, ServerEvent::DataUpdated(news));
                Ok(vec![Step::change(seq, ServerEvent::DataUpdated(answer))])
            }
        }
    }

    /// Account data, in as many frames as it takes.
    pub(crate) async fn data_steps(&self, peer: &Peer, kind: Option<&FieldName>) -> Answer<Vec<Step>> {
        let rows = self.store.data(&peer.account).await?;
        let rows = rows.into_iter().filter(|row| kind.is_none_or(|kind| row.kind == *kind));
        let (mut frames, mut size): (Vec<Vec<DataSent>>, usize) = (vec![Vec::new()], 0);
        for row in rows {
            let Some(envelope) = row.envelope else { continue };
            let next = base64(envelope.as_bytes().len()) + ITEM_SIZE;
            let is_full = |frame: &Vec<DataSent>| frame.len() == limits::MAX_DATA || size + next > LARGEST;
            if frames.last().is_some_and(is_full) {
                frames.push(Vec::new());
                size = 0;
            }
            size += next;
            let sent = DataSent { kind: row.kind, name: row.name, data: Envelope::new(envelope)? };
            if let Some(frame) = frames.last_mut() {
                frame.push(sent);
            }
        }
        let last = frames.len() - 1;
        let step = |(at, records)| {
            let records = DataRecords { records: List::new(records)?, more: at < last };
            Ok(Step::event(ServerEvent::DataRecords(records)))
        };
        frames.into_iter().enumerate().map(step).collect()
    }

    pub(crate) async fn update_manifest(&self, peer: &Peer, update: UpdateManifest) -> Answer<Vec<Step>> {
        let account = &peer.account;
        let UpdateManifest { floors, manifest } = update;
        let rev = manifest.head.envelope.rev();
        let mut append = Vec::new();
        if manifest.ring.is_some() || manifest.mailbox.is_some() {
            let key = self.vault.key(account, None).await?;
            let key = key.ok_or(Refused::AccountMissing)?;
            let ring =
                manifest.ring.map(|entry| seal_entry(&key, account, RingName::Account, entry.into(), None));
            let mailbox = manifest
                .mailbox
                .map(|new| seal_entry(&key, account, RingName::Box, new.entry.into(), Some(&new.box_pub)));
            append.extend(ring.into_iter().chain(mailbox));
        }
        let list = list_of(floors.into_vec(), manifest.head)?;
        let write = ListWrite { account: account.clone(), append, list, now: self.now() };
        let room = self.hub.room(account);
        let _turn = room.turn().await;
        let seq = match self.store.write_list(write).await {
            Err(StoreError::Conflict { .. }) => {
                let there = self.store.list(account, HaveList::default()).await?.manifest.rev;
                return Ok(conflict(WriteConflict { manifest: Some(there), ..NOTHING }));
            }
            seq => seq?,
        };
        if self.hub.has_others(account, peer.seat) {
            let (_, event) = self.account_updated(account).await?;
            self.tell(peer, seq, event);
        }
        Ok(vec![Step::change(seq, ServerEvent::ManifestStored(ManifestStored { rev }))])
    }

    /// Tells the account's other sockets.
    pub(crate) fn tell(&self, peer: &Peer, seq: u64, event: ServerEvent) {
        self.hub.publish(&peer.account, peer.seat, vec![ServerFrame { re: None, seq: Some(seq), event }]);
    }

    /// The same event for the device that asked and for the others.
    fn done(&self, peer: &Peer, seq: u64, event: ServerEvent) -> Vec<Step> {
        self.tell(peer, seq, event.clone());
        vec![Step::change(seq, event)]
    }
}

fn conflict(conflict: WriteConflict) -> Vec<Step> {
    vec![Step::event(ServerEvent::WriteConflict(conflict))]
}

const NOTHING: WriteConflict = WriteConflict {
    chat: None,
    messages_v: None,
    head: None,
    ring: None,
    draft_v: None,
    manifest: None,
    data: None,
};
/// What the data of one frame may take, in JSON.
const LARGEST: usize = 6 << 20;
