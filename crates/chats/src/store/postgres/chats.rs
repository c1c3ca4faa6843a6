//! Chats as rows: reading, drafts. Writing is in `write.rs`.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, ItemId};
use confidant_postgres::{Ask, Transaction};
use confidant_seal::Sealed;

use super::super::chats::{
    ChatDelta, ChatRow, Chats, DeleteChat, DraftRow, Gone, Have, ItemLine, ItemRow, PutDraft, Write, Written,
};
use super::super::checks::{Sub, envelope, grows};
use super::super::{Changed, Millis, Result, StoreError, limits};
use super::lists::trail_of;
use super::rings::{ENTRIES, KIDS, entry_at, kids};
use super::rows::{
    ACCOUNT, LOCK, NOTE, Notes, account, all, digest_at, get, many, millis_at, number, parsed_at, parts,
    sealed_at, u32_at, whose,
};
use super::write::{self, CHAT, there};
use super::{PostgresChats, Work, transact};

#[async_trait]
impl Chats for PostgresChats {
    async fn write(&self, write: Write) -> Result<Written> {
        transact!(self, Writing, |tx| write::write(tx, &write))
    }

    async fn delete_chat(&self, delete: DeleteChat) -> Result<u64> {
        transact!(self, Writing, |tx| write::delete(tx, &delete))
    }

    async fn put_draft(&self, put: PutDraft) -> Result<u64> {
        transact!(self, Writing, |tx| put_draft(tx, &put))
    }

    async fn opened(&self, id: &AccountId, chat: &ChatId, now: Millis) -> Result<()> {
        transact!(self, Writing, |tx| opened(tx, id, chat, now))
    }

    async fn chat(&self, id: &AccountId, chat: &ChatId, have: Have) -> Result<ChatDelta> {
        transact!(self, Reading, |tx| delta(tx, id, chat, have))
    }

    async fn items(
        &self,
        id: &AccountId,
        chat: &ChatId,
        items: Vec<ItemId>,
        bytes: usize,
    ) -> Result<Vec<ItemRow>> {
        transact!(self, Reading, |tx| read_items(tx, id, chat, &items, bytes))
    }
}

async fn opened(tx: &mut Transaction<'_>, id: &AccountId, chat: &ChatId, now: Millis) -> Work<()> {
    let (id, chat, now) = (id.as_str(), chat.as_str(), number(now.0));
    let sql =
        "UPDATE chats SET opened_at = greatest(opened_at, $3) WHERE account = $1 AND chat = $2 RETURNING n";
    let found = tx.finish(&[whose(&[&id]), Ask(sql, &[&id, &chat, &now])]).await?;
    let [_, updated] = parts(found)?;
    if updated.is_empty() { Err(StoreError::NotFound.into()) } else { Ok(()) }
}

async fn delta(tx: &mut Transaction<'_>, id: &AccountId, chat: &ChatId, have: Have) -> Work<ChatDelta> {
    let (id, chat, kind) = (id.as_str(), chat.as_str(), 0_i64);
    let (since, from) = (i64::from(have.messages_v), i64::from(have.trail_from));
    let found = tx
        .finish(&[
            whose(&[&id]),
            Ask(ACCOUNT, &[&id]),
            Ask(
                "SELECT rev, title_v, draft_v, created_at, updated_at, opened_at, count, head FROM chats
                 WHERE account = $1 AND chat = $2",
                &[&id, &chat],
            ),
            Ask(
                "SELECT item, rev, hash, seq, bytes FROM items
                 WHERE chat = (SELECT n FROM chats WHERE account = $1 AND chat = $2) AND put_at > $3 ORDER BY item",
                &[&id, &chat, &since],
            ),
            // A device that has nothing has nothing to remove either.
            Ask(
                "SELECT item, removed_at FROM tombstones
                 WHERE chat = (SELECT n FROM chats WHERE account = $1 AND chat = $2) AND removed_at > $3 AND $3 > 0
                 ORDER BY item",
                &[&id, &chat, &since],
            ),
            Ask(
                "SELECT rev, chain, live, hash FROM steps
                 WHERE chat = (SELECT n FROM chats WHERE account = $1 AND chat = $2) AND rev >= $3 AND $3 > 0
                 ORDER BY rev",
                &[&id, &chat, &from],
            ),
            Ask(
                "SELECT envelope FROM drafts WHERE chat = (SELECT n FROM chats WHERE account = $1 AND chat = $2)",
                &[&id, &chat],
            ),
            Ask(ENTRIES, &[&id, &chat, &kind]),
        ])
        .await?;
    let [_, whose, chats, changed, gone, steps, drafts, ring] = parts(found)?;
    account(&whose)?;
    let row = chats.first().ok_or(StoreError::NotFound)?;
    let chat = ChatRow {
        messages_v: u32_at(row, 0)?,
        title_v: u32_at(row, 1)?,
        draft_v: u32_at(row, 2)?,
        created_at: millis_at(row, 3)?,
        updated_at: millis_at(row, 4)?,
        opened_at: millis_at(row, 5)?,
        count: u32_at(row, 6)?,
        head: sealed_at(row, 7)?,
    };
    let changed = all(&changed, |row| {
        Ok(ItemLine {
            item: parsed_at(row, 0, ItemId::parse)?,
            rev: u32_at(row, 1)?,
            hash: digest_at(row, 2)?,
            seq: u32_at(row, 3)?,
            bytes: u32_at(row, 4)?,
        })
    })?;
    let gone = all(&gone, |row| Ok(Gone { item: parsed_at(row, 0, ItemId::parse)?, at: u32_at(row, 1)? }))?;
    let draft = if chat.draft_v == have.draft_v {
        None
    } else {
        let envelope = drafts.first().map(|row| sealed_at(row, 0)).transpose()?;
        Some(DraftRow { rev: chat.draft_v, envelope })
    };
    let ring = all(&ring, |row| entry_at(row, 0))?;
    Ok(ChatDelta { chat, ring, trail: trail_of(&steps, have.trail_from)?, changed, gone, draft })
}

/// Lengths are added up beside the envelopes, so that only those that fit are read.
const FITTING: &str = "WITH asked AS (
    SELECT i.chat, i.item, i.rev, place, sum(i.bytes) OVER (ORDER BY place) AS total,
        row_number() OVER (ORDER BY place) AS at
    FROM unnest($3::text[]) WITH ORDINALITY AS u (item, place) JOIN items AS i ON i.item = u.item
    WHERE i.chat = (SELECT n FROM chats WHERE account = $1 AND chat = $2)
) SELECT e.item, asked.rev, e.envelope FROM asked JOIN envelopes AS e USING (chat, item)
    WHERE total <= $4::bigint OR at = 1 ORDER BY place";

async fn read_items(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    chat: &ChatId,
    items: &[ItemId],
    bytes: usize,
) -> Work<Vec<ItemRow>> {
    let (id, chat, bytes) = (id.as_str(), chat.as_str(), many(bytes));
    let names: Vec<String> = items.iter().map(ToString::to_string).collect();
    let found = tx
        .finish(&[
            whose(&[&id]),
            Ask("SELECT n FROM chats WHERE account = $1 AND chat = $2", &[&id, &chat]),
            Ask(FITTING, &[&id, &chat, &names, &bytes]),
        ])
        .await?;
    let [_, chats, items] = parts(found)?;
    chats.first().ok_or(StoreError::NotFound)?;
    all(&items, |row| {
        let envelope = Sealed::from_bytes(get(row, 2)?);
        Ok(ItemRow { item: parsed_at(row, 0, ItemId::parse)?, rev: u32_at(row, 1)?, envelope })
    })
}

async fn put_draft(tx: &mut Transaction<'_>, put: &PutDraft) -> Work<u64> {
    let (id, chat, kind) = (put.account.as_str(), put.chat.as_str(), 0_i64);
    let found = tx
        .run(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(CHAT, &[&id, &chat]), Ask(KIDS, &[&id, &chat, &kind])])
        .await?;
    let [_, whose, chats, ring] = parts(found)?;
    let account = account(&whose)?;
    let (n, state) = there(&chats)?;
    let rev = match &put.envelope {
        Some(sealed) => {
            let header = envelope(sealed, limits::DRAFT_BYTES, "draft")?;
            kids(&ring, account.standing.generation)?.lists(Sub::Meta, header.kid)?;
            header.rev
        }
        None => put.expected.saturating_add(1),
    };
    grows(rev, put.expected, state.draft_v)?;
    let rev = i64::from(rev);
    let notes = Notes::new(&put.account, &account, &[Changed::Draft(put.chat.clone())]);
    let envelope = put.envelope.as_ref().map(Sealed::as_bytes);
    tx.finish(&[
        Ask("DELETE FROM drafts WHERE chat = $1", &[&n]),
        Ask(
            "INSERT INTO drafts (chat, account, envelope) SELECT $1, $2, $3 WHERE $3::bytea IS NOT NULL",
            &[&n, &id, &envelope],
        ),
        Ask("UPDATE chats SET draft_v = $2 WHERE n = $1", &[&n, &rev]),
        Ask(NOTE, &notes.args()),
    ])
    .await?;
    Ok(notes.newest())
}
