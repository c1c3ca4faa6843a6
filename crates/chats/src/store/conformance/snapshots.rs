//! Laws about snapshots that are shared.

use std::time::Duration;

use confidant_chat_format::{ChatId, Digest, Refused, SnapshotId};
use confidant_seal::Sealed;

use super::super::*;
use super::Fresh;
use super::device::{Device, NOW};
use super::letters::row;

pub(crate) fn snapshot_of(ana: &Device, chat: &ChatId) -> PutSnapshot {
    PutSnapshot {
        account: ana.id.clone(),
        chat: chat.clone(),
        id: Digest::of(SnapshotId::random().as_str().as_bytes()),
        expires_at: later(60),
        line: row(1),
        content: row(1),
        now: NOW,
    }
}

fn later(seconds: u64) -> Millis {
    NOW.plus(Duration::from_secs(seconds))
}

fn as_row(put: &PutSnapshot) -> SnapshotRow {
    let (chat, line) = (put.chat.clone(), put.line.clone());
    SnapshotRow { chat, id: put.id, expires_at: put.expires_at, line }
}

fn as_found(put: &PutSnapshot) -> FoundSnapshot {
    FoundSnapshot {
        account: put.account.clone(),
        chat: put.chat.clone(),
        line: put.line.clone(),
        content: put.content.clone(),
    }
}

pub(super) async fn a_snapshot_is_found_by_its_id_until_it_ends(fresh: &Fresh) {
    let (store, other) = (&*fresh.store, &*fresh.other);
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 1).await;
    let seen = store.account(&ana.id).await.unwrap().seq;
    let (put, long) =
        (snapshot_of(&ana, &chat), PutSnapshot { expires_at: later(600), ..snapshot_of(&ana, &chat) });
    assert_eq!(store.find_snapshot(put.id, NOW).await, Ok(None));
    assert_eq!(store.snapshots(&ana.id, NOW).await, Ok(vec![]));
    store.put_snapshot(put.clone()).await.unwrap();
    store.put_snapshot(long.clone()).await.unwrap();
    assert_eq!(other.find_snapshot(put.id, later(59)).await, Ok(Some(as_found(&put))));
    let mut both = vec![as_row(&put), as_row(&long)];
    both.sort_by_key(|row| row.id);
    assert_eq!(other.snapshots(&ana.id, NOW).await, Ok(both));
    assert_eq!(other.snapshot_content(&ana.id, put.id).await, Ok(Some(put.content.clone())));
    // It is over, whether or not somebody has cleaned up.
    assert_eq!(store.find_snapshot(put.id, later(60)).await, Ok(None));
    assert_eq!(store.snapshots(&ana.id, later(60)).await, Ok(vec![as_row(&long)]));
    assert_eq!(store.expire(later(60)).await, Ok(1));
    assert_eq!(store.find_snapshot(put.id, NOW).await, Ok(None));
    assert_eq!(store.revoke_snapshot(&ana.id, put.id).await, Ok(false));
    assert_eq!(store.revoke_snapshot(&ana.id, long.id).await, Ok(true));
    assert_eq!(other.find_snapshot(long.id, NOW).await, Ok(None));
    assert_eq!(other.revoke_snapshot(&ana.id, long.id).await, Ok(false), "once");
    assert_eq!(store.account(&ana.id).await.unwrap().seq, seen, "a snapshot is not a change");
}

pub(super) async fn a_snapshot_is_its_accounts_and_goes_with_its_chat(fresh: &Fresh) {
    let store = &*fresh.store;
    let (mut ana, mut bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    let (chat, theirs) = (ana.create(store, 1).await, bea.create(store, 1).await);
    let put = snapshot_of(&ana, &chat);
    store.put_snapshot(put.clone()).await.unwrap();
    // Nobody else's: not to list, to read, to end, or to put in the place of it.
    assert_eq!(store.snapshots(&bea.id, NOW).await, Ok(vec![]));
    assert_eq!(store.snapshot_content(&bea.id, put.id).await, Ok(None));
    assert_eq!(store.revoke_snapshot(&bea.id, put.id).await, Ok(false));
    for chat in [&theirs, &ChatId::random()] {
        assert_eq!(store.put_snapshot(snapshot_of(&ana, chat)).await, Err(StoreError::NotFound));
    }
    let taken = PutSnapshot { id: put.id, ..snapshot_of(&bea, &theirs) };
    assert_eq!(store.put_snapshot(taken).await, Err(Refused::Duplicate.into()));
    assert_eq!(store.put_snapshot(put.clone()).await, Err(Refused::Duplicate.into()));
    assert_eq!(store.find_snapshot(put.id, NOW).await, Ok(Some(as_found(&put))), "the first one stays");
    let of_bea = snapshot_of(&bea, &theirs);
    store.put_snapshot(of_bea.clone()).await.unwrap();
    let (delete, _) = ana.deletion(&chat);
    store.delete_chat(delete).await.unwrap();
    assert_eq!(store.find_snapshot(put.id, NOW).await, Ok(None));
    assert_eq!(store.put_snapshot(put).await, Err(StoreError::NotFound), "nothing comes back");
    assert_eq!(store.find_snapshot(of_bea.id, NOW).await, Ok(Some(as_found(&of_bea))));
    assert_eq!(store.erase(&bea.id).await.unwrap().snapshots, 1);
    assert_eq!(store.find_snapshot(of_bea.id, NOW).await, Ok(None));
    assert_eq!(store.snapshots(&bea.id, NOW).await, Err(StoreError::NotFound));
    store.check().await.unwrap();
}

pub(super) async fn snapshots_are_limited_in_size_and_number(fresh: &Fresh) {
    let store = &*fresh.store;
    let (mut ana, mut bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    let (chat, theirs) = (ana.create(store, 1).await, bea.create(store, 1).await);
    let large = |most: usize| Sealed::from_bytes(vec![1; most + 1]);
    let line = PutSnapshot { line: large(limits::SNAPSHOT_LINE_BYTES), ..snapshot_of(&ana, &chat) };
    assert_eq!(store.put_snapshot(line).await, Err(StoreError::TooLarge("snapshot")));
    let content = PutSnapshot { content: large(limits::SNAPSHOT_BYTES), ..snapshot_of(&ana, &chat) };
    assert_eq!(store.put_snapshot(content).await, Err(StoreError::TooLarge("snapshot")));
    for at in 0..limits::SNAPSHOTS {
        let expires_at = if at == 0 { later(1) } else { later(60) };
        store.put_snapshot(PutSnapshot { expires_at, ..snapshot_of(&ana, &chat) }).await.unwrap();
    }
    let more = snapshot_of(&ana, &chat);
    assert_eq!(store.put_snapshot(more.clone()).await, Err(StoreError::TooMany("snapshots")));
    store.put_snapshot(snapshot_of(&bea, &theirs)).await.unwrap();
    // One that is over makes room.
    store.put_snapshot(PutSnapshot { now: later(1), ..more }).await.unwrap();
    assert_eq!(store.snapshots(&ana.id, later(1)).await.unwrap().len(), limits::SNAPSHOTS as usize);
}
