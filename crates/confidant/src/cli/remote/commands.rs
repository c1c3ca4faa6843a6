//! What a person can do in their chats, a line each.

use anyhow::anyhow;
use confidant_chat_format::{ChatId, CredentialId, DeviceId, MessageId, RecoveryCode, Role};
use confidant_client::{ChatView, Credential, LossReason, MessageView, OperationKind};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::authenticator::{with_any_totp, with_totp};
use super::{Next, Remote, login_of, new_password, recovery};
use crate::output::{self, counted, note};

impl Remote<'_> {
    /// Does what a line says.
    pub(super) async fn obey(&mut self, line: &str) -> anyhow::Result<Next> {
        let (word, rest) = match line.strip_prefix('/') {
            Some(command) => {
                command.split_once(' ').map_or((command, ""), |(word, rest)| (word, rest.trim()))
            }
            None if line.is_empty() => return Ok(Next::Go),
            None if !self.data_requests.is_empty() && matches!(line, "y" | "yes") => ("give", ""),
            None if !self.data_requests.is_empty() && matches!(line, "n" | "no") => ("deny", ""),
            None => {
                self.say(line).await?;
                return Ok(Next::Go);
            }
        };
        match word {
            "help" => note(HELP),
            "quit" | "exit" => return Ok(Next::End),
            "list" => self.list()?,
            "new" => self.begin(rest).await?,
            "open" => self.open(rest).await?,
            "read" => self.read(&self.open_chat()?)?,
            "why" => self.why(rest)?,
            "edit" => self.edit(rest).await?,
            "delete" => self.delete(rest).await?,
            "rename" => {
                let chat = self.open_chat()?;
                self.device.rename(&chat, rest)?;
                self.send().await?;
            }
            "draft" => {
                let chat = self.open_chat()?;
                self.device.set_draft(&chat, (!rest.is_empty()).then_some(rest))?;
                self.send().await?;
            }
            "delete-chat" => self.delete_chat().await?,
            "sync" => {
                self.catch_up().await?;
                self.tell_of_turns().await?;
                self.tell_of_copies();
            }
            "older" => {
                let found = self.device.load_older(OLDER).await?;
                note(&format!("{} loaded", counted(found.changed.len() as u64, "chat")));
            }
            "queue" => self.queue(rest)?,
            "snapshot" => self.share_snapshot(rest).await?,
            "snapshots" => self.snapshots(rest).await?,
            _ if self.ask_about(word, rest).await?.is_some() => {}
            _ => return self.manage(word, rest).await,
        }
        Ok(Next::Go)
    }

    /// What is about the account and its devices.
    async fn manage(&mut self, word: &str, rest: &str) -> anyhow::Result<Next> {
        match word {
            "devices" => self.devices().await?,
            "label" => self.device.label(rest).await?,
            "revoke" => {
                let device = DeviceId::parse(rest).map_err(|_| {
                    anyhow!("the device is missing; hint: /devices lists them, then /revoke dev_…")
                })?;
                let (by, this) = (self.credential()?, &mut self.device);
                with_totp(by, async |by| this.revoke_device(by, &device).await).await?;
                note("it is logged out, but may still have the account key; /rotate replaces that key");
            }
            "pair" => {
                let (by, device) = (self.credential()?, &mut self.device);
                with_totp(by, async |by| device.pair(rest, by).await).await?;
                note("sent to the new device");
            }
            "ways" => self.ways(rest).await?,
            "login" => {
                let credential = self.credential()?;
                let device = &mut self.device;
                with_totp(credential, async |credential| device.log_in_again(credential).await).await?;
                self.try_again();
                self.arrive().await?;
            }
            "password" => self.change_password().await?,
            "authenticator" => self.authenticator(rest).await?,
            "recover" => self.recover().await?,
            "rotate" => self.rotate().await?,
            "put-back" => self.put_back().await?,
            "export" => self.export(rest).await?,
            "logout" => {
                self.device.log_out(rest == "everywhere").await?;
                return Ok(Next::End);
            }
            "erase" if rest == "everything" => {
                return Ok(Next::Erase(Box::new(with_any_totp(self.credential()?)?)));
            }
            "erase" => {
                return Err(anyhow!(
                    "this deletes the account and all its chats for good; hint: /erase everything"
                ));
            }
            _ => return Err(anyhow!("there is no command /{}; hint: /help lists them", output::clean(word))),
        }
        Ok(Next::Go)
    }

    pub(super) fn open_chat(&self) -> anyhow::Result<ChatId> {
        self.chat.clone().ok_or_else(|| anyhow!("no chat is open; hint: /list, then /open 1, or /new TITLE"))
    }

    /// The chat with this number in the list, or this id.
    fn find(&self, name: &str) -> anyhow::Result<ChatId> {
        let by_number = || {
            let at = name.parse::<usize>().ok()?.checked_sub(1)?;
            self.device.chats().get(at).cloned()
        };
        let found = by_number().or_else(|| ChatId::parse(name).ok());
        found.ok_or_else(|| anyhow!("there is no such chat; hint: /list shows the numbers"))
    }

    /// The message with this number in the chat, or this id, and what follows.
    pub(super) fn message<'a>(view: &ChatView, text: &'a str) -> anyhow::Result<(MessageId, &'a str)> {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let at = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = at.and_then(|at| view.branch.get(at)).map(|message| message.id.clone());
        let found = found.or_else(|| MessageId::parse(name).ok());
        let found =
            found.ok_or_else(|| anyhow!("there is no such message; hint: /read shows the numbers"))?;
        Ok((found, rest.trim()))
    }

    fn list(&self) -> anyhow::Result<()> {
        for (at, chat) in self.device.chats().iter().enumerate() {
            let view = self.device.chat(chat)?;
            if self.json {
                let line = json!({
                    "chat": chat.as_str(), "title": view.title(), "messages": view.messages.len(),
                    "updated_at": view.updated_at, "draft": view.draft,
                });
                output::line(&line.to_string())?;
            } else {
                let draft = if view.draft.is_some() { ", with a draft" } else { "" };
                let count = counted(view.messages.len() as u64, "message");
                output::line(&format!("{:>3}  {}  ({count}{draft})", at + 1, self.title(chat)))?;
            }
        }
        Ok(())
    }

    async fn begin(&mut self, title: &str) -> anyhow::Result<()> {
        let chat = self.device.new_chat((!title.is_empty()).then_some(title))?;
        self.chat = Some(chat.clone());
        self.send().await?;
        if self.json {
            output::line(&json!({ "chat": chat.as_str() }).to_string())?;
        }
        Ok(())
    }

    async fn open(&mut self, name: &str) -> anyhow::Result<()> {
        let chat = self.find(name)?;
        match self.device.open_chat(&chat).await {
            Ok(()) => {}
            // What is here can be read all the same.
            Err(error) if self.device.chat(&chat).is_ok() => note(&error.to_string()),
            Err(error) => return Err(error.into()),
        }
        self.chat = Some(chat.clone());
        self.read(&chat)
    }

    fn read(&self, chat: &ChatId) -> anyhow::Result<()> {
        let view = self.device.chat(chat)?;
        let waiting = self.device.waiting();
        let waits = |id: &MessageId| {
            waiting.iter().any(
                |op| matches!(&op.what, OperationKind::Message(one) | OperationKind::Edit(one) if one == id),
            )
        };
        let summed_up = view.summed_up();
        for (at, message) in view.branch.iter().enumerate() {
            self.show_tools(&view.tools(&message.id))?;
            if self.json {
                let line = json!({
                    "message": message.id.as_str(), "role": speaker(message), "body": message.body,
                    "waits": waits(&message.id),
                });
                output::line(&line.to_string())?;
            } else {
                let mark = if waits(&message.id) { " (waits)" } else { "" };
                let (who, body) = (speaker(message), output::clean(&message.body));
                output::line(&format!("{:>3}  {who}{mark}: {body}", at + 1))?;
            }
            if let Some((count, summary)) = summed_up.filter(|(count, _)| *count == at + 1) {
                let line = json!({ "summary": summary.id.as_str(), "messages": count, "body": summary.body });
                let (messages, words) =
                    (output::counted(count as u64, "message"), output::clean(&summary.body));
                self.show(
                    line,
                    &format!("     the model is told the {messages} above in short: {words}"),
                    None,
                )?;
            }
        }
        if let (Some(draft), false) = (&view.draft, self.json) {
            output::line(&format!("     draft: {}", output::clean(draft)))?;
        }
        Ok(())
    }

    /// Which model gave an answer, and why it was chosen: of the one with this number, or of the last.
    fn why(&self, name: &str) -> anyhow::Result<()> {
        let view = self.device.chat(&self.open_chat()?)?;
        let found = if name.is_empty() {
            view.branch.iter().rev().find(|message| message.role == Role::Assistant)
        } else {
            let (id, _) = Self::message(&view, name)?;
            view.messages.get(&id).filter(|message| message.role == Role::Assistant)
        };
        let answer = found.ok_or_else(|| anyhow!("that is no answer; hint: /read shows the numbers"))?;
        let line = json!({
            "message": answer.id.as_str(), "model": answer.model, "reason": answer.reason,
        });
        let model = output::clean(answer.model.as_deref().unwrap_or("a model without a name"));
        let reason = answer.reason.as_deref().unwrap_or("it is not known why it was chosen");
        self.show(line, &model, Some(reason))
    }

    /// What tools said for an answer, in a line each.
    pub(super) fn show_tools(&self, tools: &[&MessageView]) -> anyhow::Result<()> {
        for tool in tools {
            let (name, words) = tool.body.split_once('\n').unwrap_or(("tool", &tool.body));
            let line = json!({ "message": tool.id.as_str(), "tool": name, "body": tool.body });
            let brief: String = output::clean(words).split_whitespace().collect::<Vec<_>>().join(" ");
            let brief = match brief.char_indices().nth(BRIEF) {
                Some((end, _)) => format!("{}…", &brief[..end]),
                None => brief,
            };
            self.show(line, &format!("     {} said: {brief}", output::clean(name)), None)?;
        }
        Ok(())
    }

    async fn say(&mut self, text: &str) -> anyhow::Result<()> {
        let chat = match self.chat.clone() {
            Some(chat) => chat,
            None => self.device.new_chat(None)?,
        };
        if self.device.is_temporary(&chat) {
            return Err(anyhow!(
                "nothing is stored in a temporary chat, so only questions go there; hint: /ask TEXT"
            ));
        }
        self.chat = Some(chat.clone());
        let id = self.device.say(&chat, text)?;
        self.send().await?;
        if self.json {
            output::line(&json!({ "chat": chat.as_str(), "message": id.as_str() }).to_string())?;
        }
        Ok(())
    }

    async fn edit(&mut self, rest: &str) -> anyhow::Result<()> {
        let chat = self.open_chat()?;
        let (message, text) = Self::message(&self.device.chat(&chat)?, rest)?;
        if text.is_empty() {
            return Err(anyhow!("the new text is missing; hint: /edit NUMBER TEXT"));
        }
        self.device.edit(&chat, &message, text)?;
        self.send().await
    }

    async fn delete(&mut self, rest: &str) -> anyhow::Result<()> {
        let chat = self.open_chat()?;
        let (message, _) = Self::message(&self.device.chat(&chat)?, rest)?;
        self.device.delete(&chat, &message)?;
        self.send().await
    }

    async fn delete_chat(&mut self) -> anyhow::Result<()> {
        let chat = self.open_chat()?;
        if self.device.is_temporary(&chat) {
            self.device.end_temporary(&chat).await;
            self.chat = None;
            return Ok(());
        }
        self.forget_kept(&chat).await?;
        self.device.delete_chat(&chat)?;
        self.chat = None;
        self.send().await
    }

    fn queue(&mut self, rest: &str) -> anyhow::Result<()> {
        if let Some(number) = rest.strip_prefix("discard ") {
            let number = number
                .parse()
                .map_err(|_| anyhow!("the number is missing; hint: /queue shows the numbers"))?;
            return Ok(self.device.discard_copy(number)?);
        }
        for one in self.device.waiting() {
            let line = json!({
                "waits": one.number, "what": what(&one.what), "text": one.text, "sent": one.is_sent,
            });
            let sent = if one.is_sent { ", sent and not answered" } else { "" };
            self.show(line, &format!("waits{sent}: {}", what(&one.what)), one.text.as_deref())?;
        }
        self.show_awaited()?;
        for one in self.device.copies() {
            let line = json!({
                "copy": one.number, "what": what(&one.what), "text": one.text, "why": why(&one.why),
            });
            let head = format!("copy {} ({}): {}", one.number, why(&one.why), what(&one.what));
            self.show(line, &head, one.text.as_deref())?;
        }
        Ok(())
    }

    pub(super) fn show(&self, line: Value, head: &str, text: Option<&str>) -> anyhow::Result<()> {
        if self.json {
            return output::line(&line.to_string());
        }
        output::line(&format!(
            "{head}{}",
            text.map_or(String::new(), |text| format!(": {}", output::clean(text)))
        ))
    }

    async fn devices(&mut self) -> anyhow::Result<()> {
        for device in self.device.devices().await? {
            let line = json!({
                "device": device.device.as_str(), "label": device.label, "this": device.is_this,
                "sessions": device.sessions.len(), "created_at": device.created_at,
                "last_seen_day": device.last_seen_day,
            });
            let this = if device.is_this { ", this one" } else { "" };
            let label = device.label.as_deref().unwrap_or("no label");
            let sessions = counted(device.sessions.len() as u64, "session");
            let head = format!("{}  {} ({sessions}{this})", device.device.as_str(), output::clean(label));
            self.show(line, &head, None)?;
        }
        Ok(())
    }

    /// The ways to log in; with an id and a name, calls one by it.
    async fn ways(&mut self, rest: &str) -> anyhow::Result<()> {
        if let Some((id, name)) = rest.split_once(' ') {
            let missing =
                || anyhow!("there is no such way to log in; hint: /ways lists them, then /ways cred_… NAME");
            let id = CredentialId::parse(id).map_err(|_| missing())?;
            let ways = self.device.ways_in().await?;
            if !ways.iter().any(|way| way.id.as_ref() == Some(&id)) {
                return Err(missing());
            }
            self.device.name_way_in(&id, Some(name.trim()))?;
            return self.send().await;
        }
        for way in self.device.ways_in().await? {
            let id = way.id.as_ref().map(CredentialId::as_str);
            let line = json!({ "kind": way.kind.name(), "id": id, "name": way.name });
            let head = match id {
                Some(id) => format!("{}  {id}", way.kind.name()),
                None => way.kind.name().to_owned(),
            };
            self.show(line, &head, way.name.as_deref())?;
        }
        note("/rotate keeps the one you show there, with a new recovery code, and removes all others");
        Ok(())
    }

    async fn change_password(&mut self) -> anyhow::Result<()> {
        let by = self.credential()?;
        let login = login_of(self.login.as_deref())?;
        let new = crate::cli::hidden::ask("New password: ", "nothing else: it is asked for")?;
        let new = Credential::password(login.as_str(), new.expose_secret())?;
        let (new, device) = ([new], &mut self.device);
        with_totp(by, async |by| device.change_credentials(by, &new, None).await).await?;
        note("changed; other devices stay logged in; run /rotate if somebody else knew the old password");
        Ok(())
    }

    /// A forgotten password: the recovery code is used up, and there is a new one.
    async fn recover(&mut self) -> anyhow::Result<()> {
        let login = login_of(self.login.as_deref())?;
        let by = recovery(self.loaded)?;
        let new = new_password(self.loaded)?;
        let code = RecoveryCode::random();
        let password = Credential::password(login.as_str(), new.expose_secret())?;
        self.device.recover(&by, &password, &code).await?;
        self.give_code(&code)
    }

    async fn rotate(&mut self) -> anyhow::Result<()> {
        let by = self.credential()?;
        let code = RecoveryCode::random();
        let (new, device) = (Credential::Recovery(code.clone()), &mut self.device);
        with_totp(by, async |by| device.rotate(by, &[by.clone(), new.clone()]).await).await?;
        note(
            "the account key is replaced; other devices are logged out, and other ways to log in no longer work",
        );
        self.give_code(&code)
    }

    fn give_code(&self, code: &RecoveryCode) -> anyhow::Result<()> {
        let text = code.dangerously_to_text();
        self.show(json!({ "recovery_code": text.as_str() }), &text, None)?;
        note("this is your new recovery code, shown once: write it down");
        Ok(())
    }

    async fn export(&mut self, file: &str) -> anyhow::Result<()> {
        let (by, device) = (self.credential()?, &mut self.device);
        let exported = with_totp(by, async |by| device.export(by).await).await?.to_json();
        if file.is_empty() {
            return output::line(&exported);
        }
        output::create(file.as_ref(), exported.as_bytes())?;
        note(&format!(
            "everything is in {}, not encrypted: anybody who can read that file can read it",
            output::clean(file)
        ));
        Ok(())
    }
}

/// How much is shown of what a tool said, in characters.
const BRIEF: usize = 120;
/// Loads what was there before the last hundred, so many at a time.
const OLDER: u32 = 50;

/// Who says it.
pub(super) fn speaker(message: &MessageView) -> &'static str {
    match message.role {
        Role::User => "you",
        Role::Assistant => "agent",
        _ => "note",
    }
}

fn what(what: &OperationKind) -> &'static str {
    match what {
        OperationKind::Create => "a new chat",
        OperationKind::Message(_) => "a message",
        OperationKind::Edit(_) => "an edit",
        OperationKind::Delete(_) => "a deletion",
        OperationKind::Field(_) => "a field",
        OperationKind::Embed(_) => "an attachment",
        OperationKind::Branch(_) => "a branch",
        OperationKind::DeleteChat => "the deletion of a chat",
        OperationKind::Draft => "a draft",
        OperationKind::Data(..) => "settings",
        OperationKind::Retry(_) => "another answer",
        OperationKind::Reply(_) => "an answer",
        OperationKind::GiveUp(_) => "giving up an answer",
        OperationKind::Made => "an answer's summary, tags or suggestions",
        _ => "something",
    }
}

fn why(why: &LossReason) -> &'static str {
    match why {
        LossReason::Changed => "another device changed it first",
        LossReason::Deleted => "another device deleted it",
        LossReason::ChatDeleted => "another device deleted the chat",
        LossReason::Refused(_) => "the server refused it",
        _ => "it came too late",
    }
}

const HELP: &str = "\
/list  /new TITLE  /open NUMBER  /read  /older        chats; what you type is stored in the open one, unanswered
/temporary                                            a chat of which nothing is stored: /ask in it; /delete-chat ends it
/ask TEXT  /retry [NUMBER]  /instead NUMBER TEXT      ask; ask again; ask something else in the place of a message
/why [NUMBER]                                         which model answered, and why it was chosen
/approve  /deny                                       decide whether a tool may run
/wait  /cancel  /give-up                              wait for, stop or give up an answer
/switch [NAME on|off]                                 what answers may use: lists it, or switches it for all devices
/cache [on|off]  /keep [NAME on|off]                  whether the server keeps this chat's words for a while; what else it keeps
/give [NUMBERS]  /deny  /share [NAME on|off]          what answers may get from your device, once or always
/memory [NAME [TEXT]]                                 what you save for answers, by name
/edit NUMBER TEXT  /delete NUMBER  /rename TITLE  /draft TEXT  /delete-chat
/snapshot [DAYS] [words]                              makes a link to what this chat says now, for whoever you give it to
/snapshots  /snapshots end NUMBER                     what you share; ends a link
/queue  /queue discard NUMBER  /sync                  what waits to be stored; changes that another device overtook
/devices  /label TEXT  /revoke DEVICE  /pair DIGITS   the account's devices
/password  /authenticator on|off  /recover  /rotate   what opens the account
/ways  /ways ID NAME                                  the ways to log in; gives one a name
/login  /logout [everywhere]
/put-back                                             after a restored backup: writes this device's data again
/export [FILE]  /erase everything  /quit";
