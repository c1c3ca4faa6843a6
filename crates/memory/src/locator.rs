//! Where a store put a blob, sealed.

use confidant_seal::Key;

use crate::Result;
use crate::api::ArtifactType;
use crate::artifact::ArtifactPlace;
use crate::blobs::Locator;
use crate::keys::{ArtifactId, OwnerKey};

/// Seals what a store says of where it put a blob.
#[derive(Clone, Debug)]
pub(crate) struct LocatorSeal {
    pub(crate) owner: OwnerKey,
    pub(crate) id: ArtifactId,
    pub(crate) key: Key,
}

impl LocatorSeal {
    pub(crate) fn seal(&self, locator: &Locator) -> Vec<u8> {
        self.place().seal_locator(&self.key, locator)
    }

    pub(crate) fn open(&self, sealed: &[u8]) -> Result<Locator> {
        self.place().open_locator(&self.key, sealed)
    }

    fn place(&self) -> ArtifactPlace<'_> {
        // A locator is bound to owner and artifact only, so the rest does not matter.
        ArtifactPlace {
            owner: &self.owner,
            session_id: "",
            id: self.id,
            artifact_type: ArtifactType::ArtifactOnly,
        }
    }
}
