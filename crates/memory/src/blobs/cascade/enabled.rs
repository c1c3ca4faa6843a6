//! The life of an upload and of a download.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use self::api::{Api, State, Task};
use super::{CascadeSettings, Registered, Registrar, Registration};
use crate::blobs::{Blobs, Locator, MAX_BYTES, Pointer, Removed, fits, random_hex};
use crate::{Error, Result};

#[path = "api.rs"]
mod api;
#[path = "command.rs"]
mod command;
#[cfg(feature = "fuzzing")]
#[path = "fuzzing.rs"]
pub mod fuzzing;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;

pub(super) use self::command::command;

pub(super) fn open(settings: &CascadeSettings, registrar: Arc<dyn Registrar>) -> Result<Arc<dyn Blobs>> {
    let api = Api::open(settings)?;
    Ok(Arc::new(Cascade { api, registrar, max_fee: settings.max_fee_ulume, limit: settings.total_limit }))
}

pub(super) async fn fee_ulume(settings: &CascadeSettings, bytes: u64) -> Result<u64> {
    Api::open(settings)?.fee(bytes.div_ceil(1024)).await
}

#[derive(Debug)]
struct Cascade {
    api: Api,
    registrar: Arc<dyn Registrar>,
    max_fee: u64,
    limit: Duration,
}

/// What a [`Locator`] of Cascade says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    /// Random, and noted before anything is paid.
    file_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Action {
    action_id: String,
    signature: String,
    download_signature: String,
}

impl Note {
    fn fresh() -> Result<Self> {
        Ok(Self { file_name: format!("{}.bin", random_hex()?), action: None })
    }

    fn parse(locator: &Locator) -> Result<Self> {
        serde_json::from_str(&locator.0).ok().filter(Self::is_sound).ok_or_else(|| {
            Error::tampered(
                "the record of where the artifact is on Cascade cannot be read",
                "restore memory.db from a backup, or forget the memory",
            )
        })
    }

    fn locator(&self) -> Result<Locator> {
        serde_json::to_string(self).map(Locator).map_err(|_| {
            Error::unavailable("an artifact's place on Cascade could not be recorded", "try again")
        })
    }

    fn is_sound(&self) -> bool {
        is_word(&self.file_name) && self.action.as_ref().is_none_or(Action::is_sound)
    }
}

impl Action {
    /// What the registrar says goes into paths and bodies, so it is looked at first.
    fn checked(registered: Registered) -> Result<Self> {
        let Registered { action_id, signature, download_signature } = registered;
        let action = Self { action_id, signature, download_signature };
        if action.is_sound() {
            return Ok(action);
        }
        Err(Error::unavailable(
            "the registrar gave an action or a signature that cannot be used; it may have paid",
            "look at the owner's actions on the chain, and correct the registrar",
        ))
    }

    fn is_sound(&self) -> bool {
        let signature = |text: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-.".contains(&byte);
            !text.is_empty() && text.len() <= 4096 && text.bytes().all(known)
        };
        is_word(&self.action_id) && signature(&self.signature) && signature(&self.download_signature)
    }
}

/// Whether it can stand in a path as it is.
fn is_word(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(known) && !text.starts_with('.')
}

impl Cascade {
    async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::time::timeout(self.limit, work).await.unwrap_or_else(|_| Err(api::slow()))
    }

    /// Registers, unless the note says that it was done and the chain agrees.
    async fn registered(
        &self,
        ciphertext: &[u8],
        resume: Option<&Locator>,
        noted: &(dyn for<'l> Fn(&'l Locator) + Send + Sync),
    ) -> Result<(Note, Action, State)> {
        let mut note = match resume {
            Some(locator) if !locator.0.is_empty() => Note::parse(locator)?,
            _ => Note::fresh()?,
        };
        if let Some(action) = note.action.clone() {
            match self.in_time(self.api.settled(&action.action_id)).await? {
                // What was paid for these was given back, and nothing was kept.
                State::Ended => note = Note::fresh()?,
                state => return Ok((note, action, state)),
            }
        }
        let size_kbs = (ciphertext.len() as u64).div_ceil(1024);
        let fee = self.in_time(self.api.fee(size_kbs)).await?;
        if fee > self.max_fee {
            return Err(Error::NotAllowed {
                what: format!("Cascade charges {fee} ulume for this artifact; the limit is {}", self.max_fee),
                hint: "raise the highest fee in the configuration, or keep artifacts elsewhere".into(),
            });
        }
        let locator = note.locator()?;
        noted(&locator);
        // No limit around this: giving up on it half way may lose an action that is paid for.
        let data_hash = STANDARD.encode(blake3::hash(ciphertext).as_bytes());
        let registration =
            Registration { data_hash: &data_hash, file_name: &note.file_name, size_kbs, data: ciphertext };
        let action = Action::checked(self.registrar.register(&registration).await?)?;
        note.action = Some(action.clone());
        noted(&note.locator()?);
        Ok((note, action, State::Waiting))
    }

    async fn upload(&self, note: &Note, action: &Action, ciphertext: &[u8]) -> Result<()> {
        let task = self.api.upload(&action.action_id, &action.signature, &note.file_name, ciphertext).await?;
        match self.api.uploaded(&task).await? {
            Task::Done => Ok(()),
            Task::Failed => Err(Error::unavailable(
                "Cascade could not store the artifact",
                "try again later; the payment is reused, or refunded when the action expires",
            )),
        }
    }

    async fn download(&self, action: &Action) -> Result<Vec<u8>> {
        let task = self.api.request_download(&action.action_id, &action.download_signature).await?;
        match self.api.downloaded(&task).await? {
            Task::Done => self.api.file(&task).await,
            Task::Failed => {
                Err(Error::unavailable("Cascade could not fetch the artifact", "try again later"))
            }
        }
    }
}

#[async_trait]
impl Blobs for Cascade {
    async fn put(
        &self,
        _pointer: &Pointer,
        ciphertext: &[u8],
        resume: Option<&Locator>,
        noted: &(dyn for<'l> Fn(&'l Locator) + Send + Sync),
    ) -> Result<Locator> {
        fits(ciphertext, MAX_BYTES)?;
        let (note, action, state) = self.registered(ciphertext, resume, noted).await?;
        let locator = note.locator()?;
        if state == State::Kept {
            return Ok(locator);
        }
        let Err(error) = self.in_time(self.upload(&note, &action, ciphertext)).await else {
            return Ok(locator);
        };
        // The answer may have got lost, and the upload not: the chain knows.
        match self.in_time(self.api.state(&action.action_id)).await {
            Ok(State::Kept) => Ok(locator),
            _ => Err(error),
        }
    }

    async fn get(&self, _pointer: &Pointer, locator: &Locator) -> Result<Vec<u8>> {
        let action = if locator.0.is_empty() { None } else { Note::parse(locator)?.action };
        let Some(action) = action else {
            return Err(Error::not_found(
                "the artifact was never uploaded to Cascade",
                "store the session again, or forget the memory",
            ));
        };
        self.in_time(self.download(&action)).await
    }

    /// The chain knows, and asking it costs nothing.
    async fn has(&self, _pointer: &Pointer, locator: &Locator) -> Result<bool> {
        let action = if locator.0.is_empty() { None } else { Note::parse(locator)?.action };
        let Some(action) = action else { return Ok(false) };
        Ok(self.in_time(self.api.state(&action.action_id)).await? != State::Ended)
    }

    async fn remove(&self, _pointer: &Pointer, _locator: &Locator) -> Result<Removed> {
        Ok(Removed::Permanent)
    }

    async fn check(&self) -> Result<()> {
        self.in_time(self.api.parameters()).await
    }
}
