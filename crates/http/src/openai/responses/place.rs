//! Where a response is remembered.
//!
//! A named conversation or response goes first, then an item of one among the input, then what decides with chat completions; a response of
//! nobody in particular begins a conversation of its own. What does not follow on the newest turn goes on in a copy: the conversation
//! that it came from stays as it is.

use axum::http::{HeaderMap, StatusCode};
use confidant_engine::access::Permission;
use confidant_engine::room::Audience;
use confidant_engine::turn::ListedWhat;
use confidant_engine::{Error, Session, UserId};
use ring::digest::{SHA256, digest};

use super::request::Wanted;
use crate::auth::{Caller, nobody};
use crate::error::ApiError;
use crate::openai::ids::{ResponseId, tag_of_conversation};
use crate::openai::{CHANNEL, SESSION, header_text, is_memory_off, memory};

/// Where a response is remembered.
pub(super) enum Place {
    /// Nowhere; this was said before.
    Nowhere(Vec<ListedWhat>),
    Kept(Box<Kept>),
}

/// A session, and what is said in it next.
pub(super) struct Kept {
    pub(super) session: Session,
    /// The turn that this follows, by its mark, if it says so.
    pub(super) after: Option<String>,
    /// Names what is begun, so that a request that is sent again does not begin it again.
    key: Option<String>,
}

impl Place {
    pub(super) async fn find(
        caller: &Caller,
        headers: &HeaderMap,
        key: Option<&str>,
        wanted: &Wanted,
    ) -> Result<Self, ApiError> {
        if is_memory_off(headers)? {
            return Ok(Self::Nowhere(Vec::new()));
        }
        let named = named(caller, headers, wanted).await?;
        if !wanted.is_stored {
            return match named {
                Some((session, after)) => Ok(Self::Nowhere(said(&session, after.as_deref()).await?)),
                None => Ok(Self::Nowhere(Vec::new())),
            };
        }
        let found = match named {
            Some(named) => Some(named),
            None => listed(caller, headers, wanted).await?,
        };
        let (session, after) = match found {
            Some(found) => found,
            None => match memory(caller, headers, wanted.user.as_deref()).await? {
                Some(session) => (session, None),
                None => (begun(caller, None, key).await?, None),
            },
        };
        let key = key.map(str::to_owned);
        Ok(Self::Kept(Box::new(Kept { session, after, key })))
    }
}

impl Kept {
    /// The same in a copy that ends with the turn that this follows.
    pub(super) async fn forked(&self, caller: &Caller) -> Result<Self, ApiError> {
        let after = self.after.as_deref().unwrap_or_default();
        let name = place_name(caller, self.key.as_deref(), &[&self.session.tag(), after])?;
        let scope = caller.place_scope(CHANNEL, &name, self.session.scope().user().clone())?;
        let session = caller.session(Permission::Talk, scope).await?;
        if !self.session.fork(after, &session).await? {
            return Err(no_response());
        }
        Ok(Self { session, after: None, key: self.key.clone() })
    }

    /// Who may hear of it later.
    pub(super) fn audience(&self) -> Audience {
        audience(&self.session)
    }
}

/// Who may hear later what is said in a session that is named by an application: one that is begun here is for its person alone.
pub(in crate::openai) fn audience(session: &Session) -> Audience {
    let scope = session.scope();
    if scope.is_person() || scope.channel().as_str() == CHANNEL { Audience::Private } else { Audience::Room }
}

/// A conversation of its own: of this person, of the caller, or of nobody in particular.
pub(in crate::openai) async fn begun(
    caller: &Caller,
    user: Option<&str>,
    key: Option<&str>,
) -> Result<Session, ApiError> {
    let user = match (user, caller.own_user()) {
        (Some(user), _) => {
            UserId::new(user).map_err(|error| ApiError::from(Error::from(error)).at("user"))?
        }
        (None, Some(own)) => own.clone(),
        (None, None) => nobody()?,
    };
    let scope = caller.place_scope(CHANNEL, &place_name(caller, key, &[])?, user)?;
    caller.session(Permission::Talk, scope).await
}

/// A name that nothing has yet; the same for the same request, if that has a key.
fn place_name(caller: &Caller, key: Option<&str>, of: &[&str]) -> Result<String, ApiError> {
    let bytes = match key {
        Some(key) => {
            let whole = serde_json::json!([caller.token_id(), key, of]).to_string();
            digest(&SHA256, whole.as_bytes()).as_ref()[..NAME].to_vec()
        }
        None => {
            let mut bytes = vec![0_u8; NAME];
            getrandom::fill(&mut bytes).map_err(|_| ApiError::internal())?;
            bytes
        }
    };
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Bytes of a name.
const NAME: usize = 16;

/// The conversation or response that the request names.
async fn named(
    caller: &Caller,
    headers: &HeaderMap,
    wanted: &Wanted,
) -> Result<Option<(Session, Option<String>)>, ApiError> {
    let (found, missing) = if let Some(id) = &wanted.conversation {
        (of_tag(caller, tag_of_conversation(id)).await?.map(|session| (session, None)), no_conversation())
    } else if let Some(id) = &wanted.previous {
        let id = ResponseId::parse(id);
        let session = of_tag(caller, id.as_ref().map(|id| id.tag.as_str())).await?;
        (session.map(|session| (session, id.map(|id| id.mark))), no_response())
    } else {
        return Ok(None);
    };
    match found {
        Some(found) if is_meant(caller, headers, wanted, &found.0)? => Ok(Some(found)),
        _ => Err(missing),
    }
}

/// The conversation that an item of the input belongs to, if it is one that the request may have.
async fn listed(
    caller: &Caller,
    headers: &HeaderMap,
    wanted: &Wanted,
) -> Result<Option<(Session, Option<String>)>, ApiError> {
    let Some(item) = &wanted.spoken.newest else { return Ok(None) };
    match of_tag(caller, Some(&item.tag)).await? {
        Some(session) if is_meant(caller, headers, wanted, &session)? => {
            Ok(Some((session, Some(item.mark.clone()))))
        }
        _ => Ok(None),
    }
}

/// Whether a session is of the person that the request names, and that its header names, as far as they do.
fn is_meant(
    caller: &Caller,
    headers: &HeaderMap,
    wanted: &Wanted,
    session: &Session,
) -> Result<bool, ApiError> {
    let own = session.scope().user();
    let is_theirs = |user: &str| UserId::new(user).is_ok_and(|user| user == *own);
    let named = header_text(headers, SESSION)?;
    // A copy of the named session is another one.
    let in_header = named.is_none_or(|id| caller.scope(id).is_ok_and(|scope| scope.user() == own));
    Ok(in_header && wanted.user.as_deref().is_none_or(is_theirs))
}

async fn of_tag(caller: &Caller, tag: Option<&str>) -> Result<Option<Session>, ApiError> {
    match tag {
        Some(tag) => caller.session_of_tag(tag, Permission::Talk).await,
        None => Ok(None),
    }
}

/// What was said in a session up to a turn.
async fn said(session: &Session, until: Option<&str>) -> Result<Vec<ListedWhat>, ApiError> {
    let Some(listing) = session.listing().await? else { return Err(no_conversation()) };
    let last = match until {
        Some(mark) => {
            let meant = listing.turn(mark).map(|turn| turn.mark.clone());
            let place = meant.and_then(|mark| listing.turns.iter().position(|turn| turn.mark == mark));
            place.ok_or_else(no_response)?
        }
        None => listing.turns.len(),
    };
    let turns = listing.turns.into_iter().take(last.saturating_add(1));
    Ok(turns.flat_map(|turn| turn.items).map(|item| item.what).collect())
}

/// Says the same whether there is none, or it is somebody else's.
pub(in crate::openai) fn no_conversation() -> ApiError {
    let hint = "check its id and whose token this is; it may also have expired or been erased";
    let message = "there is no such conversation";
    ApiError::new(StatusCode::NOT_FOUND, "conversation_not_found", message, hint).at("conversation")
}

/// Says the same whether there is none, or it is somebody else's.
pub(super) fn no_response() -> ApiError {
    let error =
        ApiError::new(StatusCode::NOT_FOUND, "previous_response_not_found", NO_RESPONSE, LOST_RESPONSE);
    error.at("previous_response_id")
}

/// The same, where the response itself is asked for.
pub(super) fn no_such_response() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "response_not_found", NO_RESPONSE, LOST_RESPONSE).at("response_id")
}

const NO_RESPONSE: &str = "there is no such response";
const LOST_RESPONSE: &str =
    "check its id and whose token this is; it may also have expired, been deleted, or not been stored";
