//! What of a row is sealed, and what it is bound to.
//!
//! A row's texts open only beside the pointer, the kind and the time that they were written with. What else is in the open
//! and steers (number, order, session, payload, store) is sealed once more as a whole: a row in which they differ is refused.
//! Which of a session's rows is the one that is shown follows from their order, and `doctor` looks whether it is.

use confidant_seal::{Context, Key, Sealed, Suite, Tag, open, seal};

use super::{StoredRow, TEXT_COLUMNS, Texts, row_refused};
use crate::Result;
use crate::api::ArtifactType;
use crate::blobs::Pointer;
use crate::keys::{ArtifactId, OwnerKey};

/// What steers, as it is sealed into its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steer<'s> {
    pub(super) id: u64,
    pub(super) begun: u64,
    pub(super) session_tag: Tag,
    pub(super) payload_tag: &'s [u8],
    pub(super) mode: &'s str,
    pub(super) updated_at: &'s str,
}

impl Steer<'_> {
    pub(super) fn seal(&self, place: &RowPlace<'_>, key: &Key) -> Vec<u8> {
        place.seal_bytes(key, STEER, &self.to_bytes())
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = [self.id.to_be_bytes(), self.begun.to_be_bytes()].concat();
        for part in [
            &self.session_tag.as_bytes()[..],
            self.payload_tag,
            self.mode.as_bytes(),
            self.updated_at.as_bytes(),
        ] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

impl StoredRow {
    /// What it says itself, under this number.
    pub(super) fn steered_as(&self, id: u64) -> Steer<'_> {
        Steer {
            id,
            begun: self.begun,
            session_tag: self.session_tag,
            payload_tag: &self.payload_tag,
            mode: &self.mode,
            updated_at: &self.updated_at,
        }
    }

    /// Fails if what is in the open is not what is sealed.
    pub(super) fn agrees(&self, place: &RowPlace<'_>, key: &Key) -> Result<()> {
        let sealed = place.open_bytes(key, STEER, &self.steer)?;
        let said = self.steered_as(self.id);
        // One whose artifact was lost gave its payload up, so that the same can be stored again.
        let apart = sealed != said.to_bytes() && self.payload_tag == self.artifact.0;
        let same = if apart {
            let payload = sealed.get(PAYLOAD).unwrap_or_default();
            sealed == Steer { payload_tag: payload, ..said }.to_bytes()
        } else {
            sealed == said.to_bytes()
        };
        if same && self.content_hash == self.pointer.hex() { Ok(()) } else { Err(row_refused()) }
    }

    /// Whether any of its seals opens as one of this artifact's.
    pub(crate) fn is_of(&self, owner: &OwnerKey, artifact: ArtifactId, key: &Key) -> bool {
        let place = self.place_as(owner, artifact);
        let texts = TEXT_COLUMNS.iter().zip(&self.sealed);
        texts
            .map(|(column, sealed)| (*column, sealed.as_slice()))
            .chain([(STEER, self.steer.as_slice())])
            .any(|(column, sealed)| place.open_bytes(key, column, sealed).is_ok())
    }

    /// The session that it was stored as, if that opens.
    pub(crate) fn sealed_session(&self, owner: &OwnerKey, key: &Key) -> Option<Tag> {
        let sealed = self.place(owner).open_bytes(key, STEER, &self.steer).ok()?;
        sealed.get(SESSION)?.try_into().ok().map(Tag::from_bytes)
    }

    /// Seals what it says now, as the version before left it.
    pub(super) fn steer_anew(&self, owner: &OwnerKey, key: &Key) -> Vec<u8> {
        self.steered_as(self.id).seal(&self.place(owner), key)
    }
}

const STEER: &str = "steer";
/// Where the session is in what is sealed, and where the payload is.
const SESSION: std::ops::Range<usize> = 24..40;
const PAYLOAD: std::ops::Range<usize> = 48..64;

/// What a row's seals are bound to: everything of it that is readable.
#[derive(Debug)]
pub(super) struct RowPlace<'p> {
    pub(super) owner: &'p OwnerKey,
    pub(super) artifact: ArtifactId,
    pub(super) pointer: &'p Pointer,
    pub(super) artifact_type: ArtifactType,
    pub(super) created_at: &'p str,
}

impl RowPlace<'_> {
    pub(super) fn seal(&self, key: &Key, texts: &Texts) -> [Vec<u8>; 6] {
        let texts = [
            &texts.tags_json,
            &texts.source_session_id,
            &texts.source_tool,
            &texts.title,
            &texts.snippet,
            &texts.metadata_json,
        ];
        std::array::from_fn(|at| self.seal_bytes(key, TEXT_COLUMNS[at], texts[at].as_bytes()))
    }

    fn seal_bytes(&self, key: &Key, column: &str, data: &[u8]) -> Vec<u8> {
        self.with(column, |context| seal(key, Suite::Aes256Gcm, context, 0, data).as_bytes().to_vec())
    }

    pub(super) fn open(&self, key: &Key, column: &str, sealed: &[u8]) -> Result<String> {
        String::from_utf8(self.open_bytes(key, column, sealed)?).map_err(|_| row_refused())
    }

    fn open_bytes(&self, key: &Key, column: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let sealed = Sealed::from_bytes(sealed.to_vec());
        let opened = self.with(column, |context| open(key, context, &sealed));
        opened.map(|opened| opened.data.to_vec()).map_err(|_| row_refused())
    }

    fn with<T>(&self, column: &str, work: impl FnOnce(&Context<'_>) -> T) -> T {
        let (container, field) = (
            self.artifact.hex(),
            format!("{} {} {}", self.pointer, self.artifact_type.as_str(), self.created_at),
        );
        work(&Context {
            purpose: "memory-row",
            owner: self.owner.name(),
            container: &container,
            object: column,
            field: &field,
        })
    }
}
