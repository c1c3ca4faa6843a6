//! Tickets, caps and news.

use confidant_chat_protocol::{CloseCode, DeleteMessage, LogoutReason, Ping, UpdateDraft};

use super::*;
use crate::store::conformance::device::title;

fn hello(ticket: confidant_chat_protocol::Secret) -> ClientEvent {
    ClientEvent::Hello(Hello { v: 1, ticket, seq: Some(1) })
}

fn ping() -> ClientEvent {
    ClientEvent::Ping(Ping {})
}

#[tokio::test]
async fn a_ticket_opens_one_socket_of_its_origin() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let refused = Err(Closing { code: CloseCode::Unauthorised, last: None });
    let connect = || world.service.connect(origin(), network("192.0.2.1"));
    let ticket = world.ticket(&ana).await;
    ask(&mut connect(), hello(ticket.clone())).await.unwrap();
    assert_eq!(ask(&mut connect(), hello(ticket)).await, refused, "twice");
    let mut far =
        world.service.connect(Origin::parse("https://other.example").unwrap(), network("192.0.2.1"));
    let ticket = world.ticket(&ana).await;
    assert_eq!(ask(&mut far, hello(ticket.clone())).await, refused);
    assert_eq!(ask(&mut connect(), hello(ticket)).await, refused, "it was used up all the same");
    let ticket = world.ticket(&ana).await;
    world.pass(Duration::from_secs(30));
    assert_eq!(ask(&mut connect(), hello(ticket)).await, refused, "30 seconds");
    let ticket = world.ticket(&ana).await;
    let caller = world.caller(Some(&ana.session));
    let logout = confidant_chat_protocol::Logout { everywhere: false };
    world.post_as::<Done>("/account/logout", &caller, &logout).await.unwrap();
    assert_eq!(ask(&mut connect(), hello(ticket)).await, refused, "its session is over");
    assert_eq!(ask(&mut connect(), ping()).await, refused, "anything else than hello");
    assert_eq!(connect().receive(b"{").await, refused);
    let challenge = world.challenge(Purpose::Login).await;
    assert_eq!(ask(&mut connect(), hello(challenge)).await, refused, "a challenge is no ticket");
}

#[tokio::test]
async fn a_socket_that_says_nothing_is_closed() {
    let world = World::new().await;
    tokio::time::pause();
    let mut socket = world.service.connect(origin(), network("192.0.2.1"));
    let late = Closing { code: CloseCode::Late, last: None };
    assert_eq!(socket.news().await.unwrap_err(), late);
    assert_eq!(ask(&mut socket, ping()).await.unwrap_err(), late);
}

#[tokio::test]
async fn frames_are_capped_in_size_and_number() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let refused = socket.receive(br#"{"id":9,"event":{"type":"ping","x":1}}"#).await.unwrap();
    assert_eq!((refused[0].re, name(&refused)), (Some(9), "malformed".to_owned()));
    assert_eq!(name(&ask(&mut socket, hello(world.ticket(&ana).await)).await.unwrap()), "malformed");
    let large = vec![b' '; confidant_chat_protocol::limits::MAX_FRAME + 1];
    assert_eq!(socket.receive(&large).await.unwrap_err().code, CloseCode::TooLarge);
    assert_eq!(socket.news().await.unwrap_err().code, CloseCode::TooLarge);
    let mut socket = world.connect(&ana).await;
    let mut count = 0;
    let closing = loop {
        match ask(&mut socket, ping()).await {
            Ok(pong) => assert_eq!(name(&pong), "pong"),
            Err(closing) => break closing,
        }
        count += 1;
    };
    assert_eq!((closing.code, count), (CloseCode::Rate, 239));
}

#[tokio::test]
async fn an_account_has_so_many_sockets_at_once() {
    let world = World::new().await;
    let (ana, ben) = (world.register("ana").await, world.register("ben").await);
    let mut sockets = Vec::new();
    for _ in 0..64 {
        sockets.push(world.connect(&ana).await);
    }
    let mut socket = world.service.connect(origin(), network("192.0.2.1"));
    let closing = ask(&mut socket, hello(world.ticket(&ana).await)).await.unwrap_err();
    assert_eq!((closing.code, name(&[*closing.last.unwrap()])), (CloseCode::Rate, "rate".to_owned()));
    world.connect(&ben).await;
    sockets.pop();
    world.connect(&ana).await;
}

#[tokio::test]
async fn other_devices_hear_of_every_change_in_order() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let second = world.second(&ana).await;
    let (mut one, mut two) = (world.connect(&ana).await, world.connect(&second).await);
    let mut mine = world.connect(&ana).await;
    let stranger = world.register("ben").await;
    let mut far = world.connect(&stranger).await;
    let chat = ChatId::random();
    let embed = ItemId::Embed(confidant_chat_format::EmbedId::random());
    let puts = vec![messages_of(1).remove(0), title(), embed.clone()];
    let stored = ana.write(&mut one, &chat, &Edit { puts: puts.clone(), ..Edit::default() }).await;
    let ServerEvent::EncryptedMetadataStored(answer) = &stored.event else { panic!() };
    assert_eq!((answer.messages_v, answer.title_v, answer.placed.len()), (1, 1, 3));
    let seq = stored.seq.unwrap();
    for socket in [&mut two, &mut mine] {
        let first = news(socket).await;
        assert_eq!((first.re, first.seq), (None, Some(seq - 1)));
        let ServerEvent::ChatUpdated(update) = &first.event else { panic!("{first:?}") };
        assert_eq!((update.before, update.title_v, update.items.len()), (0, 1, 3));
        for sent in update.items.iter() {
            let mine = &ana.device.chats[&chat].items[&sent.item];
            assert_eq!(sent.hash, Digest::of(mine.as_bytes()));
            assert_eq!(sent.envelope.as_ref().map(Envelope::sealed), (sent.item != embed).then_some(mine));
        }
        let then = news(socket).await;
        assert_eq!((then.seq, then.event.name()), (Some(seq), "account_updated"));
    }
    // A draft, then a message that goes.
    let draft = ana.device.seal(&chat, &Place::Draft(&chat), 1, b"{}");
    let draft = UpdateDraft { chat: chat.clone(), expected: 0, draft: Envelope::new(draft).unwrap() };
    let frames = ask(&mut one, ClientEvent::UpdateDraft(draft.clone())).await.unwrap();
    assert_eq!((name(&frames), frames[0].seq), ("chat_draft_updated".to_owned(), Some(seq + 1)));
    let heard = news(&mut two).await;
    let ServerEvent::ChatDraftUpdated(update) = &heard.event else { panic!("{heard:?}") };
    assert_eq!((heard.seq, update.draft.as_ref()), (Some(seq + 1), Some(&draft.draft)));
    let frames = ask(&mut one, ClientEvent::UpdateDraft(draft)).await.unwrap();
    let ServerEvent::WriteConflict(conflict) = &frames[0].event else { panic!("{frames:?}") };
    assert_eq!((conflict.draft_v, conflict.messages_v), (Some(1), None));
    let (write, after) = ana.device.write(&chat, &Edit { removes: vec![puts[0].clone()], ..Edit::default() });
    let ItemId::Message(message) = puts[0].clone() else { panic!() };
    let delete = DeleteMessage {
        chat: chat.clone(),
        expected: 1,
        message: message.clone(),
        embeds: List::default(),
        head: sent(write).head,
        ring: None,
    };
    let frames = ask(&mut one, ClientEvent::DeleteMessage(delete)).await.unwrap();
    assert_eq!((name(&frames), frames[0].seq), ("encrypted_metadata_stored".to_owned(), Some(seq + 2)));
    ana.device = after;
    let heard = news(&mut two).await;
    let ServerEvent::MessageDeleted(gone) = &heard.event else { panic!("{heard:?}") };
    assert_eq!((heard.seq, &gone.message), (Some(seq + 2), &message));
    // Then the whole chat, with its key.
    let keys = world.vault.count();
    let (delete, after) = ana.device.deletion(&chat);
    let (floors, manifest) = sent_list(delete.list);
    let delete = confidant_chat_protocol::DeleteChat {
        chat: chat.clone(),
        expected: 2,
        floor: floors[0].clone(),
        manifest,
    };
    let frames = ask(&mut one, ClientEvent::DeleteChat(delete.clone())).await.unwrap();
    assert_eq!((name(&frames), frames[0].seq), ("chat_deleted".to_owned(), Some(seq + 4)));
    ana.device = after;
    assert_eq!(world.vault.count(), keys - 1);
    assert_eq!(world.vault.key(&ana.device.id, Some(&chat)).await, Ok(None));
    let heard = [news(&mut two).await, news(&mut two).await];
    assert_eq!(heard.each_ref().map(|frame| frame.seq), [Some(seq + 3), Some(seq + 4)]);
    assert_eq!(heard.each_ref().map(|frame| frame.event.name()), ["chat_deleted", "account_updated"]);
    assert_eq!(name(&ask(&mut one, ClientEvent::DeleteChat(delete)).await.unwrap()), "not-found");
    // The socket that wrote heard nothing of its own: the first thing that it hears is another's.
    let kind = confidant_chat_format::FieldName::parse("settings").unwrap();
    let data = Envelope::new(ana.device.seal_data(&kind, &kind, 1)).unwrap();
    let update = confidant_chat_protocol::UpdateData { name: kind.clone(), kind, expected: 0, data };
    assert_eq!(name(&ask(&mut mine, ClientEvent::UpdateData(update)).await.unwrap()), "data_updated");
    assert_eq!(news(&mut one).await.event.name(), "data_updated");
    // Nobody else heard anything: the first thing that a stranger hears is her own.
    let revoke = confidant_chat_protocol::RevokeDevice { device: stranger.here.clone() };
    world.prove::<_, Done>("/account/devices/revoke", &stranger, &revoke).await.unwrap();
    assert_eq!(far.news().await.unwrap_err().code, CloseCode::LoggedOut);
}

#[tokio::test]
async fn a_socket_that_does_not_keep_up_is_closed_and_syncs() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut second = world.second(&ana).await;
    let (mut one, mut slow) = (world.connect(&ana).await, world.connect(&second).await);
    let chat = ana.create(&mut one, 0).await;
    for _ in 0..256 {
        world.pass(Duration::from_secs(1));
        ana.write(&mut one, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
    }
    let mut heard = 0;
    let closing = loop {
        match slow.news().await {
            Ok(_) => heard += 1,
            Err(closing) => break closing,
        }
    };
    assert_eq!((closing.code, heard), (CloseCode::Stopping, 256));
    let mut socket = world.connect(&second).await;
    second.sync(&mut socket).await;
    assert_eq!(second.device.chats[&chat].items, ana.device.chats[&chat].items);
}

#[tokio::test]
async fn a_session_that_ended_elsewhere_is_noticed_within_a_minute() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    // Another gateway, which does not talk to this one.
    world.store.end_session(&ana.device.id, hashed(&ana.session.id)).await.unwrap();
    ask(&mut socket, ping()).await.unwrap();
    world.pass(Duration::from_secs(60));
    let closing = ask(&mut socket, ping()).await.unwrap_err();
    assert_eq!(closing.code, CloseCode::LoggedOut);
    let ServerEvent::ForceLogout(logout) = closing.last.unwrap().event else { panic!() };
    assert_eq!(logout.reason, LogoutReason::Expired);
}

/// Keeps what it hears.
#[derive(Debug, Default)]
struct Ear(parking_lot::Mutex<Vec<(AccountId, AccountEvent)>>);

impl News for Ear {
    fn happened(&self, account: &AccountId, happened: &AccountEvent) {
        self.0.lock().push((account.clone(), happened.clone()));
    }
}

#[tokio::test]
async fn another_gateway_hears_and_tells_its_sockets() {
    let world = World::new().await;
    let ear = Arc::new(Ear::default());
    let inner = &world.service.inner;
    let parts = Parts {
        store: Arc::clone(&inner.store),
        vault: Arc::clone(&inner.vault),
        clock: Arc::clone(&inner.clock),
        settings: inner.settings.clone(),
    };
    let hooks = Hooks { news: Some(Arc::<Ear>::clone(&ear)), ..Hooks::default() };
    let other = Service::with_hooks(parts, hooks);
    let mut ana = world.register("ana").await;
    let mut here = world.connect(&ana).await;
    let mut there = other.connect(origin(), network("192.0.2.1"));
    ask(&mut there, hello(world.ticket(&ana).await)).await.unwrap();
    ana.create(&mut there, 1).await;
    let heard: Vec<_> = ear.0.lock().drain(..).collect();
    for (account, happened) in &heard {
        world.service.hear(account, happened);
    }
    assert_eq!(news(&mut here).await.event.name(), "chat_updated");
    assert_eq!(news(&mut here).await.event.name(), "account_updated");
    assert!(!format!("{heard:?}").contains(ana.device.id.as_str()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_made_at_once_are_heard_in_order() {
    let world = Arc::new(World::new().await);
    let ana = world.register("ana").await;
    let mut first = ana.clone();
    let mut socket = world.connect(&first).await;
    let chats = [first.create(&mut socket, 0).await, first.create(&mut socket, 0).await];
    let mut ear = world.connect(&ana).await;
    let writers = chats.map(|chat| {
        let (world, mut person) = (Arc::clone(&world), first.clone());
        tokio::spawn(async move {
            let mut socket = world.connect(&person).await;
            for _ in 0..20 {
                person.write(&mut socket, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
            }
        })
    });
    for writer in writers {
        writer.await.unwrap();
    }
    let mut seqs = Vec::new();
    for _ in 0..40 {
        seqs.push(news(&mut ear).await.seq.unwrap());
    }
    assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{seqs:?}");
}
