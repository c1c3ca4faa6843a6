//! The machine-readable description of this surface, served at `/openapi.json`.
//!
//! Paths come from the routes themselves (see [`build`](super::build)), so neither can be forgotten. The schemas below
//! stand for types of the engine, which knows nothing of HTTP; a test holds them against what is really sent.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::schema::OneOfBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, ResponseBuilder, Schema};
use utoipa::{IntoResponses, Modify, OpenApi, PartialSchema, ToSchema};

use super::App;
use super::error::{ErrorBody, OpenAiErrorBody};
use super::sessions::WouldErase;

/// The description without its paths, which the routes bring.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "Confidant",
        description = "The private memory of AI agents. Every answer but health and this description wants a bearer \
                       token; the tenant is the token's. Errors say what happened and what to do next.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    tags(
        (name = "session", description = "One conversation: turns, decisions, export, erasure"),
        (name = "approval", description = "Calls that somebody must approve, in whatever session they wait"),
        (name = "person", description = "Everything of one person"),
        (name = "openai", description = "Drop-in for OpenAI clients, with memory per `user` or per session"),
        (name = "server", description = "The server itself"),
    ),
    components(schemas(ErrorBody, OpenAiErrorBody)),
    modifiers(&BearerToken)
)]
pub(super) struct Description;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let bearer =
            bearer.description(Some("A token of `confidant token new`, or confidant-data/admin.token"));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
    }
}

/// This description
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "server",
    responses((status = 200, description = "An OpenAPI 3.1 document", body = Object))
)]
pub(super) async fn document(State(app): State<App>) -> Response {
    let media = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, media)], app.description.clone()).into_response()
}

/// What any route of ours can answer besides success.
pub(super) struct Failures;

impl IntoResponses for Failures {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        failures("Error")
    }
}

/// The same, in OpenAI's form.
pub(super) struct OpenAiFailures;

impl IntoResponses for OpenAiFailures {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        failures("OpenAiError")
    }
}

fn failures(schema: &str) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let texts = [
        ("400", "The request is not acceptable as it is"),
        ("401", "No token, or an unknown one"),
        ("403", "The token may not do that"),
        ("404", "There is nothing of that name"),
        ("408", "The body did not arrive in time"),
        (
            "409",
            "The request_id is taken, another turn is running, the approval is decided or expired, or the turn was cancelled or its session erased meanwhile",
        ),
        ("413", "The body is too large"),
        ("415", "The body is not declared as JSON"),
        ("429", "Too many requests; Retry-After says when"),
        ("500", "A fault of this program, or stored data that was altered"),
        ("502", "The model gave no answer"),
        ("503", "Stopping, or the store does not answer"),
        ("504", "Not finished in time; the turn goes on"),
        ("507", "The disk is full"),
    ];
    let response = |text: &str| {
        let content = Content::new(Some(Ref::from_schema_name(schema)));
        ResponseBuilder::new().description(text).content("application/json", content).build()
    };
    texts.into_iter().map(|(status, text)| (status.to_owned(), RefOr::T(response(text)))).collect()
}

/// What an erasure answers: its receipt, or on a dry run what would go.
pub(super) struct Erased;

impl PartialSchema for Erased {
    fn schema() -> RefOr<Schema> {
        let one_of = OneOfBuilder::new().item(Ref::from_schema_name("Receipt"));
        RefOr::T(one_of.item(Ref::from_schema_name("WouldErase")).into())
    }
}

impl ToSchema for Erased {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ReceiptSchema::name().into_owned(), ReceiptSchema::schema()));
        schemas.push((WouldErase::name().into_owned(), WouldErase::schema()));
    }
}

/// Who reads a message and its answer.
#[derive(ToSchema)]
#[schema(as = Audience, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) enum AudienceSchema {
    /// Only the person and the agent.
    Private,
    /// Everyone in the room.
    Room,
}

/// What memory did in a turn.
#[derive(ToSchema)]
#[schema(as = MemoryState, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) enum MemorySchema {
    /// The turn is in the log.
    Kept,
    /// The turn was asked to go without.
    Off,
    /// The log could not be opened; nothing was recalled and nothing saved over it.
    Unavailable,
    /// The person asked to be forgotten.
    Forgotten,
}

/// How an answer came about.
#[derive(ToSchema)]
#[schema(as = Metadata)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct MetadataSchema {
    /// What memory did in this turn.
    memory: MemorySchema,
    /// Why memory could not be used, by name.
    memory_error: Option<String>,
    /// Who will read the answer.
    audience: AudienceSchema,
    /// The model that answered.
    model: Option<String>,
    /// Messages of the history that the model saw.
    recalled: u64,
    /// Messages that were left out because of the audience.
    #[schema(required = false)]
    withheld: u64,
    /// Messages that the application sent along and that did not fit the prompt, the oldest of them.
    #[schema(required = false)]
    left_out: u64,
    /// Room lines that the model saw.
    room_lines: u64,
    /// Whether the answer is the recorded one of an earlier request with the same id.
    #[schema(required = false)]
    replayed: bool,
    /// Whether the turn was cut off before and taken up again.
    #[schema(required = false)]
    resumed: bool,
    /// Parts of the system prompt that failed and were left out.
    #[schema(required = false)]
    failed_aspects: Vec<String>,
    /// Tools that were called, in their order.
    #[schema(required = false)]
    tools: Vec<String>,
    /// Whether the beginning of the conversation was given in few words, since it no longer fits.
    #[schema(required = false)]
    compressed: bool,
    /// Exchanges at the beginning of the conversation that are kept no longer; only a summary can still tell of them.
    #[schema(required = false)]
    dropped: u64,
    /// What was found out about the turn.
    preparation: Option<PreparationSchema>,
    /// The mate that answered, by name.
    mate: Option<String>,
    /// The focus mode that is on after the turn.
    focus: Option<String>,
    /// What was done about harm.
    #[schema(required = false)]
    safety: Vec<String>,
    /// Whether the answer was to be judged before it was heard, and was not, since the small model failed.
    #[schema(required = false)]
    unjudged: bool,
    /// Settings and memories of the client that would have helped: a new turn can bring them.
    #[schema(required = false)]
    requested_settings: Vec<String>,
    /// What became of the concepts in scope; missing where concepts are off.
    context_status: Option<ContextStatusSchema>,
    /// The concepts that the answer is about.
    concepts: Option<ConceptsOfTurnSchema>,
    /// Approvals in this session that somebody has still to decide.
    #[schema(required = false)]
    pending_approvals: u64,
    /// Tokens of prompt and answer.
    usage: Option<TokenUsageSchema>,
    /// What was erased, when the person asked to be forgotten.
    receipt: Option<ReceiptSchema>,
}

/// What became of the concepts in a turn.
#[derive(ToSchema)]
#[schema(as = ContextStatus, rename_all = "snake_case")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) enum ContextStatusSchema {
    /// Concepts are off, or the turn is without memory.
    Off,
    /// There are none in scope.
    Empty,
    /// Those in scope were told to the model.
    Loaded,
    /// They could not be loaded; nothing was saved over them.
    LoadFailed,
    /// The graph did not answer, so the model was told nothing of them.
    GraphFailed,
    /// What this turn added could not be saved.
    SaveFailed,
}

/// How well an answer stands on the shared graph. Not a judgement of its truth.
#[derive(ToSchema)]
#[schema(as = Uncertainty, rename_all = "snake_case")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) enum UncertaintySchema {
    /// Every concept it names is in the shared graph.
    Low,
    /// Some are, or it builds on those in scope.
    Medium,
    /// None is, or it is not known.
    High,
}

/// The concepts that an answer is about.
#[derive(ToSchema)]
#[schema(as = ConceptsOfTurn)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ConceptsOfTurnSchema {
    /// Their ids.
    #[schema(required = false)]
    referenced_nodes: Vec<String>,
    /// Whose law it is.
    #[schema(required = false)]
    jurisdictions: Vec<String>,
    /// How well the answer stands on them.
    uncertainty_level: UncertaintySchema,
}

/// What is in scope of a conversation.
#[derive(ToSchema)]
#[schema(as = ScopeView)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ScopeViewSchema {
    /// The conversation.
    conversation_id: String,
    /// Ids, the most important first.
    #[schema(rename = "activeNodeIds")]
    active_node_ids: Vec<String>,
    /// The same with what is known of them.
    concepts: Vec<ConceptInScopeSchema>,
    /// Whether they could be described.
    context_status: ContextStatusSchema,
}

/// A concept in scope.
#[derive(ToSchema)]
#[schema(as = ConceptInScope)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ConceptInScopeSchema {
    /// Its id.
    id: String,
    /// What it is called.
    label: String,
    /// Whose law it is.
    jurisdiction: Option<String>,
    /// What it is.
    description: Option<String>,
    /// Whether it stays in scope whatever else comes.
    pinned: bool,
    /// In how many turns it was used.
    uses: u64,
    /// When it was last, in milliseconds since 1970.
    last_used: Option<i64>,
    /// Whether it waits to be approved into the shared graph.
    candidate: bool,
}

/// One reason why a concept is in scope.
#[derive(ToSchema)]
#[schema(as = ScopeReason)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ReasonSchema {
    /// When, in milliseconds since 1970.
    at: i64,
    /// `used`, `pinned` or `unpinned`.
    what: String,
    /// The turn; missing if it was somebody else's.
    request_id: Option<String>,
    /// Whether it was this person.
    yours: bool,
    /// Who could read that turn.
    audience: AudienceSchema,
}

/// A captured concept that waits to be approved.
#[derive(ToSchema)]
#[schema(as = Candidate, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct CandidateSchema {
    /// Its id.
    id: String,
    /// The subject area.
    domain: String,
    /// The code or type.
    kind: String,
    /// Whose law it is.
    jurisdiction: String,
    /// What it is called.
    pref_label: String,
    /// What else.
    #[schema(required = false)]
    alt_labels: Vec<String>,
    /// What it is.
    definition: Option<String>,
    /// Where that is written.
    #[schema(required = false)]
    source_urls: Vec<String>,
    /// Whether its label is what a person said, word for word.
    said: bool,
    /// In how many turns it was captured.
    captures: u64,
    /// By which sessions, as tags.
    sessions: Vec<String>,
    /// When first, in milliseconds since 1970.
    first: i64,
    /// When last.
    last: i64,
}

/// What an approval put into the shared graph.
#[derive(ToSchema)]
#[schema(as = ApprovedConcept, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ApprovedSchema {
    /// Its id.
    id: String,
    /// What it is called there.
    pref_label: String,
}

/// What was found out about a turn.
#[derive(ToSchema)]
#[schema(as = Preparation)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct PreparationSchema {
    /// The language of the request, two letters.
    language_code: String,
    /// What it is about.
    category: String,
    /// The model that answers, by its name in the settings.
    selected_model: String,
    /// Why that one.
    selection_reason: String,
    /// How harmful the request is, by kind, 0 to 10.
    harm: HarmSchema,
    /// How likely it tries to take over the agent, 0 to 10.
    prompt_injection_chance: f32,
    /// At most 10.
    tags: Vec<String>,
    /// Tools that may help.
    relevant_app_skills: Vec<String>,
    /// Focus modes that may help.
    relevant_app_focus_modes: Vec<String>,
    /// Settings and memories that may help.
    relevant_app_settings_and_memories: Vec<String>,
    /// A title for the conversation, while it has none.
    title: Option<String>,
    /// Icons for it, by their Lucide names, while it has none.
    #[schema(required = false)]
    icon_names: Vec<String>,
    /// `model` or `rules`.
    by: String,
}

/// A score from 0 to 10 for every kind of harm.
#[derive(ToSchema)]
#[schema(as = Harm)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct HarmSchema {
    direct_self_harm: f32,
    indirect_self_harm: f32,
    gradual_escalation_patterns: f32,
    emotional_distress_indicators: f32,
    illegal: f32,
}

/// What a person chose to have known in a turn.
#[derive(ToSchema)]
#[schema(as = Profile)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ProfileSchema {
    /// How they like to learn.
    learning_style: Option<String>,
    /// Interests that they chose to show.
    #[schema(required = false)]
    interests: Vec<String>,
    /// Whose law matters to them, by code.
    #[schema(required = false)]
    jurisdictions: Vec<String>,
    /// What they are, such as `self-employed`.
    persona: Option<String>,
}

/// A conversation of the past.
#[derive(ToSchema)]
#[schema(as = PastChat)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct PastChatSchema {
    /// Its title.
    #[schema(required = false)]
    title: String,
    /// It in few words.
    summary: String,
}

/// What is known about a conversation as a whole.
#[derive(ToSchema)]
#[schema(as = About)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct AboutSchema {
    /// Its title.
    title: Option<String>,
    /// Icons for it.
    #[schema(required = false)]
    icon_names: Vec<String>,
    /// What it is about.
    category: Option<String>,
    /// What was made of its last turn.
    enrichment: Option<EnrichmentSchema>,
    /// Whether somebody should look at it.
    #[schema(required = false)]
    flagged_for_review: bool,
    /// The focus mode that is on.
    focus: Option<String>,
    /// Whether it was ended for safety.
    #[schema(required = false)]
    terminated: bool,
}

/// What was made of a turn.
#[derive(ToSchema)]
#[schema(as = Enrichment)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct EnrichmentSchema {
    /// Up to 6.
    #[schema(required = false)]
    follow_up_suggestions: Vec<String>,
    /// Up to 6.
    #[schema(required = false)]
    new_chat_suggestions: Vec<String>,
    /// Two or three sentences.
    chat_summary: Option<String>,
    /// At most 10.
    #[schema(required = false)]
    chat_tags: Vec<String>,
    /// For software.
    #[schema(required = false)]
    next_step_suggestions: Vec<String>,
    /// 0 to 10.
    harmful_response: f32,
}

/// A call that somebody must approve.
#[derive(ToSchema)]
#[schema(as = Approval)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ApprovalSchema {
    /// Names the approval.
    approval_id: String,
    /// What to say where there are no buttons: `approve CODE` or `deny CODE`.
    code: String,
    /// The question, in words.
    question: String,
    /// The answers to it.
    options: Vec<DecisionSchema>,
    /// The tool that would be called.
    tool: String,
    /// With exactly these arguments.
    #[schema(value_type = Value)]
    arguments: serde_json::Value,
    /// The hash of the call; a decision that gives it is of this call and no other.
    hash: String,
    /// Until when it can be decided, in milliseconds since 1970.
    expires_at: i64,
    /// The turn that waits for it.
    request_id: String,
    /// Who was to read the turn's answer.
    audience: AudienceSchema,
}

/// How an answer came about, or what somebody must approve before there is one.
#[derive(ToSchema)]
#[schema(as = Confidant)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes types of the engine")]
pub(super) enum ConfidantSchema {
    Answer(Box<MetadataSchema>),
    Approval(Box<ApprovalSchema>),
}

/// What a person decides.
#[derive(ToSchema)]
#[schema(as = Decision, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) enum DecisionSchema {
    /// The call is made.
    Approve,
    /// It is not.
    Deny,
}

/// Tokens of a turn.
#[derive(ToSchema)]
#[schema(as = TokenUsage)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct TokenUsageSchema {
    /// Tokens of the prompt.
    prompt_tokens: u32,
    /// Tokens of the answer.
    completion_tokens: u32,
}

/// One message of a room.
#[derive(ToSchema)]
#[schema(as = RoomLine)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct RoomLineSchema {
    /// Who said it, by the platform's own id.
    sender: String,
    /// What was said.
    content: String,
    /// When: Unix time in seconds (milliseconds are recognised).
    #[schema(required = false)]
    timestamp: u64,
    /// Whether the agent itself said it.
    #[schema(required = false)]
    is_bot: bool,
    /// The platform's id of this message, for edits.
    event_id: Option<String>,
    /// The message that this one replaces.
    replaces: Option<String>,
    /// Whether the message was taken back.
    #[schema(required = false)]
    redacted: bool,
}

/// A session's content, decrypted and portable.
#[derive(ToSchema)]
#[schema(as = Export)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ExportSchema {
    /// The form of this document.
    format: String,
    /// Whose memory it is.
    session_id: String,
    /// When it was exported, in milliseconds since 1970.
    exported_at: i64,
    /// The log's version.
    version: u64,
    /// What was said, oldest first.
    messages: Vec<ExportedMessageSchema>,
    /// What is known about the conversation as a whole.
    about: Option<AboutSchema>,
    /// Its beginning in few words, where it has become too long.
    #[schema(required = false)]
    summaries: Vec<ExportedSummarySchema>,
    /// The concepts that its turns named, and what was done with them by hand, oldest first.
    #[schema(required = false, value_type = Vec<Object>)]
    concepts: Vec<serde_json::Value>,
}

/// The beginning of a conversation in few words.
#[derive(ToSchema)]
#[schema(as = ExportedSummary)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ExportedSummarySchema {
    /// Who may hear it.
    audience: AudienceSchema,
    /// When it was made, in milliseconds since 1970.
    timestamp: i64,
    /// The words.
    content: String,
}

/// One message of an export.
#[derive(ToSchema)]
#[schema(as = ExportedMessage)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ExportedMessageSchema {
    /// `human`, `ai` or `tool`.
    r#type: String,
    /// What was said.
    content: String,
    /// When, in milliseconds since 1970.
    timestamp: i64,
    /// Who could read it.
    audience: AudienceSchema,
    /// The turn it belongs to.
    request_id: String,
    /// The model or tool that spoke.
    name: Option<String>,
    /// What a tool was called with.
    #[schema(value_type = Option<Value>)]
    arguments: Option<serde_json::Value>,
    /// Why the message has no answer, if its turn ended without one.
    unanswered: Option<String>,
}

/// Everything that is kept of a person.
#[derive(ToSchema)]
#[schema(as = PersonExport)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct PersonExportSchema {
    /// The form of this document.
    format: String,
    /// Who it is about.
    user_id: String,
    /// When it was exported, in milliseconds since 1970.
    exported_at: i64,
    /// Their sessions.
    sessions: Vec<ExportSchema>,
    /// Sessions of theirs that could not be opened, by the name of the reason.
    #[schema(required = false)]
    unreadable: Vec<String>,
    /// Their memories: cards of sessions, the transcripts that are kept, and where the artifacts are. One whose artifact
    /// could not be fetched says so in `unreadable`.
    #[schema(required = false, value_type = Vec<Object>)]
    memories: Vec<serde_json::Value>,
}

/// Proof of an erasure, which `confidant audit verify` checks.
#[derive(ToSchema)]
#[schema(as = Receipt)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ReceiptSchema {
    /// What was erased: `session` or `person`.
    erased: String,
    /// Whose, as a tag.
    subject: String,
    /// When, in milliseconds since 1970.
    at: i64,
    /// Sessions that went.
    sessions: u64,
    /// Log records that went.
    records: u64,
    /// Access tokens of the person that went.
    tokens: u64,
    /// What was derived from the person's conversations and went, by name, such as `memories`.
    #[schema(required = false)]
    derived: std::collections::BTreeMap<String, u64>,
    /// The data keys that were destroyed, by id.
    keys: Vec<String>,
    /// The lane of the audit log that has the record of it; 0 if missing.
    #[schema(required = false)]
    audit_lane: u32,
    /// That record's sequence.
    audit_seq: u64,
    /// That record's tag.
    audit_tag: String,
    /// Signature over all of the above.
    signature: String,
}
