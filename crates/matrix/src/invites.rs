//! Rooms that come and go: invitations are taken from people who may talk to the agent, and a room that everybody else has
//! left is left.

use confidant_channel::Trouble;
use matrix_sdk::ruma::events::room::member::MembershipState;
use matrix_sdk::{Room, RoomMemberships};

use crate::people::People;
use crate::sign_in::Session;
use crate::trouble;

/// Answers the invitations that there are; says whether some are left for later.
pub(crate) async fn answer(session: &Session, allowed: &People) -> bool {
    let mut left = false;
    for room in session.client.invited_rooms() {
        left |= one(session, allowed, &room).await.is_err();
    }
    left
}

async fn one(session: &Session, allowed: &People, room: &Room) -> Result<(), Trouble> {
    let meant = session.rooms.as_ref().is_none_or(|rooms| rooms.contains(room.room_id()));
    // An invitation that does not say whose it is, is nobody's.
    let invited = room.invite_details().await.is_ok_and(|invite| allowed.has(invite.inviter_id.as_str()));
    if meant && invited {
        match room.join().await.map_err(|error| trouble::of(&error)) {
            Ok(()) => {
                tracing::info!("an invitation was accepted");
                return Ok(());
            }
            Err(trouble @ Trouble::Passing { .. }) => return Err(trouble),
            Err(trouble) => tracing::warn!(trouble = %trouble, "an invitation could not be accepted"),
        }
    } else {
        tracing::info!(
            "an invitation was refused: its sender is not in allowed_users, or its room not in allowed_rooms"
        );
    }
    room.leave().await.map_err(|error| trouble::of(&error))
}

/// Whether everybody else has left a room.
pub(crate) async fn is_alone(room: &Room) -> bool {
    if room.active_members_count() > 1 {
        return false;
    }
    // The count may lag behind; the list is asked for. Not of a room that this account made: those that it invites come last, and whoever
    // asks before that takes it for a room of nobody else, also when the keys of a message are shared.
    let is_own = room.creators().is_none_or(|made| made.iter().any(|user| user == room.own_user_id()));
    let members = if is_own {
        room.members_no_sync(RoomMemberships::all()).await
    } else {
        room.members(RoomMemberships::all()).await
    };
    members.is_ok_and(|members| {
        let (here, gone): (Vec<_>, Vec<_>) = members.iter().partition(|member| {
            matches!(member.membership(), MembershipState::Join | MembershipState::Invite)
        });
        here.len() <= 1 && !gone.is_empty()
    })
}
