//! The vectors as data. Structs rather than `json!` so that the order of fields never depends on features.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use confidant_seal::vectors::{
    Reason, open_with_reason, padded_len, seal_plain_with_salt_insecure_for_testing,
    seal_with_salt_insecure_for_testing,
};
use confidant_seal::{
    ChannelName, Context, Key, MasterKey, PlaceId, Scope, Sealed, Suite, TenantId, ThreadId, UserId,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(crate) struct Vectors {
    pub(crate) about: String,
    pub(crate) kids: Vec<KidCase>,
    pub(crate) sub_keys: Vec<SubKey>,
    pub(crate) roots: Vec<Root>,
    pub(crate) macs: Vec<Mac>,
    pub(crate) contexts: Vec<ContextCase>,
    pub(crate) padding: Vec<Padding>,
    pub(crate) seals: Vec<Seal>,
    pub(crate) session_keys: Vec<SessionKey>,
    pub(crate) named_keys: Vec<NamedKey>,
    pub(crate) sealed_scopes: Vec<SealedScope>,
    pub(crate) scopes: Vec<ScopeCase>,
    pub(crate) refused_session_ids: Vec<String>,
    pub(crate) refused_scopes: Vec<String>,
    pub(crate) must_fail: Vec<MustFail>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KidCase {
    pub(crate) key: String,
    pub(crate) kid: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SubKey {
    pub(crate) key: String,
    pub(crate) label: String,
    pub(crate) sub_key: String,
    pub(crate) kid: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Root {
    pub(crate) master_base64: String,
    pub(crate) root: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Mac {
    pub(crate) key: String,
    pub(crate) domain: String,
    pub(crate) bytes: String,
    pub(crate) mac: String,
    pub(crate) tag: String,
}

/// Purpose, owner, container, object, field.
pub(crate) type Fields = [String; 5];

#[derive(Serialize, Deserialize)]
pub(crate) struct ContextCase {
    pub(crate) context: Fields,
    pub(crate) encoded: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Padding {
    pub(crate) data: usize,
    pub(crate) plain: usize,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Seal {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) suite: u8,
    pub(crate) context: Fields,
    pub(crate) rev: u32,
    pub(crate) salt: String,
    pub(crate) data: String,
    pub(crate) sealed: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SessionKey {
    pub(crate) root: String,
    pub(crate) scope: String,
    pub(crate) generation: u32,
    pub(crate) data_key: String,
    pub(crate) seal: Seal,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct NamedKey {
    pub(crate) root: String,
    pub(crate) name: String,
    pub(crate) named_key: String,
    pub(crate) seal: Seal,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SealedScope {
    pub(crate) root: String,
    pub(crate) tag: String,
    pub(crate) scope: String,
    pub(crate) seal: Seal,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ScopeCase {
    pub(crate) tenant: String,
    pub(crate) channel: String,
    pub(crate) place: Option<String>,
    pub(crate) thread: Option<String>,
    pub(crate) user: String,
    pub(crate) canonical: String,
    pub(crate) session_id: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct MustFail {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) context: Fields,
    pub(crate) sealed: String,
    pub(crate) reason: String,
}

/// The whole file.
pub(crate) fn text() -> String {
    let vectors = Vectors {
        about: "seal/v1 test vectors; docs/FORMAT.md describes them. Bytes are lower-case hexadecimal unless named \
                otherwise; `context` lists purpose, owner, container, object, field. Regenerate with `cargo run -p \
                confidant-seal --example vectors`."
            .to_owned(),
        kids: kids(),
        sub_keys: sub_keys(),
        roots: roots(),
        macs: macs(),
        contexts: contexts(),
        padding: padding(),
        seals: seals(),
        session_keys: session_keys(),
        named_keys: named_keys(),
        sealed_scopes: sealed_scopes(),
        scopes: scope_cases(),
        refused_session_ids: REFUSED_SESSION_IDS.map(str::to_owned).to_vec(),
        refused_scopes: refused_scopes(),
        must_fail: must_fail(),
    };
    serde_json::to_string_pretty(&vectors).expect("plain data serialises") + "\n"
}

fn kids() -> Vec<KidCase> {
    [counting(0), counting(0x80), Key::from_bytes([0; 32])]
        .map(|key| KidCase { key: key_hex(&key), kid: key.kid().to_string() })
        .into()
}

fn sub_keys() -> Vec<SubKey> {
    [
        "sessions",
        "concepts",
        "memory",
        "cache:u_1",
        "accounts",
        "bus",
        "auth",
        "kek",
        "wrap",
        "meta",
        "msg",
        "",
        "é",
    ]
    .map(|label| {
        let (key, sub_key) = (counting(0), counting(0).derive(label));
        SubKey {
            key: key_hex(&key),
            label: label.to_owned(),
            sub_key: key_hex(&sub_key),
            kid: sub_key.kid().to_string(),
        }
    })
    .into()
}

fn roots() -> Vec<Root> {
    // The second is the documented example of the first system; its last digit has spare bits set.
    let masters = [STANDARD.encode([7; 32]), "kX9v2+Jq8P7mN4wL1cR6tY5uS3hG8fD2aQ9zE4bV1xK=".to_owned()];
    let root = |text: &String| MasterKey::from_base64(text).expect("32 bytes of base64").root();
    masters.map(|text| Root { root: key_hex(&root(&text)), master_base64: text }).into()
}

fn macs() -> Vec<Mac> {
    let key = counting(0);
    [("scope", &b"u_1"[..]), ("scop", b"eu_1"), ("", b""), ("é", &[0xff; 100])]
        .map(|(domain, bytes)| Mac {
            key: key_hex(&key),
            domain: domain.to_owned(),
            bytes: hex(bytes),
            mac: hex(&key.mac(domain, bytes)),
            tag: key.tag(domain, bytes).to_string(),
        })
        .into()
}

fn contexts() -> Vec<ContextCase> {
    let long = "x".repeat(300);
    [
        ["", "", "", "", ""],
        ["message", "u_1", "c_1", "m_1", "content"],
        ["message", "u_1c", "_1", "m_1", "content"],
        ["message", "u_1", "", "c_1m_1", "content"],
        ["messageu", "_1", "c_1", "m_1", "content"],
        ["", "", "", "", "messageu_1c_1m_1content"],
        ["naïve", "用户", "🦀", "e\u{301}", "é"],
        ["a", "\0", "\0\u{1}a", "", "\0\0"],
        ["key", &long, "", "session:1", ""],
    ]
    .map(|fields| ContextCase {
        context: owned(fields),
        encoded: hex(&context(&fields).encode().expect("short")),
    })
    .into()
}

fn padding() -> Vec<Padding> {
    let around =
        [0, 1, 59, 60, 61, 67, 68, 69, 96, 100, 124, 125, 252, 253, 996, 1020, 1021, 4092, 4093, 65_531];
    let large = [65_532, 65_533, 1_000_000, 16_777_216, 1_073_741_824];
    around.into_iter().chain(large).map(|data| Padding { data, plain: padded_len(data) }).collect()
}

fn seals() -> Vec<Seal> {
    let text = "Grüße aus dem Raum 🦀".as_bytes();
    let long: Vec<u8> = (0..5000u32).map(|i| (i % 251) as u8).collect();
    vec![
        seal("first of the specification", &counting(0), Suite::Aes256Gcm, MESSAGE, 3, 9, &[0]),
        seal("the same in suite 2", &counting(0), Suite::ChaCha20Poly1305, MESSAGE, 3, 9, &[0]),
        seal("empty data, empty context", &counting(0), Suite::Aes256Gcm, [""; 5], 0, 0, &[]),
        seal("empty data, suite 2", &counting(0), Suite::ChaCha20Poly1305, [""; 5], 0, 0, &[]),
        seal("greatest revision", &counting(1), Suite::Aes256Gcm, MESSAGE, u32::MAX, 0xff, text),
        seal(
            "multibyte context",
            &counting(1),
            Suite::ChaCha20Poly1305,
            ["メモ", "é", "🦀", "m", ""],
            1,
            2,
            text,
        ),
        seal("60 bytes, the most of 64", &counting(2), Suite::Aes256Gcm, MESSAGE, 1, 3, &[0xaa; 60]),
        seal("61 bytes, the first of 72", &counting(2), Suite::ChaCha20Poly1305, MESSAGE, 1, 4, &[0xaa; 61]),
        seal("5000 bytes", &counting(3), Suite::Aes256Gcm, MESSAGE, 1, 5, &long),
        seal("5000 bytes, suite 2", &counting(3), Suite::ChaCha20Poly1305, MESSAGE, 1, 6, &long),
    ]
}

fn session_keys() -> Vec<SessionKey> {
    let cases = [(scopes().remove(0), 1), (scopes().remove(8), 4_294_967_295)];
    cases
        .map(|(scope, generation)| {
            let (root, data_key) = (counting(0x40), counting(0x60));
            let owner = URL_SAFE_NO_PAD.encode(scope.canonical());
            let (object, field) = (format!("session:{generation}"), root.kid().to_string());
            let context = ["key", &owner, "", &object, &field];
            SessionKey {
                root: key_hex(&root),
                scope: hex(&scope.canonical()),
                generation,
                data_key: key_hex(&data_key),
                seal: seal(
                    "session key",
                    &root.derive("sessions"),
                    WRAPS,
                    context,
                    0,
                    0x11,
                    bytes(&data_key),
                ),
            }
        })
        .into()
}

fn named_keys() -> Vec<NamedKey> {
    ["names", "audit"]
        .map(|name| {
            let (root, key) = (counting(0x40), counting(0x20));
            let (object, field) = (format!("named:{name}"), root.kid().to_string());
            NamedKey {
                root: key_hex(&root),
                name: name.to_owned(),
                named_key: key_hex(&key),
                seal: seal("named key", &root, WRAPS, ["key", "", "", &object, &field], 0, 0x12, bytes(&key)),
            }
        })
        .into()
}

fn sealed_scopes() -> Vec<SealedScope> {
    let (root, scope) = (counting(0x40), scopes().remove(0));
    let tag = counting(0x20).tag("scope", &scope.canonical());
    let (container, field) = (tag.to_string(), root.kid().to_string());
    let context = ["scope", "", &container, "scope", &field];
    vec![SealedScope {
        root: key_hex(&root),
        tag: tag.to_string(),
        scope: hex(&scope.canonical()),
        seal: seal("scope", &root, WRAPS, context, 0, 0x13, &scope.canonical()),
    }]
}

fn scopes() -> Vec<Scope> {
    vec![
        place("matrix", "!abc123:matrix.org", "main", "@alice:matrix.org"),
        place("matrix", "!abc123:matrix.org", "$thread456", "@bob:matrix.org"),
        place("matrix", "!room", "main", "@alice"),
        place("matrix", "!r:[2001:db8::1]:8448", "$e:h.org:8448", "@a:[::1]:80"),
        place("matrix", "!r:main", "main", "@a:main"),
        place("matrix", "!r:$x", "main", "@a"),
        place("matrix", "!r", "main", "@a:@b"),
        place("matrix", "#r", "main", "@a"),
        person("discord", "42"),
        person("matrix", "@a:h.org"),
        person("x_conv", "u"),
        place("x_conv", "a", "b", "c"),
        person("x", "a:b:c"),
        place("web", "100%", "a:b", "e\u{301}"),
        place("web", "%3A", "%", ":"),
    ]
}

fn scope_cases() -> Vec<ScopeCase> {
    let case = |scope: Scope| ScopeCase {
        tenant: scope.tenant().as_str().to_owned(),
        channel: scope.channel().as_str().to_owned(),
        place: scope.place_id().map(|id| id.as_str().to_owned()),
        thread: scope.thread().map(|id| id.as_str().to_owned()),
        user: scope.user().as_str().to_owned(),
        canonical: hex(&scope.canonical()),
        session_id: scope.session_id(),
    };
    scopes().into_iter().map(case).collect()
}

fn refused_scopes() -> Vec<String> {
    let good = person("web", "u").canonical();
    let edit = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        hex(&bytes)
    };
    let mut decomposed = good[..good.len() - 3].to_vec();
    decomposed.extend_from_slice("\0\u{3}e\u{301}".as_bytes());
    let long = [&good[..], b"x"].concat();
    vec![
        hex(&[]),
        hex(&good[..good.len() - 1]),
        hex(&long),
        edit(0, 2),
        edit(1, 1),
        edit(1, 0),
        edit(3, 5),
        edit(10, b'W'),
        edit(good.len() - 1, 0),
        hex(&decomposed),
    ]
}

fn must_fail() -> Vec<MustFail> {
    let key = counting(0);
    let good = seal_with_salt(&key, Suite::Aes256Gcm, MESSAGE, 3, 9, b"hello");
    let mut cases = vec![fail("another key", &counting(1), MESSAGE, &good, Reason::Key)];
    for (at, field) in ["purpose", "owner", "container", "object", "field"].into_iter().enumerate() {
        let mut other = MESSAGE;
        other[at] = "other";
        cases.push(fail(&format!("another {field}"), &key, other, &good, Reason::Tamper));
    }
    let shifted = ["message", "u_1c", "_1", "m_1", "content"];
    cases.push(fail("boundary shifted", &key, shifted, &good, Reason::Tamper));
    cases.extend(changed_bytes(&key, &good));
    cases.extend(wrong_lengths(&key, &good));
    cases.extend(bad_padding(&key));
    cases
}

fn changed_bytes(key: &Key, good: &[u8]) -> Vec<MustFail> {
    let flips = [
        ("flipped version", 0, Reason::Version),
        ("flipped suite", 1, Reason::Version),
        ("flipped kid", 2, Reason::Key),
        ("flipped end of kid", 9, Reason::Key),
        ("flipped rev", 10, Reason::Tamper),
        ("flipped end of rev", 13, Reason::Tamper),
        ("flipped salt", 14, Reason::Tamper),
        ("flipped end of salt", 37, Reason::Tamper),
        ("flipped commit", 38, Reason::Tamper),
        ("flipped end of commit", 69, Reason::Tamper),
        ("flipped ciphertext", 70, Reason::Tamper),
        ("flipped tag", 134, Reason::Tamper),
        ("flipped end of tag", 149, Reason::Tamper),
    ];
    let flips = flips.map(|(name, at, reason)| (name, at, good[at] ^ 0x80, reason));
    let values = [
        ("version 0", 0, 0, Reason::Version),
        ("version 2", 0, 2, Reason::Version),
        ("suite 0", 1, 0, Reason::Version),
        ("suite 3", 1, 3, Reason::Version),
        ("swapped suite", 1, 2, Reason::Tamper),
        ("older revision", 13, 2, Reason::Tamper),
    ];
    let change = |(name, at, byte, reason): (&str, usize, u8, Reason)| {
        let mut bad = good.to_vec();
        bad[at] = byte;
        fail(name, key, MESSAGE, &bad, reason)
    };
    flips.into_iter().chain(values).map(change).collect()
}

fn wrong_lengths(key: &Key, good: &[u8]) -> Vec<MustFail> {
    let cut = |len: usize| fail(&format!("cut to {len} bytes"), key, MESSAGE, &good[..len], Reason::Format);
    let mut cases: Vec<_> = [0, 1, 14, 38, 70, 86, 149].map(cut).into();
    let longer = seal_with_salt(key, Suite::Aes256Gcm, MESSAGE, 3, 9, &[1; 100]);
    let other_version = [&[2], &good[1..]].concat();
    cases.extend([
        fail("last byte cut", key, MESSAGE, &longer[..longer.len() - 1], Reason::Tamper),
        fail("a byte appended", key, MESSAGE, &[good, &[0]].concat(), Reason::Tamper),
        // What fails two checks is named by the first.
        fail("too short, and another version", key, MESSAGE, &[2; 149], Reason::Format),
        fail("another version, and another key", &counting(1), MESSAGE, &other_version, Reason::Version),
    ]);
    cases
}

fn bad_padding(key: &Key) -> Vec<MustFail> {
    let mut cases = Vec::new();
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        for (name, plain) in bad_plains() {
            let context = context(&MESSAGE);
            let sealed = seal_plain_with_salt_insecure_for_testing(key, suite, &context, 3, &plain, &[9; 24]);
            let reason = if plain.len() < 64 { Reason::Format } else { Reason::Padding };
            let name = format!("authentic, {name}, suite {}", digit(suite));
            cases.push(fail(&name, key, MESSAGE, sealed.as_bytes(), reason));
        }
    }
    cases
}

fn fail(name: &str, key: &Key, fields: [&str; 5], bytes: &[u8], reason: Reason) -> MustFail {
    let found = open_with_reason(key, &context(&fields), &Sealed::from_bytes(bytes.to_vec())).err();
    assert_eq!(found, Some(reason), "{name}");
    MustFail {
        name: name.to_owned(),
        key: key_hex(key),
        context: owned(fields),
        sealed: hex(bytes),
        reason: reason_name(reason).to_owned(),
    }
}

/// Plaintexts that a holder of the key could seal and no writer of ours does.
fn bad_plains() -> Vec<(&'static str, Vec<u8>)> {
    let plain = |len: u32, size: usize| [&len.to_be_bytes()[..], &vec![0; size - 4]].concat();
    let dirty = |len: u32, size: usize, at: usize| {
        let mut plain = plain(len, size);
        plain[at] = 1;
        plain
    };
    vec![
        ("last padding byte not zero", dirty(5, 64, 63)),
        ("first padding byte not zero", dirty(5, 64, 9)),
        ("length one too great", plain(61, 64)),
        ("length the greatest", plain(u32::MAX, 64)),
        ("padded too far", plain(5, 72)),
        ("padded too far by a step", plain(61, 80)),
        ("not padded", plain(61, 65)),
        ("shorter than the least", plain(5, 40)),
        ("no plaintext at all", vec![]),
    ]
}

fn seal(name: &str, key: &Key, suite: Suite, fields: [&str; 5], rev: u32, salt: u8, data: &[u8]) -> Seal {
    Seal {
        name: name.to_owned(),
        key: key_hex(key),
        suite: digit(suite),
        context: owned(fields),
        rev,
        salt: hex(&[salt; 24]),
        data: hex(data),
        sealed: hex(&seal_with_salt(key, suite, fields, rev, salt, data)),
    }
}

fn seal_with_salt(key: &Key, suite: Suite, fields: [&str; 5], rev: u32, salt: u8, data: &[u8]) -> Vec<u8> {
    seal_with_salt_insecure_for_testing(key, suite, &context(&fields), rev, data, &[salt; 24]).into_bytes()
}

pub(crate) fn context<'a, S: AsRef<str>>(fields: &'a [S; 5]) -> Context<'a> {
    let [purpose, owner, container, object, field] = fields.each_ref().map(AsRef::as_ref);
    Context { purpose, owner, container, object, field }
}

pub(crate) fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::Format => "format",
        Reason::Version => "version",
        Reason::Key => "key",
        Reason::Tamper => "tamper",
        Reason::Padding => "padding",
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digit(suite: Suite) -> u8 {
    if suite == Suite::Aes256Gcm { 1 } else { 2 }
}

fn owned(fields: [&str; 5]) -> Fields {
    fields.map(str::to_owned)
}

/// The key `start, start + 1, …`.
fn counting(start: u8) -> Key {
    Key::from_bytes(std::array::from_fn(|i| start.wrapping_add(i as u8)))
}

fn bytes(key: &Key) -> &[u8] {
    key.dangerously_expose_bytes()
}

fn key_hex(key: &Key) -> String {
    hex(bytes(key))
}

fn place(channel: &str, place: &str, thread: &str, user: &str) -> Scope {
    let (place, thread) = (PlaceId::new(place).expect("valid"), ThreadId::new(thread).expect("valid"));
    Scope::place(tenant(), ChannelName::any(channel).expect("valid"), place, thread, user_id(user))
}

fn person(channel: &str, user: &str) -> Scope {
    Scope::person(tenant(), ChannelName::any(channel).expect("valid"), user_id(user))
}

fn tenant() -> TenantId {
    TenantId::new("acme").expect("valid")
}

fn user_id(user: &str) -> UserId {
    UserId::any(user).expect("valid")
}

const MESSAGE: [&str; 5] = ["message", "u_1", "c_1", "m_1", "content"];
const WRAPS: Suite = Suite::ChaCha20Poly1305;
const REFUSED_SESSION_IDS: [&str; 17] = [
    "",
    "web",
    "web:u",
    "web:p:u",
    "web:p:t:u:x",
    "web:p::u",
    "Web:p:t:u",
    "web:p:t:u\n",
    "web_conv:a%3ab",
    "web_conv:%41",
    "web_conv:100%",
    "web_conv:e\u{301}",
    "_conv:u",
    "!room:@alice",
    "!room:other:@alice",
    "!room:main:@alice:@bob",
    "matrix:!room:main:@alice",
];
