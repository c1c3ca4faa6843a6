//! A conversation as the keyring and the store know it, and how what is kept of it is sealed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_seal::{
    ChannelName, Context, Key, PlaceId, Scope, Sealed, Suite, TenantId, ThreadId, UserId, open, seal,
};

use super::ConceptSettings;
use super::context::{ConversationContext, Event};
use crate::engine::Inner;
use crate::error::{Error, Tampering};
use crate::session::Session;
use crate::store::contexts::{CaptureRow, ContextRow, ConversationName};

/// A conversation as it is kept.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    /// The scope under which the keyring has its key.
    pub(super) scope: Scope,
    pub(super) name: ConversationName,
}

/// The channel on which applications name conversations themselves, several people to one.
pub(super) const SHARED_CHANNEL: &str = "chat";
/// The channel under which the keyring has the keys of conversations; no session is on it.
const OWN_CHANNEL: &str = "concepts";

impl Conversation {
    /// The conversation of a session: the one that its application named, or the session itself.
    pub(super) fn of(session: &Session) -> Self {
        Self::of_scope(&session.inner, &session.scope)
    }

    /// The same for a scope.
    pub(super) fn of_scope(inner: &Inner, scope: &Scope) -> Self {
        let (kind, id) = match scope.place_id() {
            Some(place) if scope.channel().as_str() == SHARED_CHANNEL => {
                ("shared", place.as_str().to_owned())
            }
            _ => ("session", scope.session_id()),
        };
        Self::named(inner, scope.tenant(), kind, &id)
    }

    pub(super) fn named(inner: &Inner, tenant: &TenantId, kind: &str, id: &str) -> Self {
        let tenant = tenant.clone();
        let place = inner.keyring.conversation(&tenant, kind, id).to_string();
        let fixed = "these are short words of plain letters, which every id allows";
        let scope = Scope::place(
            tenant,
            ChannelName::new(OWN_CHANNEL).expect(fixed),
            PlaceId::new(&place).expect(fixed),
            ThreadId::new("context").expect(fixed),
            UserId::new("confidant").expect(fixed),
        );
        Self::at(inner, scope)
    }

    pub(super) fn at(inner: &Inner, scope: Scope) -> Self {
        let names = inner.keyring.names(&scope);
        let name = ConversationName { tenant: names.tenant, conversation: names.scope };
        Self { scope, name }
    }

    pub(super) fn names(&self, inner: &Inner) -> crate::store::Names {
        inner.keyring.names(&self.scope)
    }
}

/// Whether a scope is that of a conversation's key.
pub(crate) fn is_conversation(scope: &Scope) -> bool {
    scope.channel().as_str() == OWN_CHANNEL
}

/// A conversation that the store knows by its name, with its key.
pub(super) async fn key_of(
    inner: &Inner,
    name: ConversationName,
) -> Result<Result<(Conversation, Key), Tampering>, Error> {
    let Some(row) = inner.keyring.store().get(name.conversation).await? else {
        return Ok(Err(Tampering::KeyGone));
    };
    let conversation = Conversation::at(inner, inner.keyring.scope_of(&row)?);
    let names = conversation.names(inner);
    match inner.keyring.data_key(&conversation.scope, &names).await? {
        Some(key) => Ok(Ok((conversation, key.key))),
        None => Ok(Err(Tampering::KeyGone)),
    }
}

pub(super) fn capture_row(
    session: &Session,
    conversation: &Conversation,
    key: &Key,
    event: &Event,
) -> CaptureRow {
    let inner = &session.inner;
    let request = inner.keyring.request(&session.scope, &event.request_id);
    let plain = serde_json::to_vec(event).expect("an event has string keys only, so it is always JSON");
    let (owner, container, object) = (owner(conversation), key.kid().to_string(), request.to_string());
    let context = Context {
        purpose: "context",
        owner: &owner,
        container: &container,
        object: &object,
        field: "capture",
    };
    CaptureRow {
        name: conversation.name,
        request,
        scope: session.names.scope,
        person: session.names.person,
        at: event.at,
        sealed: seal(key, SUITE, &context, 1, &plain),
    }
}

pub(super) fn open_event(
    conversation: &Conversation,
    key: &Key,
    row: &CaptureRow,
) -> Result<Event, Tampering> {
    let (owner, container, object) = (owner(conversation), key.kid().to_string(), row.request.to_string());
    let context = Context {
        purpose: "context",
        owner: &owner,
        container: &container,
        object: &object,
        field: "capture",
    };
    let opened = open(key, &context, &row.sealed).map_err(|_| Tampering::RecordRefused)?;
    serde_json::from_slice(&opened.data).map_err(|_| Tampering::RecordRefused)
}

/// A context as it is stored.
pub(super) fn content(
    settings: &ConceptSettings,
    conversation: &Conversation,
    key: &Key,
    version: u64,
    context: &ConversationContext,
) -> Vec<u8> {
    let plain = serde_json::to_vec(context).expect("a context has string keys only, so it is always JSON");
    if !settings.seal_context {
        return plain;
    }
    let (owner, container, object) = (owner(conversation), key.kid().to_string(), version.to_string());
    let context =
        Context { purpose: "context", owner: &owner, container: &container, object: &object, field: "" };
    seal(key, SUITE, &context, 1, &plain).as_bytes().to_vec()
}

pub(super) fn opened(
    settings: &ConceptSettings,
    conversation: &Conversation,
    key: &Key,
    row: &ContextRow,
) -> Result<ConversationContext, Error> {
    let refused = Error::Tampered(Tampering::RecordRefused);
    // Where the operator chose readable contexts, what is there may still be sealed from before.
    if !settings.seal_context && row.content.first() == Some(&b'{') {
        return serde_json::from_slice(&row.content).map_err(|_| refused);
    }
    let (owner, container, object) = (owner(conversation), key.kid().to_string(), row.version.to_string());
    let context =
        Context { purpose: "context", owner: &owner, container: &container, object: &object, field: "" };
    let opened = open(key, &context, &Sealed::from_bytes(row.content.clone()))
        .map_err(|_| Tampering::RecordRefused)?;
    serde_json::from_slice(&opened.data).map_err(|_| refused)
}

fn owner(conversation: &Conversation) -> String {
    URL_SAFE_NO_PAD.encode(conversation.scope.canonical())
}

const SUITE: Suite = Suite::ChaCha20Poly1305;
