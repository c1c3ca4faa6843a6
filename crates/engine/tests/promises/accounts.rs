//! Keys of accounts whose chats only their owner can open: whose they are, and how they end.

use confidant_engine::keys::AccountKeys;
use confidant_engine::{Actor, Lifetimes, Settings, TenantId, UserId};

use super::strangers::dump;
use crate::rig::*;

on_every_store! {
    promise_1_a_key_is_of_one_account_and_one_chat,
    promise_6_an_account_ends_with_its_keys,
}

const ALICE: &str = "acct_aeaqcaibaeaqcaibaeaqcaibae";
const BOB: &str = "acct_aibaeaqcaibaeaqcaibaeaqcai";
const CHAT: &str = "chat_ambqgaydambqgaydambqgaydam";

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

async fn kid(keys: &AccountKeys, account: &str, chat: Option<&str>) -> Option<String> {
    keys.key(account, chat).await.unwrap().map(|key| key.kid().to_string())
}

async fn promise_1_a_key_is_of_one_account_and_one_chat(place: Place) {
    let engine = place.engine(&Recorder::new()).await;
    let (acme, other) = (engine.account_keys(tenant("acme")), engine.account_keys(tenant("other")));
    let mut kids = Vec::new();
    for keys in [&acme, &other] {
        for account in [ALICE, BOB] {
            for chat in [None, Some(CHAT)] {
                assert_eq!(kid(keys, account, chat).await, None, "looking makes none");
                let made = keys.key_or_new(account, chat).await.unwrap().kid().to_string();
                let again = keys.key_or_new(account, chat).await.unwrap().kid().to_string();
                assert_eq!((Some(&made), &again), (kid(keys, account, chat).await.as_ref(), &made));
                kids.push(made);
            }
        }
    }
    kids.sort_unstable();
    kids.dedup();
    assert_eq!(kids.len(), 8);
    // A login is the same for ever, and another one elsewhere.
    assert_eq!(acme.tag("login", b"alice"), engine.account_keys(tenant("acme")).tag("login", b"alice"));
    assert_ne!(acme.tag("login", b"alice"), other.tag("login", b"alice"));
    assert_ne!(acme.tag("login", b"alice"), acme.tag("network", b"alice"));
    // The anchor of one is not the other's, and never goes back.
    acme.raise(ALICE, 7).await.unwrap();
    acme.raise(ALICE, 3).await.unwrap();
    let anchors = (acme.anchor(ALICE).await.unwrap(), acme.anchor(BOB).await.unwrap());
    assert_eq!((anchors, other.anchor(ALICE).await.unwrap()), ((7, 0), 0));
    // A chat has one of its own.
    acme.raise_of(ALICE, Some(CHAT), 9).await.unwrap();
    acme.raise_of(ALICE, Some(CHAT), 8).await.unwrap();
    let chats =
        (acme.anchor_of(ALICE, Some(CHAT)).await.unwrap(), acme.anchor_of(BOB, Some(CHAT)).await.unwrap());
    assert_eq!((chats, acme.anchor(ALICE).await.unwrap()), ((9, 0), 7));
    acme.accept_of(ALICE, Some(CHAT), 2).await.unwrap();
    assert_eq!(acme.anchor_of(ALICE, Some(CHAT)).await.unwrap(), 2);
    // They are no sessions.
    let found = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    assert_eq!((found.keys, found.sessions, found.refused.len()), (8, 0, 0), "{found:?}");
    stop(engine).await;
}

async fn promise_6_an_account_ends_with_its_keys(place: Place) {
    // However short the lives of sessions are.
    let lifetimes = Lifetimes { place: Some(std::time::Duration::from_millis(1)), person: None };
    let settings = Settings { lifetimes, ..Settings::default() };
    let engine = place.engine_with(&Recorder::new(), settings).await;
    let keys = engine.account_keys(tenant("acme"));
    for (account, chat) in [(ALICE, None), (ALICE, Some(CHAT)), (BOB, None), (BOB, Some(CHAT))] {
        keys.key_or_new(account, chat).await.unwrap();
    }
    keys.raise(ALICE, 2).await.unwrap();
    engine.sweep().await.unwrap();
    assert!(kid(&keys, BOB, Some(CHAT)).await.is_some(), "no lifetime ends them");
    keys.key_or_new("acct_in_vain", None).await.unwrap();
    keys.discard("acct_in_vain").await.unwrap();
    assert_eq!(kid(&keys, "acct_in_vain", None).await, None);
    keys.destroy_chats(BOB, &[CHAT]).await.unwrap();
    assert_eq!(kid(&keys, BOB, Some(CHAT)).await, None);
    assert!(kid(&keys, BOB, None).await.is_some());
    let admin = engine.dangerously_administer(Actor::cli());
    let (acme, alice) = (tenant("acme"), UserId::any(ALICE).unwrap());
    assert_eq!(admin.count_person(&acme, &alice).await.unwrap(), 0, "keys are no sessions");
    let export = admin.export_person(&acme, &alice).await.unwrap();
    assert_eq!((export.sessions.len(), export.unreadable.len()), (0, 0));
    assert!(!keys.was_erased(ALICE).await.unwrap());
    let receipt = admin.erase_person(&acme, &alice).await.unwrap();
    assert!(keys.was_erased(ALICE).await.unwrap() && !keys.was_erased(BOB).await.unwrap());
    assert!(!keys.was_erased("acct_in_vain").await.unwrap(), "what was never made was not erased");
    assert_eq!((receipt.sessions, receipt.keys.len()), (0, 2));
    admin.verify_receipt(&receipt).await.unwrap();
    assert_eq!((kid(&keys, ALICE, None).await, kid(&keys, ALICE, Some(CHAT)).await), (None, None));
    assert_eq!(keys.anchor(ALICE).await.unwrap(), 0);
    assert!(kid(&keys, BOB, None).await.is_some(), "somebody else's stay");
    stop(engine).await;
}

/// Whoever kept a copy of the keyring's rows and puts them back brings no account back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_keys_of_an_account_that_are_put_back_are_refused() {
    let place = Place::sqlite();
    let mut files = dump::Files::new(place.path());
    let engine = place.engine(&Recorder::new()).await;
    engine.account_keys(tenant("acme")).key_or_new(ALICE, None).await.unwrap();
    stop(engine).await;
    let before = dump::Dump::read(&mut files).await;
    let engine = place.engine(&Recorder::new()).await;
    let alice = UserId::any(ALICE).unwrap();
    let admin = engine.dangerously_administer(Actor::cli());
    admin.erase_person(&tenant("acme"), &alice).await.unwrap();
    stop(engine).await;
    for table in before.iter().filter(|table| !table.name.ends_with(".named")) {
        assert!(dump::Dump::write(&mut files, table).await);
    }
    let engine = place.engine(&Recorder::new()).await;
    let refused = engine.account_keys(tenant("acme")).key(ALICE, None).await.unwrap_err();
    assert_eq!(refused.code(), "put-back");
    stop(engine).await;
}
