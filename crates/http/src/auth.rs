//! Who asks, and what they may have.
//!
//! [`guard`] stands before every route but the open ones and turns a bearer token into a [`Caller`]. A caller decides in
//! one place, [`Caller::session`] and [`Caller::person`], whether a session or person may be had; the extractors
//! [`Talk`], [`Own`] and [`Person`] yield handles for which that has been decided, so a handler cannot forget to ask.
//! A refusal says the same whether or not there is anything to be had, and goes into the audit log.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Path, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use confidant_engine::access::{Bearer, Permission, Role};
use confidant_engine::approval::Decider;
use confidant_engine::rights::{Administrator, PersonExport, Receipt};
use confidant_engine::{
    ChannelName, Engine, Error, PlaceId, Scope, Session, StoreError, TenantId, ThreadId, UserId,
};
use confidant_memory::Owner;
use secrecy::{ExposeSecret as _, SecretString};

use super::app::App;
use super::error::ApiError;
use confidant_mcp::{Access, Files, Forgetting, LazyMemory};

/// Lets a request through if it bears a token that is known and not too busy.
pub(super) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let (token, peer) = (bearer_token(request.headers()), peer(&request));
    let bearer = match admit(&app, token, peer, Needs::of(&request)).await {
        Ok(bearer) => bearer,
        Err(error) => return error.into_response(),
    };
    let token_id = TokenId(bearer.token_id.clone());
    request.extensions_mut().insert(Caller { bearer: Arc::new(bearer), engine: app.engine.clone() });
    let mut response = next.run(request).await;
    response.extensions_mut().insert(token_id);
    response
}

/// Which token a response was for; the request log may have it.
#[derive(Clone, Debug)]
pub(super) struct TokenId(pub(super) String);

async fn admit(
    app: &App,
    token: Option<SecretString>,
    peer: Option<SocketAddr>,
    needs: Needs,
) -> Result<Bearer, ApiError> {
    let Some(token) = token else {
        app.limits.strike(peer)?;
        return Err(ApiError::unauthenticated("this needs a bearer token"));
    };
    let token = token.expose_secret();
    let found = match app.engine.authenticate(token).await {
        Err(error) if needs == Needs::Answer && is_out_of_reach(&error) => {
            // Without the store a turn has no memory, and is answered all the same.
            Some(app.known.recall(token, Instant::now()).ok_or(error)?)
        }
        found => found?.inspect(|bearer| app.known.remember(token, bearer, Instant::now())),
    };
    let Some(bearer) = found else {
        app.known.forget(token);
        app.limits.strike(peer)?;
        return Err(ApiError::unauthenticated("the bearer token is unknown or revoked"));
    };
    app.limits.admit(&bearer.token_id)?;
    Ok(bearer)
}

/// What a request cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// It asks for a turn: an answer will do, if there is no memory.
    Answer,
    Store,
}

impl Needs {
    fn of(request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let asks = *request.method() == Method::POST && TURNS.contains(&route);
        if asks { Self::Answer } else { Self::Store }
    }
}

const TURNS: [&str; 4] =
    ["/api/v1/session/{session_id}/turns", "/api/chat", "/v1/chat/completions", "/v1/responses"];

fn is_out_of_reach(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::Unreachable(_) | StoreError::Uncertain | StoreError::Busy))
}

fn bearer_token(headers: &HeaderMap) -> Option<SecretString> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let usable = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST_TOKEN;
    usable.then(|| SecretString::from(token))
}

/// Longer ones are not looked up.
const LONGEST_TOKEN: usize = 512;

fn peer(request: &Request) -> Option<SocketAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| *peer)
}

/// Somebody with a token.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    bearer: Arc<Bearer>,
    engine: Engine,
}

impl Caller {
    /// The person whose token this is, if it is a person's.
    pub(super) fn own_user(&self) -> Option<&UserId> {
        match &self.bearer.role {
            Role::User(user) => Some(user),
            Role::Admin | Role::Agent => None,
        }
    }

    /// The tenant that the token is bound to.
    pub(super) fn tenant(&self) -> &TenantId {
        &self.bearer.tenant
    }

    /// The session of a person in a conversation that an application names.
    pub(super) fn conversation_scope(&self, id: &str, user: UserId) -> Result<Scope, ApiError> {
        let place = |text: &str| PlaceId::new(text).map_err(|error| ApiError::from(Error::from(error)));
        let (place, thread) = (place(id)?, ThreadId::new("main").map_err(Error::from)?);
        let channel = ChannelName::new(CONVERSATIONS).map_err(Error::from)?;
        Ok(Scope::place(self.bearer.tenant.clone(), channel, place, thread, user))
    }

    /// A whole conversation, if the caller administers it and names nobody.
    pub(super) fn whole_conversation(&self, ids: &[String], user_id: Option<&str>) -> Option<Whole> {
        let (id, tenant) = (ids.first()?, &self.bearer.tenant);
        let whole = self.bearer.role == Role::Admin && user_id.is_none();
        (whole && Scope::parse(tenant.clone(), id).is_err()).then(|| Whole {
            administrator: self.engine.dangerously_administer(self.bearer.actor()),
            tenant: tenant.clone(),
            id: id.clone(),
        })
    }

    /// Which token it is.
    pub(super) fn token_id(&self) -> &str {
        &self.bearer.token_id
    }

    /// The scope that a session id names in the caller's tenant.
    pub(super) fn scope(&self, session_id: &str) -> Result<Scope, ApiError> {
        Scope::parse(self.bearer.tenant.clone(), session_id).map_err(|error| Error::from(error).into())
    }

    /// The scope of a person's memory on a channel, in the caller's tenant.
    pub(super) fn person_scope(&self, channel: &str, user: UserId) -> Result<Scope, ApiError> {
        let channel = ChannelName::new(channel).map_err(Error::from)?;
        Ok(Scope::person(self.bearer.tenant.clone(), channel, user))
    }

    /// The scope of somebody's memory in a place of a channel, in the caller's tenant.
    pub(super) fn place_scope(&self, channel: &str, place: &str, user: UserId) -> Result<Scope, ApiError> {
        let (channel, place) = (ChannelName::new(channel), PlaceId::new(place));
        let (channel, place) = (channel.map_err(Error::from)?, place.map_err(Error::from)?);
        let thread = ThreadId::new("main").map_err(Error::from)?;
        Ok(Scope::place(self.bearer.tenant.clone(), channel, place, thread, user))
    }

    /// The session that a name of ours leads to by this tag, if the caller may talk in it. Somebody else's is not there.
    pub(super) async fn session_of_tag(
        &self,
        tag: &str,
        permission: Permission,
    ) -> Result<Option<Session>, ApiError> {
        let Bearer { tenant, .. } = &*self.bearer;
        let found = self.engine.session_of_tag(tenant, tag, self.bearer.actor()).await?;
        let Some(session) = found else { return Ok(None) };
        if !self.bearer.may(Permission::Talk, session.scope()) {
            // Only that it was tried is noted.
            refused(session.refuse()).await;
            return Ok(None);
        }
        if !self.bearer.may(permission, session.scope()) {
            return Err(refused(session.refuse()).await);
        }
        Ok(Some(session))
    }

    /// The session of `scope`, if the caller may do this with it.
    pub(super) async fn session(&self, permission: Permission, scope: Scope) -> Result<Session, ApiError> {
        let allowed = self.bearer.may(permission, &scope);
        let session = self.engine.session(scope, self.bearer.actor());
        if !allowed {
            return Err(refused(session.refuse()).await);
        }
        // Whoever speaks for people brings them into the conversation; a person does not bring themself.
        if permission == Permission::Talk && self.own_user().is_none() {
            invite(&session).await;
        }
        Ok(session)
    }

    /// Lets somebody into the conversation that is named in the path: for agents, administrators, and those who are in it.
    pub(super) async fn invite(&self, id: &str, user: UserId) -> Result<bool, ApiError> {
        if let Some(own) = self.own_user() {
            let mine = self.engine.session(self.conversation_scope(id, own.clone())?, self.bearer.actor());
            if !mine.is_in_conversation().await? {
                return Err(refused(mine.refuse()).await);
            }
        }
        let session = self.engine.session(self.conversation_scope(id, user)?, self.bearer.actor());
        Ok(session.join_conversation().await?)
    }

    /// The part of somebody who is to be taken out of it: for agents, administrators, and whoever it is.
    pub(super) async fn leaving(&self, id: &str, user: UserId) -> Result<Session, ApiError> {
        let session = self.engine.session(self.conversation_scope(id, user)?, self.bearer.actor());
        if self.own_user().is_some_and(|own| own != session.scope().user()) {
            return Err(refused(session.refuse()).await);
        }
        Ok(session)
    }

    /// Whose decision it is that the caller brings. A person speaks for themselves only.
    pub(super) async fn whose(&self, user_id: Option<&str>) -> Result<Whose, ApiError> {
        let named = user_id.map(UserId::new).transpose();
        let named = named.map_err(|error| ApiError::from(Error::from(error)).at("user_id"))?;
        match (&self.bearer.role, named) {
            (Role::User(own), Some(named)) if *own != named => {
                let administrator = self.engine.dangerously_administer(self.bearer.actor());
                Err(refused(administrator.refuse_person(&self.bearer.tenant, &named)).await)
            }
            (Role::User(own), _) => Ok(Whose::Person(own.clone())),
            (_, Some(named)) => Ok(Whose::Person(named)),
            (Role::Agent, None) => Ok(Whose::SessionUser),
            (Role::Admin, None) => Ok(Whose::Admin),
        }
    }

    /// The session of an approval in the caller's tenant, and how much of it is the caller's to see. Deciding asks whether
    /// the approval is theirs.
    pub(super) async fn session_of_approval(&self, approval_id: &str) -> Result<(Session, Reach), ApiError> {
        let Bearer { tenant, .. } = &*self.bearer;
        let session = self.engine.session_of_approval(tenant, approval_id, self.bearer.actor()).await?;
        let talks = self.bearer.may(Permission::Talk, session.scope());
        Ok((session, if talks { Reach::Conversation } else { Reach::ApprovalOnly }))
    }

    /// A person's memory in the caller's tenant, if the caller may use it. Forgetting is a right, and using it is not
    /// enough for that.
    pub(super) async fn memory(&self, memory: &LazyMemory, user: UserId) -> Result<Access, ApiError> {
        let administrator = self.engine.dangerously_administer(self.bearer.actor());
        let tenant = self.bearer.tenant.clone();
        if !self.bearer.may_for(Permission::Talk, &user) {
            return Err(refused(administrator.refuse_person(&tenant, &user)).await);
        }
        let owner = Owner { tenant: tenant.clone(), user: user.clone() };
        let forgetting = if self.bearer.may_for(Permission::Rights, &user) {
            Forgetting::Allowed
        } else {
            Forgetting::Refused { administrator, tenant, user }
        };
        let actor = self.bearer.actor().as_str().to_owned();
        // Whoever comes over the network does not run this machine, whatever their role: a tenant's administrator would read
        // what is every tenant's, and learn which files there are.
        Ok(Access { memory: memory.clone(), owner, actor, forgetting, files: Files::Closed })
    }

    /// Everything of a person in the caller's tenant, if the caller may have it.
    async fn person(&self, user: UserId) -> Result<Person, ApiError> {
        let administrator = self.engine.dangerously_administer(self.bearer.actor());
        if !self.bearer.may_for(Permission::Rights, &user) {
            return Err(refused(administrator.refuse_person(&self.bearer.tenant, &user)).await);
        }
        Ok(Person { administrator, tenant: self.bearer.tenant.clone(), user })
    }
}

/// A conversation with everybody's part in it.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) administrator: Administrator,
    pub(super) tenant: TenantId,
    pub(super) id: String,
}

/// Brings the session's person into their conversation. That it cannot be done costs them the others' concepts, not the chat.
async fn invite(session: &Session) {
    if let Err(error) = session.join_conversation().await {
        tracing::warn!(scope.tag = %session.tag(), error = error.code(), "a person could not be added to their conversation");
    }
}

/// Who speaks where the application does not say: the conversation as a whole.
pub(super) fn nobody() -> Result<UserId, ApiError> {
    UserId::new(NOBODY).map_err(|error| Error::from(error).into())
}

/// No name for a person: an application that does not tell people apart has one memory for each conversation.
const NOBODY: &str = "(conversation)";

/// The channel of conversations that applications name.
const CONVERSATIONS: &str = "chat";

/// A person's session in the conversation that is named first in the path, if the caller may do this with it.
pub(super) async fn conversation_session(
    caller: &Caller,
    ids: &[String],
    user_id: Option<&str>,
    permission: Permission,
) -> Result<Session, ApiError> {
    let id = ids.first().ok_or_else(ApiError::internal)?;
    let user = match (user_id, caller.own_user()) {
        (Some(user), _) => {
            UserId::new(user).map_err(|error| ApiError::from(Error::from(error)).at("user_id"))?
        }
        (None, Some(own)) => own.clone(),
        (None, None) => nobody()?,
    };
    let in_conversation = caller.conversation_scope(id, user)?;
    if let Ok(scope) = caller.scope(id) {
        // It is a session's id; an application may still have called a conversation so.
        let named = caller.engine.session(in_conversation.clone(), caller.bearer.actor());
        if !caller.bearer.may(permission, &in_conversation) || !named.is_in_conversation().await? {
            return caller.session(permission, scope).await;
        }
    }
    caller.session(permission, in_conversation).await
}

/// The ids in the path, of which a conversation's or a concept's is the first.
#[derive(Debug)]
pub(super) struct ConversationOf(pub(super) Vec<String>);

impl<S: Send + Sync> FromRequestParts<S> for ConversationOf {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        path_ids(parts, state).await.map(Self)
    }
}

/// Somebody who administers a tenant.
#[derive(Debug)]
pub(super) struct Admin {
    pub(super) administrator: Administrator,
    pub(super) tenant: TenantId,
}

impl<S: Send + Sync> FromRequestParts<S> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if caller.bearer.role != Role::Admin {
            return Err(ApiError::forbidden());
        }
        let administrator = caller.engine.dangerously_administer(caller.bearer.actor());
        Ok(Self { administrator, tenant: caller.bearer.tenant.clone() })
    }
}

/// Whose decision it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Person(UserId),
    /// The person whose session it is.
    SessionUser,
    Admin,
}

impl Whose {
    pub(super) fn decider(self, session: &Session) -> Decider {
        match self {
            Self::Person(user) => Decider::Person(user.as_str().to_owned()),
            Self::SessionUser => Decider::Person(session.scope().user().as_str().to_owned()),
            Self::Admin => Decider::Admin,
        }
    }
}

/// How much of a session is somebody's to see who comes with an approval of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All that is said in it: they may run its turns.
    Conversation,
    /// What they are asked to decide, if they are.
    ApprovalOnly,
}

/// Puts a refusal into the audit log. The answer is the same if that fails.
async fn refused(recording: impl Future<Output = Result<(), confidant_engine::Error>>) -> ApiError {
    if let Err(error) = recording.await {
        tracing::warn!(error = %error, "a refusal could not be recorded");
    }
    ApiError::forbidden()
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // A route without the guard has no caller, and nothing that needs one.
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::internal)
    }
}

/// A session named in the path, whose turns the caller may run.
#[derive(Debug)]
pub(super) struct Talk(pub(super) Session);

impl<S: Send + Sync> FromRequestParts<S> for Talk {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        named_session(parts, state, Permission::Talk).await.map(Self)
    }
}

/// A session named in the path, which the caller may see and end.
#[derive(Debug)]
pub(super) struct Own(pub(super) Session);

impl<S: Send + Sync> FromRequestParts<S> for Own {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        named_session(parts, state, Permission::Rights).await.map(Self)
    }
}

async fn named_session<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    permission: Permission,
) -> Result<Session, ApiError> {
    let caller = Caller::from_request_parts(parts, state).await?;
    let id = path_id(parts, state).await?;
    caller.session(permission, caller.scope(&id)?).await
}

/// A person named in the path, whom the caller may see and end: themselves, or anyone for an administrator.
#[derive(Clone, Debug)]
pub(super) struct Person {
    administrator: Administrator,
    tenant: TenantId,
    user: UserId,
}

impl Person {
    /// The person's id, as the address has it.
    pub(super) fn user_id(&self) -> &str {
        self.user.as_str()
    }

    /// What is kept of an account only its owner gets, with a proof.
    pub(super) async fn export(&self) -> Result<PersonExport, Error> {
        UserId::new(self.user.as_str())?;
        self.administrator.export_person(&self.tenant, &self.user).await
    }

    pub(super) async fn erase(&self) -> Result<Receipt, Error> {
        self.administrator.erase_person(&self.tenant, &self.user).await
    }

    /// How much of what was derived an erasure would end.
    pub(super) async fn count_derived(&self) -> Result<BTreeMap<String, u64>, Error> {
        self.administrator.count_derived(&self.tenant, &self.user).await
    }

    /// How many sessions an erasure would end.
    pub(super) async fn count(&self) -> Result<u64, Error> {
        self.administrator.count_person(&self.tenant, &self.user).await
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Person {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let user = UserId::any(&path_id(parts, state).await?);
        let user = user.map_err(|error| ApiError::from(Error::from(error)))?;
        caller.person(user).await
    }
}

/// Somebody who may look at the server itself: an administrator or an agent.
#[derive(Debug)]
pub(super) struct Operator;

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if caller.own_user().is_some() { Err(ApiError::forbidden()) } else { Ok(Self) }
    }
}

/// The last id in the path, which says nothing of who may have it.
#[derive(Debug)]
pub(super) struct LastId(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for LastId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        path_ids(parts, state).await?.pop().map(Self).ok_or_else(ApiError::internal)
    }
}

/// The first id in the path: that of a session or a person.
async fn path_id<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, ApiError> {
    path_ids(parts, state).await?.into_iter().next().ok_or_else(ApiError::internal)
}

/// The ids in the path, each percent-decoded once.
async fn path_ids<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Vec<String>, ApiError> {
    let path = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
    path.map(|Path(ids)| ids.into_iter().map(|(_, id)| id).collect()).map_err(|_| {
        ApiError::invalid("the id in the path is not percent-encoded UTF-8", "encode it as one path segment")
    })
}
