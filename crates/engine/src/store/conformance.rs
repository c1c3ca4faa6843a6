//! The laws that every back end keeps, each a sentence. A new back end is one more line in `backends!`; a new promise
//! is one more law, and all answer for it.

use std::sync::Arc;

use confidant_seal::{Context, Key, Kid, Sealed, Suite, Tag, seal};

use super::contexts::{CaptureRow, CapturesOf, ConversationName, PutContext};
use super::memory::{MemoryKeys, MemoryStore};
use super::sqlite::{Durability, SqliteKeys, SqliteStore};
use super::{
    Anchor, Append, Appended, Created, Find, Instance, KeyRow, KeyStore, Names, PendingAudit, Store,
    TokenRow, TokenSelector,
};
use crate::clock::Millis;

/// A back end on a fresh namespace of its own, gone when this is.
struct Fresh {
    store: Arc<dyn Store>,
    keys: Arc<dyn KeyStore>,
    _folder: Option<tempfile::TempDir>,
}

fn memory() -> Fresh {
    Fresh { store: Arc::new(MemoryStore::default()), keys: Arc::new(MemoryKeys::default()), _folder: None }
}

fn sqlite() -> Fresh {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Durability::Process).unwrap();
    let keys = SqliteKeys::open(folder.path()).unwrap();
    Fresh { store: Arc::new(store), keys: Arc::new(keys), _folder: Some(folder) }
}

macro_rules! laws {
    ($($law:ident),* $(,)?) => { backends! { [memory sqlite] [$($law)*] } };
}

macro_rules! backends {
    ([$($backend:ident)*] $laws:tt) => { $(backend! { $backend $laws })* };
}

macro_rules! backend {
    ($backend:ident [$($law:ident)*]) => {
        mod $backend {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $law() {
                super::$law(&super::$backend()).await;
            })*
        }
    };
}

laws! {
    a_session_loads_as_it_was_written,
    append_is_compare_and_set,
    append_keeps_order_under_race,
    a_snapshot_replaces_what_it_covers,
    tidying_changes_nothing_that_is_read,
    scopes_never_see_each_other,
    erase_leaves_nothing,
    a_lifetime_ends_when_it_says,
    lists_page_in_order_and_by_owner,
    open_turns_of_the_dead_are_claimed_once,
    the_audit_chain_has_no_gap_under_race,
    a_write_that_conflicts_leaves_no_audit_record,
    tokens_are_found_by_hash_and_go_with_their_person,
    a_session_key_is_made_once_and_destroyed_for_good,
    keys_are_made_under_the_current_root_only,
    rewrapping_leaves_what_changed_meanwhile,
    anchors_only_rise_and_only_for_their_key,
    named_keys_are_compare_and_set,
    a_context_is_compare_and_set_with_its_reason,
    contexts_of_tenants_never_see_each_other,
    contexts_lose_nothing_under_race,
    forgetting_a_session_leaves_the_others_captures,
    idle_contexts_are_found_until_they_are_archived,
}

fn tag(n: u8) -> Tag {
    Tag::from_bytes([n; 16])
}

fn kid(n: u8) -> Kid {
    Kid::from_bytes([n; 8])
}

fn names(n: u8) -> Names {
    Names { scope: tag(n), person: tag(100 + n / 10), tenant: tag(200) }
}

fn sealed(text: &str) -> Sealed {
    let context = Context { purpose: "test", owner: "", container: "", object: "", field: "" };
    seal(&Key::from_bytes([7; 32]), Suite::ChaCha20Poly1305, &context, 1, text.as_bytes())
}

fn append(n: u8, expected: u64, entries: Vec<Sealed>) -> Append {
    Append {
        names: names(n),
        kid: kid(n),
        expected,
        entries,
        snapshot: None,
        expires_at: None,
        owner: None,
        audit: Vec::new(),
    }
}

fn note() -> PendingAudit {
    PendingAudit::new(|seq, previous| sealed(&format!("{seq} {previous:?}")))
}

async fn a_session_loads_as_it_was_written(f: &Fresh) {
    assert_eq!(f.store.load(tag(1)).await.unwrap(), None);
    let (one, two) = (sealed("one"), sealed("two"));
    let mut first = append(1, 0, vec![one.clone()]);
    first.expires_at = Some(Millis(5));
    first.owner = Some(Instance([9; 16]));
    assert_eq!(f.store.append(first).await.unwrap(), Appended::Done);
    let loaded = f.store.load(tag(1)).await.unwrap().unwrap();
    assert_eq!((loaded.version, loaded.kid, loaded.expires_at), (1, kid(1), Some(Millis(5))));
    assert_eq!((loaded.owner, &loaded.entries), (Some(Instance([9; 16])), &vec![(1, one.clone())]));
    assert_eq!(f.store.append(append(1, 1, vec![two.clone()])).await.unwrap(), Appended::Done);
    let loaded = f.store.load(tag(1)).await.unwrap().unwrap();
    assert_eq!((loaded.version, loaded.expires_at, loaded.owner), (2, None, None));
    assert_eq!(loaded.entries, [(1, one), (2, two)]);
}

async fn append_is_compare_and_set(f: &Fresh) {
    assert_eq!(f.store.append(append(1, 3, vec![sealed("x")])).await.unwrap(), Appended::Conflict);
    assert_eq!(f.store.append(append(1, 0, vec![sealed("one")])).await.unwrap(), Appended::Done);
    let before = f.store.load(tag(1)).await.unwrap();
    for expected in [0, 2] {
        assert_eq!(f.store.append(append(1, expected, vec![sealed("x")])).await.unwrap(), Appended::Conflict);
    }
    let other_key = Append { kid: kid(9), ..append(1, 1, vec![sealed("x")]) };
    assert_eq!(f.store.append(other_key).await.unwrap(), Appended::Conflict);
    assert_eq!(f.store.load(tag(1)).await.unwrap(), before);
}

async fn append_keeps_order_under_race(f: &Fresh) {
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let store = Arc::clone(&f.store);
        tasks.push(tokio::spawn(async move {
            for i in 0..25 {
                loop {
                    let version = store.load(tag(1)).await.unwrap().map_or(0, |loaded| loaded.version);
                    let entry = sealed(&format!("{writer} {i}"));
                    if store.append(append(1, version, vec![entry])).await.unwrap() == Appended::Done {
                        break;
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let loaded = f.store.load(tag(1)).await.unwrap().unwrap();
    let order: Vec<u64> = loaded.entries.iter().map(|(seq, _)| *seq).collect();
    assert_eq!((loaded.version, order), (100, (1..=100).collect()));
}

async fn a_snapshot_replaces_what_it_covers(f: &Fresh) {
    f.store.append(append(1, 0, vec![sealed("1"), sealed("2"), sealed("3")])).await.unwrap();
    let (four, snapshot) = (sealed("4"), sealed("fold"));
    let fold = Append { snapshot: Some((3, snapshot.clone())), ..append(1, 3, vec![four.clone()]) };
    f.store.append(fold).await.unwrap();
    let loaded = f.store.load(tag(1)).await.unwrap().unwrap();
    assert_eq!((loaded.version, loaded.snapshot, loaded.entries), (4, Some((3, snapshot)), vec![(4, four)]));
    let all = sealed("all");
    let fold = Append { snapshot: Some((5, all.clone())), ..append(1, 4, vec![sealed("5")]) };
    f.store.append(fold).await.unwrap();
    let loaded = f.store.load(tag(1)).await.unwrap().unwrap();
    assert_eq!((loaded.version, loaded.snapshot, loaded.entries), (5, Some((5, all)), vec![]));
}

async fn tidying_changes_nothing_that_is_read(f: &Fresh) {
    let write = |n: u8, expected: u64| {
        let entry = sealed(&format!("{n} {expected}"));
        let snapshot = (expected % 5 == 4).then(|| (expected + u64::from(n % 2), sealed("fold")));
        Append { snapshot, audit: vec![note()], ..append(n, expected, vec![entry]) }
    };
    for expected in 0..23 {
        for n in 1..=4 {
            assert_eq!(f.store.append(write(n, expected)).await.unwrap(), Appended::Done);
        }
        if expected % 7 == 0 {
            f.store.tidy().await.unwrap();
        }
    }
    let mut before = Vec::new();
    for n in 1..=4 {
        before.push(f.store.load(tag(n)).await.unwrap().unwrap());
    }
    let audit = f.store.audit(0, 1000).await.unwrap();
    f.store.tidy().await.unwrap();
    f.store.tidy().await.unwrap();
    for (n, loaded) in (1..=4).zip(before) {
        let tail: Vec<u64> = loaded.entries.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(tail, (20 + u64::from(n % 2)..=23).collect::<Vec<_>>());
        assert_eq!(f.store.load(tag(n)).await.unwrap(), Some(loaded));
    }
    assert_eq!((audit.len(), f.store.audit(0, 1000).await.unwrap()), (92, audit));
}

async fn scopes_never_see_each_other(f: &Fresh) {
    for n in 1..=3 {
        f.store.append(append(n, 0, vec![sealed(&n.to_string())])).await.unwrap();
    }
    let two = f.store.load(tag(2)).await.unwrap();
    f.store.append(append(1, 1, vec![sealed("more")])).await.unwrap();
    f.store.erase(tag(3), vec![]).await.unwrap();
    assert_eq!(f.store.load(tag(2)).await.unwrap(), two);
}

async fn erase_leaves_nothing(f: &Fresh) {
    let fold = Append { snapshot: Some((1, sealed("s"))), ..append(1, 0, vec![sealed("1"), sealed("2")]) };
    f.store.append(fold).await.unwrap();
    assert_eq!(f.store.erase(tag(1), vec![note()]).await.unwrap(), 2);
    assert_eq!(f.store.load(tag(1)).await.unwrap(), None);
    assert!(f.store.list(Find::All, None, 10).await.unwrap().is_empty());
    assert_eq!(f.store.erase(tag(1), vec![]).await.unwrap(), 0);
    f.store.scrub().await.unwrap();
    // Begun anew, nothing of the old is there, and a writer that still knows the old one is refused.
    assert_eq!(f.store.append(append(1, 2, vec![sealed("3")])).await.unwrap(), Appended::Conflict);
    f.store.append(append(1, 0, vec![sealed("new")])).await.unwrap();
    assert_eq!(f.store.load(tag(1)).await.unwrap().unwrap().entries.len(), 1);
}

async fn a_lifetime_ends_when_it_says(f: &Fresh) {
    for (n, at) in [(1, Some(10)), (2, Some(20)), (3, None)] {
        let write = Append { expires_at: at.map(Millis), ..append(n, 0, vec![sealed("x")]) };
        f.store.append(write).await.unwrap();
    }
    assert!(f.store.expired(Millis(9), 10).await.unwrap().is_empty());
    assert_eq!(f.store.expired(Millis(10), 10).await.unwrap(), [tag(1)]);
    let refreshed = Append { expires_at: Some(Millis(30)), ..append(1, 1, vec![sealed("y")]) };
    f.store.append(refreshed).await.unwrap();
    assert_eq!(f.store.expired(Millis(29), 10).await.unwrap(), [tag(2)]);
    assert_eq!(f.store.expired(Millis(99), 1).await.unwrap().len(), 1);
}

async fn lists_page_in_order_and_by_owner(f: &Fresh) {
    for n in [5, 15, 3, 14, 1] {
        f.store.append(append(n, 0, vec![sealed("x")])).await.unwrap();
    }
    let scopes = |listed: Vec<super::Listed>| listed.iter().map(|l| l.names.scope).collect::<Vec<_>>();
    let all = f.store.list(Find::All, None, 10).await.unwrap();
    assert_eq!(scopes(all), [1, 3, 5, 14, 15].map(tag));
    assert_eq!(scopes(f.store.list(Find::All, Some(tag(3)), 2).await.unwrap()), [5, 14].map(tag));
    let person = f.store.list(Find::Person(tag(101)), None, 10).await.unwrap();
    assert_eq!(scopes(person), [14, 15].map(tag));
    assert_eq!(f.store.list(Find::Tenant(tag(200)), None, 10).await.unwrap().len(), 5);
    assert!(f.store.list(Find::Tenant(tag(201)), None, 10).await.unwrap().is_empty());
}

async fn open_turns_of_the_dead_are_claimed_once(f: &Fresh) {
    let (dead, living, heir) = (Instance([1; 16]), Instance([2; 16]), Instance([3; 16]));
    let guard = f.store.enlist(living).await.unwrap();
    let mortal = f.store.enlist(dead).await.unwrap();
    for (n, owner) in [(1, Some(dead)), (2, Some(living)), (3, None)] {
        f.store.append(Append { owner, ..append(n, 0, vec![sealed("x")]) }).await.unwrap();
    }
    assert!(f.store.orphans().await.unwrap().is_empty());
    drop(mortal);
    assert!(!f.store.is_alive(dead).await.unwrap() && f.store.is_alive(living).await.unwrap());
    assert!(!f.store.others_alive(living).await.unwrap() && f.store.others_alive(dead).await.unwrap());
    assert_eq!(f.store.orphans().await.unwrap(), [(tag(1), dead)]);
    assert!(f.store.claim(tag(1), dead, heir).await.unwrap());
    assert!(!f.store.claim(tag(1), dead, living).await.unwrap());
    assert_eq!(f.store.load(tag(1)).await.unwrap().unwrap().owner, Some(heir));
    drop(guard);
}

async fn the_audit_chain_has_no_gap_under_race(f: &Fresh) {
    let mut tasks = Vec::new();
    for n in 1..=4 {
        let store = Arc::clone(&f.store);
        tasks.push(tokio::spawn(async move {
            for i in 0..10 {
                store
                    .append(Append { audit: vec![note()], ..append(n, i, vec![sealed("x")]) })
                    .await
                    .unwrap();
                store.record(vec![note()]).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let records = f.store.audit(0, 1000).await.unwrap();
    let seqs: Vec<u64> = records.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (1..=80).collect::<Vec<_>>());
    let context = Context { purpose: "test", owner: "", container: "", object: "", field: "" };
    let mut previous: Option<[u8; 16]> = None;
    for (seq, record) in &records {
        let opened = confidant_seal::open(&Key::from_bytes([7; 32]), &context, record).unwrap();
        assert_eq!(*opened.data, format!("{seq} {previous:?}").into_bytes());
        previous = record.tag();
    }
    let head = f.store.record(vec![]).await.unwrap().unwrap();
    assert_eq!((head.seq, Some(head.tag)), (80, previous));
    assert_eq!(f.store.audit(78, 10).await.unwrap().len(), 2);
}

async fn a_write_that_conflicts_leaves_no_audit_record(f: &Fresh) {
    let write = Append { audit: vec![note()], ..append(1, 7, vec![sealed("x")]) };
    assert_eq!(f.store.append(write).await.unwrap(), Appended::Conflict);
    assert!(f.store.audit(0, 10).await.unwrap().is_empty());
    assert_eq!(f.store.record(vec![]).await.unwrap(), None);
}

async fn tokens_are_found_by_hash_and_go_with_their_person(f: &Fresh) {
    let row = |id: &str, n: u8, person: Option<Tag>| TokenRow {
        id: id.to_owned(),
        hash: [n; 32],
        person,
        sealed: sealed(id),
    };
    let (a, b, c) = (row("a", 1, None), row("b", 2, Some(tag(1))), row("c", 3, Some(tag(1))));
    for one in [&a, &b, &c] {
        f.store.add_token(one.clone(), vec![note()]).await.unwrap();
    }
    assert_eq!(f.store.token([2; 32]).await.unwrap(), Some(b.clone()));
    assert_eq!(f.store.token([9; 32]).await.unwrap(), None);
    assert_eq!(f.store.tokens().await.unwrap(), [a.clone(), b, c]);
    assert_eq!(f.store.remove_tokens(TokenSelector::Person(tag(1)), vec![]).await.unwrap(), 2);
    assert_eq!(f.store.tokens().await.unwrap(), [a]);
    assert_eq!(f.store.remove_tokens(TokenSelector::Id("a".into()), vec![]).await.unwrap(), 1);
    assert_eq!(f.store.remove_tokens(TokenSelector::Id("a".into()), vec![]).await.unwrap(), 0);
}

fn key_row(n: u8, root: u8) -> KeyRow {
    KeyRow {
        scope: tag(n),
        generation: 1,
        root: kid(root),
        kid: kid(n),
        sealed_key: sealed("key"),
        sealed_scope: sealed("scope"),
        anchor: 0,
    }
}

async fn a_session_key_is_made_once_and_destroyed_for_good(f: &Fresh) {
    let row = key_row(1, 50);
    assert_eq!(f.keys.create(row.clone()).await.unwrap(), Created::New);
    assert_eq!(f.keys.create(key_row(1, 50)).await.unwrap(), Created::Existing(row.clone()));
    assert_eq!(f.keys.get(tag(1)).await.unwrap(), Some(row));
    assert_eq!(f.keys.destroy(&[tag(1), tag(2)]).await.unwrap(), 1);
    f.keys.scrub().await.unwrap();
    assert_eq!(f.keys.get(tag(1)).await.unwrap(), None);
    assert!(f.keys.list(None, 10).await.unwrap().is_empty());
}

async fn keys_are_made_under_the_current_root_only(f: &Fresh) {
    assert_eq!(f.keys.root().await.unwrap(), None);
    assert!(f.keys.set_root(None, kid(50)).await.unwrap());
    assert!(!f.keys.set_root(None, kid(51)).await.unwrap());
    assert_eq!(f.keys.create(key_row(1, 50)).await.unwrap(), Created::New);
    assert!(f.keys.set_root(Some(kid(50)), kid(51)).await.unwrap());
    assert_eq!(f.keys.create(key_row(2, 50)).await.unwrap(), Created::RootChanged(kid(51)));
    assert_eq!(f.keys.create(key_row(2, 51)).await.unwrap(), Created::New);
    assert_eq!(f.keys.count(kid(51)).await.unwrap(), (2, 1));
    let left: Vec<Tag> = f.keys.not_under(kid(51), 10).await.unwrap().iter().map(|row| row.scope).collect();
    assert_eq!(left, [tag(1)]);
}

async fn rewrapping_leaves_what_changed_meanwhile(f: &Fresh) {
    let (one, two) = (key_row(1, 50), key_row(2, 50));
    f.keys.create(one.clone()).await.unwrap();
    f.keys.create(two.clone()).await.unwrap();
    f.keys.anchor(&[Anchor { scope: tag(1), kid: kid(1), version: 7 }], None).await.unwrap();
    let new_one = key_row(1, 51);
    let stale_two = key_row(2, 50);
    let changed = f.keys.rewrap(vec![(one, new_one.clone()), (stale_two, key_row(2, 51))]).await.unwrap();
    assert_eq!(changed, 1);
    assert_eq!(f.keys.get(tag(1)).await.unwrap(), Some(KeyRow { anchor: 7, ..new_one }));
    assert_eq!(f.keys.get(tag(2)).await.unwrap(), Some(two));
}

async fn anchors_only_rise_and_only_for_their_key(f: &Fresh) {
    f.keys.create(key_row(1, 50)).await.unwrap();
    let at = |version, key| Anchor { scope: tag(1), kid: kid(key), version };
    f.keys.anchor(&[at(5, 1)], Some(9)).await.unwrap();
    f.keys.anchor(&[at(3, 1)], Some(4)).await.unwrap();
    f.keys.anchor(&[at(99, 2)], None).await.unwrap();
    assert_eq!(f.keys.get(tag(1)).await.unwrap().unwrap().anchor, 5);
    assert_eq!(f.keys.audit_anchor().await.unwrap(), 9);
    f.keys.reset_anchors(&[at(2, 1)], 1).await.unwrap();
    assert_eq!(f.keys.get(tag(1)).await.unwrap().unwrap().anchor, 2);
    assert_eq!(f.keys.audit_anchor().await.unwrap(), 1);
}

async fn named_keys_are_compare_and_set(f: &Fresh) {
    let (one, two) = (sealed("one"), sealed("two"));
    assert!(f.keys.put_named("names", None, kid(50), &one).await.unwrap());
    assert!(!f.keys.put_named("names", None, kid(50), &two).await.unwrap());
    assert!(!f.keys.put_named("names", Some(&two), kid(50), &two).await.unwrap());
    assert!(f.keys.put_named("names", Some(&one), kid(51), &two).await.unwrap());
    assert_eq!(f.keys.named("names").await.unwrap(), Some((kid(51), two)));
    assert_eq!(f.keys.named("audit").await.unwrap(), None);
}

fn conversation(tenant: u8, n: u8) -> ConversationName {
    ConversationName { tenant: tag(tenant), conversation: tag(n) }
}

fn put(name: ConversationName, expected: u64, content: &str) -> PutContext {
    PutContext {
        name,
        kid: kid(1),
        expected,
        content: content.as_bytes().to_vec(),
        updated_at: Millis(i64::try_from(expected).unwrap()),
        archived_at: None,
        capture: None,
        forget: None,
        audit: Vec::new(),
    }
}

fn captured(name: ConversationName, request: u8, scope: u8) -> CaptureRow {
    let at = Millis(i64::from(request));
    CaptureRow {
        name,
        request: tag(request),
        scope: tag(scope),
        person: tag(9),
        at,
        sealed: Sealed::from_bytes(vec![request; 40]),
    }
}

async fn a_context_is_compare_and_set_with_its_reason(f: &Fresh) {
    let name = conversation(200, 1);
    assert_eq!(f.store.context(name).await.unwrap(), None);
    let with_reason = |expected| PutContext {
        capture: Some(captured(name, 7, 1)),
        audit: vec![note()],
        ..put(name, expected, "text")
    };
    assert_eq!(f.store.put_context(with_reason(3)).await.unwrap(), Appended::Conflict);
    assert!(f.store.captures(CapturesOf::Conversation(name)).await.unwrap().is_empty());
    assert_eq!(f.store.put_context(with_reason(0)).await.unwrap(), Appended::Done);
    for expected in [0, 2] {
        assert_eq!(f.store.put_context(with_reason(expected)).await.unwrap(), Appended::Conflict);
    }
    let other_key = PutContext { kid: kid(2), ..put(name, 1, "other") };
    assert_eq!(f.store.put_context(other_key).await.unwrap(), Appended::Conflict);
    let row = f.store.context(name).await.unwrap().unwrap();
    assert_eq!((row.version, row.kid, row.content.as_slice()), (1, kid(1), b"text".as_slice()));
    // A second record of the same turn takes the place of the first.
    assert_eq!(f.store.put_context(with_reason(1)).await.unwrap(), Appended::Done);
    assert_eq!(f.store.captures(CapturesOf::Conversation(name)).await.unwrap(), [captured(name, 7, 1)]);
    assert_eq!(f.store.audit(0, 10).await.unwrap().len(), 2);
}

async fn contexts_of_tenants_never_see_each_other(f: &Fresh) {
    let (ours, theirs) = (conversation(200, 1), conversation(201, 1));
    for name in [ours, theirs] {
        let capture = Some(captured(name, 1, 5));
        f.store.put_context(PutContext { capture, ..put(name, 0, "x") }).await.unwrap();
    }
    f.store.put_context(put(ours, 1, "y")).await.unwrap();
    assert_eq!(f.store.context(theirs).await.unwrap().unwrap().version, 1);
    assert_eq!(f.store.captures(CapturesOf::Tenant(tag(200))).await.unwrap(), [captured(ours, 1, 5)]);
    assert_eq!(f.store.erase_context(ours, vec![note()]).await.unwrap(), 1);
    assert_eq!(f.store.context(ours).await.unwrap(), None);
    assert_eq!(f.store.captures(CapturesOf::Session(tag(5))).await.unwrap(), [captured(theirs, 1, 5)]);
    assert_eq!(f.store.erase_context(ours, vec![]).await.unwrap(), 0);
}

async fn contexts_lose_nothing_under_race(f: &Fresh) {
    let name = conversation(200, 1);
    let mut tasks = Vec::new();
    for writer in 0..64_u8 {
        let store = Arc::clone(&f.store);
        tasks.push(tokio::spawn(async move {
            loop {
                let row = store.context(name).await.unwrap();
                let (version, mut content) = row.map_or((0, Vec::new()), |row| (row.version, row.content));
                content.push(writer);
                let capture = Some(captured(name, writer, writer));
                let write = PutContext { content, capture, ..put(name, version, "") };
                if store.put_context(write).await.unwrap() == Appended::Done {
                    break;
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut row = f.store.context(name).await.unwrap().unwrap();
    row.content.sort_unstable();
    assert_eq!((row.version, row.content), (64, (0..64).collect()));
    assert_eq!(f.store.captures(CapturesOf::Conversation(name)).await.unwrap().len(), 64);
}

async fn forgetting_a_session_leaves_the_others_captures(f: &Fresh) {
    let (one, two) = (conversation(200, 1), conversation(200, 2));
    let mut version = 0;
    for (request, scope) in [(1, 5), (2, 6), (3, 5)] {
        let capture = Some(captured(one, request, scope));
        f.store.put_context(PutContext { capture, ..put(one, version, "x") }).await.unwrap();
        version += 1;
    }
    f.store.put_context(PutContext { capture: Some(captured(two, 4, 5)), ..put(two, 0, "x") }).await.unwrap();
    let without = PutContext { forget: Some(tag(5)), ..put(one, version, "less") };
    assert_eq!(f.store.put_context(without).await.unwrap(), Appended::Done);
    assert_eq!(f.store.captures(CapturesOf::Conversation(one)).await.unwrap(), [captured(one, 2, 6)]);
    assert_eq!(f.store.captures(CapturesOf::Session(tag(5))).await.unwrap(), [captured(two, 4, 5)]);
}

async fn idle_contexts_are_found_until_they_are_archived(f: &Fresh) {
    for (n, at) in [(1, 10), (2, 20), (3, 30)] {
        let write = PutContext { updated_at: Millis(at), ..put(conversation(200, n), 0, "x") };
        f.store.put_context(write).await.unwrap();
    }
    assert!(f.store.idle_contexts(Millis(10), 10).await.unwrap().is_empty());
    assert_eq!(f.store.idle_contexts(Millis(25), 10).await.unwrap(), [1, 2].map(|n| conversation(200, n)));
    let archived = PutContext { archived_at: Some(Millis(40)), ..put(conversation(200, 1), 1, "x") };
    f.store.put_context(PutContext { updated_at: Millis(10), ..archived }).await.unwrap();
    assert_eq!(f.store.idle_contexts(Millis(25), 10).await.unwrap(), [conversation(200, 2)]);
    let row = f.store.context(conversation(200, 1)).await.unwrap().unwrap();
    assert_eq!((row.updated_at, row.archived_at), (Millis(10), Some(Millis(40))));
}
