//! A server with somebody at its side who has the account key, such as the finder of a lost device: what he seals opens, and so do the lists that he
//! makes. Only what he says can be wrong.

use std::sync::Arc;

use confidant_chat_format::{
    AccountId, AccountKey, ChatId, Digest, Entry, Head, ItemId, List, Mark, Message, MessageId, Place, Ring,
    RingOf, Role, Root, SeenWrap, Wrap, chain, live, open_record, seal_record,
};
use confidant_chat_protocol::{
    Body as _, ChatSent, ChatUpdated, Envelope, HeadPut, ServerEvent, SessionOpened,
};
use confidant_client::{Device, Phase};
use parking_lot::Mutex;

use super::{Liar, Scene, edit_list, on_chats};
use crate::devices::bodies;

/// What he has: the keys, and the chat as the server has it.
struct KeyHolder {
    account: AccountId,
    chat: ChatId,
    ring: Ring,
    list: List,
    /// The head that others have, and its chain.
    before: (Mark, Digest),
    device: confidant_chat_format::DeviceId,
}

impl KeyHolder {
    /// With a device that has everything, over a liar.
    async fn of(scene: &Scene) -> (Self, Arc<Liar>, Device) {
        let (liar, way) = scene.way();
        let opened: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
        let kept = Arc::clone(&opened);
        liar.posts(move |path, posted| {
            if path == "/account/login" {
                *kept.lock() = Some(posted.body.clone());
            }
        });
        let mut device = scene.world.second_over(way, &scene.ana).await;
        device.sync(Phase::All).await.unwrap();
        let opened = SessionOpened::read(opened.lock().as_ref().unwrap()).unwrap();
        let (kek, wrap) =
            (Root::from_recovery(&scene.ana.code).kek(), opened.wrap.as_ref().map(Envelope::sealed));
        let seen = SeenWrap::default();
        let (ak, _) =
            AccountKey::open(&kek, &opened.account, opened.generation, Wrap::Recovery, wrap, seen).unwrap();
        let mut sent: Option<ChatSent> = None;
        for mut frame in liar.heard.lock().clone() {
            on_chats(&mut frame, |one| {
                if one.chat == scene.chat {
                    sent = Some(one.clone());
                }
            });
        }
        let sent = sent.unwrap();
        let entries: Vec<Entry> = sent.ring.iter().cloned().map(Entry::from).collect();
        let ring = Ring::open(&ak, &opened.account, RingOf::Chat(&scene.chat), &entries).unwrap();
        let head =
            open_record(&ring, &opened.account, &Place::Head(&scene.chat), sent.head.sealed()).unwrap();
        let mark = Mark { rev: head.rev, envelope: Digest::of(sent.head.sealed().as_bytes()) };
        let holder = Self {
            account: opened.account,
            chat: scene.chat.clone(),
            list: sent.items.iter().map(|item| (item.item.clone(), item.hash)).collect(),
            before: (mark, Head::from_json(&head.json).unwrap().chain),
            ring,
            device: opened.device,
        };
        (holder, liar, device)
    }

    /// Puts this in the place of the message that news bring, with a head that has it.
    fn replace(&self, news: &mut ChatUpdated, parent: impl Fn(&MessageId) -> Option<MessageId>) {
        let item = news.items[0].item.clone();
        let ItemId::Message(id) = &item else { panic!("the news bring a message") };
        let message = Message {
            v: 1,
            role: Role::User,
            parent: parent(id),
            created_at: 7,
            body: "false".to_owned(),
            model: None,
            reason: None,
            refs: Vec::new(),
            proof: None,
            shared: Vec::new(),
        };
        let (held, mut list) = (self.ring.newest(), self.list.clone());
        let seal = |place: &Place<'_>, rev, json: &[u8]| seal_record(held, &self.account, place, rev, json);
        let sealed = seal(&Place::Item(&self.chat, &item), 1, &message.to_json());
        let hash = Digest::of(sealed.as_bytes());
        list.insert(item.clone(), hash);
        let (before, live) = (&self.before, live(&list));
        let head = Head {
            v: 1,
            key: held.n(),
            kid: held.key().kid(),
            count: u32::try_from(list.len()).unwrap(),
            live,
            chain: chain(&before.1, &before.0.envelope, &live),
            leaf: Some(id.clone()),
            pending: Vec::new(),
            at: 7,
            device: self.device.clone(),
        };
        let chain = head.chain;
        let envelope = seal(&Place::Head(&self.chat), before.0.rev + 1, &head.to_json());
        news.head = HeadPut { envelope: Envelope::new(envelope).unwrap(), live, chain };
        edit_list(&mut news.items, |items| {
            (items[0].hash, items[0].envelope) = (hash, Some(Envelope::new(sealed).unwrap()));
        });
    }
}

/// A parent that nobody has, and one that is the message itself; and as a control, one that is there.
#[tokio::test]
async fn a_message_whose_parent_is_not_there_is_refused_by_name() {
    type Parent = fn(&[MessageId], &MessageId) -> Option<MessageId>;
    let parents: [(&str, Option<&str>, Parent); 3] = [
        ("nobody has its parent", Some("parent-missing"), |_, _| Some(MessageId::random())),
        ("it answers itself", Some("parent-missing"), |_, id| Some(id.clone())),
        ("its parent is there", None, |ids, _| Some(ids[2].clone())),
    ];
    for (what, expected, parent) in parents {
        let mut scene = Scene::new().await;
        let (holder, liar, mut device) = KeyHolder::of(&scene).await;
        scene.one.say(&scene.chat, "true").unwrap();
        scene.one.flush().await.unwrap();
        let ids = scene.ids.clone();
        liar.tells(move |frame| {
            if let ServerEvent::ChatUpdated(news) = &mut frame.event {
                holder.replace(news, |id| parent(&ids, id));
            }
        });
        let heard = loop {
            match device.listen().await {
                Ok(confidant_client::News::Chat(_)) => break None,
                Ok(_) => {}
                Err(error) => break Some(error),
            }
        };
        assert_eq!(heard.as_ref().map(confidant_client::Error::name), expected, "{what}");
        let shown = bodies(&device, &scene.chat);
        assert_eq!(shown[..3], ["first", "second", "third"], "{what}");
        assert_eq!(shown.get(3).map(String::as_str), expected.is_none().then_some("false"), "{what}");
    }
}
