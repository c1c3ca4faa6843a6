//! Promise 6 of chats: an account that was erased is gone from every table, from devices and sessions, and from every backup of
//! the database, with the right password and the keys that the server has now.

use std::sync::Arc;

use confidant_chat_format::RecoveryCode;
use confidant_chat_protocol::LogoutReason;
use confidant_chats::vault::Vault as _;
use confidant_client::{Credential, Device, Error, News, Phase};

use crate::on_both_stores;
use crate::place::Place;
use crate::rows::holds;
use crate::world::{MemoryFiles, Person, World};

on_both_stores! {
    promise_6_an_erased_account_is_in_no_row_and_opens_from_no_backup,
    promise_6_a_deleted_chat_opens_from_no_backup,
}

async fn promise_6_an_erased_account_is_in_no_row_and_opens_from_no_backup(place: Place) {
    let world = World::at(place).await;
    let (login, password) = ("ana@example.org", "correct-horse-9-battery");
    let (code, words) = (RecoveryCode::random(), Credential::password(login, password).unwrap());
    let credentials = [words, Credential::Recovery(code.clone())];
    let files = MemoryFiles::new();
    let mut one = world.register(world.transport(), &files, login, credentials.to_vec()).await.unwrap();
    one.sync(Phase::All).await.unwrap();
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.say(&chat, "Where to?").unwrap();
    one.add_embed(&chat, "a map").unwrap();
    one.set_draft(&chat, Some("half a sen")).unwrap();
    one.set_data("settings", "theme", Some("dark")).unwrap();
    one.flush().await.unwrap();
    one.label("telephone").await.unwrap();
    let two_files = MemoryFiles::new();
    let mut two = Device::log_in(world.setup(&two_files), &credentials[1]).await.unwrap();
    two.sync(Phase::All).await.unwrap();
    let somebody = Person::new();
    let mut other = world
        .register(world.transport(), &MemoryFiles::new(), "ben@example.org", vec![somebody.recovery()])
        .await
        .unwrap();
    other.sync(Phase::All).await.unwrap();
    let account = one.account_id().clone();
    let backup = Place::sqlite();
    world.kept.copy_to(&backup.open().await).await;
    let others = world.kept.rows_of(other.account_id().as_str()).await;

    let receipt = one.erase(&credentials[0]).await.unwrap();
    assert!(receipt.contains("\"chats\":1"), "{receipt}");
    assert!(files.bytes().is_empty(), "the device that asked forgot it too");
    let ended = loop {
        match two.listen().await {
            Ok(News::Nothing | News::Devices | News::Account) => {}
            Ok(news) => panic!("{news:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(ended, Error::LoggedOut(LogoutReason::Erased));
    drop(two);
    let mut two = Device::open(world.setup(&two_files)).unwrap().unwrap();
    assert!(matches!(two.sync(Phase::All).await, Err(Error::LoggedOut(_))), "its session is gone");
    let rows = world.kept.rows().await;
    assert!(rows.iter().all(|row| row.account != account.as_str()));
    let login_tag = *world.vault.tag("login", login.as_bytes()).as_bytes();
    for row in &rows {
        let everything = row.everything();
        assert!(!holds(&everything, account.as_str().as_bytes()), "{} names it", row.table);
        assert!(!holds(&everything, &login_tag), "{} has its login", row.table);
    }
    assert_eq!(world.kept.rows_of(other.account_id().as_str()).await, others, "nobody else's went");
    other.sync(Phase::All).await.unwrap();
    assert_eq!(world.vault.key(&account, None).await, Ok(None));
    assert_eq!(world.vault.key(&account, Some(&chat)).await, Ok(None));

    // The backup with every row, the keys of now, and the right password.
    let restored = world.over(backup).await;
    assert!(!restored.kept.rows_of(account.as_str()).await.is_empty(), "the rows are back");
    for credential in &credentials {
        let setup = restored.setup_over(restored.transport(), &MemoryFiles::new());
        assert_eq!(Device::log_in(setup, credential).await.unwrap_err().name(), "login-refused");
    }
    let mut two = Device::open(restored.setup_over(restored.transport(), &two_files)).unwrap().unwrap();
    let refused = two.sync(Phase::All).await.unwrap_err();
    assert!(!matches!(refused, Error::Refused(_)), "it was sent something: {refused:?}");
}

async fn promise_6_a_deleted_chat_opens_from_no_backup(place: Place) {
    let world = World::at(place).await;
    let (mut one, ana) = world.ana().await;
    one.sync(Phase::All).await.unwrap();
    let (doomed, kept) = (one.new_chat(Some("doomed")).unwrap(), one.new_chat(Some("kept")).unwrap());
    one.say(&doomed, "gone tomorrow").unwrap();
    one.flush().await.unwrap();
    let backup = Place::sqlite();
    world.kept.copy_to(&backup.open().await).await;
    one.delete_chat(&doomed).unwrap();
    one.flush().await.unwrap();
    let rows = world.kept.rows_of(one.account_id().as_str()).await;
    let named: Vec<&str> = rows
        .iter()
        .filter(|row| holds(&row.everything(), doomed.as_str().as_bytes()))
        .map(|row| row.table)
        .collect();
    // That it was deleted is remembered, so that nobody puts it back.
    assert!(named.iter().all(|table| ["deleted_chats", "feed"].contains(table)), "{named:?}");
    assert_eq!(world.vault.key(one.account_id(), Some(&doomed)).await, Ok(None));
    // In the backup its ring does not open for anybody, so no device gets it; the other chat is as it was.
    let restored = Arc::new(world.over(backup).await);
    let mut again =
        Device::log_in(restored.setup_over(restored.transport(), &MemoryFiles::new()), &ana.recovery())
            .await
            .unwrap();
    let synced = again.sync(Phase::All).await;
    assert!(synced.is_err(), "the server has lost the key of something that it keeps");
    assert_eq!(again.chat(&doomed).unwrap_err(), Error::NoSuchChat);
    assert!(again.open_chat(&doomed).await.is_err());
    again.open_chat(&kept).await.unwrap();
    assert_eq!(again.chat(&kept).unwrap().title(), Some("kept"));
}
