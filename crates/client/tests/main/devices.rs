//! Honest devices: every credential, chats, sync, offline work, pairing, rotation, export.

use std::time::Duration;

use confidant_chat_format::{ChatId, Role};
use confidant_client::{Device, Error, LossReason, News, OperationKind, Phase};

use crate::world::{At, DRAFTS_MS, MemoryFiles};

crate::at_both! {
    what_one_device_writes_another_reads,
    sync_comes_in_phases_and_older_chats_on_demand,
    drafts_data_embeds_and_branches_are_shared,
    messages_written_offline_on_two_devices_both_survive,
    what_loses_is_a_copy_that_the_person_sees,
    a_device_opens_again_without_the_server,
    many_messages_go_in_few_writes_and_come_in_order,
    whatever_this_device_accepts_can_be_stored,
    drafts_go_at_most_every_five_seconds,
}

/// Applies news until this one came.
pub(crate) async fn until(device: &mut Device, mut is_it: impl FnMut(&News) -> bool) {
    let wait = async { while !is_it(&device.listen().await.unwrap()) {} };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("the news did not come");
}

pub(crate) fn bodies(device: &Device, chat: &ChatId) -> Vec<String> {
    device.chat(chat).unwrap().branch.into_iter().map(|message| message.body).collect()
}

async fn what_one_device_writes_another_reads(at: At) {
    let world = at.world().await;
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

async fn sync_comes_in_phases_and_older_chats_on_demand(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    let mut chats = Vec::new();
    for n in 0..105 {
        chats.push(one.new_chat(Some(&format!("chat {n}"))).unwrap());
    }
    one.flush().await.unwrap();
    one.open_chat(&chats[50]).await.unwrap();
    let mut two = world.second_over(world.transport(), &ana).await;
    let synced = two.sync(Phase::LastChat).await.unwrap();
    assert_eq!(synced.changed, [chats[50].clone()]);
    assert_eq!(two.listed().len(), 105, "the list is known before the chats");
    two.sync(Phase::Recent).await.unwrap();
    assert_eq!(two.chats().len(), 21);
    let synced = two.sync(Phase::All).await.unwrap();
    assert_eq!((two.chats().len(), synced.older), (100, true));
    let nothing = two.sync(Phase::All).await.unwrap();
    assert_eq!(nothing.changed, [], "only what changed");
    let older = two.load_older(3).await.unwrap();
    assert_eq!((older.changed.len(), older.older), (3, true));
    let older = two.load_older(100).await.unwrap();
    assert_eq!((older.changed.len(), older.older), (2, false));
    assert_eq!(two.chats().len(), 105);
    // An old chat that changed is among what changed.
    one.say(&chats[0], "hello").unwrap();
    one.flush().await.unwrap();
    assert_eq!(two.sync(Phase::All).await.unwrap().changed, [chats[0].clone()]);
    // One chat by itself.
    let mut three = world.second_over(world.transport(), &ana).await;
    three.open_chat(&chats[3]).await.unwrap();
    assert_eq!(three.chat(&chats[3]).unwrap().title(), Some("chat 3"));
    assert_eq!(three.open_chat(&ChatId::random()).await.unwrap_err(), Error::NoSuchChat);
    // The oldest one, which somebody opened, does not hide those between it and the newest.
    three.open_chat(&chats[1]).await.unwrap();
    let synced = three.sync(Phase::All).await.unwrap();
    assert_eq!((three.chats().len(), synced.older), (102, true));
    let older = three.load_older(2).await.unwrap();
    assert_eq!((older.changed.len(), older.older), (2, true));
    let older = three.load_older(2).await.unwrap();
    assert_eq!((older.changed.len(), older.older, three.chats().len()), (1, false, 105));
}

async fn drafts_data_embeds_and_branches_are_shared(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    let embed = one.add_embed(&chat, "| a | table |").unwrap();
    let first = one.write(&chat, Role::User, "see", std::slice::from_ref(&embed), None).unwrap();
    let second = one.write(&chat, Role::Assistant, "I see", &[], None).unwrap();
    one.set_draft(&chat, Some("and th")).unwrap();
    one.set_data("settings", "theme", Some("dark")).unwrap();
    one.flush().await.unwrap();
    let mut two = world.second(&ana).await;
    assert_eq!(two.chat(&chat).unwrap().draft.as_deref(), Some("and th"));
    assert_eq!(two.data("settings", "theme").unwrap().as_deref(), Some("dark"));
    assert_eq!(two.embed(&chat, &embed).await.unwrap(), "| a | table |");
    // Another branch, and back.
    let other = two.branch_off(&chat, Some(&first), "no, wait").unwrap();
    two.set_draft(&chat, None).unwrap();
    two.set_data("settings", "theme", None).unwrap();
    two.flush().await.unwrap();
    assert_eq!(bodies(&two, &chat), ["see", "no, wait"]);
    until(&mut one, |news| matches!(news, News::Data(..))).await;
    assert_eq!(bodies(&one, &chat), ["see", "no, wait"]);
    assert_eq!(one.chat(&chat).unwrap().draft, None);
    assert_eq!(one.data("settings", "theme").unwrap(), None);
    one.show_branch(&chat, &second).unwrap();
    one.flush().await.unwrap();
    two.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&two, &chat), ["see", "I see"]);
    assert!(two.chat(&chat).unwrap().messages.contains_key(&other));
    // With a message goes what only it shows.
    two.delete(&chat, &first).unwrap();
    two.flush().await.unwrap();
    assert_eq!(two.embed(&chat, &embed).await.unwrap_err(), Error::NoSuchMessage);
    one.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&one, &chat), ["I see"]);
}

async fn messages_written_offline_on_two_devices_both_survive(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    one.say(&chat, "start").unwrap();
    one.flush().await.unwrap();
    let mut two = world.second(&ana).await;
    for device in [&mut one, &mut two] {
        device.disconnect();
    }
    for n in 0..3 {
        one.say(&chat, &format!("one {n}")).unwrap();
        two.say(&chat, &format!("two {n}")).unwrap();
    }
    one.flush().await.unwrap();
    two.flush().await.unwrap();
    one.sync(Phase::All).await.unwrap();
    let expected = ["start", "one 0", "one 1", "one 2", "two 0", "two 1", "two 2"];
    assert_eq!(bodies(&one, &chat), expected);
    assert_eq!(bodies(&two, &chat), expected);
    assert!(one.copies().is_empty() && two.copies().is_empty());
}

async fn what_loses_is_a_copy_that_the_person_sees(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(Some("Trip")).unwrap();
    let ids: Vec<_> = (0..4).map(|n| one.say(&chat, &format!("message {n}")).unwrap()).collect();
    one.set_data("settings", "theme", Some("dark")).unwrap();
    one.flush().await.unwrap();
    let mut two = world.second(&ana).await;
    two.disconnect();
    // The first device is first.
    one.edit(&chat, &ids[0], "one").unwrap();
    one.delete(&chat, &ids[1]).unwrap();
    one.edit(&chat, &ids[2], "one again").unwrap();
    one.rename(&chat, "One").unwrap();
    one.set_draft(&chat, Some("one's")).unwrap();
    one.set_data("settings", "theme", Some("light")).unwrap();
    one.flush().await.unwrap();
    // The second one wrote against what was before.
    two.edit(&chat, &ids[0], "two").unwrap();
    two.edit(&chat, &ids[1], "two as well").unwrap();
    two.delete(&chat, &ids[2]).unwrap();
    two.edit(&chat, &ids[3], "two alone").unwrap();
    two.rename(&chat, "Two").unwrap();
    two.set_draft(&chat, Some("two's")).unwrap();
    two.set_data("settings", "theme", Some("blue")).unwrap();
    assert_eq!(two.waiting().len(), 7);
    two.flush().await.unwrap();
    let copies: Vec<_> =
        two.copies().iter().map(|copy| (copy.what.clone(), copy.text.clone(), copy.why.clone())).collect();
    let field = |name: &str| confidant_chat_format::FieldName::parse(name).unwrap();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        copies,
        [
            (OperationKind::Edit(ids[0].clone()), text("two"), LossReason::Changed),
            (OperationKind::Edit(ids[1].clone()), text("two as well"), LossReason::Deleted),
            (OperationKind::Delete(ids[2].clone()), None, LossReason::Changed),
            (OperationKind::Field(field("title")), text("Two"), LossReason::Changed),
            (OperationKind::Draft, text("two's"), LossReason::Changed),
            (OperationKind::Data(field("settings"), field("theme")), text("blue"), LossReason::Changed),
        ]
    );
    one.sync(Phase::All).await.unwrap();
    for device in [&one, &two] {
        assert_eq!(bodies(device, &chat), ["one", "one again", "two alone"]);
        let view = device.chat(&chat).unwrap();
        assert_eq!((view.title(), view.draft.as_deref()), (Some("One"), Some("one's")));
        assert_eq!(device.data("settings", "theme").unwrap().as_deref(), Some("light"));
    }
    let numbers: Vec<u64> = two.copies().iter().map(|copy| copy.number).collect();
    two.discard_copy(numbers[0]).unwrap();
    // What lost can be written again, over what is there.
    two.use_copy(numbers[1]).unwrap();
    two.use_copy(numbers[3]).unwrap();
    assert_eq!(two.copies().len(), 3);
    two.flush().await.unwrap();
    assert_eq!(bodies(&two, &chat).last().unwrap(), "two as well");
    assert_eq!(two.chat(&chat).unwrap().title(), Some("Two"));
    // A chat that is gone keeps nothing from the person.
    two.disconnect();
    one.delete_chat(&chat).unwrap();
    one.flush().await.unwrap();
    two.say(&chat, "too late").unwrap();
    two.flush().await.unwrap();
    let last = two.copies().last().unwrap();
    assert_eq!((last.text.as_deref(), &last.why), (Some("too late"), &LossReason::ChatDeleted));
}

async fn a_device_opens_again_without_the_server(at: At) {
    let world = at.world().await;
    let files = MemoryFiles::new();
    let (mut one, _) = world.ana_over(world.transport(), &files).await;
    let chat = one.new_chat(Some("canary title")).unwrap();
    one.say(&chat, "canary words").unwrap();
    one.flush().await.unwrap();
    let before = files.snapshot();
    one.say(&chat, "canary waiting").unwrap();
    one.set_draft(&chat, Some("canary draft")).unwrap();
    drop(one);
    let text = String::from_utf8_lossy(&files.bytes()).into_owned();
    assert!(!text.contains("canary"), "nothing is in clear");
    let mut one = Device::open(world.setup(&files)).unwrap().unwrap();
    assert_eq!(bodies(&one, &chat), ["canary words", "canary waiting"]);
    assert_eq!(one.waiting().len(), 2);
    one.flush().await.unwrap();
    // Older files put back: the device goes on from there, and finds what it wrote.
    let mut old = Device::open(world.setup(&before)).unwrap().unwrap();
    assert_eq!(bodies(&old, &chat), ["canary words"]);
    old.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&old, &chat), ["canary words", "canary waiting"]);
    let other = confidant_client::Setup { key: Some(confidant_seal::Key::random()), ..world.setup(&files) };
    assert_eq!(Device::open(other).unwrap_err(), Error::Damaged);
}

async fn many_messages_go_in_few_writes_and_come_in_order(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    let words: Vec<String> = (0..250).map(|n| format!("message {n}")).collect();
    let bodies_of: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut chats = Vec::new();
    for _ in 0..4 {
        let chat = one.new_chat(None).unwrap();
        one.say_all(&chat, &bodies_of).unwrap();
        chats.push(chat);
    }
    one.flush().await.unwrap();
    let two = world.second(&ana).await;
    for chat in &chats {
        assert_eq!(bodies(&two, chat), words);
        assert_eq!(two.chat(chat).unwrap().rev, 3, "a hundred in a write");
    }
    assert_eq!(one.say(&chats[0], &"x".repeat(300_000)).unwrap_err(), Error::TooLarge);
    assert_eq!(one.say_all(&chats[0], &["fine", &"x".repeat(300_000)]).unwrap_err(), Error::TooLarge);
    assert!(one.waiting().is_empty(), "all or nothing");
}

async fn drafts_go_at_most_every_five_seconds(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    let (chat, other) = (one.new_chat(None).unwrap(), one.new_chat(None).unwrap());
    one.set_draft(&chat, Some("W")).unwrap();
    one.flush().await.unwrap();
    let mut two = world.second(&ana).await;
    let draft = |device: &Device, chat: &ChatId| device.chat(chat).unwrap().draft;
    assert_eq!((draft(&two, &chat).as_deref(), one.draft_wait()), (Some("W"), None));
    // Too soon: it waits, and holds up nothing that is behind it.
    world.pass(DRAFTS_MS / 4);
    for words in ["Wh", "Whe", "Where to"] {
        one.set_draft(&chat, Some(words)).unwrap();
        one.flush().await.unwrap();
    }
    one.say(&chat, "said").unwrap();
    one.set_draft(&other, Some("of another chat")).unwrap();
    one.flush().await.unwrap();
    two.sync(Phase::All).await.unwrap();
    assert_eq!(draft(&two, &chat).as_deref(), Some("W"));
    assert_eq!(bodies(&two, &chat), ["said"]);
    assert_eq!(draft(&two, &other).as_deref(), Some("of another chat"));
    assert_eq!(draft(&one, &chat).as_deref(), Some("Where to"), "here it is shown");
    let wait = one.draft_wait().unwrap();
    assert!(one.waiting().len() == 1 && wait < Duration::from_millis(DRAFTS_MS - DRAFTS_MS / 4), "{wait:?}");
    // Its time has come: the last words go, once.
    world.pass(u64::try_from(wait.as_millis()).unwrap());
    assert_eq!(one.draft_wait(), None);
    one.flush().await.unwrap();
    two.sync(Phase::All).await.unwrap();
    assert_eq!(draft(&two, &chat).as_deref(), Some("Where to"));
    assert!(one.waiting().is_empty());
    // What is thrown away goes at once, with what waited.
    one.set_draft(&chat, Some("Where to go")).unwrap();
    one.flush().await.unwrap();
    one.set_draft(&chat, None).unwrap();
    one.flush().await.unwrap();
    two.sync(Phase::All).await.unwrap();
    assert_eq!((draft(&two, &chat), one.waiting().len()), (None, 0));
    assert!(one.copies().is_empty() && two.copies().is_empty());
}

/// The most bytes that `takes` accepts, between these.
fn largest(mut fits: usize, mut fails: usize, mut takes: impl FnMut(usize) -> bool) -> usize {
    assert!(takes(fits) && !takes(fails));
    while fails - fits > 1 {
        let middle = usize::midpoint(fits, fails);
        *(if takes(middle) { &mut fits } else { &mut fails }) = middle;
    }
    fits
}

async fn whatever_this_device_accepts_can_be_stored(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    one.flush().await.unwrap();
    let data = largest(1_000, 80_000, |n| one.set_data("settings", "note", Some(&"d".repeat(n))).is_ok());
    one.set_data("settings", "note", Some(&"d".repeat(data))).unwrap();
    let title = largest(1_000, 80_000, |n| one.set_field(&chat, "title", &"t".repeat(n)).is_ok());
    one.set_field(&chat, "title", &"t".repeat(title)).unwrap();
    let draft = largest(1_000, 200_000, |n| one.set_draft(&chat, Some(&"e".repeat(n))).is_ok());
    one.set_draft(&chat, Some(&"e".repeat(draft))).unwrap();
    let mut fresh = world.second(&ana).await;
    let said = largest(1_000, 300_000, |n| fresh.say(&chat, &"m".repeat(n)).is_ok());
    one.say(&chat, &"m".repeat(said)).unwrap();
    one.flush().await.unwrap();
    assert!(one.waiting().is_empty() && one.copies().is_empty());
    let two = world.second(&ana).await;
    let seen = two.chat(&chat).unwrap();
    assert_eq!(two.data("settings", "note").unwrap().map(|text| text.len()), Some(data));
    assert_eq!(seen.title().map(str::len), Some(title));
    assert_eq!(seen.draft.map(|text| text.len()), Some(draft));
    assert_eq!(bodies(&two, &chat), ["m".repeat(said)]);
}
