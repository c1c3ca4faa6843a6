//! The account's cross-signing identity and its key backup: made at the first login, and given to later devices by the
//! recovery key.

use std::time::Duration;

use confidant_channel::{Trouble, Vault};
use matrix_sdk::Client;
use matrix_sdk::config::SyncSettings;
use matrix_sdk::encryption::CrossSigningResetAuthType;
use matrix_sdk::encryption::recovery::RecoveryError;
use matrix_sdk::ruma::api::client::uiaa::{AuthData, MatrixUserIdentifier, Password, UserIdentifier};
use secrecy::{ExposeSecret as _, SecretString};

use crate::settings::Settings;
use crate::trouble;

/// A recovery key, to be shown to who runs the account.
pub struct RecoveryKey(pub SecretString);

impl std::fmt::Debug for RecoveryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecoveryKey(***)")
    }
}

/// Makes a new device one of the account's own, or says what is missing for that. The device works without, too.
pub(crate) async fn begin(
    settings: &Settings,
    vault: &Vault,
    client: &Client,
    password: Option<&SecretString>,
) {
    if let Err(trouble) = settle(settings, vault, client, password).await {
        tracing::warn!(trouble = %trouble, "the Matrix device is not verified: encrypted rooms may warn of it");
    }
}

/// Whether this device holds the account's identity, and so is one of the account's own.
pub(crate) async fn is_ours(client: &Client) -> bool {
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
    // The first sync uploads the device's keys; without them there is nothing to sign.
    let synced = client.sync_once(SyncSettings::default().timeout(Duration::ZERO)).await;
    synced.map_err(|error| trouble::of(&error))?;
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

/// Makes an identity for the account if it has none.
async fn bootstrap(client: &Client, password: Option<&SecretString>) -> Result<(), Trouble> {
    let encryption = client.encryption();
    let Err(error) = encryption.bootstrap_cross_signing_if_needed(None).await else { return Ok(()) };
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
            "the Matrix server wants the account's password for a new identity",
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
    let synced = client.sync_once(SyncSettings::default().timeout(Duration::ZERO)).await;
    synced.map_err(|error| trouble::of(&error))?;
    bootstrap(client, password).await?;
    let encryption = client.encryption();
    let recovery = encryption.recovery();
    if !is_ours(client).await {
        if !reset {
            return Err(Trouble::refused(
                "the account's identity was made by another device, and its secrets are not here",
                "give that device's key as channels.matrix.recovery_key and log in anew, or make everything anew with --reset",
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
            "give its key as channels.matrix.recovery_key and log in anew, or replace it with --reset",
        ),
        RecoveryError::Sdk(error) => trouble::of(error),
        RecoveryError::SecretStorage(_) => Trouble::refused(
            "the account's secret storage could not be used",
            "try again, or make everything anew with --reset",
        ),
    }
}

fn unverified() -> Trouble {
    Trouble::refused(
        "the account's identity was made by another device",
        "give its recovery key as channels.matrix.recovery_key and run `confidant matrix login --reset`",
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
