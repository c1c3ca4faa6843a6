//! Everything out, in clear; and everything gone.
//!
//! ```text
//! proof ─▶ frames, one per line ─▶ account, chats, embeds, data, snapshots, letters, safety, what is remembered ─▶ the checks of a sync
//!       ─▶ plain JSON
//! proof ─▶ erased ─▶ receipt, and this device's files go
//! ```
//!
//! An export is opened with the same checks as a sync, against what this device remembers. Easy to get wrong: an export
//! that leaves something out without saying so. A chat of the sealed list that did not come is `withheld`.

use std::collections::BTreeMap;

use confidant_chat_format::{
    Account, ChatId, EmbedId, Entry, Item, ItemId, Letter, List, Refused, SentAccount, Snapshot, SnapshotKey,
    SnapshotMessage, Trail,
};
use confidant_chat_protocol::{
    Body as _, Erase, Erased, Export, LetterSent, ServerEvent, ServerFrame, SnapshotKept,
};
use confidant_display::debug_without_content;
use serde::Serialize;

use crate::chats::verified;
use crate::credential::{Credential, read};
use crate::device::Device;
use crate::error::Error;
use crate::room::{Delta, Room, Want};
use crate::snapshots::received;
use crate::state::open_data;
use crate::sync::{collect, join};

/// A message of an export.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct ExportedMessage {
    /// Its id.
    pub id: String,
    /// The message.
    #[serde(flatten)]
    pub message: confidant_chat_format::Message,
}

/// An answer of an export that no device has taken yet.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct ExportedLetter {
    /// The turn that it answers.
    pub turn: String,
    /// The answer.
    pub reply: ExportedMessage,
    /// What came after the answer.
    pub more: Option<String>,
}

/// A snapshot of an export: what its link opens.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct ExportedSnapshot {
    /// Its id.
    pub id: String,
    /// Until when it can be opened, in milliseconds since 1970.
    pub expires_at: u64,
    /// When it was made.
    pub made_at: u64,
    /// The title that it shows.
    pub title: Option<String>,
    /// Its messages: who speaks, when, and the words.
    pub messages: Vec<ExportedWords>,
    /// What the messages show.
    pub attachments: Vec<String>,
}

/// A message of a snapshot of an export.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct ExportedWords {
    /// Who speaks.
    pub role: confidant_chat_format::Role,
    /// When, in milliseconds since 1970.
    pub created_at: u64,
    /// The words.
    pub body: String,
}

/// A chat of an export.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct ExportedChat {
    /// Its id.
    pub id: String,
    /// When it was created, in milliseconds since 1970.
    pub created_at: u64,
    /// When it was last written to.
    pub updated_at: u64,
    /// Its fields, `title` among them.
    pub fields: BTreeMap<String, String>,
    /// Its messages, in order of time.
    pub messages: Vec<ExportedMessage>,
    /// What the messages show, by id.
    pub embeds: BTreeMap<String, String>,
    /// What was typed and not sent.
    pub draft: Option<String>,
    /// Answers that no device has taken yet.
    pub letters: Vec<ExportedLetter>,
    /// What is shared of it.
    pub snapshots: Vec<ExportedSnapshot>,
    /// What the server remembers of its safety, in JSON: scores and flags, without a word of it.
    pub safety: Option<String>,
    /// What the server keeps of it beyond its words, because that was switched on: each in JSON, as it came.
    pub remembered: Vec<String>,
}

/// A piece of account data of an export.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct ExportedData {
    /// What kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it says.
    pub body: String,
}

/// Everything that the server has of an account, in clear.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct Exported {
    /// Version, 1.
    pub v: u32,
    /// The account.
    pub account: String,
    /// The generation of the account key.
    pub generation: u32,
    /// The chats, the one written to last first.
    pub chats: Vec<ExportedChat>,
    /// Account data.
    pub data: Vec<ExportedData>,
    /// The ids of the account's devices.
    pub devices: Vec<String>,
}

debug_without_content!(
    ExportedMessage,
    ExportedLetter,
    ExportedSnapshot,
    ExportedWords,
    ExportedChat,
    ExportedData,
    Exported { chats: chats.len() }
);

impl Exported {
    /// The same as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl Device {
    /// Takes everything out and opens it.
    pub async fn export(&mut self, by: &Credential) -> Result<Exported, Error> {
        let by = self.link.ready(by).await?;
        let request = Export { account: self.state.account.clone() };
        let signed = self.link.signed(&request, &by).await?;
        let (body, _) = self.link.raw("/account/export", &signed).await?;
        let (mut state, mut trail, mut chats) = (None, None, BTreeMap::new());
        let (mut records, mut devices, mut is_whole) = (Vec::new(), Vec::new(), false);
        let mut letters: BTreeMap<ChatId, Vec<LetterSent>> = BTreeMap::new();
        let mut safety: BTreeMap<ChatId, String> = BTreeMap::new();
        let mut snapshots: BTreeMap<ChatId, Vec<SnapshotKept>> = BTreeMap::new();
        let mut remembered: BTreeMap<ChatId, Vec<String>> = BTreeMap::new();
        for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let frame = ServerFrame::read(line).map_err(|_| Error::Unexpected)?;
            match frame.event {
                ServerEvent::AccountState(part) => state = Some(join(state, &mut trail, part)?),
                ServerEvent::DataRecords(part) => records.extend(part.records.into_vec()),
                ServerEvent::Devices(list) => devices.extend(list.devices.into_vec()),
                ServerEvent::ChatContentBatchResponse(part) => collect(&mut chats, part.chats.into_vec()),
                ServerEvent::LettersWaiting(part) => {
                    for letter in part.letters.into_vec() {
                        letters.entry(letter.chat.clone()).or_default().push(letter);
                    }
                }
                ServerEvent::SafetyRecords(part) => {
                    let records = part.records.into_vec().into_iter();
                    safety
                        .extend(records.filter_map(|one| Some((one.chat, one.record?.as_str().to_owned()))));
                }
                ServerEvent::SnapshotKept(kept) => {
                    snapshots.entry(kept.line.chat.clone()).or_default().push(kept);
                }
                ServerEvent::RememberedRecords(part) => {
                    for one in part.records.into_vec() {
                        remembered.entry(one.chat).or_default().push(one.record.as_str().to_owned());
                    }
                }
                ServerEvent::PhasedSyncComplete(_) => is_whole = true,
                ServerEvent::Refused(refused) => return Err(refused.into()),
                _ => return Err(Error::Unexpected),
            }
        }
        let state = state.filter(|_| is_whole).ok_or(Refused::Withheld)?;
        let account = self.open_exported(state)?;
        let mut exported = Exported {
            v: 1,
            account: account.id().as_str().to_owned(),
            generation: account.key().generation(),
            chats: Vec::new(),
            data: Vec::new(),
            devices: devices.iter().map(|device| device.device.as_str().to_owned()).collect(),
        };
        account.check_chats(chats.keys())?;
        for (chat, parts) in chats {
            let room = self.exported_room(&account, &chat, Delta::join(parts)?).await?;
            let letters = letters.remove(&chat).unwrap_or_default();
            let safety = safety.remove(&chat);
            let remembered = remembered.remove(&chat).unwrap_or_default();
            let snapshots = exported_snapshots(&account, &room, snapshots.remove(&chat).unwrap_or_default())?;
            let chat = exported_chat(&account, &room, letters)?;
            exported.chats.push(ExportedChat { safety, snapshots, remembered, ..chat });
        }
        exported.chats.sort_by_key(|chat| std::cmp::Reverse(chat.updated_at));
        for sent in records {
            let (_, body) = open_data(&account, &sent.kind, &sent.name, sent.data.sealed())?;
            let (kind, name) = (sent.kind.as_str().to_owned(), sent.name.as_str().to_owned());
            exported.data.push(ExportedData { kind, name, body });
        }
        Ok(exported)
    }

    /// The account of an export. It has no trail: it is compared with what this device knows after a sync.
    fn open_exported(&self, state: confidant_chat_protocol::AccountState) -> Result<Account, Error> {
        let entries = |rows: Vec<_>| rows.into_iter().map(Entry::from).collect();
        let mut floors = state.floors.into_vec();
        floors.sort_by_key(|floor| floor.shelf);
        let sent = SentAccount {
            ring: entries(state.ring.into_vec()),
            box_ring: entries(state.mailbox.into_vec()),
            box_pub: state.box_pub,
            manifest: state.manifest.into_sealed(),
            trail: Trail::NONE,
            floors: floors.into_iter().map(|floor| floor.envelope.into_sealed()).collect(),
        };
        let seen = self.state.seen();
        let rev = sent.manifest.rev().unwrap_or(0);
        if seen.manifest.is_some_and(|mark| rev < mark.rev) {
            return Err(Refused::RolledBack.into());
        }
        let manifest = seen.manifest.filter(|mark| mark.rev == rev);
        let seen = confidant_chat_format::SeenAccount { manifest, ..seen };
        Ok(Account::open(&self.state.account, &self.ak(), &sent, &seen)?)
    }

    async fn exported_room(&mut self, account: &Account, chat: &ChatId, delta: Delta) -> Result<Room, Error> {
        let floor = account.floors().get(chat).map_or(0, |floor| floor.rev);
        match Room::receive(None, account, chat, delta) {
            Ok((room, _)) => {
                let known = self.rooms.get(chat).map_or(0, |known| known.mark.rev);
                if room.mark.rev < known { Err(Refused::RolledBack.into()) } else { Ok(room) }
            }
            Err(Want::Refused(refused)) => Err(refused.into()),
            // A head ahead of its floor: the verified chat of this device has the trail.
            Err(_) if floor > 0 => {
                self.connect().await?;
                self.sync(crate::sync::Phase::All).await?;
                let embeds: Vec<EmbedId> = match self.rooms.get(chat) {
                    Some(room) => room.items.keys().filter_map(embed_of).collect(),
                    None => return Err(Refused::Withheld.into()),
                };
                for embed in embeds {
                    self.embed(chat, &embed).await?;
                }
                self.rooms.get(chat).cloned().ok_or(Error::NoSuchChat)
            }
            Err(_) => Err(Refused::Withheld.into()),
        }
    }

    /// Erases the account on the server, and this device's files. Gives the receipt.
    pub async fn erase(self, by: &Credential) -> Result<String, Error> {
        let by = self.link.ready(by).await?;
        let request = Erase { account: self.state.account.clone() };
        let signed = self.link.signed(&request, &by).await?;
        let (json, _) = self.link.raw("/account/erase", &signed).await?;
        let erased: Erased = read(&json)?;
        self.cabinet.clear()?;
        Ok(erased.receipt.as_str().to_owned())
    }
}

fn embed_of(item: &ItemId) -> Option<EmbedId> {
    match item {
        ItemId::Embed(id) => Some(id.clone()),
        _ => None,
    }
}

/// The answers among the letters that the chat's head waits for. One that is in the chat already, or that a device has given up,
/// is left out.
fn exported_letters(
    account: &Account,
    room: &Room,
    letters: Vec<LetterSent>,
) -> Result<Vec<ExportedLetter>, Error> {
    let list: List = room.items.iter().map(|(item, slot)| (item.clone(), slot.hash)).collect();
    let mut opened = Vec::new();
    for LetterSent { turn, reply, letter: wire, more, .. } in letters {
        let letter = Letter { account: account.id(), chat: &room.id, reply: &reply, turn: &turn };
        let message = match letter.open(account.boxes(), &room.head, &list, wire.as_bytes()) {
            Err(Refused::Duplicate | Refused::Unasked) => continue,
            message => message?,
        };
        let more = more.map(|more| letter.open_more(account.boxes(), &room.head, more.as_bytes()));
        opened.push(ExportedLetter {
            turn: turn.as_str().to_owned(),
            reply: ExportedMessage { id: reply.as_str().to_owned(), message },
            more: more.transpose()?.map(|text| text.body),
        });
    }
    Ok(opened)
}

/// What is shared of a chat. One whose content the server has lost opens nothing, and is left out.
fn exported_snapshots(
    account: &Account,
    room: &Room,
    kept: Vec<SnapshotKept>,
) -> Result<Vec<ExportedSnapshot>, Error> {
    let mut opened = Vec::new();
    for SnapshotKept { line, content } in kept {
        let Some(content) = content else { continue };
        let key = SnapshotKey::kept(&room.ring, account.id(), &room.id, &line.id, line.key.sealed())?;
        // It was not over when it was made.
        let snapshot = Snapshot::open(&key, &line.id, line.made_at, &received(content))?;
        opened.push(ExportedSnapshot {
            id: line.id.as_str().to_owned(),
            expires_at: line.expires_at,
            made_at: snapshot.at,
            title: snapshot.title,
            messages: snapshot.messages.into_iter().map(words).collect(),
            attachments: snapshot.embeds.into_values().map(|text| text.body).collect(),
        });
    }
    Ok(opened)
}

fn words(message: SnapshotMessage) -> ExportedWords {
    ExportedWords { role: message.role, created_at: message.created_at, body: message.body }
}

fn exported_chat(account: &Account, room: &Room, letters: Vec<LetterSent>) -> Result<ExportedChat, Error> {
    let mut messages: Vec<ExportedMessage> = room
        .messages()
        .map(|(id, _, message)| ExportedMessage { id: id.as_str().to_owned(), message: message.clone() })
        .collect();
    messages.sort_by_key(|message| message.message.created_at);
    let mut embeds = BTreeMap::new();
    for (item, slot) in &room.items {
        let Some(id) = embed_of(item) else { continue };
        let Some(Item::Text(text)) = &slot.item else { return Err(Refused::Withheld.into()) };
        embeds.insert(id.as_str().to_owned(), text.body.clone());
    }
    Ok(ExportedChat {
        id: room.id.as_str().to_owned(),
        created_at: room.created_at,
        updated_at: room.updated_at,
        fields: verified(room).fields,
        messages,
        embeds,
        draft: room.draft.as_ref().map(|draft| draft.body.clone()),
        letters: exported_letters(account, room, letters)?,
        snapshots: Vec::new(),
        safety: None,
        remembered: Vec::new(),
    })
}
