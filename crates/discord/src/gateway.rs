//! A connection that tells what happens: identify or resume, hand in, keep where we are, close in good order.

use std::sync::Arc;
use std::time::Duration;

use confidant_channel::{Event, Intake, Removed, Stop, Trouble};
use futures_util::StreamExt as _;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::Instant;
use twilight_gateway::error::ReceiveMessageErrorType;
use twilight_gateway::queue::InMemoryQueue;
use twilight_gateway::{
    CloseFrame, ConfigBuilder, Event as GatewayEvent, EventTypeFlags, Intents, Message as Frame, Session,
    Shard, ShardId,
};
use twilight_model::channel::message::Message;
use twilight_model::gateway::payload::incoming::Ready;
use twilight_model::id::Id;
use twilight_model::id::marker::{GuildMarker, MessageMarker, UserMarker};

use crate::catch_up::{self, GuildHeard, Stands, inbox};
use crate::channel::Discord;
use crate::determine::{order, place_of, room};
use crate::shards::{self, Shared};
use crate::{slash, trouble};

/// How a connection ended that may be made again.
pub(crate) enum Ended {
    /// It was told to.
    Stopped,
    /// The way to the gateway is gone for now.
    Lost(Trouble),
}

/// Hands in what happens on one connection until told to stop, or until it is lost. An error ends the bot's other connections,
/// too: Discord refuses it, or wants another number of them, or the inbox cannot be written.
pub(crate) async fn listen_on(
    bot: &Discord,
    intake: &Intake,
    shared: &Shared,
    id: ShardId,
    kept: Option<Kept>,
    mut stop: Stop,
) -> Result<Ended, Trouble> {
    let me = shared.rules.me;
    let mut shard = Shard::with_config(id, config(bot, shared.queue.clone(), kept));
    let stands = Arc::default();
    let mut listening = Listening {
        bot,
        intake,
        shared,
        id,
        stands,
        asides: JoinSet::new(),
        passed: std::collections::HashMap::new(),
        kept_at: Instant::now(),
    };
    // When to go, once told to: a gateway that says more keeps us no longer.
    let mut closing = None;
    let mut code = None;
    loop {
        let frame = tokio::select! {
            biased;
            () = stop.said(), if closing.is_none() => {
                closing = Some(Instant::now() + CLOSING);
                shard.close(CloseFrame::RESUME);
                continue;
            }
            // Left to itself, the shard would connect again.
            () = passed(closing), if closing.is_some() => return Ok(Ended::Stopped),
            frame = shard.next() => frame,
        };
        while listening.asides.try_join_next().is_some() {}
        match frame {
            Some(Ok(Frame::Text(text))) => {
                let when = listening.told(&text).await?;
                listening.keep(Kept::of(&shard, me), when).await;
            }
            Some(Ok(Frame::Close(frame))) => {
                code = frame.map(|frame| frame.code);
                listening.keep(Kept::of(&shard, me), When::Now).await;
                if closing.is_some() {
                    return Ok(Ended::Stopped);
                }
                // The shard connects again by itself, unless the code forbids it; then there is nothing more to come.
                shared.down(id, intake, &trouble::of_close(code));
            }
            // Connecting again is left to our own patience, which goes on for ever and can be seen.
            Some(Err(error)) => {
                if matches!(error.kind(), ReceiveMessageErrorType::Reconnect) {
                    return Ok(Ended::Lost(Trouble::passing(
                        "Discord's gateway cannot be reached",
                        "check the network; Confidant keeps trying",
                    )));
                }
                tracing::debug!("a message of the gateway could not be read");
            }
            None => {
                Kept::forget(intake, id.number()).await;
                return Err(trouble::of_close(code));
            }
        }
    }
}

fn config(
    bot: &Discord,
    queue: InMemoryQueue,
    kept: Option<Kept>,
) -> twilight_gateway::Config<InMemoryQueue> {
    let intents =
        Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES | Intents::MESSAGE_CONTENT;
    let token = bot.settings.token.expose_secret().trim().to_owned();
    let mut builder = ConfigBuilder::new(token, intents).queue(queue);
    if let Some(url) = &bot.settings.gateway_url {
        builder = builder.proxy_url(url.trim_end_matches('/').to_owned());
    }
    if let Some(kept) = kept {
        builder = builder.session(kept.session);
        if let Some(url) = kept.url {
            builder = builder.resume_url(url);
        }
    }
    builder.build()
}

/// Where a session can be resumed, by the next process if need be.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Whose it is: the settings may name another bot in the same place by now.
    account: Id<UserMarker>,
    session: Session,
    url: Option<String>,
    /// Of how many connections it is one.
    #[serde(default = "one")]
    shards: u32,
}

fn one() -> u32 {
    1
}

impl Kept {
    fn of<Q>(shard: &Shard<Q>, account: Id<UserMarker>) -> Option<Self> {
        let session = shard.session()?.clone();
        let url = shard.resume_url().map(str::to_owned);
        Some(Self { account, session, url, shards: shard.id().total() })
    }

    /// Where the session of this connection of this account can be resumed.
    pub(crate) async fn read(intake: &Intake, account: Id<UserMarker>, shard: ShardId) -> Option<Self> {
        let kept = Self::kept(intake, shard.number()).await?;
        (kept.account == account && kept.shards == shard.total()).then_some(kept)
    }

    /// Forgets the sessions of connections that are no more, since there are fewer now.
    pub(crate) async fn forget_beyond(intake: &Intake, shards: u32) {
        let before = Self::kept(intake, 0).await.map_or(0, |kept| kept.shards);
        for number in shards..before {
            Self::forget(intake, number).await;
        }
    }

    async fn kept(intake: &Intake, number: u32) -> Option<Self> {
        let kept = intake.vault().kept(&Self::name(number)).await.ok()??;
        serde_json::from_slice(&kept).ok()
    }

    async fn forget(intake: &Intake, number: u32) {
        let _ = intake.vault().forget(&Self::name(number)).await;
    }

    fn name(number: u32) -> String {
        if number == 0 { KEPT.to_owned() } else { format!("{KEPT}.{number}") }
    }
}

/// Whether something is done each time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Now,
    Sometimes,
}

struct Listening<'a> {
    bot: &'a Discord,
    intake: &'a Intake,
    shared: &'a Shared,
    id: ShardId,
    stands: Arc<Stands>,
    /// What must not keep the heartbeat waiting.
    asides: JoinSet<()>,
    /// When a room's cursor was last moved past something that wants no answer.
    passed: std::collections::HashMap<String, Instant>,
    kept_at: Instant,
}

impl Listening<'_> {
    /// Takes in what the gateway says; says whether where we are must be kept now.
    async fn told(&mut self, text: &str) -> Result<When, Trouble> {
        let head: Head<'_> = match serde_json::from_str(text) {
            Ok(head) => head,
            Err(_) => return Ok(When::Sometimes),
        };
        if head.t.as_deref() == Some("GUILD_CREATE") {
            if let Ok(Payload { d }) = serde_json::from_str::<Payload<GuildHeard>>(text) {
                self.guild(d);
            }
            return Ok(When::Sometimes);
        }
        let event = match twilight_gateway::parse(text.to_owned(), WANTED) {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(When::Sometimes),
            Err(_) => {
                tracing::warn!("a message of the gateway could not be read and was ignored");
                return Ok(When::Sometimes);
            }
        };
        match GatewayEvent::from(event) {
            // From here on everything is replayed to whoever has the session, so it is kept before anything else.
            GatewayEvent::Ready(ready) => {
                self.ready(&ready).await?;
                return Ok(When::Now);
            }
            GatewayEvent::Resumed => self.shared.up(self.id, self.intake),
            GatewayEvent::MessageCreate(message) => self.said(&message).await?,
            GatewayEvent::MessageUpdate(message) => self.edited(&message).await?,
            GatewayEvent::MessageDelete(gone) => self.removed(gone.id).await?,
            GatewayEvent::MessageDeleteBulk(gone) => {
                for id in gone.ids {
                    self.removed(id).await?;
                }
            }
            GatewayEvent::InteractionCreate(interaction) => {
                let Some(answer) = slash::take(&self.shared.rules, self.intake, &interaction).await? else {
                    return Ok(When::Sometimes);
                };
                let client = Arc::clone(&self.bot.client);
                self.asides.spawn(async move {
                    let interactions = client.interaction(interaction.application_id);
                    // Told a second time it is refused, and the answer comes all the same.
                    let _ = interactions.create_response(interaction.id, &interaction.token, &answer).await;
                });
            }
            GatewayEvent::GuildDelete(gone) if gone.unavailable != Some(true) => self.left(gone.id).await?,
            _ => {}
        }
        Ok(When::Sometimes)
    }

    /// A session of its own: nothing is replayed, so everything is read back.
    async fn ready(&mut self, ready: &Ready) -> Result<(), Trouble> {
        self.shared.up(self.id, self.intake);
        let behind = &self.shared.behind;
        self.stands = Arc::new(Stands::read(self.intake, behind).await?);
        for guild in &ready.guilds {
            behind.add(guild.id.to_string());
        }
        // Direct messages come on the first connection only.
        if self.id.number() == 0 {
            behind.add(DIRECT.to_owned());
        }
        behind.done(&shards::waiting(self.id));
        let (client, rules) = (Arc::clone(&self.bot.client), Arc::clone(&self.shared.rules));
        let (stands, intake, behind) = (Arc::clone(&self.stands), self.intake.clone(), behind.clone());
        let number = self.id.number();
        self.asides.spawn(async move {
            if number == 0 {
                patiently(|| catch_up::direct(&client, &rules, &intake, &stands)).await;
                behind.done(DIRECT);
            }
            stands.keep_if_all(&behind, &intake).await;
        });
        if let Some(only) = self.shared.rules.guild
            && shards::hears(self.id, only)
            && !ready.guilds.iter().any(|guild| guild.id == only)
        {
            self.intake.trouble(&not_there());
        }
        Ok(())
    }

    fn guild(&mut self, heard: GuildHeard) {
        if self.shared.rules.guild == Some(heard.id) {
            self.shared.up(self.id, self.intake);
        }
        let (client, rules) = (Arc::clone(&self.bot.client), Arc::clone(&self.shared.rules));
        let (stands, intake, behind) =
            (Arc::clone(&self.stands), self.intake.clone(), self.shared.behind.clone());
        self.asides.spawn(async move {
            patiently(|| catch_up::guild(&client, &rules, &intake, &stands, &heard)).await;
            behind.done(&heard.id.to_string());
            stands.keep_if_all(&behind, &intake).await;
        });
    }

    async fn said(&mut self, message: &Message) -> Result<(), Trouble> {
        let guild = message.guild_id;
        let is_settled = self.shared.behind.is_nothing();
        if let Some(mut said) = self.shared.rules.said(message, guild) {
            if !is_settled {
                said.order = None;
            }
            self.intake.take(Event::Said(said)).await.map_err(inbox)?;
            return Ok(());
        }
        let name = room(message.channel_id, guild);
        let lately = self.passed.get(&name).is_some_and(|at| at.elapsed() < PASSED_EVERY);
        if is_settled && !lately && (self.shared.rules.guild.is_none() || guild == self.shared.rules.guild) {
            if self.passed.len() > MOST_ROOMS {
                self.passed.clear();
            }
            self.passed.insert(name.clone(), Instant::now());
            self.intake.passed(&name, &message.id.to_string(), order(message.id)).await.map_err(inbox)?;
        }
        Ok(())
    }

    async fn edited(&self, message: &Message) -> Result<(), Trouble> {
        let Some(edited) = self.shared.rules.edited(message) else { return Ok(()) };
        self.intake.take(Event::Edited(edited)).await.map(drop).map_err(inbox)
    }

    async fn removed(&self, message: Id<MessageMarker>) -> Result<(), Trouble> {
        let removed = Removed { event: format!("{message}/gone"), target: message.to_string() };
        self.intake.take(Event::Removed(removed)).await.map(drop).map_err(inbox)
    }

    /// Somebody removed the bot from a server.
    async fn left(&self, guild: Id<GuildMarker>) -> Result<(), Trouble> {
        let label = &self.bot.settings.label;
        tracing::warn!(
            label,
            "the bot was removed from a server; hint: invite it again if that was not intended"
        );
        for cursor in self.intake.cursors().await.map_err(inbox)? {
            if place_of(&cursor.room).is_some_and(|(_, of)| of == Some(guild)) {
                self.intake.left(&cursor.room).await.map_err(inbox)?;
            }
        }
        if self.shared.rules.guild == Some(guild) {
            self.intake.trouble(&not_there());
        }
        Ok(())
    }

    /// Keeps where we are. What was told before that is stored, so an older place costs a replay and nothing else.
    async fn keep(&mut self, kept: Option<Kept>, when: When) {
        if when == When::Sometimes && self.kept_at.elapsed() < KEPT_EVERY {
            return;
        }
        let Some(kept) = kept else { return };
        self.kept_at = Instant::now();
        let Ok(json) = serde_json::to_vec(&kept) else { return };
        if let Err(error) = self.intake.vault().keep(&Kept::name(self.id.number()), &json).await {
            tracing::warn!(error = %error, "the gateway's session could not be kept");
        }
    }
}

/// Tries something that must not fail for good because of a bad moment.
async fn patiently<F>(work: impl Fn() -> F)
where
    F: Future<Output = Result<(), Trouble>>,
{
    let mut backoff = confidant_channel::Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
    while let Err(trouble) = work().await {
        tracing::warn!(trouble = %trouble, "missed messages could not be read; retrying");
        tokio::time::sleep(backoff.wait()).await;
    }
}

/// Until a moment, if there is one.
async fn passed(moment: Option<Instant>) {
    if let Some(moment) = moment {
        tokio::time::sleep_until(moment).await;
    }
}

fn not_there() -> Trouble {
    Trouble::refused(
        "the bot is not in the server that guild_id names; direct messages are still answered",
        "invite it: developer portal, OAuth2, URL Generator, scopes bot and applications.commands",
    )
}

/// What kind of thing the gateway says.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    t: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Payload<T> {
    d: T,
}

const WANTED: EventTypeFlags = EventTypeFlags::READY
    .union(EventTypeFlags::RESUMED)
    .union(EventTypeFlags::MESSAGE_CREATE)
    .union(EventTypeFlags::MESSAGE_UPDATE)
    .union(EventTypeFlags::MESSAGE_DELETE)
    .union(EventTypeFlags::MESSAGE_DELETE_BULK)
    .union(EventTypeFlags::INTERACTION_CREATE)
    .union(EventTypeFlags::GUILD_DELETE);
const CLOSING: Duration = Duration::from_secs(1);
const KEPT: &str = "gateway";
const KEPT_EVERY: Duration = Duration::from_secs(2);
const PASSED_EVERY: Duration = Duration::from_secs(20);
const MOST_ROOMS: usize = 10_000;
const DIRECT: &str = "direct";
