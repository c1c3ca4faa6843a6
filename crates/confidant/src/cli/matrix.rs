//! `confidant matrix`: the account's login and its recovery key, for who does it by hand.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use confidant_channel::{Channel as _, Lock, Vault};
use confidant_matrix::{LogIn, Matrix, SignedIn};
use secrecy::{ExposeSecret as _, SecretString};

use super::hidden;
use super::shared::{Outcome, with_engine};
use crate::config::Loaded;
use crate::open::{Opened, Purpose};
use crate::output::{self, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant matrix login                   asks for the password unless the settings have it
  confidant matrix login --reset           a new device, in the place of the stored one
  confidant matrix recovery-key            what a new device needs to read old messages")]
pub(super) enum MatrixCommand {
    /// Log in and store the session; a session that is stored already is kept
    Login(LoginArgs),
    /// Print the recovery key of the account's key backup; create both if there are none
    RecoveryKey(RecoveryArgs),
}

#[derive(Debug, Args)]
pub(super) struct LoginArgs {
    /// End the stored session and make a new device
    #[arg(long)]
    reset: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// A one-time login token from the server's login page
    #[arg(long, value_name = "TOKEN")]
    sso_token: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct RecoveryArgs {
    /// Make a new key, and replace an identity and a backup that this device cannot open
    #[arg(long)]
    reset: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(command: MatrixCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let section = loaded.config.channels.matrix.as_ref().ok_or_else(|| {
        anyhow!("the settings have no Matrix account; hint: add [channels.matrix] with homeserver and user; `confidant config` shows how")
    })?;
    let settings = section.settings(loaded)?;
    let has_credential = settings.credential.is_some();
    let account = Matrix::new(settings)?;
    with_engine(loaded, Purpose::SetUp, async |opened| {
        let (vault, _lock) = vault(&account, opened)?;
        match command {
            MatrixCommand::Login(args) => login(&args, &account, &vault, has_credential).await,
            MatrixCommand::RecoveryKey(args) => recovery_key(&args, &account, &vault, has_credential).await,
        }
    })
    .await
}

/// Where the session is kept; nobody else uses it meanwhile.
fn vault(account: &Matrix, opened: &Opened) -> anyhow::Result<(Vault, Lock)> {
    let inbox = opened.inbox.as_ref().context("the channels' inbox could not be opened")?;
    let lock = inbox.lock()?;
    Ok((inbox.vault(&opened.engine, account.platform(), account.label()), lock))
}

async fn login(
    args: &LoginArgs,
    account: &Matrix,
    vault: &Vault,
    has_credential: bool,
) -> anyhow::Result<Outcome> {
    if args.reset
        && !args.yes
        && !sure(
            "This ends the stored session. The old device's keys are deleted: encrypted messages that only it could read\n\
             stay unreadable, unless a recovery key was made (`confidant matrix recovery-key`). Conversations and\n\
             memories of this program are kept.",
        )?
    {
        note("nothing was changed");
        return Ok(Outcome::NothingFound);
    }
    let token = args.sso_token.as_deref().map(SecretString::from);
    let typed = if token.is_none() && !has_credential { Some(password()?) } else { None };
    let with = match (&token, &typed) {
        (Some(token), _) => LogIn::SsoToken(token),
        (None, Some(password)) => LogIn::Password(password),
        (None, None) => LogIn::Settings,
    };
    let SignedIn { user, device, is_new, is_verified } = account.log_in(vault, with, args.reset).await?;
    let made = if is_new { "a new device" } else { "the existing device" };
    output::line(&format!("logged in as {user}, with {made}: {device}"))?;
    if !is_verified {
        note("the device is not verified; docs/MATRIX.md says how to verify it");
    }
    note(
        "next: `confidant matrix recovery-key`, and keep what it prints; then `confidant serve`, and invite the account",
    );
    Ok(Outcome::Done)
}

async fn recovery_key(
    args: &RecoveryArgs,
    account: &Matrix,
    vault: &Vault,
    has_credential: bool,
) -> anyhow::Result<Outcome> {
    if args.reset
        && !args.yes
        && !sure(
            "This replaces what this device cannot open: the account's identity (people who verified it have \
             to do so again)\nand its key backup (messages whose keys were only there stay unreadable).",
        )?
    {
        note("nothing was changed");
        return Ok(Outcome::NothingFound);
    }
    let key = match account.recovery_key(vault, None, args.reset).await {
        // What is stored may be enough; if not, a password may help.
        Err(trouble) if !has_credential && io::stdin().is_terminal() => {
            note(&trouble.to_string());
            account.recovery_key(vault, Some(&password()?), args.reset).await?
        }
        made => made?,
    };
    output::line(key.0.expose_secret())?;
    note("keep it somewhere other than this machine; a sealed copy is in the data folder");
    Ok(Outcome::Done)
}

/// Asks before something is lost.
fn sure(what: &str) -> anyhow::Result<bool> {
    note(what);
    hidden::say("Go on? [y/N] ")?;
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        return Err(anyhow!("nobody confirmed this; hint: run it on a terminal, or with --yes"));
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Asks for the password, without showing it; or takes the line that was piped in.
fn password() -> anyhow::Result<SecretString> {
    hidden::ask("Password of the Matrix account: ", "channels.matrix.password_file")
}
