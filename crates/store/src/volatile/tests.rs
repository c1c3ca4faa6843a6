//! What is marked is here and nowhere else; everything else is where it always was.

use confidant_seal::{Context, Key, Kid, Suite, seal};

use super::*;
use crate::{
    Anchor, Anchors as _, AuditPlace, Created, DataKeys as _, KeyRow, KeyStore, Names, Rotation as _,
    SystemKeys as _,
};

fn tag(n: u8) -> Tag {
    Tag::from_bytes([n; 16])
}

fn key() -> Key {
    Key::from_bytes([7; 32])
}

fn sealed(bytes: usize) -> Sealed {
    let context = Context { purpose: "test", owner: "", container: "", object: "", field: "" };
    seal(&key(), Suite::ChaCha20Poly1305, &context, 1, &vec![0; bytes])
}

fn append(scope: Tag, expected: u64, bytes: usize) -> Append {
    Append {
        names: Names { scope, person: tag(100), tenant: tag(101) },
        name: None,
        kid: key().kid(),
        expected,
        entries: vec![sealed(bytes)],
        snapshot: None,
        expires_at: Some(Millis(50)),
        owner: None,
        audit: vec![PendingAudit::new(|_: AuditPlace| sealed(8))],
    }
}

fn row(scope: Tag, root: Kid) -> KeyRow {
    let (sealed_key, sealed_scope) = (sealed(32), sealed(32));
    let (kid, expires_at) = (key().kid(), Some(Millis(50)));
    KeyRow { scope, generation: 1, root, kid, sealed_key, sealed_scope, anchor: 0, expires_at }
}

struct Both {
    kept: Arc<MemoryStore>,
    kept_keys: Arc<MemoryKeys>,
    volatile: Arc<Volatile>,
    store: BesideStore,
    keys: BesideKeys,
}

fn both() -> Both {
    let (kept, kept_keys) = (Arc::new(MemoryStore::default()), Arc::new(MemoryKeys::default()));
    let volatile = Arc::new(Volatile::default());
    let store = BesideStore::new(Arc::clone(&kept) as _, Arc::clone(&volatile));
    let keys = BesideKeys::new(Arc::clone(&kept_keys) as Arc<dyn KeyStore>, Arc::clone(&volatile));
    Both { kept, kept_keys, volatile, store, keys }
}

#[tokio::test]
async fn what_is_marked_is_kept_here_only_and_the_audit_log_has_it() {
    let Both { kept, volatile, store, .. } = both();
    let _mark = volatile.mark(tag(1));
    for (scope, expected) in [(tag(1), 0), (tag(2), 0), (tag(1), 1)] {
        assert_eq!(store.append(append(scope, expected, 10)).await.unwrap(), Appended::Done);
    }
    assert!(
        kept.load(tag(1), None).await.unwrap().is_none() && kept.load(tag(2), None).await.unwrap().is_some()
    );
    assert_eq!(store.load(tag(1), None).await.unwrap().unwrap().version, 2);
    let find = Find::Person { tenant: tag(101), person: tag(100) };
    let listed = store.list(find, None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.names.scope).collect::<Vec<_>>(), [tag(1), tag(2)]);
    assert_eq!(store.list(find, Some(tag(1)), 10).await.unwrap().len(), 1);
    assert_eq!(store.expired(Millis(50), 10).await.unwrap().len(), 2);
    let lanes = store.lanes().await.unwrap();
    assert_eq!(lanes.iter().map(|lane| lane.head.seq).sum::<u64>(), 3);
    // Written by somebody who had seen less: nothing happens, here as there.
    assert_eq!(store.append(append(tag(1), 1, 10)).await.unwrap(), Appended::Conflict);
    assert_eq!(store.erase(tag(1), None, Vec::new()).await.unwrap(), 2);
    assert!(store.load(tag(1), None).await.unwrap().is_none());
}

#[tokio::test]
async fn keys_of_what_is_marked_are_in_no_keyring() {
    let Both { kept_keys, volatile, keys, .. } = both();
    let root = Kid::from_hex("0102030405060708").unwrap();
    let other = Kid::from_hex("0102030405060709").unwrap();
    assert!(keys.set_root(None, root).await.unwrap());
    let _mark = volatile.mark(tag(1));
    assert_eq!(keys.create(row(tag(1), other)).await.unwrap(), Created::RootChanged(root));
    assert_eq!(keys.create(row(tag(1), root)).await.unwrap(), Created::New);
    assert_eq!(keys.create(row(tag(2), root)).await.unwrap(), Created::New);
    assert!(kept_keys.get(tag(1)).await.unwrap().is_none() && keys.get(tag(1)).await.unwrap().is_some());
    assert_eq!(keys.list(None, 10).await.unwrap().len(), 2);
    assert_eq!(keys.count(root).await.unwrap(), (2, 0));
    assert_eq!(keys.not_under(other, 10).await.unwrap().len(), 2);
    let anchor = Anchor { scope: tag(1), kid: key().kid(), version: 3, expires_at: None };
    keys.anchor(&[anchor], &[]).await.unwrap();
    assert_eq!(keys.get(tag(1)).await.unwrap().unwrap().anchor, 3);
    assert_eq!(keys.destroy(&[tag(1), tag(2)]).await.unwrap(), 2);
    assert!(keys.list(None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_session_stays_marked_while_anybody_has_it_or_anything_is_there() {
    let Both { volatile, store, .. } = both();
    assert!(!volatile.has(tag(1)));
    let (first, second) = (volatile.mark(tag(1)), volatile.mark(tag(1)));
    drop(first);
    assert!(volatile.has(tag(1)) && !volatile.has(tag(2)));
    store.append(append(tag(1), 0, 10)).await.unwrap();
    drop(second);
    assert!(volatile.has(tag(1)), "there is something of it");
    store.erase(tag(1), None, Vec::new()).await.unwrap();
    assert!(!volatile.has(tag(1)));
}

#[tokio::test]
async fn there_is_an_end_to_memory() {
    let Both { volatile, store, .. } = both();
    let (_one, _two) = (volatile.mark(tag(1)), volatile.mark(tag(2)));
    store.append(append(tag(1), 0, 10)).await.unwrap();
    volatile.sizes.lock().insert(tag(9), MOST_BYTES - 200);
    assert!(matches!(store.append(append(tag(2), 0, 4096)).await, Err(StoreError::Full)));
    assert!(store.load(tag(2), None).await.unwrap().is_none());
    // Room that somebody leaves is somebody else's.
    volatile.shrink(tag(9), 0);
    assert_eq!(store.append(append(tag(2), 0, 4096)).await.unwrap(), Appended::Done);
}
