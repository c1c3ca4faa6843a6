//! Honest histories always verify; whatever is dropped, replayed, swapped or edited is refused by name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod world;

use confidant_chat_format::*;
use confidant_seal::Sealed;
use proptest::prelude::*;
use world::{Device, Sent, World};

#[derive(Debug, Clone)]
enum Act {
    Create,
    Say(usize),
    Edit(usize),
    Unsay(usize),
    Title(usize),
    Ask(usize),
    Delete(usize),
    RotateChat(usize),
    Rotate,
    Publish,
    Sync(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        2 => Just(Act::Create),
        6 => any::<usize>().prop_map(Act::Say),
        2 => any::<usize>().prop_map(Act::Edit),
        1 => any::<usize>().prop_map(Act::Unsay),
        2 => any::<usize>().prop_map(Act::Title),
        1 => any::<usize>().prop_map(Act::Ask),
        1 => any::<usize>().prop_map(Act::Delete),
        1 => any::<usize>().prop_map(Act::RotateChat),
        1 => Just(Act::Rotate),
        2 => Just(Act::Publish),
        4 => any::<usize>().prop_map(Act::Sync),
    ];
    prop::collection::vec(act, 1..14)
}

/// Carries one act out. Every device that syncs must accept.
fn run(world: &mut World, devices: &mut [Device], act: &Act) {
    let pick = |at: usize| world.chats.keys().nth(at % world.chats.len().max(1)).cloned();
    match *act {
        Act::Create => {
            world.create();
        }
        Act::Rotate => world.rotate(),
        Act::Publish => world.publish(),
        Act::Sync(at) => {
            let at = at % devices.len();
            assert_eq!(devices[at].sync(world), Ok(()));
        }
        Act::Say(at)
        | Act::Edit(at)
        | Act::Unsay(at)
        | Act::Title(at)
        | Act::Ask(at)
        | Act::Delete(at)
        | Act::RotateChat(at) => {
            let Some(chat) = pick(at) else { return };
            let leaf = world.chats[&chat].leaf.clone();
            match (act, leaf) {
                (Act::Say(_), _) => drop(world.say(&chat, "hello")),
                (Act::Title(_), _) => world.title(&chat, "a title"),
                (Act::Delete(_), _) => world.delete(&chat),
                (Act::RotateChat(_), _) => world.rotate_chat(&chat),
                (Act::Edit(_), Some(leaf)) => world.edit(&chat, &leaf, "changed"),
                (Act::Unsay(_), Some(_)) => world.unsay(&chat, None),
                (Act::Ask(_), Some(_)) => drop(world.ask(&chat)),
                _ => {}
            }
        }
    }
}

/// Every envelope that was sent, in one order.
fn envelopes(sent: &mut Sent) -> Vec<&mut Sealed> {
    let account = &mut sent.account;
    let rows = account.ring.iter_mut().chain(&mut account.box_ring).map(|row| &mut row.sealed);
    let mut all: Vec<&mut Sealed> = rows.chain([&mut account.manifest]).chain(&mut account.floors).collect();
    for (chat, items) in sent.chats.values_mut() {
        all.extend(chat.ring.iter_mut().map(|row| &mut row.sealed));
        all.push(&mut chat.head);
        all.extend(items.values_mut());
    }
    all
}

/// Leaves one thing out; false if there is no such thing.
fn leave_out(sent: &mut Sent, what: usize, which: usize) -> bool {
    fn cut<T>(list: &mut Vec<T>, which: usize) -> bool {
        !list.is_empty() && {
            list.remove(which % list.len());
            true
        }
    }
    let chats = sent.chats.len();
    let chat = sent.chats.keys().nth(which % chats.max(1)).cloned();
    match (what % 7, chat) {
        (0, _) => cut(&mut sent.account.ring, which),
        (1, _) => cut(&mut sent.account.box_ring, which),
        (2, _) => cut(&mut sent.account.floors, which),
        (3, Some(chat)) => sent.chats.remove(&chat).is_some(),
        (4, Some(chat)) => sent.chats.get_mut(&chat).is_some_and(|(sent, _)| cut(&mut sent.ring, which)),
        (5, Some(chat)) => sent.chats.get_mut(&chat).is_some_and(|(sent, _)| cut(&mut sent.list, which)),
        (6, Some(chat)) => sent.chats.get_mut(&chat).is_some_and(|(_, items)| items.pop_first().is_some()),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn honest_histories_verify_for_old_and_new_devices(acts in acts()) {
        let (mut world, mut devices) = (World::new(), vec![Device::default(); 3]);
        for act in &acts {
            run(&mut world, &mut devices, act);
        }
        for device in devices.iter_mut().chain([&mut Device::default()]) {
            prop_assert_eq!(device.sync(&world), Ok(()));
        }
    }

    #[test]
    fn an_edited_envelope_is_refused(acts in acts(), which: usize, at: usize, bit in 0..8_u8) {
        let (mut world, mut devices) = (World::new(), vec![Device::default(); 2]);
        acts.iter().for_each(|act| run(&mut world, &mut devices, act));
        for mut device in devices {
            let mut sent = world.send(&device);
            let mut all = envelopes(&mut sent);
            let count = all.len();
            let sealed = &mut all[which % count];
            let mut bytes = sealed.as_bytes().to_vec();
            let len = bytes.len();
            bytes[at % len] ^= 1 << bit;
            **sealed = Sealed::from_bytes(bytes);
            prop_assert!(device.take(&sent).is_err());
        }
    }

    #[test]
    fn two_swapped_envelopes_are_refused(acts in acts(), one: usize, other: usize) {
        let (mut world, mut devices) = (World::new(), vec![Device::default(); 2]);
        acts.iter().for_each(|act| run(&mut world, &mut devices, act));
        let mut sent = world.send(&devices[0]);
        let mut all = envelopes(&mut sent);
        let (one, other) = (one % all.len(), other % all.len());
        if one != other {
            let kept = all[one].clone();
            *all[one] = all[other].clone();
            *all[other] = kept;
            prop_assert!(devices[0].take(&sent).is_err());
        }
    }

    #[test]
    fn a_replayed_envelope_is_refused(before in acts(), after in acts(), which: usize) {
        let (mut world, mut devices) = (World::new(), vec![Device::default(); 1]);
        before.iter().for_each(|act| run(&mut world, &mut devices, act));
        let mut old = world.send(&devices[0]);
        after.iter().for_each(|act| run(&mut world, &mut devices, act));
        let mut sent = world.send(&devices[0]);
        // The same place, where both states have it: the account's, before anything grew.
        let mut olds = vec![&mut old.account.manifest];
        olds.extend(&mut old.account.floors);
        let mut news = vec![&mut sent.account.manifest];
        news.extend(&mut sent.account.floors);
        let at = which % olds.len();
        if *olds[at] != *news[at] {
            *news[at] = olds[at].clone();
            prop_assert!(devices[0].take(&sent).is_err());
        }
        let mut sent = world.send(&devices[0]);
        for (chat, (old, items)) in &old.chats {
            let Some((new, now)) = sent.chats.get_mut(chat) else { continue };
            let kept = (new.clone(), now.clone());
            // A head alone that differs, because what was added was taken away again, is no mixture: it is the older
            // state, which only a floor or a device's memory refuses (`an_older_state` in malicious.rs).
            let mixture = (&old.list, &old.ring) != (&new.list, &new.ring);
            if old.head != new.head && mixture {
                new.head = old.head.clone();
                let refused = devices[0].clone().take(&sent);
                prop_assert!(refused.is_err());
                *sent.chats.get_mut(chat).unwrap() = kept.clone();
            }
            for (id, sealed) in items {
                let now = &mut sent.chats.get_mut(chat).unwrap().1;
                if now.get(id).is_some_and(|now| now != sealed) {
                    now.insert(id.clone(), sealed.clone());
                    prop_assert_eq!(devices[0].clone().take(&sent), Err(Refused::RecordRefused));
                    *sent.chats.get_mut(chat).unwrap() = kept.clone();
                }
            }
        }
    }

    #[test]
    fn whatever_is_left_out_is_missed(acts in acts(), what: usize, which: usize) {
        let (mut world, mut devices) = (World::new(), vec![Device::default(); 2]);
        acts.iter().for_each(|act| run(&mut world, &mut devices, act));
        for mut device in devices {
            let mut sent = world.send(&device);
            if leave_out(&mut sent, what, which) {
                prop_assert!(device.take(&sent).is_err());
            }
        }
    }
}
