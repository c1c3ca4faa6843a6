//! What is remembered of a conversation's concepts, and how it is ranked. Pure: no store, no graph.
//!
//! A use counts one and halves with time; what was used often and lately ranks first, and what is pinned before that. The
//! form is seed 004's, `{"activeNodeIds": […]}`, with what ranking and erasing need beside it; fields that are unknown here
//! are kept as they are.

use std::collections::BTreeSet;
use std::time::Duration;

use confidant_concepts::Concept;
use confidant_seal::{TenantId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ConceptSettings;
use crate::audience::{Audience, Sharing};
use crate::clock::Millis;

/// Which conversation: the first two are its identity, the third is who speaks in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationIdentity {
    /// The tenant, from the caller's token.
    pub tenant_id: TenantId,
    /// The conversation: what an application calls it, or a session's id.
    pub conversation_id: String,
    /// Who speaks.
    pub user_id: Option<UserId>,
}

/// The concepts of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationContext {
    /// Ids of the concepts in scope, the most important first.
    pub active_node_ids: Vec<String>,
    /// What is known of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<Active>,
    /// What a later version wrote.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

/// A concept in scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Active {
    pub(crate) id: String,
    /// Who used it. Nobody, where the id came from an application that keeps no more than ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) uses: Vec<Use>,
    /// What was captured, as earlier versions kept it: everybody's together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) concept: Option<Captured>,
}

/// A session's use of a concept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Use {
    /// The session, by its tag.
    pub(crate) by: String,
    /// The widest audience in which it was used.
    pub(crate) audience: Audience,
    pub(crate) count: u32,
    /// What the uses are worth, as of the last.
    pub(crate) weight: f64,
    pub(crate) last: Millis,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pinned: bool,
    /// What the session captured, where the shared graph did not have it. Its own: another's words for the same concept may
    /// have been private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) concept: Option<Captured>,
}

/// A concept as it was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Captured {
    #[serde(flatten)]
    pub(crate) concept: Concept,
    /// Whether its label is what the person said, word for word: such a label never becomes one of the shared graph.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) said: bool,
}

/// What happened to a conversation's concepts: one record of the capture log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) at: Millis,
    /// The turn, or what was done by hand.
    pub(crate) request_id: String,
    /// The session, by its tag.
    pub(crate) by: String,
    pub(crate) audience: Audience,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// A turn used these.
    Used(Vec<Used>),
    /// Somebody pinned one.
    Pinned(String),
    /// Somebody let go of one.
    Unpinned(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Used {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) concept: Option<Captured>,
}

impl ConversationContext {
    /// What an event makes of it.
    pub(crate) fn apply(&mut self, event: &Event, settings: &ConceptSettings) {
        self.complete();
        match &event.what {
            What::Used(used) => used.iter().for_each(|one| self.used(one, event, settings.half_life)),
            What::Pinned(id) => self.pin(id, event, true),
            What::Unpinned(id) => self.pin(id, event, false),
        }
        self.settle(event.at, settings);
    }

    /// Puts successors in the place of what was superseded, and drops what the graph does not have any more.
    pub(crate) fn follow(&mut self, moved: &[(String, Option<String>)]) {
        self.complete();
        for (from, to) in moved {
            let Some(at) = self.nodes.iter().position(|node| node.id == *from) else { continue };
            let mut old = self.nodes.remove(at);
            let Some(to) = to else { continue };
            old.uses.iter_mut().for_each(|one| one.concept = None);
            match self.nodes.iter_mut().find(|node| node.id == *to) {
                Some(node) => old.uses.into_iter().for_each(|one| node.join(one)),
                None => self.nodes.insert(at, Active { id: to.clone(), concept: None, ..old }),
            }
        }
    }

    /// Takes out what one session used; says whether anything is left.
    pub(crate) fn forget(&mut self, by: &str, now: Millis, settings: &ConceptSettings) -> bool {
        self.complete();
        for node in &mut self.nodes {
            let had = node.uses.len();
            node.uses.retain(|one| one.by != by);
            // What only this session used goes; what an application put there by id alone is not the session's.
            if had > 0 && node.uses.is_empty() {
                node.id.clear();
            }
        }
        self.nodes.retain(|node| !node.id.is_empty());
        self.settle(now, settings);
        !self.nodes.is_empty()
    }

    /// Made anew of these events. What an application put there by id alone stays.
    pub(crate) fn made_anew<'e>(
        mut self,
        events: impl Iterator<Item = &'e Event>,
        now: Millis,
        settings: &ConceptSettings,
    ) -> Self {
        self.complete();
        // Somebody may have pinned such an id; that is an event, too.
        self.nodes.retain(|node| node.uses.iter().all(|one| one.count == 0));
        self.nodes.iter_mut().for_each(|node| node.uses.clear());
        self.active_node_ids = self.nodes.iter().map(|node| node.id.clone()).collect();
        events.for_each(|event| self.apply(event, settings));
        self.settle(now, settings);
        self
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What is in scope, the most important first.
    pub(crate) fn ranked(&self, now: Millis, settings: &ConceptSettings) -> Vec<Active> {
        let mut whole = self.clone();
        whole.complete();
        whole.settle(now, settings);
        whole.nodes
    }

    /// Ids without anything known of them get an empty record, so that everything below looks at one list.
    fn complete(&mut self) {
        let known: BTreeSet<String> = self.nodes.iter().map(|node| node.id.clone()).collect();
        let bare = self.active_node_ids.iter().filter(|id| !known.contains(*id));
        let bare: Vec<Active> =
            bare.map(|id| Active { id: id.clone(), uses: Vec::new(), concept: None }).collect();
        self.nodes.extend(bare);
    }

    fn used(&mut self, used: &Used, event: &Event, half_life: Duration) {
        let one = Use {
            by: event.by.clone(),
            audience: event.audience,
            count: 1,
            weight: 1.0,
            last: event.at,
            pinned: false,
            concept: used.concept.clone(),
        };
        match self.nodes.iter_mut().find(|node| node.id == used.id) {
            Some(node) => node.used(one, half_life),
            None => self.nodes.push(Active { id: used.id.clone(), uses: vec![one], concept: None }),
        }
    }

    fn pin(&mut self, id: &str, event: &Event, pinned: bool) {
        let Some(node) = self.nodes.iter_mut().find(|node| node.id == id) else { return };
        match node.uses.iter_mut().find(|one| one.by == event.by) {
            Some(one) => one.pinned = pinned,
            None if pinned => {
                let (by, audience, last) = (event.by.clone(), event.audience, event.at);
                node.uses.push(Use { by, audience, count: 0, weight: 0.0, last, pinned, concept: None });
            }
            None => {}
        }
    }

    /// Ranks, and keeps no more than there may be.
    fn settle(&mut self, now: Millis, settings: &ConceptSettings) {
        let rank = |node: &Active| (node.is_pinned(), node.score(now, settings.half_life));
        self.nodes.sort_by(|a, b| {
            let ((a_pinned, a_score), (b_pinned, b_score)) = (rank(a), rank(b));
            b_pinned.cmp(&a_pinned).then(b_score.total_cmp(&a_score))
        });
        self.nodes.truncate(settings.max_nodes.max(1));
        self.active_node_ids = self.nodes.iter().map(|node| node.id.clone()).collect();
    }
}

impl Use {
    fn reaches(&self, by: &str, reader: Audience, sharing: Sharing) -> bool {
        self.audience == Audience::Room || (self.by == by && self.audience.may_reach(reader, sharing))
    }
}

impl Active {
    /// Whether an answer for these readers may build on it: what a room heard reaches everyone in the conversation, what
    /// was said in private only the one who said it, and not in a room.
    pub(crate) fn reaches(&self, by: &str, reader: Audience, sharing: Sharing) -> bool {
        self.uses.is_empty() || self.uses.iter().any(|one| one.reaches(by, reader, sharing))
    }

    /// What was captured of it, in the words of the last use that reaches these readers, their own before another of the same moment.
    pub(crate) fn captured(&self, by: &str, reader: Audience, sharing: Sharing) -> Option<&Captured> {
        let reaching = self.uses.iter().filter(|one| one.reaches(by, reader, sharing));
        let last = reaching.filter(|one| one.concept.is_some()).max_by_key(|one| (one.last, one.by == by));
        last.and_then(|one| one.concept.as_ref()).or(self.concept.as_ref())
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.uses.iter().any(|one| one.pinned)
    }

    pub(crate) fn score(&self, now: Millis, half_life: Duration) -> f64 {
        self.uses.iter().map(|one| one.weight * decay(one.last, now, half_life)).sum()
    }

    fn used(&mut self, new: Use, half_life: Duration) {
        match self.uses.iter_mut().find(|one| one.by == new.by) {
            Some(one) => {
                one.weight = one.weight * decay(one.last, new.last, half_life) + new.weight;
                one.count = one.count.saturating_add(1);
                one.last = one.last.max(new.last);
                one.concept = new.concept.or(one.concept.take());
                if new.audience == Audience::Room {
                    one.audience = Audience::Room;
                }
            }
            None => self.uses.push(new),
        }
    }

    pub(super) fn join(&mut self, other: Use) {
        match self.uses.iter_mut().find(|one| one.by == other.by) {
            Some(one) => {
                one.weight += other.weight;
                one.count = one.count.saturating_add(other.count);
                one.last = one.last.max(other.last);
                one.pinned |= other.pinned;
                one.concept = one.concept.take().or(other.concept);
                if other.audience == Audience::Room {
                    one.audience = Audience::Room;
                }
            }
            None => self.uses.push(other),
        }
    }
}

/// What is left of a weight after this time.
fn decay(last: Millis, now: Millis, half_life: Duration) -> f64 {
    let passed = now.0.saturating_sub(last.0).max(0) as f64;
    let half = half_life.as_millis().max(1) as f64;
    (-(passed / half)).exp2()
}
