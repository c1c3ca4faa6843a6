//! The sealed record, `seal/v1`: one form for everything stored.
//!
//! Owns bytes in, bytes out; `docs/FORMAT.md` is the specification and `vectors/seal-v1.json` its proof. Leaves
//! to callers which key and which [`Context`]. Easy to get wrong: the context is not in the record. A record
//! read from another place than it was written for does not open, and that is the point.
//!
//! Construction: HKDF-SHA-256 of the key and a random 24-byte salt gives an encryption key and a commitment;
//! the AEAD (RFC 5116) runs once under that key with a zero nonce. Two seals share a nonce only if they share
//! a 192-bit salt under one key. The commitment makes a record open under one key only, which neither
//! AES-GCM nor ChaCha20-Poly1305 promises.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_display::debug_without_content;
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::key::{Key, Kid, expand, random_bytes};

/// Seals `data` for one place and one revision.
///
/// # Panics
/// When a context string has more than 65 535 bytes or the data 4 GiB, which callers bound long before, or when
/// the system has no random bytes.
pub fn seal(key: &Key, suite: Suite, context: &Context<'_>, rev: u32, data: &[u8]) -> Sealed {
    seal_with_salt(key, suite, context, rev, data, &random_bytes())
}

/// Opens a record with the key and the context it was sealed with; the suite is in the record. Fails in one way.
///
/// Nothing here panics, whatever the bytes and however long the context.
pub fn open(key: &Key, context: &Context<'_>, sealed: &Sealed) -> Result<Opened, OpenFailed> {
    open_with_reason(key, context, sealed).map_err(|_| OpenFailed(()))
}

/// Which AEAD a record uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Suite {
    /// Suite 1, AES-256-GCM: web client, memory artifacts.
    Aes256Gcm,
    /// Suite 2, ChaCha20-Poly1305: sessions and wrapped keys.
    ChaCha20Poly1305,
}

impl Suite {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Aes256Gcm),
            2 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Aes256Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
        }
    }

    fn info(self) -> &'static [u8] {
        match self {
            Self::Aes256Gcm => b"seal/v1/aead/1",
            Self::ChaCha20Poly1305 => b"seal/v1/aead/2",
        }
    }

    fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::Aes256Gcm => &AES_256_GCM,
            Self::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }
}

/// Where a record belongs. Authenticated, never stored; `docs/FORMAT.md` lists every context in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Context<'a> {
    /// What kind of record: `session`, `key`, `message`, …
    pub purpose: &'a str,
    /// Whose it is.
    pub owner: &'a str,
    /// What holds it.
    pub container: &'a str,
    /// Which one it is.
    pub object: &'a str,
    /// Which part of it.
    pub field: &'a str,
}

impl Context<'_> {
    /// The injective byte form: five times a `u16` length and the UTF-8 text. `None` when a string is longer
    /// than 65 535 bytes.
    pub fn encode(&self) -> Option<Vec<u8>> {
        self.encode_after(&[])
    }

    fn encode_after(&self, prefix: &[u8]) -> Option<Vec<u8>> {
        let parts = [self.purpose, self.owner, self.container, self.object, self.field];
        let len = parts.iter().map(|part| 2 + part.len()).sum::<usize>();
        let mut out = Vec::with_capacity(prefix.len() + len);
        out.extend_from_slice(prefix);
        for part in parts {
            out.extend_from_slice(&u16::try_from(part.len()).ok()?.to_be_bytes());
            out.extend_from_slice(part.as_bytes());
        }
        Some(out)
    }
}

// Owner and object are personal data: only the purpose is printed.
debug_without_content!(Context<'_> { purpose });

/// Bytes that claim to be a sealed record. Nothing is known about them until they are opened.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// Takes bytes as they come; opening decides.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Reads unpadded base64url, the text form in JSON and Redis.
    pub fn from_base64url(text: &str) -> Result<Self, OpenFailed> {
        URL_SAFE_NO_PAD.decode(text).map(Self).map_err(|_| OpenFailed(()))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The text form, unpadded base64url.
    pub fn to_base64url(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.0)
    }

    /// Which key the record claims, if it has the shape of one. Not authenticated before it opened.
    pub fn kid(&self) -> Option<Kid> {
        self.parts().ok().map(|parts| parts.kid)
    }

    /// Which revision the record claims. Not authenticated before it opened.
    pub fn rev(&self) -> Option<u32> {
        self.parts().ok().map(|parts| parts.rev)
    }

    /// Which suite the record claims. A reader that takes one suite only asks before it opens.
    pub fn suite(&self) -> Option<Suite> {
        self.parts().ok().map(|parts| parts.suite)
    }

    /// The last 16 bytes, which name this record in the next one's context.
    pub fn tag(&self) -> Option<[u8; 16]> {
        self.parts().ok()?;
        self.0.last_chunk().copied()
    }

    /// Checks length, version and suite, in this order, and takes the header apart.
    fn parts(&self) -> Result<Parts<'_>, Reason> {
        if self.0.len() < MIN_LEN {
            return Err(Reason::Format);
        }
        let (head, rest) = self.0.split_first_chunk::<HEAD>().ok_or(Reason::Format)?;
        let (salt, rest) = rest.split_first_chunk::<SALT>().ok_or(Reason::Format)?;
        let (commit, body) = rest.split_first_chunk::<COMMIT>().ok_or(Reason::Format)?;
        let [version, suite, k0, k1, k2, k3, k4, k5, k6, k7, r0, r1, r2, r3] = *head;
        if version != VERSION {
            return Err(Reason::Version);
        }
        Ok(Parts {
            head,
            suite: Suite::from_byte(suite).ok_or(Reason::Version)?,
            kid: Kid::from_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
            rev: u32::from_be_bytes([r0, r1, r2, r3]),
            salt,
            commit,
            body,
        })
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

/// What was sealed, now authenticated.
pub struct Opened {
    /// Revision of the object; who has seen a greater one refuses this.
    pub rev: u32,
    /// The plaintext, wiped on drop.
    pub data: Zeroizing<Vec<u8>>,
}

debug_without_content!(Opened { rev });

/// The record did not open. One error for every cause, so that nobody learns which check failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sealed record did not open: wrong key, wrong place or tampered")]
pub struct OpenFailed(pub(crate) ());

/// Why a record did not open; for the vectors and the fuzzer, never for a caller.
#[doc(hidden)]
#[cfg_attr(not(feature = "vectors"), expect(unreachable_pub, reason = "only `vectors` shows it"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Too short to be a record, or the context is too long to exist.
    Format,
    /// A version or suite from elsewhere.
    Version,
    /// Sealed under another key.
    Key,
    /// Commitment or tag do not match: changed, or from another place.
    Tamper,
    /// Authentic, but the padding is not what we write.
    Padding,
}

struct Parts<'a> {
    head: &'a [u8; HEAD],
    suite: Suite,
    kid: Kid,
    rev: u32,
    salt: &'a [u8; SALT],
    commit: &'a [u8; COMMIT],
    /// Ciphertext and AEAD tag.
    body: &'a [u8],
}

pub(crate) fn open_with_reason(key: &Key, context: &Context<'_>, sealed: &Sealed) -> Result<Opened, Reason> {
    let parts = sealed.parts()?;
    if parts.kid != key.kid() {
        return Err(Reason::Key);
    }
    let (aead, commit) = once_key(key, parts.suite, parts.salt);
    if !bool::from(commit.ct_eq(parts.commit)) {
        return Err(Reason::Tamper);
    }
    let aad = context.encode_after(parts.head).ok_or(Reason::Format)?;
    let mut data = Zeroizing::new(parts.body.to_vec());
    let plain = aead.open_in_place(nonce(), Aad::from(aad), &mut data).map_err(|_| Reason::Tamper)?;
    let len = unpadded_len(plain).ok_or(Reason::Padding)?;
    data.copy_within(LENGTH..LENGTH + len, 0);
    data.truncate(len);
    Ok(Opened { rev: parts.rev, data })
}

pub(crate) fn seal_with_salt(
    key: &Key,
    suite: Suite,
    context: &Context<'_>,
    rev: u32,
    data: &[u8],
    salt: &[u8; SALT],
) -> Sealed {
    let len = u32::try_from(data.len()).expect("a sealed record holds less than 4 GiB");
    let write = |plain: &mut [u8]| {
        plain[..LENGTH].copy_from_slice(&len.to_be_bytes());
        plain[LENGTH..LENGTH + data.len()].copy_from_slice(data);
    };
    seal_plain_with_salt(key, suite, context, rev, padded_len(data.len()), write, salt)
}

/// Seals `plain_len` bytes, zero until `write` fills them in: plaintext exists only in the buffer that is then
/// encrypted in place.
pub(crate) fn seal_plain_with_salt(
    key: &Key,
    suite: Suite,
    context: &Context<'_>,
    rev: u32,
    plain_len: usize,
    write: impl FnOnce(&mut [u8]),
    salt: &[u8; SALT],
) -> Sealed {
    let (aead, commit) = once_key(key, suite, salt);
    // Exact capacity: a growing buffer would leave plaintext behind.
    let mut out = Vec::with_capacity(BODY + plain_len + AEAD_TAG);
    out.extend_from_slice(&[VERSION, suite.byte()]);
    out.extend_from_slice(key.kid().as_bytes());
    out.extend_from_slice(&rev.to_be_bytes());
    let aad = context.encode_after(&out).expect("a context string has at most 65 535 bytes");
    out.extend_from_slice(salt);
    out.extend_from_slice(&*commit);
    out.resize(BODY + plain_len, 0);
    write(&mut out[BODY..]);
    let tag = aead
        .seal_in_place_separate_tag(nonce(), Aad::from(aad), &mut out[BODY..])
        .expect("both AEADs take more than the 4 GiB that fit");
    out.extend_from_slice(tag.as_ref());
    Sealed(out)
}

/// The key that is used once, and the commitment to where it came from.
fn once_key(key: &Key, suite: Suite, salt: &[u8; SALT]) -> (LessSafeKey, Zeroizing<[u8; COMMIT]>) {
    let mut okm = Zeroizing::new([0; 64]);
    expand(key.dangerously_expose_bytes(), salt, &[suite.info()], &mut *okm);
    let (ek, rest) = okm.split_at(32);
    let mut commit = Zeroizing::new([0; COMMIT]);
    commit.copy_from_slice(rest);
    let ek = UnboundKey::new(suite.algorithm(), ek).expect("both AEADs take 32-byte keys");
    (LessSafeKey::new(ek), commit)
}

/// Zero, because [`once_key`] gives every record its own key.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Padmé (Nikitin et al., PETS 2019) of length field and data: at most 12 % more, and the length that shows
/// keeps few of its low bits. At least 64, so that short words look alike.
pub(crate) fn padded_len(data: usize) -> usize {
    let len = LENGTH + data;
    if len <= MIN_PLAIN {
        return MIN_PLAIN;
    }
    let exponent = len.ilog2();
    let mask = (1 << (exponent - (exponent.ilog2() + 1))) - 1;
    (len + mask) & !mask
}

/// How long what is sealed will be, for this much data: for callers with a limit on it.
#[must_use]
pub fn sealed_len(data: usize) -> usize {
    BODY + padded_len(data) + AEAD_TAG
}

/// How long the data in `plain` is, if it is padded as we pad.
fn unpadded_len(plain: &[u8]) -> Option<usize> {
    let (len, rest) = plain.split_first_chunk::<LENGTH>()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    let padding = rest.get(len..)?;
    (plain.len() == padded_len(len) && padding.iter().all(|&byte| byte == 0)).then_some(len)
}

const VERSION: u8 = 1;
/// Version, suite, kid and revision: the part of the header that is associated data.
const HEAD: usize = 14;
pub(crate) const SALT: usize = 24;
const COMMIT: usize = 32;
const BODY: usize = HEAD + SALT + COMMIT;
/// The length field before the data.
const LENGTH: usize = 4;
const MIN_PLAIN: usize = 64;
const AEAD_TAG: usize = 16;
const MIN_LEN: usize = BODY + MIN_PLAIN + AEAD_TAG;

#[cfg(test)]
mod tests;
