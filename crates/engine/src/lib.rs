//! What a conversation is: sessions, their sealed log, and the life of a turn.
//!
//! An [`Engine`] is opened on a [`Storage`] with a [`KeySource`] and a [`Model`]. Ask it for the [`Session`] of a
//! [`Scope`] and run a [`Turn`]; that is all a channel does. A session is the only door to its data: the stores are
//! private to this crate, and another scope's key does not open the row even if a query is wrong.
//!
//! ```
//! # use std::sync::Arc;
//! # use confidant_engine::*;
//! # #[derive(Debug)] struct Keys;
//! # impl KeySource for Keys {
//! #     fn load(&self) -> Result<MasterKeys, KeySourceError> {
//! #         Ok(MasterKeys { current: MasterKey::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap(), retired: vec![] })
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let parts = Parts::new(Storage::memory(), Arc::new(Keys), Arc::new(Extractive::default()));
//! let engine = Engine::open(parts).await?;
//! let scope = Scope::parse(TenantId::new("acme")?, "discord_conv:111")?;
//! let session = engine.session(scope, Actor::cli());
//! let say = |query: &str| TurnRequest { query: query.to_owned(), ..TurnRequest::default() };
//! session.turn(say("Hello, I'm Alice and I prefer Rust")).finish().await?;
//! let answer = session.turn(say("What is my name?")).finish().await?;
//! assert!(answer.content.contains("Alice"));
//! # Ok(()) }
//! ```

mod about;
mod access;
mod amend;
mod anchors;
mod approval;
mod aspects;
mod audience;
mod audit;
mod beside;
mod bus;
mod checkpoint;
mod clock;
mod concepts;
mod copy;
mod counts;
mod derived;
mod engine;
mod entry;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod keyring;
mod legacy;
mod log;
mod model;
mod notices;
mod retention;
mod rights;
mod room;
mod running;
mod session;
mod store;
mod tokens;
mod tools;
mod turn;

pub use about::About;
pub use access::{Bearer, Role, Wish};
pub use approval::{ApprovalRequest, Approver, Decider, Decision};
pub use aspects::{
    AppsNote, Aspect, AspectFailed, Aspects, AudienceNote, Catalogue, Fault, Fixed, FocusMode,
    InjectionWarning, Instructions, LanguageNote, Mate, Profile, ProfileNote, Situation, Slot,
};
pub use audience::{Audience, Sharing};
pub use audit::{Action, Actor, AuditLine, AuditRecord, Lane};
pub use beside::Beside;
pub use bus::{BusAddress, BusSettings, Speech, Worker};
pub use clock::{Clock, ManualClock, Millis, SystemClock};
pub use concepts::{
    ApprovedConcept, Candidate, CaptureWhen, ConceptChoice, ConceptInScope, ConceptSettings, Concepts,
    ConceptsOfTurn, ContextStatus, ConversationContext, ConversationContextAspect, ConversationIdentity,
    InScope, Reason, ScopeView, Uncertainty,
};
pub use confidant_concepts::{Concept, Graph, GraphError, Look, Node};
pub use confidant_seal::{
    ChannelName, KeyError, Kid, MasterKey, PlaceId, Scope, ScopeError, TenantId, ThreadId, UserId,
};
pub use copy::{Copied, copy};
pub use counts::Counts;
pub use derived::Derived;
pub use engine::{
    DataPlace, Durability, Engine, HistoryLimits, KeyStatus, KeyringPlace, Parts, PostgresAddress,
    PostgresSettings, Processing, Recovered, Recovery, RedisAddress, RedisNames, RedisSettings, Settings,
    Stopped, Storage, WeakEngine,
};
pub use error::{Error, KeySourceError, OpenError, StoreError, Tampering};
pub use keyring::{KeySource, MasterKeys, Rotated};
pub use legacy::{Imported, Way, import_checkpoints};
pub use model::{
    Answer, Block, BlockLine, Calling, ChosenModel, Deltas, Extractive, Form, FormStyle, Model, ModelError,
    Models, Prompt, PromptMessage, Provider, Remote, RemoteSettings, RemoteSetupError, Role as MessageRole,
    Sampling, Step, ToolCall, ToolSpec, Usage, Voice,
};
pub use notices::Notice;
pub use retention::Lifetimes;
pub use rights::{
    Administrator, Export, ExportedMessage, ExportedSummary, MessageKind, PersonExport, Receipt,
    ReceiptProof, SessionSummary, Verified,
};
pub use room::{RoomContext, RoomLimits, RoomLine, is_invisible};
pub use session::Session;
pub use tools::{
    Effect, Invocation, Tool, ToolError, ToolLimits, ToolOutput, ToolPolicy, ToolRule, Toolbox, Verdict,
};
pub use turn::{
    CarryOut, Decay, Ending, Enrichment, Final, Harm, HarmScores, Measure, MemoryState, Metadata, Offer,
    OfferedModel, Outbound, PastChat, Prepared, PreparedBy, Restore, RunningHarm, Safety, SafetyAction,
    SafetyDecision, SafetyRule, SafetyRules, SafetyText, SafetyTexts, Standing, TokenUsage, Told, Turn,
    TurnRequest, View, plain_words,
};
