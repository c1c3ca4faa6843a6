//! `[checkpoint]`: how long sessions live.

use std::collections::BTreeMap;
use std::time::Duration;

use confidant_engine::Lifetimes;
use serde::Deserialize;

use super::seconds;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CheckpointSection {
    #[serde(rename = "ttl_seconds", deserialize_with = "seconds::some")]
    pub(crate) ttl: Duration,
    #[serde(rename = "person_ttl_seconds", deserialize_with = "seconds::maybe")]
    person_ttl: Option<Duration>,
    /// The lifetimes of sessions on some channels, which go before the others.
    #[serde(rename = "channel_ttl_seconds", deserialize_with = "seconds::by_name")]
    pub(crate) channel_ttl: BTreeMap<String, Duration>,
    /// How often the server looks for sessions whose lifetime is over.
    #[serde(rename = "sweep_seconds", deserialize_with = "seconds::some")]
    pub(crate) sweep: Duration,
}

impl CheckpointSection {
    pub(crate) fn lifetimes(&self) -> Lifetimes {
        Lifetimes { place: Some(self.ttl), person: self.person_ttl }
    }
}

impl Default for CheckpointSection {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(86_400),
            person_ttl: None,
            channel_ttl: BTreeMap::new(),
            sweep: Duration::from_secs(60),
        }
    }
}
