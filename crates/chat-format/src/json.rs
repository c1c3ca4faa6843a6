//! Strict JSON: a record has one meaning, in every language.
//!
//! A reader refuses what no writer writes: a field twice, a field it does not know, `null` for a field that is left out, an
//! array in place of an object, a fraction, half of a surrogate pair, bytes after the end. Space, escapes and the order of
//! fields are free. Easy to get wrong: trusting a derived reader. It takes arrays for objects, and maps keep the last of
//! two equal keys; so a record is written again and compared.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use zeroize::Zeroizing;

use crate::error::Refused;

/// Something with a version, written as a JSON object.
pub(crate) trait Record: Serialize + DeserializeOwned {
    fn version(&self) -> u32;
}

/// The JSON of a record.
pub(crate) fn write<T: Record>(record: &T) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(serde_json::to_vec(record).expect("records are plain data with text as keys"))
}

/// Reads a record, or `record-refused`.
pub(crate) fn read<T: Record>(json: &[u8]) -> Result<T, Refused> {
    let tree = |json: &[u8]| serde_json::from_slice::<Tree>(json).map_err(|_| Refused::RecordRefused);
    let found = tree(json)?;
    let record: T = serde_json::from_slice(json).map_err(|_| Refused::RecordRefused)?;
    if record.version() == 1 && tree(&write(&record))? == found {
        Ok(record)
    } else {
        Err(Refused::RecordRefused)
    }
}

/// Any JSON in which no object has a key twice.
#[derive(PartialEq, Eq)]
enum Tree {
    Null,
    Bool(bool),
    Number(i128),
    Text(String),
    List(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without fractions")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Tree, A::Error> {
        let mut object = BTreeMap::new();
        while let Some((name, value)) = fields.next_entry::<String, Tree>()? {
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a field twice"));
            }
        }
        Ok(Tree::Object(object))
    }
}
