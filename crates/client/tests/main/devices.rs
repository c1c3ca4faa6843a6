//! Honest devices: every credential, chats, sync, offline work, pairing, rotation, export.

use std::time::Duration;

use confidant_chat_format::{ChatId, RecoveryCode, Role};
use confidant_client::{Credential, Device, Error, News, Phase, What, Why};

use crate::world::{MemoryFiles, World};

/// Applies news until this one came.
pub(crate) async fn until(device: &mut Device, mut is_it: impl FnMut(&News) -> bool) {
    let wait = async { while !is_it(&device.listen().await.unwrap()) {} };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("the news did not come");
}

pub(crate) fn bodies(device: &Device, chat: &ChatId) -> Vec<String> {
    device.chat(chat).unwrap().branch.into_iter().map(|message| message.body).collect()
}

#[tokio::test]
async fn what_one_device_writes_another_reads() {
    let world = World::new().await;
    let (mut one, ana) = world.ana().await;
    one.sync(Phase::All).await.unwrap();
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.say(&chat, "Where to?").unwrap();
    assert_eq!(bodies(&one, &chat), ["Where to?"], "what waits is shown");
    assert!(one.chat(&chat).unwrap().branch[0].is_waiting);
    one.flush().await.unwrap();
    assert!(one.waiting().is_empty());
    one.write(&chat, Role::Assistant, "Lisbon.", &[], Some("a-model")).unwrap();
    one.flush().await.unwrap();

    let mut two = world.second(&ana).await;
    let view = two.chat(&chat).unwrap();
    assert_eq!(view.title(), Some("Trip"));
    assert_eq!(bodies(&two, &chat), ["Where to?", "Lisbon."]);
    assert_eq!(view.branch[1].model.as_deref(), Some("a-model"));

    // Edits, titles and deletions come as news.
    let (first, second) = (view.branch[0].id.clone(), view.branch[1].id.clone());
    two.edit(&chat, &first, "Where shall we go?").unwrap();
    two.rename(&chat, "Lisbon").unwrap();
    two.flush().await.unwrap();
    until(&mut one, |news| *news == News::Chat(chat.clone())).await;
    until(&mut one, |news| *news == News::Chat(chat.clone())).await;
    assert_eq!(bodies(&one, &chat), ["Where shall we go?", "Lisbon."]);
    assert_eq!(one.chat(&chat).unwrap().title(), Some("Lisbon"));
    one.delete(&chat, &first).unwrap();
    one.flush().await.unwrap();
    until(&mut two, |news| *news == News::Chat(chat.clone())).await;
    assert_eq!(bodies(&two, &chat), ["Lisbon."], "what answered it moved up");
    assert_eq!(two.chat(&chat).unwrap().messages[&second].parent, None);
    two.delete_chat(&chat).unwrap();
    two.flush().await.unwrap();
    until(&mut one, |news| *news == News::Gone(vec![chat.clone()])).await;
    assert_eq!(one.chat(&chat).unwrap_err(), Error::NoSuchChat);
}
