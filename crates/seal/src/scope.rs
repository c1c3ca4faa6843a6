//! Whose memory this is.
//!
//! Owns the ids of a conversation, the [`Scope`] they make, its one canonical byte form (keys and associated
//! data use it) and its one readable session id. Leaves to others where ids come from: the tenant is the
//! caller's token's, never the request's. Easy to get wrong: comparing ids that are not in the same Unicode
//! normal form. Every id here is NFC from birth, so equal means equal.

use std::sync::Arc;

use confidant_display::debug_without_content;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The people and places of one memory: tenant, channel, user, and (unless it follows the person alone) place
/// and thread. Raw ids are personal data, so `Debug` prints stars.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    tenant: TenantId,
    channel: ChannelName,
    keyed: Keyed,
    user: UserId,
}

/// What besides tenant, channel and user a memory is keyed by.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Keyed {
    /// One memory per room and thread.
    Place(PlaceId, ThreadId),
    /// One memory that follows the person from room to room.
    Person,
}

impl Scope {
    /// The memory of `user` in one thread of one place.
    pub fn place(
        tenant: TenantId,
        channel: ChannelName,
        place: PlaceId,
        thread: ThreadId,
        user: UserId,
    ) -> Self {
        Self { tenant, channel, keyed: Keyed::Place(place, thread), user }
    }

    /// The memory of `user` wherever they speak on this channel.
    pub fn person(tenant: TenantId, channel: ChannelName, user: UserId) -> Self {
        Self { tenant, channel, keyed: Keyed::Person, user }
    }

    /// Reads a session id back. Strict: only the exact text that [`Scope::session_id`] prints is accepted, so
    /// that no two spellings name one memory. Names that only Confidant uses are refused, as by [`ChannelName::new`].
    pub fn parse(tenant: TenantId, session_id: &str) -> Result<Self, ScopeError> {
        let scope = Self::parse_any(tenant, session_id)?;
        ChannelName::new(scope.channel.as_str())?;
        UserId::new(scope.user.as_str())?;
        Ok(scope)
    }

    /// The same, also for names that only Confidant uses. Not for what somebody else has sent.
    pub fn parse_any(tenant: TenantId, session_id: &str) -> Result<Self, ScopeError> {
        let scope = if session_id.starts_with('!') {
            parse_matrix(tenant, session_id)?
        } else {
            parse_encoded(tenant, session_id)?
        };
        if scope.session_id() == session_id { Ok(scope) } else { Err(ScopeError::NotAsPrinted) }
    }

    /// Reads the canonical bytes back; anything but what [`Scope::canonical`] writes is refused.
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, ScopeError> {
        let [CANONICAL_VERSION, kind, rest @ ..] = bytes else { return Err(ScopeError::Canonical) };
        let mut rest = rest;
        let tenant = TenantId::exact(take_part(&mut rest)?)?;
        let channel = ChannelName::exact(take_part(&mut rest)?)?;
        let keyed = match *kind {
            KIND_PLACE => {
                Keyed::Place(PlaceId::exact(take_part(&mut rest)?)?, ThreadId::exact(take_part(&mut rest)?)?)
            }
            KIND_PERSON => Keyed::Person,
            _ => return Err(ScopeError::Canonical),
        };
        let user = UserId::exact(take_part(&mut rest)?)?;
        if rest.is_empty() { Ok(Self { tenant, channel, keyed, user }) } else { Err(ScopeError::Canonical) }
    }

    /// Whose installation or customer this memory belongs to.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The channel the person speaks on.
    pub fn channel(&self) -> &ChannelName {
        &self.channel
    }

    /// The person.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// The room, or `None` for a memory keyed by person alone.
    pub fn place_id(&self) -> Option<&PlaceId> {
        match &self.keyed {
            Keyed::Place(place, _) => Some(place),
            Keyed::Person => None,
        }
    }

    /// The thread, or `None` for a memory keyed by person alone.
    pub fn thread(&self) -> Option<&ThreadId> {
        match &self.keyed {
            Keyed::Place(_, thread) => Some(thread),
            Keyed::Person => None,
        }
    }

    /// Whether this memory is keyed by person alone.
    pub fn is_person(&self) -> bool {
        matches!(self.keyed, Keyed::Person)
    }

    /// The one byte form: version, kind, then each part with its length in front. Two scopes never share it.
    pub fn canonical(&self) -> Vec<u8> {
        let kind = if self.is_person() { KIND_PERSON } else { KIND_PLACE };
        let mut out = vec![CANONICAL_VERSION, kind];
        let mut put = |part: &str| {
            let len =
                u16::try_from(part.len()).expect("every part is at most 512 bytes, checked when it was made");
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(part.as_bytes());
        };
        put(self.tenant.as_str());
        put(self.channel.as_str());
        if let Keyed::Place(place, thread) = &self.keyed {
            put(place.as_str());
            put(thread.as_str());
        }
        put(self.user.as_str());
        out
    }

    /// The readable name of this memory within its tenant. [`Scope::parse`] undoes it.
    pub fn session_id(&self) -> String {
        let (channel, user) = (self.channel.as_str(), self.user.as_str());
        match &self.keyed {
            Keyed::Person => format!("{channel}{PERSON_SUFFIX}:{}", encode(user)),
            Keyed::Place(place, thread) if self.fits_matrix() => {
                format!("{}:{}:{user}", place.as_str(), thread.as_str())
            }
            Keyed::Place(place, thread) => {
                format!("{channel}:{}:{}:{}", encode(place.as_str()), encode(thread.as_str()), encode(user))
            }
        }
    }

    /// Whether the sigils of Matrix ids make `{room}:{thread}:{user}` parse one way only. The `:` before the
    /// user is then the only one followed by `@`, and the one before an event id the only one followed by `$`.
    fn fits_matrix(&self) -> bool {
        let Keyed::Place(place, thread) = &self.keyed else { return false };
        let (place, thread, user) = (place.as_str(), thread.as_str(), self.user.as_str());
        self.channel.as_str() == MATRIX
            && place.starts_with('!')
            && (thread == MAIN_THREAD || thread.starts_with('$'))
            && user.starts_with('@')
            && [place, thread, user].iter().all(|part| !part.contains(":@") && !part.contains(":$"))
    }
}

debug_without_content!(Scope(***));

/// Why an id, a session id or a scope's bytes were refused. Never quotes what was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// An id without a character.
    #[error("the {part} is empty; give it at least one character")]
    Empty {
        /// Which id.
        part: &'static str,
    },
    /// An id past its limit.
    #[error("the {part} is longer than {limit} bytes; use a shorter one")]
    TooLong {
        /// Which id.
        part: &'static str,
        /// The most bytes it may have, in UTF-8 and NFC.
        limit: usize,
    },
    /// A line break, NUL or the like inside an id.
    #[error("the {part} holds a control character; remove it")]
    ControlCharacter {
        /// Which id.
        part: &'static str,
    },
    /// A name that only Confidant uses.
    #[error("the {part} is one that Confidant keeps for chats that only their owner can open; use another")]
    Reserved {
        /// Which id.
        part: &'static str,
    },
    /// A channel name of other characters.
    #[error("the channel name is not a lower-case word; use a letter a-z, then letters, digits, `_` or `-`")]
    ChannelName,
    /// A session id that no channel prints.
    #[error(
        "the session id has no known form; use `room:thread:user` for Matrix, `channel_conv:user` or \
         `channel:place:thread:user`"
    )]
    UnknownForm,
    /// A percent sign that does not stand for `%` or `:`.
    #[error("the session id holds an unknown escape; inside a part write `%25` for `%` and `%3A` for `:`")]
    Escape,
    /// A second spelling of a session id that has another.
    #[error("the session id is not spelled as Confidant prints it; use the printed id unchanged")]
    NotAsPrinted,
    /// Bytes that are not a canonical scope.
    #[error("the bytes are not a canonical scope; use the ones Confidant wrote, unchanged")]
    Canonical,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident::$new:ident, $part:literal, $rule:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Normalises the text to NFC and checks it.
            pub fn $new(text: &str) -> Result<Self, ScopeError> {
                $rule($part, text).map(Self)
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The same, but refuses text that normalising would change.
            fn exact(text: &str) -> Result<Self, ScopeError> {
                let id = Self::$new(text)?;
                if id.as_str() == text { Ok(id) } else { Err(ScopeError::Canonical) }
            }
        }

        debug_without_content!($name(***));
    };
}

id!(
    /// A customer or installation; from the caller's token, never from a request.
    TenantId::new, "tenant", checked_text
);
id!(
    /// A way to talk to the agent: `matrix`, `discord`, … [`ChannelName::any`] also takes those of Confidant's own, and is not
    /// for what somebody else has sent.
    ChannelName::any, "channel name", checked_channel
);
id!(
    /// A room, server channel or chat.
    PlaceId::new, "place", checked_text
);
id!(
    /// A thread inside a place; `main` outside of any.
    ThreadId::new, "thread", checked_text
);
id!(
    /// A person, as the channel names them. [`UserId::any`] also takes accounts, and is not for what somebody else has sent.
    UserId::any, "user", checked_text
);

impl ChannelName {
    /// A channel. Those of Confidant's own are refused: chats that only their owner can open, the keys of these, and those of
    /// conversations.
    pub fn new(text: &str) -> Result<Self, ScopeError> {
        let reserved = ["web", "accounts", "concepts"].contains(&text);
        if reserved { Err(ScopeError::Reserved { part: "channel name" }) } else { Self::any(text) }
    }
}

impl UserId {
    /// A person. Ids of accounts are refused, since Confidant makes them: whoever else could call themself by one would be that
    /// person, on every channel.
    pub fn new(text: &str) -> Result<Self, ScopeError> {
        let user = Self::any(text)?;
        if user.as_str().starts_with("acct_") { Err(ScopeError::Reserved { part: "user" }) } else { Ok(user) }
    }
}

fn checked_text(part: &'static str, text: &str) -> Result<Arc<str>, ScopeError> {
    // NFC shrinks text to no less than a third, so what is refused here unread could not have fitted.
    if text.len() > 4 * MAX_ID {
        return Err(ScopeError::TooLong { part, limit: MAX_ID });
    }
    let text: Arc<str> = if is_nfc(text) { text.into() } else { text.nfc().collect::<String>().into() };
    if text.is_empty() {
        Err(ScopeError::Empty { part })
    } else if text.len() > MAX_ID {
        Err(ScopeError::TooLong { part, limit: MAX_ID })
    } else if text.chars().any(char::is_control) {
        Err(ScopeError::ControlCharacter { part })
    } else {
        Ok(text)
    }
}

fn checked_channel(part: &'static str, text: &str) -> Result<Arc<str>, ScopeError> {
    if text.is_empty() {
        return Err(ScopeError::Empty { part });
    }
    if text.len() > MAX_CHANNEL {
        return Err(ScopeError::TooLong { part, limit: MAX_CHANNEL });
    }
    let word = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
    if text.as_bytes()[0].is_ascii_lowercase() && text.bytes().all(word) {
        Ok(text.into())
    } else {
        Err(ScopeError::ChannelName)
    }
}

/// `{room}:{main|$event}:{@user}`, split where the sigils say.
fn parse_matrix(tenant: TenantId, session_id: &str) -> Result<Scope, ScopeError> {
    let at = session_id.find(":@").ok_or(ScopeError::UnknownForm)?;
    let (front, user) = (&session_id[..at], &session_id[at + 1..]);
    let (place, thread) = match front.find(":$") {
        Some(at) => (&front[..at], &front[at + 1..]),
        None => (front.strip_suffix(":main").ok_or(ScopeError::UnknownForm)?, MAIN_THREAD),
    };
    Ok(Scope::place(
        tenant,
        ChannelName::any(MATRIX)?,
        PlaceId::new(place)?,
        ThreadId::new(thread)?,
        UserId::any(user)?,
    ))
}

/// `{channel}_conv:{user}` has one colon and `{channel}:{place}:{thread}:{user}` three, because parts escape theirs.
fn parse_encoded(tenant: TenantId, session_id: &str) -> Result<Scope, ScopeError> {
    let mut parts = session_id.split(':');
    match [(); 5].map(|()| parts.next()) {
        [Some(head), Some(user), None, ..] => {
            let channel = head.strip_suffix(PERSON_SUFFIX).ok_or(ScopeError::UnknownForm)?;
            Ok(Scope::person(tenant, ChannelName::any(channel)?, UserId::any(&decode(user)?)?))
        }
        [Some(channel), Some(place), Some(thread), Some(user), None] => Ok(Scope::place(
            tenant,
            ChannelName::any(channel)?,
            PlaceId::new(&decode(place)?)?,
            ThreadId::new(&decode(thread)?)?,
            UserId::any(&decode(user)?)?,
        )),
        _ => Err(ScopeError::UnknownForm),
    }
}

fn encode(part: &str) -> String {
    part.replace('%', "%25").replace(':', "%3A")
}

fn decode(part: &str) -> Result<String, ScopeError> {
    let mut pieces = part.split('%');
    let mut out = String::from(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (sign, rest) = match (piece.strip_prefix("25"), piece.strip_prefix("3A")) {
            (Some(rest), _) => ('%', rest),
            (_, Some(rest)) => (':', rest),
            _ => return Err(ScopeError::Escape),
        };
        out.push(sign);
        out.push_str(rest);
    }
    Ok(out)
}

fn take_part<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, ScopeError> {
    let (len, rest) = bytes.split_first_chunk::<2>().ok_or(ScopeError::Canonical)?;
    let (part, rest) =
        rest.split_at_checked(usize::from(u16::from_be_bytes(*len))).ok_or(ScopeError::Canonical)?;
    *bytes = rest;
    std::str::from_utf8(part).map_err(|_| ScopeError::Canonical)
}

const CANONICAL_VERSION: u8 = 1;
const KIND_PLACE: u8 = 1;
const KIND_PERSON: u8 = 2;
/// The most bytes of an id; Matrix allows 255, others are shorter.
const MAX_ID: usize = 512;
const MAX_CHANNEL: usize = 64;
const MATRIX: &str = "matrix";
const MAIN_THREAD: &str = "main";
const PERSON_SUFFIX: &str = "_conv";

#[cfg(test)]
mod tests;
