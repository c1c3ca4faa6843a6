//! The keys of a running engine: the roots it holds, the named keys it works with, and each session's data key.
//!
//! The key store says which root is current; the key source (environment, file, command) yields the roots. They
//! disagree for a while during a rotation, and a process that meets a root it does not know asks its source again, so
//! that `confidant keys rotate` can run beside a server.

use std::collections::HashSet;
use std::sync::Arc;

use confidant_seal::{
    Key, Kid, MasterKey, Roots, Scope, Sealed, Tag, TenantId, UserId, unwrap_named_key, unwrap_scope,
    unwrap_session_key, wrap_named_key, wrap_scope, wrap_session_key,
};
use parking_lot::RwLock;

use crate::clock::Millis;
use crate::error::{Error, KeySourceError, OpenError, StoreError, Tampering};
use crate::ledger::copy::mark::is_unfinished;
use crate::ledger::epoch::Epoch;
use crate::ledger::web_scope;
use crate::store::{Created, KeyName, KeyRow, KeyStore, NameSealer, Names, Naming, SystemKeys};

/// Where master keys come from; asked at start and again whenever an unknown root turns up.
pub trait KeySource: Send + Sync + std::fmt::Debug {
    /// The master keys as they are configured now.
    fn load(&self) -> Result<MasterKeys, KeySourceError>;
}

/// The master keys that an operator configured.
#[derive(Clone, Debug)]
pub struct MasterKeys {
    /// The one to seal under.
    pub current: MasterKey,
    /// Older ones, still good for opening.
    pub retired: Vec<MasterKey>,
}

/// Master keys that do not change while the program runs.
#[derive(Clone, Debug)]
pub struct StaticKeys(MasterKeys);

impl StaticKeys {
    /// One key, and no older ones.
    #[must_use]
    pub fn new(current: MasterKey) -> Self {
        Self(MasterKeys { current, retired: Vec::new() })
    }

    /// One key from its base64, as `confidant keys generate` prints it.
    pub fn from_base64(key: &str) -> Result<Self, confidant_seal::KeyError> {
        MasterKey::from_base64(key).map(Self::new)
    }

    /// The same with an older key that is still good for opening.
    #[must_use]
    pub fn with_retired(mut self, key: MasterKey) -> Self {
        self.0.retired.push(key);
        self
    }
}

impl KeySource for StaticKeys {
    fn load(&self) -> Result<MasterKeys, KeySourceError> {
        Ok(self.0.clone())
    }
}

/// The keyring as an engine uses it.
#[derive(Debug)]
pub(crate) struct Keyring {
    store: Arc<dyn KeyStore>,
    source: Arc<dyn KeySource>,
    roots: RwLock<Arc<Roots>>,
    names: Key,
    audit: Key,
    tokens: Key,
    bus: Key,
    channels: Key,
    logins: Key,
}

/// A session's data key with what the keyring knows of its log.
#[derive(Debug)]
pub(crate) struct DataKey {
    pub(crate) key: Key,
    pub(crate) anchor: u64,
    pub(crate) expires_at: Option<Millis>,
    /// How many erasures there had been when it was asked for.
    pub(crate) born: Epoch,
}

/// A row of the keyring with what was found out about it.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) row: KeyRow,
    /// Whose it is, or why that cannot be told.
    pub(crate) scope: Result<Scope, Tampering>,
    /// Why its key does not open, though it says whose it is.
    pub(crate) fault: Option<Tampering>,
}

impl Keyring {
    /// Opens the keyring, or makes one on the first start.
    pub(crate) async fn open(
        store: Arc<dyn KeyStore>,
        source: Arc<dyn KeySource>,
        has_data: bool,
    ) -> Result<Self, OpenError> {
        let configured = stretched(&*source)?;
        if is_unfinished(&*store).await? {
            return Err(OpenError::UnfinishedCopy);
        }
        let current = match store.root().await? {
            Some(kid) => kid,
            None if has_data => return Err(OpenError::KeyringMissing),
            None => {
                store.set_root(None, configured.current().kid()).await?;
                // Read back: another process may have been first.
                store.root().await?.unwrap_or_else(|| configured.current().kid())
            }
        };
        let found = configured.kids().iter().map(Kid::to_string).collect::<Vec<_>>().join(", ");
        let roots =
            configured.with_current(current).ok_or(OpenError::WrongKey { expected: current, found })?;
        complete(&*store, has_data).await?;
        let names = named_key(&*store, &roots, "names").await?;
        let audit = named_key(&*store, &roots, "audit").await?;
        let tokens = named_key(&*store, &roots, "tokens").await?;
        let bus = named_key(&*store, &roots, "bus").await?;
        let channels = named_key(&*store, &roots, "channels").await?;
        let logins = named_key(&*store, &roots, "logins").await?;
        let roots = RwLock::new(Arc::new(roots));
        Ok(Self { store, source, roots, names, audit, tokens, bus, channels, logins })
    }

    /// The names under which a store knows this scope.
    pub(crate) fn names(&self, scope: &Scope) -> Names {
        Names {
            scope: self.names.tag("scope", &scope.canonical()),
            person: self.person(scope.tenant(), scope.user()),
            tenant: self.tenant(scope.tenant()),
        }
    }

    /// What the session of this scope is called in a store that has names.
    pub(crate) fn key_name(&self, naming: &Naming, scope: &Scope, tag: Tag) -> Option<KeyName> {
        let own = web_scope::is_web(scope) && matches!(naming, Naming::Readable(_));
        let id = match naming {
            Naming::Tags => return None,
            Naming::Readable(_) => scope.session_id(),
            // The tag is of the whole scope, tenant and all; the channel's name tells of no one.
            Naming::Opaque if scope.is_person() => format!("{}_conv:{tag}", scope.channel().as_str()),
            Naming::Opaque => tag.to_string(),
        };
        let name = match scope.place_id() {
            None => id,
            // As first systems called what a model has of such a chat.
            Some(chat) if own => {
                format!("user:{}:chat:{}:messages:ai", escaped(scope.user().as_str()), escaped(chat.as_str()))
            }
            Some(_) => format!("checkpoint:{id}:latest"),
        };
        Some(KeyName::new(&match naming {
            Naming::Readable(bare) if bare != scope.tenant() => {
                format!("tenant:{}:{name}", escaped(scope.tenant().as_str()))
            }
            _ => name,
        }))
    }

    /// What seals the names of sessions.
    pub(crate) fn name_sealer(&self) -> NameSealer {
        NameSealer::new(self.names.derive("store-names"))
    }

    /// The name of a person: the same in every channel of a tenant, so that all of theirs can be found.
    pub(crate) fn person(&self, tenant: &TenantId, user: &UserId) -> Tag {
        let (tenant, user) = (tenant.as_str().as_bytes(), user.as_str().as_bytes());
        let mut bytes = Vec::with_capacity(8 + tenant.len() + user.len());
        bytes.extend_from_slice(&(tenant.len() as u64).to_be_bytes());
        bytes.extend_from_slice(tenant);
        bytes.extend_from_slice(user);
        self.names.tag("person", &bytes)
    }

    pub(crate) fn tenant(&self, tenant: &TenantId) -> Tag {
        self.names.tag("tenant", tenant.as_str().as_bytes())
    }

    /// The name of a conversation, from which its key's scope is made.
    pub(crate) fn conversation(&self, tenant: &TenantId, kind: &str, id: &str) -> Tag {
        let mut bytes = Vec::new();
        for part in [tenant.as_str(), kind, id] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        self.names.tag("conversation", &bytes)
    }

    /// The name of a turn.
    pub(crate) fn request(&self, scope: &Scope, request_id: &str) -> Tag {
        let mut bytes = scope.canonical();
        bytes.extend_from_slice(request_id.as_bytes());
        self.names.tag("request", &bytes)
    }

    pub(crate) fn audit_key(&self) -> &Key {
        &self.audit
    }

    pub(crate) fn token_key(&self) -> &Key {
        &self.tokens
    }

    pub(crate) fn bus_key(&self) -> &Key {
        &self.bus
    }

    pub(crate) fn channel_key(&self) -> &Key {
        &self.channels
    }

    pub(crate) fn login_key(&self) -> &Key {
        &self.logins
    }

    pub(crate) fn store(&self) -> &dyn KeyStore {
        &*self.store
    }

    /// A session's data key, if it has one.
    pub(crate) async fn data_key(&self, scope: &Scope, names: &Names) -> Result<Option<DataKey>, Error> {
        let Some(row) = self.store.get(names.scope).await? else { return Ok(None) };
        self.unwrap(scope, &row).map(Some)
    }

    /// A session's data key, made if it has none.
    ///
    /// `expires_at` is when its lifetime would be over if nothing more were said; `born`, how many erasures there had been
    /// when it was asked for.
    pub(crate) async fn data_key_or_new(
        &self,
        scope: &Scope,
        names: &Names,
        expires_at: Option<Millis>,
        born: Epoch,
    ) -> Result<DataKey, Error> {
        if let Some(found) = self.data_key(scope, names).await? {
            return Ok(found);
        }
        let key = Key::random();
        loop {
            let row = KeyRow { expires_at, ..self.seal_row(scope, names.scope, generation(born), &key) };
            match self.store.create(row).await? {
                Created::New => return Ok(DataKey { key, anchor: 0, expires_at, born }),
                Created::Existing(row) => return self.unwrap(scope, &row),
                Created::RootChanged(root) => self.follow(root)?,
            }
        }
    }

    /// Whether the keyring still has exactly this key for the session.
    pub(crate) async fn still_has(&self, scope: Tag, kid: Kid) -> Result<bool, Error> {
        Ok(self.store.get(scope).await?.is_some_and(|row| row.kid == kid))
    }

    /// The readable scope of a row.
    pub(crate) fn scope_of(&self, row: &KeyRow) -> Result<Scope, Error> {
        let opened = unwrap_scope(&self.roots(), &row.scope, &row.sealed_scope);
        match opened {
            Ok(scope) => Ok(scope),
            Err(_) if self.roots().get(row.root).is_none() => {
                self.reload()?;
                unwrap_scope(&self.roots(), &row.scope, &row.sealed_scope)
                    .map_err(|_| Tampering::KeyRefused.into())
            }
            Err(_) => Err(Tampering::KeyRefused.into()),
        }
    }

    /// Destroys data keys beyond recovery.
    pub(crate) async fn destroy(&self, scopes: &[Tag]) -> Result<u64, Error> {
        let gone = self.store.destroy(scopes).await?;
        if gone > 0 {
            self.store.scrub().await?;
        }
        Ok(gone)
    }

    /// Re-seals everything under the source's current root. Can be cut off anywhere and run again.
    ///
    /// `progress` gets the number of keys done so far and in all.
    pub(crate) async fn rotate(&self, progress: &(dyn Fn(u64, u64) + Send + Sync)) -> Result<Rotated, Error> {
        let configured = stretched(&*self.source)?;
        let target = configured.current().kid();
        let before = self.store.root().await?;
        if let Some(current) = before
            && configured.get(current).is_none()
        {
            return Err(KeySourceError {
                what: format!(
                    "the keyring is sealed under root {current}, which is not among the configured keys"
                ),
                hint: "give the old key in OLD_CHECKPOINT_ENCRYPTION_KEY until the rotation is done"
                    .to_owned(),
            }
            .into());
        }
        self.hold(configured);
        // From here on, every process that makes a session is turned to the new root by the key store. Also when it is
        // the root already: an earlier run may have been cut off before all parts of the key store knew.
        if !self.store.set_root(before, target).await? {
            return Err(Error::Busy);
        }
        for name in NAMED {
            self.rotate_named(name, target).await?;
        }
        let (all, left) = self.store.count(target).await?;
        let (mut rewrapped, mut refused) = (0, HashSet::new());
        progress(all - left, all);
        loop {
            let rows = self.store.not_under(target, ROTATED_AT_ONCE).await?;
            let pairs = self.resealed(rows, &mut refused)?;
            if pairs.is_empty() {
                break;
            }
            rewrapped += self.store.rewrap(pairs).await?;
            progress(all - left.saturating_sub(rewrapped), all);
        }
        // Those that do not open may stand before others, which are found by going through all.
        let mut after = None;
        while !refused.is_empty() {
            let mut rows = self.store.list(after, ROTATED_AT_ONCE).await?;
            let Some(last) = rows.last() else { break };
            after = Some(last.scope);
            rows.retain(|row| row.root != target && !refused.contains(&row.scope));
            rewrapped += self.store.rewrap(self.resealed(rows, &mut refused)?).await?;
        }
        // Nothing that the old key opens may be left in a journal or a free page.
        self.store.scrub().await?;
        let mut refused: Vec<String> = refused.iter().map(Tag::to_string).collect();
        refused.sort_unstable();
        Ok(Rotated { root: target, keys: all, rewrapped, refused })
    }

    /// Rows with what takes their place; those that do not open are put aside.
    fn resealed(
        &self,
        rows: Vec<KeyRow>,
        refused: &mut HashSet<Tag>,
    ) -> Result<Vec<(KeyRow, KeyRow)>, Error> {
        let mut pairs = Vec::with_capacity(rows.len());
        for row in rows {
            let opened = self.scope_of(&row).and_then(|scope| Ok((self.unwrap(&scope, &row)?, scope)));
            match opened {
                Ok((key, scope)) => {
                    let resealed = self.seal_row(&scope, row.scope, row.generation, &key.key);
                    pairs.push((row, resealed));
                }
                Err(Error::Tampered(_)) => {
                    refused.insert(row.scope);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(pairs)
    }

    /// Goes through every key of the keyring, also those that no list has, and says of each whose it is, or why that cannot
    /// be told. What the rows are found by is not believed: what is sealed in them is.
    pub(crate) async fn read_through(&self, each: &mut (dyn FnMut(Owned) + Send)) -> Result<(), Error> {
        let mut after = None;
        loop {
            let mut rows = self.store.list(after, ROTATED_AT_ONCE).await?;
            let last = rows.last().map(|row| row.scope);
            if last.is_none() {
                rows = self.store.unlisted().await?;
            }
            for row in rows {
                let (scope, fault) = match self.owner(&row) {
                    Ok(scope) => match self.unwrap(&scope, &row) {
                        Ok(_) => (Ok(scope), None),
                        Err(Error::Tampered(tampering)) => (Ok(scope), Some(tampering)),
                        Err(error) => return Err(error),
                    },
                    Err(Error::Tampered(tampering)) => (Err(tampering), None),
                    Err(error) => return Err(error),
                };
                each(Owned { row, scope, fault });
            }
            if last.is_none() {
                return Ok(());
            }
            after = last;
        }
    }

    /// Whose row it is: its scope, if that opens and belongs there.
    fn owner(&self, row: &KeyRow) -> Result<Scope, Error> {
        let scope = self.scope_of(row)?;
        if self.names(&scope).scope == row.scope { Ok(scope) } else { Err(Tampering::KeyRefused.into()) }
    }

    /// When all keys were last sealed anew, or the keyring was first seen.
    pub(crate) async fn rotated_at(&self) -> Result<Option<Millis>, StoreError> {
        let noted = self.store.named(ROTATED).await?;
        let text = noted.and_then(|(_, noted)| String::from_utf8(noted.as_bytes().to_vec()).ok());
        Ok(text.and_then(|text| text.parse().ok()).map(Millis))
    }

    /// Notes that time. Nothing is opened with it, so it stands there as it is.
    pub(crate) async fn note_rotation(&self, root: Kid, at: Millis) -> Result<(), StoreError> {
        let before = self.store.named(ROTATED).await?.map(|(_, before)| before);
        let noted = Sealed::from_bytes(at.0.to_string().into_bytes());
        // Another process that notes it at the same moment notes the same.
        self.store.put_named(ROTATED, before.as_ref(), root, &noted).await?;
        Ok(())
    }

    /// The root that new rows are sealed under, as far as this process knows.
    pub(crate) fn root(&self) -> Kid {
        self.roots().current().kid()
    }

    pub(crate) fn kids(&self) -> Vec<Kid> {
        self.roots().kids()
    }

    async fn rotate_named(&self, name: &'static str, target: Kid) -> Result<(), Error> {
        for _ in 0..MOST_TRIES {
            let Some((root, sealed)) = self.store.named(name).await? else { return Ok(()) };
            if root == target {
                return Ok(());
            }
            let roots = self.roots();
            let key = unwrap_named_key(&roots, name, &sealed).map_err(|_| Tampering::KeyRefused)?;
            let resealed = wrap_named_key(roots.current(), name, &key);
            self.store.put_named(name, Some(&sealed), target, &resealed).await?;
        }
        Err(Tampering::KeyRefused.into())
    }

    fn unwrap(&self, scope: &Scope, row: &KeyRow) -> Result<DataKey, Error> {
        if self.roots().get(row.root).is_none() {
            self.reload()?;
        }
        let key = unwrap_session_key(&self.roots(), scope, row.generation, &row.sealed_key);
        let key = key.map_err(|_| Tampering::KeyRefused)?;
        if key.kid() != row.kid {
            return Err(Tampering::KeyRefused.into());
        }
        let born = born(row);
        Ok(DataKey { key, anchor: row.anchor, expires_at: row.expires_at, born })
    }

    fn seal_row(&self, scope: &Scope, tag: Tag, generation: u32, key: &Key) -> KeyRow {
        let roots = self.roots();
        let root = roots.current();
        KeyRow {
            scope: tag,
            generation,
            root: root.kid(),
            kid: key.kid(),
            sealed_key: wrap_session_key(root, scope, generation, key),
            sealed_scope: wrap_scope(root, &tag, scope),
            anchor: 0,
            expires_at: None,
        }
    }

    /// Makes `root` current, asking the source again if it is new to us.
    fn follow(&self, root: Kid) -> Result<(), Error> {
        if self.roots().get(root).is_none() {
            self.reload()?;
        }
        let moved = self.roots().with_current(root).ok_or_else(|| unknown_root(root))?;
        self.hold(moved);
        Ok(())
    }

    /// Takes in keys that were configured since the start; never lets go of one that is still in use.
    fn reload(&self) -> Result<(), Error> {
        let configured = stretched(&*self.source)?;
        let held = self.roots();
        let keys = |roots: &Roots| {
            roots.kids().iter().filter_map(|kid| roots.get(*kid).cloned()).collect::<Vec<_>>()
        };
        let others = keys(&held).into_iter().chain(keys(&configured)).collect();
        self.hold(Roots::new(held.current().clone(), others));
        Ok(())
    }

    fn hold(&self, roots: Roots) {
        *self.roots.write() = Arc::new(roots);
    }

    fn roots(&self) -> Arc<Roots> {
        Arc::clone(&self.roots.read())
    }
}

/// The generation of a key that is made after so many erasures. The first is 1, as it was before they were counted.
fn generation(born: Epoch) -> u32 {
    u32::try_from(born.0).unwrap_or(u32::MAX).saturating_add(1)
}

/// How many erasures there had been when a row's key was asked for.
pub(crate) fn born(row: &KeyRow) -> Epoch {
    Epoch(u64::from(row.generation.saturating_sub(1)))
}

/// What a rotation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotated {
    /// The root that everything is sealed under now.
    pub root: Kid,
    /// Session keys in all.
    pub keys: u64,
    /// Session keys that this run re-sealed.
    pub rewrapped: u64,
    /// Session keys that do not open and were left as they are, by tag.
    pub refused: Vec<String>,
}

/// The keys that have a name instead of a scope.
///
/// In the order in which they are made, so that only the last ones can be missing: where a first start was cut off, or in
/// a keyring from before there were these.
pub(crate) const NAMED: [&str; 6] = ["names", "audit", "tokens", "bus", "channels", "logins"];
/// So many of them every keyring in use has had.
const FIRST_NAMED: usize = 3;
/// Where the keyring says when it was last rotated. No key: it opens nothing.
pub(crate) const ROTATED: &str = "rotated";
/// How often others may be faster.
const MOST_TRIES: usize = 1000;
const ROTATED_AT_ONCE: usize = 256;

/// An id inside a name, whose parts colons tell apart.
fn escaped(id: &str) -> String {
    id.replace('%', "%25").replace(':', "%3A")
}

fn unknown_root(root: Kid) -> Error {
    KeySourceError {
        what: format!("the keyring is now sealed under root {root}, which this process has no key for"),
        hint: "restart it with the new key (and the old one in OLD_CHECKPOINT_ENCRYPTION_KEY)".to_owned(),
    }
    .into()
}

/// Stretches every configured key into its root.
fn stretched(source: &dyn KeySource) -> Result<Roots, KeySourceError> {
    let keys = source.load()?;
    Ok(Roots::new(keys.current.root(), keys.retired.iter().map(MasterKey::root).collect()))
}

/// Refuses a keyring out of which somebody took a named key.
async fn complete(store: &dyn KeyStore, has_data: bool) -> Result<(), OpenError> {
    if first_missing(store, NAMED.len()).await?.is_none() {
        return Ok(());
    }
    // Looked at before the keys are again: another process that makes all this for the first time makes the keys first.
    let in_use =
        has_data || !store.list(None, 1).await?.is_empty() || !store.lane_anchors().await?.is_empty();
    let expected = if in_use { FIRST_NAMED } else { 0 };
    match first_missing(store, expected).await? {
        Some(name) => Err(OpenError::KeyringIncomplete(name)),
        None => Ok(()),
    }
}

/// A named key that is missing although it is one of the first, or one after it is there.
async fn first_missing(store: &dyn SystemKeys, expected: usize) -> Result<Option<&'static str>, OpenError> {
    let (mut missing, mut later) = (None, false);
    // From the last one on: they are made in their order, also at this moment.
    for (at, name) in NAMED.into_iter().enumerate().rev() {
        match store.named(name).await? {
            Some(_) => later = true,
            None if later || at < expected => missing = Some(name),
            None => {}
        }
    }
    Ok(missing)
}

async fn named_key(store: &dyn SystemKeys, roots: &Roots, name: &'static str) -> Result<Key, OpenError> {
    if store.named(name).await?.is_none() {
        let root = roots.current();
        store.put_named(name, None, root.kid(), &wrap_named_key(root, name, &Key::random())).await?;
    }
    let (_, sealed) = store.named(name).await?.ok_or(OpenError::KeyringTampered(name))?;
    unwrap_named_key(roots, name, &sealed).map_err(|_| OpenError::KeyringTampered(name))
}
