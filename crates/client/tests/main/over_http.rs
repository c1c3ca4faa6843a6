//! The same client over HTTP and WebSocket, with files on disk.

use std::path::Path;
use std::sync::Arc;

use confidant_chat_format::{Login, Origin, RecoveryCode};
use confidant_client::{
    Credential, Device, Error, Folder, Http, News, Offer, Phase, Registration, Rest, Restoration, Restored,
    Setup, TotpChange,
};

use crate::accounts::code;
use crate::devices::{bodies, until};
use crate::world::{NOW, Served};

fn setup(served: &Served, folder: &Path) -> Setup {
    Setup {
        transport: Arc::new(Http::new(served.origin.clone()).unwrap()),
        files: Arc::new(Folder::open(folder).unwrap()),
        key: None,
        clock: Arc::new(|| NOW),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_over_http() {
    let served = Served::new().await;
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let code = Credential::Recovery(RecoveryCode::random());
    let who = Registration {
        login: Login::parse("ana@example.org").unwrap(),
        credentials: vec![code.clone()],
        code: Some(served.first.clone()),
    };
    let mut one = Device::register(setup(&served, folders[0].path()), who).await.unwrap();
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.say(&chat, "Where to?").unwrap();
    one.flush().await.unwrap();
    let mut two = Device::log_in(setup(&served, folders[1].path()), &code).await.unwrap();
    two.sync(Phase::All).await.unwrap();
    two.say(&chat, "Lisbon.").unwrap();
    two.flush().await.unwrap();
    until(&mut one, |news| *news == News::Chat(chat.clone())).await;
    assert_eq!(bodies(&one, &chat), ["Where to?", "Lisbon."]);
    // Opened again from its folder, the session goes on.
    drop(two);
    let mut two = Device::open(setup(&served, folders[1].path())).unwrap().unwrap();
    two.sync(Phase::All).await.unwrap();
    assert_eq!(two.devices().await.unwrap().len(), 2);
    let offer = Offer::make(setup(&served, folders[2].path())).await.unwrap();
    two.pair(&offer.dangerously_to_text(), &code).await.unwrap();
    let mut three = offer.finish().await.unwrap().unwrap();
    three.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&three, &chat).len(), 2);
    let wrong = Credential::Recovery(RecoveryCode::random());
    let refused = Device::log_in(setup(&served, tempfile::tempdir().unwrap().path()), &wrong).await;
    assert_eq!(refused.unwrap_err().name(), "login-refused");
    assert_eq!(one.export(&code).await.unwrap().chats.len(), 1);
    one.rotate(&code, std::slice::from_ref(&code)).await.unwrap();
    let ended = loop {
        match three.listen().await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, Error::LoggedOut(_)), "{ended:?}");
    one.say(&chat, "Agreed.").unwrap();
    one.flush().await.unwrap();
    assert!(one.erase(&code).await.unwrap().contains("\"chats\":1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_change_over_http() {
    let served = Served::new().await;
    let folder = tempfile::tempdir().unwrap();
    let mut at = 0;
    let mut place = || {
        at += 1;
        setup(&served, &folder.path().join(at.to_string()))
    };
    let password = |words: &str| Credential::password("ana@example.org", words).unwrap();
    let lost = RecoveryCode::random();
    let who = Registration {
        login: Login::parse("ana@example.org").unwrap(),
        credentials: vec![password("first words"), Credential::Recovery(lost.clone())],
        code: Some(served.first.clone()),
    };
    let mut one = Device::register(place(), who).await.unwrap();
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.flush().await.unwrap();
    // Another password, and codes of an authenticator with it.
    let secret = [7; 32];
    let on = TotpChange::On { secret, code: code(&secret, NOW) };
    let by = Credential::Recovery(lost.clone());
    one.change_credentials(&by, &[password("second words")], Some(on)).await.unwrap();
    for refused in [password("first words"), password("second words")] {
        assert_eq!(Device::log_in(place(), &refused).await.unwrap_err().name(), "login-refused");
    }
    let next = code(&secret, NOW + 30_000);
    let with_code = password("second words").with_totp(next.digits()).unwrap();
    let mut two = Device::log_in(place(), &with_code).await.unwrap();
    two.sync(Phase::All).await.unwrap();
    assert_eq!(two.chat(&chat).unwrap().title(), Some("Trip"));
    one.change_credentials(&by, &[], Some(TotpChange::Off)).await.unwrap();
    // A lost password.
    let (mut three, kept) = (Device::log_in(place(), &by).await.unwrap(), RecoveryCode::random());
    three.recover(&lost, &password("third words"), &kept).await.unwrap();
    assert_eq!(Device::log_in(place(), &by).await.unwrap_err().name(), "login-refused");
    let mut four = Device::log_in(place(), &password("third words")).await.unwrap();
    four.sync(Phase::All).await.unwrap();
    // A new account key, for one credential of two.
    let kept = Credential::Recovery(kept);
    four.rotate(&kept, std::slice::from_ref(&kept)).await.unwrap();
    assert_eq!(Device::log_in(place(), &password("third words")).await.unwrap_err().name(), "login-refused");
    let mut five = Device::log_in(place(), &kept).await.unwrap();
    five.sync(Phase::All).await.unwrap();
    assert_eq!((five.generation(), five.chat(&chat).unwrap().title()), (2, Some("Trip")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chat_that_was_opened_last_comes_first() {
    let served = Served::new().await;
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let code = Credential::Recovery(RecoveryCode::random());
    let who = Registration {
        login: Login::parse("ana@example.org").unwrap(),
        credentials: vec![code.clone()],
        code: Some(served.first.clone()),
    };
    let mut one = Device::register(setup(&served, folders[0].path()), who).await.unwrap();
    let chats = ["first", "second", "third"].map(|title| one.new_chat(Some(title)).unwrap());
    one.flush().await.unwrap();
    one.open_chat(&chats[1]).await.unwrap();
    // Asked once more on the same socket, so that the server has heard of it.
    one.devices().await.unwrap();
    let mut two = Device::log_in(setup(&served, folders[1].path()), &code).await.unwrap();
    assert_eq!(two.sync(Phase::LastChat).await.unwrap().changed, [chats[1].clone()]);
    // Opened without a server, which is told later.
    two.sync(Phase::All).await.unwrap();
    drop(two);
    let mut nowhere = setup(&served, folders[1].path());
    // Nobody listens at this port.
    nowhere.transport = Arc::new(Http::new(Origin::parse("http://127.0.0.1:1").unwrap()).unwrap());
    let mut two = Device::open(nowhere).unwrap().unwrap();
    assert_eq!(two.open_chat(&chats[0]).await.unwrap_err(), Error::Offline);
    drop(two);
    let mut two = Device::open(setup(&served, folders[1].path())).unwrap().unwrap();
    two.sync(Phase::LastChat).await.unwrap();
    let mut three = Device::log_in(setup(&served, folders[2].path()), &code).await.unwrap();
    assert_eq!(three.sync(Phase::LastChat).await.unwrap().changed, [chats[0].clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lost_everything_gets_it_back_over_http() {
    let (served, folder) = (Served::new().await, tempfile::tempdir().unwrap());
    let who = Registration {
        login: Login::parse("ana@example.org").unwrap(),
        credentials: vec![Credential::Recovery(RecoveryCode::random())],
        code: Some(served.first.clone()),
    };
    let mut one = Device::register(setup(&served, folder.path()), who).await.unwrap();
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.say(&chat, "Where to?").unwrap();
    one.flush().await.unwrap();
    drop(one);
    // Neither its database nor its keyring.
    let empty = Served::new().await;
    let mut one = Device::open(setup(&empty, folder.path())).unwrap().unwrap();
    let hour = std::time::Duration::from_secs(3600);
    let code = empty.service.restore_code(one.account_id(), hour).await.unwrap().to_string();
    let password = Credential::Recovery(RecoveryCode::random());
    let how = |code| Restoration {
        login: Login::parse("ana@example.org").unwrap(),
        credentials: vec![password.clone()],
        code,
        rest: Rest::Stays,
    };
    let refused = one.restore(how("0".repeat(32))).await.unwrap_err();
    assert_eq!(refused.name(), "login-refused");
    assert_eq!(one.restore(how(code)).await.unwrap(), Restored::Empty);
    assert_eq!(one.put_back().await.unwrap().chats, 1);
    let two = tempfile::tempdir().unwrap();
    let mut two = Device::log_in(setup(&empty, two.path()), &password).await.unwrap();
    two.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&two, &chat), ["Where to?"]);
    assert_eq!(one.restore_rings(&password).await.unwrap().restored, 0);
}
