//! The connection that tells what happens: sync, hand in, remember where each room stands.
//!
//! The SDK notes how far it has read before this file has handed anything in. So nothing here relies on that note: at
//! every start, and wherever the server says that it left something out, rooms are read back to their last stored event.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use confidant_channel::{Edited, Event, Intake, MessageId, Removed, Stop, Trouble};
use matrix_sdk::config::SyncSettings;
use matrix_sdk::deserialized_responses::{TimelineEvent, TimelineEventKind};
use matrix_sdk::ruma::api::client::filter::FilterDefinition;
use matrix_sdk::ruma::api::client::sync::sync_events::v3::Filter;
use matrix_sdk::ruma::{EventId, RoomId, uint};
use matrix_sdk::sync::{JoinedRoomUpdate, SyncResponse};
use matrix_sdk::{Room, RoomMemberships};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::catch_up::{Gap, OLDEST};
use crate::determine::{Here, Rules, Verdict};
use crate::heard::{Heard, What};
use crate::settings::Settings;
use crate::sign_in::Session;
use crate::undecrypted::Undecrypted;
use crate::{identity, invites, trouble, verification};

/// Hands in what happens until told to stop, or until the connection is lost.
pub(crate) async fn listen(
    session: Session,
    settings: &Settings,
    rules: Rules,
    intake: &Intake,
    mut stop: Stop,
) -> Result<(), Trouble> {
    let cursors = intake.cursors().await.map_err(trouble::inbox)?;
    let stands = cursors.into_iter().map(|cursor| (cursor.room, cursor.event)).collect();
    let mut ear = Ear {
        session,
        rules,
        intake,
        stands,
        behind: HashSet::new(),
        undecrypted: Undecrypted::default(),
        invited: None,
        order: 0,
        told_of_clear: false,
    };
    // Ends with the listening.
    let mut beside = JoinSet::new();
    let mut first = true;
    while !stop.is_said() {
        let synced = tokio::select! {
            biased;
            () = stop.said() => return Ok(()),
            synced = ear.sync(first) => synced?,
        };
        // What was read is worked on to its end, also when told to stop meanwhile.
        ear.synced(synced, first).await?;
        if first {
            intake.up();
            first = false;
            // Only now: the first sync tells the server of the device.
            beside.spawn(identity::mend(settings.clone(), ear.session.client.clone(), intake.clone()));
        }
    }
    Ok(())
}

struct Ear<'a> {
    session: Session,
    rules: Rules,
    intake: &'a Intake,
    /// The last stored event of each room.
    stands: HashMap<String, String>,
    /// Rooms that could not be read back; their cursors stay, so that the next start tries again.
    behind: HashSet<String>,
    undecrypted: Undecrypted,
    /// When to answer the invitations that are left, if there are some.
    invited: Option<Instant>,
    order: i64,
    told_of_clear: bool,
}

impl Ear<'_> {
    async fn sync(&self, first: bool) -> Result<SyncResponse, Trouble> {
        let timeout = if first {
            Duration::ZERO
        } else if self.undecrypted.is_empty() {
            POLL
        } else {
            SHORT_POLL
        };
        let synced = Box::pin(self.session.client.sync_once(what_matters(timeout))).await;
        synced.map_err(|error| trouble::of(&error))
    }

    async fn synced(&mut self, synced: SyncResponse, first: bool) -> Result<(), Trouble> {
        for room in synced.rooms.left.keys() {
            self.left(room).await?;
        }
        if first {
            self.read_back(&self.session.client.joined_rooms()).await?;
        }
        for (id, update) in synced.rooms.joined {
            self.room(&id, update).await?;
        }
        let due = self.invited.is_some_and(|at| at <= Instant::now());
        if first || due || !synced.rooms.invited.is_empty() {
            let left = invites::answer(&self.session, &self.rules.allowed).await;
            self.invited = left.then(|| Instant::now() + INVITED);
        }
        let to_device = synced.to_device.iter().map(|event| event.as_raw().json().get());
        verification::decline_all(&self.session.client, &self.rules.allowed, to_device).await;
        self.try_again(!synced.to_device.is_empty()).await
    }

    /// Whether a room is one to listen in.
    fn is_meant(&self, room: &RoomId) -> bool {
        self.session.rooms.as_ref().is_none_or(|rooms| rooms.contains(room))
    }

    /// Reads rooms back from their newest events, some side by side.
    async fn read_back(&mut self, rooms: &[Room]) -> Result<(), Trouble> {
        for some in rooms.chunks(SIDE_BY_SIDE) {
            let mut meant = Vec::new();
            for room in some {
                if !self.leave_if_alone(room).await? && self.is_meant(room.room_id()) {
                    meant.push(room);
                }
            }
            let gaps: Vec<_> = meant.iter().map(|room| self.gap(room.room_id().as_str(), None)).collect();
            let reading = gaps.iter().zip(&meant).map(|(gap, room)| gap.read(room, Vec::new(), true));
            let read = futures_util::future::join_all(reading).await;
            drop(gaps);
            for (room, events) in meant.into_iter().zip(read) {
                match events {
                    Ok(events) => self.hear_all(room, events).await?,
                    Err(trouble @ Trouble::Passing { .. }) => return Err(trouble),
                    Err(_) => {
                        self.behind.insert(room.room_id().to_string());
                        tracing::warn!("a room's missed messages could not be read; they are not answered");
                    }
                }
            }
        }
        Ok(())
    }

    fn gap(&self, room: &str, from: Option<String>) -> Gap<'_> {
        let stand = self.stands.get(room).map(String::as_str);
        let recent = self.intake.now().0 - i64::try_from(OLDEST.as_millis()).unwrap_or(i64::MAX);
        // In a room that nothing is known of, only what was said since this installation exists.
        let oldest = if stand.is_some() { recent } else { recent.max(self.session.since - SKEW) };
        Gap { me: self.rules.me.as_str(), stand, from, oldest }
    }

    /// What a sync says of a room.
    async fn room(&mut self, id: &RoomId, update: JoinedRoomUpdate) -> Result<(), Trouble> {
        let Some(room) = self.session.client.get_room(id) else { return Ok(()) };
        if self.leave_if_alone(&room).await? || !self.is_meant(id) {
            return Ok(());
        }
        let timeline = update.timeline;
        let is_new = !self.stands.contains_key(id.as_str());
        let events = if timeline.limited || is_new {
            let gap = self.gap(id.as_str(), timeline.prev_batch);
            match gap.read(&room, timeline.events.clone(), timeline.limited).await {
                Ok(events) => events,
                Err(trouble @ Trouble::Passing { .. }) => return Err(trouble),
                Err(_) => timeline.events,
            }
        } else {
            timeline.events
        };
        self.hear_all(&room, events).await
    }

    async fn leave_if_alone(&mut self, room: &Room) -> Result<bool, Trouble> {
        if !invites::is_alone(room).await {
            return Ok(false);
        }
        if room.leave().await.is_ok() {
            tracing::info!("a room was left: nobody else is in it");
            self.forget(room.room_id()).await?;
        }
        Ok(true)
    }

    /// The account is not in a room any more.
    async fn left(&mut self, room: &RoomId) -> Result<(), Trouble> {
        if self.stands.contains_key(room.as_str()) {
            tracing::warn!(
                "the account was removed from a room, or left it elsewhere; hint: invite it again if that \
                 was not intended"
            );
            self.forget(room).await?;
        }
        Ok(())
    }

    async fn forget(&mut self, room: &RoomId) -> Result<(), Trouble> {
        self.stands.remove(room.as_str());
        self.undecrypted.left(room.as_str());
        self.intake.left(room.as_str()).await.map_err(trouble::inbox)
    }

    /// Hands in events of a room, oldest first, and moves its cursor past them.
    async fn hear_all(&mut self, room: &Room, events: Vec<TimelineEvent>) -> Result<(), Trouble> {
        if events.is_empty() {
            return Ok(());
        }
        let here = self.here(room).await?;
        let mut last = None;
        for event in &events {
            last = self.hear(room, &here, event).await?.or(last);
        }
        let Some(last) = last else { return Ok(()) };
        if self.undecrypted.holds(&here.room) || self.behind.contains(&here.room) {
            return Ok(());
        }
        let order = self.next_order();
        self.intake.passed(&here.room, &last, order).await.map_err(trouble::inbox)?;
        self.stands.insert(here.room, last);
        Ok(())
    }

    /// Higher than any before it, also than those of earlier processes.
    fn next_order(&mut self) -> i64 {
        self.order = (self.order + 1).max(self.intake.now().0.saturating_mul(1000));
        self.order
    }

    /// Where the next event of a room stands. While something before it is missing, it does not move the room's cursor.
    fn order_in(&mut self, here: &Here) -> Option<i64> {
        let held = self.undecrypted.holds(&here.room) || self.behind.contains(&here.room);
        (!held).then(|| self.next_order())
    }

    async fn here(&self, room: &Room) -> Result<Here, Trouble> {
        let me = room.get_member_no_sync(&self.session.me).await.map_err(|error| trouble::of(&error))?;
        Ok(Here {
            room: room.room_id().to_string(),
            direct: is_of_two(room).await? || room.direct_targets_length() > 0,
            private: is_private(room).await?,
            called: me.and_then(|me| me.display_name().map(str::to_owned)),
        })
    }

    /// Hands in one event; its id, if it has one.
    async fn hear(
        &mut self,
        room: &Room,
        here: &Here,
        event: &TimelineEvent,
    ) -> Result<Option<String>, Trouble> {
        let Some(heard) = Heard::read(event.raw().json().get()) else { return Ok(None) };
        if let TimelineEventKind::UnableToDecrypt { event, .. } = &event.kind {
            let id = room.room_id().to_owned();
            self.undecrypted.add(id, heard.id.clone(), event.clone());
            return Ok(Some(heard.id));
        }
        let is_clear = matches!(event.kind, TimelineEventKind::PlainText { .. }) && heard.is_said();
        let is_encrypted = is_clear && is_encrypted(room).await?;
        if !heard.is_believable(&event.kind, is_encrypted) {
            if is_clear && heard.sender != self.rules.me && !std::mem::replace(&mut self.told_of_clear, true)
            {
                tracing::warn!("a message in an encrypted room was not encrypted and is not answered");
            }
            return Ok(Some(heard.id));
        }
        self.take(room, here, &heard).await?;
        Ok(Some(heard.id))
    }

    async fn take(&mut self, room: &Room, here: &Here, heard: &Heard) -> Result<(), Trouble> {
        let event = match &heard.what {
            What::Message(message) if message.kind == "m.key.verification.request" => {
                let client = &self.session.client;
                verification::decline(client, &self.rules.allowed, &heard.sender, &heard.id).await;
                return Ok(());
            }
            What::Message(message) => {
                let order = self.order_in(here);
                match self.rules.judge(heard, message, here, order) {
                    Verdict::Yes(said) => Event::Said(*said),
                    Verdict::IfOurs(id, said) => match self.fetch(room, &id).await? {
                        Some(answered) if answered.sender == self.rules.me => Event::Said(*said),
                        _ => return Ok(()),
                    },
                    Verdict::No => return Ok(()),
                }
            }
            What::Edit { target, message } => {
                if heard.sender == self.rules.me || !self.rules.allowed.has(&heard.sender) {
                    return Ok(());
                }
                // Which thread it belongs to only the first version says.
                let Some(before) = self.fetch(room, target).await? else { return Ok(()) };
                let thread = match &before.what {
                    What::Message(before) => before.thread.as_deref(),
                    _ => None,
                };
                let thread = self.rules.thread(target, thread, here);
                let Ok(scope) = self.rules.scope(&here.room, thread, &heard.sender) else { return Ok(()) };
                let text = self.rules.text(message, here).0;
                Event::Edited(Edited { event: heard.id.clone(), target: target.clone(), scope, text })
            }
            What::Reaction { target, sign } => {
                if !self.rules.may_react(heard, sign) {
                    return Ok(());
                }
                let Some(question) = self.fetch(room, target).await? else { return Ok(()) };
                let order = self.order_in(here);
                match self.rules.decided(heard, sign, &question, here, order) {
                    Some(said) => Event::Pointed(said, MessageId(target.clone())),
                    None => return Ok(()),
                }
            }
            What::Redaction { target } => {
                Event::Removed(Removed { event: heard.id.clone(), target: target.clone() })
            }
            What::Member { .. } | What::Visibility { .. } | What::Other => return Ok(()),
        };
        self.intake.take(event).await.map(drop).map_err(trouble::inbox)
    }

    /// An event of a room; none if it is not there, or not for us to see.
    async fn fetch(&self, room: &Room, id: &str) -> Result<Option<Heard>, Trouble> {
        let Ok(id) = EventId::parse(id) else { return Ok(None) };
        match room.event(&id, None).await {
            Ok(event) => Ok(Heard::read(event.raw().json().get())),
            Err(error) => match trouble::of_message(&error) {
                trouble @ Trouble::Passing { .. } => Err(trouble),
                _ => Ok(None),
            },
        }
    }

    /// Tries again what could not be decrypted.
    async fn try_again(&mut self, keys_came: bool) -> Result<(), Trouble> {
        for waiting in self.undecrypted.due(keys_came) {
            let Some(room) = self.session.client.get_room(&waiting.room) else { continue };
            let event = room.decrypt_event(waiting.event.cast_ref_unchecked(), None).await;
            match event {
                Ok(event) if !matches!(event.kind, TimelineEventKind::UnableToDecrypt { .. }) => {
                    let here = self.here(&room).await?;
                    self.hear(&room, &here, &event).await?;
                }
                _ => {
                    self.undecrypted.again(waiting);
                }
            }
        }
        Ok(())
    }
}

/// Whether nobody but one person and the account reads what is said in a room.
pub(crate) async fn is_private(room: &Room) -> Result<bool, Trouble> {
    Ok(is_of_two(room).await? && room.history_visibility_or_default().as_str() != "world_readable")
}

async fn is_of_two(room: &Room) -> Result<bool, Trouble> {
    let count = match room.active_members_count() {
        // Not told yet.
        0 => {
            let members = room.members(RoomMemberships::ACTIVE).await;
            members.map_err(|error| trouble::of_message(&error))?.len() as u64
        }
        count => count,
    };
    Ok((1..=2).contains(&count))
}

/// What a sync is asked for. Every one of them: a server counts a room's members for who does not want them all, and says so
/// once.
pub(crate) fn what_matters(timeout: Duration) -> SyncSettings {
    let mut filter = FilterDefinition::with_lazy_loading();
    filter.room.timeline.limit = Some(uint!(50));
    filter.presence.not_types = vec!["*".to_owned()];
    SyncSettings::new().timeout(timeout).filter(Filter::FilterDefinition(filter))
}

/// Whether what is said in a room is encrypted.
pub(crate) async fn is_encrypted(room: &Room) -> Result<bool, Trouble> {
    let state = room.latest_encryption_state().await.map_err(|error| trouble::of_message(&error))?;
    Ok(state.is_encrypted())
}

/// How many rooms are read back at once.
const SIDE_BY_SIDE: usize = 8;
const INVITED: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_secs(30);
/// While something waits that a sync may bring.
const SHORT_POLL: Duration = Duration::from_secs(2);
/// Clocks differ a little.
const SKEW: i64 = 60_000;
