//! Memories as resources: `memory://<64 hexadecimal digits>`, each the artifact as JSON.

use confidant_memory::api::{Hits, MemoryHit, QueryRequest};
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, ListResourcesResult,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::access::Access;
use super::arguments::is_sha256;
use super::failure::Failure;

/// What a memory's name begins with.
pub(super) const SCHEME: &str = "memory://";

/// How memories are named.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(TEMPLATE, "memory")
        .with_title("A memory")
        .with_description(
            "The artifact of one session: {session_id, timestamp, memory_card, redaction_report, tags}. The id is what \
             comes after cascade:// in a hit of query_memories.",
        )
        .with_mime_type(JSON)
}

/// A page of memories, the newest first.
pub(super) async fn list(access: &Access, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
    let offset = match cursor {
        None => 0,
        Some(cursor) => cursor.parse::<usize>().ok().filter(|at| *at <= LAST).ok_or_else(|| {
            let message = "the cursor is not valid; hint: pass nextCursor unchanged, or leave it out";
            ErrorData::invalid_params(message, None)
        })?,
    };
    // One more than is shown tells whether there is a next page.
    let request = QueryRequest { limit: PAGE + 1, offset, ..QueryRequest::default() };
    let Hits { mut hits, unreadable, .. } =
        newest(access, &request).await.map_err(|failure| unavailable(&failure))?;
    let more = hits.len() + usize::try_from(unreadable).unwrap_or(PAGE) > PAGE;
    hits.truncate(PAGE);
    let mut page = ListResourcesResult::with_all_items(hits.into_iter().filter_map(resource).collect());
    page.next_cursor = next(offset).filter(|_| more);
    Ok(page)
}

/// The artifact of one memory.
pub(super) async fn read(access: &Access, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let hash = uri.strip_prefix(SCHEME).filter(|hash| is_sha256(hash)).ok_or_else(|| {
        let message = "there is no such resource; hint: resources/list lists them";
        ErrorData::resource_not_found(message, Some(json!({ "uri": named(uri) })))
    })?;
    let own = access.own().await.map_err(|failure| unavailable(&failure))?;
    let found = own.retrieve(&format!("cascade://{hash}"), None).await.map_err(|error| {
        let failure = Failure::from(error);
        if failure.code == "not_found" {
            ErrorData::resource_not_found(failure.to_string(), Some(json!({ "uri": uri })))
        } else {
            unavailable(&failure)
        }
    })?;
    let text = serde_json::to_string_pretty(&found.artifact).unwrap_or_default();
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(JSON)]))
}

/// Ids of memories that begin like this. Nothing else here has values to choose from.
pub(super) async fn complete(access: &Access, request: &CompleteRequestParams) -> CompleteResult {
    let ours = matches!(&request.r#ref, Reference::Resource(template) if template.uri == TEMPLATE);
    if !ours || request.argument.name != "id" {
        return CompleteResult::default();
    }
    let newest = newest(access, &QueryRequest { limit: LOOKED_AT, ..QueryRequest::default() }).await;
    let ids = newest.map(|found| found.hits).unwrap_or_default().into_iter().filter_map(|hit| {
        let id = hit.cascade_uri.strip_prefix("cascade://")?.to_owned();
        id.starts_with(&request.argument.value).then_some(id)
    });
    let values = ids.take(CompletionInfo::MAX_VALUES).collect();
    CompleteResult::new(CompletionInfo::new(values).unwrap_or_default())
}

async fn newest(access: &Access, request: &QueryRequest) -> Result<Hits, Failure> {
    Ok(access.own().await?.list(request).await?)
}

/// The cursor of the page after the one that begins here; none that would be refused.
fn next(offset: usize) -> Option<String> {
    let next = offset + PAGE;
    (next <= LAST).then(|| next.to_string())
}

fn resource(hit: MemoryHit) -> Option<Resource> {
    let hash = hit.cascade_uri.strip_prefix("cascade://")?;
    let title = if hit.title.is_empty() { hit.cass_session_id.clone() } else { hit.title };
    Some(
        Resource::new(format!("{SCHEME}{hash}"), hit.cass_session_id)
            .with_title(title)
            .with_description(format!("{} ({})", hit.snippet, hit.created_at))
            .with_mime_type(JSON),
    )
}

/// A name that may be repeated: one that looks like a resource's and nothing else.
fn named(uri: &str) -> &str {
    let plain = |c: char| c.is_ascii_lowercase() || matches!(c, ':' | '/' | '-' | '.');
    if uri.len() <= 64 && uri.contains("://") && uri.chars().all(plain) { uri } else { "memory://…" }
}

fn unavailable(failure: &Failure) -> ErrorData {
    ErrorData::internal_error(failure.to_string(), Some(json!({ "code": failure.code })))
}

const TEMPLATE: &str = "memory://{id}";
const JSON: &str = "application/json";
/// How many memories a page has.
const PAGE: usize = 50;
/// Where the last page begins: as far as the memory goes.
const LAST: usize = 10_000;
/// Among how many of the newest a completion looks.
const LOOKED_AT: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cursor_is_handed_out_that_would_be_refused() {
        assert_eq!(next(0).as_deref(), Some("50"));
        assert_eq!(next(LAST - PAGE), Some(LAST.to_string()));
        assert_eq!(next(LAST - PAGE + 1), None);
        assert_eq!(next(LAST), None);
    }
}
