//! What an operator does to a server that has chats: a new master key, another store. Nobody is locked out, and nothing goes.

use std::net::SocketAddr;

use confidant_chat_format::{ChatId, CredentialId, Login, RecoveryCode};
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
    place.home = place.home.set("CONFIDANT_STORE__SCHEMA", &schema);
    let before = Before::make(&place).await;
    let copy = ["store", "copy", "--from", "sqlite:", "--to", &url, "--json"];
    let copied = place.home.run(&copy).done().json();
    assert!(copied["chat_rows"].as_u64() > Some(10), "{copied}");
    before.goes_on_at(place, &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_move_from_a_redis_as_well() {
    let (Some(there), Some(mut place)) = (Place::postgres_of_tests(), Place::redis_of_tests()) else {
        return;
    };
    let (url, schema) = there.schema.clone().unwrap();
    place.home = place.home.set("CONFIDANT_STORE__SCHEMA", &schema);
    let before = Before::make(&place).await;
    let from = place.home.variables.remove("REDIS_URL").unwrap();
    let copy = ["store", "copy", "--from", &from, "--to", &url, "--json"];
    let copied = place.home.run(&copy).done().json();
    assert!(copied["chat_rows"].as_u64() > Some(10), "{copied}");
    before.goes_on_at(place, &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_stay_in_the_data_folder_when_conversations_go_to_a_redis() {
    let (Some(there), mut place) = (Place::redis_of_tests(), Place::sqlite()) else { return };
    let there = |name: &str| there.home.variables.get(name).cloned().unwrap();
    place.home = place.home.set("CONFIDANT_STORE__PREFIX", &there("CONFIDANT_STORE__PREFIX"));
    let before = Before::make(&place).await;
    let url = there("REDIS_URL");
    let copied = place.home.run(&["store", "copy", "--from", "sqlite:", "--to", &url]).done();
    assert!(copied.err.contains("keep that file when you erase the old store"), "{}", copied.err);
    before.goes_on_at(place, &url).await;
}

/// A person who had chats before an operator did something.
struct Before {
    by: Credential,
    chat: ChatId,
    address: SocketAddr,
}

impl Before {
    async fn make(place: &Place) -> Self {
        let server = Serving::start(place);
        let by = Credential::Recovery(RecoveryCode::random());
        let (mut one, _) = server.register(place, "ana", vec![by.clone()]).await;
        let chat = one.new_chat(Some("Trip")).unwrap();
        one.say(&chat, "Where to?").unwrap();
        one.set_data("settings", "theme", Some("dark")).unwrap();
        one.flush().await.unwrap();
        let address = server.address;
        server.stop();
        Self { by, chat, address }
    }

    /// The device of before has the session of before; a new one has everything.
    async fn goes_on_at(&self, mut place: Place, url: &str) {
        let given = place.home.variables.get("CHECKPOINT_ENCRYPTION_KEY").cloned();
        let key = given.unwrap_or_else(|| place.home.master_key().trim().to_owned());
        place.home = place.home.set("CONFIDANT_STORE__URL", url).set("CHECKPOINT_ENCRYPTION_KEY", &key);
        let server = Serving::start_at(&place, self.address);
        let (setup, _) = server.setup(&place.folder("ana"));
        let mut one = Device::open(setup).unwrap().unwrap();
        one.sync(Phase::All).await.unwrap();
        one.say(&self.chat, "Cork").unwrap();
        one.flush().await.unwrap();
        let (setup, _) = server.setup(&place.folder("two"));
        let mut two = Device::log_in(setup, &self.by).await.unwrap();
        two.sync(Phase::All).await.unwrap();
        let view = two.chat(&self.chat).unwrap();
        assert_eq!((view.title(), view.messages.len()), (Some("Trip"), 2));
        assert_eq!(two.data("settings", "theme").unwrap().as_deref(), Some("dark"));
        server.stop();
        place.home.run(&["keys", "verify"]).done();
    }
}
