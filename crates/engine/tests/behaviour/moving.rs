//! Moving to another store and back: everything is there, sealed as it was, and receipts still hold.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use confidant_engine::access::Role;
use confidant_engine::clock::{Clock as _, ManualClock, Millis, SystemClock};
use confidant_engine::rights::Receipt;
use confidant_engine::storage::{Copied, copy};
use confidant_engine::{
    Actor, Engine, Lifetimes, OpenError, Parts, Recovered, Settings, Storage, TenantId, UserId,
};

use crate::rig::*;

on_every_store! {
    a_copy_is_the_same_and_so_is_one_of_it,
    a_copy_that_is_cut_off_goes_on,
    a_copy_is_refused_where_it_would_mix,
    a_finished_copy_that_is_repeated_says_that_it_is_complete,
    a_copy_leaves_behind_what_is_over,
    what_is_over_since_a_copy_was_cut_off_stays_behind,
    a_copy_is_done_only_if_nobody_worked_meanwhile,
}

async fn opened(storage: &Storage) -> Result<Engine, OpenError> {
    Engine::open(Parts::new(storage.clone(), keys(&[1]), Recorder::new() as _)).await
}

/// Sessions of every kind: short, folded, erased, with a turn that was cut off.
async fn fill(storage: &Storage) -> Receipt {
    let model = Recorder::new();
    let mut settings = Settings::default();
    settings.history.max_messages = 10;
    let parts = Parts { settings, ..Parts::new(storage.clone(), keys(&[1]), Arc::clone(&model) as _) };
    let engine = Engine::open(parts).await.unwrap();
    for user in 0..6 {
        for i in 0..(1 + user * 6) {
            session(&engine, &id(user)).turn(says(&format!("q{i}"))).finish().await.unwrap();
        }
    }
    let admin = engine.dangerously_administer(Actor::cli());
    let user = Role::User(UserId::new("u1").unwrap());
    admin.new_token(&TenantId::new("acme").unwrap(), &user).await.unwrap();
    let receipt = session(&engine, &id(0)).erase().await.unwrap();
    // A turn of a process that ends in the middle.
    model.shut();
    model.take();
    let hanging = session(&engine, "http:r:main:cut").turn(says_as("open", "are you there?"));
    model.until(1).await;
    engine.stop(std::time::Duration::ZERO).await;
    drop(hanging);
    receipt
}

fn id(user: usize) -> String {
    format!("http:r:main:u{user}")
}

async fn contents(engine: &Engine) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for user in 0..6 {
        all.push(transcript(engine, &id(user)).await);
    }
    all
}

async fn check(storage: &Storage, expected: &[Vec<String>], receipt: &Receipt) {
    let engine = opened(storage).await.unwrap();
    let admin = engine.dangerously_administer(Actor::cli());
    admin.verify_receipt(receipt).await.unwrap();
    let verified = admin.verify_everything().await.unwrap();
    assert!(verified.refused.is_empty() && verified.audit_fault.is_none(), "{verified:?}");
    assert_eq!((verified.keys, verified.sessions), (6, 6));
    assert_eq!(contents(&engine).await, expected);
    assert_eq!(admin.tokens().await.unwrap().len(), 1);
    stop(engine).await;
}

async fn a_copy_is_the_same_and_so_is_one_of_it(place: Place) {
    let (first, there, last) = (Place::sqlite(), place, Place::sqlite());
    let (origin, back) = (first.storage().await, last.storage().await);
    let receipt = fill(&origin).await;
    let engine = opened(&origin).await.unwrap();
    let expected = contents(&engine).await;
    stop(engine).await;
    let copied = copy(&origin, &there.storage().await, keys(&[1]), &|_, _| {}).await.unwrap();
    assert_eq!((copied.keys, copied.sessions, copied.already, copied.tokens), (6, 6, 0, 1));
    check(&there.storage().await, &expected, &receipt).await;
    // It goes on from there: the turn that was cut off is answered, and there is more to say.
    let engine = opened(&there.storage().await).await.unwrap();
    assert_eq!(engine.recover().await.unwrap(), Recovered { resumed: 1, ..Recovered::default() });
    session(&engine, &id(5)).turn(says("later")).finish().await.unwrap();
    let expected = contents(&engine).await;
    assert_eq!(expected[5].last().unwrap(), "ai:noted: later");
    stop(engine).await;
    let copied = copy(&there.storage().await, &back, keys(&[1]), &|_, _| {}).await.unwrap();
    assert_eq!((copied.keys, copied.sessions), (6, 6));
    check(&back, &expected, &receipt).await;
    let engine = opened(&back).await.unwrap();
    session(&engine, &id(0)).turn(says("anew")).finish().await.unwrap();
    assert_eq!(
        transcript(&engine, "http:r:main:cut").await,
        ["human:are you there?", "ai:noted: are you there?"]
    );
    engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
}

async fn a_copy_that_is_cut_off_goes_on(place: Place) {
    let first = Place::sqlite();
    let origin = first.storage().await;
    let receipt = fill(&origin).await;
    let there = place.storage().await;
    let cut = Arc::new(tokio::sync::Notify::new());
    let enough = Arc::clone(&cut);
    let progress = move |done: u64, _: u64| {
        if done == 3 {
            enough.notify_one();
        }
    };
    tokio::select! {
        biased;
        () = cut.notified() => {}
        done = copy(&origin, &there, keys(&[1]), &progress) => panic!("{done:?}"),
    }
    drop(there);
    assert!(matches!(opened(&place.storage().await).await, Err(OpenError::UnfinishedCopy)));
    // Meanwhile the origin goes on: one says more, one is erased, one is new.
    let engine = opened(&origin).await.unwrap();
    session(&engine, &id(3)).turn(says("more")).finish().await.unwrap();
    session(&engine, &id(4)).erase().await.unwrap();
    session(&engine, &id(0)).turn(says("again")).finish().await.unwrap();
    let expected = contents(&engine).await;
    stop(engine).await;
    let copied = copy(&origin, &place.storage().await, keys(&[1]), &|_, _| {}).await.unwrap();
    assert!(copied.already >= 1, "{copied:?}");
    check(&place.storage().await, &expected, &receipt).await;
    // Finished, it is a store like any other, and not to be copied over.
    assert!(copy(&origin, &place.storage().await, keys(&[1]), &|_, _| {}).await.unwrap().complete);
}

async fn a_copy_is_refused_where_it_would_mix(place: Place) {
    let first = Place::sqlite();
    let origin = first.storage().await;
    let refused = async |from: &Storage, to: &Storage, why: &str| {
        let error = copy(from, to, keys(&[1]), &|_, _| {}).await.unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("; hint: "), "{error}");
        // A process that was killed leaves its lease behind, and whoever waits for that must know for how long.
        assert!(!why.contains("is using") || error.contains("up to 15 seconds"), "{error}");
    };
    refused(&origin, &place.storage().await, "nothing to copy").await;
    fill(&origin).await;
    let engine = opened(&origin).await.unwrap();
    refused(&origin, &place.storage().await, "is using one of the stores").await;
    stop(engine).await;
    let engine = opened(&place.storage().await).await.unwrap();
    session(&engine, &id(1)).turn(says("mine")).finish().await.unwrap();
    stop(engine).await;
    refused(&origin, &place.storage().await, "is not empty").await;
    let wrong = copy(&origin, &Storage::memory(), keys(&[2]), &|_, _| {}).await;
    assert!(matches!(wrong, Err(OpenError::WrongKey { .. })));
}

/// Also while a server is at work on the copy, which it is by then.
async fn a_finished_copy_that_is_repeated_says_that_it_is_complete(place: Place) {
    let (first, other) = (Place::sqlite(), Place::sqlite());
    let (origin, there) = (first.storage().await, place.storage().await);
    fill(&origin).await;
    assert!(!copy(&origin, &there, keys(&[1]), &|_, _| {}).await.unwrap().complete);
    let engine = opened(&there).await.unwrap();
    session(&engine, &id(5)).turn(says("later")).finish().await.unwrap();
    let expected = contents(&engine).await;
    let again = copy(&origin, &there, keys(&[1]), &|_, _| {}).await.unwrap();
    assert_eq!(again, Copied { complete: true, ..Copied::default() });
    assert_eq!(contents(&engine).await, expected, "nothing was touched");
    stop(engine).await;
    // Of something else it is not.
    fill(&other.storage().await).await;
    let error = copy(&other.storage().await, &there, keys(&[1]), &|_, _| {}).await.unwrap_err().to_string();
    assert!(error.contains("is not empty"), "{error}");
}

const DAY: Duration = Duration::from_secs(86_400);
const OVER: &str = "http:r:main:over";
const ON: &str = "http:r:main:on";
const EVER: &str = "discord_conv:alice";

/// An engine on whose clock it is some days ago, and where places are kept for so long.
async fn some_days_ago(storage: &Storage, days: u32, place: Duration) -> Engine {
    let ago = i64::try_from((DAY * days).as_millis()).unwrap();
    let settings =
        Settings { lifetimes: Lifetimes { place: Some(place), person: None }, ..Settings::default() };
    let parts = Parts {
        settings,
        clock: Arc::new(ManualClock::new(Millis(SystemClock.now().0 - ago))),
        ..Parts::new(storage.clone(), keys(&[1]), Recorder::new() as _)
    };
    Engine::open(parts).await.unwrap()
}

/// One session whose lifetime ended days ago and nobody has swept; one of which only the keyring says so, since the process that
/// went on with it ended before the keyring heard; one without an end.
async fn let_one_end(storage: &Storage) {
    let engine = some_days_ago(storage, 5, DAY).await;
    for id in [OVER, ON, EVER] {
        session(&engine, id).turn(says("one")).finish().await.unwrap();
    }
    stop(engine).await;
    let engine = some_days_ago(storage, 5, 30 * DAY).await;
    session(&engine, ON).turn(says("two")).finish().await.unwrap();
    engine.settle().await;
    drop(engine);
}

/// Copies as soon as the process that ended counts as gone.
async fn copy_when_alone(from: &Storage, to: &Storage) -> Copied {
    loop {
        match copy(from, to, keys(&[1]), &|_, _| {}).await {
            Err(error) if error.to_string().contains("is using one of the stores") => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            copied => return copied.unwrap(),
        }
    }
}

async fn only_what_goes_on_is_there(storage: &Storage, turns: usize) {
    let engine = opened(storage).await.unwrap();
    let there = async |id| transcript(&engine, id).await.len() / 2;
    assert_eq!((there(OVER).await, there(ON).await, there(EVER).await), (0, turns + 1, turns));
    assert_eq!(engine.key_status().await.unwrap().keys, 2);
    let verified = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    assert_eq!((verified.refused, verified.keys, verified.sessions), (vec![], 2, 2));
    stop(engine).await;
}

async fn a_copy_leaves_behind_what_is_over(place: Place) {
    let first = Place::sqlite();
    let origin = first.storage().await;
    let_one_end(&origin).await;
    let copied = copy_when_alone(&origin, &place.storage().await).await;
    assert_eq!((copied.sessions, copied.keys, copied.expired), (2, 2, 1));
    only_what_goes_on_is_there(&place.storage().await, 1).await;
}

async fn what_is_over_since_a_copy_was_cut_off_stays_behind(place: Place) {
    let first = Place::sqlite();
    let origin = first.storage().await;
    let engine = opened(&origin).await.unwrap();
    for id in [OVER, ON, EVER] {
        session(&engine, id).turn(says("zero")).finish().await.unwrap();
    }
    stop(engine).await;
    let (there, cut) = (place.storage().await, tokio::sync::Notify::new());
    let progress = |done: u64, _: u64| {
        if done == 3 {
            cut.notify_one();
        }
    };
    tokio::select! {
        biased;
        () = cut.notified() => {}
        done = copy(&origin, &there, keys(&[1]), &progress) => panic!("{done:?}"),
    }
    drop(there);
    let_one_end(&origin).await;
    let copied = copy_when_alone(&origin, &place.storage().await).await;
    assert_eq!((copied.sessions, copied.keys, copied.expired), (2, 2, 1));
    only_what_goes_on_is_there(&place.storage().await, 2).await;
}

/// A server that is started while sessions go over, and is gone again or still there when the last one has.
async fn a_copy_is_done_only_if_nobody_worked_meanwhile(place: Place) {
    let last = Place::sqlite();
    let (origin, there) = (place.storage().await, last.storage().await);
    fill(&origin).await;
    let server: Mutex<Option<Engine>> = Mutex::default();
    for stays in [false, true] {
        let answer = async || {
            let engine = opened(&origin).await.unwrap();
            session(&engine, &id(1)).turn(says("meanwhile")).finish().await.unwrap();
            if stays { drop(server.lock().unwrap().replace(engine)) } else { stop(engine).await }
        };
        let progress = |done: u64, _: u64| {
            if done == 1 {
                tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(answer()));
            }
        };
        let error = copy(&origin, &there, keys(&[1]), &progress).await.unwrap_err().to_string();
        assert!(error.contains("during the copy") && error.contains("; hint: stop it"), "{error}");
        assert!(matches!(opened(&there).await, Err(OpenError::UnfinishedCopy)));
    }
    let engine = server.lock().unwrap().take().unwrap();
    let expected = contents(&engine).await;
    stop(engine).await;
    copy(&origin, &there, keys(&[1]), &|_, _| {}).await.unwrap();
    let engine = opened(&there).await.unwrap();
    assert_eq!(contents(&engine).await, expected);
    stop(engine).await;
}
