//! What the log has of an answered turn besides its answer: for a device that finds the answer there, since whoever made it went.
//!
//! ```text
//! answered ─▶ title, icons, category                       in the same write
//!          └▶ due: suggestions, tags, summary ─▶ There      or Soon, as long as whoever answered may be at it
//!                                             └▶ Left       he went: whoever finds it makes it ([`Session::enrich_left`])
//! ```
//!
//! Easy to get wrong: making it of what the turn was given. That is not kept, so nobody else could take it out again.

use futures_util::future::BoxFuture;

use crate::about::Due;
use crate::aspects::{Profile, Situation, Slot};
use crate::concepts::InScope;
use crate::error::Error;
use crate::ledger::checkpoint::{Checkpoint, Exchange, Outcome};
use crate::ledger::session::{Session, open};
use crate::turn::enrich::{self, Enrichment, Material};
use crate::turn::prepare::Known;
use crate::turn::safety::SafetyRecord;

/// What the log has of an answered turn besides its answer.
#[derive(Clone, Default)]
pub struct Recorded {
    /// The title that it gave, if it gave one.
    pub title: Option<String>,
    /// Icons, if it gave a title.
    pub icon_names: Vec<String>,
    /// What kind of request it was, if it gave a title.
    pub category: Option<String>,
    /// How harmful the conversation is by now.
    pub safety: SafetyRecord,
    /// What was made of it.
    pub made: MadeOfIt,
}

/// What was made of a turn after its answer.
#[derive(Clone, Default)]
pub enum MadeOfIt {
    /// Nothing, and nothing will be.
    #[default]
    Nothing,
    /// Whoever answered is at it.
    Soon,
    /// Nobody is at it any more.
    Left,
    /// This.
    There(Box<Enrichment>),
}

confidant_display::debug_without_content!(Recorded, MadeOfIt);

impl Session {
    /// What the log has of an answered turn of a chat that devices keep; nothing of one that is not answered, or was long ago.
    pub fn recorded<'a>(&'a self, request_id: &'a str) -> BoxFuture<'a, Result<Option<Recorded>, Error>> {
        Box::pin(async move {
            let Some((log, _)) = open(self).await? else { return Ok(None) };
            let log = log.checkpoint();
            let Some(exchange) = log.exchange(request_id) else { return Ok(None) };
            let Outcome::Answered { at, .. } = &exchange.outcome else { return Ok(None) };
            let safety = Known::of(log, exchange.audience).safety();
            let Some(found) = log.found(request_id) else {
                return Ok(Some(Recorded { safety, ..Recorded::default() }));
            };
            let is_late = at.plus(enrich::patience(&self.inner)) <= self.inner.ledger.now();
            let made = match (&found.made, found.note.due) {
                (Some(made), _) => MadeOfIt::There(made.clone()),
                (None, Some(_)) if !is_late => MadeOfIt::Soon,
                (None, Some(Due::FromLog)) => MadeOfIt::Left,
                (None, _) => MadeOfIt::Nothing,
            };
            let note = found.note.clone();
            let (title, icon_names, category) = (note.title, note.icon_names, note.category);
            Ok(Some(Recorded { title, icon_names, category, safety, made }))
        })
    }

    /// Makes what is left to be made of an answered turn, and keeps it; what somebody else has made of it meanwhile counts.
    pub fn enrich_left<'a>(
        &'a self,
        request_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Enrichment>, Error>> {
        Box::pin(async move {
            let Some(small) = self.inner.staff.models.small().cloned() else { return Ok(None) };
            let Some((log, _)) = open(self).await? else { return Ok(None) };
            let log = log.checkpoint();
            let (Some(exchange), Some(found)) = (log.exchange(request_id), log.found(request_id)) else {
                return Ok(None);
            };
            if let Some(made) = &found.made {
                return Ok(Some((**made).clone()));
            }
            if found.note.due != Some(Due::FromLog) {
                return Ok(None);
            }
            let Some(material) = self.material_of(log, exchange).await else { return Ok(None) };
            let made = enrich::ask(self, small.as_ref(), &material).await.map_err(Error::Model)?;
            Ok(enrich::keep(self, request_id, &made).await?.then_some(made))
        })
    }

    async fn material_of(&self, log: &Checkpoint, exchange: &Exchange) -> Option<Material> {
        let answer = exchange.answer()?.content.clone();
        let known = Known::of(log, exchange.audience);
        let situation = Situation {
            scope: Some(self.scope()),
            audience: exchange.audience,
            now: self.inner.ledger.now(),
            prepared: None,
            profile: &Profile::default(),
            focus: known.focus.as_deref(),
            tools: 0,
            concepts: &InScope::default(),
        };
        Some(Material {
            ethics: self.inner.staff.aspects.text_of(Slot::Ethics, situation).await,
            profile: Profile::default(),
            query: exchange.content.clone(),
            answer,
            summary_before: known.summary.clone(),
            tags_before: known.tags.clone(),
            category: known.category.clone().unwrap_or_default(),
            settings: Vec::new(),
        })
    }
}
