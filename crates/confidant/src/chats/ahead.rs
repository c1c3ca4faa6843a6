//! What is read ahead for devices, on the Redis that gateways share: whichever of them a device comes to has it.
//!
//! ```text
//! value = 1, then for each item: u16 length, id, u32 length, envelope        numbers with the most significant byte first
//! ```
//!
//! Nothing here is believed: the service holds every envelope against the hash that the store has. Easy to get wrong: a value
//! that somebody else wrote. It is read as any foreign bytes, and what cannot be read is not there.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, DeviceId, ItemId};
use confidant_chats::service::{Envelopes, Sealed, SyncCache};
use confidant_chats::store::Millis;
use confidant_engine::keys::AccountKeys;
use confidant_engine::storage::{RedisNames, RedisSettings, ShelfLimits, SyncShelf};

use crate::config::WebSection;

/// A shelf on a Redis.
#[derive(Debug)]
pub(super) struct Ahead {
    shelf: SyncShelf,
    /// Names ids where readable ones are not wanted.
    names: Option<AccountKeys>,
}

impl Ahead {
    /// Does not connect yet.
    pub(super) fn open(redis: &RedisSettings, web: &WebSection, keys: &AccountKeys) -> anyhow::Result<Self> {
        let limits = ShelfLimits { lives: web.sync_cache, chats: web.sync_cache_chats, bytes: BYTES };
        let shelf = SyncShelf::open(redis, &web.tenant()?, limits)?;
        let names = (redis.names == RedisNames::Opaque).then(|| keys.clone());
        Ok(Self { shelf, names })
    }

    fn name(&self, id: &str) -> String {
        match &self.names {
            Some(keys) => keys.tag("sync-name", id.as_bytes()).to_string(),
            None => id.to_owned(),
        }
    }
}

#[async_trait]
impl SyncCache for Ahead {
    async fn begin(&self, account: &AccountId, device: &DeviceId, _: Millis) {
        self.shelf.begin(&self.name(account.as_str()), &self.name(device.as_str())).await;
    }

    async fn put(&self, account: &AccountId, chat: &ChatId, envelopes: Envelopes, _: Millis) {
        let bytes = write(&envelopes);
        self.shelf.put(&self.name(account.as_str()), &self.name(chat.as_str()), &bytes).await;
    }

    async fn get(&self, account: &AccountId, chat: &ChatId, _: Millis) -> Envelopes {
        let bytes = self.shelf.get(&self.name(account.as_str()), &self.name(chat.as_str())).await;
        bytes.and_then(|bytes| read(&bytes)).unwrap_or_default()
    }

    async fn end(&self, account: &AccountId, device: &DeviceId) {
        self.shelf.end(&self.name(account.as_str()), &self.name(device.as_str())).await;
    }

    async fn forget(&self, account: &AccountId, chat: Option<&ChatId>) {
        let chat = chat.map(|chat| self.name(chat.as_str()));
        self.shelf.forget(&self.name(account.as_str()), chat.as_deref()).await;
    }
}

fn write(envelopes: &Envelopes) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    for (item, envelope) in envelopes {
        let (item, envelope) = (item.to_string(), envelope.as_bytes());
        // Ids are short, and envelopes are within the limits of the protocol: what is not is left out.
        let (Ok(short), Ok(long)) = (u16::try_from(item.len()), u32::try_from(envelope.len())) else {
            continue;
        };
        bytes.extend_from_slice(&short.to_be_bytes());
        bytes.extend_from_slice(item.as_bytes());
        bytes.extend_from_slice(&long.to_be_bytes());
        bytes.extend_from_slice(envelope);
    }
    bytes
}

fn read(bytes: &[u8]) -> Option<Envelopes> {
    let (&VERSION, mut rest) = bytes.split_first()? else { return None };
    let mut envelopes = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk()?;
        let (item, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
        let (length, after) = after.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (envelope, after) = after.split_at_checked(length)?;
        let item = ItemId::parse(std::str::from_utf8(item).ok()?).ok()?;
        envelopes.push((item, Sealed::from_bytes(envelope.to_vec())));
        rest = after;
    }
    Some(envelopes)
}

/// What is read of these bytes, as it would be written; nothing if they cannot be read.
#[cfg(feature = "fuzzing")]
pub(crate) fn rewritten(bytes: &[u8]) -> Option<Vec<u8>> {
    read(bytes).as_ref().map(write)
}

const VERSION: u8 = 1;
/// Bytes of one account.
const BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use confidant_chat_format::MessageId;

    use super::*;

    #[test]
    fn envelopes_are_read_as_they_were_written_and_nothing_else_is() {
        let item = || ItemId::Message(MessageId::random());
        let envelopes: Envelopes = [b"one".to_vec(), Vec::new(), vec![7; 70_000]]
            .map(|bytes| (item(), Sealed::from_bytes(bytes)))
            .into();
        let bytes = write(&envelopes);
        assert_eq!(read(&bytes), Some(envelopes.clone()));
        assert_eq!(read(&[VERSION]), Some(Vec::new()));
        let short = write(&envelopes[..2].to_vec());
        let whole: Vec<usize> = (0..short.len()).filter(|end| read(&short[..*end]).is_some()).collect();
        // Cut between two items, it is a shorter list.
        assert_eq!(whole, [1, write(&envelopes[..1].to_vec()).len()]);
        for foreign in [&b""[..], b"\x02", b"\x01\x00\x01x\x00\x00\x00\x00", b"\x01\xff\xff", b"plain text"] {
            assert_eq!(read(foreign), None);
        }
    }
}
