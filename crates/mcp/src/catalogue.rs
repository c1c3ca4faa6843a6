//! The tools: their names, what is said of them, and what they do to the world.
//!
//! A description says the shape of the result in words, because many clients never show a model the output schema.

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool, ToolAnnotations};

use super::schemas::{self, Schema};

/// A tool of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolName {
    Store,
    Query,
    Retrieve,
    Forget,
    List,
    Import,
    Estimate,
}

impl ToolName {
    pub(super) const ALL: [Self; 7] =
        [Self::Store, Self::Query, Self::Retrieve, Self::Estimate, Self::Forget, Self::List, Self::Import];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store_session_to_cascade",
            Self::Query => "query_memories",
            Self::Retrieve => "retrieve_session_from_cascade",
            Self::Forget => "forget_memory",
            Self::List => "list_memories",
            Self::Import => "import_sessions",
            Self::Estimate => "estimate_storage_cost",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    fn described(self) -> Described {
        match self {
            Self::Store => Described {
                title: "Store a session's memory",
                text: STORE,
                input: schemas::store_input(),
                output: schemas::store_output(),
                effect: Effect::Adds,
            },
            Self::Query => Described {
                title: "Search memories",
                text: QUERY,
                input: schemas::query_input(),
                output: schemas::hits_output(),
                effect: Effect::Reads,
            },
            Self::Retrieve => Described {
                title: "Open a memory",
                text: RETRIEVE,
                input: schemas::retrieve_input(),
                output: schemas::retrieve_output(),
                effect: Effect::Reads,
            },
            Self::Forget => Described {
                title: "Forget a memory",
                text: FORGET,
                input: schemas::forget_input(),
                output: schemas::forget_output(),
                effect: Effect::Destroys,
            },
            Self::List => Described {
                title: "List memories",
                text: LIST,
                input: schemas::list_input(),
                output: schemas::hits_output(),
                effect: Effect::Reads,
            },
            Self::Import => Described {
                title: "Import session files",
                text: IMPORT,
                input: schemas::import_input(),
                output: schemas::import_output(),
                effect: Effect::Adds,
            },
            Self::Estimate => Described {
                title: "Estimate storage cost",
                text: ESTIMATE,
                input: schemas::estimate_input(),
                output: schemas::estimate_output(),
                effect: Effect::Reads,
            },
        }
    }
}

/// Every tool, as clients see it.
pub(super) fn all() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| ToolName::ALL.into_iter().map(tool).collect());
    &TOOLS
}

/// The tool of this name, as clients see it.
pub(super) fn named(name: &str) -> Option<&'static Tool> {
    all().iter().find(|tool| tool.name == name)
}

struct Described {
    title: &'static str,
    text: &'static str,
    input: Schema,
    output: Schema,
    effect: Effect,
}

/// What a tool does to the world. All of them do the same thing when called twice, and none goes out into the open: the
/// stores are the owner's own.
#[derive(Clone, Copy)]
enum Effect {
    Reads,
    Adds,
    Destroys,
}

fn tool(name: ToolName) -> Tool {
    let Described { title, text, input, output, effect } = name.described();
    let annotations = ToolAnnotations::with_title(title)
        .read_only(matches!(effect, Effect::Reads))
        .destructive(matches!(effect, Effect::Destroys))
        .idempotent(true)
        .open_world(false);
    Tool::new(name.as_str(), text, Arc::new(input))
        .with_title(title)
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(annotations)
}

const STORE: &str = "\
Keep the essence of a work session for later sessions: it is redacted (secrets and personal data become placeholders), a \
memory card is derived, sealed and stored; the transcript is not. Use it when something worth remembering was done or \
decided. Give \"session\" with what happened, unless the server can look the session up by its id. A private key, an \
Authorization header or a bearer token anywhere in it blocks storing, and the error names the rule and the place. \"dry_run\": true shows the exact \
payload and its sha256 and stores nothing; \"expect_sha256\" then stores exactly that.
Returns {ok, session_id, cascade_uri, artifact_type, indexed, memory_card {title, summary_bullets, decisions, todos, \
entities, keywords, notable_quotes}, redaction {rules_fired [{rule, count}]}, crypto {enc, bytes, …}, already_stored, \
notes?}, or for a dry run {ok, dry_run, preview {artifact_type, fields, bytes, sha256, payload, …}, memory_card, redaction}, \
or {ok: false, error {code, message, hint, places?}}.";

const QUERY: &str = "\
Search memories of earlier sessions: decisions, fixes, open ends. Do this before starting a task. Use plain words; any \
of them may match. Local and private: it does not use the network.
Returns {ok, hits [{cass_session_id, cascade_uri, artifact_type, title, snippet, tags, created_at, score}], unreadable?}, \
the best first (a lower score is better); no hits is an empty list. Hits are short: pass a cascade_uri to \
retrieve_session_from_cascade for the whole card. Use offset for more.";

const RETRIEVE: &str = "\
Open one memory that query_memories or list_memories found. It is fetched, verified and decrypted; a tampered one is not \
returned.
Returns {ok, cascade_uri, artifact_type, artifact {session_id, timestamp, memory_card, redaction_report, tags, \
raw_session?}, crypto {verified}}, or {ok: false, error {code, message, hint}}.";

const FORGET: &str = "\
Forget permanently: destroys the keys of a memory and of those it replaced (cascade_uri), or of all memories of a session \
(session_id), their index entries and their blobs. It cannot be undone; \"dry_run\": true only shows what would be forgotten.
Returns {ok, dry_run, forgotten, permanent, pending, cascade_uris}, or {ok: false, error {code, message, hint}}.";

const LIST: &str = "\
List memories, the newest first, a page at a time.
Returns {ok, hits [{cass_session_id, cascade_uri, artifact_type, title, snippet, tags, created_at, score}], unreadable?}; \
no hits is an empty list. The next page begins at offset + limit.";

const IMPORT: &str = "\
Store memories of sessions from the files of coding agents (Claude Code, Codex, Gemini CLI, Aider, \
OpenCode, Cursor, JSON lines). Unless you give \"dry_run\": false, nothing is stored, and the result says what would be. \
Files and sessions that have not changed since the last import are skipped, forgotten ones stay forgotten, and sessions with a \
private key or a similar secret are left out. It is refused over HTTP: files are read only for local clients.
Returns {ok, dry_run, files, unchanged_files, unreadable_files, unknown_files, sessions, stored, unchanged, blocked, \
refused, forgotten, skipped_lines, left_out_texts, items [{session_id, agent, outcome, title?, cascade_uri?, \
places?}], more_items}, or \
{ok: false, error {code, message, hint}}.";

const ESTIMATE: &str = "\
Estimate what storing an artifact of this size costs, from dated price tables; no network. Cascade is paid once, the \
others by the month.
Returns {ok, bytes, gb, monthly_storage_usd, estimated_request_usd, total_estimated_usd, assumptions {provider, formula, \
price_table, prices_as_of, …}}; amounts that need an exchange rate are null if none is set.";

#[cfg(test)]
mod tests;
