//! Who asks: challenges, proofs and sessions.
//!
//! ```text
//! delay ─▶ challenge (once, 60 s, one purpose) ─▶ account, or a decoy ─▶ signature ─▶ anchor ─▶ TOTP ─▶ known
//!   rate      └──────────────────── login-refused, byte for byte the same ──────────────────┘
//! ```
//!
//! A failure is counted before the signature is checked and forgotten when it holds, so that attempts made at once count as
//! well as attempts one after another. Easy to get wrong: less work for a login that nobody has. There is a decoy for each
//! step.

use std::sync::OnceLock;
use std::time::Duration;

use confidant_chat_format::{AccountId, CredentialId, Digest, Login, Refused, Signer};
use confidant_chat_protocol::{
    Body as _, Challenge, ChallengeRequest, CredentialKind, Provable, Secret, Signed, SignerName,
};
use confidant_display::debug_without_content;
use confidant_seal::{Key, Sealed, Tag};

use super::rate::Rate;
use super::record::{AccountRecord, Credential};
use super::refusals::{Answer, login_refused, too_fast, unauthorised};
use super::{Answered, Caller, Inner, hashed, random, totp};
use crate::store::{AccountRow, AccountState, Code, CodeKind, FREE_ATTEMPTS, Session, StoreError};

/// An account, opened.
pub(crate) struct Known {
    pub(crate) account: AccountId,
    pub(crate) row: AccountRow,
    pub(crate) record: AccountRecord,
    pub(crate) key: Key,
    /// Whether the record is older than one that was seen before: it is good for nothing.
    is_old: bool,
}

/// A request of somebody who is known.
pub(crate) struct Proven<T> {
    pub(crate) known: Known,
    /// The credential that signed.
    pub(crate) by: Credential,
    pub(crate) request: T,
}

debug_without_content!(Known);

/// How often a password is asked for with a code of an authenticator, where the account wants one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codes {
    /// With each proof.
    EachTime,
    /// With the first proof of a rotation.
    OnceARotation,
}

impl Inner {
    /// Counts a request of a network that nobody knows yet.
    pub(crate) fn admit(&self, caller: &Caller) -> Answer<()> {
        let rate = Rate { burst: self.settings.burst, per_second: 8 };
        self.rates.take(caller.network, rate, self.now()).map_err(too_fast)
    }

    pub(crate) async fn challenge(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        self.admit(caller)?;
        let request = ChallengeRequest::read(body)?;
        let challenge = self.new_challenge(request.purpose.name().as_bytes().to_vec(), None).await?;
        let expires_ms = u64::try_from(CHALLENGE.as_millis()).unwrap_or(u64::MAX);
        Answered::json(&Challenge { challenge, expires_ms })
    }

    /// A challenge that carries what it is for.
    pub(crate) async fn new_challenge(&self, carries: Vec<u8>, login: Option<Tag>) -> Answer<Secret> {
        let challenge = Secret::from_bytes(*random());
        let key = hashed(challenge.dangerously_expose_bytes());
        let expires_at = self.now().plus(CHALLENGE);
        self.store
            .issue(Code { kind: CodeKind::Challenge, key, account: None, login, carries, expires_at })
            .await?;
        Ok(challenge)
    }

    /// What a challenge carries, once.
    pub(crate) async fn use_challenge(&self, challenge: &Secret) -> Answer<Option<Vec<u8>>> {
        let key = hashed(challenge.dangerously_expose_bytes());
        let code = self.store.consume(CodeKind::Challenge, key, self.now()).await?;
        Ok(code.map(|code| code.carries))
    }

    pub(crate) fn login_tag(&self, login: &Login) -> Tag {
        self.vault.tag("login", login.as_str().as_bytes())
    }

    pub(crate) fn credential_tag(&self, id: &CredentialId) -> Tag {
        self.vault.tag("credential", id.as_str().as_bytes())
    }

    /// Checks a signed request, and reads it from the bytes that were signed.
    pub(crate) async fn proven<T: Provable>(&self, caller: &Caller, body: &[u8]) -> Answer<Proven<T>> {
        self.proven_with(caller, body, Codes::EachTime).await
    }

    /// The same for the commit of a rotation. A code counts once, and whoever began the rotation has shown one: a session of
    /// the account is enough beside the proof, since beginning ended all others.
    pub(crate) async fn proven_in_rotation<T: Provable>(
        &self,
        caller: &Caller,
        body: &[u8],
    ) -> Answer<Proven<T>> {
        self.proven_with(caller, body, Codes::OnceARotation).await
    }

    async fn proven_with<T: Provable>(
        &self,
        caller: &Caller,
        body: &[u8],
        codes: Codes,
    ) -> Answer<Proven<T>> {
        self.admit(caller)?;
        let signed = Signed::read(body)?;
        let (name, account) = match &signed.signer {
            SignerName::Login(login) => {
                let tag = self.login_tag(login);
                (tag, self.store.by_login(tag).await?)
            }
            SignerName::Credential(id) => {
                let tag = self.credential_tag(id);
                (tag, self.store.by_credential(tag).await?)
            }
        };
        let network = self.vault.tag("network", &caller.network.bytes());
        self.count_attempt(name, network).await?;
        let carried = self.use_challenge(&signed.challenge).await?;
        let known = self.find(account, name).await?;
        let by = known.as_ref().and_then(|known| known.record.credential(signed.signer.signer())).cloned();
        let public_key = by.as_ref().map(|credential| &credential.public_key);
        let holds = signed.statement::<T>(&caller.origin).verify(public_key, &signed.proof.0).is_ok();
        let in_time = carried.as_deref() == Some(T::PURPOSE.name().as_bytes());
        let (known, by) = match (known, by, holds && in_time) {
            (Some(known), Some(by), true) => (known, by),
            (known, ..) => {
                known.inspect(|known| self.witness_refusal(&known.account));
                return Err(login_refused());
            }
        };
        if known.is_old {
            return Err(Refused::RolledBack.into());
        }
        let was_shown = codes == Codes::OnceARotation && self.is_rotating(caller, &known).await;
        if !was_shown && let Err(refused) = self.check_totp(&known, &by, &signed).await {
            self.witness_refusal(&known.account);
            return Err(refused);
        }
        self.store.login_succeeded(name, network).await?;
        Ok(Proven { known, by, request: signed.request::<T>()? })
    }

    /// Whether the account is being given a new key, and this is somebody with a session of it.
    async fn is_rotating(&self, caller: &Caller, known: &Known) -> bool {
        let AccountState::Rotating { until } = known.row.state else { return false };
        self.now() < until && self.session_of(caller, &known.account).await.is_ok()
    }

    /// Counts an attempt before it is made. Too early, or beside others at once: `rate`.
    async fn count_attempt(&self, name: Tag, network: Tag) -> Answer<()> {
        let now = self.now();
        let before = self.store.attempts(name, network, now).await?;
        let wait = before.next_at().0.saturating_sub(now.0);
        if wait > 0 {
            return Err(too_fast(wait));
        }
        let after = self.store.login_failed(name, network, now).await?;
        let alone = after.failures <= before.failures.saturating_add(1);
        if alone || after.failures <= FREE_ATTEMPTS {
            Ok(())
        } else {
            Err(too_fast(after.next_at().0.saturating_sub(now.0).max(1)))
        }
    }

    /// Opens the account of a login or credential. For one that nobody has, the same is done for nothing.
    async fn find(&self, account: Option<AccountId>, name: Tag) -> Answer<Option<Known>> {
        let is_there = account.is_some();
        let account = account.unwrap_or_else(|| AccountId::from_bits(name.as_bytes()));
        let row = match self.store.account(&account).await {
            Err(StoreError::NotFound) => None,
            row => Some(row?),
        };
        let key = self.vault.key(&account, None).await?;
        let anchor = self.vault.anchor(&account).await?;
        match (row, key, is_there) {
            (Some(row), Some(key), true) => match AccountRecord::open(&key, &account, &row) {
                Ok(record) => {
                    let is_old = row.rev < anchor;
                    if row.rev > anchor {
                        self.vault.raise(&account, row.rev).await?;
                    }
                    Ok(Some(Known { account, row, record, key, is_old }))
                }
                // Somebody changed the row. Whoever logs in learns no more than for a login that nobody has.
                Err(_) => {
                    tracing::warn!(
                        "chats: the record of an account does not open; hint: restore chats.db and keyring.db, \
                         or let its owner put it back with `confidant account restore`"
                    );
                    Ok(None)
                }
            },
            // Nobody's, or its keys are gone: it is being erased.
            _ => {
                let (key, account, row) = DECOY.get_or_init(decoy);
                let _opened = AccountRecord::open(key, account, row);
                Ok(None)
            }
        }
    }

    /// Opens the account of somebody who has a session.
    pub(crate) async fn known(&self, account: &AccountId) -> Answer<Known> {
        let row = self.store.account(account).await?;
        let Some(key) = self.vault.key(account, None).await? else {
            return Err(Refused::AccountMissing.into());
        };
        if row.rev < self.vault.anchor(account).await? {
            return Err(Refused::RolledBack.into());
        }
        // Sealed under a key that was lost, and the one there is was made for somebody who puts the account back.
        let record = AccountRecord::open(&key, account, &row).map_err(|_| Refused::AccountMissing)?;
        Ok(Known { account: account.clone(), row, record, key, is_old: false })
    }

    /// With a password, the code of an authenticator if the account asks for one. A step counts once.
    async fn check_totp(&self, known: &Known, by: &Credential, signed: &Signed) -> Answer<()> {
        let Some(secret) = known.record.totp.as_ref().filter(|_| by.kind == CredentialKind::Password) else {
            return Ok(());
        };
        let now = self.now();
        let code = signed.totp.as_ref();
        let step = code.and_then(|code| totp::step_of(secret.dangerously_expose_bytes(), code, now));
        let step = step.ok_or_else(login_refused)?;
        if self.use_step(&known.account, step).await? { Ok(()) } else { Err(login_refused()) }
    }

    /// Uses a step of a one-time password up: true the first time only.
    pub(crate) async fn use_step(&self, account: &AccountId, step: u64) -> Answer<bool> {
        let now = self.now();
        let key = Digest::of(&[b"totp", account.as_str().as_bytes(), &step.to_be_bytes()].concat());
        let code = Code {
            kind: CodeKind::Totp,
            key,
            account: Some(account.clone()),
            login: None,
            carries: Vec::new(),
            expires_at: now.plus(TOTP_MEMORY),
        };
        Ok(self.store.spend(code, now).await?)
    }

    /// The session that a request shows; else `unauthorised`.
    pub(crate) async fn session(&self, caller: &Caller) -> Answer<Session> {
        let shown = caller.session.as_ref().ok_or_else(unauthorised)?;
        let found = self.store.session(hashed(&shown.id), self.now()).await?;
        found.filter(|session| session.secret == hashed(&shown.secret)).ok_or_else(unauthorised)
    }

    /// The session that a signed request shows, if it is one of this account.
    pub(crate) async fn session_of(&self, caller: &Caller, account: &AccountId) -> Answer<Session> {
        let session = self.session(caller).await?;
        if session.account == *account { Ok(session) } else { Err(unauthorised()) }
    }
}

/// The name that a proof is signed as, for a credential of this account.
pub(crate) fn is_signer(credential: &Credential, signer: Signer<'_>, login: &Login) -> bool {
    match signer {
        Signer::Login(signs) => credential.kind == CredentialKind::Password && signs == login,
        Signer::Credential(id) => credential.id.as_ref() == Some(id),
    }
}

/// A record of nobody, as large as somebody's.
fn decoy() -> (Key, AccountId, AccountRow) {
    let (key, account) = (Key::random(), AccountId::random());
    let credential = |kind| Credential {
        kind,
        id: Some(CredentialId::random()),
        public_key: *random(),
        wrap: Sealed::from_bytes(vec![1; 150]),
    };
    let record = AccountRecord {
        login: Login::parse("somebody@example.org").expect("a login"),
        credentials: [CredentialKind::Passkey, CredentialKind::Recovery].map(credential).into(),
        totp: None,
    };
    let record = record.seal(&key, &account, 1);
    let row = AccountRow { rev: 1, generation: 1, epoch: 1, record, seq: 1, state: AccountState::Active };
    (key, account, row)
}

static DECOY: OnceLock<(Key, AccountId, AccountRow)> = OnceLock::new();

/// How long a challenge is good.
const CHALLENGE: Duration = Duration::from_secs(60);
/// How long a used step is remembered: longer than it could be used.
const TOTP_MEMORY: Duration = Duration::from_secs(300);
