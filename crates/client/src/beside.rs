//! What a chat has beside its branch: what tools said for an answer, and the beginning in few words.
//!
//! ```text
//! question ─▶ answer ─▶ question ─▶ answer …            the branch, which a claim is made over
//!               ├─ tool ─▶ tool                          in the transcript: between question and answer
//!               └─ summary                               of all up to here; what follows is sent behind it
//! ```
//!
//! The server's model or tool said them, and proved it; nobody answers them. Easy to get wrong: a summary of words that changed. It is
//! kept only while a device finds the transcript that the server named, and goes in the write that changes one of the words.

use std::collections::{BTreeMap, BTreeSet};

use confidant_chat_format::{Digest, Message, MessageId, Role, Transcript, TranscriptKind, beside};
use confidant_chat_protocol::limits::MAX_QUERY;
use confidant_chat_protocol::{Beside, BesideBy, Heard, SaidBy, Text};
use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};

use crate::queue::Answer;
use crate::room::Room;

/// Something that is stored beside an answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BesideNote {
    pub(crate) role: Role,
    pub(crate) body: String,
    pub(crate) proof: Digest,
    /// Of a summary: how many messages of the branch it stands for, and their transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sums_up: Option<(u32, Digest)>,
}

debug_without_content!(BesideNote { role });

impl From<&Beside> for BesideNote {
    fn from(sent: &Beside) -> Self {
        let role = match sent.by {
            BesideBy::Tool => Role::Tool,
            BesideBy::Summary => Role::Summary,
        };
        let sums_up = sent.count.zip(sent.sums_up);
        Self { role, body: sent.text.as_str().to_owned(), proof: sent.proof, sums_up }
    }
}

/// Whether a message stands beside a branch, if it is not on it.
pub(crate) fn is_beside(message: &Message) -> bool {
    matches!(message.role, Role::Tool | Role::Summary) && message.proof.is_some()
}

/// What stands beside the branches of a chat, by the message that it belongs to.
pub(crate) struct Sides<'r>(BTreeMap<&'r MessageId, Vec<(&'r MessageId, &'r Message)>>);

debug_without_content!(Sides<'_>);

impl<'r> Sides<'r> {
    pub(crate) fn of(room: &'r Room) -> Self {
        let mut sides: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, _, message) in room.messages().filter(|(.., message)| is_beside(message)) {
            if let Some(parent) = &message.parent {
                sides.entry(parent).or_default().push((id, message));
            }
        }
        Self(sides)
    }

    /// What tools said for an answer, in order.
    fn tools(&self, answer: &MessageId) -> Vec<(&'r MessageId, &'r Message)> {
        let (mut tools, mut at) = (Vec::new(), Some(answer));
        while let Some(id) = at {
            let tool = self.0.get(id).and_then(|all| all.iter().find(|one| one.1.role == Role::Tool));
            tools.extend(tool);
            at = tool.map(|(id, _)| *id);
        }
        tools
    }

    /// The summary of everything up to a message.
    fn summary(&self, last: &MessageId) -> Option<(&'r MessageId, &'r Message)> {
        let all = self.0.get(last)?.iter().filter(|one| one.1.role == Role::Summary);
        all.max_by_key(|(id, message)| (message.created_at, *id)).copied()
    }
}

/// A branch as the server is sent it, its messages being as they were: the newest summary in the place of what it sums up, what tools
/// said before the answers that came of it.
pub(crate) fn heard(room: &Room, branch: &[(MessageId, u32)]) -> Option<Vec<Heard>> {
    let sides = Sides::of(room);
    let messages = branch.iter().map(|(id, rev)| {
        let now = room.rev(id)?;
        room.message(id).filter(|_| now == *rev).map(|message| (id, message))
    });
    let messages = messages.collect::<Option<Vec<_>>>()?;
    let summary = |at: usize| sides.summary(messages[at].0).map(|summary| (at + 1, summary));
    let summary = (0..messages.len()).rev().find_map(summary);
    let (from, mut heard) = (summary.map_or(0, |(count, _)| count), Vec::new());
    if let Some((count, (id, message))) = summary {
        let transcript = transcript(&sides, messages[..count].iter().copied());
        heard.push(Heard {
            count: u32::try_from(count).ok(),
            sums_up: Some(*transcript.digest()),
            ..line(id, message)
        });
    }
    for (id, message) in &messages[from..] {
        let tools = sides.tools(id).into_iter();
        heard.extend(tools.map(|(id, message)| Heard { count: Some(0), ..line(id, message) }));
        heard.push(line(id, message));
    }
    Some(heard)
}

fn line(id: &MessageId, message: &Message) -> Heard {
    let by = match message.role {
        Role::User => SaidBy::User,
        Role::Assistant => SaidBy::Assistant,
        Role::Tool => SaidBy::Tool,
        Role::Summary => SaidBy::Summary,
    };
    let text = Text::cut(&message.body);
    Heard { id: id.clone(), by, text, proof: message.proof, count: None, sums_up: None }
}

/// The transcript of the beginning of a branch, if the server takes its own proofs.
fn transcript<'m>(
    sides: &Sides<'_>,
    messages: impl Iterator<Item = (&'m MessageId, &'m Message)>,
) -> Transcript {
    messages.fold(Transcript::start(), |at, (id, message)| {
        let at = sides.tools(id).into_iter().fold(at, |at, (_, tool)| spoken(&at, tool));
        spoken(&at, message)
    })
}

fn spoken(at: &Transcript, message: &Message) -> Transcript {
    let kind = match (message.role, message.proof) {
        (Role::User, _) => TranscriptKind::User,
        (_, None) => TranscriptKind::Quoted,
        (Role::Assistant, _) => TranscriptKind::Assistant,
        (Role::Tool, _) => TranscriptKind::Tool,
        (Role::Summary, _) => TranscriptKind::Summary,
    };
    at.then(kind, Text::<MAX_QUERY>::cut(&message.body).as_str())
}

/// What is stored beside an answer to this question: messages by their ids. A summary of other words than this device has is left out, and
/// what was there before and went.
pub(crate) fn messages(
    room: &Room,
    question: &MessageId,
    reply: &MessageId,
    answer: &Answer,
) -> Vec<(MessageId, Message)> {
    let (mut last, mut all) = (reply.clone(), Vec::new());
    for (n, note) in (0..).zip(&answer.beside) {
        let id = beside(&answer.turn, n);
        let parent = match note.sums_up {
            None => Some(last.clone()),
            Some((count, transcript)) => summed_up(room, question, count, &transcript),
        };
        let Some(parent) = parent.filter(|_| room.is_new(&id)) else { continue };
        if note.role == Role::Tool {
            last = id.clone();
        }
        let message = Message {
            v: 1,
            role: note.role,
            parent: Some(parent),
            created_at: answer.created_at,
            body: note.body.clone(),
            model: answer.model.clone().filter(|_| note.role == Role::Summary),
            reason: None,
            refs: Vec::new(),
            proof: Some(note.proof),
            shared: Vec::new(),
        };
        all.push((id, message));
    }
    all
}

/// The last of the messages before a question that are summed up, if they are the ones that the server means.
fn summed_up(room: &Room, question: &MessageId, count: u32, transcript: &Digest) -> Option<MessageId> {
    let path = path(room, room.message(question)?.parent.as_ref());
    let covered = path.get(..usize::try_from(count).ok()?)?;
    let messages = covered.iter().map(|id| Some((*id, room.message(id)?))).collect::<Option<Vec<_>>>()?;
    let here = self::transcript(&Sides::of(room), messages.into_iter());
    covered.last().filter(|_| here.digest() == transcript).map(|id| (*id).clone())
}

/// The messages up to this one, the first first.
fn path<'r>(room: &'r Room, last: Option<&'r MessageId>) -> Vec<&'r MessageId> {
    let (mut path, mut at) = (Vec::new(), last);
    while let Some(id) = at {
        path.push(id);
        at = room.message(id).and_then(|message| message.parent.as_ref());
    }
    path.reverse();
    path
}

/// Summaries that tell of a message: they go when it changes.
pub(crate) fn summaries_of<'r>(room: &'r Room, id: &MessageId) -> BTreeSet<&'r MessageId> {
    let owner = owner(room, id).unwrap_or(id);
    let summaries = room.messages().filter(|(.., one)| one.role == Role::Summary && is_beside(one));
    let tells = |parent: Option<&MessageId>| path(room, parent).contains(&owner);
    summaries.filter(|(.., one)| tells(one.parent.as_ref())).map(|(id, ..)| id).collect()
}

/// What tools said for an answer: it goes with the answer.
pub(crate) fn tools_of<'r>(room: &'r Room, answer: &MessageId) -> Vec<&'r MessageId> {
    Sides::of(room).tools(answer).into_iter().map(|(id, _)| id).collect()
}

/// The answer that a tool said something for.
pub(crate) fn owner<'r>(room: &'r Room, tool: &MessageId) -> Option<&'r MessageId> {
    let mut at =
        room.message(tool).filter(|one| one.role == Role::Tool && is_beside(one))?.parent.as_ref()?;
    loop {
        let message = room.message(at)?;
        match message.role {
            Role::Assistant => return Some(at),
            Role::Tool if is_beside(message) => at = message.parent.as_ref()?,
            _ => return None,
        }
    }
}
