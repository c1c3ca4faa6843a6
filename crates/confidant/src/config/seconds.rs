//! Spans of time, which settings give in whole seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::{Deserialize as _, Deserializer, Error as _};

/// At least one second.
pub(super) fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(D::Error::custom("0 seconds is too short; hint: give at least 1")),
        seconds if seconds > MOST => {
            Err(D::Error::custom("this is longer than ten thousand years; hint: give fewer seconds"))
        }
        seconds => Ok(Duration::from_secs(seconds)),
    }
}

/// The same, for a key that may be left out.
pub(super) fn maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    some(deserializer).map(Some)
}

/// The same, for a table of them.
pub(super) fn by_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Duration>, D::Error> {
    #[derive(serde::Deserialize)]
    struct One(#[serde(deserialize_with = "some")] Duration);
    let all = BTreeMap::<String, One>::deserialize(deserializer)?;
    Ok(all.into_iter().map(|(name, One(span))| (name, span)).collect())
}

const MOST: u64 = 10_000 * 366 * 86_400;
