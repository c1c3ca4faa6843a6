//! What an answer asks this device for: shown before it goes, and given by the person's word or by a switch of the chat.
//!
//! ```text
//! TurnUpdate::DataRequest ─▶ shown, one at a time: what is asked for, what would go ─┬─ /give, y: it goes, and the answer is followed on
//!                                                                                    ├─ /give 1 3: only these
//!                                                                                    └─ /deny, n, or a few seconds: nothing; the answer goes on
//! /share NAME on ─▶ TurnUpdate::Gave: said after it went
//! ```
//!
//! Easy to get wrong: somebody who is not there. `--do` asks nobody, so that nothing can be asked for but what is switched on.

use anyhow::anyhow;
use confidant_chat_format::{ChatId, TurnId};
use confidant_chat_protocol::Given;
use confidant_client::{DataRequest, GivenText};
use serde_json::{Value, json};

use super::Remote;
use crate::output::{clean, counted, note};

/// Something that the server asks for.
pub(super) struct Asked {
    chat: ChatId,
    turn: TurnId,
    data_request: DataRequest,
}

impl Remote<'_> {
    /// Keeps what is asked for until the person says something, and shows it if nothing else is before it.
    pub(super) fn take_data_request(
        &mut self,
        chat: &ChatId,
        turn: &TurnId,
        data_request: DataRequest,
    ) -> anyhow::Result<()> {
        self.data_requests.push_back(Asked { chat: chat.clone(), turn: turn.clone(), data_request });
        if self.data_requests.len() > 1 {
            return Ok(());
        }
        self.show_data_request()
    }

    /// A turn has its answer: nothing is asked for any more. Whether anything was.
    pub(super) fn forget_data_requests(&mut self, turn: &TurnId) -> bool {
        let before = self.data_requests.len();
        self.data_requests.retain(|asked| asked.turn != *turn);
        self.data_requests.len() < before
    }

    /// Shows what is asked for, and what would go.
    fn show_data_request(&self) -> anyhow::Result<()> {
        let Some(Asked { data_request, .. }) = self.data_requests.front() else { return Ok(()) };
        let line = json!({
            "asks": name_of(data_request.what), "names": data_request.names, "query": data_request.query, "pieces": pieces(&data_request.pieces),
        });
        let about = data_request.query.clone().unwrap_or_else(|| data_request.names.join(", "));
        let head = match data_request.what {
            Given::Settings => "the answer asks for what you saved as",
            Given::Summary => "the answer asks for summaries of chats about",
            Given::Search => "the answer asks for what your other chats say about",
        };
        self.show(line, &format!("{head}: {}", clean(&about)), None)?;
        self.list_pieces(&data_request.pieces)?;
        if data_request.pieces.is_empty() {
            note(
                "this device has nothing like that; /give or /deny says so; otherwise the answer goes on in a moment",
            );
        } else {
            note(
                "/give sends this, /give NUMBERS part of it, /deny nothing; otherwise the answer goes on without it in a moment",
            );
        }
        Ok(())
    }

    /// Says what went, since it is switched on.
    pub(super) fn show_given(&self, given: &[GivenText]) -> anyhow::Result<()> {
        if given.is_empty() {
            return Ok(());
        }
        note(&format!(
            "sent for this answer, because /share is on: {}",
            counted(given.len() as u64, "piece")
        ));
        if self.json {
            return self.show(json!({ "gave": pieces(given) }), "", None);
        }
        self.list_pieces(given)
    }

    fn list_pieces(&self, given: &[GivenText]) -> anyhow::Result<()> {
        if self.json {
            return Ok(());
        }
        for (at, piece) in given.iter().enumerate() {
            let head = format!("{:>3}  {}", at + 1, clean(&piece.name));
            self.show(Value::Null, &head, Some(&piece.text))?;
        }
        Ok(())
    }

    /// Gives what is asked for, or some of it by number.
    pub(super) async fn give(&mut self, numbers: &str) -> anyhow::Result<()> {
        let Some(asked) = self.data_requests.front() else { return Err(anyhow!("nothing is asked for")) };
        let all = &asked.data_request.pieces;
        let mut given = Vec::new();
        for number in numbers.split_whitespace() {
            let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let piece = at.and_then(|at| all.get(at));
            given.push(piece.ok_or_else(|| anyhow!("there is no such piece; hint: /give 1"))?.clone());
        }
        if numbers.trim().is_empty() {
            given.clone_from(all);
        }
        self.answer_data_request(given).await
    }

    /// Gives nothing.
    pub(super) async fn give_nothing(&mut self) -> anyhow::Result<()> {
        self.answer_data_request(Vec::new()).await
    }

    async fn answer_data_request(&mut self, given: Vec<GivenText>) -> anyhow::Result<()> {
        let Some(Asked { chat, turn, data_request }) = self.data_requests.pop_front() else { return Ok(()) };
        let answered = self.device.give(&chat, &turn, data_request.what, &given).await;
        if let Err(error) = answered {
            note(&format!("nothing was sent: {error}"));
        }
        if !self.data_requests.is_empty() {
            return self.show_data_request();
        }
        if self.device.awaited().iter().any(|one| one.turn == turn) {
            return self.follow(&chat, &turn).await;
        }
        Ok(())
    }

    /// Switches on or off what is given in this chat without asking each time.
    pub(super) async fn share(&mut self, rest: &str) -> anyhow::Result<()> {
        let chat = self.open_chat()?;
        if !rest.is_empty() {
            let hint = || {
                anyhow!(
                    "say what, and on or off; hint: /share NAME on, where NAME is settings, similar or search"
                )
            };
            let (name, to) = rest.rsplit_once(' ').ok_or_else(hint)?;
            let what = Given::ALL.iter().find(|given| name_of(**given) == name.trim()).ok_or_else(hint)?;
            let is_on = match to {
                "on" => true,
                "off" => false,
                _ => return Err(hint()),
            };
            self.device.share(&chat, *what, is_on)?;
            self.send().await?;
        }
        for what in self.device.shares(&chat) {
            let name = name_of(what);
            self.show(json!({ "shares": name }), &format!("sent in this chat without asking: {name}"), None)?;
        }
        Ok(())
    }

    /// Lists what is remembered, or changes it.
    pub(super) async fn memory(&mut self, rest: &str) -> anyhow::Result<()> {
        if !rest.is_empty() {
            let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
            let text = text.trim();
            self.device.remember(name, (!text.is_empty()).then_some(text)).map_err(|error| {
                anyhow!(error)
                    .context("use lower-case letters, digits, - and _ for the name, and up to 4 KiB of text")
            })?;
            return self.send().await;
        }
        for name in self.device.memories() {
            let text = self.device.memory(&name).unwrap_or_default();
            self.show(json!({ "memory": name, "text": text }), &name, Some(&text))?;
        }
        Ok(())
    }
}

/// The word for something, as `/switch` has it.
const fn name_of(what: Given) -> &'static str {
    match what {
        Given::Settings => "settings",
        Given::Summary => "similar",
        Given::Search => "search",
    }
}

fn pieces(given: &[GivenText]) -> Vec<Value> {
    given.iter().map(|piece| json!({ "name": piece.name, "text": piece.text })).collect()
}
