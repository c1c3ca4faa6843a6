//! What the audit log hears of, and what is not given without it.

use confidant_chat_protocol::{DeleteChat, Done, Erase, Erased, Logout, RevokeDevice};
use parking_lot::Mutex;

use super::ahead::hooked;
use super::*;
use crate::vault::VaultError;

#[derive(Debug, Default)]
struct Log {
    acts: Mutex<Vec<(AccountId, Act)>>,
    /// How often, of records that stand for several.
    times: Mutex<Vec<u64>>,
    is_full: std::sync::atomic::AtomicBool,
}

#[async_trait::async_trait]
impl Witness for Log {
    async fn witness(&self, account: &AccountId, act: Act) -> Result<(), VaultError> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(VaultError("full".to_owned()));
        }
        self.acts.lock().push((account.clone(), act));
        Ok(())
    }

    async fn witness_many(&self, account: &AccountId, act: Act, times: u64) -> Result<(), VaultError> {
        self.times.lock().push(times);
        self.witness(account, act).await
    }
}

impl Log {
    /// What was heard of an account since the last time.
    fn heard(&self, account: &AccountId) -> Vec<Act> {
        let mut acts = self.acts.lock();
        assert!(acts.iter().all(|(whose, _)| whose == account), "nobody else");
        acts.drain(..).map(|(_, act)| act).collect()
    }
}

async fn watched() -> (World, Arc<Log>) {
    let (mut world, log) = (World::new().await, Arc::new(Log::default()));
    hooked(&mut world, Hooks { witness: Some(Arc::<Log>::clone(&log)), ..Hooks::default() });
    (world, log)
}

#[tokio::test]
async fn the_audit_log_hears_who_did_what() {
    let (world, log) = watched().await;
    let mut ana = world.register("ana").await;
    let id = ana.device.id.clone();
    assert_eq!(log.heard(&id), [Act::Registered]);
    let two = world.second(&ana).await;
    assert_eq!(log.heard(&id), [Act::LoggedIn]);
    let revoke = RevokeDevice { device: two.here.clone() };
    let _: Done = world.prove("/account/devices/revoke", &ana, &revoke).await.unwrap();
    assert_eq!(log.heard(&id), [Act::DeviceRevoked]);
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    assert_eq!(log.heard(&id), [], "what is said is nobody's business");
    let (shared, _) = snapshots::shared(&ana, &chat, "words");
    snapshots::make(&world, &ana, &shared).await.unwrap();
    snapshots::revoke(&world, &ana, &shared.id).await.unwrap();
    assert!(snapshots::revoke(&world, &ana, &shared.id).await.is_err());
    assert_eq!(log.heard(&id), [Act::SnapshotMade, Act::SnapshotRevoked]);
    let (delete, _) = ana.device.deletion(&chat);
    let (floors, manifest) = sent_list(delete.list);
    let floor = floors[0].clone();
    let delete = ClientEvent::DeleteChat(DeleteChat { chat, expected: delete.expected, floor, manifest });
    let answer = ask(&mut socket, delete).await.unwrap();
    assert_eq!(name(&answer), "chat_deleted");
    assert_eq!(log.heard(&id), [Act::ChatDeleted]);
    let caller = world.caller(Some(&ana.session));
    let _: (Done, _) =
        world.post_as("/account/logout", &caller, &Logout { everywhere: false }).await.unwrap();
    assert_eq!(log.heard(&id), [Act::LoggedOut]);
    let erase = Erase { account: id.clone() };
    let _: Erased = world.prove("/account/erase", &ana, &erase).await.unwrap();
    assert_eq!(log.heard(&id), [], "an erasure has a receipt");
}

#[tokio::test]
async fn a_refusal_is_heard_of_an_account_that_is_there() {
    let (world, log) = watched().await;
    let ana = world.register("ana").await;
    let id = ana.device.id.clone();
    log.heard(&id);
    let mut thief = ana.clone();
    thief.password = root();
    assert!(world.login(&thief, CredentialKind::Password, None).await.is_err());
    thief.login = Login::parse("nobody").unwrap();
    assert!(world.login(&thief, CredentialKind::Password, None).await.is_err());
    // It is written down beside the answer.
    while log.acts.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(log.heard(&id), [Act::Refused]);
}

#[tokio::test]
async fn a_flood_of_refusals_does_not_fill_the_audit_log() {
    let (world, log) = watched().await;
    let id = world.register("ana").await.device.id;
    log.heard(&id);
    for _ in 0..500 {
        world.service.inner.witness_refusal(&id);
    }
    world.service.upkeep().await.unwrap();
    let [counted] = log.times.lock()[..] else { panic!("{:?}", log.times.lock()) };
    // Those with a record of their own are written down beside what goes on; and the one that counts the others.
    let records = usize::try_from(500 - counted).unwrap() + 1;
    assert!(records < 100, "{records}");
    while log.acts.lock().len() < records {
        tokio::task::yield_now().await;
    }
    assert_eq!(log.heard(&id), vec![Act::Refused; records]);
    // Counted once.
    world.service.upkeep().await.unwrap();
    assert_eq!(log.heard(&id), []);
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_opened() {
    let (world, log) = watched().await;
    let ana = world.register("ana").await;
    log.is_full.store(true, Ordering::SeqCst);
    let refused = world.login(&ana, CredentialKind::Password, None).await.unwrap_err();
    assert_eq!(refused.error.name(), "unavailable");
    let devices = world.store.devices(&ana.device.id).await.unwrap();
    assert_eq!(devices.len(), 1, "no device was added for it");
    log.is_full.store(false, Ordering::SeqCst);
    assert!(world.login(&ana, CredentialKind::Password, None).await.is_ok());
}
