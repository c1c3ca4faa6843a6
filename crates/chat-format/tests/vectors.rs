//! The committed vectors are what the code writes, and every case holds through the public API.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../examples/chats_vectors/build.rs"]
mod build;
#[path = "../examples/chats_vectors/must_fail.rs"]
mod must_fail;
#[path = "../examples/chats_vectors/shape.rs"]
mod shape;
#[path = "../examples/chats_vectors/snapshots.rs"]
mod snapshots;

use build::{hex, sealed};
use confidant_chat_format::vectors::new_device_insecure_for_testing;
use confidant_chat_format::*;
use confidant_seal::{Key, Kid, Sealed};
use shape::*;

const COMMITTED: &str = include_str!("../../../vectors/chats-v1.json");

fn committed() -> Vectors {
    serde_json::from_str(COMMITTED).expect("the file parses")
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("hex"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().expect("the right length")
}

fn key(hex: &str) -> Key {
    Key::from_bytes(array(hex))
}

fn digest(hex: &str) -> Digest {
    Digest::from_bytes(array(hex))
}

fn envelope(hex: &str) -> Sealed {
    Sealed::from_bytes(bytes(hex))
}

fn kid(hex: &str) -> Kid {
    Kid::from_hex(hex).expect("a kid")
}

fn refused(name: &str) -> Option<Refused> {
    Some(Refused::from_name(name).expect("a name of the list"))
}

#[test]
fn the_committed_file_is_what_the_code_writes() {
    let same = COMMITTED == build::text();
    assert!(
        same,
        "run `cargo run -p confidant-chat-format --example chats_vectors` and look at what changed"
    );
}

#[test]
fn ids() {
    let vectors = committed();
    for case in vectors.ids {
        let bits = array(&case.bits);
        assert_eq!(AccountId::parse(&case.account), Ok(AccountId::from_bits(&bits)));
        assert_eq!(ChatId::parse(&case.chat), Ok(ChatId::from_bits(&bits)));
        assert_eq!(MessageId::parse(&case.message), Ok(MessageId::from_bits(&bits)));
    }
    for text in vectors.refused_ids {
        assert_eq!(ChatId::parse(&text), Err(Refused::BadId), "{text}");
    }
}

#[test]
fn credentials() {
    let vectors = committed();
    for case in vectors.salts {
        let login = Login::parse(&case.login).unwrap();
        assert_eq!(hex(&server_salt(&key(&case.logins_key), &login)), case.server_salt);
        assert_eq!(hex(&password_salt(&login, &array(&case.server_salt))), case.salt);
    }
    for case in vectors.password_roots {
        let root = Root::from_password(&case.password, &array(&case.salt), case.profile).unwrap();
        assert_eq!(hex(root.dangerously_expose_bytes()), case.root);
    }
    for case in vectors.recovery_roots {
        let code = RecoveryCode::parse(&case.text).unwrap();
        assert_eq!(*code.dangerously_to_text(), case.text);
        assert_eq!(hex(Root::from_recovery(&code).dangerously_expose_bytes()), case.root);
        assert_eq!(code.credential_id().as_str(), case.credential);
    }
    for case in vectors.keys_of_roots {
        let root = Root::from_prf(array(&case.root));
        assert_eq!((root.kek(), hex(&root.public_key())), (key(&case.kek), case.public_key));
    }
    for case in &vectors.proofs {
        assert_eq!(verify(case), Ok(()), "{}", case.purpose);
    }
    for bad in &vectors.must_fail.proofs {
        assert_eq!(verify(&bad.case).err(), refused(&bad.error), "{}", bad.name);
    }
    for bad in vectors.must_fail.profiles {
        assert_eq!(Root::from_password("x", &[7; 16], bad.profile).err(), refused(&bad.error));
    }
}

fn verify(case: &Proof) -> Result<(), Refused> {
    let (origin, challenge, body) =
        (Origin::parse(&case.origin).unwrap(), array(&case.challenge), bytes(&case.body));
    let purpose = Purpose::ALL.into_iter().find(|purpose| purpose.name() == case.purpose).unwrap();
    let (login, credential) = (Login::parse(&case.signer), CredentialId::parse(&case.signer));
    let signer = login.as_ref().map(Signer::Login).or_else(|_| credential.as_ref().map(Signer::Credential));
    let statement =
        Statement { origin: &origin, purpose, signer: signer.unwrap(), challenge: &challenge, body: &body };
    statement.verify(Some(&array(&case.public_key)), &bytes(&case.proof))
}

#[test]
fn wraps_and_rings() {
    let vectors = committed();
    for case in vectors.wraps {
        let passkey = case.field.strip_prefix("prf:").map(|id| CredentialId::parse(id).unwrap());
        let wrap = match (case.field.as_str(), &passkey) {
            (_, Some(id)) => Wrap::Passkey(id),
            ("pw", _) => Wrap::Password,
            _ => Wrap::Recovery,
        };
        let account = AccountId::parse(&case.account).unwrap();
        let sealed = envelope(&case.sealed);
        let opened = AccountKey::open(
            &key(&case.kek),
            &account,
            case.generation,
            wrap,
            Some(&sealed),
            SeenWrap { generation: case.generation, rev: case.rev },
        );
        assert_eq!(opened, Ok((AccountKey::new(key(&case.account_key), case.generation), case.rev)));
    }
    for bad in vectors.must_fail.wraps {
        let (account, sealed) =
            (AccountId::parse(&bad.account).unwrap(), bad.sealed.as_deref().map(envelope));
        let opened = AccountKey::open(
            &key(&bad.kek),
            &account,
            bad.generation,
            Wrap::Password,
            sealed.as_ref(),
            SeenWrap { generation: bad.seen_generation, rev: bad.seen_rev },
        );
        assert_eq!(opened.err(), refused(&bad.error), "{}", bad.name);
    }
    for case in vectors.entries.iter().filter(|case| case.n == 1) {
        let chat = ChatId::parse(&case.container);
        let of = match (case.field.as_str(), &chat) {
            ("chat", Ok(chat)) => RingOf::Chat(chat),
            ("account", _) => RingOf::Account,
            _ => RingOf::Box,
        };
        let row =
            Row { n: case.n, kid: case.kid.clone(), subs: case.subs.clone(), sealed: case.sealed.clone() };
        let ak = AccountKey::new(key(&case.account_key), case.generation);
        let account = AccountId::parse(&case.account).unwrap();
        let ring = Ring::open(&ak, &account, of, &[entry(&row)]).unwrap();
        let held = ring.newest();
        assert_eq!((held.n(), held.born(), held.key()), (case.n, case.born, &key(&case.key)));
    }
    for bad in vectors.must_fail.rings {
        let (account, chat) = (AccountId::parse(&bad.account).unwrap(), ChatId::parse(&bad.chat).unwrap());
        let ak = AccountKey::new(key(&bad.account_key), bad.generation);
        let rows: Vec<Entry> = bad.rows.iter().map(entry).collect();
        let opened = Ring::open(&ak, &account, RingOf::Chat(&chat), &rows);
        assert_eq!(opened.err(), refused(&bad.error), "{}", bad.name);
    }
}

fn entry(row: &Row) -> Entry {
    let subs = row.subs.iter().map(|sub| kid(sub)).collect();
    Entry { n: row.n, kid: kid(&row.kid), subs, sealed: envelope(&row.sealed) }
}

#[test]
fn lists_and_chains() {
    let vectors = committed();
    for case in vectors.lives {
        let list: List =
            case.list.iter().map(|(id, hash)| (ItemId::parse(id).unwrap(), digest(hash))).collect();
        assert_eq!(live(&list), digest(&case.live));
        assert!(case.list.is_sorted());
    }
    for case in vectors.chains {
        let made = chain(&digest(&case.before), &digest(&case.envelope_before), &digest(&case.live));
        assert_eq!(made, digest(&case.chain));
    }
    for case in vectors.shelves {
        assert_eq!(Shelf::of(&ChatId::parse(&case.chat).unwrap()).digit(), case.digit);
    }
    for case in vectors.manifest_lives {
        let floors = std::array::from_fn(|at| digest(&case.floors[at]));
        assert_eq!(Manifest::live(&floors), digest(&case.live));
    }
}

fn read(record: &str, json: &[u8]) -> Result<(), Refused> {
    match record {
        "message" => Message::from_json(json).map(drop),
        "head" => Head::from_json(json).map(drop),
        "manifest" => Manifest::from_json(json).map(drop),
        "floor" => Floor::from_json(Shelf::of(&build::chat(1)), json).map(drop),
        _ => Text::from_json(json).map(drop),
    }
}

#[test]
fn records() {
    let vectors = committed();
    for case in vectors.records {
        let again =
            sealed(&key(&case.key).derive(&case.label), &case.context, case.rev, 11, case.json.as_bytes());
        assert_eq!(again, case.sealed, "{}", case.name);
        assert_eq!(read(&case.name, case.json.as_bytes()), Ok(()), "{}", case.name);
    }
    for bad in vectors.must_fail.json {
        assert_eq!(read(&bad.record, bad.json.as_bytes()).err(), refused(&bad.error), "{}", bad.name);
    }
    let (ring, account, chat) = (build::chat_ring(), build::account(), build::chat(1));
    for bad in vectors.must_fail.envelopes {
        let item = ItemId::parse(&bad.context[3]).unwrap();
        let opened = open_record(&ring, &account, &Place::Item(&chat, &item), &envelope(&bad.sealed));
        assert_eq!(opened.err(), refused(&bad.error), "{}", bad.name);
    }
}

#[test]
fn histories_and_transcripts() {
    let vectors = committed();
    let ring = build::chat_ring();
    for case in vectors.histories {
        let branch: Vec<_> =
            case.branch.iter().map(|(id, rev)| (MessageId::parse(id).unwrap(), *rev)).collect();
        assert_eq!(ring.newest().key(), &key(&case.chat_key));
        let made = history(ring.newest(), branch.iter().map(|(id, rev)| (id, *rev)));
        assert_eq!(made, digest(&case.digest));
    }
    for case in vectors.transcripts {
        let chat = ChatId::parse(&case.chat).unwrap();
        let mut at = Transcript::start();
        assert_eq!(*at.digest(), digest(&case.start));
        for line in case.lines {
            let (id, proof) = (MessageId::parse(&line.id).unwrap(), digest(&line.proof));
            assert_eq!(line.deltas.concat(), hex(line.text.as_bytes()));
            let said =
                Said { id: &id, kind: kind(line.kind), text: &line.text, proof: Some(&proof), sums_up: None };
            let (kinds, next) = adopt(&key(&case.account_key), &chat, at, [said]);
            assert_eq!((kinds[0].byte(), *next.digest()), (line.kind, digest(&line.transcript)));
            at = next;
        }
    }
    for case in vectors.beside {
        let turn = TurnId::parse(&case.turn).unwrap();
        assert_eq!(beside(&turn, case.n).as_str(), case.id);
    }
    for case in vectors.summaries {
        let (chat, id) = (ChatId::parse(&case.chat).unwrap(), MessageId::parse(&case.id).unwrap());
        let (proof, place) = (digest(&case.proof), Transcript::resume(digest(&case.sums_up)));
        let (kind, text) = (TranscriptKind::Summary, case.text.as_str());
        let summary = Said { id: &id, kind, text, proof: Some(&proof), sums_up: Some(place) };
        let next = Said { id: &id, kind: TranscriptKind::User, text: &case.next, proof: None, sums_up: None };
        let (kinds, at) = adopt(&key(&case.account_key), &chat, Transcript::start(), [summary, next]);
        assert_eq!((kinds[0], *at.digest()), (kind, digest(&case.transcript)));
    }
    for bad in vectors.must_fail.transcripts {
        let (chat, id) = (ChatId::parse(&bad.chat).unwrap(), MessageId::parse(&bad.id).unwrap());
        let (from, proof) = (Transcript::resume(digest(&bad.before)), digest(&bad.proof));
        let said =
            Said { id: &id, kind: kind(bad.kind), text: &bad.text, proof: Some(&proof), sums_up: None };
        let (kinds, at) = adopt(&key(&bad.account_key), &chat, from, [said]);
        assert_eq!((kinds[0].byte(), *at.digest()), (bad.adopted, digest(&bad.transcript)), "{}", bad.name);
    }
}

fn kind(byte: u8) -> TranscriptKind {
    [
        TranscriptKind::User,
        TranscriptKind::Assistant,
        TranscriptKind::Tool,
        TranscriptKind::Summary,
        TranscriptKind::Quoted,
    ][usize::from(byte) - 1]
}

fn open_letter(
    box_key: &str,
    context: &Fields,
    head: &str,
    listed: &[String],
    wire: &str,
) -> Result<String, Refused> {
    let [purpose, account, chat, reply, turn] = context;
    let (account, chat) = (AccountId::parse(account).unwrap(), ChatId::parse(chat).unwrap());
    let (reply, turn) = (MessageId::parse(reply).unwrap(), TurnId::parse(turn).unwrap());
    let letter = Letter { account: &account, chat: &chat, reply: &reply, turn: &turn };
    let list = listed.iter().map(|id| (ItemId::parse(id).unwrap(), Digest::ZERO)).collect();
    let head = Head::from_json(head.as_bytes()).unwrap();
    let (boxes, wire) = ([BoxKey::from_key(&key(box_key))], bytes(wire));
    let json = match purpose.as_str() {
        "reply" => letter.open(&boxes, &head, &list, &wire)?.to_json(),
        _ => letter.open_more(&boxes, &head, &wire)?.to_json(),
    };
    Ok(String::from_utf8(json.to_vec()).unwrap())
}

#[test]
fn letters() {
    let vectors = committed();
    let head = String::from_utf8(build::a_head().to_json().to_vec()).unwrap();
    for case in vectors.mailbox {
        let opened = open_letter(&case.box_key, &case.context, &head, &[], &case.wire);
        assert_eq!(opened, Ok(case.json));
    }
    for bad in vectors.must_fail.letters {
        let opened = open_letter(&bad.box_key, &bad.context, &bad.head, &bad.listed, &bad.wire);
        assert_eq!(opened.err(), refused(&bad.error), "{}", bad.name);
    }
}

#[test]
fn pairings_and_rotations() {
    let vectors = committed();
    let receive = |secret: &str, origin: &str, account: &str, new: &str, generation: u32, wire: &str| {
        let secret = PairingSecret::from_bytes(array(secret));
        let (origin, account) = (Origin::parse(origin).unwrap(), AccountId::parse(account).unwrap());
        let pairing = Pairing { secret: &secret, origin: &origin, account: &account };
        pairing.receive(&new_device_insecure_for_testing(&key(new)), generation, &bytes(wire))
    };
    for c in vectors.pairing {
        let secret = PairingSecret::parse(&c.text.to_uppercase()).unwrap();
        assert_eq!((secret.id(), &*secret.dangerously_to_text()), (c.id, &c.text));
        let (ak, seen) =
            receive(&c.secret, &c.origin, &c.account, &c.new_key, c.generation, &c.wire).unwrap();
        assert_eq!(ak, AccountKey::new(key(&c.account_key), c.generation));
        assert_eq!(seen.manifest, Some(Mark { rev: c.manifest_rev, envelope: digest(&c.manifest) }));
    }
    for bad in vectors.must_fail.pairings {
        let opened = receive(&bad.secret, &bad.origin, &bad.account, &bad.new_key, bad.generation, &bad.wire);
        assert_eq!(opened.err(), refused(&bad.error), "{}", bad.name);
    }
    for case in vectors.rotation {
        let rows: Vec<(Option<ChatId>, Entry)> = case
            .entries
            .iter()
            .map(|(container, n, name)| {
                let row = Entry { n: *n, kid: kid(name), subs: vec![], sealed: Sealed::from_bytes(vec![]) };
                (ChatId::parse(container).ok(), row)
            })
            .collect();
        let named = rows.iter().map(|(chat, row)| (chat.as_ref().map_or(RingOf::Account, RingOf::Chat), row));
        assert_eq!(rings_digest(named), digest(&case.digest));
    }
}

#[test]
fn snapshots() {
    let vectors = committed();
    for case in vectors.snapshots {
        let link = SnapshotLink::parse(&case.link).unwrap();
        assert_eq!((link.origin.as_str(), link.id.as_str()), (case.origin.as_str(), case.id.as_str()));
        assert!(
            link.key == SnapshotKey::from_key(key(&case.key)) && *link.dangerously_to_text() == case.link
        );
        let items: Vec<_> = case.items.iter().map(|one| (one.item.clone(), one.sealed.clone())).collect();
        let opened = Snapshot::open(&link.key, &link.id, case.now, &snapshot(&case.list, &items)).unwrap();
        let list = SnapshotList::from_json(case.list_json.as_bytes()).unwrap();
        assert_eq!((opened.at, opened.until, &opened.title), (list.at, list.until, &list.title));
        assert_eq!(opened.messages.len() + opened.embeds.len(), case.items.len());
        for one in &case.items {
            let body = match ItemId::parse(&one.item).unwrap() {
                ItemId::Message(id) => {
                    opened.messages.iter().find(|message| message.id == id).unwrap().body.clone()
                }
                ItemId::Embed(id) => opened.embeds[&id].body.clone(),
                ItemId::Field(_) => panic!("a snapshot has no fields"),
            };
            assert!(one.json.contains(&serde_json::to_string(&body).unwrap()), "{}", one.item);
        }
        // The owner's devices have the key from the chat's.
        let (ring, id) = (build::chat_ring(), SnapshotId::parse(&case.id).unwrap());
        let kept = SnapshotKey::kept(&ring, &build::account(), &build::chat(1), &id, &envelope(&case.kept));
        assert!(kept == Ok(link.key.clone()));
        let again = link.key.keep(ring.newest(), &build::account(), &build::chat(1), &id);
        assert!(SnapshotKey::kept(&ring, &build::account(), &build::chat(1), &id, &again).is_ok());
        let elsewhere = SnapshotKey::kept(&ring, &build::account(), &build::chat(2), &id, &again);
        assert!(elsewhere == Err(Refused::KeyRefused));
    }
    for link in vectors.refused_links {
        assert_eq!(SnapshotLink::parse(&link).err(), Some(Refused::BadId), "{link}");
    }
    for bad in vectors.must_fail.snapshots {
        let (link, id) = (SnapshotKey::from_key(key(&bad.key)), SnapshotId::parse(&bad.id).unwrap());
        let opened = Snapshot::open(&link, &id, bad.now, &snapshot(&bad.list, &bad.items));
        assert_eq!(opened.err(), refused(&bad.error), "{}", bad.name);
    }
}

fn snapshot(list: &str, items: &[(String, String)]) -> SealedSnapshot {
    let items = items.iter().map(|(item, sealed)| (ItemId::parse(item).unwrap(), envelope(sealed)));
    SealedSnapshot { list: envelope(list), items: items.collect() }
}
