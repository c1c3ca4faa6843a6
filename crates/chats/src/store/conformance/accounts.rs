//! Laws about accounts.

use confidant_chat_format::{CredentialId, DeviceId, Digest, FieldName, Refused};

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
    assert_eq!(erased, Erased { chats: 1, items: 3, devices: 1, sessions: 0, letters: 0 });
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
