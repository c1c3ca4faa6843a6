//! Lies before there is a session: log-in, registration, pairing.

use std::sync::Arc;

use confidant_chat_format::{PublicKey, RecoveryCode};
use confidant_chat_protocol::{
    Body as _, PairFetched, PairTaken, PreloginAnswer, ServerEvent, ServerFrame, SessionOpened,
};
use confidant_client::{Credential, Device, Offer, Phase, Posted};
use parking_lot::Mutex;

use super::{Liar, Scene, flipped};
use crate::world::{MemoryFiles, Through};

#[tokio::test]
async fn lies_while_logging_in_are_refused_by_name() {
    let mut scene = Scene::new().await;
    let log_in = |scene: &Scene, liar: &Arc<Liar>, files: &Arc<MemoryFiles>, by: Credential| {
        let way = Arc::new(Through { inner: scene.world.transport(), between: Arc::clone(liar) });
        let setup = scene.world.setup_over(way, files);
        async move { Device::log_in(setup, &by).await }
    };
    let edit = |posted: &mut Posted, edit: &dyn Fn(&mut SessionOpened)| {
        let mut opened = SessionOpened::read(&posted.body).unwrap();
        edit(&mut opened);
        posted.body = opened.write().unwrap();
    };
    // "There is no account key, make one."
    let liar = Arc::new(Liar::default());
    liar.posts(move |path, posted| {
        if path == "/account/login" {
            edit(posted, &|opened| opened.wrap = None);
        }
    });
    let files = MemoryFiles::new();
    let refused = log_in(&scene, &liar, &files, scene.ana.recovery()).await.unwrap_err();
    assert_eq!(refused.name(), "account-missing");
    assert!(Device::open(scene.world.setup(&files)).unwrap().is_none());
    // Another key than this device has of the same generation, and a wrap of somebody else.
    liar.posts(move |path, posted| {
        if path == "/account/login" {
            edit(posted, &|opened| opened.wrap = opened.wrap.as_ref().map(flipped));
        }
    });
    let refused = log_in(&scene, &liar, &files, scene.ana.recovery()).await.unwrap_err();
    assert_eq!(refused.name(), "key-refused");
    // Another way to stretch a password.
    liar.posts(|path, posted| {
        if path == "/account/prelogin" {
            let mut answer = PreloginAnswer::read(&posted.body).unwrap();
            answer.profile = 2;
            posted.body = answer.write().unwrap();
        }
    });
    let password = Credential::password("ana@example.org", "x").unwrap();
    assert_eq!(log_in(&scene, &liar, &files, password).await.unwrap_err().name(), "kdf-refused");
    // A wrap from before a change of the same credential.
    let old: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
    let kept = Arc::clone(&old);
    liar.posts(move |path, posted| {
        if path == "/account/login" {
            *kept.lock() = Some(posted.body.clone());
        }
    });
    log_in(&scene, &liar, &files, scene.ana.recovery()).await.unwrap();
    let replay = SessionOpened::read(old.lock().as_ref().unwrap()).unwrap().wrap;
    scene.one.change_credentials(&scene.ana.recovery(), &[scene.ana.recovery()], None).await.unwrap();
    log_in(&scene, &liar, &files, scene.ana.recovery()).await.unwrap();
    liar.posts(move |path, posted| {
        if path == "/account/login" {
            edit(posted, &|opened| opened.wrap.clone_from(&replay));
        }
    });
    let refused = log_in(&scene, &liar, &files, scene.ana.recovery()).await.unwrap_err();
    assert_eq!(refused.name(), "rolled-back");
    // A generation from before a rotation.
    liar.posts(|_, _| {});
    let next = RecoveryCode::random();
    scene.one.rotate(&scene.ana.recovery(), &[Credential::Recovery(next.clone())]).await.unwrap();
    log_in(&scene, &liar, &files, Credential::Recovery(next.clone())).await.unwrap();
    liar.posts(move |path, posted| {
        if path == "/account/login" {
            edit(posted, &|opened| opened.generation = 1);
        }
    });
    let refused = log_in(&scene, &liar, &files, Credential::Recovery(next.clone())).await.unwrap_err();
    assert_eq!(refused.name(), "key-refused");
}

#[tokio::test]
async fn lies_while_pairing_are_refused_by_name() {
    let mut scene = Scene::new().await;
    // Pairing: a key of the server's own in place of the new device's, or in place of the account's.
    let (evil, way) = scene.way();
    evil.posts(|path, posted| {
        if path == "/account/pair/fetch" {
            let mut fetched = PairFetched::read(&posted.body).unwrap();
            fetched.sealed = confidant_chat_protocol::Blob::new(vec![7; 150]).unwrap();
            posted.body = fetched.write().unwrap();
        }
    });
    let offer = Offer::make(scene.world.setup_over(Arc::clone(&way), &MemoryFiles::new())).await.unwrap();
    scene.one.pair(&offer.dangerously_to_text(), &scene.ana.recovery()).await.unwrap();
    assert_eq!(offer.finish().await.unwrap_err().name(), "pair-refused");
    evil.posts(|path, posted| {
        if path == "/account/pair/take" {
            let taken = PairTaken { public_key: PublicKey::from_bytes([9; 32]) };
            posted.body = taken.write().unwrap();
        }
    });
    let files = MemoryFiles::new();
    let mut middle =
        Device::log_in(scene.world.setup_over(way, &files), &scene.ana.recovery()).await.unwrap();
    middle.sync(Phase::All).await.unwrap();
    let offer = Offer::make(scene.world.setup(&MemoryFiles::new())).await.unwrap();
    middle.pair(&offer.dangerously_to_text(), &scene.ana.recovery()).await.unwrap();
    assert_eq!(offer.finish().await.unwrap_err().name(), "pair-refused");
}

#[tokio::test]
async fn a_paired_device_knows_what_the_old_one_has_seen() {
    let mut scene = Scene::new().await;
    let (heard, _device) = scene.friend().await;
    let is_state = |frame: &ServerFrame| matches!(frame.event, ServerEvent::AccountState(_));
    let old = heard.heard.lock().iter().find(|frame| is_state(frame)).cloned().unwrap().event;
    scene.one.new_chat(Some("Later")).unwrap();
    scene.one.flush().await.unwrap();
    let (liar, way) = scene.way();
    let offer = Offer::make(scene.world.setup_over(way, &MemoryFiles::new())).await.unwrap();
    scene.one.pair(&offer.dangerously_to_text(), &scene.ana.recovery()).await.unwrap();
    let mut new = offer.finish().await.unwrap().unwrap();
    liar.tells(move |frame| {
        if is_state(frame) {
            frame.event = old.clone();
        }
    });
    assert_eq!(new.sync(Phase::All).await.unwrap_err().name(), "rolled-back");
    assert!(new.chats().is_empty());
    liar.tells(|_| {});
    new.sync(Phase::All).await.unwrap();
    assert_eq!(new.chats().len(), 3);
}
