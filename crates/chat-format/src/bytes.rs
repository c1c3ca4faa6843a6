//! Hashes, lengths and public bytes: what every other module writes with.
//!
//! Easy to get wrong: a text before another without its length. [`put`] is the only way a text gets into a hash.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{digest, hkdf};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

macro_rules! public_bytes {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; 32]);

        impl $name {
            /// From its bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Its bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        // Some are of words, and some are what only a device of the owner can make.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
                bytes.map(Self).ok_or_else(|| D::Error::custom("not 32 bytes in base64url"))
            }
        }
    };
}

public_bytes!(
    /// A SHA-256 or a MAC. In JSON, unpadded base64url.
    Digest
);
public_bytes!(
    /// An X25519 public key. In JSON, unpadded base64url.
    PublicKey
);

impl Digest {
    /// What stands before the first of a chain.
    pub const ZERO: Self = Self([0; 32]);

    /// SHA-256 of these bytes: how a list names an envelope.
    pub fn of(bytes: &[u8]) -> Self {
        hash(&[bytes])
    }
}

/// SHA-256 over the parts, one after another.
pub(crate) fn hash(parts: &[&[u8]]) -> Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut out = [0; 32];
    out.copy_from_slice(context.finish().as_ref());
    Digest(out)
}

/// `lp`: a `u16` length, then the text.
///
/// # Panics
/// When the text has more than 65 535 bytes. Every text in this crate is an id or a name with a smaller limit.
pub(crate) fn put(out: &mut Vec<u8>, text: &str) {
    let len = u16::try_from(text.len()).expect("ids and names are at most 512 bytes, checked when made");
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// HKDF-SHA-256 (RFC 5869), extract and expand.
pub(crate) fn hkdf<const N: usize>(ikm: &[u8], salt: &[u8], info: &[&[u8]]) -> Zeroizing<[u8; N]> {
    struct Length(usize);

    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }

    let mut out = Zeroizing::new([0; N]);
    let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(ikm);
    prk.expand(info, Length(N))
        .and_then(|okm| okm.fill(&mut *out))
        .expect("at most 32 bytes are asked for; HKDF-SHA-256 gives up to 8160");
    out
}

/// How many, as four bytes.
///
/// # Panics
/// Above 2^32, which no list in memory reaches.
pub(crate) fn count(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("a list has fewer than 2^32 items").to_be_bytes()
}

/// Random bytes, or no process.
pub(crate) fn random<const N: usize>() -> Zeroizing<[u8; N]> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes)
        .expect("the operating system provides random bytes; without them nothing is safe");
    bytes
}

/// Lower-case base32 of RFC 4648, without padding.
pub(crate) fn base32(bytes: &[u8]) -> String {
    let digits = (bytes.len() * 8).div_ceil(5);
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    let digit = |at: usize| (0..5).fold(0, |value, i| value << 1 | bit(at * 5 + i));
    (0..digits).map(|at| char::from(DIGITS[digit(at)])).collect()
}

/// Reads exactly `N` bytes in the one spelling that [`base32`] writes: spare bits must be zero.
pub(crate) fn from_base32<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != (N * 8).div_ceil(5) {
        return None;
    }
    let mut out = [0; N];
    for (at, c) in text.bytes().enumerate() {
        let value = DIGITS.iter().position(|digit| *digit == c)?;
        for i in 0..5 {
            let (bit, place) = (value >> (4 - i) & 1, at * 5 + i);
            match out.get_mut(place / 8) {
                Some(byte) => *byte |= u8::from(bit == 1) << (7 - place % 8),
                None if bit == 0 => {}
                None => return None,
            }
        }
    }
    Some(out)
}

const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_has_one_spelling() {
        // RFC 4648, section 10.
        for (plain, text) in
            [("", ""), ("f", "my"), ("fo", "mzxq"), ("foob", "mzxw6yq"), ("foobar", "mzxw6ytboi")]
        {
            assert_eq!(base32(plain.as_bytes()), text);
        }
        assert_eq!(from_base32::<6>("mzxw6ytboi"), Some(*b"foobar"));
        assert_eq!(from_base32::<1>("my"), Some(*b"f"));
        for bad in ["mz", "MY", "m", "my=", "m1", "m\u{e9}"] {
            assert_eq!(from_base32::<1>(bad), None, "{bad}");
        }
    }

    #[test]
    fn digests_have_one_spelling_in_json() {
        let json = serde_json::to_string(&Digest([0xff; 32])).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), Digest([0xff; 32]));
        let spare = json.replace("8\"", "9\"");
        assert_ne!(spare, json);
        assert!(serde_json::from_str::<Digest>(&spare).is_err());
        assert!(serde_json::from_str::<Digest>("\"AAAA\"").is_err());
    }
}
