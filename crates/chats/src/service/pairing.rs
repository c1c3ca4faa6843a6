//! Pairing: the server carries what it cannot open, for two minutes, once.
//!
//! Only the device that made the offer can fetch the answer: it shows a claim, which is a keyed tag of the pairing's name, so
//! nothing has to be kept for it. A second offer for a name that is taken is refused and learns no claim.

use confidant_chat_format::{PublicKey, Refused};
use confidant_chat_protocol::{
    Blob, Body as _, PairFetch, PairFetched, PairOffer, PairOffered, PairSend, PairTake, PairTaken,
    PairingId, Secret,
};
use confidant_seal::Sealed;

use super::identity::Proven;
use super::login::{Begun, On};
use super::refusals::{Answer, login_refused, not_found};
use super::witness::Act;
use super::{Answered, Caller, Inner};
use crate::store::{StoreError, limits};

impl Inner {
    pub(crate) async fn offer(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        self.admit(caller)?;
        let request = PairOffer::read(body)?;
        let id = bytes_of(&request.id);
        match self.store.open_slot(id, request.public_key.as_bytes().to_vec(), self.now()).await {
            Err(StoreError::Conflict { .. }) => return Err(Refused::PairRefused.into()),
            opened => opened?,
        }
        let expires_ms = u64::try_from(limits::PAIRING.as_millis()).unwrap_or(u64::MAX);
        Answered::json(&PairOffered { claim: self.claim(id), expires_ms })
    }

    pub(crate) async fn take(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let request = PairTake::read(body)?;
        self.session(caller).await?;
        let slot = self.store.slot(bytes_of(&request.id), self.now()).await?;
        let public_key = slot.offer.try_into().map_err(|_| not_found())?;
        Answered::json(&PairTaken { public_key: PublicKey::from_bytes(public_key) })
    }

    pub(crate) async fn send(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, request, .. } = self.proven::<PairSend>(caller, body).await?;
        let answer = Sealed::from_bytes(request.sealed.as_bytes().to_vec());
        self.store.answer_slot(&known.account, bytes_of(&request.id), answer, self.now()).await?;
        Answered::done()
    }

    /// The new device gets the answer and a session. Until there is an answer, and for a claim that is not right: `not-found`.
    pub(crate) async fn fetch(&self, caller: &Caller, body: &[u8]) -> Answer<Begun> {
        self.admit(caller)?;
        let request = PairFetch::read(body)?;
        let id = bytes_of(&request.id);
        if request.claim != self.claim(id) {
            return Err(not_found());
        }
        let (account, sealed) = self.store.take_slot(id, self.now()).await?.ok_or_else(not_found)?;
        let known = self.known(&account).await.map_err(|_| login_refused())?;
        self.must_witness(&account, Act::DevicePaired).await?;
        let (session, cookie) =
            self.begin_session(&account, &known.row, &known.key, On::Known(None), None).await?;
        let sealed = Blob::new(sealed.into_bytes())?;
        let device = session.device.clone();
        let answered = Answered::json(&PairFetched { sealed, session })?.with(cookie);
        Ok(Begun { answered, account, device })
    }

    fn claim(&self, id: [u8; 16]) -> Secret {
        let (one, two) = (self.vault.tag("pair/claim/1", &id), self.vault.tag("pair/claim/2", &id));
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(one.as_bytes());
        bytes[16..].copy_from_slice(two.as_bytes());
        Secret::from_bytes(bytes)
    }
}

fn bytes_of(id: &PairingId) -> [u8; 16] {
    let digit = |at: usize| u8::from_str_radix(&id.as_str()[at..=at], 16).expect("checked when it was read");
    std::array::from_fn(|at| digit(2 * at) << 4 | digit(2 * at + 1))
}
