//! What an operator does to a server that has chats: a new master key, another store. Nobody is locked out, and nothing goes.

use confidant_chat_format::{CredentialId, Login, RecoveryCode};
use confidant_client::{Credential, Device, Phase};

use crate::promises::{Place, Serving};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_credential_logs_in_after_the_master_key_was_replaced() {
    let place = Place::sqlite();
    let server = Serving::start(&place);
    let login = Login::parse("ana").unwrap();
    let credentials = [
        Credential::password(login.as_str(), "correct horse battery staple").unwrap(),
        Credential::passkey(CredentialId::random(), [7; 32]),
        Credential::Recovery(RecoveryCode::random()),
    ];
    let (mut one, _) = server.register(&place, login.as_str(), credentials.to_vec()).await;
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.say(&chat, "Where to?").unwrap();
    one.flush().await.unwrap();
    let address = server.address;
    server.stop();

    let before = place.home.master_key();
    place.home.run(&["keys", "rotate"]).done();
    assert_ne!(place.home.master_key(), before);
    let server = Serving::start_at(&place, address);
    for (at, by) in credentials.iter().enumerate() {
        let (setup, _) = server.setup(&place.folder(&format!("device {at}")));
        let mut device = Device::log_in(setup, by).await.unwrap();
        device.sync(Phase::All).await.unwrap();
        let view = device.chat(&chat).unwrap();
        assert_eq!((view.title(), view.messages.len()), (Some("Trip"), 1), "credential {at}");
    }
    // The device of before goes on, too.
    one.disconnect();
    one.say(&chat, "Cork").unwrap();
    one.flush().await.unwrap();
    server.stop();
    place.home.run(&["keys", "verify"]).done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_move_with_conversations_to_another_store() {
    let (Some(there), mut place) = (Place::postgres_of_tests(), Place::sqlite()) else { return };
    let (url, schema) = there.schema.clone().unwrap();
    let server = Serving::start(&place);
    let by = Credential::Recovery(RecoveryCode::random());
    let (mut one, _) = server.register(&place, "ana", vec![by.clone()]).await;
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.say(&chat, "Where to?").unwrap();
    one.set_data("settings", "theme", Some("dark")).unwrap();
    one.flush().await.unwrap();
    drop(one);
    let address = server.address;
    server.stop();

    place.home = place.home.set("CONFIDANT_STORE__SCHEMA", &schema);
    let copy = ["store", "copy", "--from", "sqlite:", "--to", &url, "--json"];
    let copied = place.home.run(&copy).done().json();
    assert!(copied["chat_rows"].as_u64() > Some(10), "{copied}");
    let key = place.home.master_key();
    place.home = place.home.set("CONFIDANT_STORE__URL", &url).set("CHECKPOINT_ENCRYPTION_KEY", key.trim());
    let server = Serving::start_at(&place, address);
    // The device of before has the session of before; a new one has everything.
    let (setup, _) = server.setup(&place.folder("ana"));
    let mut one = Device::open(setup).unwrap().unwrap();
    one.sync(Phase::All).await.unwrap();
    one.say(&chat, "Cork").unwrap();
    one.flush().await.unwrap();
    let (setup, _) = server.setup(&place.folder("two"));
    let mut two = Device::log_in(setup, &by).await.unwrap();
    two.sync(Phase::All).await.unwrap();
    let view = two.chat(&chat).unwrap();
    assert_eq!((view.title(), view.messages.len()), (Some("Trip"), 2));
    assert_eq!(two.data("settings", "theme").unwrap().as_deref(), Some("dark"));
    server.stop();
    place.home.run(&["keys", "verify"]).done();
}
