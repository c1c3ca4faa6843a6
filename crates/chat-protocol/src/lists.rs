//! Lists and maps with limits, and fields that may be left out.
//!
//! A reader stops at the first item too many; it never reserves room for what a message only announces. Easy to get
//! wrong: `null` for a field that is left out. It is refused, so that a value has one JSON form.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserializer, Serializer};

#[cfg(feature = "describe")]
use crate::describe::{Book, Dice, thousands};
use crate::malformed::{Malformed, Why};
use crate::wire::{At, Out, Seed, Wire};

/// A list of `MIN` to `MAX` values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const MAX: usize, const MIN: usize = 0>(Vec<T>);

impl<T, const MAX: usize, const MIN: usize> List<T, MAX, MIN> {
    /// Takes the values, if they are not too many or too few.
    pub fn new(items: Vec<T>) -> Result<Self, Malformed> {
        let why = match items.len() {
            len if len > MAX => Why::TooMany(MAX),
            len if len < MIN => Why::TooFew(MIN),
            _ => return Ok(Self(items)),
        };
        Err(Malformed::new(String::new(), why))
    }

    /// The values.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T, const MAX: usize> Default for List<T, MAX, 0> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MAX: usize, const MIN: usize> Deref for List<T, MAX, MIN> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Wire, const MAX: usize, const MIN: usize> Wire for List<T, MAX, MIN> {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        let items = from
            .deserialize_seq(Items::<T> { at, max: MAX, of: PhantomData })
            .inspect_err(|_| at.note(Why::Expected("a list")))?;
        if items.len() >= MIN { Ok(Self(items)) } else { Err(at.fail(Why::TooFew(MIN))) }
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(self.0.len()))?;
        for item in &self.0 {
            list.serialize_element(&Out(item))?;
        }
        list.end()
    }

    #[cfg(feature = "describe")]
    fn describe(book: &mut Book) -> String {
        let what = T::describe(book);
        if MIN == MAX {
            format!("list of exactly {}: {what}", thousands(MAX))
        } else {
            format!("list of at most {}: {what}", thousands(MAX))
        }
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        let len = dice.many(MIN, MAX);
        Self((0..len).map(|_| T::make(dice)).collect())
    }
}

struct Items<'a, T> {
    at: &'a At<'a>,
    max: usize,
    of: PhantomData<T>,
}

impl<'de, T: Wire> Visitor<'de> for Items<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        loop {
            // One more than allowed is not built up, whatever it is.
            if items.len() == self.max {
                return match list.next_element_seed(Over(self.at, Why::TooMany(self.max)))? {
                    None => Ok(items),
                    Some(()) => Err(self.at.fail(Why::TooMany(self.max))),
                };
            }
            match list.next_element_seed(Seed::new(self.at.item(items.len())))? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
        }
    }
}

/// Refuses whatever comes.
struct Over<'a>(&'a At<'a>, Why);

impl<'de> DeserializeSeed<'de> for Over<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
        Err(self.0.fail(self.1))
    }
}

/// A key of a map: an id, which is a text with one spelling.
pub trait MapKey: Wire + Ord {
    /// Its text.
    fn key(&self) -> &str;
}

/// At most `MAX` values by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map<K, V, const MAX: usize>(BTreeMap<K, V>);

impl<K, V, const MAX: usize> Map<K, V, MAX> {
    /// Takes the values, if they are not too many.
    pub fn new(map: BTreeMap<K, V>) -> Result<Self, Malformed> {
        if map.len() <= MAX { Ok(Self(map)) } else { Err(Malformed::new(String::new(), Why::TooMany(MAX))) }
    }

    /// The values.
    pub fn into_map(self) -> BTreeMap<K, V> {
        self.0
    }
}

impl<K, V, const MAX: usize> Default for Map<K, V, MAX> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K, V, const MAX: usize> Deref for Map<K, V, MAX> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.0
    }
}

impl<K: MapKey, V: Wire, const MAX: usize> Wire for Map<K, V, MAX> {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        let read = from.deserialize_map(Entries::<K, V> { at, max: MAX, of: PhantomData });
        read.map(Self).inspect_err(|_| at.note(Why::Expected("an object")))
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key.key(), &Out(value))?;
        }
        map.end()
    }

    #[cfg(feature = "describe")]
    fn describe(book: &mut Book) -> String {
        let (key, value) = (K::describe(book), V::describe(book));
        format!("object with at most {} entries, {key} to {value}", thousands(MAX))
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        let len = dice.many(0, MAX);
        Self((0..len).map(|_| (K::make(dice), V::make(dice))).collect())
    }
}

struct Entries<'a, K, V> {
    at: &'a At<'a>,
    max: usize,
    of: PhantomData<(K, V)>,
}

impl<'de, K: MapKey, V: Wire> Visitor<'de> for Entries<'_, K, V> {
    type Value = BTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BTreeMap<K, V>, A::Error> {
        let mut entries = BTreeMap::new();
        loop {
            let at = self.at.item(entries.len());
            let Some(key) = map.next_key_seed(Seed::<K>::new(at))? else { return Ok(entries) };
            if entries.len() == self.max {
                return Err(self.at.fail(Why::TooMany(self.max)));
            }
            let value = map.next_value_seed(Seed::new(at))?;
            if entries.insert(key, value).is_some() {
                return Err(at.fail(Why::Twice));
            }
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        T::read_from(from, at).map(Some)
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.write_to(to),
            None => to.serialize_none(),
        }
    }

    fn when_missing() -> Option<Self> {
        Some(None)
    }

    fn is_left_out(&self) -> bool {
        self.is_none()
    }

    #[cfg(feature = "describe")]
    fn describe(book: &mut Book) -> String {
        T::describe(book)
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        dice.flag().then(|| T::make(dice))
    }
}
