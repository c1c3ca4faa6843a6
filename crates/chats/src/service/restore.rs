//! An account that the server lost, put back by a device of its owner.
//!
//! ```text
//! operator: a code for one account, which is gone or does not open ──▶ person
//! device:   begin (code) ─▶ salt, challenge, what is left ─▶ new credentials, rings, [empty list] ─▶ session
//!           then: rings of chats whose keys are lost; what only the device has, by ordinary writes
//! ```
//!
//! Once the keyring is lost, nothing here can tell whose an account was: records, wraps and rings are sealed under lost keys,
//! and logins are tagged with one. So the operator says it, by giving the code to somebody. What the code is worth:
//!
//! - It is good once, for one account, and only while that account is gone or does not open. An account that is alive is
//!   `conflict`: no code takes it over. One that was erased stays erased.
//! - It opens nothing. Whoever has the code and not the account key makes an account that no other device of the person
//!   believes: nothing there opens under the key that they have.
//! - It is used up by the transaction that puts the account back. Cut off before, it is still good; cut off after, the person
//!   logs in with the new password.
//!
//! Easy to get wrong: throwing the account's key away when the store refuses. Somebody else may have put the account back
//! under the same key meanwhile.

use std::time::Duration;

use confidant_chat_format::{AccountId, Digest, Entry, PROFILE, Refused};
use confidant_chat_protocol::{
    Body as _, List, LogoutReason, RefusedSent, Restore, RestoreBegin, RestoreOffer, RestoreRings, RingKind,
    RingRows, RingsRestored, Signed,
};
use confidant_seal::{Key, Tag};
use zeroize::Zeroizing;

use super::credentials::{check_set, taken};
use super::hub::SessionFilter;
use super::identity::{Known, Proven, is_signer};
use super::login::On;
use super::record::{AccountRecord, Credential};
use super::refusals::{Answer, conflict, login_refused, malformed};
use super::register::code_key;
use super::rows::{open_entry, seal_entry};
use super::witness::Act;
use super::{Answered, Caller, Inner, Service, random};
use crate::store::{
    AccountRow, Code, CodeKind, ManifestPut, Rest, RestoreAccount, RingEntry, RingName, StoreError,
};

/// What there is of an account, for whoever wants to put it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It opens: its owner can log in.
    Alive,
    /// It was erased, and stays so.
    Erased,
    /// It is there and does not open: its key is lost, or its record is damaged.
    Locked,
    /// There is nothing of it.
    Missing,
}

impl Service {
    /// What there is of an account.
    pub async fn find_account(&self, account: &AccountId) -> Result<Found, RefusedSent> {
        Ok(self.inner.left_of(account).await?.0)
    }

    /// A code that lets a device put this account back, good once and for this long. Refused with `conflict` for one that is
    /// alive, and for one that was erased.
    pub async fn restore_code(
        &self,
        account: &AccountId,
        valid: Duration,
    ) -> Result<Zeroizing<String>, RefusedSent> {
        let this = &*self.inner;
        this.lost(account).await?;
        let code = Zeroizing::new(hex::encode(random::<16>().as_slice()));
        let (key, expires_at) = (code_key(&code), this.now().plus(valid));
        let carries = this.restore_tag(account).as_bytes().to_vec();
        this.store
            .issue(Code { kind: CodeKind::Restore, key, account: None, login: None, carries, expires_at })
            .await?;
        Ok(code)
    }
}

impl Inner {
    /// What a code for an account carries: the account may have no row, and a row must not name one that is gone.
    fn restore_tag(&self, account: &AccountId) -> Tag {
        self.vault.tag("restore", account.as_str().as_bytes())
    }

    async fn left_of(&self, account: &AccountId) -> Answer<(Found, Option<AccountRow>)> {
        if self.vault.was_destroyed(account).await? {
            return Ok((Found::Erased, None));
        }
        let row = match self.store.account(account).await {
            Err(StoreError::NotFound) => return Ok((Found::Missing, None)),
            row => row?,
        };
        if self.store.erasing().await?.contains(account) {
            return Ok((Found::Erased, None));
        }
        let opens = match self.vault.key(account, None).await? {
            Some(key) => AccountRecord::open(&key, account, &row).is_ok(),
            None => false,
        };
        Ok((if opens { Found::Alive } else { Found::Locked }, Some(row)))
    }

    /// What is left of an account that may be put back; else `conflict`.
    async fn lost(&self, account: &AccountId) -> Answer<Option<AccountRow>> {
        match self.left_of(account).await? {
            (Found::Locked | Found::Missing, row) => Ok(row),
            (Found::Alive | Found::Erased, _) => Err(conflict()),
        }
    }

    /// Whether a code is good for this account now.
    async fn is_good(&self, code: Digest, account: &AccountId) -> Answer<bool> {
        let found = self.store.peek(CodeKind::Restore, code, self.now()).await?;
        Ok(found.is_some_and(|found| found.carries == self.restore_tag(account).as_bytes()))
    }

    pub(crate) async fn begin_restore(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        self.admit(caller)?;
        let request = RestoreBegin::read(body)?;
        let code = code_key(request.code.as_str());
        if !self.is_good(code, &request.account).await? {
            return Err(login_refused());
        }
        let row = self.lost(&request.account).await?;
        let seen = self.vault.anchor(&request.account).await?;
        let grant = Grant { account: request.account, login: self.login_tag(&request.login), code };
        let challenge = self.new_challenge(grant.to_bytes(), Some(grant.login)).await?;
        Answered::json(&RestoreOffer {
            profile: PROFILE,
            server_salt: self.server_salt(&request.login),
            challenge,
            account_rev: row.as_ref().map_or(0, |row| row.rev).max(seen),
            generation: row.as_ref().map_or(0, |row| row.generation),
        })
    }

    pub(crate) async fn restore(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        self.admit(caller)?;
        let signed = Signed::read(body)?;
        // The key that signs is inside, as it is when somebody registers.
        let request: Restore = signed.request()?;
        let carried = self.use_challenge(&signed.challenge).await?;
        let grant = carried.as_deref().and_then(Grant::from_bytes).ok_or_else(login_refused)?;
        if grant.account != request.account || grant.login != self.login_tag(&request.login) {
            return Err(login_refused());
        }
        let credentials = taken(&request.credentials, request.account_rev)?;
        check_set(&credentials)?;
        let by =
            credentials.iter().find(|one| is_signer(one, signed.signer.signer(), &request.login)).cloned();
        let public_key = by.as_ref().map(|credential| &credential.public_key);
        signed.statement::<Restore>(&caller.origin).verify(public_key, &signed.proof.0)?;
        let by = by.ok_or_else(login_refused)?;
        if !self.is_good(grant.code, &grant.account).await? {
            return Err(login_refused());
        }
        let (account, device) = (request.account.clone(), request.device.clone());
        let room = self.hub.room(&account);
        let turn = room.turn().await;
        let row = self.lost(&account).await?;
        // Nobody's memory of this account may be newer than what it is from now on.
        let newest = row.as_ref().map_or(0, |row| row.rev).max(self.vault.anchor(&account).await?);
        if request.account_rev <= newest {
            return Err(conflict());
        }
        let key = self.vault.key_or_new(&account, None).await?;
        let replaces = row.as_ref().map(|row| Digest::of(row.record.as_bytes()));
        let put_back = self.put_back(&key, request, credentials, grant, replaces)?;
        let rev = put_back.rev;
        match self.store.restore(put_back).await {
            // A login that somebody else has, as when they register. Whether it is that or a race is not told.
            Err(StoreError::Conflict { .. }) => return Err(conflict()),
            restored => restored?,
        }
        self.hub.end(&account, &SessionFilter::All, LogoutReason::Changed);
        drop(turn);
        // An erasure may have come between the look and the transaction: it wins.
        if self.vault.was_destroyed(&account).await? {
            self.store.mark_erasing(&account).await?;
            self.finish_erasure(&account).await?;
            return Err(conflict());
        }
        self.vault.raise(&account, rev).await?;
        self.forget_ahead(&account, None).await;
        self.witness(&account, Act::Restored).await;
        let row = self.store.account(&account).await?;
        let (opened, cookie) =
            self.begin_session(&account, &row, &key, On::New(device), Some(by.wrap)).await?;
        Ok(Answered::json(&opened)?.with(cookie))
    }

    fn put_back(
        &self,
        key: &Key,
        request: Restore,
        credentials: Vec<Credential>,
        grant: Grant,
        replaces: Option<Digest>,
    ) -> Answer<RestoreAccount> {
        let account = request.account;
        // Entries of two account keys are never mixed.
        let mut sealed = request.ring.iter().chain(request.mailbox.iter().map(|new| &new.entry));
        let wrap = request.ring.first().map(|entry| entry.sealed.kid());
        if sealed.any(|entry| Some(entry.sealed.kid()) != wrap || entry.sealed.rev() != request.generation) {
            return Err(Refused::KeyRefused.into());
        }
        let own = request.ring.into_vec().into_iter();
        let own = own.map(|entry| seal_entry(key, &account, RingName::Account, entry.into(), None));
        let letters = request.mailbox.into_vec().into_iter();
        let letters =
            letters.map(|new| seal_entry(key, &account, RingName::Box, new.entry.into(), Some(&new.box_pub)));
        let rings: Vec<RingEntry> = own.chain(letters).collect();
        let rest = match request.first {
            None => Rest::Stays,
            Some(first) => {
                let floors = first.floors.into_vec().into_iter().map(|floor| floor.into_sealed()).collect();
                let manifest = ManifestPut {
                    expected: 0,
                    envelope: first.manifest.envelope.into_sealed(),
                    live: first.manifest.live,
                    chain: first.manifest.chain,
                };
                Rest::Anew(floors, manifest)
            }
        };
        let tags = self.tags(&credentials);
        let record = AccountRecord { login: request.login, credentials, totp: None };
        Ok(RestoreAccount {
            replaces,
            login: grant.login,
            credentials: tags,
            record: record.seal(key, &account, request.account_rev),
            rev: request.account_rev,
            generation: request.generation,
            rings,
            rest,
            code: grant.code,
            carries: self.restore_tag(&account).as_bytes().to_vec(),
            now: self.now(),
            account,
        })
    }

    /// Seals rings of chats anew whose keys were lost. A ring that opens is left as it is, so that nobody can replace one.
    pub(crate) async fn restore_rings(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, request, .. } = self.proven::<RestoreRings>(caller, body).await?;
        let room = self.hub.room(&known.account);
        let _turn = room.turn().await;
        let (mut restored, mut refused) = (0_u32, Vec::new());
        for rows in request.rings.into_vec() {
            let (RingKind::Chat, Some(chat)) = (rows.kind, rows.chat.clone()) else {
                return Err(malformed("only rings of chats are put back by themselves"));
            };
            match self.restore_ring(&known, &RingName::Chat(chat.clone()), rows).await {
                Ok(is_new) => restored += u32::from(is_new),
                Err(error) if matches!(error.error.status(), 404 | 409 | 422) => refused.push(chat),
                Err(error) => return Err(error),
            }
        }
        if restored > 0 {
            self.witness(&known.account, Act::Restored).await;
            self.publish_account(&known.account).await?;
        }
        Answered::json(&RingsRestored { restored, refused: List::new(refused)? })
    }

    /// Whether the ring was lost, and is there again.
    async fn restore_ring(&self, known: &Known, of: &RingName, rows: RingRows) -> Answer<bool> {
        let (account, RingName::Chat(chat)) = (&known.account, of) else { return Ok(false) };
        let there = self.store.ring(account, of).await?;
        if there.is_empty() {
            return Err(StoreError::NotFound.into());
        }
        if let Some(key) = self.vault.key(account, Some(chat)).await? {
            let opens = |entry: &Entry| open_entry(&key, account, of, entry.clone()).is_ok();
            if there.iter().all(opens) {
                return Ok(false);
            }
        }
        let entries = rows.entries.into_vec();
        let wrap = entries.first().map(|entry| entry.sealed.kid());
        let is_its = |entry: &confidant_chat_protocol::KeyEntry| {
            Some(entry.sealed.kid()) == wrap && entry.sealed.rev() == known.row.generation
        };
        if !entries.iter().all(is_its) {
            return Err(conflict());
        }
        let key = self.vault.key_or_new(account, Some(chat)).await?;
        let sealed =
            entries.into_iter().map(|entry| seal_entry(&key, account, of.clone(), entry.into(), None));
        self.store.reseal(account, of, sealed.map(|row| row.entry).collect()).await?;
        Ok(true)
    }
}

/// What the challenge of a restore carries.
#[derive(Debug, PartialEq, Eq)]
struct Grant {
    account: AccountId,
    login: Tag,
    code: Digest,
}

impl Grant {
    /// `"put back" ‖ login's tag ‖ code ‖ account id`. No purpose of a proof begins like it, and no registration.
    fn to_bytes(&self) -> Vec<u8> {
        [MARK, self.login.as_bytes(), self.code.as_bytes(), self.account.as_str().as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (login, rest) = bytes.strip_prefix(MARK)?.split_first_chunk::<16>()?;
        let (code, account) = rest.split_first_chunk::<32>()?;
        let account = AccountId::parse(std::str::from_utf8(account).ok()?).ok()?;
        Some(Self { account, login: Tag::from_bytes(*login), code: Digest::from_bytes(*code) })
    }
}

const MARK: &[u8] = b"put back";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_read_as_it_was_made() {
        let grant = Grant {
            account: AccountId::random(),
            login: Tag::from_bytes([7; 16]),
            code: Digest::of(b"code"),
        };
        let bytes = grant.to_bytes();
        assert_eq!(Grant::from_bytes(&bytes), Some(grant));
        assert_eq!(Grant::from_bytes(&bytes[1..]), None);
        assert_eq!(Grant::from_bytes(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Grant::from_bytes(b"restore"), None);
    }
}
