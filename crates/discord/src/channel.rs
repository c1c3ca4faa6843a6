//! The bot as a [`Channel`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use confidant_channel::{
    Channel, Document, Finding, Intake, Manners, Measure, MessageId, Nonce, Outgoing, OutgoingKind, Pace,
    Private, Route, Stop, Trouble, Vault,
};
use confidant_display::debug_without_content;
use confidant_engine::Scope;
use confidant_engine::room::{Audience, RoomContext};
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use serde_json::json;
use twilight_http::Client;
use twilight_model::channel::message::{AllowedMentions, Message, MessageFlags};
use twilight_model::http::attachment::Attachment;
use twilight_model::id::Id;
use twilight_model::id::marker::{ApplicationMarker, ChannelMarker, GuildMarker, MessageMarker, UserMarker};

use crate::determine::{PLATFORM, Rules};
use crate::route::Place;
use crate::settings::{Settings, SettingsError};
use crate::{check, page, room, shards, slash, trouble};

/// One bot on Discord.
pub struct Discord {
    pub(crate) settings: Settings,
    pub(crate) client: Arc<Client>,
    pub(crate) guild: Option<Id<GuildMarker>>,
    /// Who we are, once Discord has said so.
    me: Mutex<Option<Me>>,
    /// What the bot is called, so that nobody in a room is.
    name: std::sync::OnceLock<String>,
    /// Whether Discord knows our slash commands.
    has_commands: AtomicBool,
}

/// Who a bot is.
#[derive(Clone, Copy)]
pub(crate) struct Me {
    pub(crate) user: Id<UserMarker>,
    pub(crate) application: Id<ApplicationMarker>,
}

impl Discord {
    /// A bot as its operator described it. Asks Discord nothing yet.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let (guild, api) = settings.checked()?;
        // A second time it is there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .token(settings.token.expose_secret().trim().to_owned())
            .default_allowed_mentions(AllowedMentions::default())
            // A refused token is asked again now and then: it may have been a mistake on their side.
            .remember_invalid_token(false)
            .timeout(REQUEST);
        if let Some(api) = api {
            builder = builder.proxy(api.host, api.plain);
        }
        let guild = guild.map(Id::new);
        Ok(Self {
            settings,
            client: Arc::new(builder.build()),
            guild,
            me: Mutex::default(),
            name: std::sync::OnceLock::new(),
            has_commands: AtomicBool::new(false),
        })
    }

    fn me(&self) -> Result<Me, Trouble> {
        let me = self.me.lock();
        me.ok_or_else(|| {
            Trouble::passing("the bot has not signed in", "nothing to do: Confidant keeps trying")
        })
    }

    pub(crate) fn rules(&self, intake: &Intake) -> Result<Rules, Trouble> {
        Ok(Rules {
            me: self.me()?.user,
            guild: self.guild,
            allowed: self.settings.allowed.clone(),
            listen_to_bots: self.settings.listen_to_bots,
            mention_only: self.settings.mention_only,
            isolation: self.settings.isolation,
            tenant: intake.tenant().clone(),
        })
    }

    /// Sends a message to a channel, in reply to another where there is one.
    async fn post(
        &self,
        channel: Id<ChannelMarker>,
        reply_to: Option<Id<MessageMarker>>,
        outgoing: Outgoing<'_>,
    ) -> Result<MessageId, Trouble> {
        // Discord knows a nonce for some minutes only; after that, what it was sent for tells.
        if outgoing.again
            && outgoing.first
            && let Some(message) = reply_to
            && let Some(earlier) = self.reply_of_ours(channel, message).await?
        {
            return Ok(earlier);
        }
        let mut body = json!({
            "content": outgoing.text, "nonce": outgoing.nonce.short(), "enforce_nonce": true,
            "allowed_mentions": { "parse": [] }, "flags": mark(outgoing.kind),
        });
        if let Some(message) = reply_to.filter(|_| outgoing.part == 0) {
            body["message_reference"] = json!({ "message_id": message, "fail_if_not_exists": false });
        }
        let body = zeroize::Zeroizing::new(body.to_string().into_bytes());
        let sent = self.client.create_message(channel).payload_json(&body).await;
        let sent = sent.map_err(|error| trouble::of_message(&error))?;
        let message: Message = sent.model().await.map_err(|_| trouble::unread())?;
        Ok(MessageId(message.id.to_string()))
    }

    /// The message of ours that answers this one, if there is one.
    async fn reply_of_ours(
        &self,
        channel: Id<ChannelMarker>,
        message: Id<MessageMarker>,
    ) -> Result<Option<MessageId>, Trouble> {
        let me = self.me()?.user;
        let found = page::read(self.client.channel_messages(channel).after(message).limit(100)).await?;
        let answers = |one: &&Message| {
            let to = one.reference.as_ref().and_then(|reference| reference.message_id);
            one.author.id == me && to == Some(message)
        };
        Ok(found.messages.iter().find(answers).map(|one| MessageId(one.id.to_string())))
    }
}

#[async_trait]
impl Channel for Discord {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn label(&self) -> &str {
        &self.settings.label
    }

    fn manners(&self) -> Manners {
        Manners {
            limit: LIMIT,
            measure: Measure::Utf16,
            // Five edits in five seconds are allowed in a channel; others may be growing there, too.
            pace: Pace {
                first: Duration::from_millis(1500),
                gap: Duration::from_secs(2),
                longest_gap: Duration::from_secs(10),
            },
            typing_every: Duration::from_secs(8),
            restore: Some(self.settings.load_past_conversations),
            keeping: self.settings.keeping,
            concurrency: self.settings.concurrency,
        }
    }

    async fn sign_in(&self, _vault: &Vault) -> Result<String, Trouble> {
        let user = self.client.current_user().await.map_err(|error| trouble::of_request(&error))?;
        let user = user.model().await.map_err(|_| trouble::unread())?;
        let application = check::application(&self.client).await?;
        if application.reads_messages == Some(false) {
            return Err(trouble::missing_intent());
        }
        let me = Me { user: user.id, application: application.id };
        self.name.get_or_init(|| user.name.clone());
        let known = self.me.lock().replace(me);
        if !self.has_commands.load(Ordering::Relaxed) {
            match slash::register(&self.client, me.application, self.guild).await {
                Ok(()) => self.has_commands.store(true, Ordering::Relaxed),
                // By words they work all the same; the next time that it connects it is tried again.
                Err(trouble) => {
                    tracing::warn!(label = self.settings.label, trouble = %trouble, "slash commands could not be registered");
                }
            }
        }
        if known.is_none() {
            check::report(self, &application).await;
        }
        Ok(user.id.to_string())
    }

    async fn listen(&self, intake: &Intake, stop: Stop) -> Result<(), Trouble> {
        shards::listen(self, intake, stop).await
    }

    async fn room(&self, route: &Route, _scope: &Scope) -> Result<RoomContext, Trouble> {
        match Place::of(route)? {
            // A direct room is the conversation itself, which the memory has.
            Place::Message { channel, message, direct: false } if self.settings.room_lines > 0 => {
                let most = self.settings.room_lines;
                let lines = room::before(&self.client, channel, message, self.me()?.user, most).await?;
                Ok(lines.agent(self.name.get().cloned()))
            }
            _ => Ok(RoomContext::default()),
        }
    }

    async fn audience(&self, route: &Route) -> Result<Audience, Trouble> {
        // Nobody can be added to a direct message.
        match Place::of(route)? {
            Place::Message { direct: false, .. } => Ok(Audience::Room),
            Place::Message { direct: true, .. } | Place::Interaction { .. } => Ok(Audience::Private),
        }
    }

    async fn send(&self, route: &Route, outgoing: Outgoing<'_>) -> Result<MessageId, Trouble> {
        match Place::of(route)? {
            Place::Message { channel, message, .. } => self.post(channel, Some(message), outgoing).await,
            Place::Interaction { application, token } => {
                let interactions = self.client.interaction(application);
                let send = || async {
                    let sent = if outgoing.part == 0 {
                        interactions.update_response(&token).content(Some(outgoing.text)).await
                    } else {
                        let followup = interactions.create_followup(&token).content(outgoing.text);
                        followup.flags(MessageFlags::EPHEMERAL).await
                    };
                    let sent = sent.map_err(|error| trouble::of_message(&error))?;
                    let message = sent.model().await.map_err(|_| trouble::unread())?;
                    Ok(MessageId(message.id.to_string()))
                };
                slash::once_heard(send).await
            }
        }
    }

    async fn edit(&self, route: &Route, message: &MessageId, outgoing: Outgoing<'_>) -> Result<(), Trouble> {
        let id = message.0.parse().ok().and_then(Id::new_checked).ok_or(Trouble::Gone)?;
        let edited = match Place::of(route)? {
            Place::Message { channel, .. } => {
                let none = AllowedMentions::default();
                let update = self.client.update_message(channel, id).content(Some(outgoing.text));
                update.allowed_mentions(Some(&none)).flags(mark(outgoing.kind)).await.map(drop)
            }
            Place::Interaction { application, token } => {
                let interactions = self.client.interaction(application);
                let update = interactions.update_followup(&token, id).content(Some(outgoing.text));
                update.await.map(drop)
            }
        };
        edited.map_err(|error| trouble::of_message(&error))
    }

    async fn typing(&self, route: &Route) -> Result<(), Trouble> {
        let Place::Message { channel, .. } = Place::of(route)? else { return Ok(()) };
        let typing = self.client.create_typing_trigger(channel).await;
        typing.map(drop).map_err(|error| trouble::of_message(&error))
    }

    async fn send_privately(
        &self,
        route: &Route,
        scope: &Scope,
        nonce: Nonce,
        document: Document,
    ) -> Result<Private, Trouble> {
        let Document { name, words, bytes } = document;
        let files = [Attachment::from_bytes(name, bytes.to_vec(), 0)];
        let (channel, where_to) = match Place::of(route)? {
            Place::Interaction { application, token } => {
                let interactions = self.client.interaction(application);
                let send = || async {
                    let update =
                        interactions.update_response(&token).content(Some(&words)).attachments(&files);
                    update.await.map(|_| Private::Here).map_err(|error| trouble::of_message(&error))
                };
                return slash::once_heard(send).await;
            }
            Place::Message { channel, direct: true, .. } => (channel, Private::Here),
            Place::Message { .. } => {
                let user =
                    scope.user().as_str().parse().ok().and_then(Id::new_checked).ok_or(Trouble::Gone)?;
                let opened = self.client.create_private_channel(user).await;
                let opened = opened.map_err(|error| trouble::of_message(&error))?;
                (opened.model().await.map_err(|_| trouble::unread())?.id, Private::Elsewhere)
            }
        };
        let body = json!({
            "content": words, "nonce": nonce.short(), "enforce_nonce": true, "allowed_mentions": { "parse": [] },
            "attachments": [{ "id": 0, "filename": files[0].filename }],
        });
        let body = body.to_string().into_bytes();
        let sent = self.client.create_message(channel).attachments(&files).payload_json(&body).await;
        sent.map(|_| where_to).map_err(|error| trouble::of_message(&error))
    }

    async fn check(&self, _vault: Option<&Vault>) -> Vec<Finding> {
        check::check(self).await
    }
}

debug_without_content!(Discord { label: settings.label });

/// What tells a message of ours that is no answer, or not a whole one, from an answer: Discord keeps and gives back no other
/// word of ours. That links in it are shown without a preview is nobody's loss.
fn mark(kind: OutgoingKind) -> MessageFlags {
    match kind {
        OutgoingKind::Answer => MessageFlags::empty(),
        OutgoingKind::Draft | OutgoingKind::Question | OutgoingKind::Notice => MessageFlags::SUPPRESS_EMBEDS,
    }
}

/// Whether a message of ours is an answer, and whole.
pub(crate) fn is_answer(message: &Message) -> bool {
    !message.flags.is_some_and(|flags| flags.contains(MessageFlags::SUPPRESS_EMBEDS))
}

/// The most that a message holds.
const LIMIT: usize = 2000;
/// How long a request may take.
const REQUEST: Duration = Duration::from_secs(20);
