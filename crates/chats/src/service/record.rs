//! An account's record: what the server has to know of it, sealed under the account's key.
//!
//! ```text
//! seal(account key, (account, <account id>, <kid of the key>, row, ""), rev = revision of the account,
//!      {v, login, credentials: [{kind, id?, public_key, wrap}], totp?})
//! ```
//!
//! Owns its bytes and when an opened one counts. Easy to get wrong: an old record that opens. The revision is compared with
//! the anchor, which is not in the database; whoever puts an old row back is found out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_format::{AccountId, CredentialId, Login, Refused, Signer};
use confidant_chat_protocol::{CredentialKind, Secret};
use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, Suite, open, seal};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use crate::store::AccountRow;

/// What the server has to know of an account.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AccountRecord {
    pub(crate) login: Login,
    pub(crate) credentials: Vec<Credential>,
    /// What the authenticator has, if its codes are asked for with the password.
    pub(crate) totp: Option<Secret>,
}

/// A credential as the server keeps it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) kind: CredentialKind,
    /// Of a password there is none.
    pub(crate) id: Option<CredentialId>,
    pub(crate) public_key: [u8; 32],
    /// The account key, sealed by the client for this credential.
    pub(crate) wrap: Sealed,
}

debug_without_content!(AccountRecord { credentials: credentials.len() }, Credential { kind });

impl AccountRecord {
    /// The credential of whoever signs.
    pub(crate) fn credential(&self, signer: Signer<'_>) -> Option<&Credential> {
        self.credentials.iter().find(|credential| match signer {
            Signer::Login(login) => credential.kind == CredentialKind::Password && self.login == *login,
            Signer::Credential(id) => credential.id.as_ref() == Some(id),
        })
    }

    /// The same with one more credential, which takes the place of the one it replaces: the password, the recovery code, or the
    /// passkey of this id.
    pub(crate) fn put(&mut self, new: Credential) {
        let replaces = |old: &Credential| match new.kind {
            CredentialKind::Passkey => old.id == new.id,
            kind => old.kind == kind,
        };
        self.credentials.retain(|old| !replaces(old));
        self.credentials.push(new);
    }

    pub(crate) fn seal(&self, key: &Key, account: &AccountId, rev: u32) -> Sealed {
        seal(key, SUITE, &context(account, &key.kid().to_string()), rev, &self.to_json())
    }

    /// Opens what a row has. Does not open, or is not the record of the row's revision: `record-refused`.
    pub(crate) fn open(key: &Key, account: &AccountId, row: &AccountRow) -> Result<Self, Refused> {
        let opened = open(key, &context(account, &key.kid().to_string()), &row.record);
        let opened = opened.map_err(|_| Refused::RecordRefused)?;
        if opened.rev != row.rev {
            return Err(Refused::RecordRefused);
        }
        Self::from_json(&opened.data)
    }

    fn to_json(&self) -> Zeroizing<Vec<u8>> {
        let mut stored = Stored {
            v: 1,
            login: self.login.as_str().to_owned(),
            credentials: self.credentials.iter().map(StoredCredential::of).collect(),
            totp: self.totp.as_ref().map(|secret| URL_SAFE_NO_PAD.encode(secret.dangerously_expose_bytes())),
        };
        // As large as it can get: a growing buffer leaves copies behind.
        let mut json = Zeroizing::new(Vec::with_capacity(crate::store::limits::RECORD_BYTES));
        serde_json::to_writer(&mut *json, &stored).expect("a record is plain data with text as keys");
        stored.totp.zeroize();
        json
    }

    fn from_json(json: &[u8]) -> Result<Self, Refused> {
        let mut stored: Stored = serde_json::from_slice(json).map_err(|_| Refused::RecordRefused)?;
        let totp = stored.totp.as_deref().map(bytes_32).transpose()?.map(Secret::from_bytes);
        stored.totp.zeroize();
        let credentials = stored.credentials.into_iter().map(StoredCredential::read);
        let record = Self {
            login: Login::parse(&stored.login).map_err(|_| Refused::RecordRefused)?,
            credentials: credentials.collect::<Result<_, _>>()?,
            totp,
        };
        // One spelling: what is read is what is written.
        if stored.v == 1 && record.to_json().as_slice() == json {
            Ok(record)
        } else {
            Err(Refused::RecordRefused)
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    v: u32,
    login: String,
    credentials: Vec<StoredCredential>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    totp: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCredential {
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<CredentialId>,
    public_key: String,
    wrap: String,
}

impl StoredCredential {
    fn of(credential: &Credential) -> Self {
        Self {
            kind: credential.kind.name().to_owned(),
            id: credential.id.clone(),
            public_key: URL_SAFE_NO_PAD.encode(credential.public_key),
            wrap: credential.wrap.to_base64url(),
        }
    }

    fn read(self) -> Result<Credential, Refused> {
        let kind = CredentialKind::ALL.iter().copied().find(|kind| kind.name() == self.kind);
        Ok(Credential {
            kind: kind.ok_or(Refused::RecordRefused)?,
            id: self.id,
            public_key: bytes_32(&self.public_key)?,
            wrap: Sealed::from_base64url(&self.wrap).map_err(|_| Refused::RecordRefused)?,
        })
    }
}

fn bytes_32(text: &str) -> Result<[u8; 32], Refused> {
    let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::RecordRefused)?);
    bytes.as_slice().try_into().map_err(|_| Refused::RecordRefused)
}

fn context<'a>(account: &'a AccountId, kid: &'a str) -> Context<'a> {
    Context { purpose: "account", owner: account.as_str(), container: kid, object: "row", field: "" }
}

/// What the server seals itself has the suite of its other keys and records.
pub(crate) const SUITE: Suite = Suite::ChaCha20Poly1305;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::AccountState;

    fn record() -> AccountRecord {
        let credential = |kind, id: Option<u8>| Credential {
            kind,
            id: id.map(|id| CredentialId::from_bits(&[id; 16])),
            public_key: [7; 32],
            wrap: Sealed::from_bytes(vec![1; 150]),
        };
        AccountRecord {
            login: Login::parse("ana").unwrap(),
            credentials: vec![
                credential(CredentialKind::Password, None),
                credential(CredentialKind::Recovery, Some(1)),
            ],
            totp: Some(Secret::from_bytes([9; 32])),
        }
    }

    fn row(record: Sealed, rev: u32) -> AccountRow {
        AccountRow { rev, generation: 1, epoch: 1, record, seq: 1, state: AccountState::Active }
    }

    #[test]
    fn a_record_opens_for_its_account_key_and_revision_only() {
        let (key, ana, ben) = (Key::random(), AccountId::random(), AccountId::random());
        let sealed = record().seal(&key, &ana, 3);
        assert_eq!(AccountRecord::open(&key, &ana, &row(sealed.clone(), 3)), Ok(record()));
        let refused = Err(Refused::RecordRefused);
        assert_eq!(AccountRecord::open(&key, &ben, &row(sealed.clone(), 3)), refused);
        assert_eq!(AccountRecord::open(&Key::random(), &ana, &row(sealed.clone(), 3)), refused);
        assert_eq!(AccountRecord::open(&key, &ana, &row(sealed, 4)), refused);
    }

    #[test]
    fn a_record_has_one_spelling_and_shows_nothing() {
        let json = String::from_utf8(record().to_json().to_vec()).unwrap();
        assert_eq!(AccountRecord::from_json(json.as_bytes()), Ok(record()));
        for (from, to) in [
            ("\"v\":1", "\"v\":2"),
            ("\"v\":1", "\"v\":1,\"w\":1"),
            ("\"v\":1", "\"v\": 1"),
            ("password", "passport"),
            ("\"ana\"", "\"\""),
            ("Bwc", "!"),
            (",\"totp\"", ",\"totp\":null,\"x\""),
        ] {
            let bad = json.replacen(from, to, 1);
            assert_ne!(bad, json);
            assert_eq!(AccountRecord::from_json(bad.as_bytes()), Err(Refused::RecordRefused), "{bad}");
        }
        assert_eq!(format!("{:?}", record()), "AccountRecord { credentials: 2, .. }");
    }

    #[test]
    fn a_credential_replaces_its_kind_or_its_id() {
        let mut now = record();
        let passkey = |id: u8, key: u8| Credential {
            kind: CredentialKind::Passkey,
            id: Some(CredentialId::from_bits(&[id; 16])),
            public_key: [key; 32],
            wrap: Sealed::from_bytes(vec![]),
        };
        for (new, count) in [(passkey(5, 1), 3), (passkey(5, 2), 3), (passkey(6, 1), 4)] {
            now.put(new);
            assert_eq!(now.credentials.len(), count);
        }
        now.put(Credential { kind: CredentialKind::Recovery, ..passkey(9, 9) });
        assert_eq!(now.credentials.len(), 4);
        assert!(now.credential(Signer::Credential(&CredentialId::from_bits(&[1; 16]))).is_none());
    }
}
