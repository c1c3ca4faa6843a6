//! Slash commands: the same commands as by words, answered so that only the one who gave them reads it.

use std::time::Duration;

use confidant_channel::{Event, Intake, Said, Trouble};
use confidant_engine::room::Audience;
use serde_json::json;
use twilight_http::Client;
use twilight_model::application::command::{Command, CommandType};
use twilight_model::application::interaction::{Interaction, InteractionData, InteractionType};
use twilight_model::channel::message::MessageFlags;
use twilight_model::http::interaction::{
    InteractionResponse, InteractionResponseData, InteractionResponseType,
};
use twilight_model::id::Id;
use twilight_model::id::marker::{ApplicationMarker, GuildMarker};

use crate::catch_up::inbox;
use crate::determine::{Rules, room};
use crate::route::Place;
use crate::trouble;

/// Tells Discord which commands there are.
pub(crate) async fn register(
    client: &Client,
    application: Id<ApplicationMarker>,
    guild: Option<Id<GuildMarker>>,
) -> Result<(), Trouble> {
    let commands: Vec<Command> = COMMANDS.iter().map(|(name, what)| command(name, what)).collect();
    let interactions = client.interaction(application);
    let outcome = match guild {
        Some(guild) => interactions.set_guild_commands(guild, &commands).await.map(drop),
        None => interactions.set_global_commands(&commands).await.map(drop),
    };
    outcome.map_err(|error| trouble::of_request(&error))
}

fn command(name: &str, what: &str) -> Command {
    // By its JSON: the type has deprecated fields, which a literal would have to name.
    let json = json!({
        "name": name, "description": what, "type": CommandType::ChatInput, "options": [], "version": "1",
        "default_member_permissions": null,
    });
    serde_json::from_value(json).expect("a command of our own making is one")
}

/// Takes a command in; what to tell Discord within its three seconds is that an answer will come.
pub(crate) async fn take(
    rules: &Rules,
    intake: &Intake,
    interaction: &Interaction,
) -> Result<Option<InteractionResponse>, Trouble> {
    let (Some(said), Some(user)) = (said(rules, interaction), interaction.author_id()) else {
        return Ok(None);
    };
    if !rules.may_talk(user) {
        return Ok(Some(now("I may not talk to you here. The people who run me can change that.")));
    }
    intake.take(Event::Said(said)).await.map_err(inbox)?;
    Ok(Some(later()))
}

/// Answers a command. Discord may not have heard yet that it was heard, and then knows nothing to answer; it wants to hear
/// it within three seconds, so after those it is really gone.
pub(crate) async fn once_heard<T, F>(answer: impl Fn() -> F) -> Result<T, Trouble>
where
    F: Future<Output = Result<T, Trouble>>,
{
    for wait in UNTIL_HEARD {
        match answer().await {
            Err(Trouble::Gone) => tokio::time::sleep(Duration::from_millis(wait)).await,
            other => return other,
        }
    }
    answer().await
}

/// The event that a command is.
fn said(rules: &Rules, interaction: &Interaction) -> Option<Said> {
    if interaction.kind != InteractionType::ApplicationCommand {
        return None;
    }
    let Some(InteractionData::ApplicationCommand(data)) = &interaction.data else { return None };
    let (name, _) = COMMANDS.iter().find(|(name, _)| *name == data.name)?;
    let channel = interaction.channel.as_ref()?.id;
    let place =
        Place::Interaction { application: interaction.application_id, token: interaction.token.clone() };
    Some(Said {
        event: format!("interaction/{}", interaction.id),
        room: room(channel, interaction.guild_id),
        // Where the room stands is for messages to say.
        order: None,
        scope: rules.scope(interaction.author_id()?, channel).ok()?,
        audience: Audience::Private,
        route: place.route(),
        text: format!("!{name}"),
        note: None,
    })
}

fn later() -> InteractionResponse {
    let data = InteractionResponseData {
        flags: Some(MessageFlags::EPHEMERAL),
        ..InteractionResponseData::default()
    };
    InteractionResponse { kind: InteractionResponseType::DeferredChannelMessageWithSource, data: Some(data) }
}

fn now(text: &str) -> InteractionResponse {
    let data = InteractionResponseData {
        content: Some(text.to_owned()),
        flags: Some(MessageFlags::EPHEMERAL),
        ..InteractionResponseData::default()
    };
    InteractionResponse { kind: InteractionResponseType::ChannelMessageWithSource, data: Some(data) }
}

const UNTIL_HEARD: [u64; 5] = [100, 200, 400, 800, 1600];

const COMMANDS: [(&str, &str); 5] = [
    ("forget", "Erase what I remember of our conversation"),
    ("export", "Get what I remember about you"),
    ("privacy", "What I keep, and who can read it"),
    ("help", "What I can do"),
    ("cancel", "Stop what I am doing for you"),
];
