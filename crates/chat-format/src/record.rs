//! Records: what is sealed where, and what is inside.
//!
//! Owns the places of the format and the JSON of messages, embeds, fields and drafts. Leaves heads and lists to
//! [`crate::head`] and [`crate::manifest`]. Easy to get wrong: believing a column of the server. Role, parent and time
//! are inside the seal, and nowhere else.

use confidant_seal::{Context, Sealed, seal};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::bytes::Digest;
use crate::error::Refused;
use crate::ids::{AccountId, ChatId, EmbedId, FieldName, ItemId, MessageId, SnapshotId};
use crate::json::{self, Record};
use crate::ring::{Held, Ring, SUITE, Sub, open_suite_1};

/// Where a record belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// An item of a chat's list.
    Item(&'a ChatId, &'a ItemId),
    /// A chat's head.
    Head(&'a ChatId),
    /// What was typed into a chat and not sent.
    Draft(&'a ChatId),
    /// A piece of the account's data: its kind and its name.
    Data(&'a FieldName, &'a FieldName),
    /// One of the sixteen lists of chats.
    Floor(Shelf),
    /// The account's manifest.
    Manifest,
    /// The key of a snapshot of a chat, which is no JSON.
    SnapshotKey(&'a ChatId, &'a SnapshotId),
}

impl Place<'_> {
    fn sub(&self) -> Sub {
        match self {
            Self::Item(_, ItemId::Message(_)) => Sub::Msg,
            Self::Item(_, ItemId::Embed(_)) => Sub::Embed,
            _ => Sub::Meta,
        }
    }

    /// The context of the envelope.
    pub fn context<'a>(&'a self, account: &'a AccountId) -> Context<'a> {
        let (purpose, container, object, field) = match self {
            Self::Item(chat, ItemId::Message(id)) => ("message", chat.as_str(), id.as_str(), "content"),
            Self::Item(chat, ItemId::Embed(id)) => ("embed", chat.as_str(), id.as_str(), "content"),
            Self::Item(chat, ItemId::Field(name)) => ("chat", chat.as_str(), "meta", name.as_str()),
            Self::Head(chat) => ("head", chat.as_str(), "head", ""),
            Self::Draft(chat) => ("draft", chat.as_str(), "draft", ""),
            Self::Data(kind, name) => ("data", "", kind.as_str(), name.as_str()),
            Self::Floor(shelf) => ("floor", "", shelf.digit(), ""),
            Self::Manifest => ("manifest", "", "manifest", ""),
            Self::SnapshotKey(chat, id) => ("snapshot", chat.as_str(), id.as_str(), "key"),
        };
        Context { purpose, owner: account.as_str(), container, object, field }
    }
}

/// One of sixteen: the first hexadecimal digit of `H(chat id)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shelf(u8);

impl Shelf {
    /// All sixteen, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..16).map(Self)
    }

    /// Where a chat stands.
    pub fn of(chat: &ChatId) -> Self {
        Self(Digest::of(chat.as_str().as_bytes()).as_bytes()[0] >> 4)
    }

    /// Its number, 0 to 15.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its digit.
    pub fn digit(self) -> &'static str {
        let at = self.index();
        &"0123456789abcdef"[at..=at]
    }
}

/// Seals a record. `rev` must be greater than that of the record which it replaces.
///
/// # Panics
/// When the key is of another ring than the place: a chat's key for a chat's records, the account's for the others.
pub fn seal_record(held: &Held, account: &AccountId, place: &Place<'_>, rev: u32, json: &[u8]) -> Sealed {
    let key = held.sub(place.sub()).expect("a chat's records are sealed under a chat's key");
    seal(key, SUITE, &place.context(account), rev, json)
}

/// A record that opened.
#[derive(Debug)]
pub struct Opened<'a> {
    /// Its revision.
    pub rev: u32,
    /// The key it is sealed under.
    pub held: &'a Held,
    /// What is inside.
    pub json: Zeroizing<Vec<u8>>,
}

/// Opens a record with whichever key of the ring sealed it. Another suite, another key or changed bytes:
/// `record-refused`.
pub fn open_record<'a>(
    ring: &'a Ring,
    account: &AccountId,
    place: &Place<'_>,
    sealed: &Sealed,
) -> Result<Opened<'a>, Refused> {
    let sub = place.sub();
    let held = sealed.kid().and_then(|kid| ring.find(sub, kid)).ok_or(Refused::RecordRefused)?;
    let key = held.sub(sub).ok_or(Refused::RecordRefused)?;
    let (rev, json) = open_suite_1(key, &place.context(account), sealed).ok_or(Refused::RecordRefused)?;
    Ok(Opened { rev, held, json })
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool that the model used.
    Tool,
    /// The model, about what came before.
    Summary,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Version, 1.
    pub v: u32,
    /// Who speaks.
    pub role: Role,
    /// Which message it answers; `null` for the first of a branch.
    pub parent: Option<MessageId>,
    /// When, in milliseconds since 1970.
    pub created_at: u64,
    /// The words.
    pub body: String,
    /// Which model spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why that model was chosen, in a sentence of the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it shows.
    pub refs: Vec<EmbedId>,
    /// The server's proof that its model or tool said this ([`crate::Transcript::prove`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Digest>,
    /// What else the client sent in clear for this turn, by consent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<Shared>,
}

/// A note inside a message: this much left the device in clear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// What kind: `search`, `settings`, `summary`.
    pub what: FieldName,
    /// How many bytes.
    pub bytes: u32,
}

/// Text on its own: an embed, a chat's field, a draft, a piece of account data.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// Version, 1.
    pub v: u32,
    /// The text.
    pub body: String,
}

impl Record for Message {
    fn version(&self) -> u32 {
        self.v
    }
}

impl Record for Text {
    fn version(&self) -> u32 {
        self.v
    }
}

impl Message {
    /// Its JSON.
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        json::write(self)
    }

    /// Reads its JSON, or `record-refused`.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refused> {
        json::read(bytes)
    }
}

impl Text {
    /// Its JSON.
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        json::write(self)
    }

    /// Reads its JSON, or `record-refused`.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refused> {
        json::read(bytes)
    }
}

confidant_display::debug_without_content!(Message { role }, Text);

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            v: 1,
            role: Role::User,
            parent: None,
            created_at: 7,
            body: "Grüße, \u{1f44b}".to_owned(),
            model: None,
            reason: None,
            refs: vec![],
            proof: None,
            shared: vec![],
        }
    }

    #[test]
    fn a_message_is_read_in_any_order_and_spacing() {
        let json = r#" { "refs" : [], "role":"user","parent":null,"v":1,"created_at":7,"body":"Gr\u00fc\u00dfe, \ud83d\udc4b"} "#;
        assert_eq!(Message::from_json(json.as_bytes()), Ok(message()));
        assert_eq!(Message::from_json(&message().to_json()), Ok(message()));
    }

    #[test]
    fn why_a_model_was_chosen_stands_beside_its_name_where_it_is_known() {
        let reason = Some("A short request.".to_owned());
        let message = Message { model: Some("quick".to_owned()), reason, ..message() };
        let json = String::from_utf8(message.to_json().to_vec()).unwrap();
        assert!(json.contains(r#""model":"quick","reason":"A short request.","refs":[]"#), "{json}");
        assert_eq!(Message::from_json(json.as_bytes()), Ok(message));
    }

    #[test]
    fn what_no_writer_writes_is_refused() {
        let good = String::from_utf8(message().to_json().to_vec()).unwrap();
        for (from, to) in [
            (r#""v":1"#, r#""v":1,"v":1"#),
            (r#""v":1"#, r#""v":1,"w":1"#),
            (r#""v":1"#, r#""v":2"#),
            (r#""v":1"#, r#""v":1.0"#),
            (r#""v":1"#, r#""v":true"#),
            (r#""refs":[]"#, r#""refs":[],"model":null"#),
            (r#""refs":[]"#, r#""refs":[],"reason":null"#),
            (r#""refs":[]"#, r#""refs":[],"reason":["short"]"#),
            (r#""refs":[]"#, r#""refs":[],"shared":[]"#),
            (r#""refs":[]"#, r#""refs":[],"shared":[["search",1]]"#),
            (r#""refs":[]"#, r#""refs":["emb_x"]"#),
            (r#""parent":null,"#, ""),
            ("\u{1f44b}", r"\ud83d"),
            ("\u{1f44b}", r"\udc4b"),
            ("\u{1f44b}", r"\udc4b\ud83d"),
            ("user", "system"),
            ("}", "}}"),
            ("}", "} x"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            assert_eq!(Message::from_json(bad.as_bytes()), Err(Refused::RecordRefused), "{bad}");
        }
        let array = r#"[1,"user",null,7,"Grüße",null,[],null,[]]"#;
        for bad in [array, "", "null", "{}"] {
            assert_eq!(Message::from_json(bad.as_bytes()), Err(Refused::RecordRefused), "{bad}");
        }
        let broken = [&good.as_bytes()[..good.len() - 2], b"\xff\"}"].concat();
        assert_eq!(Message::from_json(&broken), Err(Refused::RecordRefused));
        assert_eq!(format!("{:?}", message()), "Message { role: User, .. }");
    }
}
