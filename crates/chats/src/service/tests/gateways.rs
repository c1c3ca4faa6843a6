//! Two gateways on one PostgreSQL: what is done at one is heard at the other, in order, and nothing is lost without a word.

use confidant_chat_protocol::{CloseCode, Logout, LogoutReason, RevokeDevice};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::news::PostgresNews;
use crate::store::NewDevice;
use crate::store::conformance::device::sealed;
use confidant_postgres::Link;

type World = super::World<OnPostgres>;

/// A gateway, which listens until it is dropped.
struct Gateway {
    world: World,
    news: Arc<PostgresNews>,
    listening: JoinHandle<()>,
}

impl std::ops::Deref for Gateway {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Another gateway of the same installation, which is up.
async fn gateway(of: &World) -> Gateway {
    let OnPostgres::Server(place) = &of.home else { panic!("no server") };
    let inner = &of.service.inner;
    let news = Arc::new(PostgresNews::new(&place.link, Arc::clone(&inner.vault)).unwrap());
    let parts = Parts {
        store: Arc::clone(&inner.store),
        vault: Arc::clone(&inner.vault),
        clock: Arc::clone(&inner.clock),
        settings: inner.settings.clone(),
    };
    let hooks = Hooks { news: Some(Arc::<PostgresNews>::clone(&news)), ..Hooks::default() };
    let world = World {
        service: Service::with_hooks(parts, hooks),
        store: Arc::clone(&of.store),
        vault: Arc::clone(&of.vault),
        now: Arc::clone(&of.now),
        home: OnPostgres::Without(OnSqlite::open().await.0),
        first: of.first.clone(),
    };
    let service = world.service.clone();
    let listening = tokio::spawn(async move { service.listen().await });
    let gateway = Gateway { world, news, listening };
    until(|| gateway.news.counts().is_connected).await;
    gateway
}

/// The installation, and two gateways of it; nothing without a server.
async fn two() -> Option<(World, Gateway, Gateway)> {
    let world = World::new().await;
    let OnPostgres::Server(_) = &world.home else { return None };
    let (one, two) = (gateway(&world).await, gateway(&world).await);
    Some((world, one, two))
}

async fn until(mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < deadline, "it does not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How a socket ends, after whatever it hears before.
async fn closing(socket: &mut Socket) -> Closing {
    let ending = async {
        loop {
            if let Err(closing) = socket.news().await {
                return closing;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ending).await.expect("the socket stays open")
}

/// The connections that listen, cut by the server.
async fn cut(world: &World) -> u64 {
    let OnPostgres::Server(place) = &world.home else { panic!("no server") };
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = left($1, 63)";
    let name = format!("confidant news {}", place.link.schema);
    place.everything.query(sql, &[&name]).await.unwrap().len() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_at_two_gateways_are_heard_at_both_in_order() {
    let Some((_installation, here, there)) = two().await else { return };
    let mut ana = here.register("ana").await;
    let mut socket = here.connect(&ana).await;
    let chats = [ana.create(&mut socket, 0).await, ana.create(&mut socket, 0).await];
    drop(socket);
    let second = there.second(&ana).await;
    let (mut near, mut far) = (here.connect(&ana).await, there.connect(&second).await);
    let write = async |gateway: &Gateway, chat: &ChatId| {
        let mut person = ana.clone();
        let mut socket = gateway.connect(&person).await;
        for at in 0..20 {
            // Some fit into one piece, and some do not.
            let edit = Edit { puts: messages_of(1), length: 900 * at, ..Edit::default() };
            person.write(&mut socket, chat, &edit).await;
        }
    };
    tokio::join!(write(&here, &chats[0]), write(&there, &chats[1]));
    for socket in [&mut near, &mut far] {
        let mut heard = Vec::new();
        while heard.len() < 40 {
            let frame = news(socket).await;
            if let ServerEvent::ChatUpdated(update) = &frame.event {
                assert!(update.items.iter().all(|item| item.envelope.is_some()));
                heard.push(frame.seq.unwrap());
            }
        }
        assert!(heard.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{heard:?}");
    }
    assert!(here.news.counts().told >= 20 && there.news.counts().heard >= 20);
    assert_eq!([&here, &there].map(|one| one.news.counts().malformed), [0, 0]);
}

#[tokio::test]
async fn a_session_that_ends_at_one_gateway_ends_at_the_other() {
    let Some((_installation, here, there)) = two().await else { return };
    let ana = here.register("ana").await;
    let second = here.second(&ana).await;
    let mut far = there.connect(&second).await;
    let revoke = RevokeDevice { device: second.here.clone() };
    here.prove::<_, Done>("/account/devices/revoke", &ana, &revoke).await.unwrap();
    let reason = |closing: Closing| {
        assert_eq!(closing.code, CloseCode::LoggedOut);
        let ServerEvent::ForceLogout(logout) = closing.last.unwrap().event else { panic!() };
        logout.reason
    };
    assert_eq!(reason(closing(&mut far).await), LogoutReason::Revoked);
    let (third, fourth) = (there.second(&ana).await, there.second(&ana).await);
    let (mut three, mut four) = (there.connect(&third).await, there.connect(&fourth).await);
    let caller = here.caller(Some(&third.session));
    here.post_as::<Done>("/account/logout", &caller, &Logout { everywhere: false }).await.unwrap();
    assert_eq!(reason(closing(&mut three).await), LogoutReason::Revoked);
    here.service.remove(&ana.device.id).await.unwrap();
    assert_eq!(reason(closing(&mut four).await), LogoutReason::Erased);
}

#[tokio::test]
async fn news_that_are_too_large_make_devices_sync() {
    let Some((_installation, here, there)) = two().await else { return };
    let mut ana = here.register("ana").await;
    let mut second = there.second(&ana).await;
    let (mut near, mut far) = (here.connect(&ana).await, there.connect(&second).await);
    let edit = Edit { puts: messages_of(4), length: 150_000, ..Edit::default() };
    let chat = ChatId::random();
    ana.write(&mut near, &chat, &edit).await;
    assert_eq!(closing(&mut far).await, Closing { code: CloseCode::Stopping, last: None });
    let mut far = there.connect(&second).await;
    second.sync(&mut far).await;
    assert_eq!(second.device.chats[&chat].items, ana.device.chats[&chat].items);
    // One that is as long as messages may be is heard.
    let edit = Edit { puts: messages_of(1), length: 200_000, ..Edit::default() };
    ana.write(&mut near, &chat, &edit).await;
    let frame = news(&mut far).await;
    let ServerEvent::ChatUpdated(update) = &frame.event else { panic!("{frame:?}") };
    assert!(update.items.iter().all(|item| item.envelope.is_some()));
}

#[tokio::test]
async fn a_cut_connection_is_made_again_and_what_was_missed_is_noticed() {
    let Some((installation, here, there)) = two().await else { return };
    let (mut ana, ben) = (here.register("ana").await, here.register("ben").await);
    let second = there.second(&ana).await;
    let (mut near, mut far) = (here.connect(&ana).await, there.connect(&second).await);
    let mut other = there.connect(&ben).await;
    let chat = ana.create(&mut near, 1).await;
    let seen = news(&mut far).await;
    assert_eq!((seen.event.name(), news(&mut far).await.event.name()), ("chat_updated", "account_updated"));
    let lost = |gateway: &Gateway| gateway.news.counts().lost;
    assert_eq!((lost(&here), lost(&there)), (0, 0));
    assert_eq!(cut(&installation).await, 2);
    until(|| lost(&here) > 0 && lost(&there) > 0).await;
    until(|| here.news.counts().is_connected && there.news.counts().is_connected).await;
    // Sockets that missed nothing stay, and hear on.
    ana.write(&mut near, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
    assert_eq!(news(&mut far).await.event.name(), "chat_updated");
    // While nobody listens, something is written and nobody tells it, and a session ends.
    there.listening.abort();
    until(|| there.listening.is_finished()).await;
    let (write, after) = ana.device.write(&chat, &Edit { puts: messages_of(1), ..Edit::default() });
    installation.store.write(write).await.unwrap();
    ana.device = after;
    installation.store.end_session(&ben.device.id, hashed(&ben.session.id)).await.unwrap();
    let service = there.service.clone();
    let again = tokio::spawn(async move { service.listen().await });
    assert_eq!(closing(&mut far).await, Closing { code: CloseCode::Stopping, last: None });
    assert_eq!(closing(&mut other).await.code, CloseCode::LoggedOut);
    again.abort();
}

#[tokio::test]
async fn a_gateway_that_was_killed_before_it_told_leaves_no_gap() {
    let Some((installation, here, there)) = two().await else { return };
    let mut ana = here.register("ana").await;
    let second = there.second(&ana).await;
    let mut near = here.connect(&ana).await;
    let chat = ana.create(&mut near, 1).await;
    let mut far = there.connect(&second).await;
    let account = &ana.device.id;
    let seq = installation.store.account(account).await.unwrap().seq;
    // What says nothing but that something changed is said from the store.
    let device = NewDevice { device: DeviceId::random(), label: sealed("label"), now: NOW };
    installation.store.add_device(account, device).await.unwrap();
    ana.write(&mut near, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
    // What was before may be told late.
    let mut first = news(&mut far).await;
    while first.seq.is_some_and(|told| told <= seq) {
        first = news(&mut far).await;
    }
    let heard = [first, news(&mut far).await];
    assert_eq!(heard.each_ref().map(|frame| frame.seq), [Some(seq + 1), Some(seq + 2)]);
    assert_eq!(heard.each_ref().map(|frame| frame.event.name()), ["devices_changed", "chat_updated"]);
    // A chat is not: whoever has the next change in his hands syncs.
    let (write, after) = ana.device.write(&chat, &Edit { puts: messages_of(1), ..Edit::default() });
    installation.store.write(write).await.unwrap();
    ana.device = after;
    ana.write(&mut near, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
    assert_eq!(closing(&mut far).await, Closing { code: CloseCode::Stopping, last: None });
    // So does everybody by and by, if nothing else changes.
    let mut far = there.connect(&second).await;
    let (write, after) = ana.device.write(&chat, &Edit { puts: messages_of(1), ..Edit::default() });
    installation.store.write(write).await.unwrap();
    ana.device = after;
    there.service.upkeep().await.unwrap();
    assert_eq!(closing(&mut far).await, Closing { code: CloseCode::Stopping, last: None });
}

#[tokio::test]
async fn what_strangers_say_is_counted_and_left() {
    let Some((installation, here, there)) = two().await else { return };
    let OnPostgres::Server(place) = &installation.home else { return };
    let mut ana = here.register("ana").await;
    let second = there.second(&ana).await;
    let (mut near, mut far) = (here.connect(&ana).await, there.connect(&second).await);
    let said = format!(
        "ended {} all\n{{\"event\":{{\"type\":\"force_logout\",\"reason\":\"erased\"}}}}",
        ana.device.id
    );
    let id = "07".repeat(16);
    let forged = [String::new(), "x".repeat(7999), said.clone(), format!("{id} {id} 1 0/1 {said}")];
    for said in &forged {
        let sql = "SELECT pg_notify($1, $2)";
        place.everything.query(sql, &[&there.news.channel(), said]).await.unwrap();
    }
    until(|| there.news.counts().malformed == forged.len() as u64).await;
    // Another installation, in another schema or with another key, has a channel of its own.
    let link = Link { schema: "other".to_owned(), ..place.link.clone() };
    let other = PostgresNews::new(&link, Arc::clone(&installation.service.inner.vault)).unwrap();
    let foreign = PostgresNews::new(&place.link, Arc::new(MemoryVault::new())).unwrap();
    assert_eq!(here.news.channel(), there.news.channel());
    assert!(![other.channel(), foreign.channel()].contains(&here.news.channel()));
    ana.create(&mut near, 1).await;
    assert_eq!(news(&mut far).await.event.name(), "chat_updated");
}

/// A burst with nobody to say it to: whoever changes something does not wait, and others sync.
#[tokio::test]
async fn a_burst_that_finds_no_room_makes_devices_sync() {
    let Some((_installation, here, there)) = two().await else { return };
    let mut ana = here.register("ana").await;
    let second = there.second(&ana).await;
    let (mut near, mut far) = (here.connect(&ana).await, there.connect(&second).await);
    here.listening.abort();
    until(|| here.listening.is_finished()).await;
    let chat = ana.create(&mut near, 0).await;
    // So many bytes that not all of them are kept.
    for _ in 0..40 {
        here.pass(Duration::from_secs(1));
        let edit = Edit { puts: messages_of(1), length: 190_000, ..Edit::default() };
        ana.write(&mut near, &chat, &edit).await;
    }
    let service = here.service.clone();
    let again = tokio::spawn(async move { service.listen().await });
    assert_eq!(closing(&mut far).await, Closing { code: CloseCode::Stopping, last: None });
    let mut far = there.connect(&second).await;
    ana.write(&mut near, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
    assert_eq!(news(&mut far).await.event.name(), "chat_updated");
    again.abort();
}
