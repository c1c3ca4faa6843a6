//! Snapshots: a branch that a person shares as it is now, and what somebody else's link opens.
//!
//! ```text
//! chat(id).branch ─▶ Snapshot::of_branch: new ids, words only ─▶ sealed under a new key ─▶ server
//!                                                                    └▶ link: server, id, key ─▶ whoever the person gives it to
//! link ─▶ server: id ─▶ the checks of the format ─▶ Snapshot
//! ```
//!
//! What is written to the chat afterwards is not in it. The key is kept under the chat's, so that every device of the account can show
//! the link again. Easy to get wrong: sharing more than is shown. Other branches, drafts, and what a tool or the model noted for itself
//! stay.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use confidant_chat_format::{
    ChatId, EmbedId, SealedSnapshot, Snapshot, SnapshotId, SnapshotKey, SnapshotLink, SnapshotMessage, Text,
};
use confidant_chat_protocol::limits::{MAX_SNAPSHOT, MAX_SNAPSHOT_DAYS};
use confidant_chat_protocol::{
    Done, Envelope, List, MakeSnapshot, OpenSnapshot, RequestSnapshots, RevokeSnapshot, SnapshotItem,
    SnapshotLine, SnapshotMade, SnapshotSent, Snapshots,
};
use confidant_display::debug_without_content;

use crate::credential::Link;
use crate::device::Device;
use crate::error::Error;
use crate::transport::Transport;

/// What is shared, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// For how many days; at most 90.
    pub days: u32,
    /// Whether attachments go with the words.
    pub attachments: bool,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { days: 7, attachments: true }
    }
}

/// A snapshot that was just shared.
#[derive(Clone)]
#[non_exhaustive]
pub struct SharedSnapshot {
    /// What opens it: whoever has this can read it.
    pub link: SnapshotLink,
    /// Until when, in milliseconds since 1970.
    pub expires_at: u64,
    /// How many messages are in it.
    pub messages: usize,
    /// How many attachments.
    pub attachments: usize,
    /// How many messages of the branch are not: a tool's, and notes of the model.
    pub left_out: usize,
    /// Whether the chat's title is.
    pub has_title: bool,
}

debug_without_content!(SharedSnapshot { messages, attachments, left_out });

/// A snapshot that the account shares.
#[derive(Clone)]
#[non_exhaustive]
pub struct SnapshotView {
    /// Its id.
    pub id: SnapshotId,
    /// The chat.
    pub chat: ChatId,
    /// When it was stored, in milliseconds since 1970, as the server says.
    pub made_at: u64,
    /// Until when it can be opened.
    pub expires_at: u64,
    /// How many messages and attachments are in it.
    pub items: u32,
    /// What opens it; none if the chat is not on this device.
    pub link: Option<SnapshotLink>,
}

debug_without_content!(SnapshotView { made_at, expires_at, items });

impl Device {
    /// Shares the branch of a chat that is shown, as it is now, with whoever gets the link. The chat has to be stored on the server.
    pub async fn share_snapshot(
        &mut self,
        chat: &ChatId,
        options: SnapshotOptions,
    ) -> Result<SharedSnapshot, Error> {
        let view = self.chat(chat)?;
        let title = view.title().map(ToOwned::to_owned);
        let branch: Vec<SnapshotMessage> = view.branch.into_iter().map(to_share).collect();
        let before = branch.len();
        let shown: BTreeSet<EmbedId> = branch.iter().flat_map(|message| message.refs.clone()).collect();
        let mut embeds = BTreeMap::new();
        for embed in shown.into_iter().filter(|_| options.attachments) {
            let body = self.embed(chat, &embed).await?;
            embeds.insert(embed, Text { v: 1, body });
        }
        let at = self.now();
        let day = Duration::from_secs(24 * 3600);
        // The server's clock may be behind.
        let most = (day * MAX_SNAPSHOT_DAYS).saturating_sub(SLACK);
        let life = (day * options.days.clamp(1, MAX_SNAPSHOT_DAYS)).min(most);
        let until = at.saturating_add(u64::try_from(life.as_millis()).unwrap_or(u64::MAX));
        let snapshot =
            Snapshot::of_branch((at, until), title, branch, &embeds).ok_or(Error::NoSuchMessage)?;
        let (key, id) = (SnapshotKey::random(), SnapshotId::random());
        let sealed = snapshot.seal(&key, &id);
        let size = sealed.items.iter().map(|(_, item)| item.as_bytes().len()).sum::<usize>();
        if size + sealed.list.as_bytes().len() > MAX_SNAPSHOT {
            return Err(Error::TooLarge);
        }
        let room = self.rooms.get(chat).ok_or(Error::NoSuchChat)?;
        let kept = key.keep(room.ring.newest(), &self.state.account, chat, &id);
        let item = |(item, sealed)| Ok(SnapshotItem { item, envelope: Envelope::new(sealed)? });
        let items = sealed.items.into_iter().map(item).collect::<Result<Vec<_>, Error>>()?;
        let request = MakeSnapshot {
            id: id.clone(),
            chat: chat.clone(),
            expires_at: until,
            key: Envelope::new(kept)?,
            list: Envelope::new(sealed.list)?,
            items: List::new(items)?,
        };
        let made: SnapshotMade = self.link.post("/chats/snapshots/make", &request).await?;
        Ok(SharedSnapshot {
            link: SnapshotLink { origin: self.link.transport.origin().clone(), id, key },
            expires_at: made.expires_at,
            messages: snapshot.messages.len(),
            attachments: snapshot.embeds.len(),
            left_out: before - snapshot.messages.len(),
            has_title: snapshot.title.is_some(),
        })
    }

    /// The snapshots that the account shares, the newest first.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotView>, Error> {
        let listed: Snapshots = self.link.post("/chats/snapshots", &RequestSnapshots {}).await?;
        let view = |line: SnapshotLine| SnapshotView {
            link: self.link_of(&line),
            id: line.id,
            chat: line.chat,
            made_at: line.made_at,
            expires_at: line.expires_at,
            items: line.items,
        };
        Ok(listed.snapshots.into_vec().into_iter().map(view).collect())
    }

    fn link_of(&self, line: &SnapshotLine) -> Option<SnapshotLink> {
        let room = self.rooms.get(&line.chat)?;
        let key = SnapshotKey::kept(&room.ring, &self.state.account, &line.chat, &line.id, line.key.sealed());
        let origin = self.link.transport.origin().clone();
        Some(SnapshotLink { origin, id: line.id.clone(), key: key.ok()? })
    }

    /// Ends a snapshot: its link opens nothing any more. Who has read it has read it.
    pub async fn revoke_snapshot(&self, id: &SnapshotId) -> Result<(), Error> {
        let _: Done = self.link.post("/chats/snapshots/revoke", &RevokeSnapshot { id: id.clone() }).await?;
        Ok(())
    }
}

/// Opens somebody's snapshot, at this time, without an account. The transport has to lead to the link's server. What the server changed,
/// left out or kept for too long is refused; that the assistant said its words, nobody proves.
pub async fn open_snapshot(
    transport: &std::sync::Arc<dyn Transport>,
    link: &SnapshotLink,
    now: u64,
) -> Result<Snapshot, Error> {
    let way = Link { transport: transport.clone(), session: None };
    let sent: SnapshotSent = way.post("/chats/snapshots/open", &OpenSnapshot { id: link.id.clone() }).await?;
    Ok(Snapshot::open(&link.key, &link.id, now, &received(sent))?)
}

/// A snapshot as it came.
pub(crate) fn received(sent: SnapshotSent) -> SealedSnapshot {
    let items = sent.items.into_vec().into_iter().map(|one| (one.item, one.envelope.into_sealed()));
    SealedSnapshot { list: sent.list.into_sealed(), items: items.collect() }
}

fn to_share(message: crate::chats::MessageView) -> SnapshotMessage {
    SnapshotMessage {
        id: message.id,
        role: message.role,
        created_at: message.created_at,
        body: message.body,
        model: message.model,
        refs: message.refs,
    }
}

/// How far the clocks of a device and its server may be apart.
const SLACK: Duration = Duration::from_secs(3600);
