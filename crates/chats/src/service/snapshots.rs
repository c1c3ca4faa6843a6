//! Snapshots: what a person shares of a chat, for whoever has the link.
//!
//! ```text
//! make ─▶ session ─▶ the key is of the chat? ─▶ sealed once more, under the chat's own key of the server ─▶ store
//! open ─▶ id ─▶ its digest ─▶ row ─▶ the chat's key ─▶ line: the same id, not over? ─▶ content, which only the link's key opens
//! ```
//!
//! seal(chat's key, (snapshot, acct, chat, H(id) in hex, line), 1, JSON {v, id, made_at, expires_at, items, key}), and the same with
//! `content` for the answer to whoever opens it. So neither the database alone nor a row that was put back after the chat or the account
//! went opens anything, also for somebody who has the link; and when it is over stands inside the seal.
//!
//! Easy to get wrong: two kinds of "no". Whoever asks for a snapshot hears `not-found`, whatever the reason.

use confidant_chat_format::{AccountId, ChatId, Digest, Refused, SnapshotId};
use confidant_chat_protocol::{
    Body as _, Envelope, List, MakeSnapshot, OpenSnapshot, RequestSnapshots, RevokeSnapshot, ServerEvent,
    SnapshotKept, SnapshotLine, SnapshotMade, SnapshotSent, Snapshots,
};
use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, Suite, open, seal};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::rate::Rate;
use super::record::SUITE;
use super::refusals::{Answer, malformed, not_found, too_fast};
use super::witness::Act;
use super::{Answered, Body, Caller, Inner};
use crate::store::{Millis, PutSnapshot, RingName, SnapshotRow, limits};

/// What the owner of a snapshot sees in a list, as it is sealed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    v: u8,
    id: SnapshotId,
    made_at: u64,
    expires_at: u64,
    items: u32,
    /// The snapshot's key under the chat's, which a device made.
    key: String,
}

debug_without_content!(Line { made_at, expires_at, items });

/// Where a snapshot's row stands.
struct Place<'a> {
    account: &'a AccountId,
    chat: &'a ChatId,
    digest: Digest,
}

impl Inner {
    pub(crate) async fn make_snapshot(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let request = MakeSnapshot::read(body)?;
        let account = self.session(caller).await?.account;
        let (now, expires_at) = (self.now(), Millis(request.expires_at));
        if expires_at <= now || expires_at > now.plus(limits::SNAPSHOT_LIFE) {
            return Err(malformed("a snapshot ends between now and 90 days from now"));
        }
        self.check_seals(&account, &request).await?;
        let key = self.vault.key(&account, Some(&request.chat)).await?.ok_or_else(not_found)?;
        let place = Place { account: &account, chat: &request.chat, digest: name_of(&request.id) };
        let line = Line {
            v: 1,
            id: request.id.clone(),
            made_at: now.0,
            expires_at: expires_at.0,
            items: u32::try_from(request.items.len()).unwrap_or(u32::MAX),
            key: request.key.sealed().to_base64url(),
        };
        let json = serde_json::to_vec(&line).expect("a line is plain data with text as keys");
        let sent = SnapshotSent {
            expires_at: expires_at.0,
            list: request.list,
            items: List::new(request.items.into_vec())?,
        };
        let put = PutSnapshot {
            account: account.clone(),
            chat: request.chat.clone(),
            id: place.digest,
            expires_at,
            line: place.seal(&key, LINE, &json),
            content: place.seal(&key, CONTENT, &sent.write()?),
            now,
        };
        self.store.put_snapshot(put).await?;
        self.witness(&account, Act::SnapshotMade).await;
        Answered::json(&SnapshotMade { expires_at: expires_at.0 })
    }

    /// What can be seen from outside: everything has the seal of a device, and the owner's copy of the key is under a key of the chat.
    async fn check_seals(&self, account: &AccountId, request: &MakeSnapshot) -> Answer<()> {
        let ring = self.store.ring(account, &RingName::Chat(request.chat.clone())).await?;
        if ring.is_empty() {
            return Err(not_found());
        }
        // The second of a chat's sub-keys is the one for such records.
        if !ring.iter().any(|entry| entry.subs.get(1) == Some(&request.key.kid())) {
            return Err(Refused::KeyRefused.into());
        }
        let seals = request.items.iter().map(|one| one.envelope.sealed());
        let mut seals = seals.chain([request.key.sealed(), request.list.sealed()]);
        if seals.all(|sealed| sealed.suite() == Some(Suite::Aes256Gcm) && sealed.rev() == Some(1)) {
            Ok(())
        } else {
            Err(Refused::RecordRefused.into())
        }
    }

    pub(crate) async fn list_snapshots(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let _: RequestSnapshots = RequestSnapshots::read(body)?;
        let account = self.session(caller).await?.account;
        let lines = self.snapshot_lines(&account).await?;
        Answered::json(&Snapshots { snapshots: List::new(lines)? })
    }

    pub(crate) async fn revoke_snapshot(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let request = RevokeSnapshot::read(body)?;
        let account = self.session(caller).await?.account;
        if !self.store.revoke_snapshot(&account, name_of(&request.id)).await? {
            return Err(not_found());
        }
        self.witness(&account, Act::SnapshotRevoked).await;
        Answered::done()
    }

    /// A snapshot, for whoever has its link.
    pub(crate) async fn open_snapshot(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        self.admit(caller)?;
        let request = OpenSnapshot::read(body)?;
        let rate = Rate { burst: (self.settings.burst / 4).max(1), per_second: 1 };
        self.snapshot_rates.take(caller.network, rate, self.now()).map_err(too_fast)?;
        let digest = name_of(&request.id);
        let found = self.store.find_snapshot(digest, self.now()).await?.ok_or_else(not_found)?;
        // A chat whose key is gone is gone, whatever somebody put back.
        let key = self.vault.key(&found.account, Some(&found.chat)).await?.ok_or_else(not_found)?;
        let place = Place { account: &found.account, chat: &found.chat, digest };
        let opened = place.line(&key, &found.line).zip(place.open(&key, CONTENT, &found.content));
        let Some((line, content)) = opened else {
            tracing::warn!("chats: a snapshot does not open, so it is not shown");
            return Err(not_found());
        };
        if line.id != request.id || Millis(line.expires_at) <= self.now() {
            return Err(not_found());
        }
        Ok(Answered { body: Body::Json(content.to_vec()), session: None })
    }

    /// What an account shares, the newest first. What does not open any more is left out: no link opens it either.
    pub(crate) async fn snapshot_lines(&self, account: &AccountId) -> Answer<Vec<SnapshotLine>> {
        let mut lines = Vec::new();
        for row in self.store.snapshots(account, self.now()).await? {
            if let Some(line) = self.snapshot_line(account, &row).await? {
                lines.push(SnapshotLine {
                    key: Envelope::new(
                        Sealed::from_base64url(&line.key).map_err(|_| Refused::RecordRefused)?,
                    )?,
                    id: line.id,
                    chat: row.chat,
                    made_at: line.made_at,
                    expires_at: line.expires_at,
                    items: line.items,
                });
            }
        }
        lines.sort_by(|one, other| other.made_at.cmp(&one.made_at).then_with(|| one.id.cmp(&other.id)));
        Ok(lines)
    }

    async fn snapshot_line(&self, account: &AccountId, row: &SnapshotRow) -> Answer<Option<Line>> {
        let Some(key) = self.vault.key(account, Some(&row.chat)).await? else { return Ok(None) };
        let place = Place { account, chat: &row.chat, digest: row.id };
        Ok(place.line(&key, &row.line).filter(|line| name_of(&line.id) == row.id))
    }

    /// Whether what the server sealed of an account's snapshots opens.
    pub(crate) async fn snapshots_open(&self, account: &AccountId) -> Answer<bool> {
        for row in self.store.snapshots(account, self.now()).await? {
            if self.snapshot_line(account, &row).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A snapshot for an export.
    pub(crate) async fn snapshot_frame(
        &self,
        account: &AccountId,
        line: &SnapshotLine,
    ) -> Answer<ServerEvent> {
        let digest = name_of(&line.id);
        let sealed = self.store.snapshot_content(account, digest).await?;
        let key = self.vault.key(account, Some(&line.chat)).await?;
        let place = Place { account, chat: &line.chat, digest };
        let content = key.zip(sealed).and_then(|(key, sealed)| place.open(&key, CONTENT, &sealed));
        let content = content.and_then(|json| SnapshotSent::read(&json).ok());
        Ok(ServerEvent::SnapshotKept(SnapshotKept { line: line.clone(), content }))
    }
}

impl Place<'_> {
    fn seal(&self, key: &Key, field: &str, data: &[u8]) -> Sealed {
        self.with(field, |context| seal(key, SUITE, &context, 1, data))
    }

    fn open(&self, key: &Key, field: &str, sealed: &Sealed) -> Option<Zeroizing<Vec<u8>>> {
        self.with(field, |context| open(key, &context, sealed).ok()).map(|opened| opened.data)
    }

    fn line(&self, key: &Key, sealed: &Sealed) -> Option<Line> {
        let json = self.open(key, LINE, sealed)?;
        serde_json::from_slice::<Line>(&json).ok().filter(|line| line.v == 1)
    }

    fn with<T>(&self, field: &str, work: impl FnOnce(Context<'_>) -> T) -> T {
        let object = hex::encode(self.digest.as_bytes());
        let (owner, container) = (self.account.as_str(), self.chat.as_str());
        work(Context { purpose: "snapshot", owner, container, object: &object, field })
    }
}

/// What the store has in the place of an id.
fn name_of(id: &SnapshotId) -> Digest {
    Digest::of(id.as_str().as_bytes())
}

const LINE: &str = "line";
const CONTENT: &str = "content";
