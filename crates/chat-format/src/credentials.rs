//! From what a person knows or holds to two keys: one that signs, one that opens the account key.
//!
//! ```text
//! password ──NFKC, Argon2id──▶ pw_root  ┐
//! passkey ───PRF─────────────▶ prf_root ├──▶ sign (Ed25519)   proves to the server who asks
//! 20 random bytes ──HKDF─────▶ rec_root ┘    kek              opens the account key; the server never has it
//! ```
//!
//! Owns salts, roots and proofs. Leaves to the server challenges, one-time codes and delays. Easy to get wrong: deriving
//! with what the server asks for. There is one profile; another is refused before any work is done.

use std::sync::OnceLock;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use confidant_display::debug_without_content;
use confidant_seal::Key;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use unicode_normalization::UnicodeNormalization as _;
use zeroize::{Zeroize as _, Zeroizing};

use crate::bytes::{base32, from_base32, hash, hkdf, put, random};
use crate::error::Refused;
use crate::ids::{CredentialId, Login, Origin};

/// The server's half of a password's salt: `mac(named key "logins", "prelogin", login)[0..16]`. The same for a login that
/// nobody has, so that asking tells nothing; it never changes.
pub fn server_salt(logins: &Key, login: &Login) -> [u8; 16] {
    *logins.tag("prelogin", login.as_str().as_bytes()).as_bytes()
}

/// The salt: `H("seal/v1/pw-salt" ‖ lp(login) ‖ server_salt)[0..16]`. With the login in it, a server cannot give two
/// people one salt.
pub fn password_salt(login: &Login, server_salt: &[u8; 16]) -> [u8; 16] {
    let mut text = Vec::new();
    put(&mut text, login.as_str());
    let whole = hash(&[b"seal/v1/pw-salt", &text, server_salt]);
    std::array::from_fn(|at| whole.as_bytes()[at])
}

/// What `first` of the PRF extension is: `H("seal/v1/prf")`.
pub fn prf_input() -> [u8; 32] {
    *hash(&[b"seal/v1/prf"]).as_bytes()
}

/// What a credential comes down to, before its two keys.
#[derive(Clone)]
pub struct Root(Key);

impl Root {
    /// `Argon2id(NFKC(password), salt, 64 MiB, 3, 1, 32)`. Takes about a tenth of a second and 64 MiB. A profile other
    /// than 1 is `kdf-refused` before anything is derived.
    pub fn from_password(password: &str, salt: &[u8; 16], profile: u32) -> Result<Self, Refused> {
        if profile != PROFILE {
            return Err(Refused::KdfRefused);
        }
        // One code point can become eighteen: reserve, or a growing buffer leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(password.len() * 18));
        text.extend(password.nfkc());
        let params = Params::new(64 * 1024, 3, 1, Some(32)).map_err(|_| Refused::KdfRefused)?;
        let mut memory = vec![Block::default(); params.block_count()];
        let mut out = Zeroizing::new([0; 32]);
        let derived = Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(text.as_bytes(), salt, &mut *out, &mut memory);
        memory.iter_mut().for_each(|block| block.zeroize());
        derived.map_err(|_| Refused::KdfRefused)?;
        Ok(Self(Key::from_bytes(*out)))
    }

    /// A passkey's PRF of [`prf_input`].
    pub fn from_prf(output: [u8; 32]) -> Self {
        Self(Key::from_bytes(output))
    }

    /// `HKDF(code, "", "seal/v1/rec", 32)`.
    pub fn from_recovery(code: &RecoveryCode) -> Self {
        Self(Key::from_bytes(*hkdf(&*code.0, &[], &[b"seal/v1/rec"])))
    }

    /// The key that opens the account key: `sub(root, "kek")`.
    pub fn kek(&self) -> Key {
        self.0.derive("kek")
    }

    /// What the server keeps: the public half of Ed25519 with the seed `sub(root, "sign")`.
    pub fn public_key(&self) -> [u8; 32] {
        let mut out = [0; 32];
        out.copy_from_slice(self.signer().public_key().as_ref());
        out
    }

    /// Signs that the holder of this credential wants `statement`.
    pub fn prove(&self, statement: &Statement<'_>) -> [u8; 64] {
        let mut out = [0; 64];
        out.copy_from_slice(self.signer().sign(&statement.bytes()).as_ref());
        out
    }

    fn signer(&self) -> Ed25519KeyPair {
        let seed = self.0.derive("sign");
        Ed25519KeyPair::from_seed_unchecked(seed.dangerously_expose_bytes()).expect("any 32 bytes are a seed")
    }

    /// The root itself, for vectors and for a worker that keeps a person logged in.
    pub fn dangerously_expose_bytes(&self) -> &[u8; 32] {
        self.0.dangerously_expose_bytes()
    }
}

debug_without_content!(Root(***));

/// 20 random bytes on paper, as 32 base32 digits.
#[derive(Clone)]
pub struct RecoveryCode(Zeroizing<[u8; 20]>);

impl RecoveryCode {
    /// A new one from the system's random generator.
    pub fn random() -> Self {
        Self(random())
    }

    /// The code with these bytes.
    pub fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads what a person typed: either case, with spaces or hyphens anywhere. Else `login-refused`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let kept = text.chars().filter(|c| !c.is_whitespace() && *c != '-').map(|c| c.to_ascii_lowercase());
        // Reserved for the longest characters: a growing buffer leaves copies behind.
        let mut digits = Zeroizing::new(String::with_capacity(4 * 33));
        digits.extend(kept.take(33));
        from_base32(&digits).map(Self::from_bytes).ok_or(Refused::LoginRefused)
    }

    /// The id of its credential, so that a device which has nothing but the code can name it:
    /// `HKDF(code, "", "seal/v1/rec/id", 16)`. It gives nothing away about the root.
    pub fn credential_id(&self) -> CredentialId {
        CredentialId::from_bits(&hkdf(&*self.0, &[], &[b"seal/v1/rec/id"]))
    }

    /// The digits, in groups of four, to print once.
    pub fn dangerously_to_text(&self) -> Zeroizing<String> {
        let digits = Zeroizing::new(base32(&*self.0));
        let mut text = Zeroizing::new(String::with_capacity(40));
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && at % 4 == 0 {
                text.push('-');
            }
            text.push(digit);
        }
        text
    }
}

debug_without_content!(RecoveryCode(***));

/// What a proof is for. One made for one purpose is refused for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Open a session.
    Login,
    /// Change credentials or keys.
    Change,
    /// Take everything out.
    Export,
    /// Erase the account.
    Erase,
    /// Give the account key to another device.
    Pair,
    /// Put back what the server lost.
    Restore,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Self; 6] =
        [Self::Login, Self::Change, Self::Export, Self::Erase, Self::Pair, Self::Restore];

    /// The word that is signed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Change => "change",
            Self::Export => "export",
            Self::Erase => "erase",
            Self::Pair => "pair",
            Self::Restore => "restore",
        }
    }
}

/// Who signs.
#[derive(Debug, Clone, Copy)]
pub enum Signer<'a> {
    /// Anybody who knows the password of this login.
    Login(&'a Login),
    /// Anybody who has this passkey or recovery code.
    Credential(&'a CredentialId),
}

/// What is signed: one purpose, at one origin, for one challenge and one body.
#[derive(Clone, Copy)]
pub struct Statement<'a> {
    /// The server's own origin, as the client sees it.
    pub origin: &'a Origin,
    /// What for.
    pub purpose: Purpose,
    /// Who.
    pub signer: Signer<'a>,
    /// 32 random bytes of the server; good once, for 60 seconds and one purpose.
    pub challenge: &'a [u8; 32],
    /// The request's body, so that no other can be put under the proof.
    pub body: &'a [u8],
}

impl Statement<'_> {
    /// `"seal/v1/proof" ‖ lp(origin) ‖ lp(purpose) ‖ lp(login or credential) ‖ challenge ‖ H(body)`.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"seal/v1/proof".to_vec();
        put(&mut out, self.origin.as_str());
        put(&mut out, self.purpose.name());
        put(
            &mut out,
            match self.signer {
                Signer::Login(login) => login.as_str(),
                Signer::Credential(id) => id.as_str(),
            },
        );
        out.extend_from_slice(self.challenge);
        out.extend_from_slice(hash(&[self.body]).as_bytes());
        out
    }

    /// Checks a proof against the key that the server keeps. Where there is no such credential, `None` takes as long and
    /// fails. Every failure is `login-refused`.
    pub fn verify(&self, public_key: Option<&[u8; 32]>, proof: &[u8]) -> Result<(), Refused> {
        static DECOY: OnceLock<[u8; 32]> = OnceLock::new();
        let decoy = DECOY.get_or_init(|| Root(Key::random()).public_key());
        let key = UnparsedPublicKey::new(&ED25519, public_key.unwrap_or(decoy));
        let valid = key.verify(&self.bytes(), proof).is_ok();
        if valid && public_key.is_some() { Ok(()) } else { Err(Refused::LoginRefused) }
    }
}

debug_without_content!(Statement<'_> { purpose });

/// The one profile of version 1: Argon2id, 64 MiB, three passes, one lane.
pub const PROFILE: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_profile_is_refused_before_deriving() {
        for profile in [0, 2, u32::MAX] {
            let refused = Root::from_password("x", &[7; 16], profile).err();
            assert_eq!(refused, Some(Refused::KdfRefused));
        }
    }

    #[test]
    fn a_password_has_one_root_in_every_spelling_of_unicode() {
        let root = |password| *Root::from_password(password, &[7; 16], 1).unwrap().dangerously_expose_bytes();
        assert_eq!(root("ﬁn\u{e9}"), root("fine\u{301}"));
    }

    #[test]
    fn recovery_codes_are_read_as_people_type_them() {
        let code = RecoveryCode::from_bytes([0xa5; 20]);
        let text = code.dangerously_to_text();
        for typed in [text.to_string(), text.to_uppercase(), text.replace('-', " "), text.replace('-', "")] {
            assert_eq!(*RecoveryCode::parse(&typed).unwrap().0, [0xa5; 20]);
        }
        assert_eq!(RecoveryCode::parse(&format!("{}a", *text)).err(), Some(Refused::LoginRefused));
        assert_eq!(format!("{code:?} {:?}", Root::from_recovery(&code)), "RecoveryCode(***) Root(***)");
    }

    #[test]
    fn a_proof_is_good_for_its_statement_only() {
        let (root, other) = (Root::from_prf([1; 32]), Root::from_prf([2; 32]));
        let (origin, login) = (Origin::parse("https://a.example").unwrap(), Login::parse("ana").unwrap());
        let (far, ben) = (Origin::parse("https://b.example").unwrap(), Login::parse("ben").unwrap());
        let made = Statement {
            origin: &origin,
            purpose: Purpose::Login,
            signer: Signer::Login(&login),
            challenge: &[9; 32],
            body: b"{}",
        };
        let (key, proof) = (root.public_key(), root.prove(&made));
        assert_eq!(made.verify(Some(&key), &proof), Ok(()));
        let credential = CredentialId::from_bits(&[0; 16]);
        let others = [
            Statement { origin: &far, ..made },
            Statement { signer: Signer::Login(&ben), ..made },
            Statement { signer: Signer::Credential(&credential), ..made },
            Statement { challenge: &[8; 32], ..made },
            Statement { body: b"[]", ..made },
        ];
        let purposes = Purpose::ALL[1..].iter().map(|purpose| Statement { purpose: *purpose, ..made });
        for statement in others.into_iter().chain(purposes) {
            assert_eq!(statement.verify(Some(&key), &proof), Err(Refused::LoginRefused));
        }
        assert_eq!(made.verify(None, &proof), Err(Refused::LoginRefused));
        assert_eq!(made.verify(Some(&other.public_key()), &proof), Err(Refused::LoginRefused));
        assert_eq!(made.verify(Some(&key), &proof[..63]), Err(Refused::LoginRefused));
    }
}
