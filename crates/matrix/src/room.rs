//! What was said around a question just now, fetched anew for each turn and never kept. Which lines these are is
//! [`Walk`]'s to say.

use std::collections::HashMap;

use confidant_channel::Trouble;
use confidant_engine::room::{RoomContext, RoomLine};
use matrix_sdk::Room;
use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::{UserId, uint};

use crate::heard::Heard;
use crate::listen::is_encrypted;
use crate::route::Place;
use crate::settings::Settings;
use crate::sign_in::Session;
use crate::trouble;
use crate::walk::{Line, Walk};

/// The last texts before a question that its asker could read, oldest first.
pub(crate) async fn before(
    session: &Session,
    settings: &Settings,
    room: &Room,
    place: &Place,
) -> Result<RoomContext, Trouble> {
    let asker = room.get_member_no_sync(&place.asker).await.map_err(|error| trouble::of(&error))?;
    let membership = asker.map_or("join".to_owned(), |asker| asker.membership().as_str().to_owned());
    let thread = place.thread.as_ref().map(|thread| thread.as_str());
    let mut walk = Walk::new(session.me.as_str(), place.asker.as_str(), place.event.as_str(), thread)
        .limits(settings.room_lines, settings.room_max_age)
        .readers(room.history_visibility_or_default().as_str(), &membership);
    let is_encrypted = is_encrypted(room).await?;
    let mut from = None;
    // Everything that is read is decrypted, so no more than is likely needed comes first.
    let first = u32::try_from(settings.room_lines.saturating_mul(2).clamp(20, 100)).unwrap_or(100);
    for page in 0..MOST_PAGES {
        let mut options = MessagesOptions::backward().from(from.as_deref());
        options.limit = if page == 0 { first.into() } else { uint!(100) };
        options.filter.types = Some(TYPES.iter().map(|&kind| kind.to_owned()).collect());
        let page = room.messages(options).await.map_err(|error| trouble::of(&error))?;
        for event in &page.chunk {
            if let Some(heard) = Heard::read(event.raw().json().get())
                && heard.is_believable(&event.kind, is_encrypted)
            {
                walk.pass(heard);
            }
        }
        from = page.end;
        if walk.is_done() || from.is_none() {
            break;
        }
    }
    let lines = walk.lines();
    let called = called(room, &lines).await;
    let lines = lines.into_iter().map(|line| RoomLine {
        is_bot: line.sender == session.me.as_str(),
        sender: line.sender,
        content: line.text,
        timestamp: u64::try_from(line.at / 1000).unwrap_or(0),
        event_id: None,
        replaces: None,
        redacted: false,
    });
    let own = room.get_member_no_sync(&session.me).await.ok().flatten();
    let own = own.and_then(|member| member.display_name().map(str::to_owned));
    let agent = own.into_iter().chain([session.me.localpart().to_owned()]);
    Ok(RoomContext::new(lines.collect()).called(called).agent(agent))
}

/// What people are called here; who has no name goes by the id.
async fn called(room: &Room, lines: &[Line]) -> HashMap<String, String> {
    let mut called = HashMap::new();
    for line in lines {
        if called.contains_key(&line.sender) {
            continue;
        }
        let Ok(sender) = UserId::parse(&line.sender) else { continue };
        if let Ok(Some(member)) = room.get_member_no_sync(&sender).await
            && let Some(name) = member.display_name()
        {
            called.insert(line.sender.clone(), name.to_owned());
        }
    }
    called
}

const TYPES: [&str; 5] =
    ["m.room.message", "m.room.encrypted", "m.room.redaction", "m.room.member", "m.room.history_visibility"];
/// A room in which nothing but pictures was posted is not read for ever.
const MOST_PAGES: usize = 10;
