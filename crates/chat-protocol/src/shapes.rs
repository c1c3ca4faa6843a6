//! Three shapes of types, each written once: objects, words, and a choice of one.
//!
//! From one declaration come the type, its reader, its writer, its description in `docs/PROTOCOL.md` (from the doc
//! comments) and its samples. So none of them can say anything else than the others.

/// Objects. A field is there exactly once; only an `Option` may be left out; nothing else may be there.
///
/// `(limit N)` sets how many bytes the JSON may have as a body of its own, `(check f)` adds a check of the whole.
macro_rules! objects {
    ($(
        $(#[doc = $doc:literal])+
        pub struct $name:ident $((limit $limit:expr))? $((check $check:path))? {
            $($(#[doc = $field_doc:literal])+ pub $field:ident: $type:ty),* $(,)?
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $field_doc])+ pub $field: $type,)*
        }

        impl $crate::wire::Wire for $name {
            fn read_from<'de, D: serde::Deserializer<'de>>(
                from: D,
                at: &$crate::wire::At<'_>,
            ) -> Result<Self, D::Error> {
                struct Reader<'a>(&'a $crate::wire::At<'a>);

                impl<'de> serde::de::Visitor<'de> for Reader<'_> {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        use $crate::wire::{NameSeed, TYPE};
                        use $crate::malformed::Why;
                        let at = self.0;
                        let mut tag = false;
                        $(let mut $field: Option<$type> = None;)*
                        while let Some(name) = map.next_key_seed(NameSeed { at, names: &[$(stringify!($field)),*] })? {
                            match name {
                                $(stringify!($field) => {
                                    let at = at.field(stringify!($field));
                                    if $field.is_some() {
                                        return Err(at.fail(Why::Twice));
                                    }
                                    $field = Some(map.next_value_seed($crate::wire::Seed::new(at))?);
                                })*
                                _ => {
                                    if tag {
                                        return Err(at.field(TYPE).fail(Why::Twice));
                                    }
                                    tag = true;
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        let value = $name {
                            $($field: match $field.or_else(<$type as $crate::wire::Wire>::when_missing) {
                                Some(value) => value,
                                None => return Err(at.field(stringify!($field)).fail(Why::Missing)),
                            },)*
                        };
                        $(if let Err((field, why)) = $check(&value) {
                            return Err(at.field(field).fail(why));
                        })?
                        Ok(value)
                    }
                }

                from.deserialize_map(Reader(at)).inspect_err(|_| at.note($crate::malformed::Why::Expected("an object")))
            }

            fn write_to<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = to.serialize_map(None)?;
                $crate::wire::Fields::write_fields(self, &mut map)?;
                map.end()
            }

            #[cfg(feature = "describe")]
            fn describe(book: &mut $crate::describe::Book) -> String {
                book.object(stringify!($name), &[$($doc),+], |book| {
                    let _ = &book;
                    vec![$($crate::describe::Field {
                        name: stringify!($field),
                        what: <$type as $crate::wire::Wire>::describe(book),
                        optional: <$type as $crate::wire::Wire>::when_missing().is_some(),
                        doc: &[$($field_doc),+],
                    }),*]
                })
            }

            #[cfg(feature = "describe")]
            fn make(dice: &mut $crate::describe::Dice<'_>) -> Self {
                dice.fitting(
                    |dice| {
                        let _ = &dice;
                        Self { $($field: <$type as $crate::wire::Wire>::make(dice),)* }
                    },
                    |value| {
                        let _ = value;
                        true $(&& $check(value).is_ok())?
                    },
                )
            }
        }

        impl $crate::wire::Fields for $name {
            fn write_fields<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                let _ = &map;
                $(if !$crate::wire::Wire::is_left_out(&self.$field) {
                    map.serialize_entry(stringify!($field), &$crate::wire::Out(&self.$field))?;
                })*
                Ok(())
            }
        }

        impl $crate::wire::Body for $name {
            const LIMIT: usize = objects!(@limit $($limit)?);
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $crate::wire::Wire::write_to(self, to)
            }
        }
    )+};
    (@limit) => { $crate::limits::MAX_BODY };
    (@limit $limit:expr) => { $limit };
}

/// Words: one of a closed list.
macro_rules! words {
    ($(
        $(#[doc = $doc:literal])+
        pub enum $name:ident {
            $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal),+ $(,)?
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $word_doc])+ $variant,)+
        }

        impl $name {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its word.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $crate::wire::Wire for $name {
            fn read_from<'de, D: serde::Deserializer<'de>>(
                from: D,
                at: &$crate::wire::At<'_>,
            ) -> Result<Self, D::Error> {
                $crate::wire::read_text(from, at, "one of the words of this field", 64, |text| {
                    Self::ALL.iter().copied().find(|word| word.name() == text)
                })
            }

            fn write_to<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }

            #[cfg(feature = "describe")]
            fn describe(book: &mut $crate::describe::Book) -> String {
                book.words(stringify!($name), &[$($doc),+], &[$(($word, &[$($word_doc),+])),+])
            }

            #[cfg(feature = "describe")]
            fn make(dice: &mut $crate::describe::Dice<'_>) -> Self {
                Self::ALL[dice.choice(Self::ALL.len())]
            }
        }
    )+};
}

/// One of several: an object with exactly one field, whose name says which.
macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])+
        pub enum $name:ident {
            $($(#[doc = $case_doc:literal])+ $variant:ident($type:ty) = $word:literal),+ $(,)?
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $case_doc])+ $variant($type),)+
        }

        impl $crate::wire::Wire for $name {
            fn read_from<'de, D: serde::Deserializer<'de>>(
                from: D,
                at: &$crate::wire::At<'_>,
            ) -> Result<Self, D::Error> {
                struct Reader<'a>(&'a $crate::wire::At<'a>);

                impl<'de> serde::de::Visitor<'de> for Reader<'_> {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object with one field")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        use $crate::wire::{NameSeed, Seed};
                        use $crate::malformed::Why;
                        let (at, names) = (self.0, &[$($word),+]);
                        let first = map.next_key_seed(NameSeed { at, names })?;
                        let value = match first {
                            $(Some($word) => $name::$variant(map.next_value_seed(Seed::new(at.field($word)))?),)+
                            _ => return Err(at.fail(Why::Missing)),
                        };
                        match map.next_key_seed(NameSeed { at, names })? {
                            None => Ok(value),
                            same if same == first => Err(at.fail(Why::Twice)),
                            Some(_) => Err(at.fail(Why::Expected("an object with one field"))),
                        }
                    }
                }

                let read = from.deserialize_map(Reader(at));
                read.inspect_err(|_| at.note($crate::malformed::Why::Expected("an object with one field")))
            }

            fn write_to<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = to.serialize_map(Some(1))?;
                match self {
                    $(Self::$variant(value) => map.serialize_entry($word, &$crate::wire::Out(value))?,)+
                }
                map.end()
            }

            #[cfg(feature = "describe")]
            fn describe(book: &mut $crate::describe::Book) -> String {
                book.choice(stringify!($name), &[$($doc),+], |book| {
                    vec![$($crate::describe::Field {
                        name: $word,
                        what: <$type as $crate::wire::Wire>::describe(book),
                        optional: false,
                        doc: &[$($case_doc),+],
                    }),+]
                })
            }

            #[cfg(feature = "describe")]
            fn make(dice: &mut $crate::describe::Dice<'_>) -> Self {
                let makers: &[fn(&mut $crate::describe::Dice<'_>) -> Self] =
                    &[$(|dice| Self::$variant(<$type as $crate::wire::Wire>::make(dice))),+];
                makers[dice.choice(makers.len())](dice)
            }
        }
    )+};
}

pub(crate) use {choices, objects, words};
