//! What is in a row, sealed and opened. Contexts bind each field to its account and its event: no row opens in another's
//! place.

use confidant_display::debug_without_content;
use confidant_engine::room::Audience;
use confidant_engine::{Actor, Engine, Epoch, Scope, Session, TenantId};
use confidant_seal::{Context, Key, Sealed, Suite, Tag, open, seal};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::rows::{self, Row, RowKind};
use super::{Inbox, InboxError};
use crate::channel::{MessageId, Nonce, Route};

/// One account on one platform, with the names that its rows go by.
#[derive(Clone)]
pub(crate) struct Account {
    key: Key,
    pub(crate) tag: Tag,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({})", self.tag)
    }
}

impl Account {
    pub(crate) fn new(engine: &Engine, platform: &str, id: &str) -> Self {
        let key = engine.channel_keys().key().derive("inbox");
        let bytes = joined(&[platform.as_bytes(), id.as_bytes()]);
        Self { tag: key.tag("account", &bytes), key, bytes }
    }

    /// The name of an event.
    pub(crate) fn event(&self, id: &str) -> Tag {
        self.key.tag("event", &joined(&[&self.bytes, id.as_bytes()]))
    }

    /// The name of a room.
    pub(crate) fn room(&self, id: &str) -> Tag {
        self.key.tag("room", &joined(&[&self.bytes, id.as_bytes()]))
    }

    /// The name of one outgoing message: `index` of what `purpose` names, in reply to `event`.
    pub(crate) fn nonce(&self, event: Tag, purpose: &str, index: usize) -> Nonce {
        let index = (index as u64).to_be_bytes();
        let bytes = joined(&[&self.bytes, event.as_bytes(), purpose.as_bytes(), &index]);
        Nonce(*self.key.tag("nonce", &bytes).as_bytes())
    }
}

/// The way back: whose session, and where replies go.
#[derive(Serialize, Deserialize)]
pub(crate) struct Envelope {
    tenant: String,
    session: String,
    pub(crate) audience: Audience,
    pub(crate) route: Route,
    /// The event's own id.
    pub(crate) event: String,
    pub(crate) room: String,
    /// How many erasures there had been when it came: a later one of its session or person ends it. What was received before
    /// they were counted came before all of them.
    #[serde(default)]
    pub(crate) epoch: Epoch,
}

impl Envelope {
    pub(crate) fn new(
        scope: &Scope,
        audience: Audience,
        route: Route,
        event: String,
        room: String,
        epoch: Epoch,
    ) -> Self {
        let (tenant, session) = (scope.tenant().as_str().to_owned(), scope.session_id());
        Self { tenant, session, audience, route, event, room, epoch }
    }

    pub(crate) fn scope(&self) -> Result<Scope, confidant_engine::Error> {
        Ok(Scope::parse(TenantId::new(&self.tenant)?, &self.session)?)
    }

    pub(crate) fn seal(&self, account: &Account, event: Tag) -> Sealed {
        seal_json(&account.key, account.tag, event, "route", self)
    }

    pub(crate) fn open(engine: &Engine, row: &Row) -> Option<Self> {
        let key = engine.channel_keys().key().derive("inbox");
        open_json(&key, row.account, row.event, "route", row.route.as_ref()?)
    }
}

/// What was said.
#[derive(Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Whether it was said after the erasure that it waited behind was asked for, and outlives it.
    #[serde(skip)]
    pub(crate) carried: bool,
}

impl Body {
    /// Sealed under its session's key; where that cannot be had, since the store is away or the key does not open, under
    /// the account's own, so that it can be answered all the same (promise 8). Erasing the session finishes such a row, too.
    pub(crate) async fn seal(&self, session: &Session, account: &Account, event: Tag) -> Sealed {
        let plain = zeroize::Zeroizing::new(json(self));
        match session.seal_beside(&object(event, "body"), &plain).await {
            Ok(sealed) => sealed,
            Err(error) => {
                tracing::warn!(
                    error = error.code(),
                    "a session's key is not available: its event waits under the channel's key"
                );
                // Not as one that outlives an erasure: this one ends with it.
                seal_json(&account.key, account.tag, event, "held", self)
            }
        }
    }

    /// Sealed so that it outlives an erasure of its session, which was asked for before it was said.
    pub(crate) fn seal_carried(&self, account: &Account, event: Tag) -> Sealed {
        seal_json(&account.key, account.tag, event, "carried", self)
    }

    /// `None` if the session was erased since.
    pub(crate) async fn open(
        engine: &Engine,
        session: &Session,
        row: &Row,
    ) -> Result<Option<Self>, confidant_engine::Error> {
        let Some(sealed) = &row.body else { return Ok(None) };
        // First what needs no store, which may be away.
        let key = engine.channel_keys().key().derive("inbox");
        let carried: Option<Self> = open_json(&key, row.account, row.event, "carried", sealed);
        if let Some(body) = carried {
            return Ok(Some(Self { carried: true, ..body }));
        }
        if let Some(held) = open_json(&key, row.account, row.event, "held", sealed) {
            return Ok(Some(held));
        }
        let plain = session.open_beside(&object(row.event, "body"), sealed).await?;
        Ok(plain.and_then(|plain| serde_json::from_slice(&plain).ok()))
    }
}

/// Whether everything opens that a row holds which is to be worked on.
pub(super) async fn opens(engine: &Engine, row: &Row) -> Result<bool, confidant_engine::Error> {
    let key = engine.channel_keys().key().derive("inbox");
    let opens = |field: &str, sealed: Option<&Sealed>| {
        sealed.is_none_or(|sealed| {
            open_json::<serde_json::Value>(&key, row.account, row.event, field, sealed).is_some()
        })
    };
    let Some(envelope) = Envelope::open(engine, row) else { return Ok(false) };
    if !opens("sent", row.sent.as_ref()) || !opens("waits", row.waits.as_ref()) {
        return Ok(false);
    }
    // What asks to be forgotten outlives the key that its words are under; what was removed has none.
    if matches!(row.kind, RowKind::Forget | RowKind::Removed) {
        return Ok(true);
    }
    let session = engine.session(envelope.scope()?, Actor::system());
    match Body::open(engine, &session, row).await {
        Ok(body) => Ok(body.is_some()),
        Err(confidant_engine::Error::Tampered(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Messages of ours that a row has led to so far.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) messages: Vec<MessageId>,
    /// How many of them are as they shall stay.
    pub(crate) settled: usize,
}

impl Sent {
    pub(crate) fn seal(&self, account: &Account, event: Tag) -> Sealed {
        seal_json(&account.key, account.tag, event, "sent", self)
    }

    pub(crate) fn open(account: &Account, row: &Row) -> Self {
        let sealed = row.sent.as_ref();
        sealed
            .and_then(|sealed| open_json(&account.key, account.tag, row.event, "sent", sealed))
            .unwrap_or_default()
    }
}

/// What a row waits for.
#[derive(Serialize, Deserialize)]
pub(crate) struct Waits {
    pub(crate) approval_id: String,
    pub(crate) code: String,
    /// The messages that ask for it; none as long as they are being sent.
    #[serde(default)]
    pub(crate) messages: Vec<MessageId>,
}

impl Waits {
    /// Whether the question has been told.
    pub(crate) fn is_asked(&self) -> bool {
        !self.messages.is_empty()
    }

    pub(crate) fn seal(&self, account: &Account, event: Tag) -> Sealed {
        seal_json(&account.key, account.tag, event, "waits", self)
    }

    pub(crate) fn open(account: &Account, row: &Row) -> Option<Self> {
        open_json(&account.key, account.tag, row.event, "waits", row.waits.as_ref()?)
    }
}

/// Small secrets of a connection, such as where a session can be resumed: sealed, by name.
#[derive(Clone)]
pub struct Vault {
    inbox: Inbox,
    key: Key,
    place: Vec<u8>,
}

impl Vault {
    pub(crate) fn new(inbox: &Inbox, engine: &Engine, platform: &str, label: &str) -> Self {
        let key = engine.channel_keys().key().derive("vault");
        Self { inbox: inbox.clone(), key, place: joined(&[platform.as_bytes(), label.as_bytes()]) }
    }

    /// Keeps something under a name, in place of what was there.
    pub async fn keep(&self, name: &str, data: &[u8]) -> Result<(), InboxError> {
        let tag = self.tag(name);
        let object = tag.to_string();
        let context = context("", &object, "kept");
        let sealed = seal(&self.key, Suite::ChaCha20Poly1305, &context, 1, data);
        self.inbox.with(move |c| rows::keep(c, tag, Some(&sealed))).await
    }

    /// What is kept under a name; `None` if nothing is, or if it does not open.
    pub async fn kept(&self, name: &str) -> Result<Option<zeroize::Zeroizing<Vec<u8>>>, InboxError> {
        let tag = self.tag(name);
        let Some(sealed) = self.inbox.with(move |c| rows::kept(c, tag)).await? else { return Ok(None) };
        let object = tag.to_string();
        Ok(open(&self.key, &context("", &object, "kept"), &sealed).ok().map(|opened| opened.data))
    }

    /// Forgets what is kept under a name.
    pub async fn forget(&self, name: &str) -> Result<(), InboxError> {
        let tag = self.tag(name);
        self.inbox.with(move |c| rows::keep(c, tag, None)).await
    }

    /// A key for another store of this account, the same at every start and through every rotation.
    #[must_use]
    pub fn store_key(&self, name: &str) -> Key {
        let place = hex::encode(&self.place);
        self.key.derive(&format!("store/{place}/{name}"))
    }

    fn tag(&self, name: &str) -> Tag {
        self.key.tag("kept", &joined(&[&self.place, name.as_bytes()]))
    }
}

debug_without_content!(Vault(..));

pub(super) fn seal_json(key: &Key, account: Tag, object: Tag, field: &str, value: &impl Serialize) -> Sealed {
    let (container, object) = (account.to_string(), object.to_string());
    let plain = zeroize::Zeroizing::new(json(value));
    seal(key, Suite::ChaCha20Poly1305, &context(&container, &object, field), 1, &plain)
}

pub(super) fn open_json<T: DeserializeOwned>(
    key: &Key,
    account: Tag,
    object: Tag,
    field: &str,
    sealed: &Sealed,
) -> Option<T> {
    let (container, object) = (account.to_string(), object.to_string());
    let opened = open(key, &context(&container, &object, field), sealed).ok()?;
    serde_json::from_slice(&opened.data).ok()
}

fn context<'a>(container: &'a str, object: &'a str, field: &'a str) -> Context<'a> {
    Context { purpose: "inbox", owner: "", container, object, field }
}

fn object(event: Tag, field: &str) -> String {
    format!("inbox/{event}/{field}")
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("these types have string keys only, so they are always JSON")
}

/// Parts with their lengths in front: no two lists of parts give the same bytes.
fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}
