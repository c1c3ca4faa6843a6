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
            "if the server lost this account, its operator makes a code for it: confidant account restore {account}; \
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
    note("restoring the account; the password is stretched first, which takes a moment");
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
    note("this is your new recovery code, shown once: write it down; the old one is good for nothing");
    match restored {
        Restored::Kept => {
            let back = device.restore_rings(&password).await?;
            note(&format!(
                "the server still had the account; the keys of {} were put back",
                counted(back.restored.into(), "chat")
            ));
            if !back.refused.is_empty() {
                note(&format!(
                    "{} not as this device has them; {PUT_BACK} writes what is here again",
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
            "the server does not take this code; hint: it is good once, for one account and for a short time; if the account was \
             restored before this was cut off, log in with the new password"
        ),
        "conflict" => anyhow!(
            "the server refuses to restore the account: it is alive, was erased, or its chats are of another time than this device; \
             hint: log in first; if that is refused, --anew puts what this device has in the place of what the server has"
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
                let by = self.credential()?;
                self.device.put_back_by(&by).await
            }
            done => done,
        };
        let done = match done {
            // Chats whose keys the server has lost: this device may have them.
            Ok(done) if !done.refused.is_empty() => {
                let by = self.credential()?;
                self.device.restore_rings(&by).await?;
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
                "the server's state is of an account key that was replaced, so nothing is sealed for it; hint: what is here can \
                 still be read; ask the operator for a newer backup"
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
        "written again: {} in all, {} anew; {} gone again",
        counted(done.written as u64, "item"),
        counted(done.chats as u64, "chat"),
        done.removed
    ));
    if done.copies > 0 {
        note(&format!("{} newer on the server; /queue shows what you had", are(done.copies, "change")));
    }
    if done.missing > 0 {
        note(&format!("{} neither here nor there", are(done.missing, "attachment")));
    }
    if !done.refused.is_empty() {
        note(&format!(
            "{} refused as the server shows them; what is here stays",
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
        "{what} {seen} ({}). What is shown here is what was seen then. If its operator says that a backup was restored, or that \
         something was lost, {PUT_BACK} writes yours again; if not, do not: somebody may want to hide messages from you. Ask, and \
         compare with another device",
        refused.name()
    )
}
