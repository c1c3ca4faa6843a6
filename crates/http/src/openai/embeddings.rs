//! Embeddings, passed on to the provider of the model: nothing of them is kept.
//!
//! One model makes them, whatever the request names, as with answers: which one is the operator's to say, since it is the
//! operator's key that pays. `OpenAI`'s clients ask for packed numbers unless told otherwise; those are made here.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use confidant_display::debug_without_content;
use confidant_engine::Error;
use confidant_engine::model::{Embedding, EmbeddingInput, ModelError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::body::{Json, reply};
use crate::error::ApiError;
use crate::openapi::OpenAiFailures;

/// Texts to embed. Parameters that are not listed are ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct EmbeddingsRequest {
    /// Any name; the configured model makes the embeddings.
    model: String,
    /// A text, or up to 2048; each may be given as tokens.
    input: Input,
    /// `float` or `base64`.
    encoding_format: Option<String>,
    /// How many numbers each embedding is to have, if the model can choose.
    dimensions: Option<u32>,
}

/// What is to be embedded.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
enum Input {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<u32>),
    ManyTokens(Vec<Vec<u32>>),
}

/// Embeddings, in the order of the texts.
#[derive(Serialize, ToSchema)]
#[schema(as = Embeddings)]
pub(crate) struct EmbeddingList {
    /// `list`.
    object: &'static str,
    data: Vec<EmbeddingObject>,
    /// The model that made them, whatever the request named.
    model: String,
    usage: EmbeddingUsage,
}

/// The embedding of one text.
#[derive(Serialize, ToSchema)]
#[schema(as = Embedding)]
pub(crate) struct EmbeddingObject {
    /// `embedding`.
    object: &'static str,
    index: usize,
    embedding: Numbers,
}

/// Numbers, or the same as the base64 of their little-endian 32-bit form.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Numbers {
    Plain(Vec<f32>),
    Packed(String),
}

/// Tokens that were spent, if the provider counted them.
#[derive(Serialize, ToSchema)]
struct EmbeddingUsage {
    prompt_tokens: u32,
    total_tokens: u32,
}

/// Make embeddings
///
/// Like OpenAI's. The texts go to the provider of the configured model and nowhere else, and nothing is kept of them.
#[utoipa::path(
    post, path = "/v1/embeddings", operation_id = "create_embedding", tag = "openai", security(("bearer" = [])),
    request_body = EmbeddingsRequest,
    responses((status = 200, description = "The embeddings", body = EmbeddingList), OpenAiFailures)
)]
pub(crate) async fn embed(
    State(app): State<App>,
    _: Caller,
    Json(body): Json<EmbeddingsRequest>,
) -> Result<Response, ApiError> {
    let (embedding, is_packed) = body.into_wanted()?;
    let model = app.engine.models().default_model();
    let Some(name) = model.embedding_model() else {
        let message = "no model for embeddings is configured here";
        let hint = "the operator can set model.embedding_model to one that the model's server has";
        return Err(ApiError::new(StatusCode::NOT_FOUND, "no_embedding_model", message, hint).at("model"));
    };
    let asking = tokio::time::timeout(app.settings.request_timeout, model.embed(&embedding));
    let embedded = asking.await.unwrap_or(Err(ModelError::TimedOut)).map_err(Error::Model)?;
    let data = embedded.vectors.into_iter().enumerate().map(|(index, numbers)| EmbeddingObject {
        object: "embedding",
        index,
        embedding: if is_packed { Numbers::Packed(packed(&numbers)) } else { Numbers::Plain(numbers) },
    });
    let tokens = embedded.tokens.unwrap_or(0);
    let usage = EmbeddingUsage { prompt_tokens: tokens, total_tokens: tokens };
    reply(&EmbeddingList { object: "list", data: data.collect(), model: name.to_owned(), usage })
}

fn packed(numbers: &[f32]) -> String {
    STANDARD.encode(numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}

/// What a body asks for: how many texts, and whether the numbers are to be packed.
#[cfg(feature = "fuzzing")]
pub(crate) fn wanted(bytes: &[u8]) -> Result<(usize, bool), ApiError> {
    let (embedding, is_packed) = crate::body::parse::<EmbeddingsRequest>(bytes)?.into_wanted()?;
    Ok((embedding.input.count(), is_packed))
}

impl EmbeddingsRequest {
    /// Checks the request; names the first parameter that cannot be honoured.
    fn into_wanted(self) -> Result<(Embedding, bool), ApiError> {
        let refused = |param, message: &'static str, hint| Err(ApiError::invalid(message, hint).at(param));
        if self.model.trim().is_empty() {
            return refused("model", "`model` is empty", "use any name, such as the one of GET /v1/models");
        }
        let is_packed = match self.encoding_format.as_deref() {
            None | Some("float") => false,
            Some("base64") => true,
            Some(_) => {
                let message = "`encoding_format` is not supported here";
                return refused("encoding_format", message, "use float or base64");
            }
        };
        if self.dimensions.is_some_and(|dimensions| dimensions == 0 || dimensions > MOST_DIMENSIONS) {
            return refused("dimensions", "`dimensions` is out of range", "use 1 to 65536, or leave it out");
        }
        let input = match self.input {
            Input::Text(text) => EmbeddingInput::Texts(vec![text]),
            // An empty list is none of tokens, either.
            Input::Texts(texts) => EmbeddingInput::Texts(texts),
            Input::Tokens(tokens) => EmbeddingInput::Tokens(vec![tokens]),
            Input::ManyTokens(texts) => EmbeddingInput::Tokens(texts),
        };
        let is_any_empty = match &input {
            EmbeddingInput::Texts(texts) => texts.iter().any(String::is_empty),
            EmbeddingInput::Tokens(texts) => texts.iter().any(Vec::is_empty),
        };
        if is_any_empty || !(1..=MOST_INPUTS).contains(&input.count()) {
            let message = "`input` has no text, an empty one, or more than 2048";
            return refused("input", message, "send 1 to 2048 texts, none of them empty");
        }
        Ok((Embedding { input, dimensions: self.dimensions }, is_packed))
    }
}

/// As many as `OpenAI` takes.
const MOST_INPUTS: usize = 2048;
const MOST_DIMENSIONS: u32 = 1 << 16;

debug_without_content!(EmbeddingsRequest);
