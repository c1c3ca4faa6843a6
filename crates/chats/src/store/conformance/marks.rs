//! Laws about marks of answers that are on their way.

use std::time::Duration;

use confidant_chat_format::{ChatId, TurnId};
use confidant_seal::Sealed;

use super::super::*;
use super::Fresh;
use super::device::{Device, NOW};
use super::letters::{letter_of, row};

pub(crate) fn mark_of(ana: &Device, chat: &ChatId) -> PutMark {
    PutMark {
        account: ana.id.clone(),
        chat: chat.clone(),
        turn: TurnId::random(),
        sealed: row(1),
        now: NOW,
        look_at: Millis(NOW.0 + 1000),
    }
}

fn as_row(put: &PutMark) -> MarkRow {
    let hold = Hold { held: true, look_at: put.look_at };
    MarkRow { asked_at: put.now, hold, sealed: put.sealed.clone() }
}

fn as_claimed(put: &PutMark) -> ClaimedMark {
    ClaimedMark {
        account: put.account.clone(),
        chat: put.chat.clone(),
        turn: put.turn.clone(),
        asked_at: put.now,
        sealed: put.sealed.clone(),
    }
}

const PAUSE: Pause = Pause { shortest: Duration::from_secs(10), longest: Duration::from_secs(100) };

fn later(seconds: u64) -> Millis {
    Millis(NOW.0).plus(Duration::from_secs(seconds))
}

pub(super) async fn a_mark_is_due_when_nobody_holds_it_any_more(fresh: &Fresh) {
    let (store, other) = (&*fresh.store, &*fresh.other);
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 1).await;
    let seen = store.account(&ana.id).await.unwrap().seq;
    let put = mark_of(&ana, &chat);
    let (id, turn) = (&ana.id, &put.turn);
    let hold = |held, look_at| store.hold_mark(id, &chat, turn, Hold { held, look_at });
    assert_eq!(store.mark(id, &chat, turn).await, Ok(None));
    assert_eq!(hold(true, later(9)).await, Ok(false));
    store.put_mark(put.clone()).await.unwrap();
    assert_eq!(other.mark(id, &chat, turn).await, Ok(Some(as_row(&put))));
    assert_eq!(other.claim_marks(NOW, PAUSE, 9).await, Ok(vec![]));
    // Asked again: it is new, but as old as it was.
    let again = PutMark { sealed: row(1), now: later(5), look_at: later(20), ..put.clone() };
    other.put_mark(again.clone()).await.unwrap();
    let marked = PutMark { now: NOW, ..again };
    assert_eq!(store.mark(id, &chat, turn).await, Ok(Some(as_row(&marked))));
    assert_eq!(hold(true, later(60)).await, Ok(true));
    assert_eq!(store.claim_marks(later(59), PAUSE, 9).await, Ok(vec![]));
    // Of two, one has it; both, after a pause that grows with its age.
    assert_eq!(store.claim_marks(later(60), PAUSE, 9).await, Ok(vec![as_claimed(&marked)]));
    assert_eq!(other.claim_marks(later(60), PAUSE, 9).await, Ok(vec![]));
    let hold_of = async || store.mark(id, &chat, turn).await.unwrap().unwrap().hold;
    assert_eq!(hold_of().await, Hold { held: false, look_at: later(75) });
    assert_eq!(other.claim_marks(later(4000), PAUSE, 9).await, Ok(vec![as_claimed(&marked)]));
    assert_eq!(hold_of().await, Hold { held: false, look_at: later(4100) });
    assert_eq!(hold(false, NOW).await, Ok(true));
    assert_eq!(store.claim_marks(later(4), PAUSE, 9).await, Ok(vec![as_claimed(&marked)]));
    assert_eq!(hold_of().await, Hold { held: false, look_at: later(14) });
    assert_eq!(other.drop_mark(id, &chat, turn).await, Ok(true));
    assert_eq!(store.drop_mark(id, &chat, turn).await, Ok(false));
    assert_eq!(store.claim_marks(Millis(u64::MAX >> 2), PAUSE, 9).await, Ok(vec![]));
    assert_eq!(store.account(&ana.id).await.unwrap().seq, seen, "a mark is not a change");
}

pub(super) async fn a_mark_goes_with_its_letter_its_answer_and_its_chat(fresh: &Fresh) {
    let store = &*fresh.store;
    let (mut ana, mut bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    let (chat, theirs) = (ana.create(store, 1).await, bea.create(store, 1).await);
    let put = mark_of(&ana, &chat);
    let (id, turn) = (&ana.id, &put.turn);
    let is_there = async || store.mark(id, &chat, turn).await.unwrap().is_some();
    store.put_mark(put.clone()).await.unwrap();
    let letter = PutLetter { turn: turn.clone(), ..letter_of(&ana, &chat, "the answer") };
    store.put_letter(letter.clone()).await.unwrap();
    assert!(!is_there().await, "in one step with the letter");
    // Asked again, though its letter waits: it goes by either way.
    store.put_mark(put.clone()).await.unwrap();
    assert_eq!(store.put_letter(letter).await, Ok(Kept::Before));
    assert!(!is_there().await);
    store.put_mark(put.clone()).await.unwrap();
    assert_eq!(store.take_letter(id, &chat, turn).await, Ok(true));
    assert!(!is_there().await, "a device has the answer");
    // Nobody else's.
    for put in [mark_of(&bea, &chat), mark_of(&ana, &theirs), mark_of(&ana, &ChatId::random())] {
        assert_eq!(store.put_mark(put).await, Err(StoreError::NotFound));
    }
    store.put_mark(put.clone()).await.unwrap();
    let hold = Hold { held: true, look_at: NOW };
    assert_eq!(store.mark(&bea.id, &chat, turn).await, Ok(None));
    assert_eq!(store.hold_mark(&bea.id, &chat, turn, hold).await, Ok(false));
    assert_eq!(store.drop_mark(&bea.id, &chat, turn).await, Ok(false));
    assert!(is_there().await);
    let (delete, _) = ana.deletion(&chat);
    store.delete_chat(delete).await.unwrap();
    assert!(!is_there().await);
    assert_eq!(store.put_mark(put).await, Err(StoreError::NotFound), "nothing comes back");
    let of_bea = mark_of(&bea, &theirs);
    store.put_mark(of_bea.clone()).await.unwrap();
    store.erase(&bea.id).await.unwrap();
    assert_eq!(store.claim_marks(later(9), PAUSE, 9).await, Ok(vec![]));
    assert_eq!(store.mark(&bea.id, &theirs, &of_bea.turn).await, Err(StoreError::NotFound));
    store.check().await.unwrap();
}

pub(super) async fn marks_are_limited_in_size_number_and_time(fresh: &Fresh) {
    let store = &*fresh.store;
    let (mut ana, mut bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    let (chat, theirs) = (ana.create(store, 1).await, bea.create(store, 1).await);
    let large = Sealed::from_bytes(vec![1; limits::MARK_BYTES + 1]);
    let larger = PutMark { sealed: large, ..mark_of(&ana, &chat) };
    assert_eq!(store.put_mark(larger).await, Err(StoreError::TooLarge("mark")));
    let (first, other) = (mark_of(&ana, &chat), mark_of(&bea, &theirs));
    store.put_mark(first.clone()).await.unwrap();
    store.put_mark(other.clone()).await.unwrap();
    // One more than there may be: the oldest goes, and nobody else's.
    for at in 0..u64::from(limits::MARKS) {
        let put = PutMark { now: Millis(NOW.0 + 1 + at), ..mark_of(&ana, &chat) };
        store.put_mark(put).await.unwrap();
    }
    assert_eq!(store.mark(&ana.id, &chat, &first.turn).await, Ok(None));
    assert!(store.mark(&bea.id, &theirs, &other.turn).await.unwrap().is_some());
    // Some at a time, each once.
    let mut claimed = 0;
    loop {
        match store.claim_marks(later(5), PAUSE, 300).await.unwrap().len() {
            0 => break,
            some => claimed += some,
        }
    }
    assert_eq!(claimed, limits::MARKS as usize + 1);
    assert_eq!(store.expire(Millis(NOW.0 - 1).plus(limits::LETTER_LIFE)).await, Ok(0));
    let over = later(5).plus(limits::LETTER_LIFE);
    assert_eq!(store.expire(over).await, Ok(u64::from(limits::MARKS) + 1));
    assert_eq!(store.mark(&bea.id, &theirs, &other.turn).await, Ok(None));
}
