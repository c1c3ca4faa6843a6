//! The mailbox: an answer that came when no device was there is sealed to the account's public key and waits.
//!
//! ```text
//! leave_letter ─▶ box_pub: the newest entry of the mailbox's ring ─▶ seal ─▶ store        the server cannot open it again
//! leave_more ───▶ the same, for what came after the answer ────────────▶ store
//! letter_for, Step::Letters ─▶ a device opens it, writes it under the chat's key ─▶ acknowledge: the letter goes
//! ```
//!
//! Leaving and acknowledging may be repeated: the first letter of a turn stays, and what is gone is gone. A device believes a letter
//! only if the chat's sealed head waits for that reply ([`confidant_chat_format::Letter`]).
//!
//! Easy to get wrong: an old public key. Whoever can write to the database and has a lost device's keys could put the mailbox's
//! older entries back, and the server would seal to that device. So the newest entry has to be of the account's generation, and its
//! number no less: every rotation adds one.

use confidant_chat_format::{
    AccountId, ChatId, Letter, Message, MessageId, PublicKey, Refused, Role, Text, TurnId,
};
use confidant_chat_protocol::{
    Blob, LetterSent, LettersWaiting, List, PendingAiResponse, ServerEvent, limits as wire,
};

use super::Inner;
use super::identity::Known;
use super::parts::base64;
use super::refusals::{Answer, malformed, not_found};
use super::rows::open_entry;
use crate::store::{Kept, LetterRow, PutLetter, RingName};

impl Inner {
    /// The public key that letters to this account are sealed to: the newest of its mailbox.
    pub(crate) async fn box_pub(&self, account: &AccountId) -> Answer<PublicKey> {
        // Also finds out whether somebody put an old record back.
        let Known { row, key, .. } = self.known(account).await?;
        let newest = self.store.ring(account, &RingName::Box).await?.pop().ok_or(Refused::RingGap)?;
        let (entry, box_pub) = open_entry(&key, account, &RingName::Box, newest)?;
        let generation = entry.sealed.rev().ok_or(Refused::KeyRefused)?;
        if generation != row.generation || entry.n < generation {
            return Err(Refused::RolledBack.into());
        }
        Ok(box_pub.ok_or(Refused::KeyRefused)?)
    }

    /// Seals the answer of a turn and keeps it until a device takes it. If the turn has one already, that one stays. A chat
    /// that is not there (any more): `not-found`; an answer that no chat could store: `too-large`.
    pub(crate) async fn leave_letter(
        &self,
        account: &AccountId,
        chat: &ChatId,
        turn: &TurnId,
        reply: &MessageId,
        message: &Message,
    ) -> Answer<Kept> {
        if message.role != Role::Assistant {
            return Err(malformed("a letter has an answer inside"));
        }
        let box_pub = self.box_pub(account).await?;
        let letter = Letter { account, chat, reply, turn }.seal(&box_pub, message)?;
        let put = PutLetter {
            account: account.clone(),
            chat: chat.clone(),
            turn: turn.clone(),
            reply: reply.clone(),
            letter,
            now: self.now(),
        };
        Ok(self.store.put_letter(put).await?)
    }

    /// Adds what came after the answer, such as suggestions, to the letter of a turn. A letter that was taken meanwhile:
    /// `not-found`; then a device is there.
    pub(crate) async fn leave_more(
        &self,
        account: &AccountId,
        chat: &ChatId,
        turn: &TurnId,
        more: &Text,
    ) -> Answer<Kept> {
        let left = self.store.letter(account, chat, turn).await?.ok_or_else(not_found)?;
        let box_pub = self.box_pub(account).await?;
        let sealed = Letter { account, chat, reply: &left.reply, turn }.seal_more(&box_pub, more)?;
        Ok(self.store.put_letter_more(account, chat, turn, sealed).await?)
    }

    /// The letter of a turn, as it is sent.
    pub(crate) async fn letter_for(
        &self,
        account: &AccountId,
        chat: &ChatId,
        turn: &TurnId,
    ) -> Answer<Option<LetterSent>> {
        self.store.letter(account, chat, turn).await?.map(sent).transpose()
    }

    /// A device has stored the answer: its letter goes. Says whether there was one.
    pub(crate) async fn acknowledge(
        &self,
        account: &AccountId,
        chat: &ChatId,
        turn: &TurnId,
    ) -> Answer<bool> {
        Ok(self.store.take_letter(account, chat, turn).await?)
    }

    /// As many letters as fit into a frame, after this one; and the last of them, if more may follow.
    pub(crate) async fn letters_frame(
        &self,
        account: &AccountId,
        after: Option<(ChatId, TurnId)>,
    ) -> Answer<(ServerEvent, Option<(ChatId, TurnId)>)> {
        let rows = self.store.letters(account, after, FRAME).await?;
        let last = rows.last().map(|row| (row.chat.clone(), row.turn.clone()));
        let more = last.is_some();
        let letters = rows.into_iter().map(sent).collect::<Answer<_>>()?;
        let event = LettersWaiting { letters: List::new(letters)?, more };
        Ok((ServerEvent::LettersWaiting(event), last))
    }
}

/// A letter, as whoever takes up its turn is told of it.
pub(crate) fn waits(letter: LetterSent) -> ServerEvent {
    let LetterSent { chat, turn, reply, letter, more, .. } = letter;
    ServerEvent::PendingAiResponse(PendingAiResponse { chat, turn, reply, letter, more })
}

fn sent(row: LetterRow) -> Answer<LetterSent> {
    Ok(LetterSent {
        chat: row.chat,
        turn: row.turn,
        reply: row.reply,
        letter: Blob::new(row.letter)?,
        more: row.more.map(Blob::new).transpose()?,
        left_at: row.left_at.0,
    })
}

/// What the letters of a frame may have, as bytes: four thirds of it in JSON, and ids.
const FRAME: usize = 4 << 20;
const _: () = assert!(base64(FRAME) + 300 * wire::MAX_LETTERS < wire::MAX_FRAME);
