//! The same client over HTTP and WebSocket, with files on disk.

use std::path::Path;
use std::sync::Arc;

use confidant_chat_format::{Login, RecoveryCode};
use confidant_client::{Credential, Device, Error, Folder, Http, News, Offer, Phase, Registration, Setup};

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
