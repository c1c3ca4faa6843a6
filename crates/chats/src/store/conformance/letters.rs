//! Laws about letters and safety rows.

use confidant_chat_format::{ChatId, ItemId, MessageId, TurnId};
use confidant_seal::{Context, Key, Sealed, Suite, seal};

use super::super::*;
use super::Fresh;
use super::device::{Device, Edit, NOW};

pub(crate) fn letter_of(ana: &Device, chat: &ChatId, text: &str) -> PutLetter {
    PutLetter {
        account: ana.id.clone(),
        chat: chat.clone(),
        turn: TurnId::random(),
        reply: MessageId::random(),
        letter: text.as_bytes().to_vec(),
        now: NOW,
    }
}

/// A row that the server has sealed.
pub(crate) fn row(rev: u32) -> Sealed {
    let context = Context { purpose: "safety", owner: "o", container: "c", object: "safety", field: "" };
    seal(&Key::random(), Suite::ChaCha20Poly1305, &context, rev, b"{}")
}

fn as_row(put: &PutLetter, more: Option<&[u8]>) -> LetterRow {
    LetterRow {
        chat: put.chat.clone(),
        turn: put.turn.clone(),
        reply: put.reply.clone(),
        letter: put.letter.clone(),
        more: more.map(<[u8]>::to_vec),
        left_at: put.now,
    }
}

pub(super) async fn a_letter_waits_until_it_is_taken(fresh: &Fresh) {
    let (store, other) = (&*fresh.store, &*fresh.other);
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 1).await;
    let seen = store.account(&ana.id).await.unwrap().seq;
    let put = letter_of(&ana, &chat, "the first answer");
    let (id, turn) = (&ana.id, &put.turn);
    assert_eq!(store.letter(id, &chat, turn).await, Ok(None));
    assert_eq!(store.put_letter(put.clone()).await, Ok(Kept::Now));
    // Whoever repeats the turn has another answer, and perhaps another id for it.
    let second = PutLetter { turn: turn.clone(), ..letter_of(&ana, &chat, "the second answer") };
    assert_eq!(other.put_letter(second).await, Ok(Kept::Before));
    assert_eq!(other.letter(id, &chat, turn).await, Ok(Some(as_row(&put, None))));
    let more = |text: &str| other.put_letter_more(id, &chat, turn, text.as_bytes().to_vec());
    assert_eq!(more("suggestions").await, Ok(Kept::Now));
    assert_eq!(more("others").await, Ok(Kept::Before));
    assert_eq!(store.letter(id, &chat, turn).await, Ok(Some(as_row(&put, Some(b"suggestions")))));
    assert_eq!(store.letters(id, None, 0).await, Ok(vec![as_row(&put, Some(b"suggestions"))]));
    assert_eq!(store.take_letter(id, &chat, turn).await, Ok(true));
    assert_eq!(other.take_letter(id, &chat, turn).await, Ok(false), "once more is no error");
    assert_eq!(store.letter(id, &chat, turn).await, Ok(None));
    assert_eq!(more("too late").await, Err(StoreError::NotFound));
    assert_eq!(store.letters(id, None, usize::MAX).await, Ok(vec![]));
    assert_eq!(store.account(&ana.id).await.unwrap().seq, seen, "a letter is not a change");
}

pub(super) async fn a_reply_that_was_stored_needs_no_letter(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let (chat, other) = (ana.create(store, 1).await, ana.create(store, 1).await);
    let reply = ana.chats[&chat].items.keys().find_map(|item| match item {
        ItemId::Message(id) => Some(id.clone()),
        _ => None,
    });
    let reply = reply.unwrap();
    let put = PutLetter { reply: reply.clone(), ..letter_of(&ana, &chat, "stored elsewhere") };
    assert_eq!(store.put_letter(put.clone()).await, Ok(Kept::Before));
    assert_eq!(store.letter(&ana.id, &chat, &put.turn).await, Ok(None));
    // Of another chat it says nothing.
    let elsewhere = PutLetter { chat: other.clone(), ..put.clone() };
    assert_eq!(store.put_letter(elsewhere).await, Ok(Kept::Now));
    // Deleted since: it does not come back by the mailbox.
    let remove = Edit { removes: vec![ItemId::Message(reply)], ..Edit::default() };
    ana.put(store, &chat, &remove).await.unwrap();
    assert_eq!(store.put_letter(put.clone()).await, Ok(Kept::Before));
    assert_eq!(store.letter(&ana.id, &chat, &put.turn).await, Ok(None));
}

pub(super) async fn letters_come_in_order_as_many_as_fit(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let chats = [ana.create(store, 1).await, ana.create(store, 1).await];
    let mut all = Vec::new();
    for at in 0..7 {
        let put = letter_of(&ana, &chats[at % 2], &"x".repeat(100 + at));
        store.put_letter(put.clone()).await.unwrap();
        all.push(as_row(&put, None));
    }
    all.sort_by_key(|row| (row.chat.clone(), row.turn.clone()));
    for bytes in [1, 250, 400, usize::MAX] {
        let (mut got, mut after) = (Vec::new(), None);
        loop {
            let page = store.letters(&ana.id, after, bytes).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some((last.chat.clone(), last.turn.clone()));
            let size: usize = page.iter().map(|row| row.letter.len()).sum();
            assert!(size <= bytes || page.len() == 1);
            got.extend(page);
        }
        assert!(got == all, "in pages of {bytes}");
    }
    // What was added counts.
    let first = &all[0];
    store.put_letter_more(&ana.id, &first.chat, &first.turn, vec![1; 300]).await.unwrap();
    assert_eq!(store.letters(&ana.id, None, 500).await.unwrap().len(), 1);
}

pub(super) async fn letters_are_their_accounts_and_go_with_their_chat(fresh: &Fresh) {
    let store = &*fresh.store;
    let (mut ana, mut bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    let (chat, kept) = (ana.create(store, 1).await, ana.create(store, 1).await);
    let theirs = bea.create(store, 1).await;
    let (put, stays) = (letter_of(&ana, &chat, "goes"), letter_of(&ana, &kept, "stays"));
    store.put_letter(put.clone()).await.unwrap();
    store.put_letter(stays.clone()).await.unwrap();
    for put in
        [letter_of(&bea, &chat, "x"), letter_of(&ana, &theirs, "x"), letter_of(&ana, &ChatId::random(), "x")]
    {
        assert_eq!(store.put_letter(put).await, Err(StoreError::NotFound));
    }
    assert_eq!(store.letter(&bea.id, &chat, &put.turn).await, Ok(None));
    assert_eq!(store.letters(&bea.id, None, usize::MAX).await, Ok(vec![]));
    assert_eq!(store.take_letter(&bea.id, &chat, &put.turn).await, Ok(false));
    let more = store.put_letter_more(&bea.id, &chat, &put.turn, vec![1]).await;
    assert_eq!(more, Err(StoreError::NotFound));
    let nobody = Device::new("nobody").id;
    assert_eq!(store.letters(&nobody, None, 1).await, Err(StoreError::NotFound));
    assert_eq!(store.letter(&nobody, &chat, &put.turn).await, Err(StoreError::NotFound));
    let (delete, after) = ana.deletion(&chat);
    store.delete_chat(delete).await.unwrap();
    ana = after;
    assert_eq!(store.letter(&ana.id, &chat, &put.turn).await, Ok(None));
    assert_eq!(store.take_letter(&ana.id, &chat, &put.turn).await, Ok(false));
    assert_eq!(store.put_letter(put).await, Err(StoreError::NotFound), "nothing comes back");
    assert_eq!(store.letters(&ana.id, None, usize::MAX).await, Ok(vec![as_row(&stays, None)]));
    assert_eq!(store.erase(&ana.id).await.unwrap().letters, 1);
    assert_eq!(store.letters(&ana.id, None, 1).await, Err(StoreError::NotFound));
    store.check().await.unwrap();
}

pub(super) async fn letters_are_limited_in_size_number_and_time(fresh: &Fresh) {
    let store = &*fresh.store;
    let (mut ana, mut bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    let (chat, theirs) = (ana.create(store, 1).await, bea.create(store, 1).await);
    let large = PutLetter { letter: vec![7; limits::LETTER_BYTES], ..letter_of(&ana, &chat, "") };
    let larger = PutLetter { letter: vec![7; limits::LETTER_BYTES + 1], ..letter_of(&ana, &chat, "") };
    assert_eq!(store.put_letter(larger).await, Err(StoreError::TooLarge("letter")));
    assert_eq!(store.put_letter(large.clone()).await, Ok(Kept::Now));
    let more = |bytes: usize| store.put_letter_more(&ana.id, &chat, &large.turn, vec![7; bytes]);
    assert_eq!(more(limits::MORE_BYTES + 1).await, Err(StoreError::TooLarge("addition to a letter")));
    assert_eq!(more(limits::MORE_BYTES).await, Ok(Kept::Now));
    let other = letter_of(&bea, &theirs, "another account's is as old");
    store.put_letter(other.clone()).await.unwrap();
    // One more than there may be: the oldest goes, and nobody else's.
    let mut newest = None;
    for at in 0..u64::from(limits::LETTERS) {
        let put = PutLetter { now: Millis(NOW.0 + 1 + at), ..letter_of(&ana, &chat, "x") };
        store.put_letter(put.clone()).await.unwrap();
        newest = Some(put);
    }
    assert_eq!(store.letter(&ana.id, &chat, &large.turn).await, Ok(None));
    let newest = newest.unwrap();
    let count = async || store.letters(&ana.id, None, usize::MAX).await.unwrap().len();
    assert_eq!(count().await, limits::LETTERS as usize);
    // What is there already takes no place.
    store.put_letter(newest.clone()).await.unwrap();
    assert_eq!(count().await, limits::LETTERS as usize);
    // A moment before, nothing has expired; then all but the newest.
    let over = Millis(newest.now.0 - 1).plus(limits::LETTER_LIFE);
    assert_eq!(store.expire(Millis(NOW.0 - 1).plus(limits::LETTER_LIFE)).await, Ok(0));
    assert_eq!(store.expire(over).await, Ok(u64::from(limits::LETTERS)), "999 of ana's, 1 of bea's");
    assert_eq!(store.letters(&ana.id, None, usize::MAX).await, Ok(vec![as_row(&newest, None)]));
    assert_eq!(store.letter(&bea.id, &theirs, &other.turn).await, Ok(None));
}

pub(super) async fn a_safety_row_is_compare_and_set_and_goes_with_its_chat(fresh: &Fresh) {
    let (store, other) = (&*fresh.store, &*fresh.other);
    let (mut ana, bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    let chat = ana.create(store, 1).await;
    let put = |expected, sealed: &Sealed| {
        let (account, sealed) = (ana.id.clone(), sealed.clone());
        store.put_safety(PutSafety { account, chat: chat.clone(), expected, sealed })
    };
    assert_eq!(store.safety(&ana.id, &chat).await, Ok(None));
    let (first, second) = (row(1), row(2));
    assert_eq!(put(0, &second).await.unwrap_err().name(), "malformed");
    assert_eq!(put(1, &second).await, Err(StoreError::Conflict { now: 0 }));
    assert_eq!(put(0, &first).await, Ok(()));
    assert_eq!(other.safety(&ana.id, &chat).await, Ok(Some(first.clone())));
    assert_eq!(put(0, &first).await, Err(StoreError::Conflict { now: 1 }));
    assert_eq!(put(1, &second).await, Ok(()));
    assert_eq!(put(1, &second).await, Err(StoreError::Conflict { now: 2 }), "of two, one counts again");
    assert_eq!(other.safety(&ana.id, &chat).await, Ok(Some(second)));
    let large = Sealed::from_bytes(vec![1; limits::SAFETY_BYTES + 1]);
    assert_eq!(put(2, &large).await, Err(StoreError::TooLarge("safety row")));
    assert_eq!(store.safety(&bea.id, &chat).await, Ok(None));
    let theirs = PutSafety { account: bea.id.clone(), chat: chat.clone(), expected: 0, sealed: first };
    assert_eq!(store.put_safety(theirs).await, Err(StoreError::NotFound));
    // Time does not end it; the chat does.
    store.expire(Millis(u64::MAX)).await.unwrap();
    assert!(store.safety(&ana.id, &chat).await.unwrap().is_some());
    let (delete, _) = ana.deletion(&chat);
    store.delete_chat(delete).await.unwrap();
    assert_eq!(store.safety(&ana.id, &chat).await, Ok(None));
}
