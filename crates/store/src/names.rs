//! What sessions are called: by keyed tags, and in some stores by names.

use std::sync::Arc;

use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, Suite, Tag, TenantId, open, seal};

/// The names of one session, as a store knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The session itself.
    pub scope: Tag,
    /// The person whose memory it is, for finding all of theirs.
    pub person: Tag,
    /// The tenant it belongs to.
    pub tenant: Tag,
}

/// How a store wants sessions to be called, beside their tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Not at all.
    Tags,
    /// By readable names, which say the tenant for all but this one.
    Readable(TenantId),
    /// By names that have a keyed hash in place of every id.
    Opaque,
}

/// What a session is called in a store that has names. Readable ids are personal data, so `Debug` prints stars.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyName(Arc<str>);

impl KeyName {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

debug_without_content!(KeyName(***));

/// What a caller knows of a session besides its tag.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Whose it is: where a store keeps tenants apart, it looks among this one's only.
    pub tenant: Tag,
    /// What it is called, if the store wants to know.
    pub name: Option<&'a KeyName>,
}

/// Seals the names of sessions, so that a store that has names can find one by its tag and keeps no readable id for it.
#[derive(Debug)]
pub struct NameSealer(Key);

impl NameSealer {
    pub fn new(key: Key) -> Self {
        Self(key)
    }

    pub fn seal(&self, scope: Tag, name: &KeyName) -> Sealed {
        let tag = scope.to_string();
        seal(&self.0, Suite::ChaCha20Poly1305, &Self::context(&tag), 1, name.as_str().as_bytes())
    }

    pub fn open(&self, scope: Tag, sealed: &Sealed) -> Option<KeyName> {
        let opened = open(&self.0, &Self::context(&scope.to_string()), sealed).ok()?;
        std::str::from_utf8(&opened.data).ok().map(KeyName::new)
    }

    fn context(tag: &str) -> Context<'_> {
        Context { purpose: "name", owner: "", container: tag, object: "name", field: "" }
    }
}
