//! A person with rows in every table.

use confidant_chat_format::{ChatId, DeviceId, Digest, ItemId, Place, Shelf};

use super::super::*;
use super::device::{Device, Edit, NOW, message, sealed, tag, title};
use super::letters::{letter_of, row};
use super::marks::mark_of;
use super::snapshots::snapshot_of;

/// A person with a chat, and a write to it that touches every table of a chat.
pub(crate) async fn person(store: &dyn ChatStore, name: &str) -> (Device, ChatId, Write) {
    let mut ana = Device::register(store, name).await;
    let chat = ana.create(store, 2).await;
    let old: Vec<ItemId> = ana.chats[&chat].items.keys().cloned().collect();
    let puts = vec![message(), title(), old[0].clone()];
    let edit = Edit { puts, removes: vec![old[1].clone()], new_key: true, floor: true, length: 0 };
    let write = ana.write(&chat, &edit).0;
    (ana, chat, write)
}

/// What an account has besides chats: rows in every other table.
pub(crate) async fn add_the_rest(store: &dyn ChatStore, ana: &Device, name: &str) {
    let device = DeviceId::random();
    let new = NewDevice { device: device.clone(), label: sealed("a label"), now: NOW };
    store.add_device(&ana.id, new).await.unwrap();
    let session = Session {
        id: Digest::of(name.as_bytes()),
        secret: Digest::of(b"secret"),
        account: ana.id.clone(),
        device,
        epoch: 1,
        created_at: NOW,
        expires_at: Millis(NOW.0 + 1000),
        seen_day: NOW.day(),
    };
    store.add_session(session.clone()).await.unwrap();
    let (chat, deleted) = (ana.chats.keys().next().unwrap(), ChatId::random());
    let mut other = ana.clone();
    other.pull(store).await;
    other.put(store, &deleted, &Edit::default()).await.unwrap();
    store.delete_chat(other.deletion(&deleted).0).await.unwrap();
    let envelope = Some(ana.seal(chat, &Place::Draft(chat), 1, &[b'x'; 9000]));
    let draft = PutDraft { account: ana.id.clone(), chat: chat.clone(), expected: 0, envelope, now: NOW };
    store.put_draft(draft).await.unwrap();
    let letter = letter_of(ana, chat, "a letter");
    store.put_letter(letter.clone()).await.unwrap();
    store.put_letter_more(&ana.id, chat, &letter.turn, b"more".to_vec()).await.unwrap();
    store.put_mark(mark_of(ana, chat)).await.unwrap();
    store.put_snapshot(snapshot_of(ana, chat)).await.unwrap();
    let (account, sealed_row) = (ana.id.clone(), row(1));
    let safety = PutSafety { account, chat: chat.clone(), expected: 0, sealed: sealed_row };
    store.put_safety(safety).await.unwrap();
    let data = confidant_chat_format::FieldName::parse("settings").unwrap();
    let envelope = Some(ana.seal_data(&data, &data, 1));
    let (kind, account) = (data.clone(), ana.id.clone());
    store.put_data(PutData { account, kind, name: data, expected: 0, envelope, now: NOW }).await.unwrap();
    store.login_failed(ana.login, tag("home"), NOW).await.unwrap();
    let code = Code {
        kind: CodeKind::Challenge,
        key: Digest::of(name.as_bytes()),
        account: Some(ana.id.clone()),
        login: Some(ana.login),
        carries: b"a code".to_vec(),
        expires_at: Millis(NOW.0 + 60_000),
    };
    store.issue(code).await.unwrap();
    let slot = *Digest::of(name.as_bytes()).as_bytes().first_chunk::<16>().unwrap();
    store.open_slot(slot, vec![1; 32], NOW).await.unwrap();
    store.answer_slot(&ana.id, slot, sealed("an answer"), NOW).await.unwrap();
    let change = ChangeAccount {
        account: ana.id.clone(),
        expected: 1,
        login: None,
        credentials: vec![tag(&format!("{name}'s passkey"))],
        record: sealed("second"),
        sessions: OtherSessions::Stay,
        now: NOW,
    };
    store.change_account(change).await.unwrap();
    let begin = BeginRotation { account: ana.id.clone(), expected: 2, session: session.id, now: NOW };
    let frozen = store.begin_rotation(begin).await.unwrap();
    let entries = store.rings(&ana.id, None).await.unwrap();
    let (wrap, floors) =
        (entries[0].entry.sealed.kid(), vec![(Shelf::all().next().unwrap(), sealed("a floor"))]);
    let stage = Stage { account: ana.id.clone(), epoch: frozen.epoch, wrap, entries, floors, now: NOW };
    store.stage(stage).await.unwrap();
}
