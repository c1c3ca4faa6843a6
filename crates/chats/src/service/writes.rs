//! Writes to chats: stored as a whole, answered, and told to the account's other sockets.

use confidant_chat_format::{AccountId, ChatId, Digest, ItemId};
use confidant_chat_protocol::{
    ChatDeleted, ChatUpdated, DeleteChat, DeleteMessage, EncryptedChatMetadata, EncryptedMetadataStored,
    FloorPut, ItemSent, List, ManifestPut, MessageDeleted, Placed, ServerEvent, ServerFrame, WriteConflict,
};

use super::Inner;
use super::frames::Step;
use super::parts::{ITEM_SIZE, base64};
use super::refusals::{Answer, malformed, not_found};
use super::rows::seal_entry;
use super::socket::Peer;
use super::witness::Act;
use crate::store::{self, ChatDelta, Have, HaveList, ListPut, RingName, StoreError, Write, Written};

/// What became of a write.
pub(crate) enum Outcome {
    Stored(EncryptedMetadataStored, u64),
    Conflict(WriteConflict),
}

/// What an account's other sockets are told of a write.
enum WriteEvent {
    Updated,
    Deleted(Box<DeleteMessage>),
}

impl Inner {
    pub(crate) async fn write_step(&self, peer: &Peer, write: EncryptedChatMetadata) -> Answer<Vec<Step>> {
        Ok(step(self.write(peer, write).await?))
    }

    pub(crate) async fn write(&self, peer: &Peer, write: EncryptedChatMetadata) -> Answer<Outcome> {
        self.write_as(peer, write, WriteEvent::Updated).await
    }

    pub(crate) async fn delete_message(&self, peer: &Peer, delete: DeleteMessage) -> Answer<Vec<Step>> {
        let write = delete.clone().into();
        Ok(step(self.write_as(peer, write, WriteEvent::Deleted(Box::new(delete))).await?))
    }

    async fn write_as(
        &self,
        peer: &Peer,
        write: EncryptedChatMetadata,
        event: WriteEvent,
    ) -> Answer<Outcome> {
        let room = self.hub.room(&peer.account);
        let _turn = room.turn().await;
        let stored = self.to_store(peer, &write).await?;
        let written = match self.store.write(stored).await {
            Err(StoreError::Conflict { .. }) => {
                return Ok(Outcome::Conflict(self.write_conflict(peer, &write.chat).await?));
            }
            written => written?,
        };
        let have = Have { messages_v: write.expected, draft_v: 0, trail_from: 0 };
        let delta = self.store.chat(&peer.account, &write.chat, have).await?;
        let placed = write.puts.iter().filter(|put| put.expected == 0);
        let placed = placed.map(|put| Placed { item: put.item.clone(), seq: seq_of(&delta, &put.item) });
        let answer = EncryptedMetadataStored {
            chat: write.chat.clone(),
            messages_v: written.rev,
            title_v: delta.chat.title_v,
            placed: List::new(placed.collect())?,
            updated_at: delta.chat.updated_at.0,
        };
        if self.hub.has_others(&peer.account, peer.seat) {
            self.tell_write(peer, write, &delta, written, event).await?;
        }
        Ok(Outcome::Stored(answer, written.seq))
    }

    async fn to_store(&self, peer: &Peer, write: &EncryptedChatMetadata) -> Answer<Write> {
        let append = match write.ring.clone() {
            Some(entry) => {
                let account = &peer.account;
                // A write that creates the chat makes its key; of one that is there, nobody makes another.
                let key = match write.expected {
                    // An account that is being erased has no key, and gets none for a chat.
                    0 if self.vault.key(account, None).await?.is_none() => return Err(not_found()),
                    0 => self.vault.key_or_new(account, Some(&write.chat)).await?,
                    _ => self.vault.key(account, Some(&write.chat)).await?.ok_or(StoreError::NotFound)?,
                };
                let of = RingName::Chat(write.chat.clone());
                Some(seal_entry(&key, account, of, entry.into(), None).entry)
            }
            None => None,
        };
        let list = match (write.floor.clone(), write.manifest.clone()) {
            (Some(floor), Some(manifest)) => Some(list_put(vec![floor], manifest)?),
            _ => None,
        };
        let put = |put: &confidant_chat_protocol::Put| store::Put {
            item: put.item.clone(),
            expected: put.expected,
            envelope: put.envelope.sealed().clone(),
        };
        Ok(Write {
            account: peer.account.clone(),
            chat: write.chat.clone(),
            expected: write.expected,
            append,
            head: write.head.envelope.sealed().clone(),
            live: write.head.live,
            chain: write.head.chain,
            puts: write.puts.iter().map(put).collect(),
            removes: write.removes.to_vec(),
            list,
            now: self.now(),
        })
    }

    async fn tell_write(
        &self,
        peer: &Peer,
        write: EncryptedChatMetadata,
        delta: &ChatDelta,
        written: Written,
        event: WriteEvent,
    ) -> Answer<()> {
        let has_list = write.manifest.is_some();
        let event = match event {
            WriteEvent::Updated => updated(write, delta)?,
            WriteEvent::Deleted(delete) => ServerEvent::MessageDeleted(MessageDeleted {
                chat: delete.chat,
                message: delete.message,
                embeds: delete.embeds,
                head: delete.head,
                ring: delete.ring,
            }),
        };
        // Two changes where the list was written as well: the chat's comes first.
        let seq = written.seq.saturating_sub(has_list.into());
        let mut frames = vec![ServerFrame { re: None, seq: Some(seq), event }];
        if has_list {
            let (_, event) = self.account_updated(&peer.account).await?;
            frames.push(ServerFrame { re: None, seq: Some(written.seq), event });
        }
        self.hub.publish(&peer.account, peer.seat, frames);
        Ok(())
    }

    /// What there is now, for somebody whose write came too late.
    pub(crate) async fn write_conflict(&self, peer: &Peer, chat: &ChatId) -> Answer<WriteConflict> {
        let nothing = Have { messages_v: u32::MAX, draft_v: 0, trail_from: 0 };
        let there = match self.store.chat(&peer.account, chat, nothing).await {
            Err(StoreError::NotFound) => None,
            there => Some(there?),
        };
        let manifest = self.store.list(&peer.account, HaveList::default()).await?.manifest.rev;
        let ring = there.as_ref().map_or(0, |there| there.ring.len());
        Ok(WriteConflict {
            chat: Some(chat.clone()),
            messages_v: Some(there.as_ref().map_or(0, |there| there.chat.messages_v)),
            head: there.as_ref().map(|there| Digest::of(there.chat.head.as_bytes())),
            ring: Some(u32::try_from(ring).unwrap_or(u32::MAX)),
            draft_v: None,
            manifest: Some(manifest),
            data: None,
        })
    }

    /// Deletes a chat and destroys its key. A deletion that is refused takes nothing with it: a turn that runs goes on. Deleted once more
    /// after a kill in between, the chat's words and its key go as well.
    pub(crate) async fn delete_chat(&self, peer: &Peer, delete: DeleteChat) -> Answer<Vec<Step>> {
        let (account, chat) = (&peer.account, &delete.chat);
        let room = self.hub.room(account);
        let _turn = room.turn().await;
        let stored = store::DeleteChat {
            account: account.clone(),
            chat: chat.clone(),
            expected: delete.expected,
            list: list_put(vec![delete.floor.clone()], delete.manifest.clone())?,
            now: self.now(),
        };
        let seq = match self.store.delete_chat(stored).await {
            Err(StoreError::Conflict { .. }) => {
                let conflict = self.write_conflict(peer, chat).await?;
                return Ok(vec![Step::event(ServerEvent::WriteConflict(conflict))]);
            }
            Err(StoreError::NotFound) => {
                self.forget_chat(account, chat).await?;
                return Err(StoreError::NotFound.into());
            }
            seq => seq?,
        };
        self.forget_chat(account, chat).await?;
        self.forget_ahead(account, Some(chat)).await;
        self.witness(account, Act::ChatDeleted).await;
        let event = ServerEvent::ChatDeleted(ChatDeleted { chat: chat.clone() });
        if self.hub.has_others(account, peer.seat) {
            let (_, updated) = self.account_updated(account).await?;
            let news = |seq, event| ServerFrame { re: None, seq: Some(seq), event };
            let frames = vec![news(seq.saturating_sub(1), event.clone()), news(seq, updated)];
            self.hub.publish(account, peer.seat, frames);
        }
        Ok(vec![Step::change(seq, event)])
    }

    /// Everything that is kept of a chat that is gone from the store: its turns and words, what was kept beyond them, its key.
    async fn forget_chat(&self, account: &AccountId, chat: &ChatId) -> Answer<()> {
        self.forget_words(account, chat).await?;
        self.forget_all(account, chat).await?;
        Ok(self.vault.destroy_chats(account, std::slice::from_ref(chat)).await?)
    }
}

/// Floors and manifest for the store. New keys of the account or the mailbox come by `update_manifest`, which is one
/// transaction with them.
pub(crate) fn list_put(floors: Vec<FloorPut>, manifest: ManifestPut) -> Answer<ListPut> {
    if manifest.ring.is_some() || manifest.mailbox.is_some() {
        return Err(malformed("a new key of the account is written by update_manifest"));
    }
    list_of(floors, manifest.head)
}

pub(crate) fn list_of(floors: Vec<FloorPut>, manifest: confidant_chat_protocol::HeadPut) -> Answer<ListPut> {
    let floor = |floor: FloorPut| store::FloorPut {
        shelf: floor.shelf,
        expected: floor.expected,
        envelope: floor.envelope.into_sealed(),
    };
    let expected = manifest.envelope.rev().checked_sub(1);
    Ok(ListPut {
        floors: floors.into_iter().map(floor).collect(),
        manifest: store::ManifestPut {
            expected: expected.ok_or_else(|| malformed("revisions begin with 1"))?,
            envelope: manifest.envelope.into_sealed(),
            live: manifest.live,
            chain: manifest.chain,
        },
    })
}

fn step(outcome: Outcome) -> Vec<Step> {
    vec![match outcome {
        Outcome::Stored(stored, seq) => Step::change(seq, ServerEvent::EncryptedMetadataStored(stored)),
        Outcome::Conflict(conflict) => Step::event(ServerEvent::WriteConflict(conflict)),
    }]
}

fn seq_of(delta: &ChatDelta, item: &ItemId) -> u64 {
    delta.changed.iter().find(|line| line.item == *item).map_or(0, |line| line.seq.into())
}

/// What other devices hear of a write. Envelopes that would make the frame too large are left out; so are embeds.
fn updated(write: EncryptedChatMetadata, delta: &ChatDelta) -> Answer<ServerEvent> {
    let seqs: std::collections::BTreeMap<&ItemId, u32> =
        delta.changed.iter().map(|line| (&line.item, line.seq)).collect();
    let mut left = LARGEST;
    let item = |put: confidant_chat_protocol::Put| {
        let size = base64(put.envelope.size()) + ITEM_SIZE;
        let is_sent = !matches!(put.item, ItemId::Embed(_)) && size <= left;
        left = left.saturating_sub(if is_sent { size } else { ITEM_SIZE });
        ItemSent {
            seq: seqs.get(&put.item).copied().unwrap_or(0).into(),
            hash: Digest::of(put.envelope.sealed().as_bytes()),
            envelope: is_sent.then_some(put.envelope),
            item: put.item,
        }
    };
    let items = List::new(write.puts.into_vec().into_iter().map(item).collect())?;
    Ok(ServerEvent::ChatUpdated(ChatUpdated {
        chat: write.chat,
        before: write.expected,
        title_v: delta.chat.title_v,
        ring: write.ring,
        head: write.head,
        items,
        removed: write.removes,
        updated_at: delta.chat.updated_at.0,
    }))
}

/// What the items of news may take, in JSON.
const LARGEST: usize = 4 << 20;
