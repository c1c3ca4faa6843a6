//! Pairing: a new device gets the account key from an old one, by a secret that is shown and never sent.
//!
//! ```text
//! new: Offer::make ─ shows 26 digits ─▶ person ─▶ old: Device::pair(digits, credential)
//! new: Offer::finish ─▶ Device, which remembers the manifest that the old one saw
//! ```
//!
//! Easy to get wrong: a second try with the same digits. They are good once and for two minutes; start anew.

use confidant_chat_format::{NewDevice, Pairing, PairingSecret, Refused};
use confidant_chat_protocol::{
    Blob, Done, PairFetch, PairFetched, PairOffer, PairOffered, PairSend, PairTake, PairTaken, PairingId,
    Secret,
};
use confidant_display::debug_without_content;
use zeroize::Zeroizing;

use crate::account::take_session;
use crate::credential::{Credential, Link, read};
use crate::device::{Device, Setup};
use crate::error::Error;
use crate::files::Cabinet;
use crate::state::State;

/// A pairing that the new device began.
pub struct Offer {
    setup: Setup,
    secret: PairingSecret,
    keys: NewDevice,
    id: PairingId,
    claim: Secret,
}

debug_without_content!(Offer(***));

impl Offer {
    /// Begins a pairing on the new device.
    pub async fn make(setup: Setup) -> Result<Self, Error> {
        Cabinet::vacant(&setup)?;
        let (secret, keys) = (PairingSecret::random(), NewDevice::random());
        let id = PairingId::parse(&secret.id()).ok_or(Refused::PairRefused)?;
        let link = Link { transport: setup.transport.clone(), session: None };
        let offer = PairOffer { id: id.clone(), public_key: keys.public_key() };
        let answer: PairOffered = link.post("/account/pair/offer", &offer).await?;
        Ok(Self { setup, secret, keys, id, claim: answer.claim })
    }

    /// The 26 digits to show, for the old device to read.
    #[must_use]
    pub fn dangerously_to_text(&self) -> Zeroizing<String> {
        self.secret.dangerously_to_text()
    }

    /// Takes what the old device sent. `None`: it has not sent anything yet; ask again. What does not open is
    /// `pair-refused`.
    pub async fn finish(&self) -> Result<Option<Device>, Error> {
        let setup = self.setup.clone();
        let link = Link { transport: setup.transport.clone(), session: None };
        let ask = PairFetch { id: self.id.clone(), claim: self.claim.clone() };
        let (json, session) = match link.raw("/account/pair/fetch", &ask).await {
            Err(error) if error.is_not_found() => return Ok(None),
            answer => answer?,
        };
        let answer: PairFetched = read(&json)?;
        let opened = &answer.session;
        let origin = setup.transport.origin().clone();
        let pairing = Pairing { secret: &self.secret, origin: &origin, account: &opened.account };
        let (ak, seen) = pairing.receive(&self.keys, opened.generation, answer.sealed.as_bytes())?;
        let cabinet = Cabinet::vacant(&setup)?;
        let mut state = State::new(opened.account.clone(), opened.device.clone(), &ak);
        state.pinned = seen.manifest;
        take_session(&mut state, opened, session)?;
        let device = Device::with(setup, cabinet, state);
        device.save()?;
        Ok(Some(device))
    }
}

impl Device {
    /// On the old device: sends the account key to the new device that shows these digits. The credential proves that it
    /// is the person who asks.
    pub async fn pair(&mut self, digits: &str, by: &Credential) -> Result<(), Error> {
        let secret = PairingSecret::parse(digits)?;
        let id = PairingId::parse(&secret.id()).ok_or(Refused::PairRefused)?;
        let by = self.link.ready(by).await?;
        let taken: PairTaken = self.link.post("/account/pair/take", &PairTake { id: id.clone() }).await?;
        let manifest = self.state.seen().manifest.ok_or(Error::Offline)?;
        let origin = self.link.transport.origin().clone();
        let pairing = Pairing { secret: &secret, origin: &origin, account: &self.state.account };
        let wire = pairing.send(&taken.public_key, &self.ak(), &manifest)?;
        let request = PairSend { id, sealed: Blob::new(wire)? };
        let _: Done = self.link.prove("/account/pair/send", &request, &by).await?;
        Ok(())
    }
}
