//! News that another gateway should have told, and that have not come.
//!
//! ```text
//! a gap ─▶ the store says what changed ─┬─ the account, devices ─▶ told from here: such news only say that something changed
//!                                       └─ a chat, a draft, data ─▶ awaited ─▶ after a while, the sockets close and sync
//! ```
//!
//! A gateway that is killed between writing and telling leaves a gap, and so does one that tells two changes as one. Most gaps
//! are neither: what is missing is on its way.
//!
//! Easy to get wrong: a handle that keeps the service alive. Whoever waits here has none while it waits.

use std::sync::{Arc, Weak};
use std::time::Duration;

use confidant_chat_format::AccountId;
use confidant_chat_protocol::{DevicesChanged, ServerEvent, ServerFrame};
use tokio::time::{Instant, sleep};

use super::Inner;
use super::hub::{GapFiller, Room};
use super::refusals::Answer;
use crate::store::{Changed, StoreError};

impl GapFiller for Inner {
    fn fill_gaps(self: Arc<Self>, account: AccountId, room: Arc<Room>) {
        tokio::spawn(fill_gaps(Arc::downgrade(&self), account, room));
    }
}

async fn fill_gaps(service: Weak<Inner>, account: AccountId, room: Arc<Room>) {
    let mut waits: Option<(u64, Instant)> = None;
    while let Some((from, to)) = room.missing() {
        let since = match waits {
            Some((first, since)) if first == from => since,
            _ => Instant::now(),
        };
        waits = Some((from, since));
        let Some(inner) = service.upgrade() else { return };
        let found = inner.find_missing(&account, &room, from, to).await;
        drop(inner);
        match found {
            Ok(Found::Some) => {}
            Ok(Found::Nothing) | Err(_) if since.elapsed() < PATIENCE => sleep(AGAIN).await,
            Ok(Found::Nothing | Found::TooOld) | Err(_) => {
                tracing::debug!("chats: news were lost; the sockets of an account are closed and sync");
                return room.dismiss();
            }
        }
    }
}

/// What the store says of a gap.
enum Found {
    /// It is smaller now.
    Some,
    /// It has to be waited for.
    Nothing,
    /// Nobody can say any more.
    TooOld,
}

impl Inner {
    /// Tells what can be told from here.
    async fn find_missing(&self, account: &AccountId, room: &Room, from: u64, to: u64) -> Answer<Found> {
        let found = self.store.changes(account, from.saturating_sub(1), MANY).await?;
        if found.is_behind {
            return Ok(Found::TooOld);
        }
        let mut told = Found::Nothing;
        for change in found.changes.into_iter().take_while(|change| change.seq <= to) {
            let event = match change.what {
                Changed::Account | Changed::List => self.account_updated(account).await?.1,
                Changed::Devices => ServerEvent::DevicesChanged(DevicesChanged {}),
                _ => break,
            };
            let frame = ServerFrame { re: None, seq: Some(change.seq), event };
            room.tell_in_order(change.seq, Arc::new(frame), None);
            told = Found::Some;
        }
        Ok(told)
    }

    /// Holds what the sockets of this process have heard against the store.
    pub(crate) async fn check_news(&self) -> Answer<()> {
        if self.hooks.news.is_none() {
            return Ok(());
        }
        let mut accounts: Vec<AccountId> =
            self.hub.sessions().into_iter().map(|(account, _)| account).collect();
        accounts.dedup();
        for account in accounts {
            match self.store.account(&account).await {
                Ok(row) => self.hub.expect(&account, row.seq),
                Err(StoreError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// How long what is missing is awaited, and how often it is looked for. Long: on a busy machine, what closes sockets makes it busier.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(50);
/// Changes that are looked at at once.
const MANY: usize = 100;
