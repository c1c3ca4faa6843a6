//! Which key seals which: the pure half of the keyring.
//!
//! Owns the root keys of a process and the three things sealed under them: session keys, named keys and
//! readable scopes. Leaves to the engine where the sealed forms are kept. Easy to get wrong: a session's key is
//! sealed under the root's `sessions` sub-key, so the key id in its envelope is not the root's;
//! [`root_of`] knows both.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use crate::envelope::{Context, OpenFailed, Sealed, Suite, open, seal};
use crate::key::{Key, Kid, Tag};
use crate::scope::Scope;

/// The root keys a process holds: the current one, which seals, and retired ones, which only open.
#[derive(Debug, Clone)]
pub struct Roots {
    /// Never empty, no key twice, the current one first.
    keys: Vec<Key>,
}

impl Roots {
    /// The current root and those before it. A key given twice counts once.
    pub fn new(current: Key, retired: Vec<Key>) -> Self {
        let mut keys = vec![current];
        for key in retired {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Self { keys }
    }

    /// The root that seals.
    pub fn current(&self) -> &Key {
        &self.keys[0]
    }

    /// The root with this id.
    pub fn get(&self, kid: Kid) -> Option<&Key> {
        self.keys.iter().find(|key| key.kid() == kid)
    }

    /// Every root's id, the current one first.
    pub fn kids(&self) -> Vec<Kid> {
        self.keys.iter().map(Key::kid).collect()
    }

    /// The same keys with another one current; `None` if it is not among them.
    pub fn with_current(&self, kid: Kid) -> Option<Self> {
        let at = self.keys.iter().position(|key| key.kid() == kid)?;
        let mut keys = self.keys.clone();
        keys[..=at].rotate_right(1);
        Some(Self { keys })
    }
}

/// Seals a session's data key for its scope and generation.
pub fn wrap_session_key(root: &Key, scope: &Scope, generation: u32, data_key: &Key) -> Sealed {
    let names = SessionNames::new(root, scope, generation);
    seal(root.sessions(), SUITE, &names.context(), REV, data_key.dangerously_expose_bytes())
}

/// Opens a session's data key with whichever root sealed it.
pub fn unwrap_session_key(
    roots: &Roots,
    scope: &Scope,
    generation: u32,
    sealed: &Sealed,
) -> Result<Key, OpenFailed> {
    let data = open_with_any(roots, sealed, Key::sessions, |root, key| {
        open(key, &SessionNames::new(root, scope, generation).context(), sealed)
    })?;
    key_from(&data)
}

/// Seals one of the installation's own keys (`names`, `audit`, …), which outlive a rotation of the root.
pub fn wrap_named_key(root: &Key, name: &str, key: &Key) -> Sealed {
    let (object, field) = (format!("named:{name}"), root.kid().to_string());
    seal(root, SUITE, &named_context(&object, &field), REV, key.dangerously_expose_bytes())
}

/// Opens one of the installation's own keys with whichever root sealed it.
pub fn unwrap_named_key(roots: &Roots, name: &str, sealed: &Sealed) -> Result<Key, OpenFailed> {
    let data = open_with_any(roots, sealed, itself, |root, key| {
        open(key, &named_context(&format!("named:{name}"), &root.kid().to_string()), sealed)
    })?;
    key_from(&data)
}

/// Seals the readable scope behind a tag, so that whoever holds the root can list sessions.
pub fn wrap_scope(root: &Key, tag: &Tag, scope: &Scope) -> Sealed {
    let (container, field) = (tag.to_string(), root.kid().to_string());
    seal(root, SUITE, &scope_context(&container, &field), REV, &scope.canonical())
}

/// Opens the readable scope behind a tag with whichever root sealed it.
pub fn unwrap_scope(roots: &Roots, tag: &Tag, sealed: &Sealed) -> Result<Scope, OpenFailed> {
    let data = open_with_any(roots, sealed, itself, |root, key| {
        open(key, &scope_context(&tag.to_string(), &root.kid().to_string()), sealed)
    })?;
    Scope::from_canonical(&data).map_err(|_| OpenFailed(()))
}

/// Which root a record of this module claims to be sealed under; tells what a rotation still has to re-seal.
pub fn root_of(roots: &Roots, sealed: &Sealed) -> Option<Kid> {
    let kid = sealed.kid()?;
    roots.keys.iter().find(|root| root.kid() == kid || root.sessions().kid() == kid).map(Key::kid)
}

/// Tries the roots whose sealing key has the record's key id: one, short of a collision of ids.
fn open_with_any(
    roots: &Roots,
    sealed: &Sealed,
    sealing_key: fn(&Key) -> &Key,
    open: impl Fn(&Key, &Key) -> Result<crate::envelope::Opened, OpenFailed>,
) -> Result<Zeroizing<Vec<u8>>, OpenFailed> {
    let kid = sealed.kid().ok_or(OpenFailed(()))?;
    let candidates = roots.keys.iter().map(|root| (root, sealing_key(root)));
    let opened = candidates.filter(|(_, key)| key.kid() == kid).find_map(|(root, key)| open(root, key).ok());
    opened.map(|opened| opened.data).ok_or(OpenFailed(()))
}

fn itself(root: &Key) -> &Key {
    root
}

fn key_from(data: &[u8]) -> Result<Key, OpenFailed> {
    data.try_into().map(Key::from_bytes).map_err(|_| OpenFailed(()))
}

/// The strings of a session key's context.
struct SessionNames {
    owner: String,
    object: String,
    field: String,
}

impl SessionNames {
    fn new(root: &Key, scope: &Scope, generation: u32) -> Self {
        Self {
            owner: URL_SAFE_NO_PAD.encode(scope.canonical()),
            object: format!("session:{generation}"),
            field: root.kid().to_string(),
        }
    }

    fn context(&self) -> Context<'_> {
        Context {
            purpose: "key",
            owner: &self.owner,
            container: "",
            object: &self.object,
            field: &self.field,
        }
    }
}

fn named_context<'a>(object: &'a str, field: &'a str) -> Context<'a> {
    Context { purpose: "key", owner: "", container: "", object, field }
}

fn scope_context<'a>(container: &'a str, field: &'a str) -> Context<'a> {
    Context { purpose: "scope", owner: "", container, object: "scope", field }
}

const SUITE: Suite = Suite::ChaCha20Poly1305;
/// A wrapped key never changes under its context, so its revision does not either.
const REV: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::{ChannelName, TenantId, UserId};

    fn scope(user: &str) -> Scope {
        let (tenant, channel) = (TenantId::new("acme").unwrap(), ChannelName::new("discord").unwrap());
        Scope::person(tenant, channel, UserId::new(user).unwrap())
    }

    #[test]
    fn a_session_key_opens_for_its_scope_and_generation_only() {
        let roots = Roots::new(Key::random(), vec![]);
        let data_key = Key::random();
        let sealed = wrap_session_key(roots.current(), &scope("a"), 1, &data_key);
        assert_eq!(unwrap_session_key(&roots, &scope("a"), 1, &sealed), Ok(data_key));
        assert_eq!(unwrap_session_key(&roots, &scope("b"), 1, &sealed), Err(OpenFailed(())));
        assert_eq!(unwrap_session_key(&roots, &scope("a"), 2, &sealed), Err(OpenFailed(())));
        let others = Roots::new(Key::random(), vec![Key::random()]);
        assert_eq!(unwrap_session_key(&others, &scope("a"), 1, &sealed), Err(OpenFailed(())));
        assert_eq!(unwrap_named_key(&roots, "names", &sealed), Err(OpenFailed(())));
        assert_eq!(root_of(&others, &sealed), None);
    }

    #[test]
    fn named_keys_and_scopes_open_under_their_name_only() {
        let roots = Roots::new(Key::random(), vec![]);
        let key = Key::random();
        let sealed = wrap_named_key(roots.current(), "names", &key);
        assert_eq!(unwrap_named_key(&roots, "names", &sealed), Ok(key.clone()));
        assert_eq!(unwrap_named_key(&roots, "audit", &sealed), Err(OpenFailed(())));
        let (tag, other) = (key.tag("scope", b"a"), key.tag("scope", b"b"));
        let sealed = wrap_scope(roots.current(), &tag, &scope("a"));
        assert_eq!(unwrap_scope(&roots, &tag, &sealed), Ok(scope("a")));
        assert_eq!(unwrap_scope(&roots, &other, &sealed), Err(OpenFailed(())));
        assert_eq!(unwrap_scope(&roots, &tag, &Sealed::from_bytes(vec![])), Err(OpenFailed(())));
    }

    #[test]
    fn retired_roots_open_what_they_sealed() {
        let (old, new) = (Key::random(), Key::random());
        let before = Roots::new(old.clone(), vec![]);
        let after = Roots::new(new.clone(), vec![old.clone(), new.clone(), old.clone()]);
        assert_eq!(after.kids(), [new.kid(), old.kid()]);
        let key = Key::random();
        for sealed in [
            wrap_session_key(before.current(), &scope("a"), 0, &key),
            wrap_named_key(before.current(), "names", &key),
            wrap_scope(before.current(), &key.tag("", b""), &scope("a")),
        ] {
            assert_eq!(root_of(&after, &sealed), Some(old.kid()));
        }
        let sealed = wrap_session_key(before.current(), &scope("a"), 0, &key);
        assert_eq!(unwrap_session_key(&after, &scope("a"), 0, &sealed), Ok(key));
    }

    #[test]
    fn another_root_can_be_made_current() {
        let keys: [Key; 3] = std::array::from_fn(|_| Key::random());
        let [a, b, c] = keys.each_ref().map(Key::kid);
        let roots = Roots::new(keys[0].clone(), keys[1..].to_vec());
        assert_eq!(roots.with_current(c).unwrap().kids(), [c, a, b]);
        assert_eq!(roots.with_current(a).unwrap().kids(), [a, b, c]);
        assert!(roots.with_current(Key::random().kid()).is_none());
        assert_eq!(roots.get(b), Some(&keys[1]));
    }
}
