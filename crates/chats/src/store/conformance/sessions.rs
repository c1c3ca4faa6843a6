//! Laws about devices, sessions and what counts once.

use confidant_chat_format::{DeviceId, Digest, Refused};

use super::super::*;
use super::Fresh;
use super::device::{Device as Person, NOW, sealed, tag};

const DAY: u64 = 86_400_000;

fn session(ana: &Person, device: &DeviceId, id: &str) -> Session {
    Session {
        id: Digest::of(id.as_bytes()),
        secret: Digest::of(b"secret"),
        account: ana.id.clone(),
        device: device.clone(),
        epoch: 1,
        created_at: NOW,
        expires_at: Millis(NOW.0 + 10 * DAY),
        seen_day: NOW.day(),
    }
}

pub(super) async fn sessions_end_by_time_by_epoch_and_with_their_device(fresh: &Fresh) {
    let store = &*fresh.store;
    let (ana, bea) = (Person::register(store, "ana").await, Person::register(store, "bea").await);
    let (laptop, phone) = (DeviceId::random(), DeviceId::random());
    for device in [&laptop, &phone] {
        let new = NewDevice { device: device.clone(), label: sealed("label"), now: NOW };
        store.add_device(&ana.id, new.clone()).await.unwrap();
        assert_eq!(store.add_device(&ana.id, new).await, Err(StoreError::Conflict { now: 0 }));
    }
    let (one, two, three) =
        (session(&ana, &laptop, "1"), session(&ana, &phone, "2"), session(&ana, &phone, "3"));
    for session in [&one, &two, &three] {
        store.add_session(session.clone()).await.unwrap();
    }
    let stale = Session { id: Digest::ZERO, epoch: 0, ..one.clone() };
    assert_eq!(store.add_session(stale).await, Err(StoreError::Conflict { now: 1 }));
    let elsewhere = Session { id: Digest::ZERO, account: bea.id.clone(), ..one.clone() };
    assert_eq!(store.add_session(elsewhere).await, Err(StoreError::NotFound));
    assert_eq!(fresh.other.session(one.id, NOW).await.unwrap(), Some(one.clone()));
    assert_eq!(store.session(one.id, one.expires_at).await.unwrap(), None);
    // A day later it is noted as seen, with its device.
    let later = Millis(NOW.0 + DAY);
    assert_eq!(store.session(one.id, later).await.unwrap().unwrap().seen_day, later.day());
    let devices = store.devices(&ana.id).await.unwrap();
    let seen = |id: &DeviceId| devices.iter().find(|device| device.device == *id).unwrap().seen_day;
    assert_eq!((seen(&laptop), seen(&phone)), (later.day(), NOW.day()));
    store.set_cursor(&ana.id, &phone, 7).await.unwrap();
    store.set_cursor(&ana.id, &phone, 3).await.unwrap();
    assert!(store.devices(&ana.id).await.unwrap().iter().any(|device| device.cursor == 7));
    assert_eq!(store.end_session(&bea.id, two.id).await, Err(StoreError::NotFound));
    assert_eq!(store.revoke_device(&bea.id, &phone).await, Err(StoreError::NotFound));
    store.end_session(&ana.id, two.id).await.unwrap();
    assert_eq!(store.sessions(&ana.id, NOW).await.unwrap().len(), 2);
    store.revoke_device(&ana.id, &phone).await.unwrap();
    assert_eq!(store.session(three.id, NOW).await.unwrap(), None);
    let change = ChangeAccount {
        account: ana.id.clone(),
        expected: 1,
        login: None,
        credentials: vec![],
        record: sealed("x"),
        sessions: OtherSessions::End(Digest::ZERO),
        now: NOW,
    };
    store.change_account(change).await.unwrap();
    assert_eq!(store.session(one.id, NOW).await.unwrap(), None);
    assert_eq!(store.account(&ana.id).await.unwrap().epoch, 2);
    let fresh_one = Session { epoch: 2, ..one };
    store.add_session(fresh_one.clone()).await.unwrap();
    store.expire(Millis(fresh_one.expires_at.0)).await.unwrap();
    assert_eq!(store.sessions(&ana.id, NOW).await.unwrap(), []);
}

pub(super) async fn a_code_counts_once_for_all_processes(fresh: &Fresh) {
    let (store, other) = (&*fresh.store, &*fresh.other);
    let ana = Person::register(store, "ana").await;
    let code = |name: &str, kind| Code {
        kind,
        key: Digest::of(name.as_bytes()),
        account: Some(ana.id.clone()),
        login: Some(tag("ana")),
        carries: b"login".to_vec(),
        expires_at: Millis(NOW.0 + 60_000),
    };
    for round in 0..10 {
        let challenge = code(&format!("challenge {round}"), CodeKind::Challenge);
        store.issue(challenge.clone()).await.unwrap();
        assert_eq!(other.issue(challenge.clone()).await, Err(StoreError::Conflict { now: 0 }));
        let raced = tokio::join!(
            store.consume(CodeKind::Challenge, challenge.key, NOW),
            other.consume(CodeKind::Challenge, challenge.key, NOW)
        );
        let mut got: Vec<Code> =
            [raced.0, raced.1].into_iter().filter_map(std::result::Result::unwrap).collect();
        assert_eq!(got.pop(), Some(challenge));
        assert_eq!(got, []);
        let step = code(&format!("step {round}"), CodeKind::Totp);
        let raced = tokio::join!(store.spend(step.clone(), NOW), other.spend(step.clone(), NOW));
        assert!(raced.0.unwrap() != raced.1.unwrap());
        assert!(store.spend(step.clone(), step.expires_at).await.unwrap(), "forgotten once it has expired");
    }
    let ticket = code("ticket", CodeKind::Ticket);
    store.issue(ticket.clone()).await.unwrap();
    assert_eq!(store.consume(CodeKind::Challenge, ticket.key, NOW).await.unwrap(), None);
    assert_eq!(store.consume(CodeKind::Ticket, ticket.key, ticket.expires_at).await.unwrap(), None);
    store.issue(ticket.clone()).await.unwrap();
    assert_eq!(store.expire(ticket.expires_at).await.unwrap(), 11);
    store.issue(ticket.clone()).await.unwrap();
    store.erase(&ana.id).await.unwrap();
    assert_eq!(store.consume(CodeKind::Ticket, ticket.key, NOW).await.unwrap(), None);
}

pub(super) async fn a_pairing_slot_is_answered_and_taken_once(fresh: &Fresh) {
    let (store, other) = (&*fresh.store, &*fresh.other);
    let ana = Person::register(store, "ana").await;
    let id = [5; 16];
    store.open_slot(id, vec![1; 32], NOW).await.unwrap();
    assert_eq!(other.open_slot(id, vec![2; 32], NOW).await, Err(StoreError::Conflict { now: 0 }));
    let slot = other.slot(id, NOW).await.unwrap();
    assert_eq!(slot, Slot { offer: vec![1; 32], expires_at: Millis(NOW.0 + 120_000) });
    assert_eq!(store.take_slot(id, NOW).await, Ok(None));
    other.answer_slot(&ana.id, id, sealed("answer"), NOW).await.unwrap();
    let twice = other.answer_slot(&ana.id, id, sealed("another"), NOW).await;
    assert_eq!(twice, Err(Refused::PairRefused.into()));
    assert_eq!(store.slot(id, NOW).await, Err(StoreError::NotFound));
    assert_eq!(store.take_slot(id, NOW).await, Ok(Some((ana.id.clone(), sealed("answer")))));
    assert_eq!(store.take_slot(id, NOW).await, Err(StoreError::NotFound));
    store.open_slot(id, vec![1; 32], NOW).await.unwrap();
    let late = slot.expires_at;
    assert_eq!(store.slot(id, late).await, Err(StoreError::NotFound));
    assert_eq!(store.answer_slot(&ana.id, id, sealed("late"), late).await, Err(Refused::PairRefused.into()));
    store.open_slot(id, vec![3; 32], late).await.unwrap();
}

pub(super) async fn failures_are_counted_per_login_and_network(fresh: &Fresh) {
    let (store, other) = (&*fresh.store, &*fresh.other);
    let (ana, home, cafe) = (tag("ana"), tag("home"), tag("cafe"));
    for count in 1..=6 {
        let process = if count % 2 == 0 { store } else { other };
        let attempts = process.login_failed(ana, home, NOW).await.unwrap();
        assert_eq!(attempts.failures, count);
    }
    let attempts = other.attempts(ana, home, NOW).await.unwrap();
    assert_eq!(attempts.next_at(), Millis(NOW.0 + 8_000));
    assert_eq!(store.attempts(ana, cafe, NOW).await.unwrap(), Attempts::default());
    assert_eq!(store.attempts(ana, home, Millis(NOW.0 + DAY)).await.unwrap(), Attempts::default());
    store.login_succeeded(ana, home).await.unwrap();
    assert_eq!(other.attempts(ana, home, NOW).await.unwrap(), Attempts::default());
    store.login_failed(ana, cafe, NOW).await.unwrap();
    assert_eq!(store.expire(Millis(NOW.0 + DAY)).await.unwrap(), 1);
}

pub(super) async fn a_device_gets_another_label(fresh: &Fresh) {
    let store = &*fresh.store;
    let (ana, bea) = (Person::register(store, "ana").await, Person::register(store, "bea").await);
    let device = DeviceId::random();
    let new = NewDevice { device: device.clone(), label: sealed("first"), now: NOW };
    store.add_device(&ana.id, new).await.unwrap();
    assert_eq!(store.label_device(&bea.id, &device, sealed("theirs")).await, Err(StoreError::NotFound));
    assert_eq!(store.label_device(&ana.id, &device, sealed("second")).await, Ok(3));
    let large = confidant_seal::Sealed::from_bytes(vec![0; limits::ENTRY_BYTES + 1]);
    assert_eq!(store.label_device(&ana.id, &device, large).await, Err(StoreError::TooLarge("label")));
    let devices = fresh.other.devices(&ana.id).await.unwrap();
    assert_eq!(devices.iter().map(|one| &one.label).collect::<Vec<_>>(), [&sealed("second")]);
    let changes = store.changes(&ana.id, 2, 10).await.unwrap().changes;
    assert_eq!(changes, [Change { seq: 3, what: Changed::Devices }]);
}
