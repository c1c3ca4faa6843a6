//! Single values: envelopes, bytes, secrets, texts and numbers, each with its limit.
//!
//! `Debug` of these shows a length or stars, never what is inside, so every type that is made of them may derive it.
//! Easy to get wrong: two spellings of the same bytes. Base64url here has no padding and no spare bits.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_display::debug_without_content;
use confidant_seal::{Key, Kid, Sealed};
use serde::de::Visitor;
use serde::{Deserializer, Serializer};

#[cfg(feature = "describe")]
use crate::describe::{Book, Dice, thousands};
use crate::limits::MAX_NUMBER;
use crate::malformed::{Malformed, Why};
use crate::wire::{At, Wire, read_text};

/// A client's envelope of at most `MAX` bytes. It has the shape of one, so its key id and revision can be asked for;
/// whether it opens is known to clients only.
#[derive(Clone, PartialEq, Eq)]
pub struct Envelope<const MAX: usize>(Sealed);

impl<const MAX: usize> Envelope<MAX> {
    /// Takes an envelope that is not too long and has the shape of one.
    pub fn new(sealed: Sealed) -> Result<Self, Malformed> {
        let why = match sealed.as_bytes().len() {
            len if len > MAX => Why::TooLong(MAX),
            _ if sealed.kid().is_none() => Why::Expected(ENVELOPE),
            _ => return Ok(Self(sealed)),
        };
        Err(Malformed::new(String::new(), why))
    }

    /// The envelope.
    pub fn sealed(&self) -> &Sealed {
        &self.0
    }

    /// The envelope, without a copy.
    pub fn into_sealed(self) -> Sealed {
        self.0
    }

    /// Which key sealed it, as it says itself.
    pub fn kid(&self) -> Kid {
        self.0.kid().expect("it has the shape of an envelope, checked when made")
    }

    /// Which revision it is, as it says itself.
    pub fn rev(&self) -> u32 {
        self.0.rev().expect("it has the shape of an envelope, checked when made")
    }

    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.0.as_bytes().len()
    }
}

impl<const MAX: usize> fmt::Debug for Envelope<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Envelope({} bytes)", self.size())
    }
}

impl<const MAX: usize> Wire for Envelope<MAX> {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        let bytes = read_base64(from, at, ENVELOPE, MAX)?;
        Self::new(Sealed::from_bytes(bytes)).map_err(|malformed| at.fail(malformed.why().clone()))
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.to_base64url())
    }

    #[cfg(feature = "describe")]
    fn describe(_: &mut Book) -> String {
        format!("envelope, at most {} bytes", thousands(MAX))
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        let mut bytes = vec![1, 1];
        bytes.extend(dice.bytes::<8>());
        bytes.extend((dice.number(u32::MAX.into()) as u32).to_be_bytes());
        bytes.extend(dice.bytes::<136>());
        Self::new(Sealed::from_bytes(bytes)).expect("150 bytes with version and suite")
    }
}

const ENVELOPE: &str = "an envelope in unpadded base64url";

/// Exactly `N` bytes that anybody may see: salts, public keys, proofs. In JSON, unpadded base64url.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bytes<const N: usize>(pub [u8; N]);

impl<const N: usize> fmt::Debug for Bytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({N})")
    }
}

impl<const N: usize> Wire for Bytes<N> {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        let bytes = read_base64(from, at, "bytes in unpadded base64url", N)?;
        let exact = <[u8; N]>::try_from(bytes).map(Self);
        exact.map_err(|_| at.fail(Why::Expected("the right number of bytes in base64url")))
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
    }

    #[cfg(feature = "describe")]
    fn describe(_: &mut Book) -> String {
        format!("{N} bytes")
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        Self(dice.bytes())
    }
}

/// At most `MAX` bytes of any shape. In JSON, unpadded base64url.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob<const MAX: usize>(Vec<u8>);

impl<const MAX: usize> Blob<MAX> {
    /// Takes bytes, if they are not too many.
    pub fn new(bytes: Vec<u8>) -> Result<Self, Malformed> {
        if bytes.len() <= MAX {
            Ok(Self(bytes))
        } else {
            Err(Malformed::new(String::new(), Why::TooLong(MAX)))
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for Blob<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl<const MAX: usize> Wire for Blob<MAX> {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        read_base64(from, at, "bytes in unpadded base64url", MAX).map(Self)
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }

    #[cfg(feature = "describe")]
    fn describe(_: &mut Book) -> String {
        format!("at most {} bytes", thousands(MAX))
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        Self(dice.bytes::<48>()[..48.min(MAX)].to_vec())
    }
}

/// 32 random bytes that only two sides know: a ticket, a session's secret, a challenge. Wiped when dropped, compared in
/// constant time. In JSON, unpadded base64url.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Key);

impl Secret {
    /// The one with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Key::from_bytes(bytes))
    }

    /// Its bytes.
    pub fn dangerously_expose_bytes(&self) -> &[u8; 32] {
        self.0.dangerously_expose_bytes()
    }
}

debug_without_content!(Secret(***));

impl Wire for Secret {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        Bytes::<32>::read_from(from, at).map(|bytes| Self::from_bytes(bytes.0))
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Bytes(*self.0.dangerously_expose_bytes()).write_to(to)
    }

    #[cfg(feature = "describe")]
    fn describe(_: &mut Book) -> String {
        "32 secret bytes".to_owned()
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        Self::from_bytes(dice.bytes())
    }
}

/// A text of at most `MAX` bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Text<const MAX: usize>(String);

impl<const MAX: usize> Text<MAX> {
    /// Takes a text, if it is not too long.
    pub fn new(text: String) -> Result<Self, Malformed> {
        if text.len() <= MAX { Ok(Self(text)) } else { Err(Malformed::new(String::new(), Why::TooLong(MAX))) }
    }

    /// As much of a text as fits.
    pub fn cut(text: &str) -> Self {
        Self(text[..text.floor_char_boundary(MAX)].to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.0.len())
    }
}

impl<const MAX: usize> Wire for Text<MAX> {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        read_text(from, at, "a text", MAX, |text| Some(Self(text.to_owned())))
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }

    #[cfg(feature = "describe")]
    fn describe(_: &mut Book) -> String {
        format!("text, at most {} bytes", thousands(MAX))
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        Self::cut(&dice.text())
    }
}

/// A code of six digits from a person's authenticator.
#[derive(Clone, PartialEq, Eq)]
pub struct Totp([u8; 6]);

impl Totp {
    /// Reads six digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = <[u8; 6]>::try_from(text.as_bytes()).ok()?;
        digits.iter().all(u8::is_ascii_digit).then_some(Self(digits))
    }

    /// The six digits.
    pub fn digits(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits are text")
    }
}

debug_without_content!(Totp(***));

impl Wire for Totp {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        read_text(from, at, "six digits", 6, Self::parse)
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.digits())
    }

    #[cfg(feature = "describe")]
    fn describe(_: &mut Book) -> String {
        "text of six digits".to_owned()
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        Self(dice.bytes::<6>().map(|byte| b'0' + byte % 10))
    }
}

/// The name of a pairing on the server: 32 lower-case hexadecimal digits, made from what the server never sees.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PairingId(String);

impl PairingId {
    /// Reads 32 lower-case hexadecimal digits, as `PairingSecret::id` gives them.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        (text.len() == 32 && text.bytes().all(digit)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

debug_without_content!(PairingId(..));

impl Wire for PairingId {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        read_text(from, at, "32 lower-case hexadecimal digits", 32, Self::parse)
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }

    #[cfg(feature = "describe")]
    fn describe(_: &mut Book) -> String {
        "text of 32 hexadecimal digits".to_owned()
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        Self(dice.bytes::<16>().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

macro_rules! numbers {
    ($($type:ty, $max:expr, $what:literal);+ $(;)?) => {$(
        impl Wire for $type {
            fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
                let number = from.deserialize_u64(Number { at, max: $max });
                let number = number.inspect_err(|_| at.note(Why::Expected("a whole number")))?;
                Self::try_from(number).map_err(|_| at.fail(Why::OutOfRange($max)))
            }

            fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_u64(u64::from(*self))
            }

            #[cfg(feature = "describe")]
            fn describe(_: &mut Book) -> String {
                $what.to_owned()
            }

            #[cfg(feature = "describe")]
            fn make(dice: &mut Dice<'_>) -> Self {
                Self::try_from(dice.number($max)).expect("not above the greatest")
            }
        }
    )+};
}

numbers! {
    u32, u64::from(u32::MAX), "number below 2^32";
    u64, MAX_NUMBER, "number below 2^53";
}

struct Number<'a> {
    at: &'a At<'a>,
    max: u64,
}

impl Visitor<'_> for Number<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<u64, E> {
        if number <= self.max { Ok(number) } else { Err(self.at.fail(Why::OutOfRange(self.max))) }
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<u64, E> {
        Err(self.at.fail(Why::OutOfRange(self.max)))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<u64, E> {
        Err(self.at.fail(Why::OutOfRange(self.max)))
    }
}

impl Wire for bool {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        <Self as serde::Deserialize>::deserialize(from)
            .inspect_err(|_| at.note(Why::Expected("true or false")))
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(*self)
    }

    #[cfg(feature = "describe")]
    fn describe(_: &mut Book) -> String {
        "true or false".to_owned()
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        dice.flag()
    }
}

/// Reads at most `max` bytes in base64url; a longer text is refused before it is decoded.
fn read_base64<'de, D: Deserializer<'de>>(
    from: D,
    at: &At<'_>,
    expected: &'static str,
    max: usize,
) -> Result<Vec<u8>, D::Error> {
    let bytes =
        read_text(from, at, expected, (max * 4).div_ceil(3), |text| URL_SAFE_NO_PAD.decode(text).ok())?;
    if bytes.len() <= max { Ok(bytes) } else { Err(at.fail(Why::TooLong(max))) }
}
