//! What was said while nobody listened: after a fresh session, each room is read back to its last stored event, and what
//! stands before that is looked through for what was changed meanwhile.
//!
//! What is easy to get wrong: a message that was changed before it was ever read is stored as it is by then, and must not count
//! as changed the next time, since a change costs its answer a place in the memory. So when everything was last read back is
//! kept, and only later changes are handed in.

use std::collections::HashMap;
use std::time::Duration;

use confidant_channel::{Event, Intake, Taken, Trouble};
use confidant_display::Hinted as _;
use serde::Deserialize;
use twilight_http::Client;
use twilight_model::channel::message::Message;
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, GuildMarker, MessageMarker};

use crate::determine::{Rules, order, place_of, room};
use crate::page;
use crate::shards::Behind;

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
pub(crate) struct Stands {
    rooms: HashMap<String, Id<MessageMarker>>,
    /// When we began.
    began: i64,
    /// When we did the last time that everything was read back. What was changed before is known.
    before: Option<i64>,
}

impl Stands {
    pub(crate) async fn read(intake: &Intake, behind: &Behind) -> Result<Self, Trouble> {
        let cursors = intake.cursors().await.map_err(inbox)?;
        let stand = |event: &str| Id::new_checked(event.parse().ok()?);
        let rooms = cursors.into_iter().filter_map(|cursor| Some((cursor.room, stand(&cursor.event)?)));
        let kept = intake.vault().kept(READ).await.map_err(inbox)?;
        let before = kept.and_then(|kept| std::str::from_utf8(&kept).ok()?.parse().ok());
        let began = intake.now().0;
        behind.began(began);
        Ok(Self { rooms: rooms.collect(), began, before })
    }

    /// Notes that everything is read back, if it is.
    pub(crate) async fn keep_if_all(&self, behind: &Behind, intake: &Intake) {
        if behind.is_nothing() && self.began > 0 {
            // Without it the next time some changes are not noticed, and nothing worse.
            let _ = intake.vault().keep(READ, behind.began(self.began).to_string().as_bytes()).await;
        }
    }

    /// Hands in that a message was changed since everything was last read back.
    async fn edited(&self, rules: &Rules, intake: &Intake, message: &Message) -> Result<(), Trouble> {
        let at = message.edited_timestamp.map(|at| at.as_micros() / 1000);
        if let (Some(at), Some(before)) = (at, self.before)
            && at >= before
            && let Some(edited) = rules.edited(message)
        {
            intake.take(Event::Edited(edited)).await.map_err(inbox)?;
        }
        Ok(())
    }

    /// Rooms that no guild lists.
    fn direct(&self) -> Vec<(String, Id<MessageMarker>)> {
        let direct = self.rooms.iter().filter(|(room, _)| room.starts_with("direct/"));
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
            lenient(read_on(client, rules, intake, stands, (channel, None), stand).await)?;
            changed(client, rules, intake, stands, channel, stand).await?;
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
        match stands.rooms.get(&name) {
            Some(stand) => {
                if *stand < last {
                    let place = (channel.id, Some(heard.id));
                    lenient(read_on(client, rules, intake, stands, place, *stand).await)?;
                }
                changed(client, rules, intake, stands, channel.id, *stand).await?;
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
            tracing::warn!("a room's missed messages could not be read; they are not answered");
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
    stands: &Stands,
    (channel, guild): (Id<ChannelMarker>, Option<Id<GuildMarker>>),
    stand: Id<MessageMarker>,
) -> Result<(), Trouble> {
    // A little before it: events may have come out of order. What is known is left alone.
    let oldest = snowflake(intake.now().0 - millis(OLDEST));
    let mut after = Id::new(stand.get().saturating_sub(SLACK).max(oldest).max(1));
    loop {
        let page = page::read(client.channel_messages(channel).after(after).limit(PAGE)).await?;
        let Some((_, newest)) = page.ends else { return Ok(()) };
        for message in &page.messages {
            let is_new = match rules.said(message, guild) {
                Some(said) => intake.take(Event::Said(said)).await.map_err(inbox)? == Taken::New,
                None => false,
            };
            if !is_new {
                stands.edited(rules, intake, message).await?;
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

/// Looks through what was said in a room up to `stand` for what was changed meanwhile: a page of it, as people change what they
/// said lately. A room that is closed to us is passed by.
async fn changed(
    client: &Client,
    rules: &Rules,
    intake: &Intake,
    stands: &Stands,
    channel: Id<ChannelMarker>,
    stand: Id<MessageMarker>,
) -> Result<(), Trouble> {
    if stands.before.is_none() {
        return Ok(());
    }
    let until = Id::new(stand.get().saturating_add(1));
    let page = match page::read(client.channel_messages(channel).before(until).limit(PAGE)).await {
        Err(Trouble::Gone | Trouble::Refused { .. }) => return Ok(()),
        page => page?,
    };
    for message in &page.messages {
        stands.edited(rules, intake, message).await?;
    }
    Ok(())
}

pub(crate) fn inbox(error: confidant_channel::InboxError) -> Trouble {
    let (what, hint) = error.what_and_hint("run `confidant doctor`");
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
const READ: &str = "read-back";
/// A minute, as ids count it.
const SLACK: u64 = 60_000 << 22;
/// What is older than this nobody expects an answer to any more.
const OLDEST: Duration = Duration::from_secs(86_400);
