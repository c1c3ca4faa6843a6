//! `[turn]`: how long a turn may take and what becomes of one that was cut off.

use std::time::Duration;

use confidant_engine::Recovery;
use serde::Deserialize;

use super::seconds;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TurnSection {
    recovery: CutOff,
    #[serde(rename = "wait_seconds", deserialize_with = "seconds::some")]
    pub(crate) wait: Duration,
    #[serde(rename = "answer_timeout_seconds", deserialize_with = "seconds::some")]
    pub(crate) answer_timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CutOff {
    Resume,
    Report,
}

impl TurnSection {
    pub(crate) fn recovery(&self) -> Recovery {
        match self.recovery {
            CutOff::Resume => Recovery::Resume,
            CutOff::Report => Recovery::Report,
        }
    }
}

impl Default for TurnSection {
    fn default() -> Self {
        Self {
            recovery: CutOff::Resume,
            wait: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(120),
        }
    }
}
