//! A server that lost the account, or shows an older state: what a person is told, and can do about it.
//!
//! ```text
//! --restore         prints the account's id, for the operator
//! --restore CODE    new password and recovery code; then the keys of chats, or everything that this device has
//! /put-back         what this device has, written again over what the server shows
//! ```
//!
//! Easy to get wrong: doing any of it without being told to. A restored backup and an attack look alike from here.

use anyhow::anyhow;
use confidant_chat_format::{RecoveryCode, Refused};
use confidant_client::{Credential, Device, Error, PutBack, Rest, Restoration, Restored};
use confidant_engine::clock::Millis;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::authenticator::with_totp;
use super::{PUT_BACK, Remote, ServerArgs, login_of, new_password};
use crate::cli::shared::{JsonArg, Outcome};
use crate::config::Loaded;
use crate::output::{self, counted, note};

/// What to ask the operator for.
pub(super) fn ask(device: &Device, form: &JsonArg) -> anyhow::Result<Outcome> {
    let account = device.account_id().as_str();
    if form.json {
        output::line(&json!({ "account": account }).to_string())?;
    } else {
        output::line(account)?;
        note(&format!(
            "if the server lost this account, its operator can make a code: confidant account restore {account}; \
             then run this again with --login NAME --restore CODE"
        ));
    }
    Ok(Outcome::Done)
}

/// Puts the account back, and what hangs on it.
pub(super) async fn run(
    device: &mut Device,
    args: &ServerArgs,
    code: &str,
    form: &JsonArg,
    loaded: &Loaded,
) -> anyhow::Result<()> {
    let login = login_of(args.login.as_deref())?;
    let password = new_password(loaded)?;
    let password = Credential::password(login.as_str(), password.expose_secret())?;
    let recovery = RecoveryCode::random();
    let rest = if args.anew { Rest::Goes } else { Rest::Stays };
    note("restoring the account; deriving a key from the password takes a moment");
    let how = Restoration {
        login,
        credentials: vec![password.clone(), Credential::Recovery(recovery.clone())],
        code: code.to_owned(),
        rest,
    };
    let restored = device.restore(how).await.map_err(explained)?;
    let text = recovery.dangerously_to_text();
    if form.json {
        output::line(&json!({ "recovery_code": text.as_str() }).to_string())?;
    } else {
        output::line(&text)?;
    }
    note("this is your new recovery code, shown once: write it down; the old one no longer works");
    match restored {
        Restored::Kept => {
            let back = device.restore_rings(&password).await?;
            note(&format!(
                "the server still had the account; the keys of {} were put back",
                counted(back.restored.into(), "chat")
            ));
            if !back.refused.is_empty() {
                note(&format!(
                    "{} different from what this device has; {PUT_BACK} writes this device's state again",
                    match back.refused.len() {
                        1 => "1 chat is".to_owned(),
                        more => format!("{more} chats are"),
                    }
                ));
            }
        }
        Restored::Empty => tell(&device.put_back().await?, form)?,
    }
    Ok(())
}

fn explained(error: Error) -> anyhow::Error {
    match error.name() {
        "login-refused" => anyhow!(
            "the server refused this code; hint: it works once, for one account and for a limited time; if the account was already \
             restored when this was interrupted, log in with the new password"
        ),
        "conflict" => anyhow!(
            "the server refuses to restore the account: it still opens, was erased, or its chats do not match this device; \
             hint: log in first; if that is refused, --anew replaces what the server has with what this device has"
        ),
        _ => error.into(),
    }
}

impl Remote<'_> {
    /// The person says: send mine again.
    pub(super) async fn put_back(&mut self) -> anyhow::Result<()> {
        let form = JsonArg { json: self.json };
        let done = match self.device.put_back().await {
            Err(Error::NotLoggedIn | Error::LoggedOut(_)) => {
                let (by, device) = (self.credential()?, &mut self.device);
                let done = with_totp(by, async |by| device.put_back_by(by).await).await;
                match done {
                    Ok(done) => Ok(done),
                    Err(error) => Err(error.downcast::<Error>()?),
                }
            }
            done => done,
        };
        let done = match done {
            // Chats whose keys the server has lost: this device may have them.
            Ok(done) if !done.refused.is_empty() => {
                let (by, device) = (self.credential()?, &mut self.device);
                with_totp(by, async |by| device.restore_rings(by).await).await?;
                self.device.put_back().await
            }
            done => done,
        };
        match done {
            Ok(done) => {
                tell(&done, &form)?;
                self.send().await
            }
            Err(Error::Refused(Refused::KeyRefused)) => Err(anyhow!(
                "the server's state is from before the account key was replaced, so nothing is written to it; hint: you can still \
                 read what is on this device; ask the operator for a newer backup"
            )),
            Err(error) => Err(error.into()),
        }
    }
}

fn tell(done: &PutBack, form: &JsonArg) -> anyhow::Result<()> {
    if form.json {
        let line = json!({
            "chats": done.chats, "written": done.written, "removed": done.removed, "copies": done.copies,
            "missing": done.missing, "refused": done.refused.len(),
        });
        return output::line(&line.to_string());
    }
    note(&format!(
        "wrote {} again, with {} that the server did not have; deleted {} again",
        counted(done.written as u64, "item"),
        counted(done.chats as u64, "chat"),
        done.removed
    ));
    if done.copies > 0 {
        note(&format!("{} newer on the server; /queue shows your version", are(done.copies, "change")));
    }
    if done.missing > 0 {
        note(&format!("{} missing on this device and on the server", are(done.missing, "attachment")));
    }
    if !done.refused.is_empty() {
        note(&format!(
            "{} refused, because the server's version does not fit; this device's version stays",
            are(done.refused.len(), "chat")
        ));
    }
    Ok(())
}

fn are(count: usize, what: &str) -> String {
    format!("{} {}", counted(count as u64, what), if count == 1 { "is" } else { "are" })
}

/// What a refusal means, when it may be an honest restore as well as an attack.
pub(super) fn words(device: &Device, refused: Refused) -> String {
    let seen = device.verified_at().map_or_else(
        || "before".to_owned(),
        |at| format!("on {}", output::moment(Millis(i64::try_from(at).unwrap_or(i64::MAX)))),
    );
    let what = match refused {
        Refused::RolledBack => "this server shows an older state than this device has seen",
        Refused::Forked => "this server shows another history than this device has seen",
        Refused::RingGap => "this server has lost the keys of a chat that this device has seen",
        _ => "this server does not show what this device has seen",
    };
    format!(
        "{what} {seen} ({}). This device shows what it verified then. Ask the server's operator. If a backup was restored or \
         something was lost, {PUT_BACK} writes this device's data again. If not, do not use it: somebody may be hiding messages \
         from you. Compare with another device",
        refused.name()
    )
}
