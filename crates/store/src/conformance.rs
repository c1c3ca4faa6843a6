//! The laws that every back end keeps, each a sentence. A new back end is one more line in `backends!`; a new promise
//! is one more law, and all answer for it.

mod contexts;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use confidant_seal::{Context, Key, Kid, Sealed, Suite, Tag, seal};

use contexts::{
    a_context_is_compare_and_set_with_its_reason, a_context_that_is_written_twice_is_written_once,
    an_adopted_context_stands_as_it_was, contexts_lose_nothing_under_race,
    contexts_of_tenants_never_see_each_other, forgetting_a_session_leaves_the_others_captures,
    idle_contexts_are_found_until_they_are_archived,
};

use super::memory::{MemoryKeys, MemoryStore};
use super::postgres::PostgresSettings;
use super::redis::RedisSettings;
use super::redis::tests::{optional_settings, settings};
use super::sqlite::{Durability, SqliteKeys, SqliteStore};
use super::{
    Anchor, Append, Appended, AuditHead, AuditPlace, Created, Find, Instance, KeyName, KeyRow, KeyStore,
    Known, LaneAnchor, Loaded, Logs as _, NameSealer, Names, Owner, PendingAudit, Store, TokenRow,
};
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::lane::Lane;

/// A back end on a fresh namespace of its own, gone when this is.
struct Fresh {
    store: Arc<dyn Store>,
    keys: Arc<dyn KeyStore>,
    lifetimes: Lifetimes,
    /// Whether a connection can break and take the reply to a write with it.
    has_lost_replies: bool,
    _folder: Option<tempfile::TempDir>,
}

/// Who ends a session whose lifetime is over.
#[derive(PartialEq)]
enum Lifetimes {
    /// Whoever asks the store which ones they are.
    AreSwept,
    /// The store.
    EndThemselves,
}

async fn memory() -> Option<Fresh> {
    let (store, keys) = (Arc::new(MemoryStore::default()), Arc::new(MemoryKeys::default()));
    Some(Fresh { store, keys, lifetimes: Lifetimes::AreSwept, has_lost_replies: false, _folder: None })
}

async fn sqlite() -> Option<Fresh> {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), Durability::Process).unwrap());
    let keys = Arc::new(SqliteKeys::open(folder.path()).unwrap());
    Some(Fresh {
        store,
        keys,
        lifetimes: Lifetimes::AreSwept,
        has_lost_replies: false,
        _folder: Some(folder),
    })
}

async fn redis() -> Option<Fresh> {
    on_redis(settings("CONFIDANT_TEST_REDIS")?).await
}

async fn redis_over_tls() -> Option<Fresh> {
    on_redis(settings("CONFIDANT_TEST_REDIS_TLS")?).await
}

async fn redis_cluster() -> Option<Fresh> {
    on_redis(settings("CONFIDANT_TEST_REDIS_CLUSTER")?).await
}

async fn redis_cluster_over_tls() -> Option<Fresh> {
    on_redis(settings("CONFIDANT_TEST_REDIS_CLUSTER_TLS")?).await
}

async fn redis_sentinel_over_tls() -> Option<Fresh> {
    on_redis(settings("CONFIDANT_TEST_REDIS_SENTINEL_TLS")?).await
}

async fn redis_6() -> Option<Fresh> {
    on_redis(optional_settings("CONFIDANT_TEST_REDIS_6")?).await
}

async fn valkey() -> Option<Fresh> {
    on_redis(optional_settings("CONFIDANT_TEST_VALKEY")?).await
}

async fn postgres() -> Option<Fresh> {
    on_postgres(super::postgres::tests::settings("CONFIDANT_TEST_POSTGRES")?).await
}

async fn postgres_over_tls() -> Option<Fresh> {
    on_postgres(super::postgres::tests::settings("CONFIDANT_TEST_POSTGRES_TLS")?).await
}

async fn on_postgres(settings: PostgresSettings) -> Option<Fresh> {
    let (store, keys) = super::postgres::open(&settings).await.unwrap();
    let lifetimes = Lifetimes::AreSwept;
    Some(Fresh {
        store: Arc::new(store),
        keys: Arc::new(keys),
        lifetimes,
        has_lost_replies: true,
        _folder: None,
    })
}

async fn on_redis(settings: RedisSettings) -> Option<Fresh> {
    let (store, keys) = super::redis::open(&settings).await.unwrap();
    store.introduce(NameSealer::new(Key::from_bytes([8; 32])));
    let lifetimes = Lifetimes::EndThemselves;
    Some(Fresh {
        store: Arc::new(store),
        keys: Arc::new(keys),
        lifetimes,
        has_lost_replies: true,
        _folder: None,
    })
}

macro_rules! laws {
    ($($law:ident),* $(,)?) => {
        backends! {
            [memory sqlite redis redis_over_tls redis_cluster redis_6 valkey postgres postgres_over_tls] [$($law)*]
        }
    };
}

macro_rules! backends {
    ([$($backend:ident)*] $laws:tt) => { $(backend! { $backend $laws })* };
}

macro_rules! backend {
    ($backend:ident [$($law:ident)*]) => {
        mod $backend {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $law() {
                if let Some(fresh) = super::$backend().await {
                    super::$law(&fresh).await;
                }
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
    a_session_made_while_the_one_before_is_erased_is_found,
    a_lifetime_ends_when_it_says,
    a_lifetime_ends_by_itself_where_it_does,
    a_write_that_is_made_twice_is_done_once,
    keys_are_found_when_their_logs_are_over,
    lists_page_in_order_and_by_owner,
    open_turns_of_the_dead_are_claimed_once,
    what_waits_for_a_decision_is_found,
    copied_audit_lanes_stand_as_they_were,
    no_audit_lane_has_a_gap_under_race,
    a_write_that_conflicts_leaves_no_audit_record,
    tokens_are_found_by_hash_and_go_with_their_person,
    a_session_key_is_made_once_and_destroyed_for_good,
    keys_are_made_under_the_current_root_only,
    rewrapping_leaves_what_changed_meanwhile,
    anchors_only_rise_and_only_for_their_key,
    anchors_of_audit_lanes_only_rise,
    named_keys_are_compare_and_set,
    a_context_is_compare_and_set_with_its_reason,
    contexts_of_tenants_never_see_each_other,
    contexts_lose_nothing_under_race,
    forgetting_a_session_leaves_the_others_captures,
    a_context_that_is_written_twice_is_written_once,
    idle_contexts_are_found_until_they_are_archived,
    an_adopted_context_stands_as_it_was,
}

// Only the way to the servers is another there: those that go all of it are enough.
backends! {
    [redis_cluster_over_tls redis_sentinel_over_tls]
    [
        a_session_loads_as_it_was_written
        append_is_compare_and_set
        append_keeps_order_under_race
        scopes_never_see_each_other
        erase_leaves_nothing
        lists_page_in_order_and_by_owner
        no_audit_lane_has_a_gap_under_race
        a_session_key_is_made_once_and_destroyed_for_good
        contexts_of_tenants_never_see_each_other
    ]
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
        name: Some(KeyName::new(&format!("checkpoint:!room:x.org:main:@person{n}:x.org:latest"))),
        kid: kid(n),
        expected,
        entries,
        snapshot: None,
        expires_at: None,
        owner: None,
        audit: Vec::new(),
    }
}

/// A moment this long after one that is an hour away: nothing ends before it.
fn later(millis: i64) -> Millis {
    static BASE: LazyLock<i64> = LazyLock::new(|| SystemClock.now().0 + 3_600_000);
    Millis(*BASE + millis)
}

fn note() -> PendingAudit {
    PendingAudit::new(|place| sealed(&format!("{place:?}")))
}

async fn load(f: &Fresh, n: u8) -> Option<Loaded> {
    let (known, names) = (append(n, 0, vec![]), names(n));
    let known = Known { tenant: names.tenant, name: known.name.as_ref() };
    let loaded = f.store.load(tag(n), Some(known)).await.unwrap();
    // By its tag alone it is found as well.
    assert_eq!(f.store.load(tag(n), None).await.unwrap(), loaded);
    loaded
}

/// The audit records of all lanes, in order.
async fn recorded(f: &Fresh) -> Vec<(Lane, u64, Sealed)> {
    let mut all = Vec::new();
    for lane in f.store.lanes().await.unwrap().iter().map(|lane| lane.head.lane) {
        let records = f.store.audit(lane, 0, 1000).await.unwrap();
        all.extend(records.into_iter().map(|(seq, sealed)| (lane, seq, sealed)));
    }
    all
}

async fn a_session_loads_as_it_was_written(f: &Fresh) {
    assert_eq!(load(f, 1).await, None);
    let (one, two) = (sealed("one"), sealed("two"));
    let mut first = append(1, 0, vec![one.clone()]);
    first.expires_at = Some(later(5));
    let owner = Some(Owner::Running(Instance([9; 16])));
    first.owner = owner;
    assert_eq!(f.store.append(first).await.unwrap(), Appended::Done);
    let loaded = load(f, 1).await.unwrap();
    assert_eq!((loaded.version, loaded.kid, loaded.expires_at), (1, kid(1), Some(later(5))));
    assert_eq!((loaded.owner, &loaded.entries), (owner, &vec![(1, one.clone())]));
    assert_eq!(f.store.append(append(1, 1, vec![two.clone()])).await.unwrap(), Appended::Done);
    let loaded = load(f, 1).await.unwrap();
    assert_eq!((loaded.version, loaded.expires_at, loaded.owner), (2, None, None));
    assert_eq!(loaded.entries, [(1, one), (2, two)]);
}

async fn append_is_compare_and_set(f: &Fresh) {
    assert_eq!(f.store.append(append(1, 3, vec![sealed("x")])).await.unwrap(), Appended::Conflict);
    assert_eq!(f.store.append(append(1, 0, vec![sealed("one")])).await.unwrap(), Appended::Done);
    let before = load(f, 1).await;
    for expected in [0, 2] {
        assert_eq!(f.store.append(append(1, expected, vec![sealed("x")])).await.unwrap(), Appended::Conflict);
    }
    let other_key = Append { kid: kid(9), ..append(1, 1, vec![sealed("x")]) };
    assert_eq!(f.store.append(other_key).await.unwrap(), Appended::Conflict);
    assert_eq!(load(f, 1).await, before);
}

async fn a_session_made_while_the_one_before_is_erased_is_found(f: &Fresh) {
    for round in 0..60 {
        let first = Append { kid: kid(1), ..append(1, 0, vec![sealed(&format!("old {round}"))]) };
        assert_eq!(f.store.append(first).await.unwrap(), Appended::Done);
        let (erasing, making) = (Arc::clone(&f.store), Arc::clone(&f.store));
        let erasing = tokio::spawn(async move {
            let (known, names) = (append(1, 0, vec![]), names(1));
            let known = Known { tenant: names.tenant, name: known.name.as_ref() };
            erasing.erase(tag(1), Some(known), vec![]).await.unwrap();
        });
        let making = tokio::spawn(async move {
            let new = || Append { kid: kid(2), ..append(1, 0, vec![sealed(&format!("new {round}"))]) };
            while making.append(new()).await.unwrap() != Appended::Done {
                tokio::task::yield_now().await;
            }
        });
        erasing.await.unwrap();
        let made = tokio::time::timeout(std::time::Duration::from_secs(60), making).await;
        made.expect("the old session is there still").unwrap();
        // Under its name and its tag, and in the lists by which a person's sessions are exported and erased.
        let there = load(f, 1).await.is_some();
        let Names { tenant, person, .. } = names(1);
        for find in [Find::All, Find::Person { tenant, person }] {
            assert_eq!(f.store.list(find, None, 10).await.unwrap().len(), usize::from(there), "{round}");
        }
        f.store.erase(tag(1), None, vec![]).await.unwrap();
        assert_eq!(load(f, 1).await, None);
    }
}

async fn append_keeps_order_under_race(f: &Fresh) {
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let store = Arc::clone(&f.store);
        tasks.push(tokio::spawn(async move {
            for i in 0..25 {
                loop {
                    let version = store.load(tag(1), None).await.unwrap().map_or(0, |loaded| loaded.version);
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
    let loaded = load(f, 1).await.unwrap();
    let order: Vec<u64> = loaded.entries.iter().map(|(seq, _)| *seq).collect();
    assert_eq!((loaded.version, order), (100, (1..=100).collect()));
}

async fn a_snapshot_replaces_what_it_covers(f: &Fresh) {
    f.store.append(append(1, 0, vec![sealed("1"), sealed("2"), sealed("3")])).await.unwrap();
    let (four, snapshot) = (sealed("4"), sealed("fold"));
    let fold = Append { snapshot: Some((3, snapshot.clone())), ..append(1, 3, vec![four.clone()]) };
    f.store.append(fold).await.unwrap();
    let loaded = load(f, 1).await.unwrap();
    assert_eq!((loaded.version, loaded.snapshot, loaded.entries), (4, Some((3, snapshot)), vec![(4, four)]));
    let all = sealed("all");
    let fold = Append { snapshot: Some((5, all.clone())), ..append(1, 4, vec![sealed("5")]) };
    f.store.append(fold).await.unwrap();
    let loaded = load(f, 1).await.unwrap();
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
        before.push(load(f, n).await.unwrap());
    }
    let audit = recorded(f).await;
    f.store.tidy().await.unwrap();
    f.store.tidy().await.unwrap();
    for (n, loaded) in (1..=4).zip(before) {
        let tail: Vec<u64> = loaded.entries.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(tail, (20 + u64::from(n % 2)..=23).collect::<Vec<_>>());
        assert_eq!(load(f, n).await, Some(loaded));
    }
    assert_eq!((audit.len(), recorded(f).await), (92, audit));
}

async fn scopes_never_see_each_other(f: &Fresh) {
    for n in 1..=3 {
        f.store.append(append(n, 0, vec![sealed(&n.to_string())])).await.unwrap();
    }
    let two = load(f, 2).await;
    f.store.append(append(1, 1, vec![sealed("more")])).await.unwrap();
    f.store.erase(tag(3), None, vec![]).await.unwrap();
    assert_eq!(load(f, 2).await, two);
}

async fn erase_leaves_nothing(f: &Fresh) {
    let fold = Append { snapshot: Some((1, sealed("s"))), ..append(1, 0, vec![sealed("1"), sealed("2")]) };
    f.store.append(fold).await.unwrap();
    assert!(!f.store.is_empty().await.unwrap());
    assert_eq!(f.store.erase(tag(1), None, vec![note()]).await.unwrap(), 2);
    assert_eq!(load(f, 1).await, None);
    assert!(f.store.list(Find::All, None, 10).await.unwrap().is_empty() && f.store.is_empty().await.unwrap());
    assert_eq!(f.store.erase(tag(1), None, vec![]).await.unwrap(), 0);
    f.store.scrub().await.unwrap();
    // Begun anew, nothing of the old is there, and a writer that still knows the old one is refused.
    assert_eq!(f.store.append(append(1, 2, vec![sealed("3")])).await.unwrap(), Appended::Conflict);
    f.store.append(append(1, 0, vec![sealed("new")])).await.unwrap();
    assert_eq!(load(f, 1).await.unwrap().entries.len(), 1);
}

async fn a_lifetime_ends_when_it_says(f: &Fresh) {
    for (n, at) in [(1, Some(10)), (2, Some(20)), (3, None)] {
        let write = Append { expires_at: at.map(later), ..append(n, 0, vec![sealed("x")]) };
        f.store.append(write).await.unwrap();
    }
    assert!(f.store.expired(later(9), 10).await.unwrap().is_empty());
    let refreshed = Append { expires_at: Some(later(30)), ..append(1, 1, vec![sealed("y")]) };
    if f.lifetimes == Lifetimes::EndThemselves {
        assert!(f.store.expired(later(99), 10).await.unwrap().is_empty());
        return;
    }
    assert_eq!(f.store.expired(later(10), 10).await.unwrap(), [tag(1)]);
    f.store.append(refreshed).await.unwrap();
    assert_eq!(f.store.expired(later(29), 10).await.unwrap(), [tag(2)]);
    assert_eq!(f.store.expired(later(99), 1).await.unwrap().len(), 1);
}

async fn keys_are_found_when_their_logs_are_over(f: &Fresh) {
    for (n, at) in [(1, Some(10)), (2, Some(20)), (3, None)] {
        f.keys.create(KeyRow { expires_at: at.map(later), ..key_row(n, 50) }).await.unwrap();
    }
    assert!(f.keys.expired(later(9), 10).await.unwrap().is_empty());
    assert_eq!(f.keys.expired(later(10), 10).await.unwrap(), [tag(1)]);
    let at = |n, version, at: Option<i64>| Anchor {
        scope: tag(n),
        kid: kid(n),
        version,
        expires_at: at.map(later),
    };
    f.keys.anchor(&[at(1, 3, Some(30)), at(3, 1, Some(40))], &[]).await.unwrap();
    // An older turn, of a process that was slower to say so, changes nothing.
    f.keys.anchor(&[at(1, 2, Some(11))], &[]).await.unwrap();
    assert_eq!(f.keys.expired(later(29), 10).await.unwrap(), [tag(2)]);
    assert_eq!(f.keys.get(tag(1)).await.unwrap().unwrap().expires_at, Some(later(30)));
    f.keys.anchor(&[at(2, 1, None)], &[]).await.unwrap();
    let mut over = f.keys.expired(later(99), 10).await.unwrap();
    over.sort_unstable();
    assert_eq!(over, [tag(1), tag(3)]);
}

async fn a_lifetime_ends_by_itself_where_it_does(f: &Fresh) {
    if f.lifetimes == Lifetimes::AreSwept {
        return;
    }
    let soon = |millis| Millis(SystemClock.now().0 + millis);
    for (n, at) in [(1, soon(100)), (2, soon(300)), (3, later(0))] {
        f.store.append(Append { expires_at: Some(at), ..append(n, 0, vec![sealed("x")]) }).await.unwrap();
    }
    let refreshed = Append { expires_at: Some(later(0)), ..append(2, 1, vec![sealed("y")]) };
    assert_eq!(f.store.append(refreshed).await.unwrap(), Appended::Done);
    let (long_enough, too_long) = (soon(400), soon(10_000));
    while f.store.load(tag(1), None).await.unwrap().is_some() || SystemClock.now() < long_enough {
        assert!(SystemClock.now() < too_long, "it is still there");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // Refreshed in time, so it is there; and one that lost its lifetime stays for good.
    assert_eq!(load(f, 2).await.unwrap().version, 2);
    f.store.append(append(3, 1, vec![sealed("z")])).await.unwrap();
    assert_eq!(load(f, 3).await.unwrap().expires_at, None);
    let listed = f.store.list(Find::All, None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.names.scope).collect::<Vec<_>>(), [tag(2), tag(3)]);
    // Begun anew where it ended, by a writer that still knows the old one and by one that does not.
    assert_eq!(f.store.append(append(1, 1, vec![sealed("late")])).await.unwrap(), Appended::Conflict);
    assert_eq!(f.store.append(append(1, 0, vec![sealed("anew")])).await.unwrap(), Appended::Done);
}

async fn a_write_that_is_made_twice_is_done_once(f: &Fresh) {
    if !f.has_lost_replies {
        return;
    }
    let entry = sealed("one");
    let write = || Append { audit: vec![note()], ..append(1, 0, vec![entry.clone()]) };
    assert_eq!(f.store.append(write()).await.unwrap(), Appended::Done);
    assert_eq!(f.store.append(write()).await.unwrap(), Appended::Done);
    assert_eq!(load(f, 1).await.unwrap().entries.len(), 1);
    f.store.append(append(1, 1, vec![sealed("two")])).await.unwrap();
    assert_eq!(f.store.append(write()).await.unwrap(), Appended::Conflict);
}

async fn lists_page_in_order_and_by_owner(f: &Fresh) {
    for n in [5, 15, 3, 14, 1] {
        f.store.append(append(n, 0, vec![sealed("x")])).await.unwrap();
    }
    let scopes = |listed: Vec<super::Listed>| listed.iter().map(|l| l.names.scope).collect::<Vec<_>>();
    let all = f.store.list(Find::All, None, 10).await.unwrap();
    assert_eq!(scopes(all), [1, 3, 5, 14, 15].map(tag));
    assert_eq!(scopes(f.store.list(Find::All, Some(tag(3)), 2).await.unwrap()), [5, 14].map(tag));
    let of = async |tenant, person| {
        let find = Find::Person { tenant: tag(tenant), person: tag(person) };
        scopes(f.store.list(find, None, 10).await.unwrap())
    };
    assert_eq!(of(200, 101).await, [14, 15].map(tag));
    assert_eq!(of(201, 101).await, []);
    assert_eq!(f.store.list(Find::Tenant(tag(200)), None, 10).await.unwrap().len(), 5);
    assert!(f.store.list(Find::Tenant(tag(201)), None, 10).await.unwrap().is_empty());
}

async fn open_turns_of_the_dead_are_claimed_once(f: &Fresh) {
    let (dead, living, heir) = (Instance([1; 16]), Instance([2; 16]), Instance([3; 16]));
    let guard = f.store.enlist(living).await.unwrap();
    let mortal = f.store.enlist(dead).await.unwrap();
    for (n, instance) in [(1, Some(dead)), (2, Some(living)), (3, None)] {
        let owner = instance.map(Owner::Running);
        f.store.append(Append { owner, ..append(n, 0, vec![sealed("x")]) }).await.unwrap();
    }
    assert!(f.store.orphans().await.unwrap().is_empty());
    drop(mortal);
    assert!(!f.store.is_alive(dead).await.unwrap() && f.store.is_alive(living).await.unwrap());
    assert!(!f.store.others_alive(living).await.unwrap() && f.store.others_alive(dead).await.unwrap());
    assert_eq!(f.store.orphans().await.unwrap(), [(tag(1), Owner::Running(dead))]);
    assert!(f.store.claim(tag(1), dead.into(), heir).await.unwrap());
    assert!(!f.store.claim(tag(1), dead.into(), living).await.unwrap());
    assert_eq!(load(f, 1).await.unwrap().owner, Some(Owner::Running(heir)));
    drop(guard);
}

async fn what_waits_for_a_decision_is_found(f: &Fresh) {
    let living = Instance([2; 16]);
    let _guard = f.store.enlist(living).await.unwrap();
    let write = |n, expected, owner| Append { owner, ..append(n, expected, vec![sealed("x")]) };
    for (n, owner) in [(1, Owner::Parked), (2, Owner::Decided), (3, living.into()), (4, Owner::Parked)] {
        assert_eq!(f.store.append(write(n, 0, Some(owner))).await.unwrap(), Appended::Done);
    }
    let left = async || {
        let mut left = f.store.orphans().await.unwrap();
        left.sort_by_key(|(scope, _)| *scope);
        left
    };
    assert_eq!(left().await, [(tag(1), Owner::Parked), (tag(2), Owner::Decided), (tag(4), Owner::Parked)]);
    // From one to the other and to somebody alive, to nobody, to the end.
    f.store.append(write(1, 1, Some(Owner::Decided))).await.unwrap();
    assert!(f.store.claim(tag(2), Owner::Decided, living).await.unwrap());
    f.store.erase(tag(4), None, vec![]).await.unwrap();
    assert_eq!(left().await, [(tag(1), Owner::Decided)]);
    f.store.append(write(1, 2, None)).await.unwrap();
    assert_eq!(left().await, []);
    // And back.
    f.store.append(write(2, 1, Some(Owner::Decided))).await.unwrap();
    f.store.append(write(1, 3, Some(Owner::Parked))).await.unwrap();
    assert_eq!(left().await, [(tag(1), Owner::Parked), (tag(2), Owner::Decided)]);
}

async fn copied_audit_lanes_stand_as_they_were(f: &Fresh) {
    let records: Vec<Sealed> = (0..5).map(|n| sealed(&n.to_string())).collect();
    let floor = AuditHead { lane: Lane::new(3), seq: 40, tag: [7; 16] };
    let head = |lane, seq, n: usize| AuditHead { lane, seq, tag: records[n].tag().unwrap() };
    f.store.adopt(Lane::ZERO, None, records[..2].to_vec()).await.unwrap();
    f.store.adopt(Lane::new(3), Some(floor), records[..3].to_vec()).await.unwrap();
    f.store.adopt(Lane::new(3), Some(head(Lane::new(3), 43, 2)), records[3..].to_vec()).await.unwrap();
    let stand = async || {
        let lanes = f.store.lanes().await.unwrap();
        lanes.into_iter().map(|lane| (lane.head.lane, (lane.head, lane.floor))).collect::<BTreeMap<_, _>>()
    };
    let (zero, three) = (head(Lane::ZERO, 2, 1), head(Lane::new(3), 45, 4));
    assert_eq!(
        stand().await,
        BTreeMap::from([(Lane::ZERO, (zero, None)), (Lane::new(3), (three, Some(floor)))])
    );
    let read = f.store.audit(Lane::new(3), 41, 10).await.unwrap();
    assert_eq!(read, (42..).zip(records[1..].iter().cloned()).collect::<Vec<_>>());
    // What is recorded from now on follows one of them, or is in a lane of its own.
    let recorded = f.store.record(vec![note()]).await.unwrap().unwrap();
    let stands = stand().await;
    assert_eq!(stands[&recorded.lane].0, recorded);
    for (lane, copied) in [(Lane::ZERO, zero), (Lane::new(3), three)] {
        assert!(stands[&lane].0 == copied || recorded.lane == lane && recorded.seq == copied.seq + 1);
    }
}

async fn no_audit_lane_has_a_gap_under_race(f: &Fresh) {
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
    let records = recorded(f).await;
    assert_eq!(records.len(), 80);
    let context = Context { purpose: "test", owner: "", container: "", object: "", field: "" };
    let mut heads: BTreeMap<Lane, AuditHead> = BTreeMap::new();
    for (lane, seq, record) in &records {
        let place = heads.get(lane).map_or(AuditPlace::first(*lane), |head| head.next());
        let opened = confidant_seal::open(&Key::from_bytes([7; 32]), &context, record).unwrap();
        assert_eq!((*seq, &**opened.data), (place.seq, format!("{place:?}").as_bytes()));
        heads.insert(*lane, AuditHead { lane: *lane, seq: *seq, tag: record.tag().unwrap() });
    }
    let lanes = f.store.lanes().await.unwrap();
    assert!(lanes.iter().all(|lane| heads[&lane.head.lane] == lane.head && lane.floor.is_none()));
    assert_eq!(lanes.len(), heads.len());
    let head = f.store.record(vec![note(), note()]).await.unwrap().unwrap();
    assert_eq!(head.seq, heads.get(&head.lane).map_or(0, |head| head.seq) + 2);
    assert_eq!(f.store.audit(head.lane, head.seq - 2, 10).await.unwrap().len(), 2);
    assert!(f.store.audit(Lane::new(4_000_000), 0, 10).await.unwrap().is_empty());
}

async fn a_write_that_conflicts_leaves_no_audit_record(f: &Fresh) {
    let write = Append { audit: vec![note()], ..append(1, 7, vec![sealed("x")]) };
    assert_eq!(f.store.append(write).await.unwrap(), Appended::Conflict);
    assert!(recorded(f).await.is_empty());
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
    assert_eq!(f.store.tokens().await.unwrap(), [a.clone(), b.clone(), c.clone()]);
    assert_eq!(f.store.remove_token(b.hash, vec![]).await.unwrap(), 1);
    assert_eq!(f.store.tokens().await.unwrap(), [a.clone(), c]);
    assert_eq!(f.store.remove_token(a.hash, vec![]).await.unwrap(), 1);
    assert_eq!(f.store.remove_token(a.hash, vec![]).await.unwrap(), 0);
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
        expires_at: None,
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
    let anchor = Anchor { scope: tag(1), kid: kid(1), version: 7, expires_at: Some(later(0)) };
    f.keys.anchor(&[anchor], &[]).await.unwrap();
    let new_one = key_row(1, 51);
    let stale_two = key_row(2, 50);
    let changed = f.keys.rewrap(vec![(one, new_one.clone()), (stale_two, key_row(2, 51))]).await.unwrap();
    assert_eq!(changed, 1);
    assert_eq!(
        f.keys.get(tag(1)).await.unwrap(),
        Some(KeyRow { anchor: 7, expires_at: Some(later(0)), ..new_one })
    );
    assert_eq!(f.keys.get(tag(2)).await.unwrap(), Some(two));
}

async fn anchors_only_rise_and_only_for_their_key(f: &Fresh) {
    f.keys.create(key_row(1, 50)).await.unwrap();
    let at = |version, key| Anchor { scope: tag(1), kid: kid(key), version, expires_at: None };
    f.keys.anchor(&[at(5, 1)], &[]).await.unwrap();
    f.keys.anchor(&[at(3, 1)], &[]).await.unwrap();
    f.keys.anchor(&[at(99, 2)], &[]).await.unwrap();
    assert_eq!(f.keys.get(tag(1)).await.unwrap().unwrap().anchor, 5);
    f.keys.reset_anchors(&[at(2, 1)], &[]).await.unwrap();
    assert_eq!(f.keys.get(tag(1)).await.unwrap().unwrap().anchor, 2);
}

async fn anchors_of_audit_lanes_only_rise(f: &Fresh) {
    let at =
        |lane, until: Option<i64>, seq| LaneAnchor { lane: Lane::new(lane), until: until.map(Millis), seq };
    assert!(f.keys.lane_anchors().await.unwrap().is_empty());
    f.keys.anchor(&[], &[at(0, None, 9), at(3, Some(70), 2)]).await.unwrap();
    f.keys.anchor(&[], &[at(0, None, 4), at(3, Some(80), 5), at(3, Some(70), 4)]).await.unwrap();
    let all = [at(0, None, 9), at(3, Some(70), 4), at(3, Some(80), 5)];
    assert_eq!(f.keys.lane_anchors().await.unwrap(), all);
    f.keys.reset_anchors(&[], &[at(3, Some(80), 1)]).await.unwrap();
    assert_eq!(f.keys.lane_anchors().await.unwrap(), [at(3, Some(80), 1)]);
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
