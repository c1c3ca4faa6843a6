//! Credentials, devices and sessions, pairing, rotation, export and erasure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use confidant_chat_format::{MessageId, RecoveryCode, TurnId};
use confidant_chat_protocol::{CredentialKind, LogoutReason, Totp};
use confidant_chats::store::{Millis, PutLetter};
use confidant_client::{
    Credential, Device, Error, News, Offer, Phase, Posted, TotpChange, Transport, TransportError,
};

use crate::devices::{bodies, until};
use crate::world::{At, Between, MemoryFiles, Person, Through};

crate::at_both! {
    every_credential_opens_the_account_and_can_be_changed,
    a_lost_password_is_replaced_by_the_recovery_code_once,
    a_device_is_paired_by_digits_that_are_good_once,
    devices_are_listed_labelled_and_revoked,
    ways_in_are_listed_named_and_removed_by_a_rotation,
    a_rotation_logs_others_out_and_everything_stays_readable,
    a_rotation_is_taken_up_again_wherever_it_was_cut_off,
    a_rotation_survives_a_kill_at_each_of_its_writes,
    everything_comes_out_and_everything_goes,
    news_of_a_rotation_do_not_hang_the_device_that_made_it,
}

fn password(text: &str) -> Credential {
    Credential::password("ana@example.org", text).unwrap()
}

/// A code of an authenticator: RFC 6238, SHA-1, six digits.
pub(crate) fn code(secret: &[u8; 32], now: u64) -> Totp {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let mac = ring::hmac::sign(&key, &(now / 30_000).to_be_bytes());
    let at = usize::from(mac.as_ref()[19] & 15);
    let four: [u8; 4] = mac.as_ref()[at..at + 4].try_into().unwrap();
    let number = u32::from_be_bytes(four) & 0x7fff_ffff;
    Totp::parse(&format!("{:06}", number % 1_000_000)).unwrap()
}

async fn every_credential_opens_the_account_and_can_be_changed(at: At) {
    let world = at.world().await;
    let ana = Person::new();
    let credentials = vec![password("old words"), ana.recovery(), ana.passkey()];
    let files = MemoryFiles::new();
    let mut one = world.register(world.transport(), &files, "ana@example.org", credentials).await.unwrap();
    let chat = one.new_chat(Some("Trip")).unwrap();
    one.flush().await.unwrap();
    for credential in [password("old words"), ana.recovery(), ana.passkey()] {
        let mut device = Device::log_in(world.setup(&MemoryFiles::new()), &credential).await.unwrap();
        device.sync(Phase::All).await.unwrap();
        assert_eq!(device.chat(&chat).unwrap().title(), Some("Trip"));
    }
    // Another password: the old one is good for nothing, the other credentials stay.
    one.change_credentials(&ana.passkey(), &[password("new words")], None).await.unwrap();
    let log_in = |credential| {
        let setup = world.setup(&MemoryFiles::new());
        async move { Device::log_in(setup, &credential).await.map(drop) }
    };
    assert_eq!(log_in(password("old words")).await.unwrap_err().name(), "login-refused");
    log_in(password("new words")).await.unwrap();
    log_in(ana.recovery()).await.unwrap();
    // Codes of an authenticator, with the password only.
    let secret = [9; 32];
    let on = TotpChange::On { secret, code: code(&secret, world.now()) };
    one.change_credentials(&ana.passkey(), &[], Some(on)).await.unwrap();
    assert_eq!(log_in(password("new words")).await.unwrap_err().name(), "login-refused");
    world.pass(60_000);
    let with_code = password("new words").with_totp(code(&secret, world.now()).digits()).unwrap();
    log_in(with_code.clone()).await.unwrap();
    assert_eq!(log_in(with_code).await.unwrap_err().name(), "login-refused", "a code counts once");
    log_in(ana.passkey()).await.unwrap();
    one.change_credentials(&ana.passkey(), &[], Some(TotpChange::Off)).await.unwrap();
    log_in(password("new words")).await.unwrap();
}

async fn a_lost_password_is_replaced_by_the_recovery_code_once(at: At) {
    let world = at.world().await;
    let ana = Person::new();
    let credentials = vec![ana.recovery(), password("forgotten")];
    let files = MemoryFiles::new();
    let mut one = world.register(world.transport(), &files, "ana@example.org", credentials).await.unwrap();
    one.connect().await.unwrap();
    let mut two = Device::log_in(world.setup(&MemoryFiles::new()), &ana.recovery()).await.unwrap();
    let next = RecoveryCode::random();
    two.recover(&ana.code, &password("remembered"), &next).await.unwrap();
    let ended = loop {
        match one.listen().await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(ended, Error::LoggedOut(LogoutReason::Changed), "other sessions end");
    for gone in [ana.recovery(), password("forgotten")] {
        let refused = Device::log_in(world.setup(&MemoryFiles::new()), &gone).await.unwrap_err();
        assert_eq!(refused.name(), "login-refused");
    }
    one.log_in_again(&password("remembered")).await.unwrap();
    one.sync(Phase::All).await.unwrap();
    let recovered = Device::log_in(world.setup(&MemoryFiles::new()), &Credential::Recovery(next)).await;
    recovered.unwrap().sync(Phase::All).await.unwrap();
}

async fn a_device_is_paired_by_digits_that_are_good_once(at: At) {
    let world = at.world().await;
    let (mut old, ana) = world.ana().await;
    let chat = old.new_chat(Some("Trip")).unwrap();
    old.flush().await.unwrap();
    let offer = Offer::make(world.setup(&MemoryFiles::new())).await.unwrap();
    assert!(offer.finish().await.unwrap().is_none(), "nobody answered yet");
    let digits = offer.dangerously_to_text();
    assert_eq!(digits.len(), 26);
    old.pair(&digits.to_uppercase(), &ana.recovery()).await.unwrap();
    let mut new = offer.finish().await.unwrap().expect("the old device answered");
    new.sync(Phase::All).await.unwrap();
    assert_eq!(new.chat(&chat).unwrap().title(), Some("Trip"));
    assert!(offer.finish().await.unwrap().is_none(), "taken once");
    assert_eq!(old.pair(&digits, &ana.recovery()).await.unwrap_err().name(), "not-found");
    // The account moved on between the old device's answer and the new device's first sync.
    let offer = Offer::make(world.setup(&MemoryFiles::new())).await.unwrap();
    old.pair(&offer.dangerously_to_text(), &ana.recovery()).await.unwrap();
    old.new_chat(Some("Later")).unwrap();
    old.flush().await.unwrap();
    let mut third = offer.finish().await.unwrap().unwrap();
    third.sync(Phase::All).await.unwrap();
    assert_eq!(third.chats().len(), 2);
    new.say(&chat, "from the new device").unwrap();
    new.flush().await.unwrap();
    old.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&old, &chat), ["from the new device"]);
}

async fn devices_are_listed_labelled_and_revoked(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    one.label("Laptop").await.unwrap();
    let mut two = world.second(&ana).await;
    let lines = two.devices().await.unwrap();
    assert_eq!(lines.len(), 2);
    let laptop = lines.iter().find(|line| !line.is_this).unwrap();
    assert_eq!((laptop.label.as_deref(), laptop.sessions.len()), (Some("Laptop"), 1));
    two.revoke_device(&ana.recovery(), &laptop.device.clone()).await.unwrap();
    let ended = loop {
        match one.listen().await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(ended, Error::LoggedOut(LogoutReason::Revoked));
    assert_eq!(one.sync(Phase::All).await.unwrap_err(), Error::LoggedOut(LogoutReason::Expired));
    let mut three = world.second(&ana).await;
    let lines = two.devices().await.unwrap();
    let other = lines.iter().find(|line| !line.is_this).unwrap();
    two.revoke_session(&ana.recovery(), other.sessions[0]).await.unwrap();
    until_logged_out(&mut three).await;
    two.log_out(false).await.unwrap();
    assert!(!two.is_logged_in());
    assert_eq!(two.sync(Phase::All).await.unwrap_err(), Error::NotLoggedIn);
    two.log_in_again(&ana.recovery()).await.unwrap();
    two.sync(Phase::All).await.unwrap();
}

async fn ways_in_are_listed_named_and_removed_by_a_rotation(at: At) {
    let world = at.world().await;
    let ana = Person::new();
    let credentials = vec![password("words"), ana.recovery(), ana.passkey()];
    let files = MemoryFiles::new();
    let mut one = world.register(world.transport(), &files, "ana@example.org", credentials).await.unwrap();
    one.name_way_in(&ana.passkey.0, Some("Blue stick")).unwrap();
    one.flush().await.unwrap();
    let mut two = world.second(&ana).await;
    two.sync(Phase::All).await.unwrap();
    let found = two.ways_in().await.unwrap();
    let kinds: Vec<_> = found.iter().map(|way| (way.kind, way.name.as_deref())).collect();
    assert_eq!(
        kinds,
        [
            (CredentialKind::Password, None),
            (CredentialKind::Recovery, None),
            (CredentialKind::Passkey, Some("Blue stick"))
        ]
    );
    assert_eq!(found[0].id, None);
    assert_eq!(found[2].id.as_ref(), Some(&ana.passkey.0));
    assert!(!format!("{found:?}").contains("Blue"), "a name is not in what is printed");
    // The last one cannot go.
    let refused = two.rotate(&password("words"), &[]).await.unwrap_err();
    assert_eq!(refused.name(), "malformed");
    // What was left out of a rotation opens nothing any more, and what it was sealed under is gone.
    let next = Credential::Recovery(RecoveryCode::random());
    two.rotate(&password("words"), &[password("words"), next]).await.unwrap();
    two.name_way_in(&ana.passkey.0, None).unwrap();
    two.flush().await.unwrap();
    let left: Vec<_> = two.ways_in().await.unwrap().into_iter().map(|way| way.kind).collect();
    assert_eq!(left, [CredentialKind::Password, CredentialKind::Recovery]);
    let refused = Device::log_in(world.setup(&MemoryFiles::new()), &ana.passkey()).await.unwrap_err();
    assert_eq!(refused.name(), "login-refused");
    assert_eq!(two.data("credential", ana.passkey.0.as_str()), Ok(None));
}

async fn until_logged_out(device: &mut Device) {
    let wait = async { while device.listen().await.is_ok() {} };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait).await.expect("it stays logged in");
}

async fn a_rotation_logs_others_out_and_everything_stays_readable(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(Some("Trip")).unwrap();
    let first = one.say(&chat, "before").unwrap();
    one.set_data("settings", "theme", Some("dark")).unwrap();
    one.flush().await.unwrap();
    let mut two = world.second(&ana).await;
    two.say(&chat, "written offline").unwrap();
    let (next, key) = (RecoveryCode::random(), ana.passkey());
    one.rotate(&ana.recovery(), &[Credential::Recovery(next.clone()), key.clone()]).await.unwrap();
    assert_eq!(one.generation(), 2);
    until_logged_out(&mut two).await;
    assert_eq!(two.log_in_again(&ana.recovery()).await.unwrap_err().name(), "login-refused");
    // The next write has a key of the new generation, and every device goes on.
    one.edit(&chat, &first, "after").unwrap();
    one.flush().await.unwrap();
    two.log_in_again(&key).await.unwrap();
    assert_eq!(two.generation(), 2);
    two.sync(Phase::All).await.unwrap();
    two.flush().await.unwrap();
    assert_eq!(bodies(&two, &chat), ["after", "written offline"]);
    one.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&one, &chat), ["after", "written offline"]);
    assert_eq!(two.data("settings", "theme").unwrap().as_deref(), Some("dark"));
    let mut three =
        Device::log_in(world.setup(&MemoryFiles::new()), &Credential::Recovery(next)).await.unwrap();
    three.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&three, &chat), ["after", "written offline"]);
    // Once more, with two keys in the chat's ring.
    two.rotate(&key, &[ana.recovery(), key.clone()]).await.unwrap();
    let mut four = world.second(&ana).await;
    four.say(&chat, "under the third").unwrap();
    four.flush().await.unwrap();
    assert_eq!(bodies(&four, &chat).len(), 3);
}

/// Loses the answer to a POST.
struct Loses {
    path: &'static str,
    left: AtomicUsize,
}

impl Between for Loses {
    fn posted(&self, path: &str, posted: Posted) -> Result<Posted, TransportError> {
        let is_it = path == self.path;
        let lost =
            is_it && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        if lost { Err(TransportError::Offline) } else { Ok(posted) }
    }
}

async fn a_rotation_is_taken_up_again_wherever_it_was_cut_off(at: At) {
    for path in ["/account/rotation/begin", "/account/rotation/stage", "/account/rotation/commit"] {
        let world = at.world().await;
        let between = Arc::new(Loses { path, left: AtomicUsize::new(1) });
        let way: Arc<dyn Transport> = Arc::new(Through { inner: world.transport(), between });
        let files = MemoryFiles::new();
        let (mut one, ana) = world.ana_over(Arc::clone(&way), &files).await;
        let chat = one.new_chat(Some("Trip")).unwrap();
        one.flush().await.unwrap();
        let next = Person::new();
        let cut = one.rotate(&ana.recovery(), &[next.recovery()]).await;
        assert_eq!(cut.unwrap_err(), Error::Offline, "{path}");
        drop(one);
        let mut one = Device::open(world.setup_over(way, &files)).unwrap().unwrap();
        assert_eq!(one.chat(&chat).unwrap().title(), Some("Trip"));
        one.sync(Phase::All).await.unwrap();
        if path == "/account/rotation/commit" {
            assert_eq!(one.generation(), 2, "it was committed");
        } else {
            assert_eq!(one.generation(), 1);
            one.rotate(&ana.recovery(), &[next.recovery()]).await.unwrap();
        }
        one.say(&chat, "after").unwrap();
        one.flush().await.unwrap();
        let two = world.second(&next).await;
        assert_eq!(bodies(&two, &chat), ["after"]);
        let old = Device::log_in(world.setup(&MemoryFiles::new()), &ana.recovery()).await;
        assert_eq!(old.unwrap_err().name(), "login-refused");
    }
}

async fn a_rotation_survives_a_kill_at_each_of_its_writes(at: At) {
    for writes in 0..8 {
        let world = at.world().await;
        let files = MemoryFiles::new();
        let (mut one, ana) = world.ana_over(world.transport(), &files).await;
        let chat = one.new_chat(Some("Trip")).unwrap();
        one.flush().await.unwrap();
        let next = Person::new();
        files.kill_after(writes);
        let killed = one.rotate(&ana.recovery(), &[next.recovery()]).await;
        drop(one);
        files.revive();
        let mut one = Device::open(world.setup(&files)).unwrap().unwrap();
        one.sync(Phase::All).await.unwrap();
        if one.generation() == 1 {
            assert!(killed.is_err());
            one.rotate(&ana.recovery(), &[next.recovery()]).await.unwrap();
        }
        one.say(&chat, "after").unwrap();
        one.flush().await.unwrap();
        let two = world.second(&next).await;
        assert_eq!(bodies(&two, &chat), ["after"], "killed after {writes} writes");
    }
}

async fn everything_comes_out_and_everything_goes(at: At) {
    let world = at.world().await;
    let files = MemoryFiles::new();
    let (mut one, ana) = world.ana_over(world.transport(), &files).await;
    let chat = one.new_chat(Some("Trip")).unwrap();
    let embed = one.add_embed(&chat, "a map").unwrap();
    one.write(&chat, confidant_chat_format::Role::User, "see", std::slice::from_ref(&embed), None).unwrap();
    one.set_data("settings", "theme", Some("dark")).unwrap();
    one.set_draft(&chat, Some("half a sen")).unwrap();
    one.flush().await.unwrap();
    // A letter that no head waits for is the server's word, and is left out.
    let letter = PutLetter {
        account: one.account_id().clone(),
        chat: chat.clone(),
        turn: TurnId::random(),
        reply: MessageId::random(),
        letter: vec![7; 200],
        now: Millis(world.now()),
    };
    world.store().put_letter(letter).await.unwrap();
    let exported = one.export(&ana.recovery()).await.unwrap();
    let json: serde_json::Value = serde_json::from_str(&exported.to_json()).unwrap();
    let first = &json["chats"][0];
    assert_eq!(first["fields"]["title"], "Trip");
    assert_eq!(first["messages"][0]["body"], "see");
    assert_eq!(first["embeds"][embed.as_str()], "a map");
    assert_eq!(first["draft"], "half a sen");
    assert_eq!(first["letters"].as_array().map(Vec::len), Some(0));
    assert_eq!(json["data"][0]["body"], "dark");
    assert_eq!(json["devices"].as_array().unwrap().len(), 1);
    let mut two = world.second(&ana).await;
    let receipt = one.erase(&ana.recovery()).await.unwrap();
    assert!(receipt.contains("\"chats\":1") && receipt.contains("\"letters\":1"), "{receipt}");
    assert!(files.bytes().is_empty(), "this device forgot it too");
    let ended = loop {
        match two.listen().await {
            Ok(News::Nothing | News::Devices | News::Account) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(ended, Error::LoggedOut(LogoutReason::Erased));
    two.forget().unwrap();
    let gone = Device::log_in(world.setup(&MemoryFiles::new()), &ana.recovery()).await;
    assert_eq!(gone.unwrap_err().name(), "login-refused");
}

async fn news_of_a_rotation_do_not_hang_the_device_that_made_it(at: At) {
    let world = at.world().await;
    let (mut one, ana) = world.ana().await;
    one.sync(Phase::All).await.unwrap();
    one.rotate(&ana.recovery(), &[ana.recovery()]).await.unwrap();
    until(&mut one, |news| *news == News::Account).await;
}
