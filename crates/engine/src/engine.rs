//! The engine: everything a running Confidant shares, behind one handle.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use confidant_model::{Attachment, Model, ModelError, Models, Sampling};
use confidant_redact::{Options as RedactOptions, Redactor};
use confidant_seal::{Kid, Scope, Tag, TenantId};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::approval;
use crate::aspects::{Aspects, Instructions};
use crate::clock::{Clock, Millis, SystemClock};
use crate::concepts::Concepts;
use crate::counts::{Counters, Counts};
use crate::error::{Error, OpenError, StoreError};
use crate::inner::Inner;
use crate::ledger::Ledger;
use crate::ledger::accounts::AccountKeys;
use crate::ledger::anchors::keep_anchoring;
use crate::ledger::audit::{Action, Actor, AuditRecord};
use crate::ledger::derived::Derived;
use crate::ledger::epoch::Epoch;
use crate::ledger::erasures::Erasures;
use crate::ledger::headroom::Headroom;
use crate::ledger::keyring::{KeySource, Keyring, Rotated};
use crate::ledger::retention;
use crate::ledger::rights::Administrator;
use crate::ledger::session::Session;
use crate::ledger::slots::Slots;
use crate::ledger::storage::Storage;
use crate::ledger::web_scope::is_web;
use crate::notices::{Agenda, Notice, Notices};
use crate::running::Running;
use crate::settings::Settings;
use crate::staff::Staff;
use crate::store::volatile::{BesideKeys, BesideStore, Volatile};
use crate::store::{Instance, KeyStore, Store, random_id};
use crate::tools::{NoTools, ToolPolicy, Toolbox};
use crate::turn::{self, Cancels, LeftOpen, Recovered, Safety, Turn, TurnRequest};
use crate::web::WebSessions;

/// A running engine. Clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// An engine that may have been let go of: what the engine itself holds on to can hold this without keeping it alive.
#[derive(Clone, Debug)]
pub struct WeakEngine {
    inner: Weak<Inner>,
}

impl WeakEngine {
    /// The engine, if somebody still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<Engine> {
        self.inner.upgrade().map(|inner| Engine { inner })
    }
}

/// What an engine is made of.
#[derive(Debug)]
pub struct Parts {
    /// Where data and keys are kept.
    pub storage: Storage,
    /// Where master keys come from.
    pub keys: Arc<dyn KeySource>,
    /// Who answers.
    pub models: Models,
    /// What the system prompt says.
    pub aspects: Aspects,
    /// The files that some of it comes from, for what they offer to choose from.
    pub instructions: Instructions,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Tools that models may call.
    pub toolbox: Arc<dyn Toolbox>,
    /// Who may have them called.
    pub policy: ToolPolicy,
    /// What is done about harm.
    pub safety: Safety,
    /// Limits and lifetimes.
    pub settings: Settings,
    /// How long sessions on some channels live, whatever they are keyed by; the others as [`Lifetimes`](crate::Lifetimes) say.
    pub channel_lifetimes: BTreeMap<String, Duration>,
    /// What else is kept of people, which their rights cover.
    pub derived: Vec<Arc<dyn Derived>>,
    /// The concepts in scope of conversations; off unless given.
    pub concepts: Concepts,
    /// Space that is kept back for erasing on a full disk, where there is some.
    pub headroom: Option<Arc<dyn Headroom>>,
}

impl Parts {
    /// Parts with the machine's clock, no aspects and default settings.
    #[must_use]
    pub fn new(storage: Storage, keys: Arc<dyn KeySource>, model: Arc<dyn Model>) -> Self {
        let (clock, aspects, settings) = (Arc::new(SystemClock), Aspects::default(), Settings::default());
        let (models, instructions) = (Models::one(model), Instructions::default());
        let (toolbox, policy, safety) = (Arc::new(NoTools), ToolPolicy::default(), Safety::default());
        let (derived, concepts) = (Vec::new(), Concepts::default());
        Self {
            storage,
            keys,
            models,
            aspects,
            instructions,
            clock,
            toolbox,
            policy,
            safety,
            settings,
            channel_lifetimes: BTreeMap::new(),
            derived,
            concepts,
            headroom: None,
        }
    }
}

/// How a stop went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Turns that were still running and are left for the next start.
    pub parked: u64,
}

impl Engine {
    /// Opens an engine. Must be called within a Tokio runtime.
    pub fn open(parts: Parts) -> BoxFuture<'static, Result<Self, OpenError>> {
        Box::pin(async move {
            let volatile = Arc::new(Volatile::default());
            let store: Arc<dyn Store> =
                Arc::new(BesideStore::new(parts.storage.store, Arc::clone(&volatile)));
            let keys: Arc<dyn KeyStore> =
                Arc::new(BesideKeys::new(parts.storage.keys, Arc::clone(&volatile)));
            let has_data = !store.is_empty().await?;
            let keyring = Keyring::open(keys, parts.keys, has_data).await?;
            store.introduce(keyring.name_sealer());
            // From its first start on, the age of a keyring is known.
            if keyring.rotated_at().await?.is_none() {
                let root = keyring.kids()[0];
                keyring.note_rotation(root, parts.clock.now()).await?;
            }
            let instance = Instance(random_id());
            let enlisted = store.enlist(instance).await?;
            let ledger = Ledger {
                naming: store.naming(),
                store,
                keyring,
                volatile,
                clock: parts.clock,
                slots: Slots::new(parts.settings.warm_sessions, parts.settings.warm_for),
                settings: parts.settings,
                channel_lifetimes: parts.channel_lifetimes,
                derived: parts.derived,
                concepts: parts.concepts,
                headroom: parts.headroom,
                looked_for_contexts: Mutex::default(),
                reading_through: tokio::sync::Mutex::default(),
                unreadable: Agenda::default(),
                agenda: Agenda::default(),
                left_open: LeftOpen::default(),
                instance,
                enlisted: Mutex::new(Some(enlisted)),
                anchors: Arc::default(),
                counters: Counters::default(),
                erasures: Erasures::default(),
            };
            let staff = Staff {
                model: Arc::clone(parts.models.default_model()),
                models: parts.models,
                aspects: parts.aspects,
                instructions: parts.instructions,
                toolbox: parts.toolbox,
                policy: parts.policy,
                safety: parts.safety,
                gate: Redactor::new(RedactOptions::default())
                    .map_err(|_| StoreError::Failed("gate".to_owned()))?,
                tool_tokens: Mutex::default(),
                system_tokens: Mutex::default(),
            };
            let inner = Arc::new(Inner {
                ledger,
                staff,
                cancels: Cancels::default(),
                notices: Notices::default(),
                running: Running::default(),
                gateway: OnceLock::new(),
                relay: OnceLock::new(),
                bus_is_up: OnceLock::new(),
            });
            inner.ledger.epoch().await.map_err(|error| match error {
                Error::Store(store) => OpenError::Store(store),
                _ => OpenError::KeyringTampered("erasures"),
            })?;
            tokio::spawn(keep_anchoring(Arc::clone(&inner.ledger.anchors), Arc::downgrade(&inner)));
            Ok(Self { inner })
        })
    }

    /// Reads what the first turn would otherwise wait for (vocabulary, word lists, patterns), once, on a thread of its own.
    /// Not for a gateway, which runs no turns; and not before somebody speaks, since it takes memory.
    pub fn warm_up(&self) {
        static WARM: std::sync::Once = std::sync::Once::new();
        if self.inner.gateway.get().is_some() {
            return;
        }
        // A thread that nobody waits for, also not at the end of the program.
        WARM.call_once(|| {
            std::thread::spawn(|| {
                let _ = confidant_model::tokens::count("warm");
                confidant_prepare::warm_up();
            });
        });
    }

    /// A handle that does not keep the engine alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine { inner: Arc::downgrade(&self.inner) }
    }

    /// The session of a scope, on behalf of `actor`.
    #[must_use]
    pub fn session(&self, scope: Scope, actor: Actor) -> Session {
        Session::new(Arc::clone(&self.inner), scope, actor)
    }

    /// The keys of a tenant's accounts, whose chats only their owner can open.
    #[must_use]
    pub fn account_keys(&self, tenant: TenantId) -> AccountKeys {
        AccountKeys::new(Arc::clone(&self.inner), tenant)
    }

    /// The sessions of a tenant's chats, whose permanent form only their owner can open. For whoever runs chats, and nobody else.
    #[must_use]
    pub fn web_sessions(&self, tenant: TenantId) -> WebSessions {
        WebSessions::new(Arc::clone(&self.inner), tenant)
    }

    /// A turn that neither recalls nor keeps anything, of somebody of this tenant. It calls no tool that changes something
    /// more than once; where the tenant is not known, every rule that forbids something to one counts.
    #[must_use]
    pub fn turn_without_memory(&self, tenant: Option<TenantId>, request: TurnRequest) -> Turn {
        turn::start_without_memory(&self.inner, tenant, request)
    }

    /// The handle that can see and erase what is not its own. Everything it does is audited.
    #[must_use]
    pub fn dangerously_administer(&self, actor: Actor) -> Administrator {
        Administrator::new(Arc::clone(&self.inner), actor)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Waits until what is done beside turns and after them is done.
    pub fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.inner.running.asides_done().await;
        })
    }

    /// What ends from now on while nobody waits for it.
    #[must_use]
    pub fn notices(&self) -> tokio::sync::broadcast::Receiver<Arc<Notice>> {
        self.inner.notices.listen()
    }

    /// Takes up the turns that a dead process left open, each once; carries out decisions that were left to this process;
    /// and closes turns whose approval ran out. To be called at the start and every few seconds.
    pub fn recover(&self) -> BoxFuture<'_, Result<Recovered, Error>> {
        Box::pin(async move { turn::recover(&self.inner).await })
    }

    /// Erases the sessions whose lifetime is over; says how many.
    pub fn sweep(&self) -> BoxFuture<'_, Result<u64, Error>> {
        Box::pin(async move {
            self.inner.ledger.slots.cool(self.inner.ledger.now());
            let _room = self.inner.ledger.room();
            retention::sweep(&self.inner).await
        })
    }

    /// Re-seals every key under the key source's current root, beside running turns. `progress` gets keys done and
    /// in all.
    pub fn rotate_keys<'a>(
        &'a self,
        actor: &'a Actor,
        progress: &'a (dyn Fn(u64, u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<Rotated, Error>> {
        Box::pin(async move {
            let rotated = self.inner.ledger.keyring.rotate(progress).await?;
            let now = self.inner.ledger.now();
            let note = AuditRecord::new(now, actor, Action::KeysRotated).counting(rotated.rewrapped);
            self.inner.ledger.record(note).await?;
            if rotated.refused.is_empty() {
                self.inner.ledger.keyring.note_rotation(rotated.root, now).await?;
            }
            Ok(rotated)
        })
    }

    /// Which roots are held and how many session keys each state has.
    pub fn key_status(&self) -> BoxFuture<'_, Result<KeyStatus, Error>> {
        Box::pin(async move {
            let keyring = &self.inner.ledger.keyring;
            let held = keyring.kids();
            let current = keyring.store().root().await?.unwrap_or(held[0]);
            let (keys, under_others) = keyring.store().count(current).await?;
            let rotated_at = keyring.rotated_at().await?;
            Ok(KeyStatus { current, held, keys, under_others, rotated_at })
        })
    }

    /// Whether data and keys can be read now, one small look at each, and data be written a moment ago.
    pub fn ping(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.inner.ledger.store.token([0; 32]).await?;
            self.inner.ledger.store.writable()?;
            self.inner.ledger.keyring.store().root().await?;
            Ok(())
        })
    }

    /// Whether the model can be reached.
    pub fn check_model(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async move { self.inner.staff.model.check().await })
    }

    /// The model's name.
    #[must_use]
    pub fn model_name(&self) -> &str {
        self.inner.staff.model.name()
    }

    /// The first thing in `sampling` that a model that may answer here cannot do. A gateway does not know: its workers answer.
    #[must_use]
    pub fn refuses(&self, sampling: &Sampling) -> Option<&'static str> {
        self.inner.gateway.get().map_or_else(|| self.inner.staff.models.refuses(sampling), |_| None)
    }

    /// Whether the models that may answer here take this image or file. A gateway does not know, and hopes so.
    #[must_use]
    pub fn takes(&self, attachment: &Attachment) -> bool {
        self.inner.gateway.get().is_some() || self.inner.staff.models.take(attachment)
    }

    /// Whether the models that may answer here call tools. A gateway does not know, and hopes so.
    #[must_use]
    pub fn calls_tools(&self) -> bool {
        self.inner.gateway.get().is_some() || self.inner.staff.models.call_tools()
    }

    /// The models that may answer, and the small one.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.inner.staff.models
    }

    /// What the engine knows of concepts.
    #[must_use]
    pub fn concepts(&self) -> &Concepts {
        &self.inner.ledger.concepts
    }

    /// The instruction files, as they are now.
    #[must_use]
    pub fn instructions(&self) -> &Instructions {
        &self.inner.staff.instructions
    }

    /// Checks the store for damage and for settings that would cause some; says what data and keys are in.
    pub fn check_storage(&self) -> BoxFuture<'_, Result<(String, String), Error>> {
        Box::pin(async move {
            Ok((self.inner.ledger.store.check().await?, self.inner.ledger.keyring.store().check().await?))
        })
    }

    /// How many erasures there have been by now: what is asked now and runs later brings it along. Where the keyring cannot be
    /// asked, as many as this process knows of.
    pub fn epoch(&self) -> BoxFuture<'_, Epoch> {
        Box::pin(async move {
            let inner = self.inner();
            inner.ledger.epoch().await.unwrap_or_else(|_| inner.ledger.erasures.known())
        })
    }

    /// The session that an approval belongs to, if it is of this tenant.
    pub fn session_of_approval<'a>(
        &'a self,
        tenant: &'a TenantId,
        approval_id: &'a str,
        actor: Actor,
    ) -> BoxFuture<'a, Result<Session, Error>> {
        Box::pin(async move {
            let inner = self.inner();
            let scope = approval::scope_of(approval_id).ok_or(Error::NoSuchApproval)?;
            let row = inner.ledger.keyring.store().get(scope).await?.ok_or(Error::NoSuchApproval)?;
            let scope = inner.ledger.keyring.scope_of(&row)?;
            // Those of chats that only their owner can open are decided there.
            if scope.tenant() != tenant || is_web(&scope) {
                return Err(Error::NoSuchApproval);
            }
            Ok(Session::new(Arc::clone(inner), scope, actor))
        })
    }

    /// The session whose tag this is, if it is of this tenant and one that somebody may name.
    pub fn session_of_tag<'a>(
        &'a self,
        tenant: &'a TenantId,
        tag: &'a str,
        actor: Actor,
    ) -> BoxFuture<'a, Result<Option<Session>, Error>> {
        Box::pin(async move {
            let inner = self.inner();
            let Some(tag) = Tag::from_hex(tag) else { return Ok(None) };
            let Some(row) = inner.ledger.keyring.store().get(tag).await? else { return Ok(None) };
            let scope = inner.ledger.keyring.scope_of(&row)?;
            // Chats that only their owner can open, and what else Confidant keeps, have no such names.
            if scope.tenant() != tenant || Scope::parse(tenant.clone(), &scope.session_id()).is_err() {
                return Ok(None);
            }
            Ok(Some(Session::new(Arc::clone(inner), scope, actor)))
        })
    }

    /// Whether other engines are at work on the same data now.
    pub fn others_alive(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(
            async move { Ok(self.inner().ledger.store.others_alive(self.inner().ledger.instance).await?) },
        )
    }

    /// What was counted since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.inner.ledger.counters.read(self.inner.running.count())
    }

    /// Stops taking turns, waits up to `grace` for those that run, and leaves the rest for the next start.
    pub fn stop(&self, grace: Duration) -> BoxFuture<'_, Stopped> {
        Box::pin(async move {
            let inner = &self.inner;
            inner.running.stop();
            let _ = tokio::time::timeout(grace, inner.running.idle()).await;
            // What is made of turns can be done without; nobody waits long for it.
            let _ = tokio::time::timeout(grace.min(ASIDES_GRACE), inner.running.asides_done()).await;
            let parked = inner.running.abort_all();
            if let Ok(Err(error)) = tokio::time::timeout(grace.min(ASIDES_GRACE), turn::pay_all(inner)).await
            {
                tracing::warn!(error = %error, "turns answered while the store was away could not be saved");
            }
            if let Err(error) = inner.ledger.flush_anchors().await {
                tracing::warn!(error = %error, "rollback anchors could not be written during shutdown");
            }
            inner.ledger.slots.clear();
            if let Err(error) = inner.ledger.store.resign(inner.ledger.instance).await {
                tracing::warn!(error = %error, "the store could not be told of the shutdown; other processes will notice by themselves");
            }
            drop(inner.ledger.enlisted.lock().take());
            Stopped { parked }
        })
    }
}

/// How long a stop waits for what is done beside turns.
const ASIDES_GRACE: Duration = Duration::from_secs(2);

/// The state of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStatus {
    /// The root that seals.
    pub current: Kid,
    /// The roots that this process can open with.
    pub held: Vec<Kid>,
    /// Session keys in all.
    pub keys: u64,
    /// Session keys that another root seals: a rotation is not done while there are any.
    pub under_others: u64,
    /// When the keys were last rotated, or the keyring was first seen.
    pub rotated_at: Option<Millis>,
}
