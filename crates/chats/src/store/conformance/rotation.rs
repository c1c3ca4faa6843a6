//! Laws about the rotation of the account key.

use confidant_chat_format::{DeviceId, Digest, Entry, Place, Refused, RingOf, Shelf, restage, rings_digest};
use confidant_seal::Key;

use super::super::*;
use super::Fresh;
use super::device::{Device, Edit, NOW, message, sealed, tag};

/// A rotation as a client prepares it: what to stage, what to commit, and what it knows afterwards.
struct Rotation {
    staged: Vec<RingEntry>,
    commit: CommitRotation,
    after: Device,
}

fn rotation(device: &Device, frozen: Frozen) -> Rotation {
    let (old, new) = (device.ak.clone(), device.ak.next().unwrap());
    let mut after = device.clone();
    let mut names = vec![(RingName::Account, device.ring.clone()), (RingName::Box, device.boxes.clone())];
    names.extend(device.chats.iter().map(|(chat, room)| (RingName::Chat(chat.clone()), room.ring.clone())));
    let rows = names.iter().flat_map(|(of, rows)| rows.iter().map(move |row| (of.of(), row)));
    let digest = rings_digest(rows);
    let mut staged = Vec::new();
    for (of, rows) in &names {
        let again = restage(&old, &new, &device.id, of.of(), rows).unwrap();
        match of {
            RingName::Account => after.ring = again.clone(),
            RingName::Box => after.boxes = again.clone(),
            RingName::Chat(chat) => after.chats.get_mut(chat).unwrap().ring = again.clone(),
        }
        staged.extend(again.into_iter().map(|entry| RingEntry { of: of.clone(), entry }));
    }
    let (uk, letters) = (Key::random(), Key::random());
    let n = |rows: &[Entry]| u32::try_from(rows.len()).unwrap() + 1;
    let account = Entry::seal(&new, &device.id, RingOf::Account, n(&after.ring), &uk, new.generation());
    let letter = Entry::seal(&new, &device.id, RingOf::Box, n(&after.boxes), &letters, new.generation());
    after.ring.push(account.clone());
    after.boxes.push(letter.clone());
    after.ak = new;
    after.set_box(&letters);
    let commit = CommitRotation {
        account: device.id.clone(),
        epoch: frozen.epoch,
        expected: 1,
        session: Digest::of(b"mine"),
        wrap: staged[0].entry.sealed.kid().unwrap(),
        digest,
        append: [
            RingEntry { of: RingName::Account, entry: account },
            RingEntry { of: RingName::Box, entry: letter },
        ],
        list: after.list(Shelf::all().collect()),
        record: sealed("rotated"),
        login: None,
        credentials: vec![tag("kept")],
        now: NOW,
    };
    Rotation { staged, commit, after }
}

fn stage(device: &Device, epoch: u32, entries: &[RingEntry]) -> Stage {
    let wrap = entries[0].entry.sealed.kid();
    Stage { account: device.id.clone(), epoch, wrap, entries: entries.to_vec(), floors: vec![], now: NOW }
}

fn begin(device: &Device) -> BeginRotation {
    BeginRotation { account: device.id.clone(), expected: 1, session: Digest::of(b"mine"), now: NOW }
}

/// A person with two chats and two sessions, `mine` and `other`.
async fn person(store: &dyn ChatStore) -> Device {
    let mut ana = Device::register(store, "ana").await;
    for messages in [1, 2] {
        ana.create(store, messages).await;
    }
    let chat = ana.chats.keys().next().unwrap().clone();
    let edit = Edit { new_key: true, floor: true, puts: vec![message()], ..Edit::default() };
    ana.put(store, &chat, &edit).await.unwrap();
    let device = DeviceId::random();
    store
        .add_device(&ana.id, NewDevice { device: device.clone(), label: sealed("x"), now: NOW })
        .await
        .unwrap();
    for id in [b"mine".as_slice(), b"other"] {
        let session = Session {
            id: Digest::of(id),
            secret: Digest::ZERO,
            account: ana.id.clone(),
            device: device.clone(),
            epoch: 1,
            created_at: NOW,
            expires_at: Millis(NOW.0 + 1_000_000),
            seen_day: NOW.day(),
        };
        store.add_session(session).await.unwrap();
    }
    ana
}

pub(super) async fn a_rotation_replaces_every_entry_in_one_commit(fresh: &Fresh) {
    let store = &*fresh.store;
    let ana = person(store).await;
    let frozen = store.begin_rotation(begin(&ana)).await.unwrap();
    assert_eq!(frozen, Frozen { epoch: 2, until: NOW.plus(limits::FREEZE) });
    let session = store.session(Digest::of(b"mine"), NOW).await.unwrap().unwrap();
    assert_eq!(session.epoch, 2);
    assert_eq!(store.session(Digest::of(b"other"), NOW).await.unwrap(), None);
    let Rotation { staged, commit, after } = rotation(&ana, frozen);
    // In parts, by any process, some of them twice.
    let (first, second) = staged.split_at(2);
    for part in [first, second, first] {
        fresh.other.stage(stage(&ana, frozen.epoch, part)).await.unwrap();
    }
    ana.clone().pull(store).await;
    assert_eq!(store.commit_rotation(commit.clone()).await, Ok(2));
    assert_eq!(store.commit_rotation(commit).await, Err(StoreError::Conflict { now: 2 }));
    let row = store.account(&ana.id).await.unwrap();
    assert_eq!((row.rev, row.generation, row.epoch, row.state), (2, 2, 2, AccountState::Active));
    assert_eq!(row.record, sealed("rotated"));
    assert_eq!(store.by_credential(tag("kept")).await.unwrap(), Some(ana.id.clone()));
    let mut paged: Vec<RingEntry> = Vec::new();
    loop {
        let after = paged.last().map(|last| (last.of.clone(), last.entry.n));
        let page = store.rings(&ana.id, after).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged.len(), staged.len() + 2);
    assert!(staged.iter().all(|row| paged.contains(row)));
    let mut device = after;
    device.pull(store).await;
    // The next write to each chat appends a key of the new generation; without one it is refused, as every device would.
    let chat = device.chats.keys().next().unwrap().clone();
    let (mut old_key, _) = device.write(&chat, &Edit::default());
    assert!(old_key.append.take().is_some());
    old_key.head = device.seal(&chat, &Place::Head(&chat), old_key.expected + 1, b"{}");
    assert_eq!(store.write(old_key).await, Err(Refused::KeyRefused.into()));
    for chat in device.chats.keys().cloned().collect::<Vec<_>>() {
        device
            .put(store, &chat, &Edit { puts: vec![message()], floor: true, ..Edit::default() })
            .await
            .unwrap();
    }
    device.pull(&*fresh.other).await;
}

pub(super) async fn a_rotation_that_is_not_committed_changes_nothing(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = person(store).await;
    let before = (store.account(&ana.id).await.unwrap(), store.rings(&ana.id, None).await.unwrap());
    for how in 0..3 {
        let frozen = store.begin_rotation(begin(&ana)).await.unwrap();
        let Rotation { staged, commit, .. } = rotation(&ana, frozen);
        store.stage(stage(&ana, frozen.epoch, &staged)).await.unwrap();
        let late = Millis(frozen.until.0);
        match how {
            0 => store.abandon_rotation(&ana.id).await.unwrap(),
            1 => assert!(store.expire(late).await.unwrap() > 0),
            // Nobody has cleaned up, but its time is over.
            _ => {
                let commit = CommitRotation { now: late, ..commit.clone() };
                assert_eq!(store.commit_rotation(commit).await, Err(StoreError::Conflict { now: 1 }));
                store.expire(late).await.unwrap();
            }
        }
        assert_eq!(store.commit_rotation(commit).await, Err(StoreError::Conflict { now: 1 }));
        let now = store.account(&ana.id).await.unwrap();
        assert_eq!((now.rev, now.generation, now.seq, now.state), (1, 1, before.0.seq, AccountState::Active));
        assert_eq!(store.rings(&ana.id, None).await.unwrap(), before.1);
        ana.pull(store).await;
    }
}

pub(super) async fn an_early_or_wrong_commit_is_a_conflict(fresh: &Fresh) {
    let store = &*fresh.store;
    let ana = person(store).await;
    let old = store.begin_rotation(begin(&ana)).await.unwrap();
    let Rotation { staged, commit, .. } = rotation(&ana, old);
    let conflict = StoreError::Conflict { now: 1 };
    store.stage(self::stage(&ana, old.epoch, &staged[1..])).await.unwrap();
    assert_eq!(store.commit_rotation(commit.clone()).await, Err(conflict.clone()), "an entry is not staged");
    // Begun anew: what the first one staged is gone, and it cannot go on.
    let frozen = store.begin_rotation(begin(&ana)).await.unwrap();
    assert_eq!(store.stage(self::stage(&ana, old.epoch, &staged)).await, Err(conflict.clone()));
    assert_eq!(store.commit_rotation(commit).await, Err(conflict.clone()));
    let Rotation { staged, commit, after } = rotation(&ana, frozen);
    let stage = async |rows: Vec<RingEntry>| store.stage(self::stage(&ana, frozen.epoch, &rows)).await;
    stage(staged[1..].to_vec()).await.unwrap();
    assert_eq!(store.commit_rotation(commit.clone()).await, Err(conflict.clone()));
    let mut strange = staged[0].clone();
    strange.entry.n = 9;
    assert_eq!(stage(vec![strange]).await, Err(conflict.clone()), "an entry that is not there");
    stage(staged).await.unwrap();
    // Entries of another attempt, under a key that nobody has, are not mixed with these.
    let other = rotation(&ana, frozen);
    assert_eq!(stage(other.staged).await, Err(conflict.clone()));
    assert_eq!(store.commit_rotation(other.commit).await, Err(conflict.clone()));
    let mut spoiled: Vec<(CommitRotation, StoreError)> = Vec::new();
    let mut spoil = |change: &dyn Fn(&mut CommitRotation), error: StoreError| {
        let mut bad = commit.clone();
        change(&mut bad);
        spoiled.push((bad, error));
    };
    spoil(&|commit| commit.digest = Digest::ZERO, conflict.clone());
    spoil(&|commit| commit.expected = 2, conflict.clone());
    spoil(&|commit| commit.epoch = 1, conflict.clone());
    spoil(&|commit| commit.append[0].entry.n = 1, StoreError::Conflict { now: 1 });
    spoil(
        &|commit| commit.list.floors.truncate(15),
        StoreError::Malformed("a rotation writes all sixteen floors"),
    );
    spoil(&|commit| commit.list.manifest.chain = Digest::ZERO, Refused::Forked.into());
    spoil(&|commit| commit.list.floors[3].expected = 7, StoreError::Conflict { now: 4 });
    let before = store.rings(&ana.id, None).await.unwrap();
    for (bad, error) in spoiled {
        assert_eq!(store.commit_rotation(bad).await, Err(error));
        assert_eq!(store.rings(&ana.id, None).await.unwrap(), before);
        assert_eq!(store.account(&ana.id).await.unwrap().generation, 1);
    }
    store.commit_rotation(commit).await.unwrap();
    let mut device = after;
    device.pull(store).await;
}

pub(super) async fn rings_are_frozen_until_the_rotation_ends(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = person(store).await;
    let chat = ana.chats.keys().next().unwrap().clone();
    store.begin_rotation(begin(&ana)).await.unwrap();
    let new_key = Edit { new_key: true, ..Edit::default() };
    let conflict = StoreError::Conflict { now: 1 };
    let head = ana.chats[&chat].head.unwrap().0.rev;
    assert_eq!(ana.clone().put(store, &chat, &new_key).await, Err(StoreError::Conflict { now: head }));
    let create = ana.clone().put(store, &confidant_chat_format::ChatId::random(), &Edit::default()).await;
    assert_eq!(create, Err(StoreError::Conflict { now: 0 }));
    assert_eq!(store.delete_chat(ana.deletion(&chat).0).await, Err(StoreError::Conflict { now: head }));
    let change = ChangeAccount {
        account: ana.id.clone(),
        expected: 1,
        login: None,
        credentials: vec![],
        record: sealed("x"),
        sessions: OtherSessions::Stay,
        now: NOW,
    };
    assert_eq!(store.change_account(change).await, Err(conflict));
    // Writing under the keys that there are goes on.
    ana.put(store, &chat, &Edit { puts: vec![message()], ..Edit::default() }).await.unwrap();
    store.abandon_rotation(&ana.id).await.unwrap();
    ana.put(store, &chat, &new_key).await.unwrap();
    ana.pull(store).await;
}

pub(super) async fn staged_floors_and_new_sessions_end_with_the_rotation(fresh: &Fresh) {
    let store = &*fresh.store;
    let ana = person(store).await;
    let floors = |text: &str| Shelf::all().map(|shelf| (shelf, sealed(text))).collect::<Vec<_>>();
    let frozen = store.begin_rotation(begin(&ana)).await.unwrap();
    let only = |floors: Vec<_>| Stage {
        account: ana.id.clone(),
        epoch: frozen.epoch,
        wrap: None,
        entries: vec![],
        floors,
        now: NOW,
    };
    let staged = store.stage(only(floors("old"))).await;
    assert_eq!(staged, Ok(Staged { rings: 0, floors: 16 }));
    let replaced = store.stage(only(floors("new")[..3].to_vec())).await;
    assert_eq!(replaced, Ok(Staged { rings: 0, floors: 16 }));
    let there = fresh.other.staged_floors(&ana.id).await.unwrap();
    assert_eq!(there, [floors("new")[..3].to_vec(), floors("old")[3..].to_vec()].concat());
    let large = confidant_seal::Sealed::from_bytes(vec![0; limits::FLOOR_BYTES + 1]);
    let large = only(vec![(Shelf::all().next().unwrap(), large)]);
    assert_eq!(store.stage(large).await, Err(StoreError::TooLarge("floor")));
    // Begun anew, nothing is staged.
    let frozen = store.begin_rotation(begin(&ana)).await.unwrap();
    assert_eq!(store.staged_floors(&ana.id).await, Ok(vec![]));
    let Rotation { staged, commit, .. } = rotation(&ana, frozen);
    let rings = u32::try_from(ana.chats.len()).unwrap() + 2;
    let counted = store.stage(stage(&ana, frozen.epoch, &staged)).await;
    assert_eq!(counted, Ok(Staged { rings, floors: 0 }));
    let keyless = Stage { wrap: None, ..stage(&ana, frozen.epoch, &staged) };
    assert_eq!(store.stage(keyless).await, Err(StoreError::Malformed("entries are sealed under a key")));
    // Somebody logs in while the rings are frozen: with the commit, only the session that is named stays.
    let device = store.devices(&ana.id).await.unwrap()[0].device.clone();
    let meanwhile = Session {
        id: Digest::of(b"meanwhile"),
        secret: Digest::ZERO,
        account: ana.id.clone(),
        device,
        epoch: frozen.epoch,
        created_at: NOW,
        expires_at: Millis(NOW.0 + 1_000_000),
        seen_day: NOW.day(),
    };
    store.add_session(meanwhile.clone()).await.unwrap();
    store.commit_rotation(commit).await.unwrap();
    assert_eq!(store.session(meanwhile.id, NOW).await, Ok(None));
    assert!(store.session(Digest::of(b"mine"), NOW).await.unwrap().is_some());
}
