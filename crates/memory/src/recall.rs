//! What an agent is told when a session begins: the newest memories of the folder that it works in.

use confidant_display::debug_without_content;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::api::{MemoryHit, QueryRequest};
use crate::blobs::Pointer;
use crate::memory::blocking;
use crate::own::OwnMemory;
use crate::witness::Act;
use crate::{Card, Result};

/// A memory, as it is recalled.
#[derive(Clone, PartialEq)]
pub struct Recalled {
    /// Where the artifact is.
    pub cascade_uri: String,
    /// When the session was.
    pub created_at: String,
    /// What is remembered.
    pub card: Card,
}

debug_without_content!(Recalled(***));

impl OwnMemory {
    /// The newest memories of a project, by the name of its folder; if none is of it, those that speak of it. Local, as
    /// every search; a store that is away is not asked.
    pub fn recall<'a>(&'a self, project: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Recalled>>> {
        Box::pin(async move {
            let Some(tag) = project_tag(project) else { return Ok(Vec::new()) };
            let tagged = QueryRequest { tags: vec![tag], limit, ..QueryRequest::default() };
            let mut recalled = self.cards_of(self.query(&tagged).await?.hits).await?;
            if recalled.is_empty() {
                let spoken = QueryRequest { query: project.to_owned(), limit, ..QueryRequest::default() };
                recalled = self.cards_of(self.query(&spoken).await?.hits).await?;
                // A search finds what is similar, too; that is of another folder.
                recalled.retain(|one| speaks_of(&one.card, project));
            }
            if !recalled.is_empty() {
                self.note(Act::Recalled, recalled.len() as u64).await?;
            }
            Ok(recalled)
        })
    }

    /// The cards of hits, in their order, as the memory's own rows have them.
    async fn cards_of(&self, hits: Vec<MemoryHit>) -> Result<Vec<Recalled>> {
        let own = self.clone();
        blocking(move || {
            let Some(owner) = own.inner.keys.known_owner(&own.owner)? else { return Ok(Vec::new()) };
            let mut cards = Vec::with_capacity(hits.len());
            for hit in hits {
                let pointer = Pointer::parse(&hit.cascade_uri)?;
                let Some(row) = own.inner.truth.by_pointer(owner.tag, &pointer)? else { continue };
                let Some((_, texts)) = own.inner.open_row(&owner, &row)? else { continue };
                let mut metadata: Value = serde_json::from_str(&texts.metadata_json).unwrap_or_default();
                let card = metadata.get_mut("memory_card").map(Value::take).unwrap_or_default();
                let title_only = || Card { title: hit.title.clone(), ..Card::default() };
                let card = serde_json::from_value(card).unwrap_or_else(|_| title_only());
                cards.push(Recalled { card, cascade_uri: hit.cascade_uri, created_at: hit.created_at });
            }
            Ok(cards)
        })
        .await
    }
}

fn speaks_of(card: &Card, project: &str) -> bool {
    let project = project.to_lowercase();
    let lists = [&card.summary_bullets, &card.decisions, &card.todos, &card.entities, &card.keywords];
    let mut texts = std::iter::once(&card.title).chain(lists.into_iter().flatten());
    texts.any(|text| text.to_lowercase().contains(&project))
}

/// The tag of sessions that were in a folder of this name: one word of letters and digits, so that it is a label. None for a
/// name without any.
#[must_use]
pub fn project_tag(folder: &str) -> Option<String> {
    let word: String = folder.chars().filter(|c| c.is_alphanumeric()).take(LONGEST_NAME).collect();
    (!word.is_empty()).then(|| format!("project{}", word.to_lowercase()))
}

const LONGEST_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_tag_of_one_word() {
        assert_eq!(project_tag("My-App_2.0").as_deref(), Some("projectmyapp20"));
        assert_eq!(project_tag("Büro").as_deref(), Some("projectbüro"));
        assert_eq!(project_tag("…"), None);
        assert!(project_tag(&"x".repeat(1000)).is_some_and(|tag| tag.len() < 100));
    }
}
