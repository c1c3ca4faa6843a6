//! What strangers may write, for the fuzz targets: each parser behind a plain function.
//!
//! `Ok` is what was understood; `Err` has every word that whoever sent it would read, none of which may quote it.

use confidant_engine::rights::Receipt;
use confidant_http::fuzzing::{chat_request, embeddings_request, response_request, turn_body};
use confidant_mcp::fuzzing as mcp;
use serde_json::{Map, Value};

use crate::cli::{hooks_tried, parse_receipt};
use crate::config::parse_file;

/// A settings file; gives what was understood, for comparing.
pub fn settings(text: &str) -> Result<String, String> {
    parse_file("confidant.toml", text).map(|config| format!("{config:?}")).map_err(|error| error.to_string())
}

/// A receipt of an erasure, as `confidant audit verify --receipt` reads it.
pub fn receipt(text: &str) -> Result<Receipt, String> {
    parse_receipt(text).map_err(|error| format!("{error:#}"))
}

/// An agent's settings with our hooks, and with them taken out again.
pub fn hooks(agent: &str, text: &str) -> Result<(String, String), String> {
    hooks_tried(agent, text)
}

/// What is read ahead for devices, as a Redis gives it; gives it as it would be written.
#[must_use]
pub fn ahead(bytes: &[u8]) -> Option<Vec<u8>> {
    crate::chats::ahead::rewritten(bytes)
}

/// The body of `POST /api/v1/session/{session_id}/turns`.
pub fn turn(body: &[u8]) -> Result<(), String> {
    turn_body(body)
}

/// The body of `POST /v1/chat/completions`; gives the query and how many messages came before it.
pub fn chat(body: &[u8]) -> Result<(String, usize), String> {
    chat_request(body)
}

/// The body of `POST /v1/responses`; gives the query and how many items came before it.
pub fn response(body: &[u8]) -> Result<(String, usize), String> {
    response_request(body)
}

/// The body of `POST /v1/embeddings`; gives how many texts it has, and whether their numbers are to be packed.
pub fn embeddings(body: &[u8]) -> Result<(usize, bool), String> {
    embeddings_request(body)
}

/// A line of MCP over stdio; gives what is read in its place, or the answer to one that cannot be read and has an id.
pub fn message(line: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
    mcp::message(line)
}

/// The names of the tools over MCP, and of the arguments that each says it takes.
#[must_use]
pub fn tools() -> Vec<(String, Vec<String>)> {
    mcp::tools()
}

/// The arguments of a tool; gives what was understood.
pub fn tool(name: &str, arguments: &Map<String, Value>) -> Result<Value, String> {
    mcp::tool(name, arguments)
}

/// The arguments of the prompt; gives the prompt as JSON.
pub fn prompt(name: &str, arguments: &Map<String, Value>) -> Result<String, String> {
    mcp::prompt(name, arguments)
}
