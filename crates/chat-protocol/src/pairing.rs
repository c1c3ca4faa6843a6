//! Pairing: a new device gets the account key from an old one, through the server, which cannot open it.
//!
//! ```text
//! new device: offer (id, N) ──▶ claim
//! old device: take (id) ──▶ N       send (proof, sealed) ──▶ done
//! new device: fetch (claim) ──▶ sealed, session
//! ```
//!
//! Two minutes, once.

use confidant_chat_format::PublicKey;

use crate::limits::MAX_PAIRING;
use crate::login::SessionOpened;
use crate::shapes::objects;
use crate::values::{Blob, PairingId, Secret};

objects! {
    /// The new device offers its public key. No session is needed.
    pub struct PairOffer {
        /// The name of the pairing, made from the secret that the new device shows.
        pub id: PairingId,
        /// The new device's public key.
        pub public_key: PublicKey,
    }

    /// The offer waits.
    pub struct PairOffered {
        /// What fetches the answer: only the device that made the offer has it.
        pub claim: Secret,
        /// How long the offer waits, in milliseconds.
        pub expires_ms: u64,
    }

    /// The old device asks for the offer.
    pub struct PairTake {
        /// The name of the pairing, made from the secret that the person showed it.
        pub id: PairingId,
    }

    /// The offer.
    pub struct PairTaken {
        /// The new device's public key.
        pub public_key: PublicKey,
    }

    /// The old device's answer: the signed body of `pair/send`.
    pub struct PairSend {
        /// The name of the pairing.
        pub id: PairingId,
        /// The old device's public key, then the sealed account key.
        pub sealed: Blob<MAX_PAIRING>,
    }

    /// The new device asks for the answer. `not-found` until there is one.
    pub struct PairFetch {
        /// The name of the pairing.
        pub id: PairingId,
        /// What came with the offer.
        pub claim: Secret,
    }

    /// The answer, with a session for the new device. It is gone from the server afterwards.
    pub struct PairFetched {
        /// The old device's public key, then the sealed account key.
        pub sealed: Blob<MAX_PAIRING>,
        /// The new device's session.
        pub session: SessionOpened,
    }
}
