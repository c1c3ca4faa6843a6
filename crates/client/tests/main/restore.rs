//! A server that lost its keyring or its database, or whose operator restored a backup; and whoever misuses that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, EmbedId, Login, MessageId, Origin, RecoveryCode, Role};
use confidant_chats::service::Found;
use confidant_client::{
    Connection, Credential, Device, Error, Phase, Posted, PutBack, Registration, Rest, Restoration, Restored,
    SessionKeys, Transport, TransportError,
};
use parking_lot::Mutex;

use crate::devices::bodies;
use crate::world::{Between, DRAFTS_MS, Local, MemoryFiles, Passes, Person, Through, World};

/// Ana with two devices that have everything, and the files of both.
struct Scene {
    world: World,
    ana: Person,
    one: Device,
    two: Device,
    files: [Arc<MemoryFiles>; 2],
    chat: ChatId,
    ids: Vec<MessageId>,
    embed: EmbedId,
}

impl Scene {
    async fn new() -> Self {
        let (world, files) = (World::new().await, [MemoryFiles::new(), MemoryFiles::new()]);
        let (mut one, ana) = world.ana_over(world.transport(), &files[0]).await;
        let chat = one.new_chat(Some("Trip")).unwrap();
        let ids = ["first", "second", "third"].map(|body| one.say(&chat, body).unwrap()).to_vec();
        let embed = one.add_embed(&chat, "a map").unwrap();
        one.write(&chat, Role::User, "with a map", std::slice::from_ref(&embed), None).unwrap();
        one.set_draft(&chat, Some("a draft")).unwrap();
        one.set_data("settings", "theme", Some("dark")).unwrap();
        one.flush().await.unwrap();
        let setup = world.setup(&files[1]);
        let mut two = Device::log_in(setup, &ana.recovery()).await.unwrap();
        two.sync(Phase::All).await.unwrap();
        Self { world, ana, one, two, files, chat, ids, embed }
    }

    fn account(&self) -> AccountId {
        self.one.account_id().clone()
    }
}

/// What a person does with a code: a new credential, and the account has it.
fn anew(person: &Person, code: String, rest: Rest) -> Restoration {
    let login = Login::parse("ana@example.org").unwrap();
    Restoration { login, credentials: vec![person.recovery()], code, rest }
}

/// What a device that remembers nothing is shown.
async fn stranger(world: &World, person: &Person) -> Device {
    world.second(person).await
}

fn same(one: &Device, two: &Device) {
    let all = |device: &Device| {
        let mut chats: Vec<_> = device.chats();
        chats.sort_unstable();
        let view = |chat: &ChatId| {
            let view = device.chat(chat).unwrap();
            let words = |(id, message): (_, &confidant_client::MessageView)| (id, message.body.clone());
            let messages: Vec<_> = view.messages.iter().map(|(id, one)| words((id.clone(), one))).collect();
            (view.fields.clone(), messages, view.draft.clone(), bodies(device, chat))
        };
        chats.iter().map(|chat| (chat.clone(), view(chat))).collect::<Vec<_>>()
    };
    assert_eq!(all(one), all(two));
    assert_eq!(one.data("settings", "theme").unwrap(), two.data("settings", "theme").unwrap());
}

#[tokio::test]
async fn a_lost_keyring_is_healed_by_a_device_and_nothing_is_sent_twice() {
    let mut scene = Scene::new().await;
    // A chat that only the second device has.
    let late = scene.two.new_chat(Some("Late")).unwrap();
    scene.two.say(&late, "only there").unwrap();
    scene.two.flush().await.unwrap();
    let (account, lost) = (scene.account(), scene.world.without_keyring().await);
    assert_eq!(lost.service.find_account(&account).await, Ok(Found::Locked));
    let mut one = lost.open(&scene.files[0]);
    assert_eq!(
        one.sync(Phase::All).await.unwrap_err().name(),
        "account-missing",
        "said by name to a session"
    );
    let refused = Device::log_in(lost.setup(&MemoryFiles::new()), &scene.ana.recovery()).await;
    assert_eq!(refused.unwrap_err().name(), "login-refused", "and to nobody else");
    assert_eq!(bodies(&one, &scene.chat).len(), 4, "what was seen can be read");

    let next = Person::new();
    let code = lost.code(&account).await;
    assert_eq!(one.restore(anew(&next, code.clone(), Rest::Stays)).await.unwrap(), Restored::Kept);
    assert_eq!(lost.service.find_account(&account).await, Ok(Found::Alive));
    let again = one.restore(anew(&next, code, Rest::Stays)).await.unwrap_err();
    assert_eq!(again.name(), "login-refused", "a code is good once");
    assert_eq!(one.sync(Phase::All).await.unwrap_err().name(), "ring-gap", "the chats' keys are still lost");
    let back = one.restore_rings(&next.recovery()).await.unwrap();
    assert_eq!((back.restored, back.refused.as_slice()), (1, &[][..]));
    assert_eq!(one.restore_rings(&next.recovery()).await.unwrap().restored, 0, "once more changes nothing");
    // The chat that this device never had is refused, and the others are there.
    assert_eq!(one.sync(Phase::All).await.unwrap_err().name(), "ring-gap");
    one.say(&scene.chat, "fifth").unwrap();
    one.flush().await.unwrap();

    let mut two = lost.open(&scene.files[1]);
    assert!(matches!(two.sync(Phase::All).await.unwrap_err(), Error::LoggedOut(_)), "old sessions ended");
    let old = two.log_in_again(&scene.ana.recovery()).await.unwrap_err();
    assert_eq!(old.name(), "login-refused", "old credentials are gone");
    two.log_in_again(&next.recovery()).await.unwrap();
    let back = two.restore_rings(&next.recovery()).await.unwrap();
    assert_eq!((back.restored, back.refused.as_slice()), (1, &[][..]));
    // Its memory fits: nothing has to be written again, and no revision changed.
    two.sync(Phase::All).await.unwrap();
    one.sync(Phase::All).await.unwrap();
    same(&one, &two);
    assert_eq!(bodies(&one, &scene.chat), ["first", "second", "third", "with a map", "fifth"]);
    assert_eq!(bodies(&one, &late), ["only there"]);
    let mut new = stranger(&lost, &next).await;
    same(&new, &one);
    assert_eq!(new.embed(&scene.chat, &scene.embed).await.unwrap(), "a map", "which the server had kept");
    assert_eq!(new.devices().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_lost_database_is_put_back_from_what_devices_have() {
    for keyring_too in [false, true] {
        let mut scene = Scene::new().await;
        scene.one.delete(&scene.chat, &scene.ids[1]).unwrap();
        scene.one.edit(&scene.chat, &scene.ids[2], "changed").unwrap();
        scene.one.flush().await.unwrap();
        scene.two.sync(Phase::All).await.unwrap();
        let late = scene.two.new_chat(Some("Late")).unwrap();
        scene.two.say(&late, "only there").unwrap();
        scene.two.flush().await.unwrap();
        let lost = scene.world.without_database().await;
        let lost = if keyring_too { lost.without_keyring().await } else { lost };
        let account = scene.account();
        assert_eq!(lost.service.find_account(&account).await, Ok(Found::Missing));
        let next = Person::new();
        let code = lost.code(&account).await;
        let mut one = lost.open(&scene.files[0]);
        let how = anew(&next, code, Rest::Stays);
        assert_eq!(one.restore(how).await.unwrap(), Restored::Empty, "nothing is there to stay");
        assert!(
            matches!(one.sync(Phase::All).await.unwrap_err(), Error::Refused(_)),
            "nothing happens by itself"
        );
        let done = one.put_back().await.unwrap();
        assert_eq!((done.chats, done.copies, done.missing, done.removed), (1, 0, 0, 0), "{done:?}");
        one.sync(Phase::All).await.unwrap();
        let new = stranger(&lost, &next).await;
        same(&new, &one);
        assert_eq!(
            bodies(&new, &scene.chat),
            ["first", "changed", "with a map"],
            "what was deleted stays so"
        );
        // The other device has one more chat, and has seen another history.
        let mut two = lost.open(&scene.files[1]);
        let refused = two.put_back_by(&next.recovery()).await.unwrap();
        assert_eq!((refused.chats, refused.copies), (1, 0), "{refused:?}");
        two.sync(Phase::All).await.unwrap();
        one.sync(Phase::All).await.unwrap();
        same(&one, &two);
        assert_eq!(bodies(&one, &late), ["only there"]);
        let mut new = stranger(&lost, &next).await;
        assert_eq!(new.embed(&scene.chat, &scene.embed).await.unwrap(), "a map");
        assert_eq!(one.put_back().await.unwrap(), PutBack::default(), "once more changes nothing");
    }
}

#[tokio::test]
async fn an_old_backup_is_refused_until_the_person_sends_theirs_again() {
    let mut scene = Scene::new().await;
    let doomed = scene.one.new_chat(Some("Doomed")).unwrap();
    scene.one.say(&doomed, "gone").unwrap();
    scene.one.flush().await.unwrap();
    scene.two.sync(Phase::All).await.unwrap();
    // Database and keyring, and the database alone: beside the keyring of now, the deleted chat's key is destroyed.
    let backups = [scene.world.backup().await, scene.world.fork().await];
    scene.one.edit(&scene.chat, &scene.ids[0], "edited").unwrap();
    scene.one.delete(&scene.chat, &scene.ids[1]).unwrap();
    scene.one.rename(&scene.chat, "Lisbon").unwrap();
    scene.world.pass(DRAFTS_MS);
    scene.one.set_draft(&scene.chat, Some("a longer draft")).unwrap();
    scene.one.set_data("settings", "theme", Some("light")).unwrap();
    scene.one.delete_chat(&doomed).unwrap();
    let late = scene.one.new_chat(Some("Late")).unwrap();
    scene.one.say(&late, "new").unwrap();
    scene.one.flush().await.unwrap();
    scene.two.sync(Phase::All).await.unwrap();
    scene.two.say(&scene.chat, "from the other").unwrap();
    scene.two.flush().await.unwrap();
    for old in backups {
        let files = [scene.files[0].snapshot(), scene.files[1].snapshot()];
        let (mut one, mut two) = (old.open(&files[0]), old.open(&files[1]));
        let before = one.chat(&scene.chat).unwrap();
        assert_eq!(one.sync(Phase::All).await.unwrap_err().name(), "rolled-back");
        assert_eq!(one.chat(&scene.chat).unwrap(), before, "nothing older is shown");
        assert!(one.verified_at().is_some());
        let mut shown = old.second_over(old.transport(), &scene.ana).await;
        let _without_key = shown.sync(Phase::All).await;
        assert_eq!(bodies(&shown, &scene.chat)[0], "first", "nothing was written by itself");

        let done = one.put_back().await.unwrap();
        assert_eq!((done.chats, done.copies, done.refused.as_slice()), (1, 0, &[][..]), "{done:?}");
        assert_eq!(done.removed, 2, "a message and a chat: {done:?}");
        one.sync(Phase::All).await.unwrap();
        assert!(one.chat(&doomed).is_err() && !one.listed().contains(&doomed));
        same(&one, &stranger(&old, &scene.ana).await);
        assert_eq!(one.chat(&scene.chat).unwrap().title(), Some("Lisbon"));

        // The other device had something newer still.
        let refused = two.sync(Phase::All).await.unwrap_err();
        assert!(matches!(refused.name(), "rolled-back" | "forked"), "{refused}");
        two.put_back().await.unwrap();
        two.sync(Phase::All).await.unwrap();
        one.sync(Phase::All).await.unwrap();
        same(&one, &two);
        assert_eq!(bodies(&one, &scene.chat), ["edited", "third", "with a map", "from the other"]);
        assert_eq!(one.data("settings", "theme").unwrap().as_deref(), Some("light"));
    }
}

#[tokio::test]
async fn what_another_device_wrote_since_stays_and_mine_is_a_copy() {
    let mut scene = Scene::new().await;
    let old = scene.world.backup().await;
    scene.one.edit(&scene.chat, &scene.ids[0], "mine").unwrap();
    scene.one.flush().await.unwrap();
    // A new device knows the restored server only, and edits twice.
    let mut new = stranger(&old, &scene.ana).await;
    for words in ["theirs", "theirs again"] {
        new.edit(&scene.chat, &scene.ids[0], words).unwrap();
        new.flush().await.unwrap();
    }
    new.say(&scene.chat, "said since").unwrap();
    new.flush().await.unwrap();
    let mut one = old.open(&scene.files[0]);
    let done = one.put_back().await.unwrap();
    assert_eq!((done.copies, done.removed, done.chats), (1, 0, 0), "{done:?}");
    assert_eq!(one.copies()[0].text.as_deref(), Some("mine"));
    one.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&one, &scene.chat), ["theirs again", "second", "third", "with a map", "said since"]);
}

#[tokio::test]
async fn a_state_of_before_a_rotation_is_never_written_to() {
    let mut scene = Scene::new().await;
    let old = scene.world.backup().await;
    scene.one.rotate(&scene.ana.recovery(), &[scene.ana.recovery()]).await.unwrap();
    let mut one = old.open(&scene.files[0]);
    assert_eq!(one.put_back().await.unwrap_err().name(), "key-refused");
    let by = scene.ana.recovery();
    assert_eq!(one.put_back_by(&by).await.unwrap_err().name(), "key-refused", "whoever logs in");
    // With the keyring lost as well: the chats there are of another account key; what is here takes their place.
    let lost = old.without_keyring().await;
    let (account, next) = (scene.account(), Person::new());
    let mut one = lost.open(&scene.files[0]);
    let code = lost.code(&account).await;
    let refused = one.restore(anew(&next, code.clone(), Rest::Stays)).await.unwrap_err();
    assert_eq!(refused.name(), "conflict");
    assert_eq!(one.restore(anew(&next, code, Rest::Goes)).await.unwrap(), Restored::Empty, "not used up");
    one.put_back().await.unwrap();
    one.sync(Phase::All).await.unwrap();
    same(&one, &stranger(&lost, &next).await);
}

/// Keeps every body that was sent.
struct Recording {
    inner: Arc<Local>,
    sent: Mutex<Vec<(String, Vec<u8>)>>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recording")
    }
}

#[async_trait]
impl Transport for Recording {
    fn origin(&self) -> &Origin {
        self.inner.origin()
    }

    async fn post(
        &self,
        path: &str,
        session: Option<&SessionKeys>,
        body: Vec<u8>,
    ) -> Result<Posted, TransportError> {
        self.sent.lock().push((path.to_owned(), body.clone()));
        self.inner.post(path, session, body).await
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        self.inner.connect().await
    }
}

#[tokio::test]
async fn a_code_is_for_one_lost_account_and_nothing_else() {
    let scene = Scene::new().await;
    let account = scene.account();
    let valid = Duration::from_secs(3600);
    // Alive: no code is made, and none that was made before is good.
    let refused = scene.world.service.restore_code(&account, valid).await.unwrap_err();
    assert_eq!(refused.error.name(), "conflict");
    let who = Registration {
        login: Login::parse("ben").unwrap(),
        credentials: vec![Credential::Recovery(RecoveryCode::random())],
        code: None,
    };
    let ben = Device::register(scene.world.setup(&MemoryFiles::new()), who).await.unwrap();
    let lost = scene.world.without_keyring().await;
    let [first, second, third] =
        [lost.code(&account).await, lost.code(&account).await, lost.code(&account).await];
    let bens = lost.code(ben.account_id()).await;
    let recording = Arc::new(Recording { inner: lost.transport(), sent: Mutex::default() });
    let way: Arc<dyn Transport> = recording.clone();
    let mut one = Device::open(lost.setup_over(way, &scene.files[0])).unwrap().unwrap();
    let next = Person::new();
    let mut restore = async |code: &str| {
        let how = anew(&next, code.to_owned(), Rest::Stays);
        one.restore(how).await.map_err(|error| error.name())
    };
    assert_eq!(restore(&bens).await, Err("login-refused"), "another account's");
    assert_eq!(restore("0123456789abcdef0123456789abcdef").await, Err("login-refused"), "nobody's");
    // A session of before is worth nothing here: it is not even asked for.
    assert_eq!(restore("").await, Err("login-refused"));
    assert_eq!(restore(&first).await, Ok(Restored::Kept));
    assert_eq!(restore(&first).await, Err("login-refused"), "used");
    assert_eq!(restore(&second).await, Err("conflict"), "alive again");
    // The same request once more.
    let sent = recording.sent.lock().clone();
    let (path, body) = sent.iter().rfind(|(path, _)| path == "/account/restore").unwrap().clone();
    let replayed = lost.transport().post(&path, None, body).await.unwrap_err();
    assert_eq!(Error::from(replayed).name(), "login-refused");
    lost.pass(2 * 3_600_000);
    assert_eq!(restore(&third).await, Err("login-refused"), "too late");
    // Erased for good: also with the database of before.
    let before = scene.world.fork().await;
    let erased = scene.one.account_id().clone();
    scene.one.erase(&scene.ana.recovery()).await.unwrap();
    for world in [&scene.world, &before] {
        assert_eq!(world.service.find_account(&erased).await, Ok(Found::Erased));
        let refused = world.service.restore_code(&erased, valid).await.unwrap_err();
        assert_eq!(refused.error.name(), "conflict");
    }
}

#[tokio::test]
async fn a_code_of_before_an_erasure_is_good_for_nothing() {
    let scene = Scene::new().await;
    let (account, lost) = (scene.account(), scene.world.without_keyring().await);
    let code = lost.code(&account).await;
    lost.service.remove(&account).await.unwrap();
    // The operator erases the person: keys and rows.
    confidant_chats::vault::Vault::destroy_account(&*lost.vault, &account).await.unwrap();
    let mut one = lost.open(&scene.files[0]);
    let refused = one.restore(anew(&Person::new(), code, Rest::Goes)).await.unwrap_err();
    assert_eq!(refused.name(), "conflict");
    assert_eq!(lost.service.count_accounts().await, Ok(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_devices_that_restore_at_once_one_does() {
    for rest in [Rest::Stays, Rest::Goes] {
        let scene = Scene::new().await;
        let (account, lost) = (scene.account(), scene.world.without_keyring().await);
        let codes = [lost.code(&account).await, lost.code(&account).await];
        let mut devices = [lost.open(&scene.files[0]), lost.open(&scene.files[1])];
        let people = [Person::new(), Person::new()];
        let [one, two] = &mut devices;
        let (first, second) = tokio::join!(
            one.restore(anew(&people[0], codes[0].clone(), rest)),
            two.restore(anew(&people[1], codes[1].clone(), rest)),
        );
        let winner = match (&first, &second) {
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => {
                assert_eq!(error.name(), "conflict");
                usize::from(second.is_ok())
            }
            both => panic!("{both:?}"),
        };
        let (device, person) = (&mut devices[winner], &people[winner]);
        device.restore_rings(&person.recovery()).await.unwrap();
        if rest == Rest::Goes {
            device.put_back().await.unwrap();
        }
        device.sync(Phase::All).await.unwrap();
        same(device, &stranger(&lost, person).await);
    }
}

/// Cuts the connection at the n-th request or frame, before or after it arrives.
struct Cut {
    left: AtomicUsize,
    is_after: bool,
}

impl Cut {
    fn is_now(&self) -> bool {
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1)
    }
}

impl Between for Cut {
    fn sends(&self, _: &[u8]) -> Passes {
        match (self.is_now(), self.is_after) {
            (false, _) => Passes::On,
            (true, false) => Passes::Lost,
            (true, true) => Passes::Unanswered,
        }
    }

    fn reaches(&self, _: &str) -> bool {
        self.is_after || !self.is_now()
    }

    fn posted(&self, _: &str, posted: Posted) -> Result<Posted, TransportError> {
        if self.is_after && self.is_now() { Err(TransportError::Offline) } else { Ok(posted) }
    }
}

/// Restores as a person would who is cut off now and then, and tries again.
async fn persist(world: &World, files: &Arc<MemoryFiles>, next: &Person, mut device: Device) -> Device {
    let account = device.account_id().clone();
    for _ in 0..5 {
        let done = async {
            if world.service.find_account(&account).await != Ok(Found::Alive) {
                device.restore(anew(next, world.code(&account).await, Rest::Stays)).await?;
            }
            match device.put_back().await {
                Err(Error::NotLoggedIn | Error::LoggedOut(_)) => device.put_back_by(&next.recovery()).await,
                done => done,
            }
        }
        .await;
        match done {
            Ok(_) => return device,
            Err(Error::Offline | Error::Files(_)) => {}
            Err(error) => panic!("{error}"),
        }
        files.revive();
        device = world.open(files);
    }
    panic!("it does not end");
}

#[tokio::test]
async fn a_restore_that_is_cut_off_anywhere_ends_well() {
    let scene = Scene::new().await;
    let lost = scene.world.without_database().await;
    let mut steps = 0;
    // Until a run is not cut any more.
    for is_after in [false, true] {
        for at in 1.. {
            let (world, files, next) = (lost.fork().await, scene.files[0].snapshot(), Person::new());
            let cut = Arc::new(Cut { left: AtomicUsize::new(at), is_after });
            let way = Arc::new(Through { inner: world.transport(), between: Arc::clone(&cut) });
            let device = Device::open(world.setup_over(way, &files)).unwrap().unwrap();
            drop(persist(&world, &files, &next, device).await);
            let mut device = world.open(&files);
            device.sync(Phase::All).await.unwrap();
            same(&device, &scene.one);
            same(&device, &stranger(&world, &next).await);
            if cut.left.load(Ordering::SeqCst) > 0 {
                break;
            }
            steps += 1;
        }
    }
    assert!(steps > 12, "{steps}");
    // Killed after so many writes to its files.
    for writes in 0.. {
        let (world, files, next) = (lost.fork().await, scene.files[0].snapshot(), Person::new());
        let device = world.open(&files);
        files.kill_after(writes);
        let mut device = persist(&world, &files, &next, device).await;
        let uncut = files.is_alive();
        files.revive();
        device.sync(Phase::All).await.unwrap();
        same(&device, &scene.one);
        if uncut {
            assert!(writes > 2, "{writes}");
            break;
        }
    }
}
