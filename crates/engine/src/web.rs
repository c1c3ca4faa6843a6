//! The one door to sessions of chats that only their owner can open.
//!
//! ```text
//! device ── words of one turn ──▶ chats ──▶ WebSessions ──▶ Session: head, turn ─▶ answer
//!    ▲                                                         │ kept: a day, the newest 3 of an account, or in memory
//!    └────────────── history, when the log has another ────────┘
//! ```
//!
//! The channel of these sessions is reserved, so that no other surface reaches one: whoever runs chats has this door, and sees
//! to it that somebody who asks is a device of the account. Easy to get wrong: taking the session for the chat. It is a copy for
//! a while, and the chat goes on without it.

use std::sync::Arc;

use confidant_seal::{PlaceId, Scope, TenantId};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::clock::Millis;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::Actor;
use crate::ledger::rights::{Receipt, erase_concepts};
use crate::ledger::session::Session;
use crate::ledger::web_cache;
use crate::ledger::web_scope::{self, Keep};
use crate::turn::{self, Offers};

/// The sessions of a tenant's chats.
#[derive(Clone, Debug)]
pub struct WebSessions {
    inner: Arc<Inner>,
    tenant: TenantId,
}

/// A chat that has a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSession {
    /// The chat.
    pub chat: PlaceId,
    /// Where its session is kept.
    pub keep: Keep,
    /// When it ends if nothing more is said.
    pub expires_at: Option<Millis>,
    /// Whether a turn runs in it, or waits for a decision.
    pub is_at_work: bool,
}

impl WebSessions {
    pub(crate) fn new(inner: Arc<Inner>, tenant: TenantId) -> Self {
        Self { inner, tenant }
    }

    /// Whose chats they are.
    #[must_use]
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The session of a chat, whether or not there is one yet.
    pub fn session(&self, account: &str, chat: &str, keep: Keep) -> Result<Session, Error> {
        let scope = web_scope::scope(&self.tenant, account, chat, keep)?;
        Ok(Session::new(Arc::clone(&self.inner), scope, Actor::named(ACTOR)))
    }

    /// The same, and the end of the chat's sessions in other places: whoever switches its cache off has none any more.
    pub fn open<'a>(
        &'a self,
        account: &'a str,
        chat: &'a str,
        keep: Keep,
    ) -> BoxFuture<'a, Result<Session, Error>> {
        Box::pin(async move {
            for other in Keep::ALL.into_iter().filter(|other| *other != keep) {
                web_cache::end(&self.session(account, chat, other)?).await?;
            }
            // What workers have for longer than a turn.
            if keep == Keep::Once {
                self.tell_workers(account, chat).await?;
            }
            self.session(account, chat, keep)
        })
    }

    /// Ends the sessions of a chat, wherever they are kept, with the turns that run in them; says whether there was one.
    pub fn end<'a>(&'a self, account: &'a str, chat: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let mut ended = false;
            for keep in Keep::ALL {
                let session = self.session(account, chat, keep)?;
                self.inner.cancels.drop_all(session.names.scope);
                ended |= web_cache::end(&session).await?;
            }
            self.tell_workers(account, chat).await?;
            Ok(ended)
        })
    }

    /// Has workers end what they have of a chat in their memory.
    async fn tell_workers(&self, account: &str, chat: &str) -> Result<(), Error> {
        if let Some(gateway) = self.inner.gateway.get() {
            let scope = web_scope::scope(&self.tenant, account, chat, Keep::Memory)?;
            gateway.end(&scope, false).await;
        }
        Ok(())
    }

    /// Ends what this process has in its memory of a chat, or of all chats of its account: a gateway said so.
    pub(crate) async fn end_here(&self, scope: Scope, whole_account: bool) -> Result<(), Error> {
        if !web_scope::is_volatile(&scope) {
            return Ok(());
        }
        let said = Session::new(Arc::clone(&self.inner), scope, Actor::named(ACTOR));
        let mut over = Vec::new();
        if whole_account {
            let found = web_cache::of_account(&said).await?.into_iter().map(|(session, _)| session);
            over.extend(found.filter(|session| web_scope::is_volatile(session.scope())));
        } else if let Some(chat) = said.scope().place_id() {
            for keep in [Keep::Memory, Keep::Once] {
                over.push(self.session(said.scope().user().as_str(), chat.as_str(), keep)?);
            }
        }
        for session in over {
            self.inner.cancels.drop_all(session.names.scope);
            web_cache::end(&session).await?;
        }
        Ok(())
    }

    /// What turns in the chats of an account may use, as far as this process knows.
    pub fn offers<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<Offers, Error>> {
        Box::pin(async move {
            // Any chat's session will do: what is allowed depends on whose it is.
            Ok(turn::offers(&self.session(account, ANY_CHAT, Keep::Once)?).await)
        })
    }

    /// Keeps the concepts of a chat from now on: its owner has switched that on. They are the chat's, and outlive its sessions. Says
    /// whether it can be done: not where concepts are off.
    pub fn keep_concepts<'a>(
        &'a self,
        account: &'a str,
        chat: &'a str,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move { self.session(account, chat, Keep::Stored)?.join_conversation().await })
    }

    /// Ends what is kept of a chat's concepts, keys first, and keeps no more; the receipt, if there was anything.
    pub fn forget_concepts<'a>(
        &'a self,
        account: &'a str,
        chat: &'a str,
    ) -> BoxFuture<'a, Result<Option<Receipt>, Error>> {
        Box::pin(async move { erase_concepts(&self.session(account, chat, Keep::Stored)?).await })
    }

    /// What is kept of a chat's concepts, for its owner's export; nothing where that is not switched on.
    pub fn export_concepts<'a>(
        &'a self,
        account: &'a str,
        chat: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<Value>>, Error>> {
        Box::pin(async move { self.session(account, chat, Keep::Stored)?.kept_concepts().await })
    }

    /// The chats of an account that have a session.
    pub fn list<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<Vec<WebSession>, Error>> {
        Box::pin(async move {
            // Any chat's will do: all have the account in common.
            let any = self.session(account, ANY_CHAT, Keep::Stored)?;
            let found = web_cache::of_account(&any).await?.into_iter();
            let listed = found.filter_map(|(session, listed)| {
                Some(WebSession {
                    chat: session.scope().place_id()?.clone(),
                    keep: web_scope::keep(session.scope())?,
                    expires_at: listed.expires_at,
                    is_at_work: listed.owner.is_some(),
                })
            });
            Ok(listed.collect())
        })
    }
}

/// Who it was, in the audit log; which account is its subject.
const ACTOR: &str = "account";
const ANY_CHAT: &str = "chat";
