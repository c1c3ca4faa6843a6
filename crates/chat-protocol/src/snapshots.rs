//! Snapshots: a branch of a chat, sealed once more under a key of its own, that its owner shares with whoever has the link.
//!
//! ```text
//! owner: make (session) ──▶ made      list, revoke (session)
//! whoever has the link: open (id) ──▶ list, messages, embeds          the key is in the link only
//! ```
//!
//! Easy to get wrong: telling why there is nothing. An id that never was, one that was revoked and one that is over are the same
//! `not-found`.

use confidant_chat_format::{ChatId, ItemId, SnapshotId};

use crate::chats::item_limit;
use crate::limits::{
    MAX_EMBED, MAX_FRAME, MAX_KEY, MAX_RECORD, MAX_SNAPSHOT, MAX_SNAPSHOT_ITEMS, MAX_SNAPSHOTS,
};
use crate::lists::List;
use crate::malformed::Why;
use crate::shapes::objects;
use crate::values::Envelope;

objects! {
    /// Shares a snapshot of a chat. All of it has at most 4 MiB.
    ///
    /// `key-refused`: the key is not sealed under a key of the chat. `duplicate`: there is a snapshot with this id. `too-many`: the account has as
    /// many as it may have.
    pub struct MakeSnapshot (limit MAX_FRAME) (check check_make) {
        /// The snapshot's id, which the device made.
        pub id: SnapshotId,
        /// The chat.
        pub chat: ChatId,
        /// Until when it can be opened, in milliseconds since 1970: at most 90 days from now.
        pub expires_at: u64,
        /// The snapshot's key, sealed under the chat's for the owner's devices.
        pub key: Envelope<MAX_KEY>,
        /// The sealed list.
        pub list: Envelope<MAX_RECORD>,
        /// Messages and embeds.
        pub items: List<SnapshotItem, MAX_SNAPSHOT_ITEMS, 1>,
    }

    /// A message or an embed of a snapshot.
    pub struct SnapshotItem (check check_item) {
        /// Which: a message id or an embed id.
        pub item: ItemId,
        /// It.
        pub envelope: Envelope<MAX_EMBED>,
    }

    /// The snapshot is stored.
    pub struct SnapshotMade {
        /// Until when it can be opened, in milliseconds since 1970.
        pub expires_at: u64,
    }

    /// Asks for the account's snapshots.
    pub struct RequestSnapshots {}

    /// The account's snapshots that can be opened, the newest first.
    pub struct Snapshots (limit MAX_FRAME) {
        /// The snapshots.
        pub snapshots: List<SnapshotLine, MAX_SNAPSHOTS>,
    }

    /// A snapshot, as its owner sees it in a list.
    pub struct SnapshotLine {
        /// Its id.
        pub id: SnapshotId,
        /// The chat.
        pub chat: ChatId,
        /// When it was stored, in milliseconds since 1970.
        pub made_at: u64,
        /// Until when it can be opened.
        pub expires_at: u64,
        /// How many messages and embeds it has.
        pub items: u32,
        /// Its key, sealed under the chat's.
        pub key: Envelope<MAX_KEY>,
    }

    /// Ends a snapshot: its link opens nothing any more.
    pub struct RevokeSnapshot {
        /// Which.
        pub id: SnapshotId,
    }

    /// Asks for a snapshot. Whoever has its link may.
    pub struct OpenSnapshot {
        /// Which.
        pub id: SnapshotId,
    }

    /// A snapshot.
    pub struct SnapshotSent (limit MAX_FRAME) {
        /// Until when it can be opened, in milliseconds since 1970.
        pub expires_at: u64,
        /// The sealed list.
        pub list: Envelope<MAX_RECORD>,
        /// Messages and embeds.
        pub items: List<SnapshotItem, MAX_SNAPSHOT_ITEMS>,
    }

    /// A snapshot in an export.
    pub struct SnapshotKept {
        /// The snapshot, as in the list.
        pub line: SnapshotLine,
        /// What its link opens. Left out if the server cannot open its own seal any more.
        pub content: Option<SnapshotSent>,
    }
}

fn check_item(sent: &SnapshotItem) -> Result<(), (&'static str, Why)> {
    match &sent.item {
        ItemId::Field(_) => Err(("item", Why::Expected("a message or an embed"))),
        item if sent.envelope.size() > item_limit(item) => Err(("envelope", Why::TooLong(item_limit(item)))),
        _ => Ok(()),
    }
}

fn check_make(make: &MakeSnapshot) -> Result<(), (&'static str, Why)> {
    let size = make.items.iter().map(|item| item.envelope.size()).sum::<usize>() + make.list.size();
    if size > MAX_SNAPSHOT {
        return Err(("items", Why::TooLong(MAX_SNAPSHOT)));
    }
    let mut items: Vec<&ItemId> = make.items.iter().map(|one| &one.item).collect();
    items.sort_unstable();
    if items.windows(2).any(|pair| pair[0] == pair[1]) { Err(("items", Why::Twice)) } else { Ok(()) }
}
