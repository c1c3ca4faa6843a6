//! A context as it is stored. Where several people share one, everybody's part of it is sealed under a key of their own.
//!
//! A conversation's key lives as long as anybody is in it, so on its own it would open older copies of the context with
//! what somebody erased since. Each part has its own key, which erasing destroys: an older row, whoever puts it back, has
//! nothing of them that opens. What is easy to get wrong: a part that does not open because its key is gone is not
//! tampering, it is what was promised.

use std::collections::{BTreeMap, BTreeSet};

use confidant_seal::{Key, Sealed, Tag, open, seal};
use futures_util::future::{BoxFuture, try_join_all};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::context::{Active, ConversationContext, Use};
use super::conversation::{Conversation, PartName, SUITE, in_place};
use super::{ConceptSettings, lifetime};
use crate::error::{Error, Tampering};
use crate::inner::Inner;

/// What is stored of a context.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stored {
    /// Ids that are nobody's own; all of them, where the operator chose readable contexts.
    active_node_ids: Vec<String>,
    /// What is known of those that are in no part: all, in a conversation of one session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<Active>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<StoredPart>,
    /// What a later version wrote.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What a part has in it, with its person and its key.
type OpenedPart = (Tag, Key, Vec<Active>);

/// One session's part.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredPart {
    /// The session and its person, by their tags.
    by: String,
    person: String,
    /// Its ids, where the operator chose readable contexts: they are nobody else's when the part is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ids: Vec<String>,
    /// What the session used, under its own key.
    sealed: String,
}

impl Stored {
    /// The parts that it has, by session and person.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Tag, Tag)> + '_ {
        self.parts.iter().filter_map(|part| Some((Tag::from_hex(&part.by)?, Tag::from_hex(&part.person)?)))
    }

    /// Takes out what a session has in it, whether or not that opens; says whether anything is left.
    pub(super) fn forget(&mut self, by: &str, now: crate::clock::Millis, settings: &ConceptSettings) -> bool {
        let of_parts = |parts: &[StoredPart]| -> BTreeSet<String> {
            parts.iter().flat_map(|part| part.ids.iter().cloned()).collect()
        };
        let ids = of_parts(&self.parts);
        self.parts.retain(|part| part.by != by);
        let mut nobodys = std::mem::take(&mut self.active_node_ids);
        let known: BTreeSet<&str> = self.nodes.iter().map(|node| node.id.as_str()).collect();
        nobodys.retain(|id| known.contains(id.as_str()) || !ids.contains(id));
        let mut rest = ConversationContext {
            active_node_ids: nobodys,
            nodes: std::mem::take(&mut self.nodes),
            rest: Map::new(),
        };
        let left = rest.forget(by, now, settings);
        self.nodes = rest.nodes;
        self.active_node_ids = rest.active_node_ids;
        let known: BTreeSet<String> = self.active_node_ids.iter().cloned().collect();
        self.active_node_ids.extend(of_parts(&self.parts).into_iter().filter(|id| !known.contains(id)));
        left || !self.parts.is_empty()
    }

    /// The whole context, of all parts whose keys are there; and those keys. Those that are known from a moment ago are not
    /// asked for again.
    pub(super) async fn join(
        self,
        inner: &Inner,
        conversation: &Conversation,
        known: &PartKeys,
    ) -> Result<(ConversationContext, PartKeys), Error> {
        let Self { active_node_ids, nodes, parts, rest } = self;
        let mut context = ConversationContext { active_node_ids, nodes, rest };
        let mut keys = PartKeys { shared: !parts.is_empty(), keys: BTreeMap::new() };
        let mut gone = BTreeSet::new();
        for parts in parts.chunks(OPENED_AT_ONCE) {
            // Boxed one by one: the compiler cannot see that a list of these borrows may be sent.
            let mut opening: Vec<BoxFuture<'_, Result<Option<OpenedPart>, Error>>> = Vec::new();
            for part in parts {
                opening.push(Box::pin(part.open(inner, conversation, known)));
            }
            let opened = try_join_all(opening).await?;
            for (part, opened) in parts.iter().zip(opened) {
                let Some((person, key, nodes)) = opened else {
                    gone.extend(part.ids.iter().cloned());
                    continue;
                };
                nodes.into_iter().for_each(|node| take_in(&mut context, &part.by, node));
                keys.keys.insert(part.by.clone(), (person, key));
            }
        }
        let known: BTreeSet<&str> = context.nodes.iter().map(|node| node.id.as_str()).collect();
        context.active_node_ids.retain(|id| known.contains(id.as_str()) || !gone.contains(id));
        Ok((context, keys))
    }

    /// A context as it is to be stored: everybody's part under their own key, if it is one that people share.
    pub(super) async fn of(
        inner: &Inner,
        settings: &ConceptSettings,
        conversation: &Conversation,
        context: &ConversationContext,
        keys: &mut PartKeys,
    ) -> Result<Self, Error> {
        let ConversationContext { active_node_ids, nodes, rest } = context.clone();
        if !keys.shared {
            return Ok(Self { active_node_ids, nodes, parts: Vec::new(), rest });
        }
        let mut owned: BTreeMap<String, Vec<Active>> = BTreeMap::new();
        for node in nodes.iter().filter(|node| !node.uses.is_empty()) {
            for one in &node.uses {
                let concept = one.concept.clone().or_else(|| node.concept.clone());
                let uses = vec![Use { concept, ..one.clone() }];
                owned.entry(one.by.clone()).or_default().push(Active {
                    id: node.id.clone(),
                    uses,
                    concept: None,
                });
            }
        }
        let mut parts = Vec::new();
        for (by, nodes) in owned {
            let Some((person, key)) = keys.of(inner, conversation, &by).await? else { continue };
            parts.push(StoredPart::seal(inner, settings, conversation, (&by, person, &key), &nodes));
        }
        let nobodys: Vec<Active> = nodes.into_iter().filter(|node| node.uses.is_empty()).collect();
        let readable = if conversation.is_sealed(settings) {
            nobodys.iter().map(|node| node.id.clone()).collect()
        } else {
            active_node_ids
        };
        Ok(Self { active_node_ids: readable, nodes: nobodys, parts, rest })
    }
}

impl StoredPart {
    fn seal(
        inner: &Inner,
        settings: &ConceptSettings,
        conversation: &Conversation,
        (by, person, key): (&str, Tag, &Key),
        nodes: &[Active],
    ) -> Self {
        let plain =
            serde_json::to_vec(nodes).expect("concepts have string keys only, so they are always JSON");
        let ids =
            nodes.iter().map(|node| node.id.clone()).filter(|_| !conversation.is_sealed(settings)).collect();
        let tag = Tag::from_hex(by).unwrap_or(person);
        let scope = conversation.part(&inner.ledger.keyring, tag, person).scope;
        let sealed = in_place(&scope, key, FIELD, FIELD, |context| seal(key, SUITE, context, 1, &plain));
        Self { by: by.to_owned(), person: person.to_string(), ids, sealed: sealed.to_base64url() }
    }

    /// What is in it, with its key; nothing if the key is gone, or is another since.
    async fn open(
        &self,
        inner: &Inner,
        conversation: &Conversation,
        known: &PartKeys,
    ) -> Result<Option<OpenedPart>, Error> {
        let (by, person) = (Tag::from_hex(&self.by), Tag::from_hex(&self.person));
        let (Some(by), Some(person)) = (by, person) else { return Err(Tampering::RecordRefused.into()) };
        let name = conversation.part(&inner.ledger.keyring, by, person);
        let sealed = Sealed::from_base64url(&self.sealed).map_err(|_| Tampering::RecordRefused)?;
        let key = match known.keys.get(&self.by) {
            Some((_, key)) => Some(key.clone()),
            None => found(inner, &name).await?,
        };
        let Some(key) = key.filter(|key| sealed.kid() == Some(key.kid())) else { return Ok(None) };
        let opened = in_place(&name.scope, &key, FIELD, FIELD, |context| open(&key, context, &sealed));
        let opened = opened.map_err(|_| Tampering::RecordRefused)?;
        let nodes = serde_json::from_slice(&opened.data).map_err(|_| Tampering::RecordRefused)?;
        Ok(Some((person, key, nodes)))
    }
}

/// The key of a part; nothing if it is gone, or is here again after its session or person was erased.
async fn found(inner: &Inner, part: &PartName) -> Result<Option<Key>, Error> {
    let Some(found) = inner.ledger.keyring.data_key(&part.scope, &part.names).await? else { return Ok(None) };
    let (by, person) = (inner.ledger.last_erasure_of(part.by), inner.ledger.last_erasure_of(part.person));
    let (by, person) = tokio::try_join!(by, person)?;
    Ok(Some(found.key).filter(|_| found.born >= by.max(person)))
}

/// Puts a node of a session's part into the whole.
fn take_in(context: &mut ConversationContext, by: &str, node: Active) {
    let uses = node.uses.into_iter().filter(|one| one.by == by);
    match context.nodes.iter_mut().find(|known| known.id == node.id) {
        Some(known) => uses.for_each(|one| known.join(one)),
        None => context.nodes.push(Active { id: node.id, uses: uses.collect(), concept: None }),
    }
}

/// The keys of the parts of a context.
#[derive(Debug, Default)]
pub(super) struct PartKeys {
    /// Whether it has parts at all.
    shared: bool,
    keys: BTreeMap<String, (Tag, Key)>,
}

impl PartKeys {
    /// Adds the part of whoever is about to write.
    pub(super) fn add(&mut self, part: &PartName, key: &Key) {
        self.shared = true;
        self.keys.insert(part.by.to_string(), (part.person, key.clone()));
    }

    /// The key of a session's part. One that an earlier version kept with
    /// everybody's gets one, as long as the session is there.
    async fn of(
        &mut self,
        inner: &Inner,
        conversation: &Conversation,
        by: &str,
    ) -> Result<Option<(Tag, Key)>, Error> {
        if let Some(known) = self.keys.get(by) {
            return Ok(Some(known.clone()));
        }
        let Some(tag) = Tag::from_hex(by) else { return Ok(None) };
        let Some(row) = inner.ledger.keyring.store().get(tag).await? else { return Ok(None) };
        let person = inner.ledger.keyring.names(&inner.ledger.keyring.scope_of(&row)?).person;
        let name = conversation.part(&inner.ledger.keyring, tag, person);
        let until = lifetime::kept_until(inner);
        let born = inner.ledger.epoch().await?;
        let key = inner.ledger.keyring.data_key_or_new(&name.scope, &name.names, until, born).await?.key;
        self.add(&name, &key);
        Ok(Some((person, key)))
    }
}

/// What a part is called where it is sealed.
const FIELD: &str = "part";
/// More keys than this are not asked for at once.
const OPENED_AT_ONCE: usize = 32;
