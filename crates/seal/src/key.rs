//! Keys: the master key an operator holds, the keys below it, and the public names of both.
//!
//! Owns how a key is made, derived, named and wiped. Leaves to [`crate::keyring`] which key seals which. Easy
//! to get wrong: a key has no `Display`, no `Serialize` and a `Debug` of stars on purpose; the one way to its
//! bytes is called `dangerously_…`.

use std::fmt;
use std::sync::OnceLock;

use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::engine::{DecodePaddingMode, Engine};
use confidant_display::debug_without_content;
use ring::{hkdf, hmac, pbkdf2};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::hex;

/// 32 secret bytes and their public id. Wiped on drop, compared in constant time.
#[derive(Clone)]
pub struct Key {
    bytes: Zeroizing<[u8; 32]>,
    /// Public; computed once because every seal and every open needs it.
    kid: Kid,
    /// The `sessions` sub-key, once somebody asked: a root wraps every session's key with it.
    sessions: OnceLock<Box<Self>>,
}

impl Key {
    /// A new key from the system's random generator.
    ///
    /// # Panics
    /// When the system has no randomness to give; no key is better than a guessable one.
    pub fn random() -> Self {
        Self::from_zeroizing(random_bytes())
    }

    /// The key with these bytes. They must be uniformly random; nothing stretches them.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self::from_zeroizing(Zeroizing::new(bytes))
    }

    fn from_zeroizing(bytes: Zeroizing<[u8; 32]>) -> Self {
        let mut kid = [0; 8];
        expand(&bytes, &[], &[b"seal/v1/kid"], &mut kid);
        Self { bytes, kid: Kid(kid), sessions: OnceLock::new() }
    }

    /// The key's public id: `HKDF-SHA-256(key, salt = "", info = "seal/v1/kid", 8)`.
    pub fn kid(&self) -> Kid {
        self.kid
    }

    /// The sub-key of this name: `HKDF-SHA-256(key, salt = "", info = "seal/v1/sub/" ‖ label, 32)`.
    pub fn derive(&self, label: &str) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        expand(&self.bytes, &[], &[b"seal/v1/sub/", label.as_bytes()], &mut *bytes);
        Self::from_zeroizing(bytes)
    }

    /// A blinded name: equal bytes in one domain get equal tags, and nobody without the key can tell which.
    /// The first 16 bytes of [`Key::mac`].
    pub fn tag(&self, domain: &str, bytes: &[u8]) -> Tag {
        let mac = self.mac(domain, bytes);
        let mut tag = [0; 16];
        tag.copy_from_slice(&mac[..16]);
        Tag(tag)
    }

    /// `HMAC-SHA-256(key, u64 length of domain ‖ domain ‖ bytes)`.
    pub fn mac(&self, domain: &str, bytes: &[u8]) -> [u8; 32] {
        let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &*self.bytes));
        mac.update(&(domain.len() as u64).to_be_bytes());
        mac.update(domain.as_bytes());
        mac.update(bytes);
        let mut out = [0; 32];
        out.copy_from_slice(mac.sign().as_ref());
        out
    }

    /// The secret itself, for the code that must hand it to another system.
    pub fn dangerously_expose_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// `derive("sessions")`, remembered: wrapping many session keys derives it once.
    pub(crate) fn sessions(&self) -> &Self {
        self.sessions.get_or_init(|| Box::new(self.derive("sessions")))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes.ct_eq(&*other.bytes).into()
    }
}

impl Eq for Key {}

debug_without_content!(Key(***));

/// A key's public id. Names a key, proves nothing: the envelope's commitment does that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kid([u8; 8]);

/// A blinded lookup name, made by [`Key::tag`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag([u8; 16]);

macro_rules! public_bytes {
    ($name:ident, $len:literal) => {
        impl $name {
            /// From its bytes.
            pub const fn from_bytes(bytes: [u8; $len]) -> Self {
                Self(bytes)
            }

            /// From hexadecimal digits; `None` when they are not exactly the right number of digits.
            pub fn from_hex(text: &str) -> Option<Self> {
                hex::read(text).map(Self)
            }

            /// Its bytes.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex::write(f, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex::write(f, &self.0)
            }
        }
    };
}

public_bytes!(Kid, 8);
public_bytes!(Tag, 16);

/// The 32 bytes an operator keeps (`CHECKPOINT_ENCRYPTION_KEY`). Seals nothing itself: see [`MasterKey::root`].
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl MasterKey {
    /// A new master key from the system's random generator.
    ///
    /// # Panics
    /// When the system has no randomness to give; no key is better than a guessable one.
    pub fn random() -> Self {
        Self(random_bytes())
    }

    /// Reads base64 of either alphabet, padded or not, with white space around it.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let bytes = EITHER[0].decode(text).or_else(|_| EITHER[1].decode(text)).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| KeyError::NotBase64)?;
        match <[u8; 32]>::try_from(bytes.as_slice()) {
            Ok(key) => Ok(Self(Zeroizing::new(key))),
            Err(_) => Err(KeyError::Length { found: bytes.len() }),
        }
    }

    /// Reads 64 hexadecimal digits, or base64 as [`MasterKey::from_base64`] does.
    pub fn from_hex_or_base64(text: &str) -> Result<Self, KeyError> {
        match hex::read(text.trim()) {
            Some(key) => Ok(Self(Zeroizing::new(key))),
            None => Self::from_base64(text),
        }
    }

    /// The key as padded standard base64, for the file or vault that keeps it.
    pub fn dangerously_to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.0.as_slice()))
    }

    /// `PBKDF2-HMAC-SHA-256(master, salt = "confidant/root/v1", 100 000 rounds, 32)`. Slow (some 20 ms) by
    /// design: ask once per process.
    pub fn root(&self) -> Key {
        Key::from_zeroizing(self.stretch(b"confidant/root/v1"))
    }

    /// The stretching that the root and the legacy format share.
    pub(crate) fn stretch(&self, salt: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut out = Zeroizing::new([0; 32]);
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt, &*self.0, &mut *out);
        out
    }
}

debug_without_content!(MasterKey(***));

/// Why a master key was refused. Never quotes the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not base64 at all.
    #[error(
        "the master key is not base64; make one with `confidant keys generate` or `openssl rand -base64 32`"
    )]
    NotBase64,
    /// Base64 of another length.
    #[error(
        "the master key must have 32 bytes and has {found}; make one with `confidant keys generate` or \
         `openssl rand -base64 32`"
    )]
    Length {
        /// How many bytes were found.
        found: usize,
    },
}

/// Random bytes, or no process.
pub(crate) fn random_bytes<const N: usize>() -> Zeroizing<[u8; N]> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes)
        .expect("the operating system provides random bytes; without them nothing is safe");
    bytes
}

/// HKDF-SHA-256 (RFC 5869), extract and expand, `info` in pieces.
pub(crate) fn expand(secret: &[u8; 32], salt: &[u8], info: &[&[u8]], out: &mut [u8]) {
    struct Length(usize);

    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }

    let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    prk.expand(info, Length(out.len()))
        .and_then(|okm| okm.fill(out))
        .expect("at most 64 bytes are asked for; HKDF-SHA-256 gives up to 8160");
}

// Python, which made the first keys, ignores the two spare bits of the last digit; so do we.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const EITHER: [GeneralPurpose; 2] =
    [GeneralPurpose::new(&alphabet::STANDARD, LENIENT), GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT)];
const ROUNDS: std::num::NonZeroU32 = std::num::NonZeroU32::new(100_000).expect("not zero");

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::from_bytes(std::array::from_fn(|i| i as u8))
    }

    #[test]
    fn kid_is_the_specified_one() {
        assert_eq!(key().kid().to_string(), "6c3fb748b5227a7c");
        assert_eq!(Kid::from_hex("6C3fb748b5227a7c"), Some(key().kid()));
        assert_eq!(Kid::from_hex("6c3fb748b5227a7"), None);
        assert_eq!(Kid::from_hex("6c3fb748b5227a7g"), None);
        assert_eq!(Kid::from_hex("+c3fb748b5227a7c"), None);
    }

    #[test]
    fn names_and_domains_keep_keys_and_tags_apart() {
        let key = key();
        assert_ne!(key.derive("sessions"), key.derive("memory"));
        assert_eq!(key.derive("sessions"), *key.sessions());
        assert_ne!(key.derive(""), key);
        assert_ne!(key.tag("ab", b"c"), key.tag("a", b"bc"));
        assert_eq!(key.tag("a", b"b").as_bytes()[..], key.mac("a", b"b")[..16]);
        assert_ne!(key.tag("a", b"b"), Key::random().tag("a", b"b"));
        assert_ne!(Key::random(), Key::random());
    }

    #[test]
    fn secrets_print_as_stars() {
        assert_eq!(format!("{:?} {:?}", key(), MasterKey::random()), "Key(***) MasterKey(***)");
    }

    #[test]
    fn master_keys_come_in_every_spelling_of_base64() {
        let bytes = [0xfb; 32];
        let text = STANDARD.encode(bytes);
        let spellings = [
            text.clone(),
            format!(" {text}\n"),
            text.trim_end_matches('=').to_owned(),
            text.replace('+', "-").replace('/', "_"),
            text.trim_end_matches('=').replace('+', "-").replace('/', "_"),
        ];
        for spelling in spellings {
            assert_eq!(*MasterKey::from_base64(&spelling).unwrap().0, bytes, "{spelling}");
        }
        assert_eq!(*MasterKey::from_base64(&text).unwrap().dangerously_to_base64(), text);
        // The documented example of the first system, whose last digit has spare bits set.
        assert!(MasterKey::from_base64("kX9v2+Jq8P7mN4wL1cR6tY5uS3hG8fD2aQ9zE4bV1xK=").is_ok());
    }

    #[test]
    fn a_master_key_may_come_as_hex() {
        let key = MasterKey::from_hex_or_base64(&format!(" {}\n", "fb".repeat(32))).unwrap();
        assert_eq!(*key.0, [0xfb; 32]);
        assert_eq!(*MasterKey::from_hex_or_base64(&STANDARD.encode([0xfb; 32])).unwrap().0, [0xfb; 32]);
        assert!(MasterKey::from_hex_or_base64(&"fb".repeat(31)).is_err());
    }

    #[test]
    fn bad_master_keys_are_refused_without_being_quoted() {
        assert_eq!(MasterKey::from_base64("AAAA").unwrap_err(), KeyError::Length { found: 3 });
        assert_eq!(MasterKey::from_base64("").unwrap_err(), KeyError::Length { found: 0 });
        let error = MasterKey::from_base64("secret!").unwrap_err();
        assert_eq!(error, KeyError::NotBase64);
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}
