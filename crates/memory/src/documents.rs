//! The truth as the search index reads it.

use std::sync::Arc;

use serde_json::Value;

use crate::index::{Bag, Document, Source};
use crate::keys::{Keys, OwnerKey};
use crate::truth::{StoredRow, Texts, Truth};
use crate::{Card, Error, Result, when};

/// One owner's live memories, opened as they are asked for.
#[derive(Debug)]
pub(crate) struct TruthSource {
    pub(crate) truth: Arc<Truth>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) owner: OwnerKey,
}

impl Source for TruthSource {
    fn newest(&self) -> Result<u64> {
        self.truth.newest(self.owner.tag)
    }

    fn documents(&self, after: u64, limit: usize) -> Result<Vec<Document>> {
        let mut documents = Vec::new();
        let mut after = after;
        // Nothing is returned only if nothing is left, however many in a row do not open.
        while documents.is_empty() {
            let rows = self.truth.after(self.owner.tag, after, true, limit)?;
            let Some(last) = rows.last() else { break };
            after = last.id;
            for row in &rows {
                // A key that is gone is a memory that was forgotten a moment ago. One that does not open is not shown
                // either: a search goes on without it, and `doctor` names it.
                let key = match row.sound().and_then(|()| self.keys.artifact(&self.owner, row.artifact)) {
                    Ok(Some(key)) => key,
                    Ok(None) | Err(Error::Tampered { .. }) => continue,
                    Err(error) => return Err(error),
                };
                let Ok(texts) = row.texts(&self.owner, &key) else { continue };
                documents.push(document(row, texts));
            }
        }
        Ok(documents)
    }

    fn live(&self, ids: &[u64]) -> Result<Vec<u64>> {
        self.truth.live(self.owner.tag, ids)
    }
}

fn document(row: &StoredRow, texts: Texts) -> Document {
    let mut metadata: Value = serde_json::from_str(&texts.metadata_json).unwrap_or_default();
    let bag = metadata.get("session_index").and_then(Bag::from_json);
    let card: Card = metadata
        .get_mut("memory_card")
        .map(Value::take)
        .and_then(|card| serde_json::from_value(card).ok())
        .unwrap_or_default();
    Document {
        id: row.id,
        card,
        tags: serde_json::from_str(&texts.tags_json).unwrap_or_default(),
        session_id: texts.source_session_id,
        tool: texts.source_tool,
        created_at: when::parse_text(&row.created_at).unwrap_or_default(),
        bag,
    }
}
