//! How the channels are: for `/readyz`, metrics and `confidant doctor`.

use std::collections::BTreeMap;
use std::sync::Arc;

use confidant_engine::clock::Millis;
use parking_lot::Mutex;
use serde::Serialize;

use crate::channel::Trouble;

/// How a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Signing in for the first time.
    Starting,
    /// Connected.
    Up,
    /// Not connected; it is tried again.
    Down,
    /// Not connected, and somebody has to change something; it is tried again, but seldom.
    Refused,
    /// Told to stop.
    Stopped,
}

/// One channel's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// `matrix`, `discord`.
    pub platform: &'static str,
    /// Which one of several.
    pub label: String,
    /// How it is.
    pub condition: Condition,
    /// Since when.
    pub since: Millis,
    /// Why it is not up, or what is wrong although it is, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// How often the connection was made again.
    pub reconnects: u64,
    /// Events that were stored.
    pub received: u64,
    /// Events that came again and were left alone.
    pub duplicates: u64,
    /// Events that were answered to the end.
    pub answered: u64,
    /// Events whose reply could not be delivered.
    pub undelivered: u64,
    /// Events that are not answered yet, as of a few seconds ago.
    pub backlog: u64,
}

/// The channels' states. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<BTreeMap<(&'static str, String), Status>>>);

impl Health {
    /// All channels.
    #[must_use]
    pub fn all(&self) -> Vec<Status> {
        self.0.lock().values().cloned().collect()
    }

    /// Notes a channel that cannot even be tried, with what to do about it.
    pub fn unusable(&self, platform: &'static str, label: &str, trouble: String, now: Millis) {
        self.begin(platform, label, now).change(|status| {
            (status.condition, status.trouble) = (Condition::Refused, Some(trouble));
        });
    }

    pub(crate) fn begin(&self, platform: &'static str, label: &str, now: Millis) -> Pulse {
        let status = Status {
            platform,
            label: label.to_owned(),
            condition: Condition::Starting,
            since: now,
            trouble: None,
            reconnects: 0,
            received: 0,
            duplicates: 0,
            answered: 0,
            undelivered: 0,
            backlog: 0,
        };
        let key = (platform, label.to_owned());
        self.0.lock().insert(key.clone(), status);
        Pulse { health: self.clone(), key }
    }
}

/// One channel's own end of it.
#[derive(Clone, Debug)]
pub(crate) struct Pulse {
    health: Health,
    key: (&'static str, String),
}

impl Pulse {
    pub(crate) fn change(&self, change: impl FnOnce(&mut Status)) {
        let mut all = self.health.0.lock();
        if let Some(status) = all.get_mut(&self.key) {
            change(status);
        }
    }

    pub(crate) fn up(&self, now: Millis) {
        self.change(|status| {
            if status.condition == Condition::Down || status.condition == Condition::Refused {
                status.reconnects += 1;
            }
            (status.condition, status.since, status.trouble) = (Condition::Up, now, None);
        });
    }

    pub(crate) fn trouble(&self, trouble: &Trouble, now: Millis) {
        let condition = match trouble {
            Trouble::Passing { .. } => Condition::Down,
            Trouble::Refused { .. } | Trouble::Gone => Condition::Refused,
        };
        self.change(|status| {
            if status.condition != condition {
                (status.condition, status.since) = (condition, now);
            }
            status.trouble = Some(trouble.to_string());
        });
    }

    pub(crate) fn stopped(&self, now: Millis) {
        self.change(|status| (status.condition, status.since) = (Condition::Stopped, now));
    }
}
