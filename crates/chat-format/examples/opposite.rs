//! The other side of a differential run: reads cases as JSON lines, seals or opens them, answers with JSON lines.
//!
//! `web/test/differential.test.ts` starts it and compares: what one side seals the other opens, and what one refuses the
//! other refuses with the same name. Bytes are base64url, digests and ids as they are sent. Every answer is `{"ok": …}` or
//! `{"refused": name}`. A case that cannot be read ends the program: the two sides have drifted apart.
#![expect(clippy::unwrap_used, reason = "a run that cannot go on has failed")]

#[path = "../tests/world/mod.rs"]
mod world;

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, Write as _};

use confidant_chat_format::vectors::new_device_insecure_for_testing;
use confidant_chat_format::*;
use confidant_seal::{Context, Key, Kid, Sealed, Suite, open, seal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use world::{Device, World};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let ask: Ask = serde_json::from_str(&line?).expect("a case that both sides know");
        let answer = match answer(ask) {
            Ok(value) => json!({ "ok": value }),
            Err(refused) => json!({ "refused": refused.name() }),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Ask {
    Seal {
        key: String,
        context: [String; 5],
        rev: u32,
        data: String,
    },
    Open {
        key: String,
        context: [String; 5],
        sealed: String,
    },
    Parse {
        kind: String,
        text: String,
    },
    Read {
        record: String,
        json: String,
    },
    Password {
        password: String,
        salt: String,
    },
    Prove {
        root: String,
        statement: ToSign,
    },
    Verify {
        public_key: String,
        proof: String,
        statement: ToSign,
    },
    Wrap {
        kek: String,
        ak: String,
        generation: u32,
        account: AccountId,
        field: String,
        rev: u32,
    },
    OpenWrap {
        kek: String,
        generation: u32,
        account: AccountId,
        field: String,
        sealed: String,
        seen: (u32, u32),
    },
    SealRing {
        ak: String,
        generation: u32,
        account: AccountId,
        of: String,
        keys: Vec<(String, u32)>,
    },
    OpenRing {
        ak: String,
        generation: u32,
        account: AccountId,
        of: String,
        rows: Vec<Row>,
    },
    Claim {
        key: String,
        branch: Vec<(MessageId, u32)>,
        message: (MessageId, u32),
        reply: MessageId,
    },
    Digests {
        list: Vec<(ItemText, Digest)>,
        before: Digest,
        rings: Vec<(String, u32, String)>,
    },
    Adopt {
        key: String,
        chat: ChatId,
        said: Vec<Spoken>,
    },
    SealLetter {
        letter: About,
        box_pub: PublicKey,
        json: String,
        more: bool,
    },
    OpenLetter {
        letter: About,
        boxes: Vec<String>,
        head: String,
        listed: Vec<ItemText>,
        wire: String,
        more: bool,
    },
    Send {
        pair: Pair,
        ak: String,
        generation: u32,
        mark: Mark,
        new: PublicKey,
    },
    Receive {
        pair: Pair,
        generation: u32,
        new: String,
        wire: String,
    },
    Take {
        state: State,
    },
    World {
        script: Vec<(String, usize, String)>,
    },
}

/// What is signed.
#[derive(Deserialize)]
struct ToSign {
    origin: String,
    purpose: String,
    signer: String,
    challenge: String,
    body: String,
}

/// A message of a branch, as a client gives it back.
#[derive(Deserialize)]
struct Spoken {
    id: MessageId,
    kind: u8,
    text: String,
    proof: Option<Digest>,
}

#[derive(Deserialize)]
struct About {
    account: AccountId,
    chat: ChatId,
    reply: MessageId,
    turn: TurnId,
}

#[derive(Deserialize)]
struct Pair {
    secret: String,
    origin: String,
    account: AccountId,
}

#[derive(Serialize, Deserialize)]
struct Row {
    n: u32,
    kid: String,
    subs: Vec<String>,
    sealed: String,
}

#[derive(Serialize, Deserialize)]
struct Way {
    chain: Digest,
    steps: Vec<(Digest, Digest)>,
}

/// All that a server sent, and all that the device remembers.
#[derive(Serialize, Deserialize)]
struct State {
    account: AccountId,
    ak: String,
    generation: u32,
    seen: (u32, Option<Mark>),
    ring: Vec<Row>,
    box_ring: Vec<Row>,
    box_pub: PublicKey,
    manifest: String,
    trail: Way,
    floors: Vec<String>,
    chats: BTreeMap<ChatId, ChatState>,
}

#[derive(Serialize, Deserialize)]
struct ChatState {
    ring: Vec<Row>,
    head: String,
    trail: Way,
    list: Vec<(ItemText, Digest)>,
    items: Vec<(ItemText, String)>,
    seen_head: Option<Mark>,
    seen_key: Option<(u32, String)>,
    seen_revs: Vec<(ItemText, u32)>,
}

/// An item's id as text; [`ItemId`] itself has no JSON form.
type ItemText = String;

fn answer(ask: Ask) -> Result<Value, Refused> {
    match ask {
        Ask::Seal { .. } | Ask::Open { .. } => envelope(ask),
        Ask::Parse { kind, text } => parse(&kind, &text),
        Ask::Read { record, json } => read(&record, &bytes(&json)).map(|json| json!(base64(&json))),
        Ask::Password { .. } | Ask::Prove { .. } | Ask::Verify { .. } => credential(ask),
        Ask::Wrap { .. } | Ask::OpenWrap { .. } | Ask::SealRing { .. } | Ask::OpenRing { .. } => ring(ask),
        Ask::Claim { key, branch, message: (id, rev), reply } => {
            let ring = ring_of_one(&key);
            Ok(json!(Claim::new(ring.newest(), &branch, (&id, rev), &reply)))
        }
        Ask::Digests { list, before, rings } => Ok(digests(&list, &before, &rings)),
        Ask::Adopt { key: name, chat, said } => Ok(adopted(&key(&name), &chat, &said)),
        Ask::SealLetter { .. } | Ask::OpenLetter { .. } => letter(ask),
        Ask::Send { .. } | Ask::Receive { .. } => pair(ask),
        Ask::Take { state } => take(state),
        Ask::World { script } => Ok(build(&script)),
    }
}

fn envelope(ask: Ask) -> Result<Value, Refused> {
    match ask {
        Ask::Seal { key: name, context, rev, data } => Ok(json!(
            seal(&key(&name), Suite::Aes256Gcm, &place(&context), rev, &bytes(&data)).to_base64url()
        )),
        Ask::Open { key: name, context, sealed: text } => {
            let opened = open(&key(&name), &place(&context), &sealed(&text));
            let opened = opened.map_err(|_| Refused::RecordRefused)?;
            Ok(json!([opened.rev, base64(&opened.data)]))
        }
        _ => unreachable!("asked elsewhere"),
    }
}

fn parse(kind: &str, text: &str) -> Result<Value, Refused> {
    match kind {
        "chat" => ChatId::parse(text).map(|id| json!(id)),
        "item" => ItemId::parse(text).map(|id| json!(id.to_string())),
        "field" => FieldName::parse(text).map(|name| json!(name)),
        "login" => Login::parse(text).map(|login| json!(login.as_str())),
        "origin" => Origin::parse(text).map(|origin| json!(origin.as_str())),
        "code" => RecoveryCode::parse(text).map(|code| json!(*code.dangerously_to_text())),
        "pair" => PairingSecret::parse(text).map(|secret| json!(secret.id())),
        _ => unreachable!("a kind that both sides know"),
    }
}

/// Reads a record and writes it again. A floor is of the shelf of its first chat.
fn read(record: &str, json: &[u8]) -> Result<Vec<u8>, Refused> {
    let written = match record {
        "message" => Message::from_json(json)?.to_json(),
        "text" => Text::from_json(json)?.to_json(),
        "head" => Head::from_json(json)?.to_json(),
        "manifest" => Manifest::from_json(json)?.to_json(),
        shelf => {
            let shelf = Shelf::all().find(|one| one.digit() == shelf).unwrap();
            Floor::from_json(shelf, json)?.to_json()
        }
    };
    Ok(written.to_vec())
}

fn credential(ask: Ask) -> Result<Value, Refused> {
    let with = |said: &ToSign, then: &dyn Fn(&Statement<'_>) -> Result<Value, Refused>| {
        let (origin, login) = (Origin::parse(&said.origin).unwrap(), Login::parse(&said.signer));
        let credential = CredentialId::parse(&said.signer);
        let purpose = Purpose::ALL.into_iter().find(|purpose| purpose.name() == said.purpose).unwrap();
        let signer = credential.as_ref().map(Signer::Credential);
        let signer = signer.or_else(|_| login.as_ref().map(Signer::Login)).unwrap();
        let (challenge, body) = (array(&said.challenge), bytes(&said.body));
        then(&Statement { origin: &origin, purpose, signer, challenge: &challenge, body: &body })
    };
    match ask {
        Ask::Password { password, salt } => {
            let root = Root::from_password(&password, &array(&salt), PROFILE)?;
            Ok(json!(base64(root.dangerously_expose_bytes())))
        }
        Ask::Prove { root, statement } => with(&statement, &|statement| {
            let root = Root::from_prf(array(&root));
            Ok(json!([base64(&root.public_key()), base64(&root.prove(statement))]))
        }),
        Ask::Verify { public_key, proof, statement } => with(&statement, &|statement| {
            statement.verify(Some(&array(&public_key)), &bytes(&proof)).map(|()| Value::Null)
        }),
        _ => unreachable!("asked elsewhere"),
    }
}

fn ring(ask: Ask) -> Result<Value, Refused> {
    let wrap = |field: &str, then: &dyn Fn(Wrap<'_>) -> Result<Value, Refused>| {
        let passkey = field.strip_prefix("prf:").map(|id| CredentialId::parse(id).unwrap());
        match (field, &passkey) {
            (_, Some(id)) => then(Wrap::Passkey(id)),
            ("pw", _) => then(Wrap::Password),
            _ => then(Wrap::Recovery),
        }
    };
    match ask {
        Ask::Wrap { kek, ak, generation, account, field, rev } => wrap(&field, &|wrap| {
            let ak = AccountKey::new(key(&ak), generation);
            Ok(json!(ak.wrap(&key(&kek), &account, wrap, rev).to_base64url()))
        }),
        Ask::OpenWrap { kek, generation, account, field, sealed: text, seen } => wrap(&field, &|wrap| {
            let seen = SeenWrap { generation: seen.0, rev: seen.1 };
            let (ak, rev) =
                AccountKey::open(&key(&kek), &account, generation, wrap, Some(&sealed(&text)), seen)?;
            Ok(json!([base64(ak.key().dangerously_expose_bytes()), rev]))
        }),
        Ask::SealRing { ak, generation, account, of, keys } => {
            let (ak, chat) = (AccountKey::new(key(&ak), generation), ChatId::parse(&of));
            let of = ring_of(&of, chat.as_ref().ok());
            let rows = (1..).zip(&keys);
            let rows = rows.map(|(n, (name, born))| Entry::seal(&ak, &account, of, n, &key(name), *born));
            Ok(json!(rows.map(|entry| to_row(&entry)).collect::<Vec<_>>()))
        }
        Ask::OpenRing { ak, generation, account, of, rows } => {
            let (ak, chat) = (AccountKey::new(key(&ak), generation), ChatId::parse(&of));
            let ring = Ring::open(&ak, &account, ring_of(&of, chat.as_ref().ok()), &entries(&rows))?;
            let keys = ring.iter().map(|held| (base64(held.key().dangerously_expose_bytes()), held.born()));
            Ok(json!(keys.collect::<Vec<_>>()))
        }
        _ => unreachable!("asked elsewhere"),
    }
}

fn digests(list: &[(ItemText, Digest)], before: &Digest, rings: &[(String, u32, String)]) -> Value {
    let live = live(&list.iter().map(|(id, envelope)| (ItemId::parse(id).unwrap(), *envelope)).collect());
    let rows: Vec<(Option<ChatId>, Entry)> = rings
        .iter()
        .map(|(container, n, name)| {
            let kid = Kid::from_hex(name).unwrap();
            (
                ChatId::parse(container).ok(),
                Entry { n: *n, kid, subs: vec![], sealed: Sealed::from_bytes(vec![]) },
            )
        })
        .collect();
    let named = rows.iter().map(|(chat, row)| (chat.as_ref().map_or(RingOf::Account, RingOf::Chat), row));
    json!([live, chain(before, &live, &live), rings_digest(named)])
}

fn adopted(account_key: &Key, chat: &ChatId, said: &[Spoken]) -> Value {
    let kind = |byte: u8| {
        [
            TranscriptKind::User,
            TranscriptKind::Assistant,
            TranscriptKind::Tool,
            TranscriptKind::Summary,
            TranscriptKind::Quoted,
        ][usize::from(byte) - 1]
    };
    let branch = said.iter().map(|said| Said {
        id: &said.id,
        kind: kind(said.kind),
        text: &said.text,
        proof: said.proof.as_ref(),
        sums_up: None,
    });
    let (kinds, at) = adopt(account_key, chat, Transcript::start(), branch);
    let proof = said.last().map(|last| at.prove(account_key, chat, &last.id, *kinds.last().unwrap()));
    json!([kinds.iter().map(|kind| kind.byte()).collect::<Vec<_>>(), at.digest(), proof])
}

fn letter(ask: Ask) -> Result<Value, Refused> {
    let with = |about: &About, then: &dyn Fn(&Letter<'_>) -> Result<Value, Refused>| {
        let About { account, chat, reply, turn } = about;
        then(&Letter { account, chat, reply, turn })
    };
    match ask {
        Ask::SealLetter { letter, box_pub, json, more } => with(&letter, &|letter| {
            let wire = if more {
                letter.seal_more(&box_pub, &Text::from_json(json.as_bytes())?)?
            } else {
                letter.seal(&box_pub, &Message::from_json(json.as_bytes())?)?
            };
            Ok(json!(base64(&wire)))
        }),
        Ask::OpenLetter { letter, boxes, head, listed, wire, more } => with(&letter, &|letter| {
            let boxes: Vec<BoxKey> = boxes.iter().map(|name| BoxKey::from_key(&key(name))).collect();
            let (head, wire) = (Head::from_json(head.as_bytes())?, bytes(&wire));
            let list: List = listed.iter().map(|id| (ItemId::parse(id).unwrap(), Digest::ZERO)).collect();
            let json = if more {
                letter.open_more(&boxes, &head, &wire)?.to_json()
            } else {
                letter.open(&boxes, &head, &list, &wire)?.to_json()
            };
            Ok(json!(base64(&json)))
        }),
        _ => unreachable!("asked elsewhere"),
    }
}

fn pair(ask: Ask) -> Result<Value, Refused> {
    let with = |pair: &Pair, then: &dyn Fn(&Pairing<'_>) -> Result<Value, Refused>| {
        let secret = PairingSecret::from_bytes(array(&pair.secret));
        let origin = Origin::parse(&pair.origin).unwrap();
        then(&Pairing { secret: &secret, origin: &origin, account: &pair.account })
    };
    match ask {
        Ask::Send { pair, ak, generation, mark, new } => with(&pair, &|pairing| {
            let wire = pairing.send(&new, &AccountKey::new(key(&ak), generation), &mark)?;
            Ok(json!(base64(&wire)))
        }),
        Ask::Receive { pair, generation, new, wire } => with(&pair, &|pairing| {
            let new = new_device_insecure_for_testing(&key(&new));
            let (ak, seen) = pairing.receive(&new, generation, &bytes(&wire))?;
            Ok(json!([base64(ak.key().dangerously_expose_bytes()), seen.generation, seen.manifest]))
        }),
        _ => unreachable!("asked elsewhere"),
    }
}

/// What a device says of a state; if all of it holds, every item's revision and JSON.
fn take(state: State) -> Result<Value, Refused> {
    let ak = AccountKey::new(key(&state.ak), state.generation);
    let sent = SentAccount {
        ring: entries(&state.ring),
        box_ring: entries(&state.box_ring),
        box_pub: state.box_pub,
        manifest: sealed(&state.manifest),
        trail: trail(&state.trail),
        floors: state.floors.iter().map(|text| sealed(text)).collect(),
    };
    let seen = SeenAccount { generation: state.seen.0, manifest: state.seen.1 };
    let account = Account::open(&state.account, &ak, &sent, &seen)?;
    account.check_chats(state.chats.keys())?;
    let mut all = BTreeMap::new();
    for (id, chat) in &state.chats {
        let item = |text: &str| ItemId::parse(text).unwrap();
        let sent = SentChat {
            ring: entries(&chat.ring),
            head: sealed(&chat.head),
            trail: trail(&chat.trail),
            list: chat.list.iter().map(|(id, envelope)| (item(id), *envelope)).collect(),
        };
        let seen = SeenChat {
            head: chat.seen_head,
            key: chat.seen_key.as_ref().map(|(n, kid)| (*n, Kid::from_hex(kid).unwrap())),
            revs: chat.seen_revs.iter().map(|(id, rev)| (item(id), *rev)).collect(),
        };
        let opened = Chat::open(&account, id, Some(&sent), &seen)?;
        let envelopes = chat.items.iter().map(|(id, text)| (item(id), sealed(text))).collect();
        let items = opened.items(&envelopes)?;
        let texts = items.into_iter().map(|(id, (rev, item))| {
            let json = match item {
                Item::Message(message) => message.to_json(),
                Item::Text(text) => text.to_json(),
            };
            (id.to_string(), (rev, String::from_utf8(json.to_vec()).unwrap()))
        });
        all.insert(id.clone(), texts.collect::<BTreeMap<_, _>>());
    }
    Ok(json!(all))
}

/// Runs a script, and gives what the server then sends to the device of the story and to one that remembers nothing.
fn build(script: &[(String, usize, String)]) -> Value {
    let (mut world, mut device) = (World::new(), Device::default());
    let mut chats: Vec<ChatId> = vec![];
    for (act, at, text) in script {
        let chat = chats.get(*at % chats.len().max(1)).cloned();
        match (act.as_str(), chat) {
            ("rotate", _) => world.rotate(),
            ("publish", _) => world.publish(),
            ("sync", _) => device.sync(&world).unwrap(),
            ("say", Some(chat)) => drop(world.say(&chat, text)),
            ("title", Some(chat)) => world.title(&chat, text),
            ("ask", Some(chat)) if world.chats[&chat].leaf.is_some() => drop(world.ask(&chat)),
            ("rotate-chat", Some(chat)) => world.rotate_chat(&chat),
            ("delete", Some(chat)) => {
                world.delete(&chat);
                chats.retain(|other| *other != chat);
            }
            ("create", _) => chats.push(world.create()),
            _ => {}
        }
    }
    json!([state(&world, &device), state(&world, &Device::default())])
}

fn state(world: &World, device: &Device) -> State {
    let sent = world.send(device);
    let chat = |(id, (chat, items)): (&ChatId, &(SentChat, BTreeMap<ItemId, Sealed>))| {
        let seen = device.chats.get(id).cloned().unwrap_or_default();
        let state = ChatState {
            ring: chat.ring.iter().map(to_row).collect(),
            head: chat.head.to_base64url(),
            trail: way(&chat.trail),
            list: chat.list.iter().map(|(id, envelope)| (id.to_string(), *envelope)).collect(),
            items: items.iter().map(|(id, sealed)| (id.to_string(), sealed.to_base64url())).collect(),
            seen_head: seen.head,
            seen_key: seen.key.map(|(n, kid)| (n, kid.to_string())),
            seen_revs: seen.revs.iter().map(|(id, rev)| (id.to_string(), *rev)).collect(),
        };
        (id.clone(), state)
    };
    State {
        account: world.account.clone(),
        ak: base64(sent.ak.key().dangerously_expose_bytes()),
        generation: sent.ak.generation(),
        seen: (device.seen.generation, device.seen.manifest),
        ring: sent.account.ring.iter().map(to_row).collect(),
        box_ring: sent.account.box_ring.iter().map(to_row).collect(),
        box_pub: sent.account.box_pub,
        manifest: sent.account.manifest.to_base64url(),
        trail: way(&sent.account.trail),
        floors: sent.account.floors.iter().map(Sealed::to_base64url).collect(),
        chats: sent.chats.iter().map(chat).collect(),
    }
}

fn trail(way: &Way) -> Trail {
    let steps = way.steps.iter().map(|(live, envelope)| Step { live: *live, envelope: *envelope });
    Trail { chain: way.chain, steps: steps.collect() }
}

fn way(trail: &Trail) -> Way {
    Way { chain: trail.chain, steps: trail.steps.iter().map(|step| (step.live, step.envelope)).collect() }
}

fn to_row(entry: &Entry) -> Row {
    let subs = entry.subs.iter().map(Kid::to_string).collect();
    Row { n: entry.n, kid: entry.kid.to_string(), subs, sealed: entry.sealed.to_base64url() }
}

fn entries(rows: &[Row]) -> Vec<Entry> {
    let kid = |text: &String| Kid::from_hex(text).unwrap();
    let entry = |row: &Row| Entry {
        n: row.n,
        kid: kid(&row.kid),
        subs: row.subs.iter().map(kid).collect(),
        sealed: sealed(&row.sealed),
    };
    rows.iter().map(entry).collect()
}

/// A chat's ring with this one key.
fn ring_of_one(name: &str) -> Ring {
    let (ak, account, chat) = (AccountKey::first(), AccountId::random(), ChatId::random());
    let row = Entry::seal(&ak, &account, RingOf::Chat(&chat), 1, &key(name), 1);
    Ring::open(&ak, &account, RingOf::Chat(&chat), &[row]).unwrap()
}

fn ring_of<'a>(of: &str, chat: Option<&'a ChatId>) -> RingOf<'a> {
    match (of, chat) {
        (_, Some(chat)) => RingOf::Chat(chat),
        ("account", _) => RingOf::Account,
        _ => RingOf::Box,
    }
}

fn place(fields: &[String; 5]) -> Context<'_> {
    let [purpose, owner, container, object, field] = fields;
    Context { purpose, owner, container, object, field }
}

fn key(text: &str) -> Key {
    Key::from_bytes(array(text))
}

fn array<const N: usize>(text: &str) -> [u8; N] {
    bytes(text).try_into().unwrap()
}

fn bytes(text: &str) -> Vec<u8> {
    sealed(text).into_bytes()
}

fn sealed(text: &str) -> Sealed {
    Sealed::from_base64url(text).unwrap()
}

fn base64(bytes: &[u8]) -> String {
    Sealed::from_bytes(bytes.to_vec()).to_base64url()
}
