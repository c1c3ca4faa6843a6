//! `/v1/conversations`: sessions by a name of their own, and what was said in them, item by item.
//!
//! A conversation is a session: its name has the session's tag, and it is kept, exported and erased like any other. What is easy to get
//! wrong: items are not kept one by one. One that the agent said goes with all that it said in that turn, and a question with its answer.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use confidant_display::debug_without_content;
use confidant_engine::access::Permission;
use confidant_engine::turn::{Listed, ListedItem, ListedTurn, ListedWhat, Listing};
use confidant_engine::{Error, Session};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::ids::{ItemId, conversation, tag_of_conversation};
use super::request::bad;
use super::responses::input::{InputItem, Read, What, read};
use super::responses::objects::{ConversationObject, Deleted, ItemList, ItemObject, is_query};
use super::responses::place::{audience, begun, no_conversation};
use super::responses::request::checked_metadata;
use super::responses::{PageParams, forget};
use super::{IDEMPOTENCY_KEY, SESSION, header_text, is_memory_off, memory};
use crate::app::App;
use crate::auth::{Caller, ConversationOf};
use crate::body::{Json, Params, reply};
use crate::error::ApiError;
use crate::openapi::OpenAiFailures;

/// A conversation to begin.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ConversationRequest {
    /// What was said before.
    items: Option<Vec<InputItem>>,
    /// Up to 16 names with values.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    metadata: Option<Value>,
    /// Whose conversation it is: it is exported and erased with this person.
    user: Option<String>,
}

/// What is attached to a conversation from now on.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ConversationUpdate {
    /// Up to 16 names with values, in the place of those before.
    #[schema(value_type = BTreeMap<String, String>)]
    metadata: Value,
}

/// What is to be put into a conversation.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ItemsRequest {
    /// Messages, and calls with their results. Those that the conversation has already are left out.
    items: Vec<InputItem>,
}

/// Create a conversation
///
/// Of the person in `user`, or of the token's; otherwise of nobody in particular. With `X-Confidant-Session`, it is that session.
#[utoipa::path(
    post, path = "/v1/conversations", operation_id = "create_conversation", tag = "openai", security(("bearer" = [])),
    params(
        ("X-Confidant-Session" = Option<String>, Header, description = "The session that the conversation is"),
        ("Idempotency-Key" = Option<String>, Header, description = "A retry gets the same conversation"),
    ),
    request_body = ConversationRequest,
    responses((status = 200, description = "The conversation", body = ConversationObject), OpenAiFailures)
)]
pub(crate) async fn create_conversation(
    caller: Caller,
    headers: HeaderMap,
    Json(body): Json<ConversationRequest>,
) -> Result<Response, ApiError> {
    if is_memory_off(&headers)? {
        let message = "a conversation is memory, and the header X-Confidant-Memory is `off`";
        return Err(ApiError::invalid(message, "leave the header out").at("X-Confidant-Memory"));
    }
    let metadata = checked_metadata(body.metadata)?;
    let items = listed(body.items.unwrap_or_default())?;
    let key = header_text(&headers, IDEMPOTENCY_KEY)?;
    let session = match header_text(&headers, SESSION)? {
        Some(_) => memory(&caller, &headers, None).await?.ok_or_else(ApiError::internal)?,
        None => begun(&caller, body.user.as_deref(), key).await?,
    };
    let at = session.label(metadata.clone()).await?;
    if !items.is_empty() {
        put(&session, &items).await?;
    }
    reply(&ConversationObject::of(conversation(&session), at.0 / 1000, metadata))
}

/// Show a conversation
#[utoipa::path(
    get, path = "/v1/conversations/{conversation_id}", operation_id = "retrieve_conversation", tag = "openai", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id")),
    responses((status = 200, description = "The conversation", body = ConversationObject), OpenAiFailures)
)]
pub(crate) async fn retrieve_conversation(
    caller: Caller,
    ConversationOf(ids): ConversationOf,
) -> Result<Response, ApiError> {
    let (session, listing) = found(&caller, &ids, Permission::Talk).await?;
    reply(&shown(&session, listing))
}

/// Update a conversation
///
/// Its metadata, all of it.
#[utoipa::path(
    post, path = "/v1/conversations/{conversation_id}", operation_id = "update_conversation", tag = "openai", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id")),
    request_body = ConversationUpdate,
    responses((status = 200, description = "The conversation", body = ConversationObject), OpenAiFailures)
)]
pub(crate) async fn update_conversation(
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Json(body): Json<ConversationUpdate>,
) -> Result<Response, ApiError> {
    let metadata = checked_metadata(Some(body.metadata))?;
    let (session, mut listing) = found(&caller, &ids, Permission::Talk).await?;
    session.label(metadata.clone()).await?;
    listing.labels = metadata;
    reply(&shown(&session, listing))
}

/// Delete a conversation
///
/// Erases its session: the key, and all that was said. An agent's token cannot do that.
#[utoipa::path(
    delete, path = "/v1/conversations/{conversation_id}", operation_id = "delete_conversation", tag = "openai", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id")),
    responses((status = 200, description = "It is gone", body = Deleted), OpenAiFailures)
)]
pub(crate) async fn delete_conversation(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
) -> Result<Response, ApiError> {
    let session = session(&caller, &ids, Permission::Rights).await?;
    let id = conversation(&session);
    app.detached(async move { session.erase().await }).await?;
    reply(&Deleted::of(id, "conversation.deleted"))
}

/// List the items of a conversation
#[utoipa::path(
    get, path = "/v1/conversations/{conversation_id}/items", operation_id = "list_conversation_items", tag = "openai", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id"), PageParams),
    responses((status = 200, description = "A page of the items", body = ItemList), OpenAiFailures)
)]
pub(crate) async fn list_items(
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Params(page): Params<PageParams>,
) -> Result<Response, ApiError> {
    let (session, listing) = found(&caller, &ids, Permission::Talk).await?;
    let tag = session.tag();
    let of_turn = |turn: &ListedTurn| {
        turn.items.iter().map(|item| ItemObject::of(&tag, &turn.mark, item)).collect::<Vec<_>>()
    };
    reply(&page.of(listing.turns.iter().flat_map(of_turn).collect())?)
}

/// Add items to a conversation
///
/// Items that the conversation has are not remembered again; the answer has those that were new.
#[utoipa::path(
    post, path = "/v1/conversations/{conversation_id}/items", operation_id = "create_conversation_items", tag = "openai", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id")),
    request_body = ItemsRequest,
    responses((status = 200, description = "The items that were new", body = ItemList), OpenAiFailures)
)]
pub(crate) async fn create_items(
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Json(body): Json<ItemsRequest>,
) -> Result<Response, ApiError> {
    let session = session(&caller, &ids, Permission::Talk).await?;
    let items = listed(body.items)?;
    reply(&ItemList::of(put(&session, &items).await?, false))
}

/// Show an item of a conversation
#[utoipa::path(
    get, path = "/v1/conversations/{conversation_id}/items/{item_id}", operation_id = "retrieve_conversation_item", tag = "openai", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id"),
        ("item_id" = String, Path, description = "The item's id"),
    ),
    responses((status = 200, description = "The item", body = ItemObject), OpenAiFailures)
)]
pub(crate) async fn retrieve_item(
    caller: Caller,
    ConversationOf(ids): ConversationOf,
) -> Result<Response, ApiError> {
    let (session, listing) = found(&caller, &ids, Permission::Talk).await?;
    let (turn, at) = place_of(&session, &listing, &ids)?;
    let turn = &listing.turns[turn];
    reply(&ItemObject::of(&session.tag(), &turn.mark, &turn.items[at]))
}

/// Delete an item of a conversation
///
/// What the agent said goes with all that it said in that turn, and what the person said with its answer. An agent's token cannot do that.
#[utoipa::path(
    delete, path = "/v1/conversations/{conversation_id}/items/{item_id}", operation_id = "delete_conversation_item", tag = "openai", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id"),
        ("item_id" = String, Path, description = "The item's id"),
    ),
    responses((status = 200, description = "The conversation", body = ConversationObject), OpenAiFailures)
)]
pub(crate) async fn delete_item(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
) -> Result<Response, ApiError> {
    let (session, listing) = found(&caller, &ids, Permission::Rights).await?;
    let (turn, at) = place_of(&session, &listing, &ids)?;
    let turn = listing.turns[turn].clone();
    let question = turn.items.first().filter(|first| is_query(first)).map(|first| first.what.clone());
    let conversation = shown(&session, listing);
    app.detached(async move {
        match question {
            Some(ListedWhat::Query(question)) if at > 0 && turn.answered_at.is_some() => {
                session.amend(&turn.request_id, &question).await.map(drop)
            }
            _ => forget(&session, &turn).await,
        }
    })
    .await?;
    reply(&conversation)
}

/// The session of the conversation that is named first in the path.
async fn session(caller: &Caller, ids: &[String], permission: Permission) -> Result<Session, ApiError> {
    let tag = ids.first().and_then(|id| tag_of_conversation(id)).ok_or_else(missing)?;
    caller.session_of_tag(tag, permission).await?.ok_or_else(missing)
}

async fn found(
    caller: &Caller,
    ids: &[String],
    permission: Permission,
) -> Result<(Session, Listing), ApiError> {
    let session = session(caller, ids, permission).await?;
    let listing = session.listing().await?.ok_or_else(missing)?;
    Ok((session, listing))
}

fn missing() -> ApiError {
    no_conversation().at("conversation_id")
}

fn shown(session: &Session, listing: Listing) -> ConversationObject {
    ConversationObject::of(conversation(session), listing.created_at.0 / 1000, listing.labels)
}

/// Where the item stands that is named last in the path: its turn, and its place there.
fn place_of(session: &Session, listing: &Listing, ids: &[String]) -> Result<(usize, usize), ApiError> {
    let id = ids.last().and_then(|id| ItemId::parse(id)).filter(|id| id.tag == session.tag());
    let place = id.and_then(|id| {
        let turn = listing.turns.iter().position(|turn| turn.mark == id.mark)?;
        let is_it = |item: &ListedItem| ItemId::of(&id.tag, &id.mark, item) == id;
        Some((turn, listing.turns[turn].items.iter().position(is_it)?))
    });
    place.ok_or_else(|| {
        let (message, hint) = ("there is no such item in the conversation", "list its items");
        ApiError::new(StatusCode::NOT_FOUND, "item_not_found", message, hint).at("item_id")
    })
}

/// What items say.
fn listed(items: Vec<InputItem>) -> Result<Vec<ListedWhat>, ApiError> {
    let said = read(items, "items")?.into_iter().filter_map(|Read { what, .. }| match what {
        What::Listed(what) => Some(Ok(what)),
        What::Operator(_) => {
            let message = "`items` has a message of role system or developer, which is not kept";
            Some(Err(bad("items", message, "send it as `instructions` of a response")))
        }
        What::Reference => None,
    });
    said.collect()
}

/// Puts items behind those that a session has; those that were new come back.
async fn put(session: &Session, items: &[ListedWhat]) -> Result<Vec<ItemObject>, Error> {
    let audience = audience(session);
    let caught_up = session.catch_up(Listed { items, query: None, after: None, audience }).await?;
    let tag = session.tag();
    let recorded = caught_up.recorded.iter();
    Ok(recorded.map(|(mark, item)| ItemObject::of(&tag, mark, item)).collect())
}

debug_without_content!(ConversationRequest, ConversationUpdate, ItemsRequest);
