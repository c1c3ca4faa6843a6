//! What was said while nobody listened: after a fresh session, each room is read back to its last stored event.

use std::collections::HashMap;
use std::time::Duration;

use confidant_channel::{Event, Intake, Trouble};
use serde::Deserialize;
use twilight_http::Client;
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, GuildMarker, MessageMarker};

use crate::determine::{Rules, order, place_of, room};
use crate::page;

/// What a guild says of itself when it is first heard of: no more than is needed, so that nothing else can make it
/// unreadable.
#[derive(Deserialize)]
pub(crate) struct GuildHeard {
    pub(crate) id: Id<GuildMarker>,
    #[serde(default)]
    unavailable: Option<bool>,
    #[serde(default)]
    channels: Vec<ChannelHeard>,
    #[serde(default)]
    threads: Vec<ChannelHeard>,
}

#[derive(Deserialize)]
struct ChannelHeard {
    id: Id<ChannelMarker>,
    #[serde(default)]
    last_message_id: Option<Id<MessageMarker>>,
}

/// Where each room stood when we began to listen.
#[derive(Debug, Default)]
pub(crate) struct Stands(HashMap<String, Id<MessageMarker>>);

impl Stands {
    pub(crate) async fn read(intake: &Intake) -> Result<Self, Trouble> {
        let cursors = intake.cursors().await.map_err(inbox)?;
        let stand = |event: &str| Id::new_checked(event.parse().ok()?);
        Ok(Self(
            cursors.into_iter().filter_map(|cursor| Some((cursor.room, stand(&cursor.event)?))).collect(),
        ))
    }

    /// Rooms that no guild lists.
    fn direct(&self) -> Vec<(String, Id<MessageMarker>)> {
        let direct = self.0.iter().filter(|(room, _)| room.starts_with("direct/"));
        direct.map(|(room, stand)| (room.clone(), *stand)).collect()
    }
}

/// Reads back direct rooms; one that fails is left for the next time.
pub(crate) async fn direct(
    client: &Client,
    rules: &Rules,
    intake: &Intake,
    stands: &Stands,
) -> Result<(), Trouble> {
    for (room, stand) in stands.direct() {
        if let Some((channel, None)) = place_of(&room) {
            lenient(read_on(client, rules, intake, channel, None, stand).await)?;
        }
    }
    Ok(())
}

/// Reads back the rooms of a guild that have something new; a room that is seen for the first time begins now.
pub(crate) async fn guild(
    client: &Client,
    rules: &Rules,
    intake: &Intake,
    stands: &Stands,
    heard: &GuildHeard,
) -> Result<(), Trouble> {
    if heard.unavailable == Some(true) || rules.guild.is_some_and(|only| only != heard.id) {
        return Ok(());
    }
    for channel in heard.channels.iter().chain(&heard.threads) {
        let Some(last) = channel.last_message_id else { continue };
        let name = room(channel.id, Some(heard.id));
        match stands.0.get(&name) {
            Some(stand) if *stand >= last => {}
            Some(stand) => {
                lenient(read_on(client, rules, intake, channel.id, Some(heard.id), *stand).await)?;
            }
            None => {
                intake.passed(&name, &last.to_string(), order(last)).await.map_err(inbox)?;
            }
        }
    }
    Ok(())
}

/// A room that is closed to us is no reason not to read the others.
fn lenient(outcome: Result<(), Trouble>) -> Result<(), Trouble> {
    match outcome {
        Err(Trouble::Gone | Trouble::Refused { .. }) => {
            tracing::warn!("a room could not be read back; messages said there meanwhile are not answered");
            Ok(())
        }
        other => other,
    }
}

/// Hands in what was said in a room after `stand`, oldest first.
async fn read_on(
    client: &Client,
    rules: &Rules,
    intake: &Intake,
    channel: Id<ChannelMarker>,
    guild: Option<Id<GuildMarker>>,
    stand: Id<MessageMarker>,
) -> Result<(), Trouble> {
    // A little before it: events may have come out of order. What is known is left alone.
    let oldest = snowflake(intake.now().0 - millis(OLDEST));
    let mut after = Id::new(stand.get().saturating_sub(SLACK).max(oldest).max(1));
    loop {
        let page = page::read(client.channel_messages(channel).after(after).limit(PAGE)).await?;
        let Some((_, newest)) = page.ends else { return Ok(()) };
        for message in &page.messages {
            if let Some(said) = rules.said(message, guild) {
                intake.take(Event::Said(said)).await.map_err(inbox)?;
            }
        }
        let name = room(channel, guild);
        intake.passed(&name, &newest.to_string(), order(newest)).await.map_err(inbox)?;
        if page.len < usize::from(PAGE) {
            return Ok(());
        }
        after = newest;
    }
}

pub(crate) fn inbox(error: confidant_channel::InboxError) -> Trouble {
    let message = error.to_string();
    let (what, hint) = message.split_once("; hint: ").unwrap_or((&message, "run `confidant doctor`"));
    Trouble::passing(what, hint)
}

/// The smallest id that something said at this time can have. Discord's time begins with 2015.
fn snowflake(millis: i64) -> u64 {
    u64::try_from(millis - 1_420_070_400_000).unwrap_or(0) << 22
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

const PAGE: u16 = 100;
/// A minute, as ids count it.
const SLACK: u64 = 60_000 << 22;
/// What is older than this nobody expects an answer to any more.
const OLDEST: Duration = Duration::from_secs(86_400);
