//! A conversation as the keyring and the store know it, and how what is kept of it is sealed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_seal::{
    ChannelName, Context, Key, PlaceId, Scope, Sealed, Suite, Tag, TenantId, ThreadId, UserId, open, seal,
};

use super::ConceptSettings;
use super::context::Event;
use super::parts::Stored;
use crate::error::{Error, Tampering};
use crate::inner::Inner;
use crate::ledger::keyring::Keyring;
use crate::ledger::session::Session;
use crate::ledger::web_scope::{self, Keep};
use crate::store::Names;
use crate::store::contexts::{CaptureRow, ContextRow, ConversationName};

/// A conversation as it is kept.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    /// The scope under which the keyring has its key.
    pub(super) scope: Scope,
    pub(super) name: ConversationName,
}

/// A session's part in a conversation that several people share: it has a key of its own, and having one is what being in
/// the conversation means.
#[derive(Clone, Debug)]
pub(super) struct PartName {
    pub(super) by: Tag,
    pub(super) person: Tag,
    /// The scope under which the keyring has its key. The person is in it as a tag.
    pub(super) scope: Scope,
    pub(super) names: Names,
}

/// The channel on which applications name conversations themselves, several people to one.
pub(super) const SHARED_CHANNEL: &str = "chat";
/// The channel under which the keyring has the keys of conversations; no session is on it.
const OWN_CHANNEL: &str = "concepts";
/// What stands in the thread's place in the scope of a conversation's key, and before the session's tag in that of a part's.
const WHOLE: &str = "context";
const PART: &str = "by-";
/// The same where the conversation is a chat that only its owner can open.
const CHAT: &str = "chat";
const CHAT_PART: &str = "chat-by-";
const FIXED: &str = "these are short words of plain letters, which every id allows";

impl Conversation {
    /// The session as a conversation of its own.
    pub(super) fn own(keyring: &Keyring, scope: &Scope) -> Self {
        Self::named(keyring, scope.tenant(), "session", &scope.session_id())
    }

    /// The conversation that the session's application named, if it did; or the chat, where only its owner can open it: then it is
    /// kept for the chat, which outlives its sessions. One whose words are in memory only has none.
    pub(super) fn shared(keyring: &Keyring, scope: &Scope) -> Option<Self> {
        if web_scope::keep(scope) == Some(Keep::Stored) {
            let place = keyring.conversation(scope.tenant(), "web", &scope.session_id()).to_string();
            return Some(Self::of_place(keyring, scope.tenant(), PlaceId::new(&place).expect(FIXED), CHAT));
        }
        let place = scope.place_id().filter(|_| scope.channel().as_str() == SHARED_CHANNEL)?;
        Some(Self::named(keyring, scope.tenant(), "shared", place.as_str()))
    }

    pub(super) fn named(keyring: &Keyring, tenant: &TenantId, kind: &str, id: &str) -> Self {
        let place = keyring.conversation(tenant, kind, id).to_string();
        Self::of_place(keyring, tenant, PlaceId::new(&place).expect(FIXED), WHOLE)
    }

    fn of_place(keyring: &Keyring, tenant: &TenantId, place: PlaceId, thread: &str) -> Self {
        let scope = Scope::place(
            tenant.clone(),
            ChannelName::any(OWN_CHANNEL).expect(FIXED),
            place,
            ThreadId::new(thread).expect(FIXED),
            UserId::new("confidant").expect(FIXED),
        );
        Self::at(keyring, scope)
    }

    pub(super) fn at(keyring: &Keyring, scope: Scope) -> Self {
        let names = keyring.names(&scope);
        let name = ConversationName { tenant: names.tenant, conversation: names.scope };
        Self { scope, name }
    }

    /// The one that the store knows by this name, if its key is there.
    pub(super) async fn by_name(keyring: &Keyring, name: ConversationName) -> Result<Option<Self>, Error> {
        let Some(row) = keyring.store().get(name.conversation).await? else { return Ok(None) };
        Ok(Some(Self::at(keyring, keyring.scope_of(&row)?)))
    }

    pub(super) fn names(&self, inner: &Inner) -> Names {
        inner.ledger.keyring.names(&self.scope)
    }

    /// Whether it is a chat that only its owner can open: nobody else is shown anything of it.
    pub(super) fn is_chat(&self) -> bool {
        self.scope.thread().is_some_and(|thread| thread.as_str() == CHAT)
    }

    /// Whether it is sealed at rest. A chat always is.
    pub(super) fn is_sealed(&self, settings: &ConceptSettings) -> bool {
        settings.seal_context || self.is_chat()
    }

    /// A session's part in it.
    pub(super) fn part(&self, keyring: &Keyring, by: Tag, person: Tag) -> PartName {
        let place = self.scope.place_id().expect("the scope of a conversation has a place");
        let before = if self.is_chat() { CHAT_PART } else { PART };
        let scope = Scope::place(
            self.scope.tenant().clone(),
            ChannelName::any(OWN_CHANNEL).expect(FIXED),
            place.clone(),
            ThreadId::new(&format!("{before}{by}")).expect(FIXED),
            UserId::new(&person.to_string()).expect(FIXED),
        );
        let names = keyring.names(&scope);
        PartName { by, person, scope, names }
    }

    /// The conversation and the part whose key's scope this is; nothing if it is another's.
    pub(super) fn of_part(keyring: &Keyring, scope: &Scope) -> Option<(Self, PartName)> {
        let place = scope.place_id().filter(|_| scope.channel().as_str() == OWN_CHANNEL)?;
        let thread = scope.thread()?.as_str();
        let of_chat = thread.strip_prefix(CHAT_PART).map(|by| (by, CHAT));
        let (by, whole) = of_chat.or_else(|| thread.strip_prefix(PART).map(|by| (by, WHOLE)))?;
        let (by, person) = (Tag::from_hex(by)?, Tag::from_hex(scope.user().as_str())?);
        let conversation = Self::of_place(keyring, scope.tenant(), place.clone(), whole);
        let part = conversation.part(keyring, by, person);
        Some((conversation, part))
    }
}

/// Whether a scope is that of a conversation's key.
pub(crate) fn is_conversation(scope: &Scope) -> bool {
    let is_whole = |thread: &ThreadId| [WHOLE, CHAT].contains(&thread.as_str());
    scope.channel().as_str() == OWN_CHANNEL && scope.thread().is_some_and(is_whole)
}

/// Whether a scope is that of a conversation's key, or of a part's in one.
pub(crate) fn is_concepts_key(scope: &Scope) -> bool {
    let is_part = |thread: &ThreadId| [PART, CHAT_PART].iter().any(|part| thread.as_str().starts_with(part));
    is_conversation(scope) || (scope.channel().as_str() == OWN_CHANNEL && scope.thread().is_some_and(is_part))
}

/// A conversation that the store knows by its name, with its key.
pub(super) async fn key_of(
    inner: &Inner,
    name: ConversationName,
) -> Result<Result<(Conversation, Key), Tampering>, Error> {
    let Some(conversation) = Conversation::by_name(&inner.ledger.keyring, name).await? else {
        return Ok(Err(Tampering::KeyGone));
    };
    let names = conversation.names(inner);
    match inner.ledger.keyring.data_key(&conversation.scope, &names).await? {
        Some(key) => Ok(Ok((conversation, key.key))),
        None => Ok(Err(Tampering::KeyGone)),
    }
}

/// The record of an event. In a shared conversation it is sealed under the session's own key there, so that it ends with it.
pub(super) fn capture_row(
    session: &Session,
    conversation: &Conversation,
    (scope, key): (&Scope, &Key),
    event: &Event,
) -> CaptureRow {
    let request = session.inner.ledger.keyring.request(&session.scope, &event.request_id);
    let plain = serde_json::to_vec(event).expect("an event has string keys only, so it is always JSON");
    let sealed =
        in_place(scope, key, &request.to_string(), "capture", |context| seal(key, SUITE, context, 1, &plain));
    CaptureRow {
        name: conversation.name,
        request,
        scope: session.names.scope,
        person: session.names.person,
        at: event.at,
        sealed,
    }
}

/// Opens a record with the key that it was sealed under, a conversation's or a part's.
pub(super) fn open_event(scope: &Scope, key: &Key, row: &CaptureRow) -> Result<Event, Tampering> {
    let opened =
        in_place(scope, key, &row.request.to_string(), "capture", |context| open(key, context, &row.sealed));
    let opened = opened.map_err(|_| Tampering::RecordRefused)?;
    let event: Event = serde_json::from_slice(&opened.data).map_err(|_| Tampering::RecordRefused)?;
    // Whose it is says the record, not the column that found it.
    if event.by == row.scope.to_string() { Ok(event) } else { Err(Tampering::RecordRefused) }
}

/// A context as it is stored.
pub(super) fn content(
    settings: &ConceptSettings,
    conversation: &Conversation,
    key: &Key,
    version: u64,
    stored: &Stored,
) -> Vec<u8> {
    let plain = serde_json::to_vec(stored).expect("a context has string keys only, so it is always JSON");
    if !conversation.is_sealed(settings) {
        return plain;
    }
    in_place(&conversation.scope, key, &version.to_string(), "", |context| {
        seal(key, SUITE, context, 1, &plain).into_bytes()
    })
}

pub(super) fn opened(
    settings: &ConceptSettings,
    conversation: &Conversation,
    key: &Key,
    row: &ContextRow,
) -> Result<Stored, Error> {
    let refused = Error::Tampered(Tampering::RecordRefused);
    // Where the operator chose readable contexts, what is there may still be sealed from before.
    if !conversation.is_sealed(settings) && row.content.first() == Some(&b'{') {
        return serde_json::from_slice(&row.content).map_err(|_| refused);
    }
    let sealed = Sealed::from_bytes(row.content.clone());
    let opened = in_place(&conversation.scope, key, &row.version.to_string(), "", |context| {
        open(key, context, &sealed)
    });
    let opened = opened.map_err(|_| Tampering::RecordRefused)?;
    serde_json::from_slice(&opened.data).map_err(|_| refused)
}

/// Does something in the context of a record of a conversation, or of a part of one.
pub(super) fn in_place<T>(
    scope: &Scope,
    key: &Key,
    object: &str,
    field: &str,
    act: impl FnOnce(&Context<'_>) -> T,
) -> T {
    let (owner, container) = (URL_SAFE_NO_PAD.encode(scope.canonical()), key.kid().to_string());
    act(&Context { purpose: "context", owner: &owner, container: &container, object, field })
}

pub(super) const SUITE: Suite = Suite::ChaCha20Poly1305;
