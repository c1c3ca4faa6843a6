//! Promise 2 of chats: what is in the database that somebody stole, alone and together with every key of the server.
//!
//! ```text
//! chats.db alone            rows ─▶ nothing that a guess of the password could be held against
//! with the server's keys    rows ─▶ account record ─▶ public key, wrap: one Argon2id for each guess, and nothing cheaper
//!                                ─▶ rows of rings, labels ─▶ envelopes of the client, which stay shut
//! ```
//!
//! Easy to get wrong: looking only for what one thinks of. So every value of every row is looked at, and what a password has a
//! part in is found by changing the password and nothing else.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_format::{
    AccountId, AccountKey, Login, PROFILE, RecoveryCode, Root, SeenWrap, Wrap, password_salt,
};
use confidant_chats::store::Cell;
use confidant_chats::vault::Vault as _;
use confidant_client::{Credential, Device, Offer, Phase, SnapshotOptions};
use confidant_seal::{Context, Key, Sealed, open};
use serde_json::Value;

use crate::on_both_stores;
use crate::place::Place;
use crate::rows::{Row, holds, open_all};
use crate::world::{MemoryFiles, World};

on_both_stores! {
    promise_2_a_stolen_database_says_nothing_of_a_password,
    promise_2_with_every_key_of_the_server_nothing_of_a_chat_opens,
}

const LOGIN: &str = "quillfeather@example.org";
const PASSWORDS: [&str; 2] = ["correct-horse-9-battery", "marzipan-7-panther-tide"];

async fn register(world: &World, code: &RecoveryCode) -> Device {
    let password = Credential::password(LOGIN, PASSWORDS[0]).unwrap();
    let credentials = vec![password, Credential::Recovery(code.clone())];
    let mut device =
        world.register(world.transport(), &MemoryFiles::new(), LOGIN, credentials).await.unwrap();
    device.sync(Phase::All).await.unwrap();
    device
}

async fn promise_2_a_stolen_database_says_nothing_of_a_password(place: Place) {
    let world = World::at(place).await;
    let code = RecoveryCode::random();
    let mut device = register(&world, &code).await;
    let chat = device.new_chat(Some("a title")).unwrap();
    device.say(&chat, "some words").unwrap();
    device.flush().await.unwrap();
    let before = world.kept.rows().await;
    let by = Credential::Recovery(code.clone());
    let new = Credential::password(LOGIN, PASSWORDS[1]).unwrap();
    device.change_credentials(&by, &[new], None).await.unwrap();
    let after = world.kept.rows().await;
    // What a password has a part in is in one value of one row.
    let sealed: Vec<String> = changed(&before, &after)
        .into_iter()
        .filter(|(_, is_bytes)| *is_bytes)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(sealed, ["accounts.record"]);
    let account = device.account_id();
    let roots: Vec<Root> = PASSWORDS.iter().map(|password| root(&world, password)).collect();
    for (rows, root) in [(&before, &roots[0]), (&after, &roots[1])] {
        for (what, bytes) in traces(root) {
            let found = rows.iter().find(|row| holds(&row.everything(), &bytes));
            assert!(found.is_none(), "{what} is in {}", found.map_or("", |row| row.table));
        }
    }

    // With the keys of the server that record opens: what differs is the public key and the wrap, and nothing else.
    let keys = world.vault.key(account, None).await.unwrap().unwrap();
    let records: Vec<Value> = [&before, &after].map(|rows| record(rows, account, &keys)).into();
    let mut differs = differing(&records[0], &records[1], "");
    differs.sort_unstable();
    assert_eq!(differs, [".credentials.password.public_key", ".credentials.password.wrap"]);
    // So this is all that a guess can be held against; each costs a derivation, right or wrong.
    let mut thief = Thief { salt: salt(&world), account: account.clone(), derived: 0 };
    let guesses = ["123456", PASSWORDS[0], "correct-horse-9-batterz", PASSWORDS[1]];
    let opened: Vec<bool> = guesses.iter().map(|guess| thief.guess(guess, &records[1])).collect();
    assert_eq!(opened, [false, false, false, true]);
    assert_eq!(thief.derived, guesses.len(), "no guess was told wrong for less");
}

/// The names of values that differ between two looks, and whether they are bytes. A row that is new is held against the one that
/// is most like it.
fn changed(before: &[Row], after: &[Row]) -> BTreeSet<(String, bool)> {
    let mut names = BTreeSet::new();
    for row in after.iter().filter(|row| !before.contains(row)) {
        let same = |old: &Row| old.values.iter().zip(&row.values).filter(|(old, new)| old == new).count();
        let alike = before.iter().filter(|old| old.table == row.table && old.account == row.account);
        let old = alike.max_by_key(|old| same(old));
        for (name, value) in &row.values {
            if old.is_none_or(|old| old.value(name) != value) {
                names.insert((row.name(name), matches!(value, Cell::Bytes(_))));
            }
        }
    }
    names
}

/// What would show that a guess is right, if it lay there unsealed.
fn traces(root: &Root) -> Vec<(&'static str, Vec<u8>)> {
    let kek = root.kek();
    vec![
        ("the root", root.dangerously_expose_bytes().to_vec()),
        ("the key that opens the account key", kek.dangerously_expose_bytes().to_vec()),
        ("the id of that key", kek.kid().as_bytes().to_vec()),
        ("the public key", root.public_key().to_vec()),
    ]
}

fn salt(world: &World) -> [u8; 16] {
    let login = Login::parse(LOGIN).unwrap();
    password_salt(&login, world.vault.tag("prelogin", login.as_str().as_bytes()).as_bytes())
}

fn root(world: &World, password: &str) -> Root {
    Root::from_password(password, &salt(world), PROFILE).unwrap()
}

fn record(rows: &[Row], account: &AccountId, key: &Key) -> Value {
    let row = rows.iter().find(|row| row.table == "accounts" && row.account == account.as_str()).unwrap();
    let Cell::Bytes(sealed) = row.value("record") else { panic!("no record") };
    let kid = key.kid().to_string();
    let context =
        Context { purpose: "account", owner: account.as_str(), container: &kid, object: "row", field: "" };
    let opened = open(key, &context, &Sealed::from_bytes(sealed.clone())).unwrap();
    let mut record: Value = serde_json::from_slice(&opened.data).unwrap();
    // By kind: a new one may stand elsewhere in the list.
    let by_kind = |one: &Value| (one["kind"].as_str().unwrap().to_owned(), one.clone());
    record["credentials"] = record["credentials"].as_array().unwrap().iter().map(by_kind).collect();
    record
}

/// Paths at which two values differ.
fn differing(one: &Value, two: &Value, at: &str) -> Vec<String> {
    match (one, two) {
        // Whatever order they stand in.
        (Value::Object(a), Value::Object(b))
            if a.len() == b.len() && a.keys().all(|name| b.contains_key(name)) =>
        {
            a.iter().flat_map(|(name, value)| differing(value, &b[name], &format!("{at}.{name}"))).collect()
        }
        _ if one == two => Vec::new(),
        _ => vec![at.to_owned()],
    }
}

/// Somebody with the database and every key of the server.
struct Thief {
    salt: [u8; 16],
    account: AccountId,
    derived: usize,
}

impl Thief {
    /// Holds a guess against each value that a password has a part in: both say the same, and both need the root.
    fn guess(&mut self, guess: &str, record: &Value) -> bool {
        let root = Root::from_password(guess, &self.salt, PROFILE).unwrap();
        self.derived += 1;
        let credential = &record["credentials"]["password"];
        let is_key = credential["public_key"] == URL_SAFE_NO_PAD.encode(root.public_key());
        let wrap = Sealed::from_base64url(credential["wrap"].as_str().unwrap()).unwrap();
        let seen = SeenWrap::default();
        let opens =
            AccountKey::open(&root.kek(), &self.account, 1, Wrap::Password, Some(&wrap), seen).is_ok();
        assert_eq!(is_key, opens);
        opens
    }
}

async fn promise_2_with_every_key_of_the_server_nothing_of_a_chat_opens(place: Place) {
    const MARKERS: [&str; 8] = [
        "gimbalwort-title",
        "marzipanther-words",
        "overwrittenia-words",
        "draftlingium-draft",
        "umbervale-setting",
        "brontolith-embed",
        "kelpwhistle-label",
        "thistlewane-title",
    ];
    let world = World::at(place).await;
    let code = RecoveryCode::random();
    let mut device = register(&world, &code).await;
    let chat = device.new_chat(Some(MARKERS[0])).unwrap();
    let said = device.say(&chat, MARKERS[1]).unwrap();
    device.flush().await.unwrap();
    device.edit(&chat, &said, MARKERS[2]).unwrap();
    device.set_draft(&chat, Some(MARKERS[3])).unwrap();
    device.set_data("settings", "theme", Some(MARKERS[4])).unwrap();
    device.add_embed(&chat, MARKERS[5]).unwrap();
    device.flush().await.unwrap();
    device.label(MARKERS[6]).await.unwrap();
    let second = device.new_chat(Some(MARKERS[7])).unwrap();
    device.flush().await.unwrap();
    let shared = device.share_snapshot(&chat, SnapshotOptions::default()).await.unwrap();
    let link = shared.link.dangerously_to_text();
    // A pairing that is under way, with its answer waiting.
    let by = Credential::Recovery(code.clone());
    let offer = Offer::make(world.setup(&MemoryFiles::new())).await.unwrap();
    let digits = offer.dangerously_to_text();
    device.pair(&digits, &by).await.unwrap();
    let rows = world.kept.rows().await;
    let found: BTreeSet<&str> = rows.iter().map(|row| row.table).collect();
    for table in [
        "rings",
        "floors",
        "manifests",
        "data",
        "chats",
        "items",
        "drafts",
        "snapshots",
        "devices",
        "pairings",
    ] {
        assert!(found.contains(table), "nothing is in {table}");
    }

    let mut keys = vec![world.vault.key(device.account_id(), None).await.unwrap().unwrap()];
    for chat in [&chat, &second] {
        keys.push(world.vault.key(device.account_id(), Some(chat)).await.unwrap().unwrap());
    }
    let opened = open_all(&rows, device.account_id(), &[chat, second], &keys);
    assert!(opened.len() >= 6, "the server's keys open what the server sealed: {}", opened.len());
    let mut secrets: Vec<Vec<u8>> = MARKERS.iter().map(|marker| marker.as_bytes().to_vec()).collect();
    let key_of_link = link.rsplit('/').next().unwrap();
    for text in [PASSWORDS[0], &*digits, &*code.dangerously_to_text(), key_of_link] {
        secrets.push(text.as_bytes().to_vec());
        secrets.push(text.replace('-', "").into_bytes());
    }
    let everything = rows.iter().map(Row::everything).chain(opened.iter().map(|(_, data)| data.clone()));
    for bytes in everything {
        for (at, secret) in secrets.iter().enumerate() {
            assert!(!holds(&bytes, secret), "secret {at} is readable");
        }
    }
    // A login is readable with the keys of the server, in the record of its account, and nowhere else.
    let named: Vec<&str> = opened
        .iter()
        .filter(|(_, data)| holds(data, LOGIN.as_bytes()))
        .map(|(what, _)| what.as_str())
        .collect();
    assert_eq!(named, ["accounts.record"]);
    assert!(!rows.iter().any(|row| holds(&row.everything(), LOGIN.as_bytes())));
}
