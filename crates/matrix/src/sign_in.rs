//! From settings to a client that is signed in: the stored session if it still is one, a new one if not.
//!
//! What is easy to get wrong: a device is its keys. If the databases that hold them are missing, or do not open, or hold
//! other keys, the old device id is never used again; a new device signs in, and the recovery key gives it what the old
//! one knew.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use confidant_channel::{Trouble, Vault};
use matrix_sdk::authentication::matrix::MatrixSession;
use matrix_sdk::config::RequestConfig;
use matrix_sdk::cross_process_lock::CrossProcessLockConfig;
use matrix_sdk::encryption::{BackupDownloadStrategy, EncryptionSettings};
use matrix_sdk::ruma::api::client::keys::get_keys;
use matrix_sdk::ruma::{
    MilliSecondsSinceUnixEpoch, OwnedDeviceId, OwnedRoomId, OwnedUserId, RoomAliasId, RoomId,
};
use matrix_sdk::store::RoomLoadSettings;
use matrix_sdk::{Client, SessionMeta, SessionTokens, SqliteStoreConfig};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::identity;
use crate::settings::{Credential, Settings};
use crate::trouble::{self, Lost};

/// A client that is signed in.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) me: OwnedUserId,
    pub(crate) device: OwnedDeviceId,
    /// When this installation first signed in, in milliseconds: what was said before that is nobody's question.
    pub(crate) since: i64,
    /// The only rooms that are listened in.
    pub(crate) rooms: Option<Arc<HashSet<OwnedRoomId>>>,
}

/// What a sign-in led to, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The account.
    pub user: String,
    /// Its device on this machine.
    pub device: String,
    /// Whether the device was made just now.
    pub is_new: bool,
    /// Whether other devices of the account vouch for this one.
    pub is_verified: bool,
}

/// How to sign in, if not as the settings say.
pub(crate) enum Way<'a> {
    Settings,
    Password(&'a SecretString),
    SsoToken(&'a SecretString),
}

/// What is kept of a session, sealed.
#[derive(Serialize, Deserialize)]
struct Kept {
    user: OwnedUserId,
    device: OwnedDeviceId,
    token: String,
    /// The device's public key: it tells whether the databases are still this device's.
    fingerprint: Option<String>,
    since: i64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.token);
    }
}

impl Kept {
    async fn read(vault: &Vault) -> Result<Option<Self>, Trouble> {
        let kept = vault.kept(SESSION).await.map_err(trouble::inbox)?;
        Ok(kept.and_then(|kept| serde_json::from_slice(&kept).ok()))
    }

    async fn keep(&self, vault: &Vault) -> Result<(), Trouble> {
        let json = serde_json::to_vec(self).expect("strings and numbers are always JSON");
        vault.keep(SESSION, &zeroize::Zeroizing::new(json)).await.map_err(trouble::inbox)
    }

    fn session(&self) -> MatrixSession {
        MatrixSession {
            meta: SessionMeta { user_id: self.user.clone(), device_id: self.device.clone() },
            tokens: SessionTokens { access_token: self.token.clone(), refresh_token: None },
        }
    }
}

/// Signs in; says whether a device was made for it.
pub(crate) async fn sign_in(
    settings: &Settings,
    vault: &Vault,
    way: &Way<'_>,
) -> Result<(Session, bool), Trouble> {
    let Some(kept) = Kept::read(vault).await? else { return fresh(settings, vault, way, None).await };
    if !settings.is_user(kept.user.as_str()) {
        return Err(Trouble::refused(
            "the stored Matrix session belongs to another account than channels.matrix.user",
            "`confidant matrix login --reset` ends it and signs in as the new one",
        ));
    }
    if let Some(Credential::AccessToken(token)) = &settings.credential
        && token.expose_secret().trim() != kept.token
    {
        return fresh(settings, vault, way, Some(&kept)).await;
    }
    let Some(client) = restored(settings, vault, &kept).await? else {
        tracing::warn!(
            "the Matrix keys in the data folder are missing or do not open: a new device is made; hint: \
             restore the folder matrix from a backup if that was not intended"
        );
        return fresh(settings, vault, way, Some(&kept)).await;
    };
    match client.whoami().await {
        Ok(_) => Ok((session(settings, client, &kept).await?, false)),
        Err(error) => match trouble::lost_token(&error) {
            Some(Lost::Token) => {
                close(&client).await;
                again(settings, vault, way, kept).await
            }
            Some(Lost::Device) => {
                close(&client).await;
                tracing::warn!("the Matrix server has ended this device's session: a new one is made");
                fresh(settings, vault, way, Some(&kept)).await
            }
            None => Err(trouble::of_http(&error)),
        },
    }
}

/// Ends the stored session, as far as the server still knows it.
pub(crate) async fn forget(settings: &Settings, vault: &Vault) -> Result<(), Trouble> {
    if let Some(kept) = Kept::read(vault).await?
        && let Ok(Some(client)) = restored(settings, vault, &kept).await
    {
        if client.logout().await.is_err() {
            tracing::warn!(
                "the old Matrix device could not be removed from the server; hint: remove it by hand"
            );
        }
        close(&client).await;
    }
    vault.forget(SESSION).await.map_err(trouble::inbox)?;
    wipe(settings)
}

/// The client with the stored session; none if the databases are not that device's.
async fn restored(settings: &Settings, vault: &Vault, kept: &Kept) -> Result<Option<Client>, Trouble> {
    if settings.folder.as_deref().is_none_or(|folder| !folder.join(CRYPTO).exists()) {
        return Ok(None);
    }
    let client = match open(settings, vault).await {
        Ok(client) => client,
        Err(Unopened::Store) => return Ok(None),
        Err(Unopened::Other(trouble)) => return Err(trouble),
    };
    let auth = client.matrix_auth();
    if auth.restore_session(kept.session(), RoomLoadSettings::default()).await.is_err() {
        close(&client).await;
        return Ok(None);
    }
    // Databases that are there but empty would get new keys under the old name.
    let here = client.encryption().ed25519_key().await;
    if here.is_some() && here == kept.fingerprint {
        return Ok(Some(client));
    }
    close(&client).await;
    Ok(None)
}

/// Lets go of a client's databases, whoever still holds it. A connection that is closed later would take the journal of
/// those that come in their place with it.
pub(crate) async fn close(client: &Client) {
    let _ = client.pause().await;
}

/// The same device with a new token.
async fn again(
    settings: &Settings,
    vault: &Vault,
    way: &Way<'_>,
    mut kept: Kept,
) -> Result<(Session, bool), Trouble> {
    let password = password(settings, way).ok_or_else(trouble::expired)?;
    let client = open(settings, vault).await.map_err(Unopened::trouble)?;
    let login = client.matrix_auth().login_username(&kept.user, password.expose_secret());
    let done = login.device_id(kept.device.as_str()).send().await;
    kept.token = done.map_err(|error| trouble::of_login(&error))?.access_token.clone();
    kept.keep(vault).await?;
    tracing::info!("the Matrix session had ended; a new one was made");
    Ok((session(settings, client, &kept).await?, false))
}

/// A new device.
async fn fresh(
    settings: &Settings,
    vault: &Vault,
    way: &Way<'_>,
    before: Option<&Kept>,
) -> Result<(Session, bool), Trouble> {
    let since = before.map_or_else(now, |before| before.since);
    // What was there is let go of only when there is something to put in its place.
    let made = match (way, &settings.credential) {
        (Way::Settings, Some(Credential::AccessToken(token))) => adopted(settings, token).await?,
        _ => {
            let asking = asking(settings).await?;
            log_in(settings, way, &asking).await?;
            asking.matrix_auth().session().ok_or_else(trouble::unread)?
        }
    };
    set_aside(settings)?;
    let client = open(settings, vault).await.map_err(Unopened::trouble)?;
    let restored = client.matrix_auth().restore_session(made.clone(), RoomLoadSettings::default()).await;
    restored.map_err(|error| trouble::of(&error))?;
    let kept = Kept {
        user: made.meta.user_id.clone(),
        device: made.meta.device_id.clone(),
        token: made.tokens.access_token.clone(),
        fingerprint: client.encryption().ed25519_key().await,
        since,
    };
    kept.keep(vault).await?;
    identity::begin(settings, vault, &client, password(settings, way)).await;
    tracing::info!("a Matrix device was made for this machine");
    Ok((session(settings, client, &kept).await?, true))
}

async fn log_in(settings: &Settings, way: &Way<'_>, client: &Client) -> Result<(), Trouble> {
    let auth = client.matrix_auth();
    let login = if let Way::SsoToken(token) = way {
        auth.login_token(token.expose_secret().trim())
    } else {
        let password = password(settings, way).ok_or_else(no_way_in)?;
        auth.login_username(settings.user.as_deref().unwrap_or_default().trim(), password.expose_secret())
    };
    let done = login.initial_device_display_name(DEVICE).send().await;
    let done = done.map_err(|error| trouble::of_login(&error))?;
    if settings.is_user(done.user_id.as_str()) {
        return Ok(());
    }
    let _ = client.logout().await;
    Err(Trouble::refused(
        "this login belongs to another account than channels.matrix.user",
        "correct channels.matrix.user, or log in as that account",
    ))
}

pub(crate) fn no_way_in() -> Trouble {
    Trouble::refused(
        "there is no stored Matrix session, and no password to make one with",
        "set channels.matrix.password_file, or run `confidant matrix login`",
    )
}

/// What the server was asked about the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Whether it knows what they sign in with, and it does.
    Known,
    /// They have nothing to sign in with.
    Nothing,
}

/// Looks whether the account could sign in as the settings say, and leaves nothing behind.
pub(crate) async fn try_out(settings: &Settings, asking: &Client) -> Result<Asked, Trouble> {
    match &settings.credential {
        None => return Ok(Asked::Nothing),
        Some(Credential::AccessToken(token)) => {
            owner(settings, asking, token).await?;
        }
        Some(Credential::Password(_)) => {
            log_in(settings, &Way::Settings, asking).await?;
            asking.logout().await.map_err(|error| trouble::of(&error))?;
        }
    }
    Ok(Asked::Known)
}

/// A client that asks with the stored session, and whose that is; none if there is none. Its databases may be in use by the
/// process that listens, and are left alone.
pub(crate) async fn stored(
    settings: &Settings,
    vault: &Vault,
) -> Result<Option<(Client, OwnedUserId, OwnedDeviceId)>, Trouble> {
    let Some(kept) = Kept::read(vault).await? else { return Ok(None) };
    let asking = asking(settings).await?;
    let token = SecretString::from(kept.token.as_str());
    let whose = owner(settings, &asking, &token).await;
    let (user, device) =
        whose.map_err(|trouble| if trouble == unknown_token() { trouble::expired() } else { trouble })?;
    Ok(Some((asking, user, device)))
}

fn unknown_token() -> Trouble {
    Trouble::refused(
        "the Matrix server does not know this access_token",
        "make a new one, or use a password; then start again",
    )
}

/// The session of a token that somebody made. Its device must not have keys: they would not be ours.
async fn adopted(settings: &Settings, token: &SecretString) -> Result<MatrixSession, Trouble> {
    let asking = asking(settings).await?;
    let (user, device) = owner(settings, &asking, token).await?;
    let mut request = get_keys::v3::Request::new();
    request.device_keys.insert(user.clone(), vec![device.clone()]);
    let keys = asking.send(request).await.map_err(|error| trouble::of_http(&error))?;
    if keys.device_keys.get(&user).is_some_and(|devices| devices.contains_key(&device)) {
        return Err(Trouble::refused(
            "the access_token belongs to a device that is used elsewhere: its keys are not on this machine",
            "make a token for a device of its own (log in again), or use a password",
        ));
    }
    Ok(with_token(user, device, token))
}

fn with_token(user_id: OwnedUserId, device_id: OwnedDeviceId, token: &SecretString) -> MatrixSession {
    MatrixSession {
        meta: SessionMeta { user_id, device_id },
        tokens: SessionTokens { access_token: token.expose_secret().trim().to_owned(), refresh_token: None },
    }
}

/// Whose token it is, and which device's.
async fn owner(
    settings: &Settings,
    asking: &Client,
    token: &SecretString,
) -> Result<(OwnedUserId, OwnedDeviceId), Trouble> {
    // To ask with a token, one has to be somebody.
    let nobody = OwnedUserId::try_from("@nobody:localhost").map_err(|_| trouble::unread())?;
    let unknown = with_token(nobody, "NONE".into(), token);
    let auth = asking.matrix_auth();
    let restored = auth.restore_session(unknown, RoomLoadSettings::default());
    restored.await.map_err(|error| trouble::of(&error))?;
    let who = asking.whoami().await.map_err(|error| match trouble::lost_token(&error) {
        Some(_) => unknown_token(),
        None => trouble::of_http(&error),
    })?;
    let device = who.device_id.ok_or_else(|| {
        Trouble::refused(
            "the access_token does not belong to a device",
            "log in with a password, or make another token",
        )
    })?;
    if !settings.is_user(who.user_id.as_str()) {
        return Err(Trouble::refused(
            "the access_token belongs to another account than channels.matrix.user",
            "correct one of them",
        ));
    }
    Ok((who.user_id, device))
}

fn password<'a>(settings: &'a Settings, way: &Way<'a>) -> Option<&'a SecretString> {
    match (way, &settings.credential) {
        (Way::Password(password), _) => Some(password),
        (_, Some(Credential::Password(password))) => Some(password),
        _ => None,
    }
}

async fn session(settings: &Settings, client: Client, kept: &Kept) -> Result<Session, Trouble> {
    let rooms = if settings.allowed_rooms.is_empty() {
        None
    } else {
        let mut rooms = HashSet::new();
        for room in settings.allowed_rooms.iter().map(|room| room.trim()) {
            if let Ok(id) = RoomId::parse(room) {
                rooms.insert(id);
            } else if let Ok(alias) = RoomAliasId::parse(room) {
                match client.resolve_room_alias(&alias).await {
                    Ok(found) => {
                        rooms.insert(found.room_id);
                    }
                    Err(error) => match trouble::of_http(&error) {
                        trouble @ Trouble::Passing { .. } => return Err(trouble),
                        _ => tracing::warn!(
                            "an alias in channels.matrix.allowed_rooms does not lead to a room; hint: use \
                             the room's id"
                        ),
                    },
                }
            }
        }
        Some(Arc::new(rooms))
    };
    let (me, device) = (kept.user.clone(), kept.device.clone());
    Ok(Session { client, me, device, since: kept.since, rooms })
}

/// Why a client could not be made.
enum Unopened {
    /// The databases do not open.
    Store,
    Other(Trouble),
}

impl Unopened {
    fn trouble(self) -> Trouble {
        match self {
            Self::Store => Trouble::passing(
                "the Matrix databases in the data folder cannot be opened",
                "check the folder's space and permissions",
            ),
            Self::Other(trouble) => trouble,
        }
    }
}

async fn open(settings: &Settings, vault: &Vault) -> Result<Client, Unopened> {
    let mut builder = builder(settings);
    if let Some(folder) = &settings.folder {
        private(folder).map_err(|_| Unopened::Store)?;
        let key = vault.store_key("sdk");
        let store = SqliteStoreConfig::new(folder).key(Some(key.dangerously_expose_bytes())).pool_max_size(4);
        builder = builder.sqlite_store_with_config_and_cache_path(store, None::<&Path>);
    }
    builder.build().await.map_err(|error| match error {
        matrix_sdk::ClientBuildError::SqliteStore(_) => Unopened::Store,
        matrix_sdk::ClientBuildError::Http(error) => Unopened::Other(trouble::of_http(&error)),
        _ => Unopened::Other(trouble::not_matrix()),
    })
}

/// A client that keeps nothing, for a question or two.
pub(crate) async fn asking(settings: &Settings) -> Result<Client, Trouble> {
    builder(settings).build().await.map_err(|error| match error {
        matrix_sdk::ClientBuildError::Http(error) => trouble::of_http(&error),
        _ => trouble::not_matrix(),
    })
}

fn builder(settings: &Settings) -> matrix_sdk::ClientBuilder {
    // A second time it is there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let encryption = EncryptionSettings {
        // Done by us, so that what is wrong can be said.
        auto_enable_cross_signing: false,
        backup_download_strategy: BackupDownloadStrategy::AfterDecryptionFailure,
        auto_enable_backups: false,
    };
    Client::builder()
        .homeserver_url(settings.homeserver.trim().trim_end_matches('/'))
        // The operator said where it is; a server that says otherwise would get the next password.
        .respect_login_well_known(false)
        // Trying again is left to our own patience, which can be seen.
        .request_config(RequestConfig::new().disable_retry().timeout(REQUEST))
        .cross_process_store_config(CrossProcessLockConfig::SingleProcess)
        .with_encryption_settings(encryption)
        .user_agent(DEVICE)
}

/// Removes the databases: their keys are of no use to another device.
fn wipe(settings: &Settings) -> Result<(), Trouble> {
    let Some(folder) = &settings.folder else { return Ok(()) };
    each_database(folder, |path, _| std::fs::remove_file(path))?;
    let _ = std::fs::remove_dir_all(folder.join(BEFORE));
    Ok(())
}

/// Puts the databases aside, in the place of those that were there: somebody may still find out why they did not open.
fn set_aside(settings: &Settings) -> Result<(), Trouble> {
    let Some(folder) = &settings.folder else { return Ok(()) };
    let before = folder.join(BEFORE);
    if !folder.join(CRYPTO).exists() {
        return wipe(settings);
    }
    let _ = std::fs::remove_dir_all(&before);
    private(&before).map_err(|_| Unopened::Store.trouble())?;
    each_database(folder, |path, name| std::fs::rename(path, before.join(name)))
}

fn each_database(
    folder: &Path,
    work: impl Fn(&Path, &std::ffi::OsStr) -> std::io::Result<()>,
) -> Result<(), Trouble> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(DATABASES) {
            match work(&entry.path(), &name) {
                // Journals go by themselves.
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Unopened::Store.trouble());
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// A folder that only its owner can enter.
fn private(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn now() -> i64 {
    i64::try_from(u64::from(MilliSecondsSinceUnixEpoch::now().get())).unwrap_or(i64::MAX)
}

const SESSION: &str = "session";
/// What the device is called, where people see a list of them.
const DEVICE: &str = "Confidant";
const DATABASES: &str = "matrix-sdk-";
/// Where the databases of the device before this one are.
const BEFORE: &str = "before";
const CRYPTO: &str = "matrix-sdk-crypto.sqlite3";
/// How long a request may take.
const REQUEST: Duration = Duration::from_secs(30);
