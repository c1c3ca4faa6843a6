//! A malicious server, attack by attack: each is refused with the name that the format gives it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod world;

use confidant_chat_format::vectors::pairing_key_insecure_for_testing;
use confidant_chat_format::*;
use confidant_seal::vectors::seal_with_salt_insecure_for_testing;
use confidant_seal::{Context, Key, Sealed, Suite};
use world::{Device, Sent, World, message};

/// Two chats with a few messages, a title and a pending reply, and a device that has seen all of it.
fn story() -> (World, Device, ChatId, ChatId) {
    let mut world = World::new();
    let (one, two) = (world.create(), world.create());
    for words in ["a", "b", "c"] {
        world.say(&one, words);
    }
    world.title(&one, "title");
    world.say(&two, "elsewhere");
    world.ask(&one);
    world.publish();
    let mut device = Device::default();
    device.sync(&world).unwrap();
    (world, device, one, two)
}

/// What a device that remembers says, and what one says that does not.
fn both(device: &Device, spoil: impl Fn(&mut Sent), world: &World) -> (Option<Refused>, Option<Refused>) {
    let verdict = |mut device: Device| {
        let mut sent = world.send(&device);
        spoil(&mut sent);
        device.take(&sent).err()
    };
    (verdict(device.clone()), verdict(Device::default()))
}

fn everyone(refused: Refused) -> (Option<Refused>, Option<Refused>) {
    (Some(refused), Some(refused))
}

#[test]
fn a_dropped_tail_branch_or_chat() {
    let (world, device, one, _) = story();
    let chat = |sent: &mut Sent| drop(sent.chats.remove(&one));
    assert_eq!(both(&device, chat, &world), everyone(Refused::Withheld));
    let item = |sent: &mut Sent| drop(sent.chats.get_mut(&one).unwrap().0.list.pop());
    assert_eq!(both(&device, item, &world), everyone(Refused::ListRefused));
    let twice = |sent: &mut Sent| {
        let list = &mut sent.chats.get_mut(&one).unwrap().0.list;
        list.push(list[0].clone());
    };
    assert_eq!(both(&device, twice, &world), everyone(Refused::ListRefused), "an item twice");
    let envelope = |sent: &mut Sent| drop(sent.chats.get_mut(&one).unwrap().1.pop_last());
    assert_eq!(both(&device, envelope, &world), everyone(Refused::Withheld));
    let floor = |sent: &mut Sent| drop(sent.account.floors.pop());
    assert_eq!(both(&device, floor, &world), everyone(Refused::ListRefused));
}

#[test]
fn an_older_state() {
    let (mut world, mut device, one, _) = story();
    let before = world.clone();
    world.say(&one, "d");
    // Within the 60 seconds before the floor is written: who remembers nothing cannot tell, who remembers can.
    assert_eq!(Device::default().sync(&before), Ok(()));
    device.sync(&world).unwrap();
    assert_eq!(device.clone().sync(&before).err(), Some(Refused::RolledBack));
    // After it, everyone can.
    world.publish();
    let older =
        |sent: &mut Sent| drop(sent.chats.insert(one.clone(), before.send(&device).chats[&one].clone()));
    assert_eq!(both(&device, older, &world), everyone(Refused::RolledBack));
    device.sync(&world).unwrap();
    let manifest = |sent: &mut Sent| {
        sent.account.manifest = before.manifests.newest.clone().unwrap();
        sent.account.floors = before.floors.clone();
    };
    assert_eq!(both(&device, manifest, &world).0, Some(Refused::RolledBack));
}

#[test]
fn a_deleted_message_or_chat_put_back() {
    let (mut world, mut device, one, two) = story();
    let before = world.clone();
    let leaf = world.chats[&one].leaf.clone().unwrap();
    world.unsay(&one, None);
    world.delete(&two);
    device.sync(&world).unwrap();
    let item = ItemId::Message(leaf);
    let message = |sent: &mut Sent| {
        let sealed = before.chats[&one].items[&item].clone();
        let (chat, items) = sent.chats.get_mut(&one).unwrap();
        chat.list.push((item.clone(), Digest::of(sealed.as_bytes())));
        items.insert(item.clone(), sealed);
    };
    assert_eq!(both(&device, message, &world), everyone(Refused::ListRefused));
    let chat =
        |sent: &mut Sent| drop(sent.chats.insert(two.clone(), before.send(&device).chats[&two].clone()));
    assert_eq!(both(&device, chat, &world), everyone(Refused::ListRefused));
}

#[test]
fn two_devices_forked_then_met() {
    let (mut world, device, one, _) = story();
    let (mut left, mut right) = (device.clone(), device);
    let mut other = world.clone();
    world.say(&one, "left");
    other.say(&one, "right");
    left.sync(&world).unwrap();
    right.sync(&other).unwrap();
    assert_eq!(left.clone().sync(&other).err(), Some(Refused::Forked), "the same revision, other bytes");
    other.say(&one, "right again");
    assert_eq!(left.sync(&other).err(), Some(Refused::Forked), "a later revision of the other side");
    // The manifest tells as well.
    world.publish();
    right.seen.manifest = Some(Mark { rev: world.manifests.rev() + 1, envelope: Digest::ZERO });
    assert_eq!(right.clone().sync(&world).err(), Some(Refused::RolledBack));
    right.seen.manifest = Some(Mark { rev: world.manifests.rev(), envelope: Digest::ZERO });
    assert_eq!(right.sync(&world).err(), Some(Refused::Forked));
}

#[test]
fn a_fork_whose_lists_are_the_same() {
    // One side waits for a reply, the other has a new key; no item changes. A chain of lists alone would not tell.
    let (mut world, mut device, one, _) = story();
    let mut other = world.clone();
    world.rotate_chat(&one);
    other.ask(&one);
    device.sync(&world).unwrap();
    other.ask(&one);
    assert_eq!(device.sync(&other).err(), Some(Refused::Forked));
}

#[test]
fn a_trail_that_does_not_lead_there() {
    let (mut world, device, one, _) = story();
    for words in ["d", "e", "f"] {
        world.say(&one, words);
    }
    let trail = |spoil: fn(&mut Trail)| {
        let mut sent = world.send(&device);
        spoil(&mut sent.chats.get_mut(&one).unwrap().0.trail);
        device.clone().take(&sent).err()
    };
    assert_eq!(trail(|_| ()), None);
    assert_eq!(trail(|trail| trail.steps.truncate(2)), Some(Refused::Forked));
    assert_eq!(trail(|trail| trail.steps.rotate_left(1)), Some(Refused::Forked));
    assert_eq!(trail(|trail| trail.steps.swap(0, 1)), Some(Refused::Forked));
    assert_eq!(trail(|trail| trail.chain = Digest::ZERO), Some(Refused::Forked));
    assert_eq!(trail(|trail| trail.steps[0].envelope = Digest::ZERO), Some(Refused::Forked));
    assert_eq!(trail(|trail| *trail = Trail::NONE), Some(Refused::Forked));
}

#[test]
fn rings_with_gaps_forks_and_foreign_keys() {
    let (mut world, device, one, two) = story();
    world.rotate_chat(&one);
    world.rotate_chat(&one);
    let ring = |spoil: &dyn Fn(&mut Vec<Entry>)| {
        both(&device, |sent| spoil(&mut sent.chats.get_mut(&one).unwrap().0.ring), &world)
    };
    assert_eq!(ring(&|_| ()), (None, None));
    assert_eq!(ring(&|rows| rows.reverse()), (None, None), "rows may come in any order");
    assert_eq!(ring(&|rows| rows.clear()), everyone(Refused::RingGap));
    assert_eq!(ring(&|rows| drop(rows.remove(0))), everyone(Refused::RingGap));
    assert_eq!(ring(&|rows| drop(rows.remove(1))), everyone(Refused::RingGap));
    assert_eq!(ring(&|rows| drop(rows.pop())), everyone(Refused::RingForked), "the newest entry kept back");
    assert_eq!(ring(&|rows| rows.push(rows[2].clone())), everyone(Refused::RingForked));
    assert_eq!(ring(&|rows| rows[1].kid = rows[0].kid), everyone(Refused::KeyRefused));
    assert_eq!(ring(&|rows| rows[1].subs.swap(0, 1)), everyone(Refused::KeyRefused));
    assert_eq!(ring(&|rows| rows[1].subs.truncate(2)), everyone(Refused::KeyRefused));
    let elsewhere = world.chats[&two].ring[0].clone();
    assert_eq!(ring(&|rows| rows[0] = elsewhere.clone()), everyone(Refused::KeyRefused));
    // An entry that nobody's head names.
    let ahead = world.ck(&one).append(&world.ak, &world.account, RingOf::Chat(&one), &Key::random());
    assert_eq!(ring(&|rows| rows.push(ahead.clone())), everyone(Refused::RingForked));
}

#[test]
fn a_key_that_says_another_name() {
    let (world, _, one, _) = story();
    let (account, chat) = (world.account.clone(), one.as_str());
    let (key, named) = (Key::from_bytes([5; 32]), Key::from_bytes([6; 32]));
    let entry = |generation: u32, born: u32, suite: Suite| {
        let object = format!("1:{}", named.kid());
        let context = Context {
            purpose: "key",
            owner: account.as_str(),
            container: chat,
            object: &object,
            field: "chat",
        };
        let inside = if suite == Suite::Aes256Gcm && born == 1 && generation == 1 { &key } else { &named };
        let data = [&inside.dangerously_expose_bytes()[..], &born.to_be_bytes()].concat();
        let wrap = world.ak.key().derive("wrap");
        let sealed = seal_with_salt_insecure_for_testing(&wrap, suite, &context, generation, &data, &[1; 24]);
        let subs = ["msg", "meta", "embed"].map(|label| named.derive(label).kid()).to_vec();
        [Entry { n: 1, kid: named.kid(), subs, sealed }]
    };
    let open = |rows: &[Entry]| Ring::open(&world.ak, &account, RingOf::Chat(&one), rows).err();
    assert_eq!(open(&entry(1, 1, Suite::Aes256Gcm)), Some(Refused::KeyRefused), "kid is another key's");
    assert_eq!(open(&entry(1, 1, Suite::ChaCha20Poly1305)), Some(Refused::KeyRefused), "suite 2");
    assert_eq!(open(&entry(1, 0, Suite::Aes256Gcm)), Some(Refused::KeyRefused), "born before the first");
    assert_eq!(open(&entry(1, 2, Suite::Aes256Gcm)), Some(Refused::KeyRefused), "born after this generation");
    assert_eq!(open(&entry(2, 2, Suite::Aes256Gcm)), Some(Refused::KeyRefused), "another generation");
    // A mailbox's row has no sub-keys to compare.
    let object = format!("1:{}", named.kid());
    let context =
        Context { purpose: "key", owner: account.as_str(), container: "", object: &object, field: "box" };
    let data = [&key.dangerously_expose_bytes()[..], &1_u32.to_be_bytes()].concat();
    let wrap = world.ak.key().derive("wrap");
    let sealed = seal_with_salt_insecure_for_testing(&wrap, Suite::Aes256Gcm, &context, 1, &data, &[1; 24]);
    let row = Entry { n: 1, kid: named.kid(), subs: vec![], sealed };
    assert_eq!(Ring::open(&world.ak, &account, RingOf::Box, &[row]).err(), Some(Refused::KeyRefused));
}

#[test]
fn a_retired_account_key() {
    let (mut world, mut device, one, _) = story();
    let before = world.clone();
    world.rotate();
    device.sync(&world).unwrap();
    // Who saw g + 1 refuses g, whole as it is.
    assert_eq!(device.clone().sync(&before).err(), Some(Refused::KeyRefused));
    // A row from before, among those of now.
    let row =
        |sent: &mut Sent| sent.chats.get_mut(&one).unwrap().0.ring[0] = before.chats[&one].ring[0].clone();
    assert_eq!(both(&device, row, &world), everyone(Refused::KeyRefused));
    let row = |sent: &mut Sent| sent.account.ring[0] = before.ring[0].clone();
    assert_eq!(both(&device, row, &world), everyone(Refused::KeyRefused));
    // The manifest and floors from before, which a lost device could have written.
    let manifest = |sent: &mut Sent| {
        sent.account.manifest = before.manifests.newest.clone().unwrap();
        sent.account.floors = before.floors.clone();
    };
    assert_eq!(both(&device, manifest, &world), (Some(Refused::RolledBack), Some(Refused::KeyRefused)));
    // The account's new key kept back.
    let short = |sent: &mut Sent| drop(sent.account.ring.pop());
    assert_eq!(both(&device, short, &world), everyone(Refused::RingForked));
    // A chat key of the old generation is not written under.
    assert!(world.ck(&one).writer().is_none());
    world.say(&one, "under a new key");
    assert_eq!(world.ck(&one).writer().map(|held| (held.n(), held.born())), Some((2, 2)));
    device.sync(&world).unwrap();
}

/// A lost device has every key of the generation before, and the server helps it.
#[test]
fn a_thief_with_the_keys_of_the_generation_before() {
    let (mut world, mut device, one, _) = story();
    let before = world.clone();
    world.rotate();
    device.sync(&world).unwrap();
    // The new entries kept back, and a manifest under the old key that names the new generation.
    let mut forged = world.clone();
    forged.ring.pop();
    forged.box_ring.pop();
    forged.box_pub = before.box_pub;
    forged.publish();
    assert_eq!(Device::default().sync(&forged).err(), Some(Refused::RingForked));
    assert_eq!(device.clone().sync(&forged).err(), Some(Refused::RingForked));
    // The same with the mailbox of now; and under the old key with the number of the new one.
    let mut forged = world.clone();
    forged.ring.pop();
    forged.publish();
    assert_eq!(Device::default().sync(&forged).err(), Some(Refused::RingForked));
    let mut forged = world.clone();
    forged.publish_under(1);
    assert_eq!(Device::default().sync(&forged).err(), Some(Refused::RingForked));
    let mut forged = world.clone();
    forged.box_ring.pop();
    forged.box_pub = before.box_pub;
    forged.publish();
    assert_eq!(Device::default().sync(&forged).err(), Some(Refused::RingForked), "the mailbox of before");
    // A head under the old chat key, which is the chat's newest until somebody writes.
    let mut forged = world.clone();
    forged.chats.get_mut(&one).unwrap().leaf = None;
    forged.write_under(&one, 1);
    assert_eq!(Device::default().sync(&forged).err(), Some(Refused::KeyRefused));
    assert_eq!(device.clone().sync(&forged).err(), Some(Refused::KeyRefused));
    // The same, in place of the newest head.
    let mut forged = world;
    let room = forged.chats.get_mut(&one).unwrap();
    room.heads.pop();
    room.leaf = None;
    forged.write_under(&one, 1);
    assert_eq!(Device::default().sync(&forged).err(), Some(Refused::Forked));
    assert_eq!(device.sync(&forged).err(), Some(Refused::Forked));
}

#[test]
fn keys_of_a_chat_that_are_not_the_newest() {
    let (mut world, device, one, _) = story();
    let before = world.clone();
    world.rotate_chat(&one);
    let mut forged = world.clone();
    forged.write_under(&one, 1);
    assert_eq!(
        device.clone().sync(&forged).err(),
        Some(Refused::RingForked),
        "an older key than the head names"
    );
    // The first key was seen; now another one has its number.
    let row = Entry::seal(&world.ak, &world.account, RingOf::Chat(&one), 1, &Key::random(), 1);
    assert_ne!(row.kid, before.chats[&one].ring[0].kid);
    let other = |sent: &mut Sent| sent.chats.get_mut(&one).unwrap().0.ring[0] = row.clone();
    assert_eq!(both(&device, other, &world).0, Some(Refused::RingForked));
}

#[test]
fn a_head_that_does_not_pass_through_the_floor() {
    let (mut world, device, one, _) = story();
    let mut other = world.clone();
    world.say(&one, "left");
    let between = world.clone();
    world.say(&one, "left again");
    world.publish();
    for words in ["right", "right again", "and again"] {
        other.say(&one, words);
    }
    let chat = |from: &World| {
        let mut sent = world.send(&device);
        sent.chats.insert(one.clone(), from.send(&device).chats[&one].clone());
        device.clone().take(&sent).err()
    };
    assert_eq!(chat(&world), None);
    assert_eq!(chat(&between), Some(Refused::RolledBack), "newer than seen, older than the floor");
    assert_eq!(chat(&other), Some(Refused::Forked), "follows from what was seen, past the floor");
}

#[test]
fn an_older_envelope_in_a_newer_list() {
    let (mut world, mut device, one, _) = story();
    let before = world.clone();
    let leaf = world.chats[&one].leaf.clone().unwrap();
    world.edit(&one, &leaf, "newer");
    world.publish();
    device.sync(&world).unwrap();
    let id = ItemId::Message(leaf);
    let item = |sent: &mut Sent| {
        let older = before.chats[&one].items[&id].clone();
        sent.chats.get_mut(&one).unwrap().1.insert(id.clone(), older);
    };
    assert_eq!(both(&device, item, &world), everyone(Refused::RecordRefused));
    let at = Shelf::of(&one).index();
    let floor = |sent: &mut Sent| sent.account.floors[at] = before.floors[at].clone();
    assert_eq!(both(&device, floor, &world), everyone(Refused::ListRefused));
}

#[test]
fn another_head_for_a_device_that_remembers_nothing() {
    let (mut world, _, one, _) = story();
    let mut other = world.clone();
    world.say(&one, "left");
    world.publish();
    other.say(&one, "right");
    other.say(&one, "right again");
    let mut sent = world.send(&Device::default());
    let mut forked = other.send(&Device::default()).chats[&one].clone();
    for trail in
        [Trail::NONE, forked.0.trail.clone(), other.chats[&one].heads.trail(Some(&world.published[&one]))]
    {
        forked.0.trail = trail;
        sent.chats.insert(one.clone(), forked.clone());
        assert_eq!(Device::default().take(&sent).err(), Some(Refused::Forked));
    }
}

#[test]
fn account_key_wraps() {
    let account = AccountId::from_bits(&[1; 16]);
    let (kek, ak) = (Root::from_prf([3; 32]).kek(), AccountKey::first());
    let old = ak.wrap(&kek, &account, Wrap::Password, 3);
    let new = ak.wrap(&kek, &account, Wrap::Password, 7);
    let open = |wrap, sealed: Option<&Sealed>, seen| {
        AccountKey::open(&kek, &account, 1, wrap, sealed, SeenWrap { generation: 1, rev: seen })
            .map(|(_, rev)| rev)
    };
    assert_eq!(open(Wrap::Password, Some(&new), 7), Ok(7));
    assert_eq!(open(Wrap::Password, Some(&old), 7), Err(Refused::RolledBack), "from before a change");
    assert_eq!(open(Wrap::Recovery, Some(&new), 7), Err(Refused::KeyRefused));
    assert_eq!(open(Wrap::Password, None, 7), Err(Refused::AccountMissing), "no account key, make one");
    let other = AccountKey::open(&kek, &account, 2, Wrap::Password, Some(&new), SeenWrap::default());
    assert_eq!(other.err(), Some(Refused::KeyRefused), "another generation");
    let seen = SeenWrap { generation: 2, rev: 9 };
    let older = AccountKey::open(&kek, &account, 1, Wrap::Password, Some(&new), seen);
    assert_eq!(older.err(), Some(Refused::KeyRefused), "who saw g + 1 refuses g");
    let context =
        Context { purpose: "key", owner: account.as_str(), container: "", object: "account:1", field: "pw" };
    let suite_2 =
        seal_with_salt_insecure_for_testing(&kek, Suite::ChaCha20Poly1305, &context, 7, &[1; 32], &[1; 24]);
    assert_eq!(open(Wrap::Password, Some(&suite_2), 7), Err(Refused::KeyRefused), "suite 2");
}

#[test]
fn another_mailbox_key() {
    let (mut world, device, ..) = story();
    let evil = BoxKey::from_key(&Key::from_bytes([9; 32])).public_key();
    let public = |sent: &mut Sent| sent.account.box_pub = evil;
    assert_eq!(both(&device, public, &world), everyone(Refused::BoxRefused));
    let mut written = world.clone();
    written.box_pub = evil;
    written.publish();
    assert_eq!(Device::default().sync(&written).err(), Some(Refused::BoxRefused), "not that of the ring");
    let before = world.clone();
    world.rotate();
    let row = |sent: &mut Sent| {
        sent.account.box_ring.pop();
        sent.account.box_pub = before.box_pub;
    };
    assert_eq!(both(&device, row, &world), everyone(Refused::RingForked));
}

#[test]
fn records_that_are_not_what_the_list_says() {
    let (mut world, device, one, _) = story();
    let first = world.chats[&one].items.keys().find(|id| matches!(id, ItemId::Message(_))).unwrap().clone();
    // Authentic, listed, and not a record; only a broken client writes these.
    for bad in ["{}", "[]", r#"{"v":1,"v":1}"#, "\u{0}"] {
        let mut world = world.clone();
        world.put(&one, &first, bad.as_bytes());
        world.write(&one);
        assert_eq!(device.clone().sync(&world).err(), Some(Refused::RecordRefused), "{bad}");
    }
    let lost = message(Role::User, Some(MessageId::from_bits(&[0xee; 16])), "x");
    let mut orphaned = world.clone();
    orphaned.put(&one, &first, &lost.to_json());
    orphaned.write(&one);
    assert_eq!(device.clone().sync(&orphaned).err(), Some(Refused::ParentMissing));
    let ItemId::Message(id) = &first else { unreachable!() };
    let mut circle = world.clone();
    circle.put(&one, &first, &message(Role::User, Some(id.clone()), "x").to_json());
    circle.write(&one);
    assert_eq!(device.clone().sync(&circle).err(), Some(Refused::ParentMissing));
    // An older revision of an item, listed by a head that follows.
    let older = world.chats[&one].items[&first].clone();
    world.edit(&one, id, "newer");
    let mut device = device;
    device.sync(&world).unwrap();
    world.chats.get_mut(&one).unwrap().items.insert(first, older);
    world.write(&one);
    assert_eq!(device.sync(&world).err(), Some(Refused::RolledBack));
}

#[test]
fn letters_nobody_asked_for() {
    let (world, _, one, two) = story();
    let account = Account::open(
        &world.account,
        &world.ak,
        &world.send(&Device::default()).account,
        &SeenAccount::default(),
    );
    let account = account.unwrap();
    let sent = world.send(&Device::default());
    let chat = Chat::open(&account, &one, Some(&sent.chats[&one].0), &SeenChat::default()).unwrap();
    let pending = chat.head().pending[0].clone();
    let letter = Letter { account: &world.account, chat: &one, reply: &pending.reply, turn: &pending.turn };
    let reply = message(Role::Assistant, Some(pending.parent.clone()), "hello");
    let wire = letter.seal(&world.box_pub, &reply).unwrap();
    let open =
        |letter: &Letter<'_>, list: &List, wire: &[u8]| letter.open(account.boxes(), chat.head(), list, wire);
    assert_eq!(open(&letter, chat.list(), &wire), Ok(reply.clone()));
    let mut list = chat.list().clone();
    list.insert(ItemId::Message(pending.reply.clone()), Digest::ZERO);
    assert_eq!(open(&letter, &list, &wire), Err(Refused::Duplicate), "it comes twice");
    let (stranger, turn) = (MessageId::from_bits(&[7; 16]), TurnId::from_bits(&[7; 16]));
    let unasked = [Letter { reply: &stranger, ..letter }, Letter { turn: &turn, ..letter }];
    for letter in unasked {
        let wire = letter.seal(&world.box_pub, &reply).unwrap();
        assert_eq!(open(&letter, chat.list(), &wire), Err(Refused::Unasked));
    }
    let elsewhere = message(Role::Assistant, Some(stranger.clone()), "hello");
    let to = |message: &Message| letter.seal(&world.box_pub, message).unwrap();
    assert_eq!(open(&letter, chat.list(), &to(&elsewhere)), Err(Refused::Unasked), "another parent");
    let user = message(Role::User, Some(pending.parent.clone()), "hello");
    assert_eq!(open(&letter, chat.list(), &to(&user)), Err(Refused::RecordRefused), "in the person's name");
    let moved = Letter { chat: &two, ..letter }.seal(&world.box_pub, &reply).unwrap();
    assert_eq!(open(&letter, chat.list(), &moved), Err(Refused::RecordRefused), "from another chat");
    let zero = [&[0; 32], &wire[32..]].concat();
    assert_eq!(open(&letter, chat.list(), &zero), Err(Refused::RecordRefused), "an all-zero secret");
    assert_eq!(letter.seal(&PublicKey::from_bytes([0; 32]), &reply), Err(Refused::RecordRefused));
    for len in [0, 31, 32, 33, wire.len() - 1] {
        assert_eq!(open(&letter, chat.list(), &wire[..len]), Err(Refused::RecordRefused), "{len}");
    }
    // What came after the reply is waited for with it, and is no reply.
    let text = Text { v: 1, body: "suggestions".to_owned() };
    let more = letter.seal_more(&world.box_pub, &text).unwrap();
    let open_more = |letter: &Letter<'_>, wire: &[u8]| letter.open_more(account.boxes(), chat.head(), wire);
    assert_eq!(open_more(&letter, &more), Ok(text.clone()));
    assert_eq!(open_more(&letter, &wire), Err(Refused::RecordRefused), "a reply is not what came after it");
    assert_eq!(open(&letter, chat.list(), &more), Err(Refused::RecordRefused), "nor the other way round");
    for letter in unasked {
        let wire = letter.seal_more(&world.box_pub, &text).unwrap();
        assert_eq!(open_more(&letter, &wire), Err(Refused::Unasked));
    }
    let moved = Letter { chat: &two, ..letter }.seal_more(&world.box_pub, &text).unwrap();
    assert_eq!(open_more(&letter, &moved), Err(Refused::RecordRefused), "from another chat");
    assert_eq!(letter.seal_more(&PublicKey::from_bytes([0; 32]), &text), Err(Refused::RecordRefused));
}

#[test]
fn pairing_through_a_server_that_lies() {
    let (world, device, ..) = story();
    let (origin, far) =
        (Origin::parse("https://a.example").unwrap(), Origin::parse("https://b.example").unwrap());
    let secret = PairingSecret::random();
    let pairing = Pairing { secret: &secret, origin: &origin, account: &world.account };
    let (new, mark) = (NewDevice::random(), device.seen.manifest.unwrap());
    let wire = pairing.send(&new.public_key(), &world.ak, &mark).unwrap();
    let (ak, seen) = pairing.receive(&new, 1, &wire).unwrap();
    assert!(ak == world.ak);
    let mut paired = Device { seen, ..Device::default() };
    paired.sync(&world).unwrap();
    let refused = |pairing: &Pairing<'_>, new: &NewDevice, generation: u32, wire: &[u8]| {
        assert_eq!(pairing.receive(new, generation, wire).err(), Some(Refused::PairRefused));
    };
    refused(&pairing, &new, 2, &wire);
    refused(&pairing, &NewDevice::random(), 1, &wire);
    refused(&Pairing { origin: &far, ..pairing }, &new, 1, &wire);
    refused(&Pairing { account: &AccountId::random(), ..pairing }, &new, 1, &wire);
    refused(&Pairing { secret: &PairingSecret::random(), ..pairing }, &new, 1, &wire);
    refused(&pairing, &new, 1, &[&[0; 32], &wire[32..]].concat());
    refused(&pairing, &new, 1, &wire[..wire.len() - 1]);
    refused(&pairing, &new, 1, &[]);
    assert!(pairing.send(&PublicKey::from_bytes([0; 32]), &world.ak, &mark).is_err());
    // AK′ of the server, which has N and O of its own, and not r.
    let guess = PairingSecret::from_bytes([0; 16]);
    let evil = Pairing { secret: &guess, ..pairing };
    let wire = evil.send(&new.public_key(), &AccountKey::first(), &mark).unwrap();
    refused(&pairing, &new, 1, &wire);
    let own = Key::from_bytes([1; 32]);
    let keys =
        [pairing, evil].map(|pairing| pairing_key_insecure_for_testing(&pairing, &own, &new.public_key()));
    assert!(keys[0] != keys[1]);
}

#[test]
fn a_paired_device_is_not_shown_an_older_account() {
    let (mut world, device, one, _) = story();
    let before = world.clone();
    world.say(&one, "d");
    world.publish();
    let mut old = device;
    old.sync(&world).unwrap();
    let mut paired = Device { seen: old.seen.clone(), ..Device::default() };
    assert_eq!(paired.clone().sync(&before).err(), Some(Refused::RolledBack));
    // Revisions after the pairing lead from the mark that came with it, though the device never saw that manifest.
    world.publish();
    world.publish();
    assert_eq!(paired.sync(&world), Ok(()));
}

#[test]
fn an_early_commit_of_a_rotation() {
    let (mut world, _, one, two) = story();
    let staged = world.digest();
    assert_eq!(check_commit((4, &staged), (4, &world.digest())), Ok(()));
    assert_eq!(
        check_commit((4, &staged), (5, &world.digest())),
        Err(Refused::Conflict),
        "the account changed"
    );
    world.rotate_chat(&one);
    assert_eq!(check_commit((4, &staged), (4, &world.digest())), Err(Refused::Conflict), "a ring grew");
    world.delete(&two);
    assert_ne!(staged, world.digest());
    // A ring that is not whole is not carried over.
    let (old, new) = (world.ak.clone(), world.ak.next().unwrap());
    let stage = |rows: &[Entry]| restage(&old, &new, &world.account, RingOf::Chat(&one), rows).err();
    assert_eq!(stage(&world.chats[&one].ring[1..]), Some(Refused::RingGap));
    let entry = &world.chats[&one].ring[1];
    assert_eq!(check_append(1, entry), Ok(()));
    assert_eq!(check_append(2, entry), Err(Refused::Conflict), "two devices append");
}

#[test]
fn a_proof_moved_to_another_chat_branch_message_or_kind() {
    let key = Key::from_bytes([4; 32]);
    let (one, two) = (ChatId::from_bits(&[1; 16]), ChatId::from_bits(&[2; 16]));
    let [ask, answer, other] = [1, 2, 3].map(|at| MessageId::from_bits(&[at; 16]));
    let question = Transcript::start().then(TranscriptKind::User, "may I?");
    let proof =
        question.then(TranscriptKind::Assistant, "yes").prove(&key, &one, &answer, TranscriptKind::Assistant);
    let kinds = |chat: &ChatId,
                 asked: &str,
                 id: &MessageId,
                 kind: TranscriptKind,
                 text: &str,
                 proof: Option<&Digest>| {
        let branch = [
            Said { id: &ask, kind: TranscriptKind::User, text: asked, proof: None, sums_up: None },
            Said { id, kind, text, proof, sums_up: None },
        ];
        adopt(&key, chat, Transcript::start(), branch).0[1]
    };
    let says = TranscriptKind::Assistant;
    assert_eq!(kinds(&one, "may I?", &answer, says, "yes", Some(&proof)), says);
    for quoted in [
        kinds(&two, "may I?", &answer, says, "yes", Some(&proof)),
        kinds(&one, "must I?", &answer, says, "yes", Some(&proof)),
        kinds(&one, "may I?", &other, says, "yes", Some(&proof)),
        kinds(&one, "may I?", &answer, TranscriptKind::Tool, "yes", Some(&proof)),
        kinds(&one, "may I?", &answer, TranscriptKind::Summary, "yes", Some(&proof)),
        kinds(&one, "may I?", &answer, says, "yes!", Some(&proof)),
        kinds(&one, "may I?", &answer, says, "yes", None),
        kinds(&one, "may I?", &answer, TranscriptKind::Quoted, "yes", Some(&proof)),
    ] {
        assert_eq!(quoted, TranscriptKind::Quoted);
    }
    // What was quoted stays quoted for what follows, and the place is the same from the root and from the middle.
    let said = Said { id: &answer, kind: says, text: "yes", proof: None, sums_up: None };
    let (_, at) = adopt(&key, &one, Transcript::resume(*question.digest()), [said]);
    assert_eq!(at, question.then(TranscriptKind::Quoted, "yes"));
}

#[test]
fn a_summary_takes_the_place_of_the_words_that_it_is_about_and_of_no_others() {
    let (key, chat) = (Key::from_bytes([4; 32]), ChatId::from_bits(&[1; 16]));
    let [ask, answer, sums, later] = [1, 2, 3, 4].map(|at| MessageId::from_bits(&[at; 16]));
    let (asks, says) = (TranscriptKind::User, TranscriptKind::Assistant);
    let question = Transcript::start().then(asks, "may I?");
    let answered = question.then(says, "yes");
    let proof = answered.prove(&key, &chat, &answer, says);
    let kind = TranscriptKind::Summary;
    let of_sums = answered.then(kind, "They may.").prove(&key, &chat, &sums, kind);
    let after = answered.then(asks, "and now?").then(says, "go").prove(&key, &chat, &later, says);
    let line = |id, kind, text, proof| Said { id, kind, text, proof, sums_up: None };
    let before = || [line(&ask, asks, "may I?", None), line(&answer, says, "yes", Some(&proof))];
    let behind = || [line(&ask, asks, "and now?", None), line(&later, says, "go", Some(&after))];
    let summary = |text, place| Said { sums_up: Some(place), ..line(&sums, kind, text, Some(&of_sums)) };
    let adopted = |chat: &ChatId, branch: Vec<Said<'_>>| adopt(&key, chat, Transcript::start(), branch);
    // In the place of the words, and beside them: what follows is proved all the same.
    let end = answered.then(asks, "and now?").then(says, "go");
    let (kinds, at) = adopted(&chat, [summary("They may.", answered)].into_iter().chain(behind()).collect());
    assert_eq!((kinds, at), (vec![kind, asks, says], end));
    let all = before().into_iter().chain([summary("They may.", answered)]).chain(behind()).collect();
    assert_eq!(adopted(&chat, all), (vec![asks, says, kind, asks, says], end));
    // Other words, another place that it is to be about, another chat; and with it everything that follows.
    let other = ChatId::from_bits(&[2; 16]);
    for (chat, forged) in [
        (&chat, summary("They must.", answered)),
        (&chat, summary("They may.", question)),
        (&other, summary("They may.", answered)),
        (&chat, Said { kind: says, ..summary("They may.", answered) }),
    ] {
        let (kinds, _) = adopted(chat, [forged].into_iter().chain(behind()).collect());
        assert_eq!(kinds, [TranscriptKind::Quoted, asks, TranscriptKind::Quoted]);
    }
    // Moved behind what followed.
    let moved = before().into_iter().chain(behind()).chain([summary("They may.", answered)]).collect();
    assert_eq!(adopted(&chat, moved).0, [asks, says, asks, says, TranscriptKind::Quoted]);
}

#[test]
fn a_thief_without_the_chat_key_cannot_claim_a_history() {
    let (world, _, one, two) = story();
    let [a, b, c] = [1, 2, 3].map(|at| MessageId::from_bits(&[at; 16]));
    let (ck, other) = (world.ck(&one), world.ck(&two));
    let claim = |ring: &Ring, branch: &[(MessageId, u32)]| Claim::new(ring.newest(), branch, (&b, 1), &c);
    let base = claim(&ck, &[(a.clone(), 1)]);
    assert_eq!(base.count, 1);
    assert_eq!(claim(&ck, &[(a.clone(), 1)]), base);
    assert_ne!(claim(&ck, &[(a.clone(), 2)]).before, base.before, "an edit");
    assert_ne!(claim(&other, &[(a.clone(), 1)]).before, base.before, "another chat's key");
    let next = [(a, 1), (b.clone(), 1), (c, 1)];
    assert_eq!(history(ck.newest(), next.iter().map(|(id, rev)| (id, *rev))), base.after);
}
