//! Why something was refused, by name.
//!
//! Owns the names, which are part of the protocol: a server sends them, a client shows words for them, a vector
//! expects them. Easy to get wrong: a new name. The list is closed; `docs/FORMAT.md` has it.

use std::fmt;

/// Why a client or a server refused. Carries no content, no id and no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refused {
    /// An id is not its prefix and 26 digits.
    BadId,
    /// The server asks for another way to stretch the password.
    KdfRefused,
    /// The login, the proof or the code is wrong.
    LoginRefused,
    /// The server has no account key to give.
    AccountMissing,
    /// A ring lacks an entry.
    RingGap,
    /// A ring has two entries with one number, or not the entry that a head names.
    RingForked,
    /// A key does not open, or is not the one it is called.
    KeyRefused,
    /// Something older than what this device has seen.
    RolledBack,
    /// A history that does not follow from the one this device has seen.
    Forked,
    /// Something that the account has was not sent.
    Withheld,
    /// A list is not the one that was sealed.
    ListRefused,
    /// A record does not open, or is not a record.
    RecordRefused,
    /// A message answers one that is not there.
    ParentMissing,
    /// A reply that was taken in before.
    Duplicate,
    /// Something that nobody on this side asked for.
    Unasked,
    /// The mailbox's public key is not the account's.
    BoxRefused,
    /// What came over while pairing does not open.
    PairRefused,
    /// Somebody else wrote first.
    Conflict,
    /// A request with two kinds of credentials.
    TwoCredentials,
}

impl Refused {
    /// Every one, in the order of the list.
    pub const ALL: [Self; 19] = [
        Self::BadId,
        Self::KdfRefused,
        Self::LoginRefused,
        Self::AccountMissing,
        Self::RingGap,
        Self::RingForked,
        Self::KeyRefused,
        Self::RolledBack,
        Self::Forked,
        Self::Withheld,
        Self::ListRefused,
        Self::RecordRefused,
        Self::ParentMissing,
        Self::Duplicate,
        Self::Unasked,
        Self::BoxRefused,
        Self::PairRefused,
        Self::Conflict,
        Self::TwoCredentials,
    ];

    /// The name that is sent.
    pub const fn name(self) -> &'static str {
        self.texts().0
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refused| refused.name() == name)
    }

    /// Its name, and what to tell a person.
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::BadId => ("bad-id", "an id is malformed; hint: use the id exactly as it was given"),
            Self::KdfRefused => (
                "kdf-refused",
                "the server asks for an unknown way to derive the key; hint: update this program, or do not log in there",
            ),
            Self::LoginRefused => (
                "login-refused",
                "the login was refused; hint: check the name, the password and the one-time code",
            ),
            Self::AccountMissing => (
                "account-missing",
                "the server sent no account key; hint: check the server's address; never make a new key for an old account",
            ),
            Self::RingGap => {
                ("ring-gap", "a key is missing from a list of keys; hint: ask the server's operator")
            }
            Self::RingForked => (
                "ring-forked",
                "the list of keys is not the one that was sealed; hint: compare with another device",
            ),
            Self::KeyRefused => {
                ("key-refused", "a key was refused; hint: log in again with a current credential")
            }
            Self::RolledBack => (
                "rolled-back",
                "the server sent something older than this device has seen; hint: ask its operator whether a backup was restored",
            ),
            Self::Forked => (
                "forked",
                "the server's history does not continue the one on this device; hint: compare with another device",
            ),
            Self::Withheld => (
                "withheld",
                "the server left something out; hint: load again; if the error stays, ask its operator",
            ),
            Self::ListRefused => (
                "list-refused",
                "a list is not the one that was sealed; hint: load again, then compare with another device",
            ),
            Self::RecordRefused => (
                "record-refused",
                "a record cannot be decrypted or is malformed, so it is not shown; hint: restore it from another device",
            ),
            Self::ParentMissing => {
                ("parent-missing", "a message answers one that is missing; hint: load the chat again")
            }
            Self::Duplicate => ("duplicate", "this reply is stored already; hint: nothing to do"),
            Self::Unasked => ("unasked", "this was not asked for and was dropped; hint: nothing to do"),
            Self::BoxRefused => (
                "box-refused",
                "the mailbox key is not the account's; hint: do not use this server until its operator explains",
            ),
            Self::PairRefused => ("pair-refused", "pairing failed; hint: start again on the new device"),
            Self::Conflict => ("conflict", "another device wrote first; hint: load again and repeat"),
            Self::TwoCredentials => {
                ("two-credentials", "the request has a cookie and a token; hint: send one of them")
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.texts().1)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use confidant_display::Hinted as _;

    use super::*;

    #[test]
    fn names_are_exactly_the_specified_ones() {
        let list = "bad-id kdf-refused login-refused account-missing ring-gap ring-forked key-refused rolled-back \
                    forked withheld list-refused record-refused parent-missing duplicate unasked box-refused \
                    pair-refused conflict two-credentials";
        assert_eq!(Refused::ALL.map(Refused::name).join(" "), list);
        for refused in Refused::ALL {
            assert_eq!(Refused::from_name(refused.name()), Some(refused));
            assert!(refused.hint().is_some(), "{refused:?} says what to do");
        }
        assert_eq!(Refused::from_name("other"), None);
    }
}
