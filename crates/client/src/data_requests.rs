//! What the server asks this device for while it answers: settings and memories, summaries of similar chats, a search.
//!
//! ```text
//! request_client_data ─▶ this turn, this socket, allowed by the question, the first of its kind, unanswered?   no ─▶ unasked
//!                                                  │ pieces from what is on this device: three, 4 KiB a turn
//!           switched on for this chat ◀────────────┴────────────▶ the person is shown them: TurnUpdate::DataRequest ─▶ Device::give, or nothing
//!                     └──────────▶ noted, kept, then sent: client_data ◀─────────┘
//! ```
//!
//! Nothing goes without the person's word, not even that there is nothing to give: whoever asks would learn what the chats say from how fast the
//! answer comes. Easy to get wrong: the note of what was given. It is kept before anything is sent, and sealed into the reply; where another
//! device stores the reply first, it is added to it.

use std::collections::BTreeMap;

use confidant_chat_format::{ChatId, FieldName, MessageId, Refused, Role, Shared, TurnId};
use confidant_chat_protocol::limits::{MAX_CLIENT_DATA, MAX_OFF, MAX_PIECES, MAX_SHORT};
use confidant_chat_protocol::{ClientData, ClientEvent, Given, List, Piece, RequestClientData, Text};
use confidant_display::debug_without_content;

use crate::asks::GivenText;
use crate::device::Device;
use crate::error::Error;
use crate::room::Room;
use crate::state::Question;
use crate::turns::{TurnEvent, TurnUpdate};

/// Who says yes to what the server asks for while it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Consent {
    /// Only what is switched on for the chat ([`Device::share`]) may be asked for; nobody is there to be asked.
    #[default]
    Switches,
    /// The person is there: what is not switched on is shown to them first ([`TurnUpdate::DataRequest`]).
    Person,
}

/// Something that the server asks for, and what this device would give.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataRequest {
    /// What.
    pub what: Given,
    /// Settings and memories by name, or what the question is about.
    pub names: Vec<String>,
    /// What is searched for.
    pub query: Option<String>,
    /// What would be given: exactly this. Some of it may be left out.
    pub pieces: Vec<GivenText>,
}

debug_without_content!(DataRequest { what });

impl Device {
    /// What is given in this chat without asking the person each time. Nothing at first.
    #[must_use]
    pub fn shares(&self, chat: &ChatId) -> Vec<Given> {
        let view = self.chat(chat).ok();
        let names = view.and_then(|view| serde_json::from_str::<Vec<String>>(view.fields.get(SHARES)?).ok());
        let names = names.unwrap_or_default();
        Given::ALL.iter().copied().filter(|given| names.iter().any(|name| name == given.name())).collect()
    }

    /// Switches on for this chat, on all devices, that something is given whenever the server asks for it; or off again.
    pub fn share(&mut self, chat: &ChatId, what: Given, is_on: bool) -> Result<(), Error> {
        let mut shares = self.shares(chat);
        shares.retain(|one| *one != what);
        if is_on {
            shares.push(what);
        }
        let names: Vec<&str> = shares.iter().map(|given| given.name()).collect();
        let names = serde_json::to_string(&names).map_err(|_| Error::Damaged)?;
        self.set_field(chat, SHARES, &names)
    }

    /// The names of what the person had this account remember, for [`AskOptions::available`](crate::AskOptions::available).
    #[must_use]
    pub fn memories(&self) -> Vec<String> {
        let names = self.names_of(MEMORY);
        names.into_iter().filter(|name| self.memory(name).is_some()).take(MAX_OFF).collect()
    }

    /// What is remembered under this name.
    #[must_use]
    pub fn memory(&self, name: &str) -> Option<String> {
        self.data(MEMORY, name).ok().flatten()
    }

    /// Remembers something under a name, sealed, on all devices; `None` forgets it. A server learns the names with each question, unless
    /// `settings` is switched off, and what they say only by consent.
    pub fn remember(&mut self, name: &str, text: Option<&str>) -> Result<(), Error> {
        if text.is_some_and(|text| text.is_empty() || text.len() > MAX_CLIENT_DATA) {
            return Err(Error::TooLarge);
        }
        self.set_data(MEMORY, name, text)
    }

    /// Gives the server what it asked for ([`TurnUpdate::DataRequest`]): these pieces, or nothing. Once for each request, and only while its turn has no
    /// answer; else `unasked`. What is given is noted inside the reply.
    pub async fn give(
        &mut self,
        chat: &ChatId,
        turn: &TurnId,
        what: Given,
        pieces: &[GivenText],
    ) -> Result<(), Error> {
        let socket = self.socket_number;
        let one = self.turns.find_mut(turn).filter(|one| one.may_answer(chat, what, socket));
        let one = one.ok_or(Refused::Unasked)?;
        let left = Left::of(self.state.asks.iter().find(|ask| ask.turn == *turn).ok_or(Refused::Unasked)?);
        let bytes: usize = pieces.iter().map(|piece| piece.text.len()).sum();
        let is_kind = pieces.iter().all(|piece| piece.what == what && piece.name.len() <= MAX_SHORT);
        if !is_kind || pieces.len() > left.pieces || bytes > left.bytes {
            return Err(Error::TooLarge);
        }
        one.open.retain(|open| *open != what);
        let gave = pieces.iter().map(note).collect::<Result<Vec<_>, Error>>()?;
        if !gave.is_empty() {
            self.note_given(turn, gave)?;
        }
        let piece = |piece: &GivenText| {
            Ok(Piece { what, name: Text::new(piece.name.clone())?, text: Text::new(piece.text.clone())? })
        };
        let pieces = List::new(pieces.iter().map(piece).collect::<Result<_, Error>>()?)?;
        let data = ClientData { chat: chat.clone(), turn: turn.clone(), what, pieces };
        self.tell(ClientEvent::ClientData(data)).await
    }

    /// The server asks for something. Anything but what the question allowed, for this turn, on this socket, once: `unasked`.
    pub(crate) async fn take_data_request(
        &mut self,
        asked: &RequestClientData,
    ) -> Result<Option<TurnEvent>, Error> {
        let (what, socket) = (asked.what, self.socket_number);
        let question = self.state.asks.iter().find(|ask| ask.turn == asked.turn).cloned();
        let question = question.ok_or(Refused::Unasked)?;
        let is_shared = self.shares(&asked.chat).contains(&what);
        let may = (is_shared || question.is_person) && !self.is_off(switch_of(what), &question.off);
        let turn = self.turns.find_mut(&asked.turn);
        let turn = turn.filter(|turn| may && turn.may_be_asked(&asked.chat, what, socket));
        let turn = turn.ok_or(Refused::Unasked)?;
        turn.asked.push(what);
        turn.open.push(what);
        let branch: Vec<MessageId> = turn.branch.iter().map(|(id, _)| id.clone()).collect();
        let pieces = self.fitting(asked, &question, &branch);
        if is_shared {
            self.give(&asked.chat, &asked.turn, what, &pieces).await?;
        }
        let Some(turn) = self.turns.find(&asked.turn) else { return Ok(None) };
        if is_shared {
            return Ok(Some(turn.tell(TurnUpdate::Gave(pieces))));
        }
        let names = asked.names.iter().map(|name| name.as_str().to_owned()).collect();
        let query = asked.query.as_ref().map(|query| query.as_str().to_owned());
        Ok(Some(turn.tell(TurnUpdate::DataRequest(Box::new(DataRequest { what, names, query, pieces })))))
    }

    /// Kept before it is sent: whatever happens, the reply says so.
    fn note_given(&mut self, turn: &TurnId, gave: Vec<Shared>) -> Result<(), Error> {
        if let Some(ask) = self.state.asks.iter_mut().find(|ask| ask.turn == *turn) {
            ask.gave.extend(gave);
        }
        self.save()
    }

    /// Whether the person switched this off, for all questions or for one.
    pub(crate) fn is_off(&self, name: &str, off: &[String]) -> bool {
        off.iter().any(|one| one == name) || self.switched_off().iter().any(|one| one == name)
    }

    /// What of this device fits a request, as much as the turn may still have.
    fn fitting(
        &self,
        asked: &RequestClientData,
        question: &Question,
        branch: &[MessageId],
    ) -> Vec<GivenText> {
        let names: Vec<&str> = asked.names.iter().map(|name| name.as_str()).collect();
        let found: Vec<(String, String)> = match asked.what {
            Given::Settings => {
                let known =
                    names.iter().filter(|name| question.available.iter().any(|one| one.as_str() == **name));
                known.filter_map(|name| Some(((*name).to_owned(), self.memory(name)?))).collect()
            }
            Given::Summary => self.similar(&asked.chat, &names),
            Given::Search => {
                let words = asked.query.as_ref().map_or("", |query| query.as_str());
                self.search(words, branch, &question.message)
            }
        };
        let mut left = Left::of(question);
        let mut pieces = Vec::new();
        for (name, text) in found {
            if left.pieces == 0 {
                break;
            }
            if text.len() <= left.bytes {
                (left.pieces, left.bytes) = (left.pieces - 1, left.bytes - text.len());
                pieces.push(GivenText { what: asked.what, name, text });
            }
        }
        pieces
    }

    /// The other chats that have most to do with these tags, best first: title and summary.
    fn similar(&self, chat: &ChatId, tags: &[&str]) -> Vec<(String, String)> {
        let wanted = words(&tags.join(" "));
        let others = self.rooms.values().filter(|room| room.id != *chat);
        let mut found: Vec<(usize, u64, (String, String))> = Vec::new();
        for room in others {
            let Some(summary) = field(room, SUMMARY) else { continue };
            let title = field(room, crate::plan::TITLE).unwrap_or_default();
            let has = words(&format!("{title} {summary} {}", field(room, TAGS).unwrap_or_default()));
            let score = wanted.keys().filter(|word| has.contains_key(*word)).count();
            if score > 0 {
                found.push((score, room.updated_at, (short(title), excerpt(summary, 0))));
            }
        }
        found.sort_by_key(|one| std::cmp::Reverse((one.0, one.1)));
        found.into_iter().take(MAX_PIECES).map(|(_, _, one)| one).collect()
    }

    /// The messages of all chats on this device that say most about these words, best first: the chat's title and the place. Not those that
    /// the server has for this turn.
    fn search(&self, query: &str, branch: &[MessageId], question: &MessageId) -> Vec<(String, String)> {
        let wanted = words(query);
        let mut messages = Vec::new();
        for room in self.rooms.values() {
            for (id, _, message) in room.messages() {
                let is_said = matches!(message.role, Role::User | Role::Assistant);
                if is_said && id != question && !branch.contains(id) {
                    messages.push((room, message, words(&message.body)));
                }
            }
        }
        // A word that few messages have says more than one that many have.
        let weight = |word: &String| {
            let having = messages.iter().filter(|(.., has)| has.contains_key(word)).count();
            ((1.0 + messages.len() as f64) / (0.5 + having as f64)).ln()
        };
        let weights: Vec<(&String, f64)> = wanted.keys().map(|word| (word, weight(word))).collect();
        let mut found: Vec<(f64, u64, (String, String))> = Vec::new();
        for (room, message, has) in &messages {
            let hits: Vec<&(&String, f64)> =
                weights.iter().filter(|(word, _)| has.contains_key(*word)).collect();
            let Some(first) = hits.iter().filter_map(|(word, _)| has.get(*word)).min() else { continue };
            let score: f64 = hits.iter().map(|(_, weight)| weight).sum();
            let title = field(room, crate::plan::TITLE).unwrap_or_default();
            found.push((score, message.created_at, (short(title), excerpt(&message.body, *first))));
        }
        found.sort_by(|one, two| two.0.total_cmp(&one.0).then(two.1.cmp(&one.1)));
        found.into_iter().take(MAX_PIECES).map(|(_, _, one)| one).collect()
    }
}

/// The switch that is for something.
pub(crate) const fn switch_of(what: Given) -> &'static str {
    match what {
        Given::Settings => "settings",
        Given::Summary => "similar",
        Given::Search => "search",
    }
}

/// What a message notes of something that is given.
pub(crate) fn note(given: &GivenText) -> Result<Shared, Error> {
    let bytes = u32::try_from(given.text.len()).map_err(|_| Error::TooLarge)?;
    Ok(Shared { what: FieldName::parse(given.what.name())?, bytes })
}

/// What a turn may still have.
struct Left {
    pieces: usize,
    bytes: usize,
}

impl Left {
    fn of(question: &Question) -> Self {
        let given = question.given.iter().map(|(.., text)| text.len());
        let gave = question.gave.iter().map(|one| usize::try_from(one.bytes).unwrap_or(usize::MAX));
        let sizes: Vec<usize> = given.chain(gave).collect();
        Self {
            pieces: MAX_PIECES.saturating_sub(sizes.len()),
            bytes: sizes.into_iter().fold(MAX_CLIENT_DATA, usize::saturating_sub),
        }
    }
}

fn field<'a>(room: &'a Room, name: &str) -> Option<&'a str> {
    room.field(&FieldName::parse(name).ok()?)
}

/// A title, as far as one may be long.
fn short(title: &str) -> String {
    let title = if title.trim().is_empty() { "(no title)" } else { title };
    title[..title.floor_char_boundary(MAX_SHORT)].to_owned()
}

/// As much of a text as one piece has, from a little before this place on.
fn excerpt(text: &str, at: usize) -> String {
    let from = text.floor_char_boundary(at.saturating_sub(EXCERPT / 4));
    let to = text.floor_char_boundary((from + EXCERPT).min(text.len()));
    text[from..to].trim().to_owned()
}

/// Words in lower case that are long enough to say something, without their commonest endings; each with where it stands first.
fn words(text: &str) -> BTreeMap<String, usize> {
    let mut words = BTreeMap::new();
    let mut at = 0;
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let lower = word.to_lowercase();
        let stem = ["ing", "ed", "s"]
            .into_iter()
            .find_map(|end| lower.strip_suffix(end).filter(|stem| stem.chars().count() > 2));
        let stem = stem.unwrap_or(&lower);
        if stem.chars().count() > 2 {
            words.entry(stem.to_owned()).or_insert(at);
        }
        // What parts two words is one character, of any length.
        let after = at + word.len();
        at = after + text[after..].chars().next().map_or(0, char::len_utf8);
    }
    words
}

/// The field of a chat that has what is switched on for it.
const SHARES: &str = "shares";
/// Fields of a chat that were made of its answers.
const SUMMARY: &str = "summary";
const TAGS: &str = "tags";
/// The kind of account data that a person had remembered.
const MEMORY: &str = "memory";
/// Bytes of one piece of a chat.
const EXCERPT: usize = 1200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_where_they_stand() {
        let text = "Über die Gezeiten… tides, TIDES and a tide";
        let found = words(text);
        assert_eq!(found["über"], 0);
        assert_eq!(&text[found["tide"]..][..5], "tides");
        assert!(!found.contains_key("a") && found.contains_key("and"));
        let long = format!("{} needle {}", "ä".repeat(2000), "ö".repeat(2000));
        let cut = excerpt(&long, words(&long)["needle"]);
        assert!(cut.contains("needle") && cut.len() <= EXCERPT);
        assert_eq!(excerpt("short", 3), "short");
    }
}
