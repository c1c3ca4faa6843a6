//! Every row that a server keeps of chats, as a thief reads them, and what the keys of the server open there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_format::{AccountId, ChatId};
use confidant_chats::store::{Cell, ChatStore, Copied, Part, Result, Table, copy};
use confidant_seal::{Context, Key, Kid, Sealed, open};
use parking_lot::Mutex;

/// A store: to serve from, and to look at.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) chats: Arc<dyn ChatStore>,
    pub(crate) rows: Arc<dyn Copied>,
}

impl Kept {
    pub(crate) fn of<S: ChatStore + Copied + Clone + 'static>(store: S) -> Self {
        Self { chats: Arc::new(store.clone()), rows: Arc::new(store) }
    }

    /// Every row, in the same order each time.
    pub(crate) async fn rows(&self) -> Vec<Row> {
        let all = All::default();
        copy(&*self.rows, &all).await.unwrap();
        all.0.into_inner()
    }

    /// The rows of one account.
    pub(crate) async fn rows_of(&self, account: &str) -> Vec<Row> {
        let mut rows = self.rows().await;
        rows.retain(|row| row.account == account);
        rows
    }

    /// A backup.
    pub(crate) async fn copy_to(&self, other: &Self) {
        copy(&*self.rows, &*other.rows).await.unwrap();
    }
}

/// A row: whose it is, and its values by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) table: &'static str,
    pub(crate) account: String,
    pub(crate) values: Vec<(&'static str, Cell)>,
}

impl Row {
    /// What a value is called.
    pub(crate) fn name(&self, column: &str) -> String {
        format!("{}.{column}", self.table)
    }

    /// The values that are bytes.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.values.iter().filter_map(|(name, value)| match value {
            Cell::Bytes(bytes) => Some((*name, bytes.as_slice())),
            _ => None,
        })
    }

    /// The values that are text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.values.iter().filter_map(|(_, value)| match value {
            Cell::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Everything that is in it, one after the other.
    pub(crate) fn everything(&self) -> Vec<u8> {
        let mut all = self.account.clone().into_bytes();
        for (_, value) in &self.values {
            match value {
                Cell::Nothing => {}
                Cell::Number(number) => all.extend(number.to_be_bytes()),
                Cell::Text(text) => all.extend(text.bytes()),
                Cell::Bytes(bytes) => all.extend(bytes),
            }
            all.push(0);
        }
        all
    }

    pub(crate) fn value(&self, column: &str) -> &Cell {
        &self.values.iter().find(|(name, _)| *name == column).expect("a column of this table").1
    }
}

/// A store that keeps every row it is given, whatever it is.
#[derive(Default)]
struct All(Mutex<Vec<Row>>);

impl std::fmt::Debug for All {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("All")
    }
}

#[async_trait]
impl Copied for All {
    async fn accounts_after(&self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn rows(&self, _: &'static Table, _: &str, _: &[Cell]) -> Result<Vec<Vec<Cell>>> {
        Ok(Vec::new())
    }

    async fn put_rows(&self, part: &Part) -> Result<()> {
        let names = part.table.columns();
        let row = |values: &Vec<Cell>| {
            assert_eq!(names.len(), values.len(), "{}", part.table.name());
            let values = names.iter().copied().zip(values.iter().cloned()).collect();
            Row { table: part.table.name(), account: part.account.clone(), values }
        };
        self.0.lock().extend(part.rows.iter().map(row));
        Ok(())
    }
}

/// What must not come back to anybody else: the ids in these rows, and whatever is sealed or hashed there, as it would be sent.
pub(crate) fn markers(rows: &[Row]) -> Vec<String> {
    let ids = rows.iter().flat_map(Row::texts).filter(|text| is_id(text)).map(ToOwned::to_owned);
    let bytes = rows.iter().flat_map(Row::bytes).map(|(_, bytes)| bytes).filter(|bytes| bytes.len() >= 16);
    // Whole groups of digits only: what follows changes the last one.
    let sealed = bytes.map(|bytes| URL_SAFE_NO_PAD.encode(&bytes[..bytes.len() / 3 * 3]));
    ids.chain(sealed).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a text is an id of chats.
pub(crate) fn is_id(text: &str) -> bool {
    let kinds = ["acct", "chat", "msg", "emb", "dev"];
    text.split_once('_').is_some_and(|(kind, digits)| kinds.contains(&kind) && digits.len() == 26)
}

/// Opens whatever the keys of the server open; what was sealed by a device is sealed under none of them.
pub(crate) fn open_all(
    rows: &[Row],
    account: &AccountId,
    chats: &[ChatId],
    keys: &[Key],
) -> Vec<(String, Vec<u8>)> {
    let derived = keys.iter().flat_map(|key| {
        let subs = ["msg", "meta", "embed", "hist", "wrap", "kek", "sign", "index", "proof"];
        subs.map(|sub| key.derive(sub))
    });
    let all: BTreeMap<Kid, Key> = keys.iter().cloned().chain(derived).map(|key| (key.kid(), key)).collect();
    let mut found = Vec::new();
    for row in rows {
        for (column, bytes) in row.bytes() {
            let sealed = Sealed::from_bytes(bytes.to_vec());
            let Some(key) = sealed.kid().and_then(|kid| all.get(&kid)) else { continue };
            let data = open_any(row, account, chats, key, &sealed);
            let data = data.unwrap_or_else(|| panic!("{} does not open", row.name(column)));
            // What is inside is a device's, after the mailbox's public key.
            for at in [0, 32] {
                let inner = Sealed::from_bytes(data.get(at..).unwrap_or_default().to_vec());
                assert!(
                    inner.kid().is_none_or(|kid| !all.contains_key(&kid)),
                    "{} opens twice",
                    row.name(column)
                );
            }
            found.push((row.name(column), data));
        }
    }
    let mut columns: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    // There, where a question was asked.
    columns.remove("safety.sealed");
    columns.remove("marks.sealed");
    // There, where a snapshot is shared.
    columns.remove("snapshots.line");
    columns.remove("snapshots.content");
    assert_eq!(columns, BTreeSet::from(["accounts.record", "devices.label", "rings.sealed"]));
    found
}

/// Opens what the server seals, by the places that it seals for.
fn open_any(row: &Row, account: &AccountId, chats: &[ChatId], key: &Key, sealed: &Sealed) -> Option<Vec<u8>> {
    let kid = key.kid().to_string();
    let owner = account.as_str();
    let objects: Vec<String> = match row.table {
        "rings" => (1..4)
            .flat_map(|n| row.bytes().map(move |(_, bytes)| (n, bytes)))
            .map(|(n, bytes)| format!("{n}:{}", hex(bytes)))
            .collect(),
        "snapshots" => row.bytes().map(|(_, bytes)| hex(bytes)).collect(),
        _ => row.texts().map(ToOwned::to_owned).chain(["row", "safety"].map(str::to_owned)).collect(),
    };
    let mut places = vec![
        ("account", kid.as_str(), ""),
        ("device", "", "label"),
        ("ring", "", "account"),
        ("ring", "", "box"),
    ];
    places.extend(chats.iter().map(|chat| ("ring", chat.as_str(), "chat")));
    // Scores and flags of a chat, without content: the server opens them.
    places.extend(chats.iter().map(|chat| ("safety", chat.as_str(), "")));
    // What a letter needs of an answer that is on its way, without words.
    places.extend(chats.iter().map(|chat| ("mark", chat.as_str(), "")));
    // What is shared: a device has sealed it, under a key of its own.
    for field in ["line", "content"] {
        places.extend(chats.iter().map(|chat| ("snapshot", chat.as_str(), field)));
    }
    places.into_iter().find_map(|(purpose, container, field)| {
        objects.iter().find_map(|object| {
            let context = Context { purpose, owner, container, object, field };
            open(key, &context, sealed).ok().map(|opened| opened.data.to_vec())
        })
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn holds(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}
