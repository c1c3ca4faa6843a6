//! Credentials, and requests that are signed with one.
//!
//! ```text
//! password ─ prelogin ─▶ salt ─▶ root ┐
//! passkey's PRF output ─────────────▶ ├─▶ proof over origin, purpose, challenge and body
//! recovery code ────────────────────▶ ┘
//! ```
//!
//! Easy to get wrong: one salt for two servers. The origin and the login are in what is signed and stretched.

use std::sync::Arc;

use confidant_chat_format::{
    AccountId, AccountKey, CredentialId, Login, PROFILE, RecoveryCode, Root, Wrap, password_salt,
};
use confidant_chat_protocol::{
    Body, Bytes, Challenge, ChallengeRequest, CredentialKind, Envelope, NewCredential, Prelogin,
    PreloginAnswer, Provable, Secret, Signed, SignerName, Totp,
};
use confidant_display::debug_without_content;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::transport::{SessionKeys, Transport};

/// What a person knows or holds.
#[derive(Clone)]
#[non_exhaustive]
pub enum Credential {
    /// A password.
    Password {
        /// The login.
        login: Login,
        /// The password.
        password: Zeroizing<String>,
        /// The code of an authenticator, where the account asks for one.
        totp: Option<Totp>,
    },
    /// A recovery code.
    Recovery(RecoveryCode),
    /// A passkey: its id, and its PRF of [`confidant_chat_format::prf_input`].
    Passkey {
        /// The credential's id.
        id: CredentialId,
        /// The output.
        output: Zeroizing<[u8; 32]>,
    },
}

debug_without_content!(Credential(***));

impl Credential {
    /// A password without a one-time code. A login that is not one is `login-refused`.
    pub fn password(login: &str, password: &str) -> Result<Self, Error> {
        let password = Zeroizing::new(password.to_owned());
        Ok(Self::Password { login: Login::parse(login)?, password, totp: None })
    }

    /// The same with the code of an authenticator; six digits, else `login-refused`.
    pub fn with_totp(self, code: &str) -> Result<Self, Error> {
        let code = Totp::parse(code).ok_or(confidant_chat_format::Refused::LoginRefused)?;
        Ok(match self {
            Self::Password { login, password, .. } => Self::Password { login, password, totp: Some(code) },
            other => other,
        })
    }

    /// A passkey, by its id and PRF output.
    #[must_use]
    pub fn passkey(id: CredentialId, output: [u8; 32]) -> Self {
        Self::Passkey { id, output: Zeroizing::new(output) }
    }

    /// The login, if it has one.
    #[must_use]
    pub fn login(&self) -> Option<&Login> {
        match self {
            Self::Password { login, .. } => Some(login),
            _ => None,
        }
    }

    /// What signs, with the server's half of a password's salt.
    pub(crate) fn signing(&self, server_salt: Option<&[u8; 16]>, profile: u32) -> Result<Signing, Error> {
        Ok(match self {
            Self::Password { login, password, totp } => {
                let salt = password_salt(login, server_salt.ok_or(Error::Unexpected)?);
                Signing {
                    root: Root::from_password(password, &salt, profile)?,
                    kind: CredentialKind::Password,
                    signer: SignerName::Login(login.clone()),
                    totp: totp.clone(),
                }
            }
            Self::Recovery(code) => Signing {
                root: Root::from_recovery(code),
                kind: CredentialKind::Recovery,
                signer: SignerName::Credential(code.credential_id()),
                totp: None,
            },
            Self::Passkey { id, output } => Signing {
                root: Root::from_prf(**output),
                kind: CredentialKind::Passkey,
                signer: SignerName::Credential(id.clone()),
                totp: None,
            },
        })
    }
}

/// A credential that can sign and open.
#[derive(Debug, Clone)]
pub(crate) struct Signing {
    pub(crate) root: Root,
    pub(crate) kind: CredentialKind,
    pub(crate) signer: SignerName,
    totp: Option<Totp>,
}

impl Signing {
    pub(crate) fn wrap(&self) -> Wrap<'_> {
        match (&self.kind, &self.signer) {
            (CredentialKind::Passkey, SignerName::Credential(id)) => Wrap::Passkey(id),
            (CredentialKind::Recovery, _) => Wrap::Recovery,
            _ => Wrap::Password,
        }
    }

    /// What its wrap is remembered by.
    pub(crate) fn name(&self) -> String {
        match &self.signer {
            SignerName::Login(_) => "password".to_owned(),
            SignerName::Credential(id) => id.as_str().to_owned(),
        }
    }

    /// As the server keeps it, with the account key sealed for this revision of the account.
    pub(crate) fn new_credential(
        &self,
        ak: &AccountKey,
        account: &AccountId,
        rev: u32,
    ) -> Result<NewCredential, Error> {
        let id = match &self.signer {
            SignerName::Login(_) => None,
            SignerName::Credential(id) => Some(id.clone()),
        };
        let wrap = ak.wrap(&self.root.kek(), account, self.wrap(), rev);
        let public_key = Bytes(self.root.public_key());
        Ok(NewCredential { kind: self.kind, id, public_key, wrap: Envelope::new(wrap)? })
    }

    pub(crate) fn sign<T: Provable>(
        &self,
        request: &T,
        link: &Link,
        challenge: Secret,
    ) -> Result<Signed, Error> {
        let origin = link.transport.origin();
        let signed = Signed::sign(request, &self.root, origin, self.signer.clone(), challenge)?;
        Ok(Signed { totp: self.totp.clone(), ..signed })
    }
}

/// The way to the server for requests without a socket.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) session: Option<SessionKeys>,
}

impl Link {
    pub(crate) async fn raw(
        &self,
        path: &str,
        body: &impl Body,
    ) -> Result<(Vec<u8>, Option<[u8; 32]>), Error> {
        let posted = self.transport.post(path, self.session.as_ref(), body.write()?).await?;
        Ok((posted.body, posted.session))
    }

    pub(crate) async fn post<A: Body>(&self, path: &str, body: &impl Body) -> Result<A, Error> {
        read(&self.raw(path, body).await?.0)
    }

    /// Asks for a challenge and signs the request with it.
    pub(crate) async fn signed<T: Provable>(&self, request: &T, by: &Signing) -> Result<Signed, Error> {
        let ask = ChallengeRequest { purpose: T::PURPOSE };
        let answer: Challenge = self.post("/account/challenge", &ask).await?;
        by.sign(request, self, answer.challenge)
    }

    pub(crate) async fn prove<T: Provable, A: Body>(
        &self,
        path: &str,
        request: &T,
        by: &Signing,
    ) -> Result<A, Error> {
        let signed = self.signed(request, by).await?;
        self.post(path, &signed).await
    }

    /// Makes a credential ready to sign. For a password the server is asked for its half of the salt; a profile other
    /// than the one there is is `kdf-refused` before anything is derived.
    pub(crate) async fn ready(&self, credential: &Credential) -> Result<Signing, Error> {
        match credential.login() {
            Some(login) => {
                let ask = Prelogin { login: login.clone() };
                let answer: PreloginAnswer = self.post("/account/prelogin", &ask).await?;
                credential.signing(Some(&answer.server_salt.0), answer.profile)
            }
            None => credential.signing(None, PROFILE),
        }
    }
}

/// Reads what the server sent.
pub(crate) fn read<A: Body>(json: &[u8]) -> Result<A, Error> {
    A::read(json).map_err(|_| Error::Unexpected)
}
