//! Opening an account and a session: questions that anybody may ask, and proofs.
//!
//! ```text
//! POST /account/prelogin   login ──▶ salt, the same shape for everybody
//! POST /account/challenge  purpose ──▶ challenge, good once
//! POST /account/login      Signed(LoginRequest) ──▶ session, account key for this credential
//! ```
//!
//! Easy to get wrong: signing a value and sending another. A proof is over bytes, so the bytes are what is sent: see
//! [`Signed`].

use confidant_chat_format::{
    AccountId, CredentialId, DeviceId, Login, Origin, PublicKey, Purpose, Root, Signer, Statement,
};

use crate::account::{
    ChangeCredentials, CredentialKind, Erase, Export, FirstManifest, NewCredential, Recover, Restore,
    RestoreRings,
};
use crate::devices::{RevokeDevice, RevokeSession};
use crate::keys::KeyEntry;
use crate::limits::{MAX_CREDENTIALS, MAX_FRAME, MAX_INVITE, MAX_KEY, MAX_REGISTER, MAX_SIGNED};
use crate::lists::List;
use crate::malformed::Malformed;
use crate::pairing::PairSend;
use crate::rotation::{RotationBegin, RotationCommit};
use crate::shapes::{choices, objects};
use crate::values::{Bytes, Envelope, Secret, Text, Totp};
use crate::wire::Body;

choices! {
    /// Who signs.
    pub enum SignerName {
        /// Anybody who knows the password of this login.
        Login(Login) = "login",
        /// Anybody who has this passkey or recovery code.
        Credential(CredentialId) = "credential",
    }
}

objects! {
    /// Asks how to stretch a password. The answer has the same shape, whether or not somebody has this login.
    pub struct Prelogin {
        /// The login.
        pub login: Login,
    }

    /// How to stretch a password.
    pub struct PreloginAnswer {
        /// The profile, 1. Refuse another.
        pub profile: u32,
        /// The server's half of the salt.
        pub server_salt: Bytes<16>,
    }

    /// Asks for a challenge to sign.
    pub struct ChallengeRequest {
        /// What for.
        pub purpose: Purpose,
    }

    /// A challenge.
    pub struct Challenge {
        /// 32 random bytes: good once, for 60 seconds and this purpose.
        pub challenge: Secret,
        /// How long it is valid, in milliseconds.
        pub expires_ms: u64,
    }

    /// Asks to open an account. Everything in it is sealed for its id, so the id comes first.
    pub struct RegisterBegin {
        /// The login that it shall have.
        pub login: Login,
        /// The invitation, or the code that the server printed for the first account.
        pub invite: Option<Text<MAX_INVITE>>,
    }

    /// An id for a new account, and what to make its first credential with.
    pub struct RegisterOffer {
        /// The account's id, kept for this challenge.
        pub account: AccountId,
        /// The profile, 1.
        pub profile: u32,
        /// The server's half of the salt.
        pub server_salt: Bytes<16>,
        /// The challenge to sign, with the purpose `login`.
        pub challenge: Secret,
    }

    /// Opens an account: the signed body of `register`.
    pub struct Register (limit MAX_REGISTER) {
        /// The id that was offered.
        pub account: AccountId,
        /// Its login.
        pub login: Login,
        /// Its credentials; a recovery code has to be among them if a passkey is.
        pub credentials: List<NewCredential, MAX_CREDENTIALS>,
        /// The first entry of the account's ring.
        pub ring: KeyEntry,
        /// The first entry of the mailbox's ring.
        pub mailbox: KeyEntry,
        /// The mailbox's public key.
        pub box_pub: PublicKey,
        /// Floors and manifest, at revision 1.
        pub first: FirstManifest,
        /// The device that writes this.
        pub device: DeviceId,
    }

    /// Opens a session: the signed body of `login`.
    pub struct LoginRequest {
        /// Which kind of credential signs.
        pub kind: CredentialKind,
        /// This device, if it was here before; left out by a new one, which gets an id.
        pub device: Option<DeviceId>,
    }

    /// A session is open. Its cookie comes beside this.
    pub struct SessionOpened {
        /// The account.
        pub account: AccountId,
        /// The device's id.
        pub device: DeviceId,
        /// What the header `Confidant-Session` has from now on.
        pub session: Secret,
        /// When the session ends, in milliseconds since 1970.
        pub expires_at: u64,
        /// The revision of the account.
        pub account_rev: u32,
        /// The generation of the account key.
        pub generation: u32,
        /// The account key, sealed for this credential; left out if the server has none (`account-missing`), and after
        /// pairing, where the other device gave it.
        pub wrap: Option<Envelope<MAX_KEY>>,
    }

    /// Ends sessions.
    pub struct Logout {
        /// All sessions of the account, not only this one.
        pub everywhere: bool,
    }

    /// It was done.
    pub struct Done {}

    /// A request with a proof.
    ///
    /// The proof signs the hash of the request's bytes. Two JSON libraries may write one request in two ways: another
    /// order, other spaces and escapes. If the server checked the proof over its own writing of the request, an honest
    /// proof could fail; if it checked one text and carried out another, a proof could cover what nobody asked for. So
    /// the request travels as a text, and the bytes of this text are what is signed, checked and read.
    pub struct Signed (limit MAX_FRAME) {
        /// The JSON text of the request.
        pub body: Text<MAX_SIGNED>,
        /// The challenge that is used up by this.
        pub challenge: Secret,
        /// Who signs.
        pub signer: SignerName,
        /// The proof over origin, purpose, signer, challenge and body.
        pub proof: Bytes<64>,
        /// The code of an authenticator, if the account asks for one with the password.
        pub totp: Option<Totp>,
    }
}

/// A request that needs a proof, and the purpose that it is signed for.
pub trait Provable: Body {
    /// The purpose.
    const PURPOSE: Purpose;
}

macro_rules! provable {
    ($($type:ty: $purpose:ident),+ $(,)?) => {
        $(impl Provable for $type {
            const PURPOSE: Purpose = Purpose::$purpose;
        })+
    };
}

provable! {
    Register: Login,
    LoginRequest: Login,
    ChangeCredentials: Change,
    Recover: Change,
    RotationBegin: Change,
    RotationCommit: Change,
    RevokeDevice: Change,
    RevokeSession: Change,
    PairSend: Pair,
    Export: Export,
    Erase: Erase,
    Restore: Restore,
    RestoreRings: Restore,
}

impl SignerName {
    /// The same, as the format has it.
    pub fn signer(&self) -> Signer<'_> {
        match self {
            Self::Login(login) => Signer::Login(login),
            Self::Credential(id) => Signer::Credential(id),
        }
    }
}

impl Signed {
    /// Writes a request and signs it.
    pub fn sign<T: Provable>(
        request: &T,
        root: &Root,
        origin: &Origin,
        signer: SignerName,
        challenge: Secret,
    ) -> Result<Self, Malformed> {
        let body = String::from_utf8(request.write()?).expect("JSON is UTF-8");
        let mut signed =
            Self { body: Text::new(body)?, challenge, signer, proof: Bytes([0; 64]), totp: None };
        signed.proof = Bytes(root.prove(&signed.statement::<T>(origin)));
        Ok(signed)
    }

    /// What has to be signed for this to be a request of type `T`. The server verifies `proof` against it before it
    /// reads the request.
    pub fn statement<'a, T: Provable>(&'a self, origin: &'a Origin) -> Statement<'a> {
        Statement {
            origin,
            purpose: T::PURPOSE,
            signer: self.signer.signer(),
            challenge: self.challenge.dangerously_expose_bytes(),
            body: self.body.as_str().as_bytes(),
        }
    }

    /// Reads the request, from the bytes that were signed.
    pub fn request<T: Provable>(&self) -> Result<T, Malformed> {
        T::read(self.body.as_str().as_bytes())
    }
}
