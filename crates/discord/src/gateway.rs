//! The connection that tells what happens: identify or resume, hand in, keep where we are, close in good order.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use confidant_channel::{Event, Intake, Removed, Stop, Trouble};
use futures_util::StreamExt as _;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::Instant;
use twilight_gateway::error::ReceiveMessageErrorType;
use twilight_gateway::{
    CloseFrame, ConfigBuilder, Event as Told, EventTypeFlags, Intents, Message as Frame, Session, Shard,
    ShardId,
};
use twilight_model::channel::message::Message;
use twilight_model::gateway::payload::incoming::Ready;
use twilight_model::id::Id;
use twilight_model::id::marker::{GuildMarker, MessageMarker, UserMarker};

use crate::catch_up::{self, GuildHeard, Stands, inbox};
use crate::channel::Discord;
use crate::determine::{Rules, order, place_of, room};
use crate::{slash, trouble};

/// Hands in what happens until told to stop, or until the connection is lost.
pub(crate) async fn listen(bot: &Discord, intake: &Intake, mut stop: Stop) -> Result<(), Trouble> {
    let rules = Arc::new(bot.rules(intake)?);
    let me = rules.me;
    let kept = Kept::read(intake).await.filter(|kept| kept.account == me);
    let mut shard = Shard::with_config(ShardId::ONE, config(bot, kept));
    let stands = Arc::default();
    let mut listening = Listening {
        bot,
        intake,
        rules,
        stands,
        behind: Behind::default(),
        asides: JoinSet::new(),
        passed: std::collections::HashMap::new(),
        kept_at: Instant::now(),
    };
    let mut closing = false;
    let mut code = None;
    loop {
        let frame = tokio::select! {
            biased;
            () = stop.said(), if !closing => {
                closing = true;
                shard.close(CloseFrame::RESUME);
                continue;
            }
            frame = shard.next() => frame,
            // Left to itself, the shard would connect again.
            () = tokio::time::sleep(CLOSING), if closing => return Ok(()),
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
                if closing {
                    return Ok(());
                }
                // The shard connects again by itself, unless the code forbids it; then there is nothing more to come.
                intake.trouble(&trouble::of_close(code));
            }
            // Connecting again is left to our own patience, which goes on for ever and can be seen.
            Some(Err(error)) => {
                if matches!(error.kind(), ReceiveMessageErrorType::Reconnect) {
                    return Err(Trouble::passing(
                        "Discord's gateway cannot be reached",
                        "check the network; it is tried again by itself",
                    ));
                }
                tracing::debug!("something that the gateway said could not be read");
            }
            None => {
                Kept::forget(intake).await;
                return Err(trouble::of_close(code));
            }
        }
    }
}

fn config(bot: &Discord, kept: Option<Kept>) -> twilight_gateway::Config {
    let intents =
        Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES | Intents::MESSAGE_CONTENT;
    let token = bot.settings.token.expose_secret().trim().to_owned();
    let mut builder = ConfigBuilder::new(token, intents);
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
struct Kept {
    /// Whose it is: the settings may name another bot in the same place by now.
    account: Id<UserMarker>,
    session: Session,
    url: Option<String>,
}

impl Kept {
    fn of(shard: &Shard, account: Id<UserMarker>) -> Option<Self> {
        let session = shard.session()?.clone();
        Some(Self { account, session, url: shard.resume_url().map(str::to_owned) })
    }

    async fn read(intake: &Intake) -> Option<Self> {
        let kept = intake.vault().kept(KEPT).await.ok()??;
        serde_json::from_slice(&kept).ok()
    }

    async fn forget(intake: &Intake) {
        let _ = intake.vault().forget(KEPT).await;
    }
}

/// Whether something is done each time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Now,
    Sometimes,
}

/// What is not read back yet. Until everything is, live messages do not move cursors: what was said before them might
/// be passed over.
#[derive(Clone, Debug, Default)]
struct Behind(Arc<Mutex<HashSet<String>>>);

impl Behind {
    fn add(&self, what: String) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(what);
    }

    fn done(&self, what: &str) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(what);
    }

    fn is_nothing(&self) -> bool {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_empty()
    }
}

struct Listening<'a> {
    bot: &'a Discord,
    intake: &'a Intake,
    rules: Arc<Rules>,
    stands: Arc<Stands>,
    behind: Behind,
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
                tracing::warn!("something that the gateway told could not be read and was left out");
                return Ok(When::Sometimes);
            }
        };
        match Told::from(event) {
            // From here on everything is replayed to whoever has the session, so it is kept before anything else.
            Told::Ready(ready) => {
                self.ready(&ready).await?;
                return Ok(When::Now);
            }
            Told::Resumed => self.intake.up(),
            Told::MessageCreate(message) => self.said(&message).await?,
            Told::MessageUpdate(message) => self.edited(&message).await?,
            Told::MessageDelete(gone) => self.removed(gone.id).await?,
            Told::MessageDeleteBulk(gone) => {
                for id in gone.ids {
                    self.removed(id).await?;
                }
            }
            Told::InteractionCreate(interaction) => {
                let Some(answer) = slash::take(&self.rules, self.intake, &interaction).await? else {
                    return Ok(When::Sometimes);
                };
                let client = Arc::clone(&self.bot.client);
                self.asides.spawn(async move {
                    let interactions = client.interaction(interaction.application_id);
                    // Told a second time it is refused, and the answer comes all the same.
                    let _ = interactions.create_response(interaction.id, &interaction.token, &answer).await;
                });
            }
            Told::GuildDelete(gone) if gone.unavailable != Some(true) => self.left(gone.id).await?,
            _ => {}
        }
        Ok(When::Sometimes)
    }

    /// A session of its own: nothing is replayed, so everything is read back.
    async fn ready(&mut self, ready: &Ready) -> Result<(), Trouble> {
        self.intake.up();
        self.stands = Arc::new(Stands::read(self.intake).await?);
        for guild in &ready.guilds {
            self.behind.add(guild.id.to_string());
        }
        self.behind.add(DIRECT.to_owned());
        let (client, rules) = (Arc::clone(&self.bot.client), Arc::clone(&self.rules));
        let (stands, intake, behind) = (Arc::clone(&self.stands), self.intake.clone(), self.behind.clone());
        self.asides.spawn(async move {
            patiently(|| catch_up::direct(&client, &rules, &intake, &stands)).await;
            behind.done(DIRECT);
            stands.keep_if(behind.is_nothing(), &intake).await;
        });
        if let Some(only) = self.rules.guild
            && !ready.guilds.iter().any(|guild| guild.id == only)
        {
            self.intake.trouble(&not_there());
        }
        Ok(())
    }

    fn guild(&mut self, heard: GuildHeard) {
        if self.rules.guild == Some(heard.id) {
            self.intake.up();
        }
        let (client, rules) = (Arc::clone(&self.bot.client), Arc::clone(&self.rules));
        let (stands, intake, behind) = (Arc::clone(&self.stands), self.intake.clone(), self.behind.clone());
        self.asides.spawn(async move {
            patiently(|| catch_up::guild(&client, &rules, &intake, &stands, &heard)).await;
            behind.done(&heard.id.to_string());
            stands.keep_if(behind.is_nothing(), &intake).await;
        });
    }

    async fn said(&mut self, message: &Message) -> Result<(), Trouble> {
        let guild = message.guild_id;
        let is_settled = self.behind.is_nothing();
        if let Some(mut said) = self.rules.said(message, guild) {
            if !is_settled {
                said.order = None;
            }
            self.intake.take(Event::Said(said)).await.map_err(inbox)?;
            return Ok(());
        }
        let name = room(message.channel_id, guild);
        let lately = self.passed.get(&name).is_some_and(|at| at.elapsed() < PASSED_EVERY);
        if is_settled && !lately && (self.rules.guild.is_none() || guild == self.rules.guild) {
            if self.passed.len() > MOST_ROOMS {
                self.passed.clear();
            }
            self.passed.insert(name.clone(), Instant::now());
            self.intake.passed(&name, &message.id.to_string(), order(message.id)).await.map_err(inbox)?;
        }
        Ok(())
    }

    async fn edited(&self, message: &Message) -> Result<(), Trouble> {
        let Some(edited) = self.rules.edited(message) else { return Ok(()) };
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
            "the bot was removed from a server; hint: invite it again if that was not meant"
        );
        for cursor in self.intake.cursors().await.map_err(inbox)? {
            if place_of(&cursor.room).is_some_and(|(_, of)| of == Some(guild)) {
                self.intake.left(&cursor.room).await.map_err(inbox)?;
            }
        }
        if self.rules.guild == Some(guild) {
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
        if let Err(error) = self.intake.vault().keep(KEPT, &json).await {
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
        tracing::warn!(trouble = %trouble, "rooms could not be read back; it is tried again");
        tokio::time::sleep(backoff.wait()).await;
    }
}

fn not_there() -> Trouble {
    Trouble::refused(
        "the bot is not in the server that guild_id names; direct messages are answered all the same",
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
