//! Laws about accounts.

use confidant_chat_format::{CredentialId, DeviceId, Digest, Entry, FieldName, Refused};
use confidant_seal::Sealed;

use super::super::*;
use super::Fresh;
use super::device::{Device, NOW, sealed, tag};

pub(super) async fn an_account_is_found_by_its_tags_and_changed_by_compare_and_set(fresh: &Fresh) {
    let store = &*fresh.store;
    let ana = Device::register(store, "ana").await;
    assert_eq!(store.by_login(tag("ana")).await.unwrap(), Some(ana.id.clone()));
    assert_eq!(store.by_login(tag("bea")).await.unwrap(), None);
    let row = store.account(&ana.id).await.unwrap();
    assert_eq!((row.rev, row.generation, row.epoch, row.seq), (1, 1, 1, 1));
    assert_eq!(row.state, AccountState::Active);
    let change = ChangeAccount {
        account: ana.id.clone(),
        expected: 1,
        login: Some(tag("anna")),
        credentials: vec![tag(CredentialId::random().as_str()), tag("passkey")],
        record: sealed("second"),
        sessions: OtherSessions::Stay,
        now: NOW,
    };
    assert_eq!(store.change_account(change.clone()).await, Ok(2));
    assert_eq!(fresh.other.change_account(change.clone()).await, Err(StoreError::Conflict { now: 2 }));
    assert_eq!(store.by_login(tag("ana")).await.unwrap(), None);
    assert_eq!(store.by_login(tag("anna")).await.unwrap(), Some(ana.id.clone()));
    assert_eq!(store.by_credential(tag("passkey")).await.unwrap(), Some(ana.id.clone()));
    assert_eq!(store.account(&ana.id).await.unwrap().record, sealed("second"));
    // Somebody else's tags stay theirs, and the change that wanted them leaves nothing.
    let bea = Device::register(store, "bea").await;
    for (login, credential) in [(Some(tag("anna")), tag("new")), (None, tag("passkey"))] {
        let account = bea.id.clone();
        let theirs =
            ChangeAccount { account, expected: 1, login, credentials: vec![credential], ..change.clone() };
        assert_eq!(store.change_account(theirs).await, Err(StoreError::Conflict { now: 0 }));
    }
    assert_eq!(store.by_credential(tag("new")).await.unwrap(), None);
    assert_eq!(store.account(&bea.id).await.unwrap().rev, 1);
    assert_eq!(store.count_accounts().await.unwrap(), 2);
    let mut all = vec![ana.id, bea.id];
    all.sort_unstable();
    assert_eq!(store.accounts(None, 9).await.unwrap(), all);
    assert_eq!(store.accounts(None, 1).await.unwrap(), all[..1]);
    assert_eq!(store.accounts(Some(&all[0]), 9).await.unwrap(), all[1..]);
    assert_eq!(store.accounts(Some(&all[1]), 9).await.unwrap(), []);
}

pub(super) async fn a_registration_is_whole_or_not_at_all(fresh: &Fresh) {
    let store = &*fresh.store;
    let ana = Device::register(store, "ana").await;
    let (good, _) = Device::new("bea").registration();
    let mut spoiled = Vec::new();
    let mut spoil = |change: &dyn Fn(&mut NewAccount), error: StoreError| {
        let mut bad = good.clone();
        change(&mut bad);
        spoiled.push((bad, error));
    };
    spoil(&|new| new.login = tag("ana"), StoreError::Conflict { now: 0 });
    spoil(&|new| new.account = ana.id.clone(), StoreError::Conflict { now: 0 });
    spoil(&|new| new.floors.swap(0, 1), Refused::ListRefused.into());
    spoil(&|new| new.manifest.chain = Digest::ZERO, Refused::Forked.into());
    spoil(&|new| new.rings[0].entry.n = 2, StoreError::Conflict { now: 0 });
    spoil(&|new| new.rings[0].entry.subs.clear(), Refused::KeyRefused.into());
    spoil(
        &|new| new.manifest.envelope = ana.seal_data(&name("x"), &name("y"), 1),
        Refused::KeyRefused.into(),
    );
    spoil(&|new| new.pass = Pass::Invite(Digest::ZERO), Refused::LoginRefused.into());
    spoil(
        &|new| new.record = sealed(&"x".repeat(limits::RECORD_BYTES + 1)),
        StoreError::TooLarge("account record"),
    );
    for (bad, error) in spoiled {
        assert_eq!(store.register(bad).await, Err(error));
        assert_eq!(store.count_accounts().await.unwrap(), 1);
        assert_eq!(store.by_login(tag("bea")).await.unwrap(), None);
    }
    store.register(good).await.unwrap();
}

fn name(text: &str) -> FieldName {
    FieldName::parse(text).unwrap()
}

pub(super) async fn a_pass_is_used_up_by_the_account_that_it_makes(fresh: &Fresh) {
    let store = &*fresh.store;
    let key = Digest::of(b"code");
    let code =
        |kind| Code { kind, key, account: None, login: None, carries: vec![], expires_at: Millis(NOW.0 + 1) };
    let register = async |name: &str, pass, now| {
        let (new, _) = Device::new(name).registration();
        store.register(NewAccount { pass, now, ..new }).await
    };
    let refused = Err(Refused::LoginRefused.into());
    store.issue(code(CodeKind::First)).await.unwrap();
    assert_eq!(register("ana", Pass::Invite(key), NOW).await, refused, "a code of another kind");
    assert_eq!(register("ana", Pass::First(key), Millis(NOW.0 + 1)).await, refused, "too late");
    assert_eq!(register("ana", Pass::First(key), NOW).await, Ok(()), "a refusal has not used it up");
    store.issue(code(CodeKind::First)).await.unwrap();
    assert_eq!(register("bea", Pass::First(key), NOW).await, refused, "somebody was first");
    store.issue(code(CodeKind::Invite)).await.unwrap();
    assert_eq!(register("ana", Pass::Invite(key), NOW).await, Err(StoreError::Conflict { now: 0 }));
    assert_eq!(register("bea", Pass::Invite(key), NOW).await, Ok(()));
    assert_eq!(register("cleo", Pass::Invite(key), NOW).await, refused);
}

pub(super) async fn erasing_leaves_nothing_of_one_account_and_all_of_another(fresh: &Fresh) {
    let store = &*fresh.store;
    let (mut ana, mut bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    ana.create(store, 3).await;
    bea.create(store, 2).await;
    let label = NewDevice { device: DeviceId::random(), label: sealed("label"), now: NOW };
    store.add_device(&ana.id, label).await.unwrap();
    store.login_failed(tag("ana"), tag("home"), NOW).await.unwrap();
    let erased = store.erase(&ana.id).await.unwrap();
    assert_eq!(erased, Erased { chats: 1, items: 3, devices: 1, sessions: 0, letters: 0, snapshots: 0 });
    assert_eq!(store.erase(&ana.id).await, Err(StoreError::NotFound));
    assert_eq!(store.account(&ana.id).await, Err(StoreError::NotFound));
    assert_eq!(store.changes(&ana.id, 0, 10).await, Err(StoreError::NotFound));
    assert_eq!(store.attempts(tag("ana"), tag("home"), NOW).await.unwrap().failures, 0);
    let other = &*fresh.other;
    bea.pull(other).await;
    other.scrub().await.unwrap();
    other.check().await.unwrap();
    // The login is free again, and its new account is empty.
    let mut again = Device::register(store, "ana").await;
    again.pull(store).await;
    assert!(again.chats.is_empty());
}

pub(super) async fn data_is_compare_and_set_and_its_revision_never_goes_back(fresh: &Fresh) {
    let store = &*fresh.store;
    let ana = Device::register(store, "ana").await;
    let (kind, key) = (name("settings"), name("theme"));
    let put = async |expected, rev: Option<u32>| {
        let envelope = rev.map(|rev| ana.seal_data(&kind, &key, rev));
        let (account, kind, name) = (ana.id.clone(), kind.clone(), key.clone());
        store.put_data(PutData { account, kind, name, expected, envelope, now: NOW }).await
    };
    assert_eq!(put(0, Some(1)).await, Ok(2));
    assert_eq!(put(0, Some(2)).await, Err(StoreError::Conflict { now: 1 }));
    assert_eq!(put(1, Some(1)).await, Err(Refused::RolledBack.into()));
    assert_eq!(put(1, None).await, Ok(3));
    assert_eq!(put(0, Some(3)).await, Err(StoreError::Conflict { now: 2 }));
    let [row] = store.data(&ana.id).await.unwrap().try_into().unwrap();
    assert_eq!((row.rev, row.envelope), (2, None));
    assert_eq!(put(2, Some(5)).await, Ok(4));
    let last = store.changes(&ana.id, 3, 10).await.unwrap();
    assert_eq!(last.changes, [Change { seq: 4, what: Changed::Data(kind.clone(), key.clone()) }]);
    let bea = Device::register(store, "bea").await;
    let envelope = Some(bea.seal_data(&kind, &key, 6));
    let theirs = PutData {
        account: ana.id.clone(),
        kind: kind.clone(),
        name: key.clone(),
        expected: 5,
        envelope,
        now: NOW,
    };
    assert_eq!(store.put_data(theirs).await, Err(Refused::KeyRefused.into()));
}

pub(super) async fn an_erasure_that_has_begun_is_found_until_it_is_done(fresh: &Fresh) {
    let (store, other) = (&*fresh.store, &*fresh.other);
    let (ana, bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    assert_eq!(store.erasing().await, Ok(vec![]));
    for _ in 0..2 {
        store.mark_erasing(&ana.id).await.unwrap();
    }
    assert_eq!(other.erasing().await, Ok(vec![ana.id.clone()]));
    other.erase(&ana.id).await.unwrap();
    assert_eq!(store.erasing().await, Ok(vec![]));
    assert_eq!(store.mark_erasing(&ana.id).await, Err(StoreError::NotFound));
    // Whoever comes next finds that there is something left to scrub, and that there is not.
    store.scrub().await.unwrap();
    assert_eq!(other.must_scrub().await, Ok(false));
    bea.clone().pull(other).await;
}

/// What puts the account of a device back.
fn restoration(ana: &Device, record: &Sealed) -> RestoreAccount {
    let rows = |of: RingName, entries: &[Entry]| {
        let rows = entries.iter().map(move |entry| RingEntry { of: of.clone(), entry: entry.clone() });
        rows.collect::<Vec<_>>()
    };
    RestoreAccount {
        account: ana.id.clone(),
        replaces: Some(Digest::of(record.as_bytes())),
        login: tag("ana again"),
        credentials: vec![tag("new credential")],
        record: sealed("restored"),
        rev: 7,
        generation: 1,
        rings: [rows(RingName::Account, &ana.ring), rows(RingName::Box, &ana.boxes)].concat(),
        rest: Rest::Stays,
        code: Digest::of(b"restore"),
        carries: b"ana".to_vec(),
        now: NOW,
    }
}

async fn issue_restore(store: &dyn ChatStore) {
    let key = Digest::of(b"restore");
    let (kind, carries, expires_at) = (CodeKind::Restore, b"ana".to_vec(), Millis(NOW.0 + 1));
    store.issue(Code { kind, key, account: None, login: None, carries, expires_at }).await.unwrap();
}

pub(super) async fn a_lost_account_is_put_back_once_and_as_it_was_read(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 2).await;
    let label = NewDevice { device: DeviceId::random(), label: sealed("label"), now: NOW };
    store.add_device(&ana.id, label).await.unwrap();
    let row = store.account(&ana.id).await.unwrap();
    let good = restoration(&ana, &row.record);
    assert_eq!(store.restore(good.clone()).await, Err(Refused::LoginRefused.into()), "there is no code");
    issue_restore(store).await;
    let mut spoiled: Vec<(RestoreAccount, StoreError)> = Vec::new();
    let mut spoil = |change: &dyn Fn(&mut RestoreAccount), error: StoreError| {
        let mut bad = good.clone();
        change(&mut bad);
        spoiled.push((bad, error));
    };
    let conflict = StoreError::Conflict { now: 0 };
    spoil(&|bad| bad.carries = b"ben".to_vec(), Refused::LoginRefused.into());
    spoil(&|bad| bad.code = Digest::ZERO, Refused::LoginRefused.into());
    spoil(&|bad| bad.now = Millis(NOW.0 + 1), Refused::LoginRefused.into());
    spoil(&|bad| bad.replaces = None, conflict.clone());
    spoil(&|bad| bad.replaces = Some(Digest::ZERO), conflict.clone());
    spoil(&|bad| bad.rev = 1, StoreError::Conflict { now: 1 });
    spoil(&|bad| bad.generation = 2, StoreError::Conflict { now: 1 });
    spoil(&|bad| bad.rings[0].entry.n = 2, Refused::RingGap.into());
    spoil(&|bad| bad.rings.truncate(1), Refused::RingGap.into());
    spoil(&|bad| bad.rings[0].entry.kid = bad.rings[1].entry.kid, conflict.clone());
    spoil(
        &|bad| bad.rings[0].of = RingName::Chat(chat.clone()),
        StoreError::Malformed("a chat's key comes with the chat"),
    );
    for (bad, error) in spoiled {
        assert_eq!(store.restore(bad).await, Err(error));
        assert_eq!(store.account(&ana.id).await, Ok(row.clone()));
        let peeked = fresh.other.peek(CodeKind::Restore, good.code, NOW).await.unwrap();
        assert_eq!(peeked.map(|code| code.carries), Some(b"ana".to_vec()), "a refusal has not used it up");
    }
    assert_eq!(store.peek(CodeKind::Invite, good.code, NOW).await, Ok(None));
    assert_eq!(store.peek(CodeKind::Restore, good.code, Millis(NOW.0 + 1)).await, Ok(None));
    store.restore(good.clone()).await.unwrap();
    assert_eq!(fresh.other.restore(good).await, Err(Refused::LoginRefused.into()), "used up");
    let now = store.account(&ana.id).await.unwrap();
    assert_eq!((now.rev, now.generation, now.epoch, now.record), (7, 1, 2, sealed("restored")));
    assert_eq!(store.by_login(tag("ana")).await, Ok(None));
    assert_eq!(store.by_login(tag("ana again")).await, Ok(Some(ana.id.clone())));
    assert_eq!(store.by_credential(tag("new credential")).await, Ok(Some(ana.id.clone())));
    assert_eq!(store.devices(&ana.id).await, Ok(vec![]));
    // Chats, floors and manifest are as they were.
    ana.pull(store).await;
    assert_eq!(ana.chats[&chat].items.len(), 2);
    // A ring of a chat is sealed anew only with the keys that are there.
    let of = RingName::Chat(chat);
    let entries = store.ring(&ana.id, &of).await.unwrap();
    let other = |change: &dyn Fn(&mut Entry)| {
        let mut entry = Entry { sealed: sealed("again"), ..entries[0].clone() };
        change(&mut entry);
        vec![entry]
    };
    let refused = Err(StoreError::Conflict { now: 0 });
    assert_eq!(store.reseal(&ana.id, &of, other(&|entry| entry.n = 2)).await, refused);
    assert_eq!(store.reseal(&ana.id, &of, other(&|entry| entry.subs.clear())).await, refused);
    assert_eq!(store.reseal(&ana.id, &of, vec![]).await, refused);
    let nowhere = RingName::Chat(confidant_chat_format::ChatId::random());
    assert_eq!(store.reseal(&ana.id, &nowhere, other(&|_| ())).await, Err(StoreError::NotFound));
    store.reseal(&ana.id, &of, other(&|_| ())).await.unwrap();
    assert_eq!(fresh.other.ring(&ana.id, &of).await.unwrap(), other(&|_| ()));
}

pub(super) async fn a_lost_account_that_begins_anew_has_nothing_of_before(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    ana.create(store, 2).await;
    let row = store.account(&ana.id).await.unwrap();
    let mut again =
        Device { ring: ana.ring.clone(), boxes: ana.boxes.clone(), ..Device::with_id("ana", ana.id.clone()) };
    (again.ak, again.box_pub) = (ana.ak.clone(), ana.box_pub);
    let (new, after) = again.registration();
    let rest = Rest::Anew(new.floors, new.manifest);
    let anew = RestoreAccount { rest, ..restoration(&ana, &row.record) };
    issue_restore(store).await;
    store.mark_erasing(&ana.id).await.unwrap();
    assert_eq!(store.restore(anew.clone()).await, Err(StoreError::Conflict { now: 0 }), "it is being erased");
    store.erase(&ana.id).await.unwrap();
    assert_eq!(store.restore(anew.clone()).await, Err(StoreError::Conflict { now: 0 }), "it is not there");
    let missing = RestoreAccount { replaces: None, ..anew.clone() };
    let stays = RestoreAccount { rest: Rest::Stays, ..missing.clone() };
    assert_eq!(store.restore(stays).await, Err(StoreError::Conflict { now: 0 }), "nothing is there to stay");
    store.restore(missing).await.unwrap();
    let mut back = after.clone();
    back.pull(store).await;
    assert!(back.chats.is_empty());
    back.create(store, 1).await;
    // Once more, over what is there.
    issue_restore(store).await;
    let record = store.account(&ana.id).await.unwrap().record;
    let over = RestoreAccount { replaces: Some(Digest::of(record.as_bytes())), ..anew };
    store.restore(over).await.unwrap();
    let mut empty = after;
    empty.pull(store).await;
    assert!(empty.chats.is_empty());
    assert_eq!(store.must_scrub().await, Ok(true));
    let row = store.account(&ana.id).await.unwrap();
    assert_eq!((row.rev, row.epoch, row.seq), (7, 1, 1));
}
