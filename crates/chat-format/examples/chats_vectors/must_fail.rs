//! What must be refused, each with its name.

use confidant_chat_format::*;
use confidant_seal::{Key, Suite};

use super::build::*;
use super::shape::*;
use super::snapshots::bad_snapshots;

pub(crate) fn must_fail() -> MustFail {
    MustFail {
        profiles: [0, 2, 4_294_967_295]
            .map(|profile| BadProfile { profile, error: "kdf-refused".into() })
            .into(),
        proofs: bad_proofs(),
        wraps: bad_wraps(),
        rings: bad_rings(),
        json: bad_json(),
        envelopes: bad_envelopes(),
        transcripts: bad_transcripts(),
        letters: bad_letters(),
        pairings: bad_pairings(),
        snapshots: bad_snapshots(),
    }
}

/// A statement with one part changed, under the proof of the unchanged one.
fn bad_proofs() -> Vec<BadProof> {
    let good = proof_case(Purpose::Login, "ana", b"{}");
    let credential = CredentialId::from_bits(&[3; 16]);
    let case = |name: &str, other: Proof| BadProof {
        name: name.to_owned(),
        case: Proof { proof: good.proof.clone(), ..other },
        error: "login-refused".to_owned(),
    };
    let other_origin = Proof { origin: "https://other.example".to_owned(), ..good.clone() };
    let other_challenge = Proof { challenge: key_hex(&counting(0x78)), ..good.clone() };
    let other_key = Proof { public_key: key_hex(&counting(0x79)), ..good.clone() };
    vec![
        case("another purpose", proof_case(Purpose::Erase, "ana", b"{}")),
        case("another login", proof_case(Purpose::Login, "ben", b"{}")),
        case("a credential in place of a login", proof_case(Purpose::Login, credential.as_str(), b"{}")),
        case("another body", proof_case(Purpose::Login, "ana", b"[]")),
        case("another origin", other_origin),
        case("another challenge", other_challenge),
        case("another public key", other_key),
    ]
}

fn bad_wraps() -> Vec<BadWrap> {
    let good = wrap_case(1, "pw", 7);
    let case = |name: &str, sealed: Option<String>, generation: u32, seen_rev: u32, error: &str| BadWrap {
        name: name.to_owned(),
        kek: good.kek.clone(),
        account: good.account.clone(),
        generation,
        sealed,
        seen_generation: 0,
        seen_rev,
        error: error.to_owned(),
    };
    let context = ["key", &good.account, "", "account:1", "pw"].map(str::to_owned);
    let suite_2 = sealed_in(Suite::ChaCha20Poly1305, &counting(0x20), &context, 7, 9, &[7; 32]);
    let short = sealed(&counting(0x20), &context, 7, 9, &[7; 31]);
    vec![
        case("from before a change", Some(wrap_case(1, "pw", 6).sealed), 1, 7, "rolled-back"),
        case("no account key, make one", None, 1, 0, "account-missing"),
        case("another generation", Some(good.sealed.clone()), 2, 0, "key-refused"),
        case("of the recovery code", Some(wrap_case(1, "rec", 7).sealed), 1, 0, "key-refused"),
        case("suite 2", Some(suite_2), 1, 0, "key-refused"),
        case("31 bytes", Some(short), 1, 0, "key-refused"),
        BadWrap {
            seen_generation: 2,
            ..case("of the generation before", Some(good.sealed.clone()), 1, 8, "key-refused")
        },
    ]
}

fn bad_rings() -> Vec<BadRing> {
    let chat = chat(1).to_string();
    let entry = |g, born, n, key: u8| row(&entry_case(g, born, &chat, "chat", n, &counting(key)));
    let case = |name: &str, rows: Vec<Row>, error: &str| BadRing {
        name: name.to_owned(),
        account_key: key_hex(&counting(0x40)),
        generation: 2,
        account: account().to_string(),
        chat: chat.clone(),
        rows,
        error: error.to_owned(),
    };
    let [one, two] = [entry(2, 1, 1, 0x60), entry(2, 2, 2, 0x61)];
    let mut cases = vec![
        case("empty", vec![], "ring-gap"),
        case("without the first", vec![two.clone()], "ring-gap"),
        case("a gap", vec![one.clone(), entry(2, 2, 3, 0x61)], "ring-gap"),
        case("number 0", vec![entry(2, 1, 0, 0x62), one.clone()], "ring-gap"),
        case(
            "two entries with one number",
            vec![one.clone(), two.clone(), entry(2, 2, 2, 0x62)],
            "ring-forked",
        ),
        case(
            "a gap and two with one number",
            vec![one.clone(), one.clone(), entry(2, 2, 3, 0x61)],
            "ring-gap",
        ),
        case("under a retired account key", vec![entry(1, 1, 1, 0x60), two.clone()], "key-refused"),
        case("born in a later generation", vec![entry(2, 3, 1, 0x60), two.clone()], "key-refused"),
        case("born before the first", vec![entry(2, 0, 1, 0x60), two.clone()], "key-refused"),
    ];
    let other = Row { kid: two.kid.clone(), ..one.clone() };
    cases.push(case("another kid in the row", vec![other, two.clone()], "key-refused"));
    let other = Row { subs: two.subs.clone(), ..one.clone() };
    cases.push(case("other kids of sub-keys", vec![other, two.clone()], "key-refused"));
    let foreign = row(&entry_case(2, 1, super::build::chat(2).as_str(), "chat", 1, &counting(0x60)));
    cases.push(case("of another chat", vec![foreign, two.clone()], "key-refused"));
    for (name, suite, inside) in [
        ("kid of another key than the one inside", Suite::Aes256Gcm, 0x6f),
        ("suite 2", Suite::ChaCha20Poly1305, 0x60),
    ] {
        let context =
            ["key", account().as_str(), &chat, &format!("1:{}", one.kid), "chat"].map(str::to_owned);
        let data = [&counting(inside).dangerously_expose_bytes()[..], &1_u32.to_be_bytes()].concat();
        let sealed = sealed_in(suite, &counting(0x40).derive("wrap"), &context, 2, 14, &data);
        cases.push(case(name, vec![Row { sealed, ..one.clone() }, two.clone()], "key-refused"));
    }
    cases
}

fn row(entry: &EntryCase) -> Row {
    Row { n: entry.n, kid: entry.kid.clone(), subs: entry.subs.clone(), sealed: entry.sealed.clone() }
}

fn bad_json() -> Vec<BadJson> {
    let text = |json: &[u8]| String::from_utf8(json.to_vec()).expect("JSON is text");
    let message = text(&a_message(Role::User, None, "x").to_json());
    let (head, manifest) = (text(&a_head().to_json()), text(&a_manifest().to_json()));
    let case = |name: &str, record: &str, good: &str, from: &str, to: &str| {
        let json = good.replacen(from, to, 1);
        assert_ne!(json, good, "{name}");
        let (name, record) = (name.to_owned(), record.to_owned());
        BadJson { name, record, json, error: "record-refused".to_owned() }
    };
    let (v, body) = (r#""v":1"#, r#""body":"x""#);
    let pending = serde_json::to_string(&a_head().pending[0]).expect("plain data");
    vec![
        case("a field twice", "message", &message, v, r#""v":1,"v":1"#),
        case("a field twice, spelled differently", "message", &message, v, r#""v":1,"\u0076":1"#),
        case("an unknown field", "message", &message, v, r#""v":1,"w":1"#),
        case("another version", "message", &message, v, r#""v":2"#),
        case("a fraction", "message", &message, v, r#""v":1.0"#),
        case("no parent", "message", &message, r#""parent":null,"#, ""),
        case("null for a field that is left out", "message", &message, v, r#""v":1,"model":null"#),
        case("a leading surrogate alone", "message", &message, body, r#""body":"\ud83d""#),
        case("a trailing surrogate alone", "message", &message, body, r#""body":"\udc4b""#),
        case("surrogates the wrong way round", "message", &message, body, r#""body":"\udc4b\ud83d""#),
        case("a surrogate alone in a name", "message", &message, v, r#""v":1,"\ud83d":1"#),
        case("another role", "message", &message, "user", "system"),
        case("an id that is none", "message", &message, "[]", r#"["emb_x"]"#),
        case("something after the end", "message", &message, "}", "}{}"),
        case("a field twice", "head", &head, v, r#""v":1,"v":1"#),
        case("a field twice, inside", "head", &head, r#"{"turn""#, r#"{"turn":"","turn""#),
        case("one reply twice", "head", &head, &pending, &format!("{pending},{pending}")),
        case("a list in place of an object", "head", &head, &pending, r#"["","",""]"#),
        case("an id of a key in upper case", "head", &head, &a_head().kid.to_string(), "ABCDEF0123456789"),
        case("padded base64", "head", &head, r#"","chain""#, r#"=","chain""#),
        case("fifteen floors", "manifest", &manifest, r#""floors":[""#, r#""floors":[],"x":[""#),
        case("a chat twice", "floor", r#"{"v":1,"chats":{}}"#, "{}", &twice()),
        case("a revision alone", "floor", r#"{"v":1,"chats":{}}"#, "{}", &format!(r#"{{"{}":1}}"#, chat(1))),
        case("a revision below zero", "floor", r#"{"v":1,"chats":{}}"#, "{}", &one_chat("-1")),
        case(
            "a chat of another shelf",
            "floor",
            r#"{"v":1,"chats":{}}"#,
            "{}",
            &one_chat("1").replace("chat_a", "chat_b"),
        ),
    ]
}

fn one_chat(rev: &str) -> String {
    let envelope = serde_json::to_string(&Digest::of(b"head")).expect("plain data");
    format!(r#"{{"{}":{{"rev":{rev},"envelope":{envelope}}}}}"#, chat(1))
}

fn twice() -> String {
    let one = one_chat("1");
    format!("{},{}", &one[..one.len() - 1], &one[1..])
}

/// Messages that do not open where they are put.
fn bad_envelopes() -> Vec<BadEnvelope> {
    let (key, chat) = (counting(0x60), chat(1));
    let fields = |object: &MessageId| {
        ["message", account().as_str(), chat.as_str(), object.as_str(), "content"].map(str::to_owned)
    };
    let json = a_message(Role::User, None, "x").to_json();
    let case = |name: &str, sealed: String| BadEnvelope {
        name: name.to_owned(),
        key: key_hex(&key),
        context: fields(&message_id(1)),
        sealed,
        error: "record-refused".to_owned(),
    };
    let (msg, context) = (key.derive("msg"), fields(&message_id(1)));
    let good = sealed(&msg, &context, 1, 15, &json);
    let flipped = format!("{}{}", &good[..good.len() - 1], if good.ends_with('0') { '1' } else { '0' });
    vec![
        case("suite 2", sealed_in(Suite::ChaCha20Poly1305, &msg, &context, 1, 15, &json)),
        case("of another message", sealed(&msg, &fields(&message_id(2)), 1, 15, &json)),
        case("under another sub-key", sealed(&key.derive("meta"), &context, 1, 15, &json)),
        case("under another key", sealed(&Key::from_bytes([1; 32]).derive("msg"), &context, 1, 15, &json)),
        case("a changed bit", flipped),
        case("nothing", String::new()),
    ]
}

/// A proof moved to where it does not belong: the words are quoted.
fn bad_transcripts() -> Vec<BadTranscript> {
    let (key, here) = (counting(0x50), chat(1));
    let before = Transcript::start().then(TranscriptKind::User, "may I?");
    let other_branch = Transcript::start().then(TranscriptKind::User, "must I?");
    let proof = before.then(TranscriptKind::Assistant, "yes").prove(
        &key,
        &here,
        &message_id(2),
        TranscriptKind::Assistant,
    );
    let case =
        |name: &str, to: &ChatId, at: &Transcript, id: u8, kind: TranscriptKind, text: &str| BadTranscript {
            name: name.to_owned(),
            account_key: key_hex(&key),
            chat: to.to_string(),
            before: hex(at.digest().as_bytes()),
            id: message_id(id).to_string(),
            kind: kind.byte(),
            text: text.to_owned(),
            proof: hex(proof.as_bytes()),
            adopted: 5,
            transcript: hex(at.then(TranscriptKind::Quoted, text).digest().as_bytes()),
        };
    vec![
        case("moved to another chat", &chat(2), &before, 2, TranscriptKind::Assistant, "yes"),
        case("moved to another branch", &here, &other_branch, 2, TranscriptKind::Assistant, "yes"),
        case("moved to another message", &here, &before, 3, TranscriptKind::Assistant, "yes"),
        case("moved to another kind", &here, &before, 2, TranscriptKind::Tool, "yes"),
        case("under other words", &here, &before, 2, TranscriptKind::Assistant, "yes!"),
    ]
}

fn bad_letters() -> Vec<BadLetter> {
    let good = mailbox();
    let head = String::from_utf8(a_head().to_json().to_vec()).expect("JSON is text");
    let none =
        String::from_utf8(Head { pending: vec![], ..a_head() }.to_json().to_vec()).expect("JSON is text");
    let reply = |role, parent: u8| {
        letter_case("reply", &a_message(role, Some(message_id(parent)), "hello").to_json(), 1).wire
    };
    let (good_more, rest) = (more(), letter_case("reply-more", b"{}", 1).wire);
    let more_case = |name: &str, head: &str, wire: String, error: &str| BadLetter {
        name: name.to_owned(),
        box_key: good.box_key.clone(),
        context: good_more.context.clone(),
        head: head.to_owned(),
        listed: vec![],
        wire,
        error: error.to_owned(),
    };
    let case = |name: &str, head: &str, listed: &[MessageId], wire: String, error: &str| BadLetter {
        name: name.to_owned(),
        box_key: good.box_key.clone(),
        context: good.context.clone(),
        head: head.to_owned(),
        listed: listed.iter().map(MessageId::to_string).collect(),
        wire,
        error: error.to_owned(),
    };
    let twice = [message_id(1), message_id(2)];
    let here = &twice[..1];
    let json = a_message(Role::Assistant, Some(message_id(1)), "hello").to_json();
    let zero = "00".repeat(32) + &good.wire[64..];
    // A point of order 8: every shared secret with it is zero.
    let low = format!("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800{}", &good.wire[64..]);
    vec![
        case("not pending", &none, here, good.wire.clone(), "unasked"),
        case("comes twice", &head, &twice, good.wire.clone(), "duplicate"),
        case("comes twice, no longer pending", &none, &twice, good.wire.clone(), "duplicate"),
        case("answers another message", &head, here, reply(Role::Assistant, 3), "unasked"),
        case("in the person's name", &head, here, reply(Role::User, 1), "record-refused"),
        case("revision 2", &head, here, letter_case("reply", &json, 2).wire, "record-refused"),
        case("not a record", &head, here, letter_case("reply", b"{}", 1).wire, "record-refused"),
        case("an all-zero shared secret", &head, here, zero, "record-refused"),
        case("a point of low order", &head, here, low, "record-refused"),
        case("cut", &head, here, good.wire[..good.wire.len() - 2].to_owned(), "record-refused"),
        case("nothing", &head, here, String::new(), "record-refused"),
        case("what came after it", &head, here, good_more.wire.clone(), "record-refused"),
        more_case("after a reply: not pending", &none, good_more.wire.clone(), "unasked"),
        more_case("after a reply: the reply", &head, good.wire.clone(), "record-refused"),
        more_case("after a reply: not a record", &head, rest, "record-refused"),
    ]
}

fn bad_pairings() -> Vec<BadPairing> {
    let good = pairing();
    let base = BadPairing {
        name: String::new(),
        secret: good.secret.clone(),
        new_key: good.new_key.clone(),
        origin: good.origin.clone(),
        account: good.account.clone(),
        generation: good.generation,
        wire: good.wire.clone(),
        error: "pair-refused".to_owned(),
    };
    let case = |name: &str, bad: BadPairing| BadPairing { name: name.to_owned(), ..bad };
    let zero = "00".repeat(32) + &good.wire[64..];
    vec![
        case("another secret", BadPairing { secret: "00".repeat(16), ..base.clone() }),
        case("another device", BadPairing { new_key: key_hex(&counting(0x81)), ..base.clone() }),
        case("another origin", BadPairing { origin: "https://other.example".to_owned(), ..base.clone() }),
        case(
            "another account",
            BadPairing { account: AccountId::from_bits(&[2; 16]).to_string(), ..base.clone() },
        ),
        case("another generation", BadPairing { generation: 3, ..base.clone() }),
        case("revision 1", BadPairing { wire: pairing_case(1).wire, ..base.clone() }),
        case("an all-zero shared secret", BadPairing { wire: zero, ..base.clone() }),
        case("cut", BadPairing { wire: good.wire[..good.wire.len() - 2].to_owned(), ..base }),
    ]
}
