//! Bearer tokens: who may ask, for which tenant, as what.
//!
//! A token is 32 random bytes, so its hash needs no salt and no stretching; the store has the hash, and the claims
//! sealed. The token itself is shown once and never kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_seal::{Context, Scope, Suite, Tag, TenantId, UserId, open, seal};
use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::engine::Engine;
use crate::error::{Error, Tampering};
use crate::inner::Inner;
use crate::ledger::audit::{Action, Actor};
use crate::ledger::epoch::Epoch;
use crate::ledger::rights::{Administrator, Whose};
use crate::store::random_id;
use crate::store::{PendingAudit, TokenRow};

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
            Some(("account", _)) => Err(Error::Invalid {
                what: "account:<id> is the role of somebody who logged in to their chats, so no token has it"
                    .to_owned(),
                hint: "use admin, agent or user:<id>".to_owned(),
            }),
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
pub enum Permission {
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
    pub fn may(&self, permission: Permission, scope: &Scope) -> bool {
        *scope.tenant() == self.tenant && self.may_for(permission, scope.user())
    }

    /// Whether the bearer may do this with what is kept of `user` in the bearer's tenant.
    #[must_use]
    pub fn may_for(&self, permission: Permission, user: &UserId) -> bool {
        match &self.role {
            Role::Admin => true,
            Role::Agent => permission == Permission::Talk,
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
    /// How many erasures there had been: one of its person since then ends it.
    #[serde(default)]
    born: Epoch,
}

impl Engine {
    /// Who bears this token; `None` if nobody does.
    pub fn authenticate<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<Bearer>, Error>> {
        Box::pin(async move {
            let administrator = self.dangerously_administer(Actor::system());
            let (hash, inner) = (hash(token), administrator.inner());
            let row = async { Ok::<_, Error>(inner.ledger.store.token(hash).await?) };
            // A row that was put back still has its mark.
            let (row, revoked) = tokio::try_join!(row, is_revoked(inner, &hash))?;
            let Some(row) = row.filter(|_| !revoked) else { return Ok(None) };
            let (bearer, born) = bearer(inner, &row)?;
            Ok(if is_ended(inner, &bearer, born).await? { None } else { Some(bearer) })
        })
    }
}

/// The name under which a token's end is marked. Keyed: its hash is in the data, and nobody need be able to tell.
fn mark(inner: &Inner, hash: &[u8; 32]) -> Tag {
    inner.ledger.keyring.token_key().tag("revoked", hash)
}

async fn is_revoked(inner: &Inner, hash: &[u8; 32]) -> Result<bool, Error> {
    Ok(inner.ledger.last_erasure_of(mark(inner, hash)).await? > Epoch::default())
}

/// Whether the person that a token stands for was erased after it was made.
async fn is_ended(inner: &Inner, bearer: &Bearer, born: Epoch) -> Result<bool, Error> {
    let Role::User(user) = &bearer.role else { return Ok(false) };
    Ok(inner.ledger.last_erasure_of(inner.ledger.keyring.person(&bearer.tenant, user)).await? > born)
}

/// Ends every token of a person, which their claims say, not what the rows are found by; says how many.
pub(crate) async fn end_tokens(inner: &Inner, whose: &Whose) -> Result<u64, Error> {
    let mut gone = 0;
    for row in inner.ledger.store.tokens().await? {
        // One that does not open lets nobody in.
        let Ok((bearer, _)) = bearer(inner, &row) else { continue };
        if bearer.tenant == whose.tenant && bearer.role == Role::User(whose.user.clone()) {
            gone += end_token(inner, &row, Vec::new()).await?;
        }
    }
    Ok(gone)
}

/// Ends one: the mark first, so that it is good for nothing from then on, also if its row comes back.
async fn end_token(inner: &Inner, row: &TokenRow, audit: Vec<PendingAudit>) -> Result<u64, Error> {
    inner.ledger.begin_erasure(mark(inner, &row.hash)).await?;
    Ok(inner.ledger.store.remove_token(row.hash, audit).await?)
}

impl Administrator {
    /// Makes a token. It is returned once and cannot be had again.
    pub fn new_token<'a>(
        &'a self,
        tenant: &'a TenantId,
        role: &'a Role,
    ) -> BoxFuture<'a, Result<(Bearer, SecretString), Error>> {
        Box::pin(async move {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).map_err(|_| Error::Internal)?;
            let token = SecretString::from(format!("cft_{}", URL_SAFE_NO_PAD.encode(secret)));
            let keyring = &self.inner().ledger.keyring;
            let id = hex::encode(&random_id()[..6]);
            let (created_at, born) = (self.inner().ledger.now(), self.inner().ledger.epoch().await?);
            let claims =
                Claims { tenant: tenant.as_str().to_owned(), role: role.to_text(), created_at, born };
            let plain = serde_json::to_vec(&claims).map_err(|_| Error::Internal)?;
            let person = match role {
                Role::User(user) => Some(keyring.person(tenant, user)),
                _ => None,
            };
            let hash = hash(token.expose_secret());
            let sealed = seal(
                keyring.token_key(),
                Suite::ChaCha20Poly1305,
                &context(&id, &hex::encode(hash)),
                1,
                &plain,
            );
            let row = TokenRow { hash, person, sealed, id: id.clone() };
            self.inner()
                .ledger
                .store
                .add_token(
                    row,
                    vec![self.note(Action::TokenCreated).within(keyring.tenant(tenant)).pending(keyring)],
                )
                .await?;
            self.inner().ledger.anchors.mark_audit();
            Ok((Bearer { token_id: id, tenant: tenant.clone(), role: role.clone(), created_at }, token))
        })
    }

    /// All tokens, without their secrets.
    ///
    /// Rows that do not open or were put back are left out: they let nobody in, and `doctor` names them.
    pub fn tokens(&self) -> BoxFuture<'_, Result<Vec<Bearer>, Error>> {
        Box::pin(async move {
            Ok(self.all_tokens().await?.into_iter().filter_map(|(_, bearer)| bearer).collect())
        })
    }

    /// The ids of rows that do not open, or are here again after they were ended.
    pub(crate) async fn refused_tokens(&self) -> Result<Vec<String>, Error> {
        Ok(self
            .all_tokens()
            .await?
            .into_iter()
            .filter(|(_, bearer)| bearer.is_none())
            .map(|(id, _)| id)
            .collect())
    }

    async fn all_tokens(&self) -> Result<Vec<(String, Option<Bearer>)>, Error> {
        let inner = self.inner();
        let mut all = Vec::new();
        for row in inner.ledger.store.tokens().await? {
            let opened = bearer(inner, &row).ok();
            let ended = match &opened {
                Some((bearer, born)) => {
                    is_revoked(inner, &row.hash).await? || is_ended(inner, bearer, *born).await?
                }
                None => true,
            };
            all.push((row.id, opened.filter(|_| !ended).map(|(bearer, _)| bearer)));
        }
        Ok(all)
    }

    /// Revokes a token; false if there is none with this id.
    pub fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let inner = self.inner();
            let rows = inner.ledger.store.tokens().await?;
            let mut gone = 0;
            for row in rows.iter().filter(|row| row.id == id) {
                let mut note = self.note(Action::TokenRevoked);
                let whose = bearer(inner, row).ok();
                note.tenant =
                    whose.map(|(bearer, _)| inner.ledger.keyring.tenant(&bearer.tenant).to_string());
                gone += end_token(inner, row, vec![note.pending(&inner.ledger.keyring)]).await?;
            }
            inner.ledger.anchors.mark_audit();
            Ok(gone > 0)
        })
    }
}

/// Who bears a token, and how many erasures there had been when it was made.
fn bearer(inner: &Inner, row: &TokenRow) -> Result<(Bearer, Epoch), Error> {
    let opened =
        open(inner.ledger.keyring.token_key(), &context(&row.id, &hex::encode(row.hash)), &row.sealed);
    let opened = opened.map_err(|_| Tampering::RecordRefused)?;
    let claims: Claims = serde_json::from_slice(&opened.data).map_err(|_| Tampering::RecordRefused)?;
    let bearer = Bearer {
        token_id: row.id.clone(),
        tenant: TenantId::new(&claims.tenant)?,
        role: Role::parse(&claims.role)?,
        created_at: claims.created_at,
    };
    Ok((bearer, claims.born))
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
