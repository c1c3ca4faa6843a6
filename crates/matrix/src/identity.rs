//! The account's cross-signing identity and its key backup: made at the first login, and given to later devices by the
//! recovery key. What fails of that is tried again while the account listens, and can be seen until it is done.

use std::time::Duration;

use confidant_channel::{Backoff, Intake, Trouble, Vault};
use confidant_display::{Hinted as _, debug_without_content};
use matrix_sdk::Client;
use matrix_sdk::encryption::CrossSigningResetAuthType;
use matrix_sdk::encryption::recovery::RecoveryError;
use matrix_sdk::ruma::api::client::keys::get_keys;
use matrix_sdk::ruma::api::client::uiaa::{AuthData, MatrixUserIdentifier, Password, UserIdentifier};
use matrix_sdk::ruma::{DeviceId, UserId};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::listen::what_matters;
use crate::settings::{Credential, Settings};
use crate::trouble;

/// A recovery key, to be shown to who runs the account.
pub struct RecoveryKey(pub SecretString);

debug_without_content!(RecoveryKey(***));

/// Makes a new device one of the account's own, or says what is missing for that. The device works without, too.
pub(crate) async fn begin(
    settings: &Settings,
    vault: &Vault,
    client: &Client,
    password: Option<&SecretString>,
) {
    // The first sync uploads the device's keys; without them there is nothing to sign.
    let synced = client.sync_once(what_matters(Duration::ZERO)).await;
    let settled = match synced {
        Ok(_) => settle(settings, vault, client, password).await,
        Err(error) => Err(trouble::of(&error)),
    };
    if let Err(trouble) = settled {
        tracing::warn!(trouble = %trouble, "the Matrix device is not verified: encrypted rooms may show a warning");
    }
}

/// Makes what is still missing of a device that listens, for as long as it takes. Must not sync: that is the listening's, which
/// would miss what another sync brings.
pub(crate) async fn mend(settings: Settings, client: Client, intake: Intake) {
    let encryption = client.encryption();
    encryption.wait_for_e2ee_initialization_tasks().await;
    if is_ours(&client).await && encryption.backups().are_enabled().await {
        return;
    }
    let password = match &settings.credential {
        Some(Credential::Password(password)) => Some(password),
        _ => None,
    };
    let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
    while let Err(trouble) = settle(&settings, intake.vault(), &client, password).await {
        let (what, hint) = trouble.what_and_hint(trouble::LATER);
        let lacking = if is_ours(&client).await {
            "the keys of the Matrix device have no backup"
        } else {
            "the Matrix device is not verified, and encrypted rooms may show a warning"
        };
        let trouble = Trouble::refused(format!("{lacking}: {what}"), hint);
        tracing::warn!(trouble = %trouble, "the account's identity is not complete; retrying");
        intake.remark(Some(&trouble));
        tokio::time::sleep(backoff.wait()).await;
    }
    intake.remark(None);
}

/// Whether the account vouches for a device, as anybody sees it who asks the server.
pub(crate) async fn vouched(asking: &Client, user: &UserId, device: &DeviceId) -> Result<(), Trouble> {
    let mut request = get_keys::v3::Request::new();
    request.device_keys.insert(user.to_owned(), vec![device.to_owned()]);
    let keys = asking.send(request).await.map_err(|error| trouble::of_http(&error))?;
    let read = |raw: &str| serde_json::from_str::<Value>(raw).unwrap_or_default();
    let Some(signing) = keys.self_signing_keys.get(user).map(|key| read(key.json().get())) else {
        return Err(Trouble::refused(
            "the Matrix account has no identity yet, and encrypted rooms may show a warning",
            "`confidant serve` tries to make it and says on /readyz what is missing; or run `confidant matrix recovery-key`",
        ));
    };
    let device = keys.device_keys.get(user).and_then(|devices| devices.get(device));
    let device = device.map(|device| read(device.json().get())).unwrap_or_default();
    let signed = device["signatures"][user.as_str()].as_object();
    let signs = |key: &String| signed.is_some_and(|signatures| signatures.contains_key(key));
    if signing["keys"].as_object().is_some_and(|keys| keys.keys().any(signs)) {
        return Ok(());
    }
    Err(Trouble::refused(
        "the Matrix account has not verified this machine's device, and encrypted rooms may show a warning",
        "give the account's recovery key as channels.matrix.recovery_key; `confidant serve` then says on /readyz if something is still missing",
    ))
}

/// Whether this device holds the account's identity, and so is one of the account's own, for others, too.
pub(crate) async fn is_ours(client: &Client) -> bool {
    let (Some(me), Some(device)) = (client.user_id(), client.device_id()) else { return false };
    has_secrets(client).await && vouched(client, me, device).await.is_ok()
}

/// Whether the secrets of an identity are here. It may be one that never came to the server.
async fn has_secrets(client: &Client) -> bool {
    client.encryption().cross_signing_status().await.is_some_and(|status| status.is_complete())
}

/// Makes a backup with a key of its own, if the account has none.
async fn backed_up(vault: &Vault, client: &Client) -> Result<(), Trouble> {
    let encryption = client.encryption();
    let there = encryption.backups().fetch_exists_on_server().await;
    if there.map_err(|error| trouble::of(&error))? {
        return Ok(());
    }
    let key = encryption.recovery().enable().await.map_err(|error| of_recovery(&error))?;
    keep_key(vault, &SecretString::from(key)).await
}

async fn settle(
    settings: &Settings,
    vault: &Vault,
    client: &Client,
    password: Option<&SecretString>,
) -> Result<(), Trouble> {
    bootstrap(client, password).await?;
    let given = settings.recovery_key.clone();
    let Some(key) = (match given {
        Some(key) => Some(key),
        None => kept_key(vault).await?,
    }) else {
        return if is_ours(client).await { backed_up(vault, client).await } else { Err(unverified()) };
    };
    client.encryption().recovery().recover(key.expose_secret().trim()).await.map_err(|error| match error {
        RecoveryError::Sdk(error) => trouble::of(&error),
        _ => Trouble::refused(
            "the recovery key does not open this account's backup",
            "correct channels.matrix.recovery_key, or make a new one with `confidant matrix recovery-key --reset`",
        ),
    })?;
    keep_key(vault, &key).await
}

/// Makes an identity for the account if it has none, and tells the server of it.
async fn bootstrap(client: &Client, password: Option<&SecretString>) -> Result<(), Trouble> {
    let encryption = client.encryption();
    // If another device has made one since, the secrets of ours are good for nothing, and this takes them away.
    if let Some(me) = client.user_id() {
        encryption.request_user_identity(me).await.map_err(|error| trouble::of(&error))?;
    }
    // The SDK keeps what it has made before the server has it, and then thinks that nothing is needed.
    let made = if has_secrets(client).await && !is_ours(client).await {
        encryption.bootstrap_cross_signing(None).await
    } else {
        encryption.bootstrap_cross_signing_if_needed(None).await
    };
    let Err(error) = made else { return Ok(()) };
    let Some(wanted) = error.as_uiaa_response() else { return Err(trouble::of(&error)) };
    let auth = authenticated(client, password, wanted.session.clone())?;
    encryption.bootstrap_cross_signing(Some(auth)).await.map_err(|error| trouble::of(&error))
}

fn authenticated(
    client: &Client,
    password: Option<&SecretString>,
    session: Option<String>,
) -> Result<AuthData, Trouble> {
    let (Some(password), Some(me)) = (password, client.user_id()) else {
        return Err(Trouble::refused(
            "the Matrix server needs the account's password for a new identity",
            "run `confidant matrix recovery-key`, which asks for it",
        ));
    };
    let who = UserIdentifier::Matrix(MatrixUserIdentifier::new(me.to_string()));
    let mut password = Password::new(who, password.expose_secret().to_owned());
    password.session = session;
    Ok(AuthData::Password(password))
}

/// The account's recovery key: the one that is kept, or a new one with a new backup. With `reset` a new one in any case, and
/// the identity is made anew, too, if it is not here.
pub(crate) async fn recovery_key(
    vault: &Vault,
    client: &Client,
    password: Option<&SecretString>,
    reset: bool,
) -> Result<RecoveryKey, Trouble> {
    if !reset
        && is_ours(client).await
        && client.encryption().backups().are_enabled().await
        && let Some(key) = kept_key(vault).await?
    {
        return Ok(RecoveryKey(key));
    }
    let synced = client.sync_once(what_matters(Duration::ZERO)).await;
    synced.map_err(|error| trouble::of(&error))?;
    bootstrap(client, password).await?;
    let encryption = client.encryption();
    let recovery = encryption.recovery();
    if !is_ours(client).await {
        if !reset {
            return Err(Trouble::refused(
                "the account's identity was made by another device, and its secrets are not here",
                "give that device's key as channels.matrix.recovery_key and log in again, or replace \
                 everything with --reset",
            ));
        }
        let handle = recovery.reset_identity().await.map_err(|error| of_recovery(&error))?;
        if let Some(handle) = handle {
            let auth = match handle.auth_type() {
                CrossSigningResetAuthType::Uiaa(wanted) => {
                    Some(authenticated(client, password, wanted.session.clone())?)
                }
                CrossSigningResetAuthType::OAuth(_) => None,
            };
            handle.reset(auth).await.map_err(|error| of_recovery(&error))?;
        }
    }
    let key = if encryption.backups().are_enabled().await {
        recovery.reset_key().await
    } else {
        if reset {
            let gone = encryption.backups().disable_and_delete().await;
            gone.map_err(|error| trouble::of(&error))?;
        }
        recovery.enable().await
    };
    let key = SecretString::from(key.map_err(|error| of_recovery(&error))?);
    keep_key(vault, &key).await?;
    Ok(RecoveryKey(key))
}

fn of_recovery(error: &RecoveryError) -> Trouble {
    match error {
        RecoveryError::BackupExistsOnServer => Trouble::refused(
            "the account has a key backup already, which this device cannot open",
            "give its key as channels.matrix.recovery_key and log in again, or replace it with --reset",
        ),
        RecoveryError::Sdk(error) => trouble::of(error),
        RecoveryError::SecretStorage(_) => Trouble::refused(
            "the account's secret storage could not be used",
            "try again, or replace everything with --reset",
        ),
    }
}

fn unverified() -> Trouble {
    Trouble::refused(
        "the account's identity was made by another device",
        "give its recovery key as channels.matrix.recovery_key and start again",
    )
}

async fn kept_key(vault: &Vault) -> Result<Option<SecretString>, Trouble> {
    let kept = vault.kept(KEY).await.map_err(trouble::inbox)?;
    Ok(kept.and_then(|kept| std::str::from_utf8(&kept).ok().map(SecretString::from)))
}

async fn keep_key(vault: &Vault, key: &SecretString) -> Result<(), Trouble> {
    vault.keep(KEY, key.expose_secret().trim().as_bytes()).await.map_err(trouble::inbox)
}

const KEY: &str = "recovery-key";
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
