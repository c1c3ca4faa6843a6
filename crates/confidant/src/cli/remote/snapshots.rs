//! Snapshots: sharing what a chat says now, and opening what somebody shared.
//!
//! ```text
//! /snapshot [DAYS] [words]      what is in it, who can read it; the link
//! /snapshots [end NUMBER]       what is shared; the link of one opens nothing any more
//! confidant chat --open LINK    somebody's snapshot, without an account
//! ```
//!
//! Easy to get wrong: believing a snapshot. Its owner chose what is in it, and could have written all of it.

use std::io::IsTerminal as _;
use std::sync::Arc;

use anyhow::anyhow;
use confidant_chat_format::{Refused, Role, Snapshot, SnapshotId, SnapshotLink};
use confidant_client::{Error, Http, SnapshotOptions, Transport, open_snapshot};
use confidant_engine::clock::{Clock as _, Millis, SystemClock};
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::Remote;
use crate::cli::hidden;
use crate::cli::shared::{JsonArg, Outcome};
use crate::output::{self, clean, counted, note};

impl Remote<'_> {
    /// Shares the open chat as it is shown.
    pub(super) async fn share_snapshot(&mut self, rest: &str) -> anyhow::Result<()> {
        let mut options = SnapshotOptions::default();
        for word in rest.split_whitespace() {
            match word.parse::<u32>() {
                Ok(days @ 1..=90) => options.days = days,
                _ if word == "words" => options.attachments = false,
                _ => return Err(anyhow!("hint: /snapshot, /snapshot DAYS (1 to 90), /snapshot words")),
            }
        }
        let chat = self.open_chat()?;
        self.send().await?;
        let shared = self.device.share_snapshot(&chat, options).await.map_err(|error| match error {
            Error::TooLarge if options.attachments => {
                anyhow!("this is too large to share; hint: /snapshot words leaves attachments out")
            }
            Error::NoSuchMessage => anyhow!("nothing was said in this chat yet; hint: share it later"),
            error => error.into(),
        })?;
        let link = shared.link.dangerously_to_text();
        let line = json!({
            "snapshot": shared.link.id.as_str(), "link": link.as_str(), "expires_at": shared.expires_at,
            "messages": shared.messages, "attachments": shared.attachments, "left_out": shared.left_out,
        });
        self.show(line, &link, None)?;
        let title = if shared.has_title { "the title, " } else { "" };
        note(&format!(
            "in it: {title}{} of the branch shown, with their times, and {}, as they are now; nothing written later",
            counted(shared.messages as u64, "message"),
            counted(shared.attachments as u64, "attachment")
        ));
        if shared.left_out > 0 {
            note(&format!(
                "not in it: {} of tools and of the model's own",
                counted(shared.left_out as u64, "note")
            ));
        }
        note(&format!(
            "anybody who has this link can read it until {}, without an account; the server cannot. \
             /snapshots end 1 ends it earlier; who has read it by then has read it",
            output::moment(millis(shared.expires_at))
        ));
        Ok(())
    }

    /// Lists what is shared, or ends one.
    pub(super) async fn snapshots(&mut self, rest: &str) -> anyhow::Result<()> {
        let views = self.device.snapshots().await?;
        if let Some(name) = rest.strip_prefix("end ") {
            let at = name.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let found = at.and_then(|at| views.get(at)).map(|view| view.id.clone());
            let found = found.or_else(|| SnapshotId::parse(name.trim()).ok());
            let found = found
                .ok_or_else(|| anyhow!("there is no such snapshot; hint: /snapshots shows the numbers"))?;
            self.device.revoke_snapshot(&found).await?;
            note("ended: its link opens nothing any more; who has read it has read it");
            return Ok(());
        }
        for (at, view) in views.iter().enumerate() {
            let link = view.link.as_ref().map(SnapshotLink::dangerously_to_text);
            let line = json!({
                "snapshot": view.id.as_str(), "chat": view.chat.as_str(), "made_at": view.made_at,
                "expires_at": view.expires_at, "items": view.items, "link": link.as_ref().map(|link| link.as_str()),
            });
            let head = format!(
                "{:>3}  {}  (from {}, until {})",
                at + 1,
                self.title(&view.chat),
                output::moment(millis(view.made_at)),
                output::moment(millis(view.expires_at))
            );
            let none = "no link: open the chat first, then list again";
            self.show(line, &head, Some(link.as_ref().map_or(none, |link| link.as_str())))?;
        }
        Ok(())
    }
}

/// Shows somebody's snapshot.
pub(super) async fn open(link: Option<&str>, form: &JsonArg) -> anyhow::Result<Outcome> {
    let asked = match link {
        Some(_) => None,
        None => Some(hidden::ask("Link: ", "--open LINK")?),
    };
    let text = link.or_else(|| asked.as_ref().map(|asked| asked.expose_secret())).unwrap_or_default().trim();
    let link = SnapshotLink::parse(text).map_err(|_| {
        anyhow!("this is not the whole link of a snapshot; hint: copy all of it, also what follows the #")
    })?;
    let transport: Arc<dyn Transport> = Arc::new(Http::new(link.origin.clone())?);
    let now = SystemClock.now().0.try_into().unwrap_or_default();
    let snapshot = open_snapshot(&transport, &link, now).await.map_err(explained)?;
    if form.json {
        output::line(&as_json(&snapshot).to_string())?;
        return Ok(Outcome::Done);
    }
    note(&format!(
        "a snapshot of {}, from {}. Whoever gave you the link chose what is in it; that the assistant said its words is not proved. \
         It can be read until {}",
        snapshot
            .title
            .as_deref()
            .map_or("a chat".to_owned(), |title| format!("the chat \"{}\"", clean(title))),
        output::moment(millis(snapshot.at)),
        output::moment(millis(snapshot.until))
    ));
    for message in &snapshot.messages {
        let who = if message.role == Role::User { "person" } else { "assistant, not proved" };
        let at = output::moment(millis(message.created_at));
        output::line(&format!("{who} ({at}): {}", clean(&message.body)))?;
        for text in message.refs.iter().filter_map(|embed| snapshot.embeds.get(embed)) {
            output::line(&format!("     attachment: {}", clean(&text.body)))?;
        }
    }
    if std::io::stdout().is_terminal() {
        note("the end of the snapshot");
    }
    Ok(Outcome::Done)
}

fn as_json(snapshot: &Snapshot) -> serde_json::Value {
    let messages: Vec<_> = snapshot
        .messages
        .iter()
        .map(|message| {
            let shown = message.refs.iter().filter_map(|embed| snapshot.embeds.get(embed));
            json!({
                "role": if message.role == Role::User { "user" } else { "assistant" },
                "body": message.body, "created_at": message.created_at, "model": message.model,
                "attachments": shown.map(|text| text.body.as_str()).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "title": snapshot.title, "made_at": snapshot.at, "expires_at": snapshot.until, "proved": false,
        "messages": messages,
    })
}

/// What a refusal means to somebody who only has a link.
fn explained(error: Error) -> anyhow::Error {
    match error {
        Error::Denied { error, .. } if error.name() == "not-found" => anyhow!(
            "there is no such snapshot (not-found); hint: it may be over, or its owner has ended it; ask for a new link"
        ),
        Error::Refused(Refused::RolledBack) => anyhow!(
            "the server gave a snapshot that is over (rolled-back), so it is not shown; hint: ask for a new link"
        ),
        Error::Refused(refused) => anyhow!(
            "the server did not give what was shared ({}), so it is not shown; hint: ask for a new link, and tell whoever gave you this one",
            refused.name()
        ),
        error => error.into(),
    }
}

fn millis(time: u64) -> Millis {
    Millis(time.try_into().unwrap_or_default())
}
