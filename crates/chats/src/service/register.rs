//! A new account.
//!
//! Everything in it is sealed for its id, so the server offers an id first. The challenge carries the id, the login and what
//! allows the registration; whoever has no such challenge cannot register. A login that somebody has is `login-refused`, like
//! an invite that is not there: with open registration, anybody could ask for any login otherwise.

use std::time::Duration;

use confidant_chat_format::{AccountId, Digest, PROFILE};
use confidant_chat_protocol::{Body as _, RefusedSent, Register, RegisterBegin, RegisterOffer, Signed};
use confidant_seal::{Key, Tag};
use zeroize::Zeroizing;

use super::credentials::{check_set, taken};
use super::identity::is_signer;
use super::login::On;
use super::record::{AccountRecord, Credential};
use super::refusals::{Answer, login_refused};
use super::rows::seal_entry;
use super::witness::Act;
use super::{Answered, Caller, Inner, Registration, Service, random};
use crate::store::{Code, CodeKind, ManifestPut, NewAccount, Pass, RingName, StoreError};

impl Inner {
    pub(crate) async fn begin_registration(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        self.admit(caller)?;
        let request = RegisterBegin::read(body)?;
        let code = request.invite.as_ref().map(|code| code_key(code.as_str()));
        let pass = self.pass(code).await?;
        let offer = Offer { account: AccountId::random(), login: self.login_tag(&request.login), pass };
        let challenge = self.new_challenge(offer.to_bytes(), Some(offer.login)).await?;
        Answered::json(&RegisterOffer {
            account: offer.account,
            profile: PROFILE,
            server_salt: self.server_salt(&request.login),
            challenge,
        })
    }

    /// What allows a registration now. The first account needs the code that the server prints, whatever the settings say.
    async fn pass(&self, code: Option<Digest>) -> Answer<Pass> {
        let is_first = self.store.count_accounts().await? == 0;
        match (is_first, self.settings.registration, code) {
            (true, _, Some(code)) => Ok(Pass::First(code)),
            (false, Registration::Open, _) => Ok(Pass::Open),
            (false, Registration::Invited, Some(code)) => Ok(Pass::Invite(code)),
            _ => Err(login_refused()),
        }
    }

    pub(crate) async fn register(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        self.admit(caller)?;
        let signed = Signed::read(body)?;
        // The key that signs is inside, so this is read first; it says nothing about anybody else.
        let request: Register = signed.request()?;
        let carried = self.use_challenge(&signed.challenge).await?;
        let offer = carried.as_deref().and_then(Offer::from_bytes).ok_or_else(login_refused)?;
        if offer.account != request.account || offer.login != self.login_tag(&request.login) {
            return Err(login_refused());
        }
        let credentials = taken(&request.credentials, 1)?;
        check_set(&credentials)?;
        let by =
            credentials.iter().find(|one| is_signer(one, signed.signer.signer(), &request.login)).cloned();
        let public_key = by.as_ref().map(|credential| &credential.public_key);
        signed.statement::<Register>(&caller.origin).verify(public_key, &signed.proof.0)?;
        let by = by.ok_or_else(login_refused)?;
        // An account may have gone since the offer: the first one needs its code again.
        if offer.pass == Pass::Open && self.pass(None).await? != Pass::Open {
            return Err(login_refused());
        }
        // Before a key is made: whoever asks for a login that is taken costs the keyring nothing.
        if self.store.by_login(offer.login).await?.is_some() {
            return Err(login_refused());
        }
        let (account, device) = (request.account.clone(), request.device.clone());
        let key = self.vault.key_or_new(&account, None).await?;
        let new = self.new_account(&key, request, credentials, offer)?;
        if let Err(error) = self.store.register(new).await {
            // Where the store cannot say whether the account is there, it may be: then the key stays.
            if error.is_refusal() {
                self.vault.discard(&account).await?;
            }
            return Err(match error {
                StoreError::Conflict { .. } => login_refused(),
                error => error.into(),
            });
        }
        self.vault.raise(&account, 1).await?;
        self.witness(&account, Act::Registered).await;
        let row = self.store.account(&account).await?;
        let (opened, cookie) =
            self.begin_session(&account, &row, &key, On::New(device), Some(by.wrap)).await?;
        Ok(Answered::json(&opened)?.with(cookie))
    }

    fn new_account(
        &self,
        key: &Key,
        request: Register,
        credentials: Vec<Credential>,
        offer: Offer,
    ) -> Answer<NewAccount> {
        let account = request.account;
        let tags = credentials.iter().filter_map(|one| one.id.as_ref()).map(|id| self.credential_tag(id));
        let tags = tags.collect();
        let record = AccountRecord { login: request.login, credentials, totp: None };
        let manifest = request.first.manifest;
        Ok(NewAccount {
            login: offer.login,
            credentials: tags,
            record: record.seal(key, &account, 1),
            rings: [
                seal_entry(key, &account, RingName::Account, request.ring.into(), None),
                seal_entry(key, &account, RingName::Box, request.mailbox.into(), Some(&request.box_pub)),
            ],
            floors: request.first.floors.into_vec().into_iter().map(|floor| floor.into_sealed()).collect(),
            manifest: ManifestPut {
                expected: 0,
                envelope: manifest.envelope.into_sealed(),
                live: manifest.live,
                chain: manifest.chain,
            },
            pass: offer.pass,
            now: self.now(),
            account,
        })
    }
}

impl Service {
    /// A one-use code for the first account, to print; good for a day, and only while there is no account.
    pub async fn first_code(&self) -> Result<Zeroizing<String>, RefusedSent> {
        self.issue_code(CodeKind::First, Duration::from_secs(24 * 3600)).await
    }

    /// An invite, good once and for this long.
    pub async fn invite(&self, valid: Duration) -> Result<Zeroizing<String>, RefusedSent> {
        self.issue_code(CodeKind::Invite, valid).await
    }

    async fn issue_code(&self, kind: CodeKind, valid: Duration) -> Answer<Zeroizing<String>> {
        let code = Zeroizing::new(hex::encode(random::<16>().as_slice()));
        let (key, expires_at) = (code_key(&code), self.inner.now().plus(valid));
        self.inner
            .store
            .issue(Code { kind, key, account: None, login: None, carries: Vec::new(), expires_at })
            .await?;
        Ok(code)
    }
}

/// How the store knows a code that a person types: in either case, with spaces or hyphens.
pub(crate) fn code_key(code: &str) -> Digest {
    let kept = code.chars().filter(|c| !c.is_whitespace() && *c != '-').map(|c| c.to_ascii_lowercase());
    Digest::of(format!("code:{}", kept.collect::<String>()).as_bytes())
}

/// What the challenge of a registration carries.
#[derive(Debug, PartialEq, Eq)]
struct Offer {
    account: AccountId,
    login: Tag,
    pass: Pass,
}

impl Offer {
    /// `"register" ‖ login's tag ‖ pass (1 + 32) ‖ account id`. No purpose of a proof begins like it.
    fn to_bytes(&self) -> Vec<u8> {
        let (kind, code) = match self.pass {
            Pass::Open => (0, Digest::ZERO),
            Pass::Invite(code) => (1, code),
            Pass::First(code) => (2, code),
        };
        let account = self.account.as_str().as_bytes();
        [MARK, self.login.as_bytes(), &[kind], code.as_bytes(), account].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (login, rest) = bytes.strip_prefix(MARK)?.split_first_chunk::<16>()?;
        let (kind, rest) = rest.split_first()?;
        let (code, account) = rest.split_first_chunk::<32>()?;
        let code = Digest::from_bytes(*code);
        let pass = match kind {
            0 => Pass::Open,
            1 => Pass::Invite(code),
            2 => Pass::First(code),
            _ => return None,
        };
        let account = AccountId::parse(std::str::from_utf8(account).ok()?).ok()?;
        Some(Self { account, login: Tag::from_bytes(*login), pass })
    }
}

const MARK: &[u8] = b"register";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_as_it_was_made() {
        for pass in [Pass::Open, Pass::Invite(Digest::of(b"x")), Pass::First(Digest::of(b"y"))] {
            let offer = Offer { account: AccountId::random(), login: Tag::from_bytes([7; 16]), pass };
            let bytes = offer.to_bytes();
            assert_eq!(Offer::from_bytes(&bytes), Some(offer));
            assert_eq!(Offer::from_bytes(&bytes[1..]), None);
            assert_eq!(Offer::from_bytes(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(Offer::from_bytes(b"login"), None);
    }

    #[test]
    fn a_code_is_read_as_people_type_it() {
        assert_eq!(code_key("ABcd-12 34"), code_key("abcd1234"));
        assert_ne!(code_key("abcd1234"), code_key("abcd1235"));
    }
}
