//! `/v1/responses`: answers that can be asked for again, and followed by the next one.
//!
//! A response is a turn of a session, or the part of one between two hand-overs of calls; its name leads there, and nothing is kept of
//! it but the turn, its metadata and how it was asked for. A response that is followed by something else already goes on in a copy of the conversation.

mod events;
pub(super) mod input;
pub(super) mod objects;
pub(super) mod place;
pub(super) mod request;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use confidant_engine::access::Permission;
use confidant_engine::head::Lacks;
use confidant_engine::model::{PromptMessage, Role};
use confidant_engine::turn::{
    ClientCall, Ending, Listed, ListedTurn, ListedWhat, TokenUsage, ToolSaid, TurnState,
};
use confidant_engine::{Error, Session, Turn, TurnRequest};
use serde::Deserialize;
use utoipa::IntoParams;

use super::ids::{CallId, ItemId, ResponseId};
use super::{Confidant, IDEMPOTENCY_KEY, MEMORY, can_be_had, can_be_taken, header_text, memory_header};
use crate::answers::Running;
use crate::app::App;
use crate::auth::{Caller, LastId};
use crate::body::{Json, Params, reply};
use crate::error::ApiError;
use crate::openapi::OpenAiFailures;
use objects::{About, CallObject, Deleted, ItemList, ItemObject, ResponseObject, Standing, UsageObject};
use place::{Kept, Place, no_such_response};
use request::{ResponseRequest, Wanted};

/// What a body asks for: the query, and how many items came before it.
#[cfg(feature = "fuzzing")]
pub(crate) fn wanted(bytes: &[u8]) -> Result<(String, usize), ApiError> {
    let wanted = crate::body::parse::<ResponseRequest>(bytes)?.into_wanted()?;
    Ok((wanted.spoken.query, wanted.spoken.listed.len()))
}

/// Create a response
///
/// Like OpenAI's, streamed or whole. It is remembered in the `conversation` that it names, in that of `previous_response_id` or of an item
/// among its `input`, and otherwise as a chat completion would be; one of nobody in particular begins a conversation of its own. A response
/// that follows another than the newest goes on in a copy. Items of the input that the conversation has are not remembered again. With
/// `store: false`, nothing is kept.
#[utoipa::path(
    post, path = "/v1/responses", operation_id = "create_response", tag = "openai", security(("bearer" = [])),
    params(
        ("X-Confidant-Session" = Option<String>, Header, description = "The session to remember in, where no conversation is named; takes precedence over `user`"),
        ("X-Confidant-Memory" = Option<String>, Header, description = "`off`: this request is answered without memory, whoever sends it; nothing is recalled or kept"),
        ("Idempotency-Key" = Option<String>, Header, description = "The turn's request_id: a retry gets the recorded answer"),
    ),
    request_body = ResponseRequest,
    responses(
        (status = 200, description = "The response", content((ResponseObject = "application/json"), (String = "text/event-stream"))),
        OpenAiFailures
    )
)]
pub(crate) async fn create_response(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Json(body): Json<ResponseRequest>,
) -> Result<Response, ApiError> {
    let wanted = body.into_wanted()?;
    can_be_had(&app, &wanted.sampling, &wanted.tools, request::FORMAT)?;
    can_be_taken(&app, &wanted.spoken.attachments, "input")?;
    let key = header_text(&headers, IDEMPOTENCY_KEY)?.map(str::to_owned);
    let mut place = Place::find(&caller, &headers, key.as_deref(), &wanted).await?;
    loop {
        let error = match answer(&app, &caller, &place, &wanted, key.clone()).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let forked = match &place {
            Place::Kept(kept) if kept.after.is_some() && has_gone_on(&error) => kept.forked(&caller).await?,
            _ => return Err(error),
        };
        place = Place::Kept(Box::new(forked));
    }
}

/// Whether a turn was not taken because the conversation has gone on since.
fn has_gone_on(error: &ApiError) -> bool {
    error.code == Lacks::Differs.code()
}

async fn answer(
    app: &App,
    caller: &Caller,
    place: &Place,
    wanted: &Wanted,
    key: Option<String>,
) -> Result<Response, ApiError> {
    let begun = match place {
        Place::Nowhere(said) => {
            let request =
                request(wanted, said.iter().chain(wanted.spoken.listed.iter().map(|(_, what)| what)));
            let request = TurnRequest { request_id: key, ..request };
            let turn = app.engine.turn_without_memory(Some(caller.tenant().clone()), request);
            Begun { turn, names: Names::of_nothing()? }
        }
        Place::Kept(kept) => begin(kept, wanted, key).await?,
    };
    let mut echo = wanted.echo.clone();
    echo.conversation.take_if(|_| matches!(place, Place::Nowhere(_)));
    let about = About {
        id: begun.names.response(),
        created_at: app.now(),
        model: app.engine.model_name().to_owned(),
        echo,
    };
    if wanted.is_streamed {
        return events::respond(app.clone(), begun, about).await;
    }
    let Begun { turn, names } = begun;
    let ending = Running::from(turn).end(app).await?;
    let memory = memory_header(&ending);
    let told = Told::from(ending);
    let output = told.items(&names);
    let standing = Standing {
        output,
        completed_at: Some(app.now()),
        usage: Some(UsageObject::of(told.usage)),
        confidant: Some(told.confidant),
        error: None,
    };
    let mut response = reply(&about.response(objects::COMPLETED, standing))?;
    response.headers_mut().insert(MEMORY, memory);
    Ok(response)
}

/// A turn under way, and what its response will be called.
struct Begun {
    turn: Turn,
    names: Names,
}

/// Begins a turn in a session: first the session hears what else was said, as far as it does not know.
async fn begin(kept: &Kept, wanted: &Wanted, key: Option<String>) -> Result<Begun, ApiError> {
    let (session, spoken) = (&kept.session, &wanted.spoken);
    let (mut after, mut request_id) = (kept.after.clone(), key);
    let tag = session.tag();
    // What has a name of this session, and all before it, is known here.
    let is_ours = |(id, _): &(Option<ItemId>, ListedWhat)| id.as_ref().is_some_and(|id| id.tag == tag);
    let known = spoken.listed.iter().rposition(is_ours).map_or(0, |last| last + 1);
    if spoken.steps.is_empty() && !spoken.listed.is_empty() {
        let items: Vec<ListedWhat> = spoken.listed[known..].iter().map(|(_, what)| what.clone()).collect();
        let query = Some(spoken.query.as_str());
        let audience = kept.audience();
        let listed = Listed { items: &items, query, after: after.as_deref(), audience };
        let caught_up = or_nothing(session.catch_up(listed).await)?;
        if caught_up.after.is_some() {
            after = after.and(caught_up.after);
        }
        if request_id.is_none() && caught_up.request_id.is_some() {
            request_id = caught_up.request_id;
        }
    }
    let called = spoken.steps.last().and_then(|step| CallId::parse(&step.results.first()?.id));
    let goes_on = match &called {
        Some(call) => or_nothing(session.has_turn(&call.mark).await)?,
        None => false,
    };
    let request = request(wanted, spoken.listed.iter().map(|(_, what)| what));
    let turn = session.turn(TurnRequest {
        request_id,
        audience: Some(kept.audience()),
        after: after.filter(|_| !goes_on),
        labels: wanted.echo.metadata.clone(),
        asked_for: wanted.echo.to_kept(),
        ..request
    });
    let (mark, step) = match called.filter(|_| goes_on) {
        Some(call) => (call.mark, call.step + 1),
        None => (session.mark(turn.request_id()), spoken.steps.len()),
    };
    Ok(Begun { turn, names: Names::Kept(ResponseId { tag, mark, step }) })
}

/// What the session knows; nothing if it is out of reach, since the turn is answered all the same.
fn or_nothing<T: Default>(known: Result<T, Error>) -> Result<T, ApiError> {
    match known {
        Err(Error::Store(_) | Error::Unloaded(_) | Error::Tampered(_)) => Ok(T::default()),
        known => Ok(known?),
    }
}

/// A turn as it was asked for, with what was said before it.
fn request<'w>(wanted: &Wanted, before: impl Iterator<Item = &'w ListedWhat>) -> TurnRequest {
    let (mut brought, mut results, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for what in before {
        match what {
            ListedWhat::Query(text) => brought.push(PromptMessage { role: Role::Human, text: text.clone() }),
            ListedWhat::Said(text) => brought.push(PromptMessage { role: Role::Ai, text: text.clone() }),
            ListedWhat::Call(call) => calls.push(call),
            ListedWhat::Result(result) => {
                let call = calls.iter().rev().find(|call| call.id == result.id);
                let tool = call.map_or_else(|| "tool".to_owned(), |call| call.name.clone());
                results.push(ToolSaid { tool, text: result.text.clone() });
            }
        }
    }
    TurnRequest {
        query: wanted.spoken.query.clone(),
        attachments: wanted.spoken.attachments.clone(),
        instructions: wanted.instructions.clone(),
        brought,
        results,
        steps: wanted.spoken.steps.clone(),
        tools: wanted.tools.clone(),
        sampling: wanted.sampling.clone(),
        ..TurnRequest::default()
    }
}

/// What a response and its items are called.
enum Names {
    Kept(ResponseId),
    /// Nothing of it is kept, so its names lead nowhere.
    Nothing(String),
}

impl Names {
    fn of_nothing() -> Result<Self, ApiError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| ApiError::internal())?;
        Ok(Self::Nothing(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    fn response(&self) -> String {
        match self {
            Self::Kept(id) => id.to_string(),
            Self::Nothing(name) => format!("resp_{name}"),
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Kept(id) => ItemId::message(id).to_string(),
            Self::Nothing(name) => format!("msg_{name}"),
        }
    }

    fn call(&self, index: usize, call: &ClientCall) -> String {
        let name = match self {
            Self::Kept(id) => ItemId::call(id, call).map(|id| id.to_string()),
            Self::Nothing(name) => Some(format!("fc_{name}{index:02x}")),
        };
        name.unwrap_or_else(|| format!("fc_{}", call.id))
    }
}

/// What a client gets to see of a turn's end.
struct Told {
    content: String,
    /// What the client is to call before there is an answer.
    calls: Vec<ClientCall>,
    usage: Option<TokenUsage>,
    confidant: Confidant,
}

impl From<Ending> for Told {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Answer(mut answer) => {
                let calls = std::mem::take(&mut answer.metadata.calls);
                let usage = answer.metadata.usage;
                let confidant = Confidant::Answer(Box::new((*answer.metadata).into()));
                Self { content: answer.content, calls, usage, confidant }
            }
            Ending::Approval(request) => {
                let content = request.question.clone();
                let confidant = Confidant::Approval(Box::new((*request).into()));
                Self { content, calls: Vec::new(), usage: None, confidant }
            }
        }
    }
}

impl Told {
    fn items(&self, names: &Names) -> Vec<ItemObject> {
        let said = (!self.content.is_empty() || self.calls.is_empty())
            .then(|| ItemObject::said(names.message(), objects::COMPLETED, Some(self.content.clone())));
        said.into_iter().chain(self.call_items(names).map(ItemObject::Call)).collect()
    }

    fn call_items<'t>(&'t self, names: &'t Names) -> impl Iterator<Item = CallObject> + 't {
        let calls = self.calls.iter().enumerate();
        calls.map(|(index, call)| CallObject::of(names.call(index, call), call.clone()))
    }
}

/// A response in the path, if the caller may do this with it, and its session.
async fn found(
    caller: &Caller,
    id: &str,
    permission: Permission,
) -> Result<(ResponseId, Session, ListedTurn), ApiError> {
    let id = ResponseId::parse(id).ok_or_else(no_such_response)?;
    let session = caller.session_of_tag(&id.tag, permission).await?.ok_or_else(no_such_response)?;
    let listing = session.listing().await?.ok_or_else(no_such_response)?;
    let turn = listing.turn(&id.mark).filter(|turn| turn.answer(id.step).is_some());
    let turn = turn.cloned().ok_or_else(no_such_response)?;
    Ok((id, session, turn))
}

/// Show a response
///
/// As it was answered. The newest 32 responses of a conversation also have the parameters that they were asked with; instructions, tools
/// and schemas only if all of that has less than 16 KiB.
#[utoipa::path(
    get, path = "/v1/responses/{response_id}", operation_id = "retrieve_response", tag = "openai", security(("bearer" = [])),
    params(("response_id" = String, Path, description = "The response's id"), ShowParams),
    responses((status = 200, description = "The response", body = ResponseObject), OpenAiFailures)
)]
pub(crate) async fn retrieve_response(
    State(app): State<App>,
    caller: Caller,
    LastId(id): LastId,
    Params(params): Params<ShowParams>,
) -> Result<Response, ApiError> {
    if params.stream.unwrap_or(false) {
        let message = "`stream` is not supported here: the answer is there, or it is not";
        return Err(ApiError::invalid(message, "leave it out").at("stream"));
    }
    let (id, _, turn) = found(&caller, &id, Permission::Talk).await?;
    reply(&ResponseObject::kept(&id, &turn, app.engine.model_name()).ok_or_else(no_such_response)?)
}

/// How a response is wanted. Other parameters change nothing.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShowParams {
    /// Not supported: only `false`.
    stream: Option<bool>,
}

/// Delete a response
///
/// The turn that it belongs to is forgotten: what was asked, called and answered. An agent's token cannot do that.
#[utoipa::path(
    delete, path = "/v1/responses/{response_id}", operation_id = "delete_response", tag = "openai", security(("bearer" = [])),
    params(("response_id" = String, Path, description = "The response's id")),
    responses((status = 200, description = "It is gone", body = Deleted), OpenAiFailures)
)]
pub(crate) async fn delete_response(
    State(app): State<App>,
    caller: Caller,
    LastId(id): LastId,
) -> Result<Response, ApiError> {
    let (id, session, turn) = found(&caller, &id, Permission::Rights).await?;
    app.detached(async move { forget(&session, &turn).await }).await?;
    reply(&Deleted::of(id.to_string(), "response"))
}

/// Forgets a turn, also one that waits.
pub(super) async fn forget(session: &Session, turn: &ListedTurn) -> Result<(), Error> {
    if matches!(turn.state, TurnState::Handed | TurnState::Asked) {
        session.cancel(Some(&turn.request_id)).await?;
    }
    session.remove(&turn.request_id).await.map(drop)
}

/// Cancel a response
///
/// A response that has ended stays as it is.
#[utoipa::path(
    post, path = "/v1/responses/{response_id}/cancel", operation_id = "cancel_response", tag = "openai", security(("bearer" = [])),
    params(("response_id" = String, Path, description = "The response's id")),
    responses((status = 200, description = "The response as it is now", body = ResponseObject), OpenAiFailures)
)]
pub(crate) async fn cancel_response(
    State(app): State<App>,
    caller: Caller,
    LastId(id): LastId,
) -> Result<Response, ApiError> {
    let (id, session, turn) = found(&caller, &id, Permission::Talk).await?;
    let model = app.engine.model_name();
    let is_last = turn.answer(id.step).is_some_and(|answer| answer.is_last);
    if turn.state != TurnState::Running || !is_last {
        return reply(&ResponseObject::kept(&id, &turn, model).ok_or_else(no_such_response)?);
    }
    let cancelled = session.cancel(Some(&turn.request_id)).await?;
    let (id, _, turn) = found(&caller, &id.to_string(), Permission::Talk).await?;
    let response = ResponseObject::kept(&id, &turn, model).ok_or_else(no_such_response)?;
    reply(&if cancelled > 0 { response.cancelled() } else { response })
}

/// List the input items of a response
///
/// What the response was made for: the query, or the results of calls. What came before it belongs to the conversation.
#[utoipa::path(
    get, path = "/v1/responses/{response_id}/input_items", operation_id = "list_response_input_items", tag = "openai", security(("bearer" = [])),
    params(("response_id" = String, Path, description = "The response's id"), PageParams),
    responses((status = 200, description = "The items", body = ItemList), OpenAiFailures)
)]
pub(crate) async fn input_items(
    caller: Caller,
    LastId(id): LastId,
    Params(page): Params<PageParams>,
) -> Result<Response, ApiError> {
    let (id, _, turn) = found(&caller, &id, Permission::Talk).await?;
    let answer = turn.answer(id.step).ok_or_else(no_such_response)?;
    let items = answer.given.iter().map(|item| ItemObject::of(&id.tag, &turn.mark, item));
    reply(&page.of(items.collect())?)
}

/// Which part of a list. Other parameters change nothing.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// The item after which the page begins.
    after: Option<String>,
    /// How many items, 1 to 100; 20 if it is missing.
    limit: Option<usize>,
    /// `desc`, the newest first, or `asc`.
    order: Option<String>,
}

impl PageParams {
    /// The page of these items, which are the oldest first.
    pub(super) fn of(self, mut items: Vec<ItemObject>) -> Result<ItemList, ApiError> {
        let refused = |name: &'static str, hint: &'static str| {
            Err(ApiError::invalid(format!("`{name}` is not valid"), hint).at(name))
        };
        match self.order.as_deref() {
            None | Some("desc") => items.reverse(),
            Some("asc") => {}
            Some(_) => return refused("order", "use asc or desc"),
        }
        let limit = self.limit.unwrap_or(20);
        if !(1..=100).contains(&limit) {
            return refused("limit", "use 1 to 100");
        }
        if let Some(after) = self.after {
            match items.iter().position(|item| item.id() == after) {
                Some(place) => drop(items.drain(..=place)),
                None => return refused("after", "use the id of an item of this list"),
            }
        }
        let has_more = items.len() > limit;
        items.truncate(limit);
        Ok(ItemList::of(items, has_more))
    }
}
