//! Writes to chats: one event that changes a chat, its answers, and what other devices hear of it.
//!
//! Storing a message, an answer, a title or a summary is the same act: items, and the head that lists them, in one
//! write. So one event does it, under the name that the seed has for storing ciphertext, `encrypted_chat_metadata`.
//! Revisions and key ids are not sent beside an envelope: its header has them. Easy to get wrong: a write in two
//! halves. All of it is stored, or nothing.

use confidant_chat_format::{ChatId, Digest, EmbedId, FieldName, ItemId, MessageId, Shelf};

use crate::account::ManifestPut;
use crate::keys::{HeadPut, KeyEntry};
use crate::limits::{MAX_EMBED, MAX_FLOOR, MAX_MESSAGE, MAX_PUTS, MAX_RECORD};
use crate::lists::List;
use crate::malformed::{Malformed, Why};
use crate::shapes::objects;
use crate::values::Envelope;

objects! {
    /// Writes to a chat: items, removals, and the head after them. All of it is stored, or nothing.
    ///
    /// Creates the chat if `expected` is 0; then the first entry of its ring, its floor and the manifest have to be
    /// there. A title is the field `meta:title`. The answer is `encrypted_metadata_stored`, `write_conflict` or
    /// `refused`; the account's other devices get `chat_updated`.
    pub struct EncryptedChatMetadata (check check_write) {
        /// The chat.
        pub chat: ChatId,
        /// The revision of the head before this write; 0 creates the chat.
        pub expected: u32,
        /// The next entry of the chat's ring.
        pub ring: Option<KeyEntry>,
        /// The head after this write.
        pub head: HeadPut,
        /// Items that are new or changed.
        pub puts: List<Put, MAX_PUTS>,
        /// Items that are removed. A removed id cannot be used again.
        pub removes: List<ItemId, MAX_PUTS>,
        /// The floor of the chat's shelf.
        pub floor: Option<FloorPut>,
        /// The manifest; it has to be there with a floor, and only then.
        pub manifest: Option<ManifestPut>,
    }

    /// An item that is new or changed.
    pub struct Put (check check_put) {
        /// Which.
        pub item: ItemId,
        /// Its revision before; 0 for a new one.
        pub expected: u32,
        /// The sealed item: at most 262,144 bytes for a message, 65,536 for a field.
        pub envelope: Envelope<MAX_EMBED>,
    }

    /// A floor that is written.
    pub struct FloorPut {
        /// Which of the sixteen.
        pub shelf: Shelf,
        /// Its revision before; 0 for the first.
        pub expected: u32,
        /// The sealed floor.
        pub envelope: Envelope<MAX_FLOOR>,
    }

    /// The write was stored.
    pub struct EncryptedMetadataStored {
        /// The chat.
        pub chat: ChatId,
        /// The revision of its head now.
        pub messages_v: u32,
        /// How often its title changed.
        pub title_v: u32,
        /// Where the server put new items.
        pub placed: List<Placed, MAX_PUTS>,
        /// When it was stored, in milliseconds since 1970.
        pub updated_at: u64,
    }

    /// Where the server put an item: a hint for the order of sending, never the order of showing.
    pub struct Placed {
        /// The item.
        pub item: ItemId,
        /// Its number in the chat.
        pub seq: u64,
    }

    /// Another device wrote first; nothing was stored. Load what is newer and write again.
    ///
    /// Fields that say nothing about the request are left out. If `head` is the hash of the head that was sent, the
    /// write was stored before and only its answer was lost.
    pub struct WriteConflict {
        /// The chat.
        pub chat: Option<ChatId>,
        /// The revision of the chat's head now; 0 if there is no such chat.
        pub messages_v: Option<u32>,
        /// The hash of the head's envelope now.
        pub head: Option<Digest>,
        /// How many entries the ring has now.
        pub ring: Option<u32>,
        /// The revision of the chat's draft now.
        pub draft_v: Option<u32>,
        /// The revision of the manifest now.
        pub manifest: Option<u32>,
        /// The revision of the piece of account data now.
        pub data: Option<u32>,
    }

    /// Another device of this account wrote to a chat. Ciphertext only.
    pub struct ChatUpdated (check check_updated) {
        /// The chat.
        pub chat: ChatId,
        /// The revision of its head before.
        pub before: u32,
        /// How often its title changed.
        pub title_v: u32,
        /// The new entry of its ring.
        pub ring: Option<KeyEntry>,
        /// The new head.
        pub head: HeadPut,
        /// Items that are new or changed.
        pub items: List<ItemSent, MAX_PUTS>,
        /// Items that were removed.
        pub removed: List<ItemId, MAX_PUTS>,
        /// When, in milliseconds since 1970.
        pub updated_at: u64,
    }

    /// An item as the server has it.
    pub struct ItemSent (check check_item) {
        /// Which.
        pub item: ItemId,
        /// Its number in the chat.
        pub seq: u64,
        /// The hash of its envelope.
        pub hash: Digest,
        /// The sealed item. Left out for embeds, which `request_embed` fetches, and where the frame would be too large:
        /// then ask with `request_chat_content_batch`.
        pub envelope: Option<Envelope<MAX_EMBED>>,
    }

    /// Deletes a chat, with the floor and manifest that no longer list it. Answer: `chat_deleted`, to every device.
    pub struct DeleteChat {
        /// The chat.
        pub chat: ChatId,
        /// The revision of its head.
        pub expected: u32,
        /// The floor of its shelf, without it.
        pub floor: FloorPut,
        /// The manifest.
        pub manifest: ManifestPut,
    }

    /// A chat was deleted.
    pub struct ChatDeleted {
        /// The chat.
        pub chat: ChatId,
    }

    /// Deletes a message and what it shows: a write with nothing but removals, answered like one.
    pub struct DeleteMessage {
        /// The chat.
        pub chat: ChatId,
        /// The revision of the head before.
        pub expected: u32,
        /// The message.
        pub message: MessageId,
        /// Embeds that no other message shows.
        pub embeds: List<EmbedId, 900>,
        /// The head after it.
        pub head: HeadPut,
        /// The next entry of the chat's ring.
        pub ring: Option<KeyEntry>,
    }

    /// A message was deleted on another device.
    pub struct MessageDeleted {
        /// The chat.
        pub chat: ChatId,
        /// The message.
        pub message: MessageId,
        /// Embeds that went with it.
        pub embeds: List<EmbedId, 900>,
        /// The new head.
        pub head: HeadPut,
        /// The new entry of the chat's ring.
        pub ring: Option<KeyEntry>,
    }

    /// Which chat this device shows: what the next device gets first. Not answered.
    pub struct SetActiveChat {
        /// The chat; left out when none is open.
        pub chat: Option<ChatId>,
    }
}

impl EncryptedChatMetadata {
    /// Whether it changes the chat's title, so that `title_v` grows.
    pub fn changes_title(&self) -> bool {
        let title = |item: &ItemId| *item == ItemId::Field(title_field());
        self.puts.iter().any(|put| title(&put.item)) || self.removes.iter().any(title)
    }
}

impl From<DeleteMessage> for EncryptedChatMetadata {
    fn from(delete: DeleteMessage) -> Self {
        let DeleteMessage { chat, expected, message, embeds, head, ring } = delete;
        let embeds = embeds.into_vec().into_iter().map(ItemId::Embed);
        let removes = std::iter::once(ItemId::Message(message)).chain(embeds).collect();
        let removes = List::new(removes).expect("900 embeds and a message are fewer than a write may remove");
        Self { chat, expected, ring, head, puts: List::default(), removes, floor: None, manifest: None }
    }
}

impl Put {
    /// Takes an item, if it is not too large for what it is.
    pub fn new(item: ItemId, expected: u32, envelope: Envelope<MAX_EMBED>) -> Result<Self, Malformed> {
        let put = Self { item, expected, envelope };
        check_put(&put).map_err(|(field, why)| Malformed::new(field.to_owned(), why))?;
        Ok(put)
    }
}

/// How many bytes the envelope of such an item may have.
pub fn item_limit(item: &ItemId) -> usize {
    match item {
        ItemId::Message(_) => MAX_MESSAGE,
        ItemId::Embed(_) => MAX_EMBED,
        ItemId::Field(_) => MAX_RECORD,
    }
}

fn title_field() -> FieldName {
    FieldName::parse("title").expect("a name")
}

fn check_put(put: &Put) -> Result<(), (&'static str, Why)> {
    check_size(&put.item, Some(&put.envelope))
}

fn check_item(sent: &ItemSent) -> Result<(), (&'static str, Why)> {
    check_size(&sent.item, sent.envelope.as_ref())
}

fn check_size(item: &ItemId, envelope: Option<&Envelope<MAX_EMBED>>) -> Result<(), (&'static str, Why)> {
    let limit = item_limit(item);
    if envelope.is_none_or(|envelope| envelope.size() <= limit) {
        Ok(())
    } else {
        Err(("envelope", Why::TooLong(limit)))
    }
}

fn check_write(write: &EncryptedChatMetadata) -> Result<(), (&'static str, Why)> {
    let (floor, manifest) = (write.floor.is_some(), write.manifest.is_some());
    let creates = write.expected == 0;
    match () {
        () if floor != manifest => Err(("manifest", Why::Expected("there exactly if the floor is"))),
        () if creates && !floor => Err(("floor", Why::Missing)),
        () if creates && write.ring.is_none() => Err(("ring", Why::Missing)),
        () => check_once("removes", write.puts.iter().map(|put| &put.item), &write.removes),
    }
}

fn check_updated(update: &ChatUpdated) -> Result<(), (&'static str, Why)> {
    check_once("removed", update.items.iter().map(|sent| &sent.item), &update.removed)
}

/// Each item once: it is put or removed, not both.
fn check_once<'a>(
    field: &'static str,
    put: impl Iterator<Item = &'a ItemId>,
    removed: &'a [ItemId],
) -> Result<(), (&'static str, Why)> {
    let mut items: Vec<&ItemId> = put.chain(removed).collect();
    items.sort_unstable();
    if items.windows(2).any(|pair| pair[0] == pair[1]) { Err((field, Why::Twice)) } else { Ok(()) }
}
