//! Whether a question continues words that only a device of the chat's owner can have.
//!
//! ```text
//! the first message of a chat ──────────┐
//! a history with a proof of ours ───────┼─▶ proved: what the person switched on is kept, and used
//! the cache, as a proved turn left it ──┘
//! anything else ────────────────────────▶ not proved: answered all the same; its digest and proofs are made with a key of their own
//! ```
//!
//! Somebody who stole a session, and has no key of the account, can ask in a chat, and makes up what was said before.
//!
//! Easy to get wrong: the answer to such a question. It is ours and has a proof, so it would prove the next question of the thief.
//! Its proof says that the assistant spoke, and no more than that.

use confidant_chat_format::{Claim, Digest, ItemId, MessageId, Transcript, TurnId};
use confidant_chat_protocol::ChatMessageAdded;

use crate::answerer::{AnswerStream, Answerer, Ask, Have, Kept, Place};
use crate::service::Inner;
use crate::service::refusals::{Answer, unavailable};
use crate::store::{self, StoreError};
use crate::vault::Key;

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AskedAt {
    /// Where the transcript stands with it.
    pub(super) transcript: Transcript,
    /// Whether what is before it is proved.
    pub(super) is_proved: bool,
}

/// The key that an answer is proved with.
pub(super) fn key(account_key: &Key, is_proved: bool) -> Key {
    if is_proved { account_key.clone() } else { account_key.derive(UNPROVED) }
}

impl Inner {
    /// The digest that a branch is kept under. Of one that is not proved nobody else can name it.
    pub(super) async fn kept_as(&self, place: &Place, digest: Digest, is_proved: bool) -> Answer<Digest> {
        if is_proved {
            return Ok(digest);
        }
        let key = self.vault.key(&place.account, None).await?;
        let key = key.ok_or_else(|| unavailable("the server has lost the account's key"))?;
        Ok(Digest::from_bytes(key.derive(UNPROVED).mac(UNPROVED, digest.as_bytes())))
    }

    /// What there is of a chat, under the digest that the device knows it by; whether it is what a proved turn left.
    pub(super) async fn known_branch(
        &self,
        place: &Place,
        have: Have,
        ask: &ChatMessageAdded,
    ) -> Answer<(Have, bool)> {
        let Have::There(kept) = have else { return Ok((have, false)) };
        if kept.digest == ask.before {
            return Ok((have, true));
        }
        if kept.digest == self.kept_as(place, ask.before, false).await? {
            return Ok((Have::There(Kept { digest: ask.before, ..kept }), false));
        }
        Ok((have, false))
    }

    /// A question that is not proved: nothing is kept of it beyond the words, nor is what was kept before used. That may be forgotten: a session
    /// alone is enough for it.
    pub(super) async fn distrust(&self, question: &mut Ask) -> Answer<()> {
        let Claim { count, before, after } = question.claim;
        let before = self.kept_as(&question.place, before, false).await?;
        let after = self.kept_as(&question.place, after, false).await?;
        question.claim = Claim { count, before, after };
        question.remembers.take_if(|what| !what.is_empty());
        Ok(())
    }

    /// Whether a message is the first that its chat ever had: before it, nobody can have made anything up. A chat that is not stored
    /// keeps nothing, so it need not be.
    pub(super) async fn is_first(&self, place: &Place, message: &MessageId) -> Answer<bool> {
        let Place { account, chat, .. } = place;
        let is_other = |item: &ItemId| matches!(item, ItemId::Message(id) if id != message);
        let there = match self.store.chat(account, chat, store::Have::default()).await {
            Err(StoreError::NotFound) => return Ok(false),
            there => there?,
        };
        if there.changed.iter().any(|line| is_other(&line.item)) {
            return Ok(false);
        }
        // The first write removes nothing.
        let since = store::Have { messages_v: 1, ..store::Have::ALL };
        let gone = self.store.chat(account, chat, since).await?.gone;
        Ok(!gone.iter().any(|gone| is_other(&gone.item)))
    }

    /// The answer of a turn that was begun before, whether or not its question was proved.
    pub(super) async fn heard_again(
        &self,
        answerer: &dyn Answerer,
        place: &Place,
        turn: &TurnId,
        after: Digest,
    ) -> Answer<Option<AnswerStream>> {
        if let Some(telling) = answerer.again(place, turn, &after).await? {
            return Ok(Some(telling));
        }
        let after = self.kept_as(place, after, false).await?;
        answerer.again(place, turn, &after).await
    }
}

/// The sub-key of the server's key of the account, and the domain in which digests are made with it.
const UNPROVED: &str = "unproved";
