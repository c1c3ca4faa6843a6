//! Promise 6 of chats: an erased account has a receipt, and nothing opens it again: not its sessions, not its credentials, and not a
//! backup of the database beside the master key and the keyring of now.

use std::fs;

use confidant_chat_format::RecoveryCode;
use confidant_chats::store::sqlite::SqliteChats;
use confidant_client::{Credential, Device, Error, Phase};

use super::{Place, Serving, keys_of};
use crate::promises::on_each_store;
use crate::rows::{Kept, holds};

on_each_store! {
    promise_6_an_erased_account_has_a_receipt_and_opens_from_no_backup,
}

async fn promise_6_an_erased_account_has_a_receipt_and_opens_from_no_backup(place: Place) {
    let server = Serving::start(&place);
    let code = RecoveryCode::random();
    let credentials =
        vec![Credential::password("ana", "correct-horse-9-battery").unwrap(), Credential::Recovery(code)];
    let (mut one, _) = server.register(&place, "ana", credentials.clone()).await;
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.say(&chat, "Where to?").unwrap();
    one.add_embed(&chat, "a map").unwrap();
    one.set_draft(&chat, Some("half a sen")).unwrap();
    one.flush().await.unwrap();
    let (setup, _) = server.setup(&place.folder("two"));
    let mut two = Device::log_in(setup, &credentials[1]).await.unwrap();
    two.sync(Phase::All).await.unwrap();
    let other = Credential::Recovery(RecoveryCode::random());
    let (mut ben, _) = server.register(&place, "ben", vec![other.clone()]).await;
    let account = one.account_id().clone();
    let backup = place.folder("backup");
    place.kept().await.copy_to(&Kept::of(SqliteChats::open(&backup).unwrap())).await;

    let receipt = one.erase(&credentials[1]).await.unwrap();
    fs::write(place.home.path("receipt.json"), &receipt).unwrap();
    place.home.run(&["audit", "verify", "--receipt", "receipt.json"]).done();
    fs::remove_file(place.home.path("receipt.json")).unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!(
        (&receipt["derived"]["chats"], receipt["keys"].as_array().map(Vec::len)),
        (&1.into(), Some(2))
    );
    let ended = loop {
        match two.listen().await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, Error::LoggedOut(_)), "{ended:?}");
    assert!(matches!(two.sync(Phase::All).await, Err(Error::LoggedOut(_))), "its session is gone");
    ben.sync(Phase::All).await.unwrap();
    let address = server.address;
    server.stop();
    let rows = place.kept().await.rows().await;
    assert!(rows.iter().all(|row| !holds(&row.everything(), account.as_str().as_bytes())));
    let files = place.home.all_bytes();
    assert!(!holds(&files, account.as_str().as_bytes()), "a file names it");
    let (engine, keyring) = place.keys().await;
    assert!(keys_of(&keyring, &account, &[chat]).await.is_empty(), "a key of it is there");
    engine.stop(std::time::Duration::ZERO).await;

    // Every row as it was, put in the place of what is there now, beside the keys of now.
    let Place { home, schema, elsewhere } = place;
    let restored = format!("sqlite:{}", backup.display());
    let place = Place { home: home.set("CONFIDANT_WEB__URL", &restored), schema, elsewhere };
    let kept = Kept::of(SqliteChats::open(&backup).unwrap());
    assert!(!kept.rows_of(account.as_str()).await.is_empty(), "the rows are there");
    let server = Serving::start_at(&place, address);
    for (at, credential) in credentials.iter().enumerate() {
        let (setup, _) = server.setup(&place.folder(&format!("again-{at}")));
        assert_eq!(Device::log_in(setup, credential).await.unwrap_err().name(), "login-refused");
    }
    let refused = two.sync(Phase::All).await.unwrap_err();
    assert!(!matches!(refused, Error::Refused(_)), "it was sent something: {refused:?}");
    let (setup, _) = server.setup(&place.folder("ben-again"));
    Device::log_in(setup, &other).await.unwrap().sync(Phase::All).await.unwrap();
    server.stop();
}
