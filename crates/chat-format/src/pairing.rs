//! A new device gets the account key from an old one; the server only carries it.
//!
//! ```text
//! new device                              server                      old device
//! r, N ── shows r (and the origin) ─────────────────────────────────▶ reads it off the screen
//!      ── id = HKDF(r), N ───────────────▶   ── N ──────────────────▶ K = HKDF(X25519, salt = r, … N ‖ O ‖ origin ‖ account)
//!      ◀─────────────────────────────────────── O ‖ seal(K, AK ‖ u32 manifest rev ‖ H(manifest))
//! ```
//!
//! r has 128 bits and is never sent, so the server cannot put itself between. Easy to get wrong: forgetting what came
//! along. The manifest's mark is the new device's memory; without it, it could be shown an old state.

use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, seal};
use zeroize::Zeroizing;

use crate::bytes::{Digest, PublicKey, base32, from_base32, hkdf, put, random};
use crate::error::Refused;
use crate::head::Mark;
use crate::ids::{AccountId, Origin};
use crate::mailbox::BoxKey;
use crate::opening::SeenAccount;
use crate::ring::{AccountKey, SUITE, open_suite_1};

/// What the two devices share: 16 random bytes, shown as a QR code or 26 digits. Good for two minutes, once.
#[derive(Clone)]
pub struct PairingSecret(Zeroizing<[u8; 16]>);

impl PairingSecret {
    /// A new one from the system's random generator.
    pub fn random() -> Self {
        Self(random())
    }

    /// The secret with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads the 26 digits, in either case, with spaces or hyphens; else `pair-refused`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let kept = text.chars().filter(|c| !c.is_whitespace() && *c != '-').map(|c| c.to_ascii_lowercase());
        // Reserved for the longest characters: a growing buffer leaves copies behind.
        let mut digits = Zeroizing::new(String::with_capacity(4 * 27));
        digits.extend(kept.take(27));
        from_base32(&digits).map(Self::from_bytes).ok_or(Refused::PairRefused)
    }

    /// The 26 digits, to show on the new device.
    pub fn dangerously_to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(base32(&*self.0))
    }

    /// The name of this pairing on the server, in hexadecimal: `HKDF(r, "", "seal/v1/pair/id", 16)`.
    pub fn id(&self) -> String {
        hex::encode(hkdf::<16>(&*self.0, &[], &[b"seal/v1/pair/id"]).as_slice())
    }
}

debug_without_content!(PairingSecret(***));

/// What is being paired: both devices must agree on it.
#[derive(Debug, Clone, Copy)]
pub struct Pairing<'a> {
    /// The secret that was shown.
    pub secret: &'a PairingSecret,
    /// Where both devices are logged in.
    pub origin: &'a Origin,
    /// Whose account.
    pub account: &'a AccountId,
}

impl Pairing<'_> {
    /// On the old device, after its proof with purpose `pair`: what to send. A public key of the new device that makes
    /// the shared secret zero is `pair-refused`.
    pub fn send(&self, new: &PublicKey, ak: &AccountKey, manifest: &Mark) -> Result<Vec<u8>, Refused> {
        self.send_with(&BoxKey::random(), new, ak, manifest)
    }

    pub(crate) fn send_with(
        &self,
        old: &BoxKey,
        new: &PublicKey,
        ak: &AccountKey,
        manifest: &Mark,
    ) -> Result<Vec<u8>, Refused> {
        let key = self.key(old, new, new, &old.public_key())?;
        let mut data = Zeroizing::new(Vec::with_capacity(68));
        data.extend_from_slice(ak.key().dangerously_expose_bytes());
        data.extend_from_slice(&manifest.rev.to_be_bytes());
        data.extend_from_slice(manifest.envelope.as_bytes());
        let (id, object) = (self.secret.id(), format!("account:{}", ak.generation()));
        let sealed = seal(&key, SUITE, &self.context(&id, &object), 0, &data);
        Ok([&old.public_key().as_bytes()[..], sealed.as_bytes()].concat())
    }

    /// On the new device: the account key, and what to remember from now on. Whatever does not fit is `pair-refused`.
    pub fn receive(
        &self,
        new: &NewDevice,
        generation: u32,
        wire: &[u8],
    ) -> Result<(AccountKey, SeenAccount), Refused> {
        let (old, sealed) = wire.split_first_chunk::<32>().ok_or(Refused::PairRefused)?;
        let (old, sealed) = (PublicKey::from_bytes(*old), Sealed::from_bytes(sealed.to_vec()));
        let key = self.key(&new.0, &old, &new.public_key(), &old)?;
        let (id, object) = (self.secret.id(), format!("account:{generation}"));
        let opened = open_suite_1(&key, &self.context(&id, &object), &sealed);
        let Some((0, data)) = opened else { return Err(Refused::PairRefused) };
        let (ak, rest) = data.split_first_chunk::<32>().ok_or(Refused::PairRefused)?;
        let (rev, rest) = rest.split_first_chunk::<4>().ok_or(Refused::PairRefused)?;
        let envelope = <[u8; 32]>::try_from(rest).map_err(|_| Refused::PairRefused)?;
        let mark = Mark { rev: u32::from_be_bytes(*rev), envelope: Digest::from_bytes(envelope) };
        let ak = AccountKey::new(Key::from_bytes(*ak), generation);
        Ok((ak, SeenAccount { generation, manifest: Some(mark) }))
    }

    pub(crate) fn key(
        &self,
        ours: &BoxKey,
        theirs: &PublicKey,
        new: &PublicKey,
        old: &PublicKey,
    ) -> Result<Key, Refused> {
        let shared = ours.agree(theirs).ok_or(Refused::PairRefused)?;
        let mut names = Vec::new();
        put(&mut names, self.origin.as_str());
        put(&mut names, self.account.as_str());
        let info: [&[u8]; 4] = [b"seal/v1/pair/key", new.as_bytes(), old.as_bytes(), &names];
        Ok(Key::from_bytes(*hkdf(shared.as_bytes(), &*self.secret.0, &info)))
    }

    fn context<'a>(&'a self, id: &'a str, object: &'a str) -> Context<'a> {
        Context { purpose: "pair", owner: self.account.as_str(), container: id, object, field: "" }
    }
}

/// The new device's key pair, for one pairing.
#[derive(Debug, Clone)]
pub struct NewDevice(BoxKey);

impl NewDevice {
    /// A new pair.
    pub fn random() -> Self {
        Self(BoxKey::random())
    }

    /// The public half, N.
    pub fn public_key(&self) -> PublicKey {
        self.0.public_key()
    }

    /// The pair with this private half.
    #[cfg(feature = "vectors")]
    pub(crate) fn from_key(key: &Key) -> Self {
        Self(BoxKey::from_key(key))
    }
}
