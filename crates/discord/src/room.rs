//! What was said around a message just now: the newest lines of its channel, fetched anew for each turn and never kept.

use std::collections::HashMap;

use confidant_channel::Trouble;
use confidant_engine::room::{RoomContext, RoomLine};
use twilight_http::Client;
use twilight_model::channel::message::{Message, MessageType};
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, MessageMarker, UserMarker};

use crate::channel::is_answer;
use crate::page;

/// The last `most` texts before a message, oldest first. Edits are applied and removals gone: Discord has what is there
/// now.
pub(crate) async fn before(
    client: &Client,
    channel: Id<ChannelMarker>,
    message: Id<MessageMarker>,
    me: Id<UserMarker>,
    most: usize,
) -> Result<RoomContext, Trouble> {
    let (mut lines, mut called) = (Vec::new(), HashMap::new());
    let mut until = message;
    for _ in 0..MOST_PAGES {
        let page = page::read(client.channel_messages(channel).before(until).limit(PAGE)).await?;
        let Some((oldest, _)) = page.ends else { break };
        until = oldest;
        let last = page.len < usize::from(PAGE);
        for said in page.messages.into_iter().rev() {
            // Of ours, what grows, asks or reports is no line of the conversation.
            let is_line = is_text(&said) && (said.author.id != me || is_answer(&said));
            if lines.len() < most && is_line {
                called.insert(said.author.id.to_string(), name(&said));
                lines.push(line(said, me));
            }
        }
        if last || lines.len() >= most {
            break;
        }
    }
    lines.reverse();
    Ok(RoomContext::new(lines).called(called))
}

fn is_text(message: &Message) -> bool {
    matches!(message.kind, MessageType::Regular | MessageType::Reply) && !message.content.trim().is_empty()
}

/// What others see the author called; nobody can tell by it who it is, so two of one name go by their ids.
fn name(message: &Message) -> String {
    let author = &message.author;
    author.global_name.clone().unwrap_or_else(|| author.name.clone())
}

fn line(message: Message, me: Id<UserMarker>) -> RoomLine {
    RoomLine {
        is_bot: message.author.id == me,
        sender: message.author.id.to_string(),
        timestamp: u64::try_from(message.timestamp.as_secs()).unwrap_or(0),
        content: message.content,
        event_id: None,
        replaces: None,
        redacted: false,
    }
}

const PAGE: u16 = 50;
/// A channel in which nothing but pictures was posted is not read for ever.
const MOST_PAGES: usize = 4;
