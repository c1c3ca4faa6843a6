//! Bearer tokens: who may ask, for which tenant, as what.
//!
//! A token is 32 random bytes, so its hash needs no salt and no stretching; the store has the hash, and the claims
//! sealed. The token itself is shown once and never kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_seal::{Context, Scope, Suite, TenantId, UserId, open, seal};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::audit::{Action, Actor};
use crate::clock::Millis;
use crate::engine::{Engine, random_id};
use crate::error::{Error, Tampering};
use crate::rights::Administrator;
use crate::store::{TokenRow, TokenSelector};

/// What a token's bearer may do, within its tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything, for everyone: turns, exports, erasures.
    Admin,
    /// Turns on behalf of anyone, and nothing else. What a person can say in a turn it can say for them, `!forget` included.
    Agent,
    /// Everything, for this person's own sessions only.
    User(UserId),
}

impl Role {
    /// Reads `admin`, `agent` or `user:<id>`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            None if text == "admin" => Ok(Self::Admin),
            None if text == "agent" => Ok(Self::Agent),
            Some(("user", id)) => Ok(Self::User(UserId::new(id)?)),
            _ => Err(Error::Invalid {
                what: "the role is unknown".to_owned(),
                hint: "use admin, agent or user:<id>".to_owned(),
            }),
        }
    }

    /// The role as it is written; for the person who may see it.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Admin => "admin".to_owned(),
            Self::Agent => "agent".to_owned(),
            Self::User(id) => format!("user:{}", id.as_str()),
        }
    }
}

/// Who bears a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// The token's id, which logs and the audit log may have.
    pub token_id: String,
    /// The tenant that it is bound to.
    pub tenant: TenantId,
    /// What it may do.
    pub role: Role,
    /// When it was made.
    pub created_at: Millis,
}

/// What somebody wants to do with a session or a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Run turns.
    Talk,
    /// See or end what is kept.
    Rights,
}

impl Bearer {
    /// Who this is in the audit log.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor::token(&self.token_id)
    }

    /// Whether the bearer may do this with the session of `scope`.
    #[must_use]
    pub fn may(&self, wish: Wish, scope: &Scope) -> bool {
        *scope.tenant() == self.tenant && self.may_for(wish, scope.user())
    }

    /// Whether the bearer may do this with what is kept of `user` in the bearer's tenant.
    #[must_use]
    pub fn may_for(&self, wish: Wish, user: &UserId) -> bool {
        match &self.role {
            Role::Admin => true,
            Role::Agent => wish == Wish::Talk,
            Role::User(own) => own == user,
        }
    }
}

/// The sealed part of a token's row.
#[derive(Serialize, Deserialize)]
struct Claims {
    tenant: String,
    role: String,
    created_at: Millis,
}

impl Engine {
    /// Who bears this token; `None` if nobody does.
    pub async fn authenticate(&self, token: &str) -> Result<Option<Bearer>, Error> {
        let administrator = self.dangerously_administer(Actor::system());
        let row = administrator.inner().store.token(hash(token)).await?;
        row.map(|row| administrator.bearer(&row)).transpose()
    }
}

impl Administrator {
    /// Makes a token. It is returned once and cannot be had again.
    pub async fn new_token(&self, tenant: &TenantId, role: &Role) -> Result<(Bearer, SecretString), Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|_| Error::Internal)?;
        let token = SecretString::from(format!("cft_{}", URL_SAFE_NO_PAD.encode(secret)));
        let keyring = &self.inner().keyring;
        let id = hex(&random_id()[..6]);
        let created_at = self.inner().now();
        let claims = Claims { tenant: tenant.as_str().to_owned(), role: role.to_text(), created_at };
        let plain = serde_json::to_vec(&claims).map_err(|_| Error::Internal)?;
        let person = match role {
            Role::User(user) => Some(keyring.person(tenant, user)),
            _ => None,
        };
        let hash = hash(token.expose_secret());
        let sealed =
            seal(keyring.token_key(), Suite::ChaCha20Poly1305, &context(&id, &hex(&hash)), 1, &plain);
        let row = TokenRow { hash, person, sealed, id: id.clone() };
        self.inner().store.add_token(row, vec![self.note(Action::TokenCreated).pending(keyring)]).await?;
        self.inner().anchors.mark_audit();
        Ok((Bearer { token_id: id, tenant: tenant.clone(), role: role.clone(), created_at }, token))
    }

    /// All tokens, without their secrets.
    pub async fn tokens(&self) -> Result<Vec<Bearer>, Error> {
        self.inner().store.tokens().await?.iter().map(|row| self.bearer(row)).collect()
    }

    /// Revokes a token; false if there is none with this id.
    pub async fn revoke_token(&self, id: &str) -> Result<bool, Error> {
        let note = self.note(Action::TokenRevoked).pending(&self.inner().keyring);
        let gone = self.inner().store.remove_tokens(TokenSelector::Id(id.to_owned()), vec![note]).await?;
        self.inner().anchors.mark_audit();
        Ok(gone > 0)
    }

    fn bearer(&self, row: &TokenRow) -> Result<Bearer, Error> {
        let opened = open(self.inner().keyring.token_key(), &context(&row.id, &hex(&row.hash)), &row.sealed);
        let opened = opened.map_err(|_| Tampering::RecordRefused)?;
        let claims: Claims = serde_json::from_slice(&opened.data).map_err(|_| Tampering::RecordRefused)?;
        Ok(Bearer {
            token_id: row.id.clone(),
            tenant: TenantId::new(&claims.tenant)?,
            role: Role::parse(&claims.role)?,
            created_at: claims.created_at,
        })
    }
}

fn hash(token: &str) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    let mut hash = [0; 32];
    hash.copy_from_slice(digest.as_ref());
    hash
}

/// The hash is part of it: whoever can write to the store could otherwise put the hash of a token of their own beside
/// somebody's claims.
fn context<'a>(id: &'a str, hash: &'a str) -> Context<'a> {
    Context { purpose: "token", owner: "", container: "", object: id, field: hash }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
