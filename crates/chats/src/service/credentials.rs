//! Listing and changing credentials, and replacing a lost password by the recovery code.
//!
//! Both changes are one compare-and-set on the account's revision. Removing a credential is a rotation: whoever held it knows the
//! account key.

use confidant_chat_format::{AccountId, Digest};
use confidant_chat_protocol::{
    AccountChanged, AccountUpdated, Body as _, ChangeCredentials, CredentialKind, CredentialLine,
    CredentialList, List, LogoutReason, NewCredential, Recover, RequestCredentials, ServerEvent, ServerFrame,
    limits,
};
use confidant_seal::{Suite, Tag};

use super::hub::SessionFilter;
use super::identity::{Known, Proven};
use super::record::{AccountRecord, Credential};
use super::refusals::{Answer, conflict, login_refused, malformed};
use super::witness::Act;
use super::{Answered, Caller, Inner, totp};
use crate::store::{ChangeAccount, HaveList, OtherSessions, StoreError};
use confidant_chat_format::Refused;

impl Inner {
    /// The ways to log in, by kind and id. What they are called only devices can read.
    pub(crate) async fn list_credentials(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let _: RequestCredentials = RequestCredentials::read(body)?;
        let session = self.session(caller).await?;
        let record = self.known(&session.account).await?.record;
        let lines = record.credentials.iter();
        let lines = lines.map(|one| CredentialLine { kind: one.kind, id: one.id.clone() });
        let credentials = List::new(lines.collect())?;
        Answered::json(&CredentialList { credentials, totp: record.totp.is_some() })
    }

    pub(crate) async fn change_credentials(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, request, .. } = self.proven::<ChangeCredentials>(caller, body).await?;
        let rev = next_rev(&known, request.account_rev)?;
        let mut record = known.record.clone();
        for credential in taken(&request.credentials, rev)? {
            record.put(credential);
        }
        if request.totp_off {
            record.totp = None;
        }
        if let Some(setup) = request.totp {
            // The code shows that the authenticator has the secret. It counts once, like any other.
            let step = totp::step_of(setup.secret.dangerously_expose_bytes(), &setup.code, self.now());
            let step = step.ok_or_else(login_refused)?;
            if !self.use_step(&known.account, step).await? {
                return Err(login_refused());
            }
            record.totp = Some(setup.secret);
        }
        let answer = self.change(&known, &record, OtherSessions::Stay).await?;
        self.witness(&known.account, Act::CredentialsChanged).await;
        Ok(answer)
    }

    /// The recovery code signs, and is replaced with the password in one step. Every other session ends.
    pub(crate) async fn recover(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, by, request } = self.proven::<Recover>(caller, body).await?;
        if by.kind != CredentialKind::Recovery {
            return Err(login_refused());
        }
        let rev = next_rev(&known, request.account_rev)?;
        let new = taken(&[request.password, request.recovery], rev)?;
        if new.iter().map(|one| one.kind).ne([CredentialKind::Password, CredentialKind::Recovery]) {
            return Err(malformed("a password and a recovery code are replaced"));
        }
        if new.iter().any(|one| one.public_key == by.public_key) {
            return Err(malformed("the recovery code that was used is replaced by another one"));
        }
        let mut record = known.record.clone();
        new.into_iter().for_each(|one| record.put(one));
        let kept = match self.session_of(caller, &known.account).await {
            Ok(session) => session.id,
            // No session of anybody has this hash: all of them end.
            Err(_) => Digest::ZERO,
        };
        let answer = self.change(&known, &record, OtherSessions::End(kept)).await?;
        self.hub.end(&known.account, &SessionFilter::AllBut(kept), LogoutReason::Changed);
        self.witness(&known.account, Act::Recovered).await;
        Ok(answer)
    }

    async fn change(
        &self,
        known: &Known,
        record: &AccountRecord,
        sessions: OtherSessions,
    ) -> Answer<Answered> {
        check_set(&record.credentials)?;
        let account = &known.account;
        let room = self.hub.room(account);
        let _turn = room.turn().await;
        let change = ChangeAccount {
            account: account.clone(),
            expected: known.row.rev,
            login: None,
            credentials: self.tags(&record.credentials),
            record: record.seal(&known.key, account, known.row.rev.saturating_add(1)),
            sessions,
            now: self.now(),
        };
        let rev = self.store.change_account(change).await?;
        self.vault.raise(account, rev).await?;
        self.publish_account(account).await?;
        Answered::json(&AccountChanged { account_rev: rev, generation: known.row.generation })
    }

    pub(crate) fn tags(&self, credentials: &[Credential]) -> Vec<Tag> {
        let ids = credentials.iter().filter_map(|one| one.id.as_ref());
        ids.map(|id| self.credential_tag(id)).collect()
    }

    /// Tells every socket of the account that something about it changed.
    pub(crate) async fn publish_account(&self, account: &AccountId) -> Answer<()> {
        let (seq, event) = self.account_updated(account).await?;
        self.hub.publish(account, None, vec![ServerFrame { re: None, seq: Some(seq), event }]);
        Ok(())
    }

    /// What an account is at now, for its devices, and the number of its newest change.
    pub(crate) async fn account_updated(&self, account: &AccountId) -> Answer<(u64, ServerEvent)> {
        let row = self.store.account(account).await?;
        let manifest = self.store.list(account, HaveList::default()).await?.manifest;
        let event = ServerEvent::AccountUpdated(AccountUpdated {
            account_rev: row.rev,
            generation: row.generation,
            manifest: manifest.rev,
            envelope: Digest::of(manifest.envelope.as_bytes()),
        });
        Ok((row.seq, event))
    }
}

/// The revision after a change by somebody who has read `read`; else `conflict`.
pub(crate) fn next_rev(known: &Known, read: u32) -> Answer<u32> {
    let next = known.row.rev.checked_add(1).filter(|_| known.row.rev == read);
    next.ok_or_else(conflict)
}

/// Credentials as they come. A password has no id, all others have one; the account key is sealed for this revision of the
/// account, under suite 1.
pub(crate) fn taken(new: &[NewCredential], rev: u32) -> Answer<Vec<Credential>> {
    let one = |new: &NewCredential| {
        if new.id.is_none() != (new.kind == CredentialKind::Password) {
            return Err(malformed("a password has no id, and every other credential has one"));
        }
        let wrap = new.wrap.sealed().clone();
        if wrap.rev() != Some(rev) || wrap.suite() != Some(Suite::Aes256Gcm) {
            return Err(Refused::KeyRefused.into());
        }
        Ok(Credential { kind: new.kind, id: new.id.clone(), public_key: new.public_key.0, wrap })
    };
    new.iter().map(one).collect()
}

/// Whether an account may have these: one at least, one password and one recovery code at most, no id twice, and no passkey
/// without a recovery code, since another host ends passkeys.
pub(crate) fn check_set(credentials: &[Credential]) -> Answer<()> {
    let count = |kind| credentials.iter().filter(|one| one.kind == kind).count();
    let mut ids: Vec<_> = credentials.iter().filter_map(|one| one.id.as_ref()).collect();
    ids.sort_unstable();
    let (passwords, recoveries) = (count(CredentialKind::Password), count(CredentialKind::Recovery));
    match () {
        () if credentials.is_empty() => Err(malformed("an account has a credential")),
        () if credentials.len() > limits::MAX_CREDENTIALS => Err(StoreError::TooMany("credentials").into()),
        () if passwords > 1 || recoveries > 1 => {
            Err(malformed("an account has one password and one recovery code at most"))
        }
        () if ids.windows(2).any(|pair| pair[0] == pair[1]) => Err(malformed("a credential is there twice")),
        () if count(CredentialKind::Passkey) > 0 && recoveries == 0 => {
            Err(malformed("an account with a passkey has a recovery code as well"))
        }
        () => Ok(()),
    }
}
