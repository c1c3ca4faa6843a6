//! The tools: their names, what is said of them, and what they do to the world.
//!
//! A description says the shape of the result in words, because many clients never show a model the output schema. All of it
//! stands in the context of every session of an agent, so it is short: a test counts it.

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool, ToolAnnotations};

use super::schemas::{self, Schema};

/// A tool of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolName {
    Remember,
    Recall,
    Store,
    Query,
    Retrieve,
    Forget,
    List,
    Import,
    Estimate,
}

impl ToolName {
    pub(super) const ALL: [Self; 9] = [
        Self::Remember,
        Self::Recall,
        Self::Store,
        Self::Query,
        Self::Retrieve,
        Self::Estimate,
        Self::Forget,
        Self::List,
        Self::Import,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Remember => "remember",
            Self::Recall => "recall",
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
            Self::Remember => Described {
                title: "Remember a note",
                text: REMEMBER,
                input: schemas::remember_input(),
                output: schemas::remember_output(),
                effect: Effect::AddsAgain,
            },
            Self::Recall => Described {
                title: "Recall memories",
                text: RECALL,
                input: schemas::recall_input(),
                output: schemas::recall_output(),
                effect: Effect::Reads,
            },
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

/// What a tool does to the world. None goes out into the open: the stores are the owner's own.
#[derive(Clone, Copy)]
enum Effect {
    Reads,
    /// The same thing once, however often it is called.
    Adds,
    /// Once more each time.
    AddsAgain,
    Destroys,
}

fn tool(name: ToolName) -> Tool {
    let Described { title, text, input, output, effect } = name.described();
    let annotations = ToolAnnotations::new()
        .read_only(matches!(effect, Effect::Reads))
        .destructive(matches!(effect, Effect::Destroys))
        .idempotent(!matches!(effect, Effect::AddsAgain))
        .open_world(false);
    Tool::new(name.as_str(), text, Arc::new(input))
        .with_title(title)
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(annotations)
}

const REMEMBER: &str = "\
Remember one note for later sessions: a decision, a preference, a fact. Text is enough. It is redacted first; secrets \
block it.
Returns {ok, cascade_uri, title, redaction {rules_fired}}, or {ok: false, error {code, message, hint}}.";

const RECALL: &str = "\
What earlier sessions left about something, in plain words. Do this before a task. Local.
Returns {ok, memories [{cascade_uri, title, snippet, created_at, score}]}, the best first; score is from 0 to 1. Open \
one with retrieve_session_from_cascade.";

const STORE: &str = "\
Keep the essence of a work session: it is redacted (secrets and personal data become placeholders), a memory card is \
derived, sealed and stored; the transcript is not. Give \"session\", unless the server can look it up by its id. A \
private key, an Authorization header or a bearer token blocks storing; the error names rule and place. \"dry_run\": true \
shows the exact payload and its sha256; \"expect_sha256\" then stores exactly that.
Returns {ok, session_id, cascade_uri, artifact_type, indexed, memory_card {title, summary_bullets, decisions, todos, \
entities, keywords, notable_quotes}, redaction {rules_fired [{rule, count}]}, crypto {enc, bytes, …}, already_stored, \
notes?}, or {ok, dry_run, preview {artifact_type, fields, bytes, sha256, payload, …}, memory_card, redaction, session_index}, \
or {ok: false, error {code, message, hint, places?}}.";

const QUERY: &str = "\
Search memories of earlier sessions: decisions, fixes, open ends. Plain words; any may match. Local: no network.
Returns {ok, hits [{cass_session_id, cascade_uri, artifact_type, title, snippet, tags, created_at, score}], unreadable?}, \
the best first; score is from 0 to 1, higher is better.";

const RETRIEVE: &str = "\
Open one memory by the cascade_uri of a hit. It is fetched, verified and decrypted.
Returns {ok, cascade_uri, artifact_type, artifact {session_id, timestamp, memory_card, redaction_report, tags, \
raw_session?}, crypto {verified}}, or {ok: false, error {code, message, hint}}.";

const FORGET: &str = "\
Forget permanently: destroys the keys of a memory and of those it replaced (cascade_uri), or of all of a session \
(session_id), with index entries and blobs. Give one of them. \"dry_run\": true only shows what would go.
Returns {ok, dry_run, forgotten, permanent, pending, cascade_uris}, or {ok: false, error {code, message, hint}}.";

const LIST: &str = "\
List memories, the newest first. The next page begins at offset + limit.
Returns {ok, hits, unreadable?}, as query_memories.";

const IMPORT: &str = "\
Store memories of coding agents' session files (Claude Code, Codex, Gemini CLI, Aider, OpenCode, Cursor, JSON lines). \
Nothing is stored unless \"dry_run\" is false. What has not changed is skipped, what was forgotten stays forgotten. Local \
clients only.
Returns {ok, dry_run, files, unchanged_files, unreadable_files, unknown_files, sessions, stored, unchanged, blocked, \
refused, forgotten, skipped_lines, left_out_texts, items [{session_id, agent, outcome, title?, cascade_uri?, \
places?}], more_items}, or {ok: false, error {code, message, hint}}.";

const ESTIMATE: &str = "\
What storing an artifact of this size costs, from dated price tables; no network. Cascade is paid once, the others by \
the month.
Returns {ok, bytes, gb, monthly_storage_usd, estimated_request_usd, total_estimated_usd, assumptions {provider, formula, \
price_table, prices_as_of, …}}; amounts are null without an exchange rate.";

#[cfg(test)]
mod tests;
