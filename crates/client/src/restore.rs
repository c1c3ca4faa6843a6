//! A server that lost an account, and a device that still has it.
//!
//! ```text
//! operator's code ─▶ new credentials for the same account key ─┬─ chats are there: their rings are put back, then sync
//!                                                               └─ they are not, or shall go: Device::put_back
//! ```
//!
//! The account key stays: the server never had it, so nothing that it lost tells about it. Everything that hangs on the
//! server's own keys is new: the password is stretched with another salt, and there is a new recovery code.
//!
//! Easy to get wrong: believing the server about which chats there are. A restored account is checked like any other; what
//! does not fit to this device's memory is refused until the person says otherwise ([`Device::put_back`]).

use confidant_chat_format::{ChatId, Login, Refused, RingOf};
use confidant_chat_protocol::{
    KeyEntry, List, MailboxPut, Restore, RestoreBegin, RestoreOffer, RestoreRings, RingKind, RingRows,
    RingsRestored, SessionOpened, Text,
};
use confidant_display::debug_without_content;

use crate::account::{first_list, take_session};
use crate::credential::{Credential, Link, Signing, read};
use crate::device::Device;
use crate::error::Error;
use crate::state::Session;

/// How a lost account is put back.
#[derive(Clone)]
pub struct Restoration {
    /// The login that it has from now on.
    pub login: Login,
    /// The credentials, the one that signs first. All others are gone.
    pub credentials: Vec<Credential>,
    /// The code that the operator made for this account.
    pub code: String,
    /// What becomes of chats that the server still has.
    pub rest: Rest,
}

debug_without_content!(Restoration { rest, credentials: credentials.len() });

/// What becomes of chats that the server still has of a lost account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// They stay. If they are of another account key than this device's: `conflict`, and nothing changed.
    Stays,
    /// They go, and what this device has takes their place.
    Goes,
}

/// What a restored account has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// What the server had: sync, after [`Device::restore_rings`].
    Kept,
    /// Nothing yet: send what this device has, with [`Device::put_back`].
    Empty,
}

/// Keys of chats that were put back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingsBack {
    /// How many chats the server can serve again.
    pub restored: u32,
    /// Chats whose keys are others there, or that are not there.
    pub refused: Vec<ChatId>,
}

impl Device {
    /// Puts the account back on a server that lost it or cannot open it any more, and opens a session.
    ///
    /// `login-refused`: the code is not good, or not for this account. `conflict`: the account is alive or was erased, or the
    /// server has chats of another account key ([`Rest::Stays`]). Cut off after the server did it, the code is used up: log in
    /// with the new credentials.
    pub async fn restore(&mut self, how: Restoration) -> Result<Restored, Error> {
        let mut book = self.state.book.clone().ok_or(Refused::AccountMissing)?;
        let link = Link { transport: self.setup.transport.clone(), session: None };
        let (id, ak) = (self.state.account.clone(), self.ak());
        let code = Text::new(how.code)?;
        let ask = RestoreBegin { account: id.clone(), login: how.login.clone(), code };
        let offer: RestoreOffer = link.post("/account/restore/begin", &ask).await?;
        let salt = Some(&offer.server_salt.0);
        let ready = how.credentials.iter().map(|credential| credential.signing(salt, offer.profile));
        let ready = ready.collect::<Result<Vec<Signing>, Error>>()?;
        let by = ready.first().ok_or(Refused::LoginRefused)?;
        // More than anybody has seen of this account: a wrap from before is older everywhere.
        let seen = self.state.wraps.values().copied().max().unwrap_or(0).max(self.state.account_rev);
        let account_rev = seen.max(offer.account_rev).checked_add(1).ok_or(Error::TooLarge)?;
        let credentials = ready.iter().map(|one| one.new_credential(&ak, &id, account_rev));
        let entries = |rows: Vec<_>| rows.into_iter().map(KeyEntry::try_from).collect::<Result<Vec<_>, _>>();
        let letters = entries(book.boxes.rows(&ak, &id, RingOf::Box))?.into_iter().zip(book.boxes.publics());
        let letters = letters.map(|(entry, box_pub)| MailboxPut { entry, box_pub }).collect();
        let ring = entries(book.keys.rows(&ak, &id, RingOf::Account))?;
        let is_kept = offer.generation > 0 && how.rest == Rest::Stays;
        let first = if is_kept {
            None
        } else {
            let held = book.keys.ring(&ak, &id, RingOf::Account)?;
            Some(first_list(&mut book, &held, &id, &self.state.device, self.now())?)
        };
        let request = Restore {
            account: id.clone(),
            login: how.login,
            account_rev,
            generation: ak.generation(),
            credentials: List::new(credentials.collect::<Result<_, _>>()?)?,
            ring: List::new(ring)?,
            mailbox: List::new(letters)?,
            first,
            device: self.state.device.clone(),
        };
        let signed = by.sign(&request, &link, offer.challenge)?;
        let (json, session) = link.raw("/account/restore", &signed).await?;
        let opened: SessionOpened = read(&json)?;
        if opened.account != id || opened.generation != ak.generation() {
            return Err(Error::Unexpected);
        }
        self.disconnect();
        // No credential of before is one now.
        self.state.wraps = ready.iter().map(|one| (one.name(), account_rev)).collect();
        self.state.seq = 0;
        take_session(&mut self.state, &opened, session)?;
        self.link.session = self.state.session.as_ref().map(Session::keys);
        self.save()?;
        Ok(if is_kept { Restored::Kept } else { Restored::Empty })
    }

    /// Gives the server the keys of chats back that it has lost, sealed as they were. Those that it has are left as they are.
    pub async fn restore_rings(&mut self, by: &Credential) -> Result<RingsBack, Error> {
        let by = self.link.ready(by).await?;
        let ak = self.ak();
        let mut rows = Vec::new();
        for (chat, room) in &self.rooms {
            let entries = room.rows(&ak, &self.state.account).into_iter().map(KeyEntry::try_from);
            let entries = List::new(entries.collect::<Result<Vec<_>, _>>()?)?;
            rows.push(RingRows { kind: RingKind::Chat, chat: Some(chat.clone()), entries });
        }
        let mut back = RingsBack::default();
        for part in rows.chunks(RINGS) {
            let request = RestoreRings { rings: List::new(part.to_vec())? };
            let answer: RingsRestored = self.link.prove("/account/restore/rings", &request, &by).await?;
            back.restored = back.restored.saturating_add(answer.restored);
            back.refused.extend(answer.refused.into_vec());
        }
        Ok(back)
    }

    /// When the newest of what this device has verified was written, in milliseconds since 1970.
    #[must_use]
    pub fn verified_at(&self) -> Option<u64> {
        let heads = self.rooms.values().map(|room| room.head.at);
        self.account.iter().map(|account| account.manifest().at).chain(heads).max()
    }
}

/// Rings in one request.
const RINGS: usize = 500;
