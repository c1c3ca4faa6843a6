//! Questions on the command line: the answer is printed as it comes, Ctrl-C cancels it, and what it leaves is stored.
//!
//! ```text
//! /ask ─▶ Device::ask, flush ─▶ follow: words, progress ─┬─ ended: flush stores it; with --do, also what is made of it
//!                                                       ├─ a tool waits: /approve or /deny, then follow again
//!                                                       ├─ the server asks for something: /give or /deny, then follow again [giving]
//!                                                       └─ failed, or the connection is gone: /retry, /give-up, /sync
//! ```
//!
//! Easy to get wrong: what was printed cannot be taken back. Where the server replaces words, the answer is printed anew.

use std::time::Duration;

use anyhow::anyhow;
use confidant_chat_format::{ChatId, MessageId, Role, TurnId};
use confidant_chat_protocol::Given;
use confidant_client::{AskOptions, Asked, Awaited, Awaiting, GivenText, News, TurnUpdate};
use serde_json::json;
use tokio::time::Instant;

use super::Remote;
use crate::cli::markdown::Live;
use crate::cli::turn::{Interrupts, Status};
use crate::output::{self, clean, note};

/// A tool that waits for the person's word.
pub(super) struct Question {
    chat: ChatId,
    turn: TurnId,
    approval: String,
}

impl Remote<'_> {
    /// What is about questions and answers; `None`: it is another command.
    pub(super) async fn ask_about(&mut self, word: &str, rest: &str) -> anyhow::Result<Option<()>> {
        match word {
            "ask" => self.ask(rest).await?,
            "retry" => self.retry(rest).await?,
            "instead" => self.ask_instead(rest).await?,
            "approve" => self.decide(true).await?,
            "deny" if !self.data_requests.is_empty() => self.give_nothing().await?,
            "deny" => self.decide(false).await?,
            "give" => self.give(rest).await?,
            "share" => self.share(rest).await?,
            "memory" => self.memory(rest).await?,
            "cancel" => self.cancel().await?,
            "give-up" => self.give_up().await?,
            "wait" => self.wait().await?,
            "switch" => self.switch(rest).await?,
            "cache" => self.cache(rest).await?,
            "keep" => self.keep(rest).await?,
            "temporary" => self.begin_temporary()?,
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    async fn ask(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            return Err(anyhow!("the question is missing; hint: /ask TEXT"));
        }
        let chat = match self.chat.clone() {
            Some(chat) => chat,
            None => self.device.new_chat(None)?,
        };
        self.chat = Some(chat.clone());
        let options = self.options(&chat);
        let asked = if self.device.is_temporary(&chat) {
            self.device.ask_temporary(&chat, text, None, &options).await?
        } else {
            self.device.ask(&chat, text, &options)?
        };
        self.begin_turn(&chat, &asked).await
    }

    /// Begins a chat of which nothing is kept.
    fn begin_temporary(&mut self) -> anyhow::Result<()> {
        let chat = self.device.new_temporary()?;
        if self.json {
            output::line(&json!({ "chat": chat.as_str(), "temporary": true }).to_string())?;
        }
        self.chat = Some(chat);
        note(
            "a temporary chat: nothing of it is stored, here or on the server, which reads it while it answers; \
             it ends with this command, or with /delete-chat",
        );
        Ok(())
    }

    async fn retry(&mut self, rest: &str) -> anyhow::Result<()> {
        let chat = self.open_chat()?;
        let view = self.device.chat(&chat)?;
        let message: MessageId = if rest.is_empty() {
            let last = view.branch.iter().rfind(|message| message.role == Role::User);
            last.ok_or_else(|| anyhow!("nothing was asked in this chat; hint: /ask TEXT"))?.id.clone()
        } else {
            Self::message(&view, rest)?.0
        };
        let options = self.options(&chat);
        let asked = if self.device.is_temporary(&chat) {
            self.device.retry_temporary(&chat, &message, &options).await?
        } else {
            self.device.retry(&chat, &message, &options)?
        };
        self.begin_turn(&chat, &asked).await
    }

    /// Another question in the place of one: a branch, with what was said before.
    async fn ask_instead(&mut self, rest: &str) -> anyhow::Result<()> {
        let chat = self.open_chat()?;
        let (message, text) = Self::message(&self.device.chat(&chat)?, rest)?;
        if text.is_empty() {
            return Err(anyhow!("the question is missing; hint: /instead NUMBER TEXT"));
        }
        let options = self.options(&chat);
        let asked = if self.device.is_temporary(&chat) {
            self.device.ask_temporary(&chat, text, Some(&message), &options).await?
        } else {
            self.device.ask_instead(&chat, &message, text, &options)?
        };
        self.begin_turn(&chat, &asked).await
    }

    /// What goes with a question: the names of what is remembered, and who is there to be asked for more. What the person chose to have
    /// known of them goes along in a chat where that is switched on.
    fn options(&self, chat: &ChatId) -> AskOptions {
        let mut options = AskOptions::default();
        options.available = self.device.memories();
        options.consent = self.consent;
        if self.device.shares(chat).contains(&Given::Settings) {
            let profile =
                options.available.iter().filter(|name| name.starts_with(PROFILE)).take(MOST_PROFILE);
            let given = profile.filter_map(|name| {
                let text = self.device.memory(name).filter(|text| text.len() <= LONGEST_PROFILE)?;
                Some(GivenText { what: Given::Settings, name: name.clone(), text })
            });
            options.given = given.collect();
        }
        options
    }

    async fn begin_turn(&mut self, chat: &ChatId, asked: &Asked) -> anyhow::Result<()> {
        if self.json {
            let line = json!({
                "chat": chat.as_str(), "message": asked.message.as_str(), "turn": asked.turn.as_str(),
                "reply": asked.reply.as_str(),
            });
            output::line(&line.to_string())?;
        }
        self.send().await?;
        if self.device.is_connected() {
            return self.follow(chat, &asked.turn).await;
        }
        Ok(())
    }

    /// Prints what comes of a turn, until its end.
    pub(super) async fn follow(&mut self, chat: &ChatId, turn: &TurnId) -> anyhow::Result<()> {
        let mut interrupts = Interrupts::listen()?;
        let mut printer = Printer::new(self.json);
        let mut cancelling = false;
        loop {
            let heard = tokio::select! {
                heard = self.device.listen() => heard,
                () = interrupts.next() => {
                    printer.end()?;
                    if cancelling {
                        return Err(anyhow!("stopped before the answer ended; hint: /sync asks for it again"));
                    }
                    cancelling = true;
                    note("cancelling; press Ctrl-C again to stop waiting");
                    self.device.cancel(chat, turn).await?;
                    continue;
                }
            };
            let told = match heard {
                Ok(News::Turn(told)) if told.turn == *turn => told,
                Ok(news) => {
                    self.heed(&news).await?;
                    continue;
                }
                Err(error) => {
                    printer.end()?;
                    self.device.disconnect();
                    return Err(anyhow!(error).context(if self.ends {
                        "the answer may go on without this device; /sync asks for it"
                    } else {
                        "the answer may go on without this device; this device asks for it when the server is back"
                    }));
                }
            };
            match told.what {
                TurnUpdate::Words { at, text } => {
                    let whole = self.device.words(turn).unwrap_or_default();
                    printer.words(at, &text, whole)?;
                }
                TurnUpdate::Progress(text) => printer.status.show(&text),
                TurnUpdate::Begun(ahead) if ahead > 0 => {
                    note(&format!("waiting: {} first", output::counted(u64::from(ahead), "question")));
                }
                TurnUpdate::History(count) => {
                    let messages = output::counted(count as u64, "message");
                    note(&format!(
                        "the server no longer had this chat's words: sent it {messages} for this answer"
                    ));
                }
                TurnUpdate::Ended(finish) => {
                    self.forget_data_requests(turn);
                    printer.end()?;
                    return self.ended(chat, turn, finish.name()).await;
                }
                what => {
                    if self.conclude(chat, turn, what, &mut printer)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// What ends the wait without an answer; whether it does.
    fn conclude(
        &mut self,
        chat: &ChatId,
        turn: &TurnId,
        what: TurnUpdate,
        printer: &mut Printer,
    ) -> anyhow::Result<bool> {
        match what {
            TurnUpdate::Approval(asked) => {
                printer.end()?;
                let line = json!({
                    "approval": asked.id, "tool": asked.tool, "input": asked.input, "why": asked.why,
                    "expires_ms": asked.expires_ms,
                });
                let head = format!("{} wants to run with {} ({})", asked.tool, asked.input, asked.why);
                self.show(line, &clean(&head), None)?;
                note(&format!("/approve allows it, /deny refuses it, within {}", span(asked.expires_ms)));
                self.question =
                    Some(Question { chat: chat.clone(), turn: turn.clone(), approval: asked.id.clone() });
                Ok(true)
            }
            TurnUpdate::DataRequest(data_request) => {
                printer.end()?;
                self.take_data_request(chat, turn, *data_request)?;
                Ok(true)
            }
            TurnUpdate::Gave(pieces) => {
                printer.end()?;
                self.show_given(&pieces)?;
                Ok(false)
            }
            TurnUpdate::Failed(error) => {
                printer.end()?;
                Err(anyhow!(
                    "there is no answer ({}); hint: /retry asks again, /give-up stops waiting",
                    error.name()
                ))
            }
            _ => Ok(false),
        }
    }

    /// Stores the answer.
    async fn ended(&mut self, chat: &ChatId, turn: &TurnId, finish: &str) -> anyhow::Result<()> {
        let body = self.device.words(turn).unwrap_or_default().to_owned();
        let reply = self.device.awaited().into_iter().find(|one| one.turn == *turn).map(|one| one.reply);
        self.send().await?;
        if let (Some(reply), Ok(view)) = (reply, self.device.chat(chat)) {
            self.show_tools(&view.tools(&reply))?;
        }
        if self.json {
            let line =
                json!({ "chat": chat.as_str(), "turn": turn.as_str(), "finish": finish, "body": body });
            output::line(&line.to_string())?;
        }
        match finish {
            "cut" => note("the answer was too long and was cut here"),
            "cancelled" => note("cancelled; the words so far are stored"),
            "ended" => {
                note("this chat was ended for safety");
                note(UNSEEN);
            }
            "declined" => note(UNSEEN),
            "asked_to_forget" => note("to forget a chat, delete it: /delete-chat"),
            _ => {}
        }
        // Nothing is made of an answer in a temporary chat.
        if self.ends && !self.device.is_temporary(chat) { self.made(turn).await } else { Ok(()) }
    }

    /// Waits for what is made of an answer, and stores it: nobody else does, if this process ends. Ctrl-C waits no longer.
    async fn made(&mut self, turn: &TurnId) -> anyhow::Result<()> {
        let mut interrupts = Interrupts::listen()?;
        let deadline = Instant::now() + MADE;
        while self.device.is_connected() {
            let heard = tokio::select! {
                heard = self.device.listen() => heard,
                () = interrupts.next() => break,
                () = tokio::time::sleep_until(deadline) => {
                    note("no summary or suggestions came in time; the answer is stored");
                    break;
                }
            };
            match heard {
                Ok(News::Turn(told)) if told.turn == *turn && told.what == TurnUpdate::Made => {
                    return self.send().await;
                }
                Ok(news) => self.heed(&news).await?,
                // The answer is stored, and the rest is not worth an error.
                Err(error) => {
                    note(&error.to_string());
                    self.device.disconnect();
                }
            }
        }
        Ok(())
    }

    async fn decide(&mut self, allow: bool) -> anyhow::Result<()> {
        let Some(Question { chat, turn, approval }) = self.question.take() else {
            return Err(anyhow!("no tool waits for your decision"));
        };
        self.device.decide(&chat, &turn, &approval, allow).await?;
        self.follow(&chat, &turn).await
    }

    /// Replies that are waited for, in the open chat or in all.
    fn awaited(&self) -> Vec<Awaited> {
        let mut all = self.device.awaited();
        all.retain(|one| self.chat.as_ref().is_none_or(|chat| one.chat == *chat));
        all
    }

    async fn cancel(&mut self) -> anyhow::Result<()> {
        for one in self.awaited() {
            if one.state == Awaiting::Running {
                self.device.cancel(&one.chat, &one.turn).await?;
            }
        }
        self.wait().await
    }

    async fn give_up(&mut self) -> anyhow::Result<()> {
        for one in self.awaited() {
            self.device.give_up(&one.chat, &one.turn)?;
        }
        self.question = None;
        self.send().await
    }

    /// Waits for every answer that is being made.
    async fn wait(&mut self) -> anyhow::Result<()> {
        self.device.resume().await?;
        for one in self.awaited() {
            if one.state == Awaiting::Running {
                self.follow(&one.chat, &one.turn).await?;
            }
        }
        self.send().await
    }

    /// Whether the server may keep the words of the open chat between questions.
    async fn cache(&mut self, rest: &str) -> anyhow::Result<()> {
        let chat = self.open_chat()?;
        match rest {
            "on" | "off" => {
                self.device.set_cached(&chat, rest == "on")?;
                self.send().await?;
            }
            "" => {}
            _ => {
                return Err(anyhow!(
                    "say on or off; hint: with /cache off, the server keeps nothing of this chat for the next answer"
                ));
            }
        }
        let now = if self.device.is_cached(&chat) { "on" } else { "off" };
        self.show(json!({ "cache": now }), &format!("cache: {now}"), None)
    }

    /// Says which answers are waited for.
    pub(super) fn show_awaited(&self) -> anyhow::Result<()> {
        for one in self.device.awaited() {
            let state = match one.state {
                Awaiting::Unsent => "not asked yet",
                Awaiting::Running => "being made",
                Awaiting::Heard => "here, not stored yet",
                Awaiting::Unanswered(error) => error.name(),
                _ => "unknown until the next sync",
            };
            let line = json!({
                "awaits": one.turn.as_str(), "chat": one.chat.as_str(), "message": one.message.as_str(),
                "state": state,
            });
            self.show(line, &format!("waits for an answer ({state}): {}", self.title(&one.chat)), None)?;
        }
        Ok(())
    }

    /// Says what came of turns while nobody followed them, and stores what they left.
    pub(super) async fn heed_turn(
        &mut self,
        chat: &ChatId,
        turn: &TurnId,
        what: &TurnUpdate,
    ) -> anyhow::Result<()> {
        match what {
            TurnUpdate::Ended(finish) if self.forget_data_requests(turn) => {
                // It went on without the person's word, and nobody followed it since.
                let body = self.device.words(turn).unwrap_or_default().to_owned();
                self.show(json!({ "words": body }), &clean(&body), None)?;
                self.ended(chat, turn, finish.name()).await?;
            }
            TurnUpdate::Ended(_) => {
                // Of the chat that is open, the answer itself; one from the mailbox was not heard word by word.
                let words = self.device.words(turn).filter(|words| !words.is_empty());
                let words =
                    words.filter(|_| Some(chat) == self.chat.as_ref()).map(|words| clean(words).into_owned());
                note(&format!("an answer came: {}", words.unwrap_or_else(|| self.title(chat))));
                self.send().await?;
            }
            TurnUpdate::Made => self.send().await?,
            TurnUpdate::Failed(error) => {
                note(&format!(
                    "there is no answer ({}): {}; /retry, or /give-up",
                    error.name(),
                    self.title(chat)
                ));
            }
            TurnUpdate::Approval(_) | TurnUpdate::DataRequest(_) | TurnUpdate::Gave(_) => {
                self.conclude(chat, turn, what.clone(), &mut Printer::new(self.json))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A time that is left, in words.
fn span(milliseconds: u64) -> String {
    match milliseconds / 60_000 {
        0 | 1 => "a minute".to_owned(),
        minutes @ 2..=119 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes / 60),
    }
}

/// What the names of a profile begin with, and how much of it goes with a question: two pieces, so that one is left to be asked for.
const PROFILE: &str = "profile-";
const MOST_PROFILE: usize = 2;
const LONGEST_PROFILE: usize = 1024;
/// How long it may take to make a summary and suggestions of an answer.
const MADE: Duration = Duration::from_secs(60);

/// Prints an answer as it comes.
struct Printer {
    json: bool,
    status: Status,
    live: Option<Live>,
    /// How many bytes of the answer are printed.
    printed: usize,
}

impl Printer {
    fn new(json: bool) -> Self {
        Self { json, status: Status::default(), live: Live::on_terminal().filter(|_| !json), printed: 0 }
    }

    fn words(&mut self, at: usize, text: &str, whole: &str) -> anyhow::Result<()> {
        self.status.clear();
        if self.json {
            return output::line(&json!({ "at": at, "words": text }).to_string());
        }
        let is_next = at == self.printed;
        if !is_next {
            self.end()?;
            note("the answer changed; from its beginning:");
        }
        let text = if is_next { text } else { whole };
        self.printed = whole.len();
        match &mut self.live {
            Some(live) => Ok(live.push(text)?),
            None => output::text(&clean(text)),
        }
    }

    fn end(&mut self) -> anyhow::Result<()> {
        self.status.clear();
        if std::mem::take(&mut self.printed) == 0 {
            return Ok(());
        }
        match &mut self.live {
            Some(live) => Ok(live.finish()?),
            None => output::line(""),
        }
    }
}

/// What becomes of a chat that was refused or ended.
const UNSEEN: &str =
    "no reviewer sees this chat unless you share it; /snapshot makes a link to what it says now";
