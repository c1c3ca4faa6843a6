//! The bodies that routes take, read as the routes read them but without a request around them.

use super::body::parse;
use super::error::ApiError;
use super::openai;
use super::turns::TurnBody;

/// The body of a turn.
pub fn turn_body(bytes: &[u8]) -> Result<(), String> {
    parse::<TurnBody>(bytes).map(drop).map_err(words)
}

/// A chat completion: the query, and how many messages came before it.
pub fn chat_request(bytes: &[u8]) -> Result<(String, usize), String> {
    openai::wanted(bytes).map_err(words)
}

/// A request for embeddings: how many texts, and whether the numbers are to be packed.
pub fn embeddings_request(bytes: &[u8]) -> Result<(usize, bool), String> {
    openai::wanted_embeddings(bytes).map_err(words)
}

/// A response: the query, and how many items came before it.
pub fn response_request(bytes: &[u8]) -> Result<(String, usize), String> {
    openai::wanted_response(bytes).map_err(words)
}

fn words(error: ApiError) -> String {
    let param = error.param.as_deref().unwrap_or_default();
    format!("{} {} {} {param}", error.code, error.message, error.hint)
}
