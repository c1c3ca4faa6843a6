//! Who is in a conversation that an application named, and how they get in.
//!
//! Being in it is having a key of one's own there. A person gets one when an agent or an administrator speaks for them, or
//! invites them; never by knowing the conversation's name. Who is not in it has the same conversation to themselves: their
//! concepts are kept with their session, and nobody else's are seen.
//!
//! A chat that only its owner can open is such a conversation of one: its owner is in it while they have its concepts switched
//! on ([`WebSessions::keep_concepts`](crate::WebSessions::keep_concepts)). Otherwise it has no concepts at all.

use confidant_seal::Scope;
use futures_util::future::BoxFuture;

use super::conversation::{Conversation, PartName};
use super::{keep, lifetime};
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::Action;
use crate::ledger::session::Session;
use crate::store::KeyRow;

/// Where a session's concepts are kept: with those of the others in the conversation, or alone.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) conversation: Conversation,
    /// The session's part, where it is shared.
    pub(super) part: Option<(PartName, KeyRow)>,
}

impl Seat {
    /// Whether anything is kept here: nothing is of a chat whose owner did not switch that on.
    pub(super) fn keeps(&self, session: &Session) -> bool {
        self.part.is_some() || !session.is_web()
    }

    pub(super) async fn of(session: &Session) -> Result<Self, Error> {
        let keyring = &session.inner.ledger.keyring;
        if let Some((conversation, part)) = shared(session)
            && let Some(row) = keyring.store().get(part.names.scope).await?
        {
            return Ok(Self { conversation, part: Some((part, row)) });
        }
        Ok(Self { conversation: Conversation::own(keyring, &session.scope), part: None })
    }
}

/// The conversation that a session's application named, with the part that the session would have in it.
fn shared(session: &Session) -> Option<(Conversation, PartName)> {
    shared_of(&session.inner, &session.scope)
}

/// The same for a scope.
pub(super) fn shared_of(inner: &Inner, scope: &Scope) -> Option<(Conversation, PartName)> {
    let conversation = Conversation::shared(&inner.ledger.keyring, scope)?;
    let names = inner.ledger.keyring.names(scope);
    let part = conversation.part(&inner.ledger.keyring, names.scope, names.person);
    Some((conversation, part))
}

impl Session {
    /// Lets the session's person into the concepts of the conversation that their application named. Says whether there is
    /// such a conversation. For whoever speaks for people or invites them; a person cannot do it for themself.
    pub fn join_conversation(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            let Some((_, part)) = shared(self).filter(|_| self.inner.ledger.concepts.shared().is_some())
            else {
                return Ok(false);
            };
            let keyring = &self.inner.ledger.keyring;
            if keyring.store().get(part.names.scope).await?.is_none() {
                let until = lifetime::kept_until(&self.inner);
                keyring
                    .data_key_or_new(&part.scope, &part.names, until, self.inner.ledger.epoch().await?)
                    .await?;
                self.inner.ledger.record(self.record(Action::ContextJoined)).await?;
            }
            Ok(true)
        })
    }

    /// Whether the session's person is in the conversation that their application named.
    pub fn is_in_conversation(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move { Ok(Seat::of(self).await?.part.is_some()) })
    }

    /// Takes the session's person out of the conversation, with what they put in scope there. Says whether they were in it.
    pub fn leave_conversation(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            let Seat { conversation, part: Some((part, _)) } = Seat::of(self).await? else {
                return Ok(false);
            };
            keep::forget_part(&self.inner, &conversation, &part).await?;
            self.inner.ledger.record(self.record(Action::ContextLeft)).await?;
            self.inner.ledger.store.scrub().await?;
            Ok(true)
        })
    }
}
