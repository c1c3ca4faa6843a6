//! The vectors as data: what both implementations must agree on.

use confidant_chat_format::vectors::{letter_key_insecure_for_testing, pairing_key_insecure_for_testing};
use confidant_chat_format::*;
use confidant_seal::vectors::seal_with_salt_insecure_for_testing;
use confidant_seal::{Context, Key, Suite};

use super::must_fail::must_fail;
use super::shape::*;
use super::snapshots::{refused_links, snapshots};

/// The whole file.
pub(crate) fn text() -> String {
    let vectors = Vectors {
        about: "Vectors of client-sealed chats; section 10 of docs/FORMAT.md describes them. Bytes are lower-case \
                hexadecimal, texts and JSON are text; `context` lists purpose, owner, container, object, field. \
                Regenerate with `cargo run -p confidant-chat-format --example chats_vectors`."
            .to_owned(),
        ids: [[0; 16], [0xff; 16], std::array::from_fn(|at| at as u8)].map(id_case).into(),
        refused_ids: refused_ids(),
        salts: ["ana", "ana@example.org", "用户"].map(salt_case).into(),
        prf_input: hex(&prf_input()),
        password_roots: password_roots(),
        recovery_roots: recovery_roots(),
        keys_of_roots: [0, 0x55].map(|start| root_keys(counting(start))).into(),
        proofs: proofs(),
        wraps: wraps(),
        entries: entries(),
        lives: lives(),
        chains: chains(),
        shelves: [0, 1, 2, 0xff].map(shelf_case).into(),
        manifest_lives: vec![manifest_live()],
        records: records(),
        histories: histories(),
        transcripts: vec![transcript()],
        beside: [0, 1, 0x1_0000].map(beside_case).into(),
        summaries: vec![summary()],
        mailbox: vec![mailbox(), more()],
        pairing: vec![pairing()],
        rotation: rotation(),
        snapshots: snapshots(),
        refused_links: refused_links(),
        must_fail: must_fail(),
    };
    serde_json::to_string_pretty(&vectors).expect("plain data serialises") + "\n"
}

fn id_case(bits: [u8; 16]) -> IdCase {
    IdCase {
        bits: hex(&bits),
        account: AccountId::from_bits(&bits).to_string(),
        chat: ChatId::from_bits(&bits).to_string(),
        message: MessageId::from_bits(&bits).to_string(),
    }
}

/// Texts that are no id of a chat.
fn refused_ids() -> Vec<String> {
    let good = chat(0).to_string();
    let cut = &good[..good.len() - 1];
    [
        String::new(),
        cut.to_owned(),
        format!("{cut}b"),
        format!("{cut}1"),
        format!("{good}a"),
        good.to_uppercase(),
        good.replace("chat_", "msg_"),
        good.replace('_', "-"),
        format!(" {good}"),
    ]
    .into()
}

fn salt_case(login: &str) -> Salt {
    let (key, login) = (counting(0x30), Login::parse(login).expect("a login"));
    let server = server_salt(&key, &login);
    Salt {
        logins_key: key_hex(&key),
        login: login.as_str().to_owned(),
        server_salt: hex(&server),
        salt: hex(&password_salt(&login, &server)),
    }
}

fn password_roots() -> Vec<PasswordRoot> {
    // The first is that of the draft; the other two are one password in two spellings.
    ["correct horse battery staple", "ﬁn\u{e9}", "fine\u{301}"]
        .map(|password| {
            let root = Root::from_password(password, &[7; 16], PROFILE).expect("profile 1");
            PasswordRoot {
                password: password.to_owned(),
                salt: hex(&[7; 16]),
                profile: PROFILE,
                root: hex(root.dangerously_expose_bytes()),
            }
        })
        .into()
}

fn recovery_roots() -> Vec<RecoveryRoot> {
    let bytes: [u8; 20] = std::array::from_fn(|at| 0xa0 + at as u8);
    let code = RecoveryCode::from_bytes(bytes);
    vec![RecoveryRoot {
        code: hex(&bytes),
        text: code.dangerously_to_text().to_string(),
        root: hex(Root::from_recovery(&code).dangerously_expose_bytes()),
        credential: code.credential_id().to_string(),
    }]
}

fn root_keys(root: Key) -> RootKeys {
    let made = Root::from_prf(*root.dangerously_expose_bytes());
    RootKeys {
        root: key_hex(&root),
        kek: key_hex(&made.kek()),
        sign_seed: key_hex(&root.derive("sign")),
        public_key: hex(&made.public_key()),
    }
}

fn proofs() -> Vec<Proof> {
    let mut cases: Vec<Proof> = Purpose::ALL.map(|purpose| proof_case(purpose, "ana", b"{}")).into();
    cases.push(proof_case(Purpose::Change, CredentialId::from_bits(&[3; 16]).as_str(), b""));
    cases
}

pub(crate) fn proof_case(purpose: Purpose, signer: &str, body: &[u8]) -> Proof {
    let (key, origin) = (counting(0x11), Origin::parse("https://chat.example").expect("an origin"));
    let root = Root::from_prf(*key.dangerously_expose_bytes());
    let login = Login::parse(signer);
    let credential = CredentialId::parse(signer);
    let challenge = *counting(0x77).dangerously_expose_bytes();
    let signed = login.as_ref().map(Signer::Login).or_else(|_| credential.as_ref().map(Signer::Credential));
    let statement = Statement {
        origin: &origin,
        purpose,
        signer: signed.expect("one of both"),
        challenge: &challenge,
        body,
    };
    Proof {
        root: key_hex(&key),
        origin: origin.as_str().to_owned(),
        purpose: purpose.name().to_owned(),
        signer: signer.to_owned(),
        challenge: hex(&challenge),
        body: hex(body),
        statement: hex(&statement.bytes()),
        public_key: hex(&root.public_key()),
        proof: hex(&root.prove(&statement)),
    }
}

fn wraps() -> Vec<WrapCase> {
    let passkey = format!("prf:{}", CredentialId::from_bits(&[3; 16]));
    [(1, "pw", 1), (2, "rec", 9), (4_294_967_295, &passkey, 4_294_967_295)]
        .map(|(generation, field, rev)| wrap_case(generation, field, rev))
        .into()
}

pub(crate) fn wrap_case(generation: u32, field: &str, rev: u32) -> WrapCase {
    let (kek, ak) = (counting(0x20), counting(0x40));
    let object = format!("account:{generation}");
    let context = ["key", account().as_str(), "", &object, field].map(str::to_owned);
    WrapCase {
        kek: key_hex(&kek),
        account: account().to_string(),
        generation,
        field: field.to_owned(),
        rev,
        salt: hex(&[9; 24]),
        account_key: key_hex(&ak),
        sealed: sealed(&kek, &context, rev, 9, ak.dangerously_expose_bytes()),
    }
}

fn entries() -> Vec<EntryCase> {
    let chat = chat(1).to_string();
    vec![
        entry_case(1, 1, &chat, "chat", 1, &counting(0x60)),
        entry_case(3, 2, &chat, "chat", 2, &counting(0x61)),
        entry_case(1, 1, "", "account", 1, &counting(0x62)),
        entry_case(1, 1, "", "box", 1, &counting(0x63)),
    ]
}

pub(crate) fn entry_case(g: u32, born: u32, container: &str, field: &str, n: u32, key: &Key) -> EntryCase {
    let (ak, kid) = (counting(0x40), key.kid().to_string());
    let object = format!("{n}:{kid}");
    let context = ["key", account().as_str(), container, &object, field].map(str::to_owned);
    let data = [&key.dangerously_expose_bytes()[..], &born.to_be_bytes()].concat();
    let labels: &[&str] = match field {
        "chat" => &["msg", "meta", "embed"],
        "account" => &["meta"],
        _ => &[],
    };
    EntryCase {
        account_key: key_hex(&ak),
        generation: g,
        account: account().to_string(),
        container: container.to_owned(),
        field: field.to_owned(),
        n,
        key: key_hex(key),
        born,
        kid,
        subs: labels.iter().map(|label| key.derive(label).kid().to_string()).collect(),
        salt: hex(&[10; 24]),
        sealed: sealed(&ak.derive("wrap"), &context, g, 10, &data),
    }
}

fn lives() -> Vec<LiveCase> {
    let all = [
        ItemId::Message(message_id(0xff)),
        ItemId::Message(message_id(0)),
        ItemId::Field(FieldName::parse("title").expect("a name")),
        ItemId::Embed(EmbedId::from_bits(&[1; 16])),
    ];
    [0, 1, 4]
        .map(|count| {
            let list: List =
                all[..count].iter().map(|id| (id.clone(), Digest::of(id.to_string().as_bytes()))).collect();
            let shown = list.iter().map(|(id, envelope)| (id.to_string(), hex(envelope.as_bytes())));
            LiveCase { list: shown.collect(), live: hex(live(&list).as_bytes()) }
        })
        .into()
}

fn chains() -> Vec<ChainCase> {
    let (one, two) = (Digest::of(b"live 1"), Digest::of(b"live 2"));
    let (first, envelope) = (chain(&Digest::ZERO, &Digest::ZERO, &one), Digest::of(b"head 1"));
    [(Digest::ZERO, Digest::ZERO, one), (first, envelope, two)]
        .map(|(before, envelope_before, live)| ChainCase {
            before: hex(before.as_bytes()),
            envelope_before: hex(envelope_before.as_bytes()),
            live: hex(live.as_bytes()),
            chain: hex(chain(&before, &envelope_before, &live).as_bytes()),
        })
        .into()
}

fn shelf_case(byte: u8) -> ShelfCase {
    ShelfCase { chat: chat(byte).to_string(), digit: Shelf::of(&chat(byte)).digit().to_owned() }
}

fn floors() -> [Digest; 16] {
    std::array::from_fn(|at| Digest::of(&[at as u8]))
}

fn manifest_live() -> ManifestLive {
    ManifestLive {
        floors: floors().iter().map(|floor| hex(floor.as_bytes())).collect(),
        live: hex(Manifest::live(&floors()).as_bytes()),
    }
}

fn records() -> Vec<RecordCase> {
    let (id, embed) = (message_id(1), EmbedId::from_bits(&[1; 16]));
    let (chat, message) = (chat(1), a_message(Role::User, None, "Grüße, \u{1f44b}"));
    let text = Text { v: 1, body: "a title".to_owned() }.to_json();
    let title = FieldName::parse("title").expect("a name");
    let floor =
        Floor { v: 1, chats: [(chat.clone(), Mark { rev: 7, envelope: Digest::of(b"head") })].into() }
            .to_json();
    let message_item = ItemId::Message(id);
    let (embed_item, title_item) = (ItemId::Embed(embed), ItemId::Field(title.clone()));
    vec![
        record("message", "msg", &Place::Item(&chat, &message_item), 3, &message.to_json()),
        record("embed", "embed", &Place::Item(&chat, &embed_item), 1, &text),
        record("field", "meta", &Place::Item(&chat, &title_item), 1, &text),
        record("draft", "meta", &Place::Draft(&chat), 4, &text),
        record("head", "meta", &Place::Head(&chat), 7, &a_head().to_json()),
        record("data", "meta", &Place::Data(&title, &title), 1, &text),
        record("floor", "meta", &Place::Floor(Shelf::of(&chat)), 2, &floor),
        record("manifest", "meta", &Place::Manifest, 2, &a_manifest().to_json()),
    ]
}

fn record(name: &str, label: &str, place: &Place<'_>, rev: u32, json: &[u8]) -> RecordCase {
    let (key, account) = (counting(0x60), account());
    let c = place.context(&account);
    let context = [c.purpose, c.owner, c.container, c.object, c.field].map(str::to_owned);
    RecordCase {
        name: name.to_owned(),
        key: key_hex(&key),
        label: label.to_owned(),
        sealed: sealed(&key.derive(label), &context, rev, 11, json),
        context,
        rev,
        salt: hex(&[11; 24]),
        json: String::from_utf8(json.to_vec()).expect("JSON is text"),
    }
}

pub(crate) fn a_head() -> Head {
    let list: List = [(ItemId::Message(message_id(1)), Digest::of(b"envelope"))].into();
    let live = live(&list);
    Head {
        v: 1,
        key: 1,
        kid: counting(0x60).kid(),
        count: 1,
        live,
        chain: chain(&Digest::ZERO, &Digest::ZERO, &live),
        leaf: Some(message_id(1)),
        pending: vec![Pending { turn: turn(), parent: message_id(1), reply: message_id(2) }],
        at: 1_700_000_000_000,
        device: DeviceId::from_bits(&[5; 16]),
    }
}

pub(crate) fn a_manifest() -> Manifest {
    Manifest {
        v: 1,
        g: 1,
        uk: 1,
        box_n: 1,
        box_pub: BoxKey::from_key(&counting(0x63)).public_key(),
        floors: floors(),
        chain: chain(&Digest::ZERO, &Digest::ZERO, &Manifest::live(&floors())),
        at: 1_700_000_000_000,
        device: DeviceId::from_bits(&[5; 16]),
    }
}

fn histories() -> Vec<HistoryCase> {
    let ring = chat_ring();
    [vec![], vec![(message_id(1), 1)], vec![(message_id(1), 2), (message_id(2), 1)]]
        .map(|branch: Vec<(MessageId, u32)>| HistoryCase {
            chat_key: key_hex(ring.newest().key()),
            digest: hex(history(ring.newest(), branch.iter().map(|(id, rev)| (id, *rev))).as_bytes()),
            branch: branch.iter().map(|(id, rev)| (id.to_string(), *rev)).collect(),
        })
        .into()
}

pub(crate) fn chat_ring() -> Ring {
    let (ak, chat) = (AccountKey::new(counting(0x40), 1), chat(1));
    let row = Entry::seal(&ak, &account(), RingOf::Chat(&chat), 1, &counting(0x60), 1);
    Ring::open(&ak, &account(), RingOf::Chat(&chat), &[row]).expect("just sealed")
}

fn transcript() -> TranscriptCase {
    let (key, chat) = (counting(0x50), chat(1));
    let mut at = Transcript::start();
    let said = [
        (TranscriptKind::User, "what is this? \u{1f44b}"),
        (TranscriptKind::Assistant, "a wave: \u{1f44b}"),
        (TranscriptKind::Tool, ""),
        (TranscriptKind::Summary, "They waved."),
        (TranscriptKind::Quoted, "somebody said so"),
    ];
    let lines = said.into_iter().zip(1..).map(|((kind, text), n)| {
        at = at.then(kind, text);
        // Words come in pieces, cut anywhere, even inside a code point; only the whole is hashed.
        let (head, tail) = text.as_bytes().split_at(text.len().saturating_sub(2));
        Line {
            id: message_id(n).to_string(),
            kind: kind.byte(),
            text: text.to_owned(),
            deltas: vec![hex(head), hex(tail)],
            transcript: hex(at.digest().as_bytes()),
            proof: hex(at.prove(&key, &chat, &message_id(n), kind).as_bytes()),
        }
    });
    let lines = lines.collect();
    TranscriptCase {
        account_key: key_hex(&key),
        chat: chat.to_string(),
        start: hex(Transcript::start().digest().as_bytes()),
        lines,
    }
}

fn beside_case(n: u32) -> BesideCase {
    BesideCase { turn: turn().to_string(), n, id: beside(&turn(), n).to_string() }
}

/// A summary in the place of what it sums up, and the message behind that.
fn summary() -> SummaryCase {
    let (key, chat, id) = (counting(0x50), chat(1), message_id(9));
    let (text, next) = ("They waved.", "and then?");
    let sums_up =
        Transcript::start().then(TranscriptKind::User, "a wave?").then(TranscriptKind::Assistant, "yes");
    let proof = sums_up.then(TranscriptKind::Summary, text).prove(&key, &chat, &id, TranscriptKind::Summary);
    SummaryCase {
        account_key: key_hex(&key),
        chat: chat.to_string(),
        sums_up: hex(sums_up.digest().as_bytes()),
        id: id.to_string(),
        text: text.to_owned(),
        proof: hex(proof.as_bytes()),
        next: next.to_owned(),
        transcript: hex(sums_up.then(TranscriptKind::User, next).digest().as_bytes()),
    }
}

pub(crate) fn mailbox() -> MailboxCase {
    let reply = a_message(Role::Assistant, Some(message_id(1)), "hello");
    letter_case("reply", &reply.to_json(), 1)
}

/// What came after the reply.
pub(crate) fn more() -> MailboxCase {
    let text = Text { v: 1, body: "suggestions".to_owned() };
    letter_case("reply-more", &text.to_json(), 1)
}

pub(crate) fn letter_case(purpose: &str, json: &[u8], rev: u32) -> MailboxCase {
    let (ephemeral, own) = (counting(0x70), counting(0x63));
    let box_pub = BoxKey::from_key(&own).public_key();
    let key = letter_key_insecure_for_testing(&ephemeral, &box_pub).expect("not zero");
    let (chat, reply) = (chat(1), message_id(2));
    let context =
        [purpose, account().as_str(), chat.as_str(), reply.as_str(), turn().as_str()].map(str::to_owned);
    let point = BoxKey::from_key(&ephemeral).public_key();
    MailboxCase {
        ephemeral: key_hex(&ephemeral),
        box_key: key_hex(&own),
        box_pub: hex(box_pub.as_bytes()),
        salt: hex(&[12; 24]),
        json: String::from_utf8(json.to_vec()).expect("JSON is text"),
        key: key_hex(&key),
        wire: hex(point.as_bytes()) + &sealed(&key, &context, rev, 12, json),
        context,
    }
}

pub(crate) fn pairing() -> PairingCase {
    pairing_case(0)
}

pub(crate) fn pairing_case(envelope_rev: u32) -> PairingCase {
    let bytes: [u8; 16] = std::array::from_fn(|at| 0xc0 + at as u8);
    let secret = PairingSecret::from_bytes(bytes);
    let (origin, account) = (Origin::parse("https://chat.example").expect("an origin"), account());
    let pairing = Pairing { secret: &secret, origin: &origin, account: &account };
    let (new, old, ak) = (counting(0x80), counting(0x90), counting(0x40));
    let [new_pub, old_pub] = [&new, &old].map(|key| BoxKey::from_key(key).public_key());
    let key = pairing_key_insecure_for_testing(&pairing, &old, &new_pub).expect("not zero");
    let (rev, manifest) = (7_u32, Digest::of(b"manifest"));
    let data = [&ak.dangerously_expose_bytes()[..], &rev.to_be_bytes(), manifest.as_bytes()].concat();
    let context = ["pair", account.as_str(), &secret.id(), "account:2", ""].map(str::to_owned);
    PairingCase {
        secret: hex(&bytes),
        text: secret.dangerously_to_text().to_string(),
        id: secret.id(),
        new_key: key_hex(&new),
        new_pub: hex(new_pub.as_bytes()),
        old_key: key_hex(&old),
        origin: origin.as_str().to_owned(),
        account: account.to_string(),
        generation: 2,
        account_key: key_hex(&ak),
        manifest_rev: rev,
        manifest: hex(manifest.as_bytes()),
        salt: hex(&[13; 24]),
        key: key_hex(&key),
        wire: hex(old_pub.as_bytes()) + &sealed(&key, &context, envelope_rev, 13, &data),
    }
}

fn rotation() -> Vec<RotationCase> {
    let (ak, account, chat) = (AccountKey::new(counting(0x40), 1), account(), chat(1));
    let row = |of, n, key: u8| (of, Entry::seal(&ak, &account, of, n, &counting(key), 1));
    let rows = [
        row(RingOf::Chat(&chat), 2, 0x61),
        row(RingOf::Chat(&chat), 1, 0x60),
        row(RingOf::Account, 1, 0x62),
        row(RingOf::Box, 1, 0x63),
    ];
    [0, 4]
        .map(|count| RotationCase {
            entries: rows[..count]
                .iter()
                .map(|(of, row)| (of.container().to_owned(), row.n, row.kid.to_string()))
                .collect(),
            digest: hex(rings_digest(rows[..count].iter().map(|(of, row)| (*of, row))).as_bytes()),
        })
        .into()
}

pub(crate) fn a_message(role: Role, parent: Option<MessageId>, body: &str) -> Message {
    Message {
        v: 1,
        role,
        parent,
        created_at: 1_700_000_000_000,
        body: body.to_owned(),
        model: None,
        reason: None,
        refs: vec![],
        proof: None,
        shared: vec![],
    }
}

pub(crate) fn sealed(key: &Key, fields: &Fields, rev: u32, salt: u8, data: &[u8]) -> String {
    sealed_in(Suite::Aes256Gcm, key, fields, rev, salt, data)
}

pub(crate) fn sealed_in(suite: Suite, key: &Key, fields: &Fields, rev: u32, salt: u8, data: &[u8]) -> String {
    let [purpose, owner, container, object, field] = fields.each_ref().map(String::as_str);
    let context = Context { purpose, owner, container, object, field };
    hex(seal_with_salt_insecure_for_testing(key, suite, &context, rev, data, &[salt; 24]).as_bytes())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The key `start, start + 1, …`.
pub(crate) fn counting(start: u8) -> Key {
    Key::from_bytes(std::array::from_fn(|at| start.wrapping_add(at as u8)))
}

pub(crate) fn key_hex(key: &Key) -> String {
    hex(key.dangerously_expose_bytes())
}

pub(crate) fn account() -> AccountId {
    AccountId::from_bits(&[1; 16])
}

pub(crate) fn chat(byte: u8) -> ChatId {
    ChatId::from_bits(&[byte; 16])
}

pub(crate) fn message_id(byte: u8) -> MessageId {
    MessageId::from_bits(&[byte; 16])
}

pub(crate) fn turn() -> TurnId {
    TurnId::from_bits(&[4; 16])
}
