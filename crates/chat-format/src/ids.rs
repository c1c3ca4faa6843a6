//! Ids and names, checked when made.
//!
//! An id is its prefix and 26 lower-case base32 digits of 128 random bits, in one spelling: the two spare bits of the
//! last digit are zero. A server learns nothing from an id but what kind of thing it names. Easy to get wrong:
//! comparing the bytes of two ids. Lists are sorted by text, whose order is another one.

use std::fmt;

use confidant_display::debug_without_content;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unicode_normalization::is_nfc;

use crate::bytes::{base32, from_base32, random};
use crate::error::Refused;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// A new one from the system's random generator.
            pub fn random() -> Self {
                Self::from_bits(&random())
            }

            /// The one with these 128 bits.
            pub fn from_bits(bits: &[u8; 16]) -> Self {
                Self(format!(concat!($prefix, "_{}"), base32(bits)))
            }

            /// Reads its text; any other spelling is `bad-id`.
            pub fn parse(text: &str) -> Result<Self, Refused> {
                let digits = text.strip_prefix(concat!($prefix, "_")).ok_or(Refused::BadId)?;
                from_base32::<16>(digits).ok_or(Refused::BadId)?;
                Ok(Self(text.to_owned()))
            }

            /// Its text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        text_form!($name);
    )+};
}

macro_rules! text_form {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }

        debug_without_content!($name(..));
    };
}

ids! {
    /// A person's account.
    AccountId "acct",
    /// A chat.
    ChatId "chat",
    /// A credential that is not a password: a passkey or a recovery code.
    CredentialId "cred",
    /// A device that writes.
    DeviceId "dev",
    /// Something that a message shows: a picture, a file, a table.
    EmbedId "emb",
    /// A message; a reply has its id before it has its words.
    MessageId "msg",
    /// A snapshot of a chat, which was shared.
    SnapshotId "snap",
    /// A question to the server, until it is answered.
    TurnId "turn",
}

/// The name of a chat's field (`title`), or of a piece of account data.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldName(String);

impl FieldName {
    /// `[a-z][a-z0-9_-]*`, at most 64 bytes; else `bad-id`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let tail = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
        match text.as_bytes() {
            [b'a'..=b'z', rest @ ..] if rest.len() < 64 && rest.iter().copied().all(tail) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(Refused::BadId),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_form!(FieldName);

/// What a person logs in as. One spelling: NFC, 1 to 256 bytes, no control characters, and not like a credential's id,
/// which stands in the same place of a proof.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Login(String);

impl Login {
    /// Checks it; else `login-refused`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let fine = (1..=256).contains(&text.len())
            && is_nfc(text)
            && !text.chars().any(char::is_control)
            && !text.starts_with("cred_");
        if fine { Ok(Self(text.to_owned())) } else { Err(Refused::LoginRefused) }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

debug_without_content!(Login(..));

/// Where a page comes from, as a browser spells it: `https://chat.example`. Proofs and pairings are bound to it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Origin(String);

impl Origin {
    /// `http://` or `https://`, then a host and perhaps a port, in lower-case ASCII; else `login-refused`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let part = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"-.:[]".contains(&c);
        match host {
            Some(host) if (1..=300).contains(&host.len()) && host.bytes().all(part) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(Refused::LoginRefused),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

debug_without_content!(Origin(..));

/// What a chat's list names: an embed, a field or a message. Ordered as the texts are.
// The order of the variants is that of "emb_", "meta:" and "msg_".
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemId {
    /// An embed.
    Embed(EmbedId),
    /// A field of the chat, `meta:` and its name.
    Field(FieldName),
    /// A message.
    Message(MessageId),
}

impl ItemId {
    /// Reads its text; any other is `bad-id`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        match text.strip_prefix("meta:") {
            Some(name) => FieldName::parse(name).map(Self::Field),
            None => {
                EmbedId::parse(text).map(Self::Embed).or_else(|_| MessageId::parse(text).map(Self::Message))
            }
        }
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embed(id) => id.fmt(f),
            Self::Field(name) => write!(f, "meta:{name}"),
            Self::Message(id) => id.fmt(f),
        }
    }
}

debug_without_content!(ItemId(..));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = ChatId::from_bits(&[0xff; 16]);
        assert_eq!(id.as_str(), "chat_7777777777777777777777777 4".replace(' ', ""));
        assert_eq!(ChatId::parse(id.as_str()), Ok(id.clone()));
        let text = id.as_str();
        for bad in [
            text.to_uppercase(),
            text.replace("chat", "msg"),
            format!("{text}a"),
            text[..text.len() - 1].to_owned(),
            format!("{}5", &text[..text.len() - 1]),
            text.replace('_', ""),
            text.replace('7', "1"),
            String::new(),
        ] {
            assert_eq!(ChatId::parse(&bad), Err(Refused::BadId), "{bad}");
        }
        assert_ne!(ChatId::random(), ChatId::random());
        assert_eq!(format!("{id:?}"), "ChatId(..)");
    }

    #[test]
    fn items_are_ordered_as_their_texts() {
        let mut items = vec![
            ItemId::Message(MessageId::from_bits(&[0; 16])),
            ItemId::Message(MessageId::from_bits(&[0xff; 16])),
            ItemId::Field(FieldName::parse("title").unwrap()),
            ItemId::Field(FieldName::parse("icon").unwrap()),
            ItemId::Embed(EmbedId::from_bits(&[7; 16])),
        ];
        for item in &items {
            assert_eq!(ItemId::parse(&item.to_string()), Ok(item.clone()));
        }
        let mut texts: Vec<_> = items.iter().map(ItemId::to_string).collect();
        items.sort();
        texts.sort();
        assert_eq!(items.iter().map(ItemId::to_string).collect::<Vec<_>>(), texts);
        assert_eq!(ItemId::parse("meta:"), Err(Refused::BadId));
        assert_eq!(ItemId::parse("meta:Title"), Err(Refused::BadId));
    }

    #[test]
    fn logins_and_origins_have_one_spelling() {
        assert!(Login::parse("ana@example.org").is_ok());
        for bad in ["", "e\u{301}", "a\n", "cred_x", &"a".repeat(257)] {
            assert_eq!(Login::parse(bad), Err(Refused::LoginRefused), "{bad}");
        }
        assert!(Origin::parse("https://chat.example:8443").is_ok());
        for bad in ["", "https://", "ftp://x", "https://Chat.example", "https://chat.example/", "https://a b"]
        {
            assert_eq!(Origin::parse(bad), Err(Refused::LoginRefused), "{bad}");
        }
    }
}
