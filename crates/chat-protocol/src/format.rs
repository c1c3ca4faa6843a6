//! The ids, names and digests of the format, as values of the protocol.
//!
//! They have one spelling each, which `confidant-chat-format` checks; nothing is checked a second time here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_format::{
    AccountId, ChatId, CredentialId, DeviceId, Digest, EmbedId, FieldName, ItemId, Login, MessageId,
    PublicKey, Purpose, Shelf, SnapshotId, TurnId,
};
use confidant_seal::Kid;
use serde::{Deserializer, Serializer};

#[cfg(feature = "describe")]
use crate::describe::{Book, Dice};
use crate::lists::MapKey;
use crate::wire::{At, Wire, read_text};

/// Values that are texts: how they are read, written, described and made.
macro_rules! texts {
    ($($type:ty, $max:literal, $what:literal, $parse:expr, $show:expr, $make:expr);+ $(;)?) => {$(
        impl Wire for $type {
            fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
                let parse: fn(&str) -> Option<Self> = $parse;
                read_text(from, at, concat!("a valid ", $what), $max, parse)
            }

            fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let show: fn(&Self) -> String = $show;
                to.serialize_str(&show(self))
            }

            #[cfg(feature = "describe")]
            fn describe(_: &mut Book) -> String {
                $what.to_owned()
            }

            #[cfg(feature = "describe")]
            fn make(dice: &mut Dice<'_>) -> Self {
                let make: fn(&mut Dice<'_>) -> Self = $make;
                make(dice)
            }
        }
    )+};
}

macro_rules! ids {
    ($($type:ident, $what:literal);+ $(;)?) => {$(
        texts! {
            $type, 40, $what, |text| Self::parse(text).ok(), |id| id.as_str().to_owned(),
                |dice| Self::from_bits(&dice.bytes());
        }

        impl MapKey for $type {
            fn key(&self) -> &str {
                self.as_str()
            }
        }
    )+};
}

ids! {
    AccountId, "account id";
    ChatId, "chat id";
    CredentialId, "credential id";
    DeviceId, "device id";
    EmbedId, "embed id";
    MessageId, "message id";
    SnapshotId, "snapshot id";
    TurnId, "turn id";
}

texts! {
    FieldName, 64, "name", |text| Self::parse(text).ok(), |name| name.as_str().to_owned(),
        |dice| dice.pick(&["title", "icon", "settings"], |text| Self::parse(text).ok());
    ItemId, 70, "item: message id, embed id, or meta:name", |text| Self::parse(text).ok(), Self::to_string,
        |dice| match dice.choice(3) {
            0 => Self::Message(MessageId::make(dice)),
            1 => Self::Embed(EmbedId::make(dice)),
            _ => Self::Field(FieldName::make(dice)),
        };
    Login, 256, "login", |text| Self::parse(text).ok(), |login| login.as_str().to_owned(),
        |dice| dice.pick(&["ana@example.org", "b", "Zoë"], |text| Self::parse(text).ok());
    Kid, 16, "key id", |text| Self::from_hex(text).filter(|kid| kid.to_string() == text), Self::to_string,
        |dice| Self::from_bytes(dice.bytes());
    Digest, 43, "digest", |text| bytes_32(text).map(Self::from_bytes),
        |digest| URL_SAFE_NO_PAD.encode(digest.as_bytes()), |dice| Self::from_bytes(dice.bytes());
    PublicKey, 43, "public key", |text| bytes_32(text).map(Self::from_bytes),
        |key| URL_SAFE_NO_PAD.encode(key.as_bytes()), |dice| Self::from_bytes(dice.bytes());
    Shelf, 1, "shelf: a hexadecimal digit", |text| Self::all().find(|shelf| shelf.digit() == text),
        |shelf| shelf.digit().to_owned(), |dice| {
            let at = dice.choice(16);
            Self::all().nth(at).expect("there are sixteen")
        };
    Purpose, 16, "purpose: `login`, `change`, `export`, `erase`, `pair` or `restore`",
        |text| Self::ALL.into_iter().find(|purpose| purpose.name() == text), |purpose| purpose.name().to_owned(),
        |dice| Self::ALL[dice.choice(6)];
}

fn bytes_32(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}
