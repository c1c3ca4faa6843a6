//! The account as a [`Channel`].

use std::time::Duration;

use async_trait::async_trait;
use confidant_channel::{
    Channel, Document, Finding, Intake, Manners, Measure, MessageId, Nonce, Outgoing, OutgoingKind, Pace,
    Private, Route, Stop, Trouble, Vault,
};
use confidant_display::debug_without_content;
use confidant_engine::Scope;
use confidant_engine::room::{Audience, RoomContext};
use futures_util::future::BoxFuture;
use matrix_sdk::attachment::AttachmentConfig;
use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::events::room::message::TextMessageEventContent;
use matrix_sdk::ruma::{EventId, OwnedTransactionId, RoomId, UserId, uint};
use matrix_sdk::{Room, RoomMemberships};
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::Value;

use crate::determine::{PLATFORM, Rules};
use crate::heard::{Heard, What, is_taken_back};
use crate::identity::{self, RecoveryKey};
use crate::route::Place;
use crate::settings::{Credential, Settings, SettingsError};
use crate::sign_in::{self, Session, SignedIn, Way};
use crate::{check, content, listen, room, trouble};

/// One account on Matrix.
pub struct Matrix {
    pub(crate) settings: Settings,
    /// Who we are, once we have signed in.
    session: Mutex<Option<Session>>,
}

impl Matrix {
    /// An account as its operator described it. Asks its server nothing yet.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.checked()?;
        Ok(Self { settings, session: Mutex::default() })
    }

    /// Signs in and keeps the session: with this password, or as the settings say. With `reset`, what was there before is
    /// ended first.
    pub fn log_in<'a>(
        &'a self,
        vault: &'a Vault,
        with: LogIn<'a>,
        reset: bool,
    ) -> BoxFuture<'a, Result<SignedIn, Trouble>> {
        Box::pin(async move {
            if reset {
                sign_in::forget(&self.settings, vault).await?;
            }
            let way = match with {
                LogIn::Settings => Way::Settings,
                LogIn::Password(password) => Way::Password(password),
                LogIn::SsoToken(token) => Way::SsoToken(token),
            };
            let (session, is_new) = sign_in::sign_in(&self.settings, vault, &way).await?;
            let is_verified = identity::is_ours(&session.client).await;
            let (user, device) = (session.me.to_string(), session.device.to_string());
            Ok(SignedIn { user, device, is_new, is_verified })
        })
    }

    /// The account's recovery key, made with a backup of its keys if there is none. With `reset` a new one, and what is there
    /// and cannot be opened is replaced.
    pub fn recovery_key<'a>(
        &'a self,
        vault: &'a Vault,
        password: Option<&'a SecretString>,
        reset: bool,
    ) -> BoxFuture<'a, Result<RecoveryKey, Trouble>> {
        Box::pin(async move {
            let way = password.map_or(Way::Settings, Way::Password);
            let (session, _) = sign_in::sign_in(&self.settings, vault, &way).await?;
            let known = match &self.settings.credential {
                Some(Credential::Password(password)) => Some(password),
                _ => None,
            };
            identity::recovery_key(vault, &session.client, password.or(known), reset).await
        })
    }

    fn session(&self) -> Result<Session, Trouble> {
        let session = self.session.lock();
        session.clone().ok_or_else(|| Trouble::passing("the account has not signed in", trouble::LATER))
    }

    fn set_session(&self, session: Option<Session>) {
        *self.session.lock() = session;
    }

    fn rules(&self, session: &Session, intake: &Intake) -> Rules {
        let prefix = self.settings.prefix.as_deref().map(str::trim).filter(|prefix| !prefix.is_empty());
        Rules {
            me: session.me.to_string(),
            allowed: self.settings.allowed.clone(),
            listen_to_bots: self.settings.listen_to_bots,
            prefix: prefix.map(str::to_owned),
            reply_in_thread: self.settings.reply_in_thread,
            allow_reactions: self.settings.allow_reactions,
            tenant: intake.tenant().clone(),
        }
    }

    /// The room, if the account is still in it.
    fn room_of(&self, id: &RoomId) -> Result<Room, Trouble> {
        let client = self.session()?.client;
        let Some(room) = client.get_room(id) else {
            // A device that was made just now knows of no room until it has synced.
            let is_new = client.rooms().is_empty();
            let later = || Trouble::passing("the account does not know its rooms yet", trouble::LATER);
            return Err(if is_new { later() } else { Trouble::Gone });
        };
        if room.state() == matrix_sdk::RoomState::Joined { Ok(room) } else { Err(Trouble::Gone) }
    }

    /// The message of ours that answers this one, if there is one.
    async fn reply_of_ours(&self, room: &Room, question: &EventId) -> Result<Option<MessageId>, Trouble> {
        let me = self.session()?.me;
        let mut from = None;
        let mut found = None;
        for _ in 0..MOST_PAGES {
            let mut options = MessagesOptions::backward().from(from.as_deref());
            options.limit = uint!(100);
            let page = room.messages(options).await.map_err(|error| trouble::of_message(&error))?;
            for event in &page.chunk {
                let Some(heard) = Heard::read(event.raw().json().get()) else { continue };
                if heard.id == question.as_str() {
                    return Ok(found);
                }
                if let What::Message(message) = &heard.what
                    && heard.sender == me.as_str()
                    && message.reply_to.as_deref() == Some(question.as_str())
                {
                    // Going back, the first of them is met last.
                    found = Some(MessageId(heard.id));
                }
            }
            from = page.end;
            if from.is_none() {
                break;
            }
        }
        Ok(found)
    }

    async fn post(
        &self,
        room: &Room,
        content: Value,
        name: &OwnedTransactionId,
    ) -> Result<MessageId, Trouble> {
        let sent = room.send_raw("m.room.message", content).with_transaction_id(name).await;
        let sent = sent.map_err(|error| trouble::of_message(&error))?;
        Ok(MessageId(sent.response.event_id.to_string()))
    }

    /// A room for what only someone may read: the one that they asked in if it is one, another that there is, or a new one.
    async fn room_of_two(
        &self,
        user: &UserId,
        asked_in: Option<&RoomId>,
    ) -> Result<(Room, Private), Trouble> {
        if let Some(room) = asked_in {
            let room = self.room_of(room)?;
            if self.is_of_two(&room, user).await? {
                return Ok((room, Private::Here));
            }
        }
        let client = self.session()?.client;
        for room in client.get_dm_rooms(user) {
            if self.is_of_two(&room, user).await? {
                return Ok((room, Private::Elsewhere));
            }
        }
        let made = client.create_dm(user).await.map_err(|error| trouble::of_message(&error))?;
        // Whoever looked while it was being made saw nobody in it: whom keys are shared with is asked anew.
        made.mark_members_missing();
        Ok((made, Private::Elsewhere))
    }

    /// Whether nobody but someone and us can read what is said in a room: not others in it, since one that was made for the
    /// two of us may be somebody else's by now, and not its servers.
    async fn is_of_two(&self, room: &Room, user: &UserId) -> Result<bool, Trouble> {
        let me = self.session()?.me;
        let members =
            room.members(RoomMemberships::ACTIVE).await.map_err(|error| trouble::of_message(&error))?;
        let are_we = members.iter().any(|member| member.user_id() == user)
            && members.iter().all(|member| [user, &*me].contains(&member.user_id()));
        let open = room.history_visibility_or_default().as_str() == "world_readable";
        Ok(are_we && !open && listen::is_encrypted(room).await?)
    }
}

/// How to sign in.
#[derive(Clone, Copy, Debug)]
pub enum LogIn<'a> {
    /// As the settings say.
    Settings,
    /// With this password.
    Password(&'a SecretString),
    /// With a token that a server's login page gave.
    SsoToken(&'a SecretString),
}

#[async_trait]
impl Channel for Matrix {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn label(&self) -> &str {
        &self.settings.label
    }

    fn manners(&self) -> Manners {
        Manners {
            limit: LIMIT,
            measure: Measure::Bytes,
            // Ordinary servers allow one event every five seconds, with some to spare.
            pace: Pace {
                first: Duration::from_secs(2),
                gap: Duration::from_secs(5),
                longest_gap: Duration::from_secs(20),
            },
            typing_every: Duration::from_secs(3),
            restore: None,
            keeping: confidant_channel::Keeping::Conversations,
            concurrency: self.settings.concurrency,
        }
    }

    async fn sign_in(&self, vault: &Vault) -> Result<String, Trouble> {
        if let Ok(session) = self.session() {
            match session.client.whoami().await {
                Ok(_) => return Ok(session.me.to_string()),
                Err(error) if trouble::lost_token(&error).is_none() => return Err(trouble::of_http(&error)),
                Err(_) => {
                    sign_in::close(&session.client).await;
                    self.set_session(None);
                }
            }
        }
        let (session, _) = Box::pin(sign_in::sign_in(&self.settings, vault, &Way::Settings)).await?;
        if self.settings.allowed.is_nobody() {
            tracing::warn!(
                "nobody may talk to the Matrix account: allowed_users is empty; hint: list Matrix ids, or \"*\""
            );
        }
        let me = session.me.to_string();
        self.set_session(Some(session));
        Ok(me)
    }

    async fn listen(&self, intake: &Intake, stop: Stop) -> Result<(), Trouble> {
        let session = self.session()?;
        let rules = self.rules(&session, intake);
        let ended = Box::pin(listen::listen(session, &self.settings, rules, intake, stop)).await;
        let has_password = matches!(self.settings.credential, Some(Credential::Password(_)));
        match ended {
            // The next sign-in makes a new one.
            Err(trouble) if has_password && trouble == trouble::expired() => Err(Trouble::passing(
                "the Matrix server has ended the session",
                "nothing to do: Confidant makes a new one",
            )),
            ended => ended,
        }
    }

    async fn room(&self, route: &Route, _scope: &Scope) -> Result<RoomContext, Trouble> {
        let place = Place::of(route)?;
        // A direct room is the conversation itself, which the memory has.
        if place.private || self.settings.room_lines == 0 {
            return Ok(RoomContext::default());
        }
        let room = self.room_of(&place.room)?;
        room::before(&self.session()?, &self.settings, &room, &place).await
    }

    async fn audience(&self, route: &Route) -> Result<Audience, Trouble> {
        let room = self.room_of(&Place::of(route)?.room)?;
        Ok(if listen::is_private(&room).await? { Audience::Private } else { Audience::Room })
    }

    async fn send(&self, route: &Route, outgoing: Outgoing<'_>) -> Result<MessageId, Trouble> {
        let place = Place::of(route)?;
        let room = self.room_of(&place.room)?;
        // A server knows a transaction for half an hour only; after that, what it was sent for tells.
        if outgoing.again
            && outgoing.first
            && let Some(earlier) = self.reply_of_ours(&room, &place.event).await?
        {
            return Ok(earlier);
        }
        self.post(&room, content::message(&outgoing, &place), &content::transaction(outgoing.nonce)).await
    }

    async fn edit(&self, route: &Route, message: &MessageId, outgoing: Outgoing<'_>) -> Result<(), Trouble> {
        let place = Place::of(route)?;
        let room = self.room_of(&place.room)?;
        let id = EventId::parse(&message.0).map_err(|_| Trouble::Gone)?;
        if outgoing.kind != OutgoingKind::Draft {
            // A server takes an edit of something that was removed, and nobody would see it.
            let there = room.event(&id, None).await.map_err(|error| trouble::of_message(&error))?;
            if is_taken_back(there.raw().json().get()) {
                return Err(Trouble::Gone);
            }
        }
        let name = content::edit_transaction(&outgoing);
        self.post(&room, content::edit(&outgoing, &id), &name).await.map(drop)
    }

    async fn typing(&self, route: &Route) -> Result<(), Trouble> {
        let place = Place::of(route)?;
        let room = self.room_of(&place.room)?;
        room.typing_notice(true).await.map_err(|error| trouble::of_message(&error))
    }

    async fn send_privately(
        &self,
        route: &Route,
        scope: &Scope,
        nonce: Nonce,
        document: Document,
    ) -> Result<Private, Trouble> {
        let place = Place::of(route)?;
        let user = UserId::parse(scope.user().as_str()).map_err(|_| Trouble::Gone)?;
        let asked_in = place.private.then_some(&*place.room);
        let (room, where_to) = self.room_of_two(&user, asked_in).await?;
        let Document { name, words, bytes } = document;
        let config = AttachmentConfig::new()
            .txn_id(content::transaction(nonce))
            .caption(Some(TextMessageEventContent::plain(words)));
        let sent = room.send_attachment(name, &mime::APPLICATION_JSON, bytes.to_vec(), config).await;
        sent.map(|_| where_to).map_err(|error| trouble::of_message(&error))
    }

    async fn check(&self, vault: Option<&Vault>) -> Vec<Finding> {
        check::check(&self.settings, vault).await
    }
}

debug_without_content!(Matrix { label: settings.label });

/// The most that a message holds, in bytes: an event holds 64 KiB with the same as HTML beside it, encrypted.
const LIMIT: usize = 15_000;
const MOST_PAGES: usize = 10;
