//! What is kept of a chat beyond its words, because its owner switched that on: who answers keeps it, and forgets it here.
//!
//! ```text
//! question: `remembers` ─▶ Ask ─▶ kept, and used for the chat's next answers
//! forget_remembered ─────────┐
//! the chat is deleted ───────┴─▶ Answerer::forget: keys first, a receipt        the account is erased: with everything else of it
//! ```
//!
//! Easy to get wrong: a turn that runs while its chat is deleted. Whatever it keeps after that is forgotten with its words
//! ([`super::answers`]).

use std::collections::VecDeque;

use confidant_chat_format::{AccountId, ChatId};
use confidant_chat_protocol::limits::MAX_RECORDS;
use confidant_chat_protocol::{
    ForgetRemembered, List, Remembered, RememberedForgotten, RememberedRecords, RememberedSent, ServerEvent,
    Text,
};

use super::Inner;
use super::frames::Step;
use super::refusals::Answer;
use super::socket::Peer;
use crate::store::Have;

impl Inner {
    pub(crate) async fn forget_remembered(&self, peer: &Peer, forget: ForgetRemembered) -> Answer<Vec<Step>> {
        let ForgetRemembered { chat, what } = forget;
        // Somebody else's chat is none.
        self.store.chat(&peer.account, &chat, Have::ALL).await?;
        let receipt = match &self.answers.answerer {
            Some(answerer) => answerer.forget(&peer.account, &chat, what).await?,
            None => None,
        };
        let receipt = receipt.map(Text::new).transpose()?;
        let forgotten = RememberedForgotten { chat, what, receipt };
        Ok(vec![Step::event(ServerEvent::RememberedForgotten(forgotten))])
    }

    /// A chat goes, and all that is kept of it.
    pub(crate) async fn forget_all(&self, account: &AccountId, chat: &ChatId) -> Answer<()> {
        let Some(answerer) = &self.answers.answerer else { return Ok(()) };
        for what in Remembered::ALL {
            answerer.forget(account, chat, *what).await?;
        }
        Ok(())
    }

    /// What is kept of these chats, as much as a frame has, behind the first so many of the first chat; and what is left to send.
    pub(crate) async fn remembered_frame(
        &self,
        account: &AccountId,
        left: &RememberedStep,
    ) -> Answer<(ServerEvent, Option<RememberedStep>)> {
        let (mut records, mut left) = (Vec::new(), left.clone());
        let answerer = self.answers.answerer.as_ref();
        while let (Some(chat), Some(answerer)) = (left.chats.front().cloned(), answerer) {
            let mut all = Vec::new();
            for what in Remembered::ALL {
                let found = answerer.remembered(account, &chat, *what).await?;
                all.extend(found.into_iter().map(|record| (*what, record)));
            }
            let room = MAX_RECORDS - records.len();
            let count = all.len();
            for (what, record) in all.into_iter().skip(left.sent).take(room) {
                records.push(RememberedSent { chat: chat.clone(), what, record: Text::new(record)? });
            }
            if left.sent + room < count {
                left.sent += room;
                break;
            }
            left.chats.pop_front();
            left.sent = 0;
        }
        let is_over = left.chats.is_empty() || answerer.is_none();
        let event = RememberedRecords { records: List::new(records)? };
        Ok((ServerEvent::RememberedRecords(event), (!is_over).then_some(left)))
    }
}

/// What of an export is still to be sent of some chats.
#[derive(Clone)]
pub(crate) struct RememberedStep {
    chats: VecDeque<ChatId>,
    /// Records of the first of them that were sent.
    sent: usize,
}

impl RememberedStep {
    pub(crate) fn of(chats: impl Iterator<Item = ChatId>) -> Self {
        Self { chats: chats.collect(), sent: 0 }
    }
}
