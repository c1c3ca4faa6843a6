//! Whether something that was said is for the agent, and how it is to be understood. Pure.

use confidant_channel::{Allowed, Edited, Said};
use confidant_engine::room::Audience;
use confidant_engine::{ChannelName, PlaceId, Scope, ScopeError, TenantId, ThreadId, UserId};
use twilight_model::channel::message::{Message, MessageType};
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, GuildMarker, MessageMarker, UserMarker};

use crate::route::Place;
use crate::settings::Isolation;

/// What decides it.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) me: Id<UserMarker>,
    pub(crate) guild: Option<Id<GuildMarker>>,
    pub(crate) allowed: Allowed,
    pub(crate) listen_to_bots: bool,
    pub(crate) mention_only: bool,
    pub(crate) isolation: Isolation,
    pub(crate) tenant: TenantId,
}

impl Rules {
    /// The event that a message is, if it wants an answer. `guild` is where it was said: a message that was fetched does
    /// not tell.
    pub(crate) fn said(&self, message: &Message, guild: Option<Id<GuildMarker>>) -> Option<Said> {
        if !self.is_for_us(message, guild) {
            return None;
        }
        let audience = if guild.is_some() { Audience::Room } else { Audience::Private };
        let direct = guild.is_none();
        let place = Place::Message { channel: message.channel_id, message: message.id, direct };
        let extras = !message.attachments.is_empty() || !message.sticker_items.is_empty();
        Some(Said {
            event: message.id.to_string(),
            room: room(message.channel_id, guild),
            order: Some(order(message.id)),
            scope: self.scope(message.author.id, message.channel_id).ok()?,
            audience,
            route: place.route(),
            text: self.text(message),
            note: extras.then(|| ATTACHMENTS.to_owned()),
        })
    }

    /// The event that a change of a message is, if somebody has changed it. Without a time, it is a preview of a link that was
    /// added, and nobody's words have changed.
    pub(crate) fn edited(&self, message: &Message) -> Option<Edited> {
        Some(Edited {
            event: format!("{}/edit/{}", message.id, message.edited_timestamp?.as_micros()),
            target: message.id.to_string(),
            scope: self.scope(message.author.id, message.channel_id).ok()?,
            text: self.text(message),
        })
    }

    fn is_for_us(&self, message: &Message, guild: Option<Id<GuildMarker>>) -> bool {
        let author = &message.author;
        let by_a_bot = author.bot || message.webhook_id.is_some();
        if author.id == self.me || (by_a_bot && !self.listen_to_bots) {
            return false;
        }
        if !matches!(message.kind, MessageType::Regular | MessageType::Reply) {
            return false;
        }
        if guild.is_some() && self.guild.is_some() && guild != self.guild {
            return false;
        }
        self.may_talk(author.id) && (guild.is_none() || !self.mention_only || self.is_addressed(message))
    }

    pub(crate) fn may_talk(&self, user: Id<UserMarker>) -> bool {
        self.allowed.has(&user.to_string())
    }

    /// Whether the message names us, or answers one of ours. A bot has to name us: two that answer each other's answers
    /// would never end.
    fn is_addressed(&self, message: &Message) -> bool {
        let replied = message.referenced_message.as_ref().filter(|_| !message.author.bot);
        message.mentions.iter().any(|mention| mention.id == self.me)
            || replied.is_some_and(|replied| replied.author.id == self.me)
    }

    /// Whose memory it is.
    pub(crate) fn scope(
        &self,
        user: Id<UserMarker>,
        channel: Id<ChannelMarker>,
    ) -> Result<Scope, ScopeError> {
        let (tenant, user) = (self.tenant.clone(), UserId::new(&user.to_string())?);
        let name = ChannelName::new(PLATFORM)?;
        Ok(match self.isolation {
            Isolation::Person => Scope::person(tenant, name, user),
            // A thread is a channel with an id of its own.
            Isolation::Place => {
                let place = PlaceId::new(&channel.to_string())?;
                Scope::place(tenant, name, place, ThreadId::new("main")?, user)
            }
        })
    }

    /// What was said, without our name at its ends.
    pub(crate) fn text(&self, message: &Message) -> String {
        let mut text = message.content.trim();
        let names = [format!("<@{}>", self.me), format!("<@!{}>", self.me)];
        loop {
            let before = text;
            for name in &names {
                text = text.strip_prefix(name.as_str()).unwrap_or(text);
                text = text.strip_suffix(name.as_str()).unwrap_or(text);
            }
            text = text.trim().trim_start_matches([',', ':']).trim_start();
            if text == before {
                return text.to_owned();
            }
        }
    }
}

/// A room as the inbox knows it: whether it is direct is part of its name, since nobody lists direct ones.
pub(crate) fn room(channel: Id<ChannelMarker>, guild: Option<Id<GuildMarker>>) -> String {
    match guild {
        Some(guild) => format!("guild/{guild}/{channel}"),
        None => format!("direct/{channel}"),
    }
}

/// Where a message stands in its room: by the time that its id begins with. The id itself would tell which room it is to
/// whoever finds it, and this is stored as it is.
pub(crate) fn order(message: Id<MessageMarker>) -> i64 {
    (message.get() >> 22).cast_signed()
}

/// The channel and the guild of a room.
pub(crate) fn place_of(room: &str) -> Option<(Id<ChannelMarker>, Option<Id<GuildMarker>>)> {
    let mut parts = room.split('/');
    match (parts.next()?, parts.next()?, parts.next()) {
        ("direct", channel, None) => Some((Id::new_checked(channel.parse().ok()?)?, None)),
        ("guild", guild, Some(channel)) => {
            Some((Id::new_checked(channel.parse().ok()?)?, Some(Id::new_checked(guild.parse().ok()?)?)))
        }
        _ => None,
    }
}

pub(crate) const PLATFORM: &str = "discord";
const ATTACHMENTS: &str = "_(I cannot look at attachments, so I ignored them.)_";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(change: impl FnOnce(&mut Rules)) -> Rules {
        let mut rules = Rules {
            me: Id::new(999),
            guild: None,
            allowed: Allowed::new(&["*".to_owned()]),
            listen_to_bots: false,
            mention_only: true,
            isolation: Isolation::Person,
            tenant: TenantId::new("acme").unwrap(),
        };
        change(&mut rules);
        rules
    }

    fn message(change: serde_json::Value) -> Message {
        let mut message = json!({
            "id": "500", "channel_id": "70", "content": "<@999> hello", "timestamp": "2024-01-01T00:00:00.000000+00:00",
            "edited_timestamp": null, "tts": false, "mention_everyone": false, "mention_roles": [], "attachments": [],
            "embeds": [], "pinned": false, "type": 0,
            "author": { "id": "111", "username": "alice", "discriminator": "0", "avatar": null },
            "mentions": [{ "id": "999", "username": "bot", "discriminator": "0", "avatar": null, "public_flags": 0, "bot": true }],
        });
        message.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value(message).unwrap()
    }

    const GUILD: Option<Id<GuildMarker>> = Some(Id::new(7));

    #[test]
    fn who_is_answered_where() {
        let quiet = || message(json!({ "content": "hello", "mentions": [] }));
        let by = |user: serde_json::Value| message(json!({ "author": user }));
        let bot =
            || by(json!({ "id": "5", "username": "b", "discriminator": "0", "avatar": null, "bot": true }));
        let me =
            || by(json!({ "id": "999", "username": "b", "discriminator": "0", "avatar": null, "bot": true }));
        let answers = |rules: &Rules, message: Message, guild| rules.said(&message, guild).is_some();
        let usual = rules(|_| ());
        assert!(answers(&usual, message(json!({})), GUILD));
        assert!(answers(&usual, quiet(), None), "a direct message needs no mention");
        assert!(
            !answers(&usual, quiet(), GUILD) && answers(&rules(|r| r.mention_only = false), quiet(), GUILD)
        );
        assert!(!answers(&usual, bot(), GUILD) && answers(&rules(|r| r.listen_to_bots = true), bot(), GUILD));
        assert!(!answers(&rules(|r| r.listen_to_bots = true), me(), GUILD), "never itself");
        assert!(!answers(&usual, message(json!({ "webhook_id": "9" })), GUILD));
        assert!(!answers(&usual, message(json!({ "type": 7 })), GUILD), "somebody joined");
        assert!(answers(&rules(|r| r.guild = GUILD), message(json!({})), GUILD));
        assert!(!answers(&rules(|r| r.guild = Some(Id::new(8))), message(json!({})), GUILD));
        assert!(
            answers(&rules(|r| r.guild = Some(Id::new(8))), quiet(), None),
            "direct messages are of no server"
        );
        let only = |id: &str| rules(|r| r.allowed = Allowed::new(&[id.to_owned()]));
        assert!(answers(&only("111"), quiet(), None) && !answers(&only("112"), quiet(), None));
        assert!(
            !answers(&rules(|r| r.allowed = Allowed::default()), quiet(), None),
            "nobody is allowed by default"
        );
        let mut reply = quiet();
        reply.kind = MessageType::Reply;
        reply.referenced_message = Some(Box::new(me()));
        assert!(answers(&usual, reply.clone(), GUILD), "an answer to ours");
        reply.author.bot = true;
        assert!(
            !answers(&rules(|r| r.listen_to_bots = true), reply, GUILD),
            "two bots do not answer for ever"
        );
    }

    #[test]
    fn how_it_is_understood() {
        let said =
            rules(|_| ()).said(&message(json!({ "content": "<@!999>: what is it, <@999>" })), GUILD).unwrap();
        assert_eq!((said.text.as_str(), said.audience), ("what is it,", Audience::Room));
        assert_eq!((said.room.as_str(), said.event.as_str(), said.order), ("guild/7/70", "500", Some(0)));
        assert_eq!(order(Id::new((1234 << 22) + 77)), 1234);
        assert_eq!(said.scope.session_id(), "discord_conv:111");
        assert_eq!(place_of(&said.room), Some((Id::new(70), GUILD)));
        let said = rules(|r| r.isolation = Isolation::Place).said(&message(json!({})), None).unwrap();
        assert_eq!(
            (said.audience, said.scope.session_id().as_str()),
            (Audience::Private, "discord:70:main:111")
        );
        assert_eq!(place_of(&said.room), Some((Id::new(70), None)));
        let file = json!([{ "id": "1", "filename": "a.png", "size": 1, "url": "u", "proxy_url": "p" }]);
        let said = rules(|_| ()).said(&message(json!({ "attachments": file, "content": "" })), None).unwrap();
        assert!(said.text.is_empty() && said.note.unwrap().contains("attachments"));
    }
}
