//! What a person sends along that is not text.

use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};

/// An image or a file, for the answer to one query.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its media type, such as `image/png`; `image/*` if only that much is known.
    pub media_type: String,
    /// What it is called, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    pub source: AttachmentSource,
}

/// Where an image or a file is.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentSource {
    /// Here, in base64.
    Data(String),
    /// At this https address. Whoever runs the model fetches it; nothing here does.
    Address(String),
}

impl Attachment {
    /// Whether it is an image.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// Whether it is at an address.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.source, AttachmentSource::Address(_))
    }
}

debug_without_content!(Attachment, AttachmentSource);
