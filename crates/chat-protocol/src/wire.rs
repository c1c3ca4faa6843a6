//! How a value is read and written: one pass, no copy of what is not wanted, and the place of the first mistake.
//!
//! Types of this crate have no `Deserialize`, so there is no way to read one past its limits. [`Body::read`] is the
//! only door: it looks at the size, then reads field by field. A value of the wrong kind is never built up, whatever
//! its size. Easy to get wrong: an error of serde. It may repeat what was sent, so it is dropped, and [`Malformed`] is
//! made from the place alone.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::marker::PhantomData;

use confidant_display::debug_without_content;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserializer, Serialize, Serializer};

#[cfg(feature = "describe")]
use crate::describe::{Book, Dice};
use crate::limits::MAX_NAME;
use crate::malformed::{Malformed, Why};

/// A value of the protocol. It can be read only as part of a message, through [`Body::read`].
pub trait Wire: Sized {
    /// Reads it.
    #[doc(hidden)]
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error>;

    /// Writes it.
    #[doc(hidden)]
    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

    /// What it is when the field is not there.
    #[doc(hidden)]
    fn when_missing() -> Option<Self> {
        None
    }

    /// Whether the field is left out.
    #[doc(hidden)]
    fn is_left_out(&self) -> bool {
        false
    }

    /// What it is, in words; types with fields are entered in the book.
    #[cfg(feature = "describe")]
    #[doc(hidden)]
    fn describe(book: &mut Book) -> String;

    /// Some value, as the dice fall.
    #[cfg(feature = "describe")]
    #[doc(hidden)]
    fn make(dice: &mut Dice<'_>) -> Self;
}

/// A value with fields.
pub trait Fields: Wire {
    /// Writes its fields into an object that may have others.
    #[doc(hidden)]
    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// A value that is a whole message: the body of a request or of an answer.
pub trait Body: Wire {
    /// How many bytes its JSON may have.
    const LIMIT: usize;

    /// Reads it from JSON.
    fn read(json: &[u8]) -> Result<Self, Malformed> {
        read(json, Self::LIMIT)
    }

    /// Its JSON. Refuses to write more bytes than a reader takes.
    fn write(&self) -> Result<Vec<u8>, Malformed> {
        write(self, Self::LIMIT)
    }
}

/// Reads a message of at most `limit` bytes.
pub(crate) fn read<T: Wire>(json: &[u8], limit: usize) -> Result<T, Malformed> {
    if json.len() > limit {
        return Err(Malformed::new(String::new(), Why::TooLarge(limit)));
    }
    let reading = Reading { json, event: OnceCell::new(), failed: RefCell::new(None) };
    let root = At { above: None, step: Step::Root, tagged: false, reading: &reading };
    let mut from = serde_json::Deserializer::from_slice(json);
    let read = Seed::<T>(root, PhantomData).deserialize(&mut from).and_then(|value| {
        from.end()?;
        Ok(value)
    });
    read.map_err(|error| {
        let failed = reading.failed.take().unwrap_or_else(|| Malformed::new(String::new(), Why::NotJson));
        // The place is right; that the value is of another kind is not, if there is no value.
        let broken = matches!(failed.why(), Why::Expected(_)) && !error.is_data();
        if broken { Malformed::new(failed.path().to_owned(), Why::NotJson) } else { failed }
    })
}

/// Writes a message, if it has at most `limit` bytes.
pub(crate) fn write<T: Wire>(value: &T, limit: usize) -> Result<Vec<u8>, Malformed> {
    let json = serde_json::to_vec(&Out(value)).expect("values are plain data with texts as keys");
    if json.len() <= limit { Ok(json) } else { Err(Malformed::new(String::new(), Why::TooLarge(limit))) }
}

/// Where a reader is.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    above: Option<&'a Self>,
    step: Step,
    /// The object here has the event's name too.
    tagged: bool,
    reading: &'a Reading<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Root,
    Field(&'static str),
    Item(usize),
}

struct Reading<'a> {
    /// The whole message.
    json: &'a [u8],
    /// The name in `event.type`, cut short; looked for when an event is read.
    event: OnceCell<Option<String>>,
    failed: RefCell<Option<Malformed>>,
}

debug_without_content!(Reading<'_>);

impl<'a> At<'a> {
    pub(crate) fn field(&'a self, name: &'static str) -> Self {
        Self { above: Some(self), step: Step::Field(name), tagged: false, reading: self.reading }
    }

    pub(crate) fn item(&'a self, number: usize) -> Self {
        Self { above: Some(self), step: Step::Item(number), tagged: false, reading: self.reading }
    }

    pub(crate) fn tagged(&self) -> Self {
        Self { tagged: true, ..*self }
    }

    pub(crate) fn is_tagged(&self) -> bool {
        self.tagged
    }

    /// The name of the event in this message.
    pub(crate) fn event(&self) -> Option<&'a str> {
        self.reading.event.get_or_init(|| peek(self.reading.json, &["event", TYPE])).as_deref()
    }

    /// Remembers the first mistake, with its place.
    pub(crate) fn note(&self, why: Why) {
        let mut failed = self.reading.failed.borrow_mut();
        failed.get_or_insert_with(|| Malformed::new(self.path(), why));
    }

    /// The same, and stops the reader.
    pub(crate) fn fail<E: serde::de::Error>(&self, why: Why) -> E {
        self.note(why);
        E::custom("malformed")
    }

    fn path(&self) -> String {
        let above = self.above.map(At::path).unwrap_or_default();
        match self.step {
            Step::Root => above,
            Step::Field(name) if above.is_empty() => name.to_owned(),
            Step::Field(name) => format!("{above}.{name}"),
            Step::Item(number) => format!("{above}[{number}]"),
        }
    }
}

/// Reads the value that stands here.
pub(crate) struct Seed<'a, T>(pub(crate) At<'a>, pub(crate) PhantomData<T>);

impl<'a, T> Seed<'a, T> {
    pub(crate) fn new(at: At<'a>) -> Self {
        Self(at, PhantomData)
    }
}

impl<'de, T: Wire> DeserializeSeed<'de> for Seed<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        // The deepest place is noted first and stays; this is for what serde refuses by itself.
        T::read_from(from, &self.0).inspect_err(|_| self.0.note(Why::Expected("a value of the right kind")))
    }
}

/// Reads the name of a field: one of `names`, or `type` in an event.
pub(crate) struct NameSeed<'a> {
    pub(crate) at: &'a At<'a>,
    pub(crate) names: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<&'static str, E> {
        if self.at.is_tagged() && text == TYPE {
            return Ok(TYPE);
        }
        let known = self.names.iter().find(|name| **name == text);
        known.copied().ok_or_else(|| self.at.fail(Why::UnknownField))
    }
}

/// Reads a text of at most `max` bytes and makes a value of it.
pub(crate) fn read_text<'de, D: Deserializer<'de>, T>(
    from: D,
    at: &At<'_>,
    expected: &'static str,
    max: usize,
    make: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    struct Reader<'a, F>(&'a At<'a>, &'static str, usize, F);

    impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Reader<'_, F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            if text.len() > self.2 {
                return Err(self.0.fail(Why::TooLong(self.2)));
            }
            (self.3)(text).ok_or_else(|| self.0.fail(Why::Expected(self.1)))
        }
    }

    from.deserialize_str(Reader(at, expected, max, make)).inspect_err(|_| at.note(Why::Expected(expected)))
}

/// Writes a value where serde wants something of its own.
pub(crate) struct Out<'a, T>(pub(crate) &'a T);

impl<T: Wire> Serialize for Out<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.write_to(to)
    }
}

/// A text or number that stands under these names, wherever it stands in its object: a look over the bytes, no further
/// than to it, that keeps nothing else. What is wrong with them is found when they are read.
pub(crate) fn peek(json: &[u8], names: &'static [&'static str]) -> Option<String> {
    let found = RefCell::new(None);
    let mut from = serde_json::Deserializer::from_slice(json);
    let _stopped = Inner { names, found: &found }.deserialize(&mut from);
    found.take()
}

/// Follows the names down to a text or number, and stops there.
struct Inner<'a> {
    names: &'static [&'static str],
    found: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Inner<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.names.is_empty() { from.deserialize_any(self) } else { from.deserialize_map(self) }
    }
}

impl<'de> Visitor<'de> for Inner<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.found.replace(Some(text.chars().take(MAX_NAME).collect()));
        Err(E::custom("found"))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.visit_str(&number.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (name, names) = self.names.split_first().ok_or_else(|| A::Error::custom("not a text"))?;
        while let Some(same) = map.next_key_seed(Same(name))? {
            if same {
                return map.next_value_seed(Inner { names, found: self.found });
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Whether a key is this one, without keeping it.
struct Same(&'static str);

impl<'de> DeserializeSeed<'de> for Same {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Same {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(text == self.0)
    }
}

/// The field that has an event's name.
pub(crate) const TYPE: &str = "type";
