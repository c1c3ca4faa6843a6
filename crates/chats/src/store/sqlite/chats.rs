//! Chats as rows: reading, drafts. Writing is in `write.rs`.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, ItemId};
use rusqlite::{Connection, params};

use super::super::chats::{
    ChatDelta, ChatRow, Chats, DeleteChat, DraftRow, Gone, Have, ItemLine, ItemRow, PutDraft, Write, Written,
};
use super::super::checks::{Sub, envelope, grows};
use super::super::rings::RingName;
use super::super::{Changed, Millis, Result, StoreError, limits};
use super::rows::{account, all, chat, digest_at, millis_at, note, number, one, parsed_at, run, sealed_at};
use super::{SqliteChats, Work, lists, rings, write};

#[async_trait]
impl Chats for SqliteChats {
    async fn write(&self, write: Write) -> Result<Written> {
        self.write_with(move |c| write::write(c, &write)).await
    }

    async fn delete_chat(&self, delete: DeleteChat) -> Result<u64> {
        self.write_with(move |c| write::delete(c, &delete)).await
    }

    async fn put_draft(&self, put: PutDraft) -> Result<u64> {
        self.write_with(move |c| put_draft(c, &put)).await
    }

    async fn opened(&self, whose: &AccountId, id: &ChatId, now: Millis) -> Result<()> {
        let (whose, id) = (whose.clone(), id.clone());
        self.write_with(move |c| {
            let n = chat(c, account(c, &whose)?.n, &id)?.n;
            let sql = "UPDATE chats SET opened_at = max(opened_at, ?2) WHERE n = ?1";
            run(c, sql, params![n, number(now.0)])?;
            Ok(())
        })
        .await
    }

    async fn chat(&self, whose: &AccountId, id: &ChatId, have: Have) -> Result<ChatDelta> {
        let (whose, id) = (whose.clone(), id.clone());
        self.read_with(move |c| delta(c, &whose, &id, have)).await
    }

    async fn items(
        &self,
        whose: &AccountId,
        id: &ChatId,
        items: Vec<ItemId>,
        bytes: usize,
    ) -> Result<Vec<ItemRow>> {
        let (whose, id) = (whose.clone(), id.clone());
        self.read_with(move |c| read_items(c, &whose, &id, items, bytes)).await
    }
}

fn delta(c: &Connection, whose: &AccountId, id: &ChatId, have: Have) -> Work<ChatDelta> {
    let account = account(c, whose)?.n;
    let n = chat(c, account, id)?.n;
    let sql = "SELECT rev, title_v, draft_v, created_at, updated_at, opened_at, count, head FROM chats WHERE n = ?1";
    let row = one(c, sql, params![n], |row| {
        Ok(ChatRow {
            messages_v: row.get(0)?,
            title_v: row.get(1)?,
            draft_v: row.get(2)?,
            created_at: millis_at(row, 3)?,
            updated_at: millis_at(row, 4)?,
            opened_at: millis_at(row, 5)?,
            count: row.get(6)?,
            head: sealed_at(row, 7)?,
        })
    })?;
    let row = row.ok_or(StoreError::NotFound)?;
    let sql = "SELECT item, rev, hash, seq, bytes FROM items WHERE chat = ?1 AND put_at > ?2 ORDER BY item";
    let changed = all(c, sql, params![n, have.messages_v], |row| {
        Ok(ItemLine {
            item: parsed_at(row, 0, ItemId::parse)?,
            rev: row.get(1)?,
            hash: digest_at(row, 2)?,
            seq: row.get(3)?,
            bytes: row.get(4)?,
        })
    })?;
    // A device that has nothing has nothing to remove either.
    let gone = match have.messages_v {
        0 => Vec::new(),
        since => {
            let sql =
                "SELECT item, removed_at FROM tombstones WHERE chat = ?1 AND removed_at > ?2 ORDER BY item";
            all(c, sql, params![n, since], |row| {
                Ok(Gone { item: parsed_at(row, 0, ItemId::parse)?, at: row.get(1)? })
            })?
        }
    };
    let sql = "SELECT live, chain, hash, rev FROM steps WHERE chat = ?1 AND rev >= ?2 ORDER BY rev";
    let trail = lists::trail(c, sql, n, have.trail_from)?;
    let draft = if row.draft_v == have.draft_v {
        None
    } else {
        let envelope =
            one(c, "SELECT envelope FROM drafts WHERE chat = ?1", params![n], |row| sealed_at(row, 0))?;
        Some(DraftRow { rev: row.draft_v, envelope })
    };
    let ring = rings::entries(c, account, &RingName::Chat(id.clone()))?;
    Ok(ChatDelta { chat: row, ring, trail, changed, gone, draft })
}

fn read_items(
    c: &Connection,
    whose: &AccountId,
    id: &ChatId,
    items: Vec<ItemId>,
    bytes: usize,
) -> Work<Vec<ItemRow>> {
    let n = chat(c, account(c, whose)?.n, id)?.n;
    let sql = "SELECT i.rev, e.envelope FROM items AS i JOIN envelopes AS e ON e.n = i.envelope
               WHERE i.chat = ?1 AND i.item = ?2";
    let (mut rows, mut left) = (Vec::new(), bytes);
    for item in items {
        let found = one(c, sql, params![n, item.to_string()], |row| Ok((row.get(0)?, sealed_at(row, 1)?)))?;
        let Some((rev, envelope)) = found else { continue };
        match left.checked_sub(envelope.as_bytes().len()) {
            Some(rest) => left = rest,
            None if rows.is_empty() => left = 0,
            None => break,
        }
        rows.push(ItemRow { item, rev, envelope });
    }
    Ok(rows)
}

fn put_draft(c: &Connection, put: &PutDraft) -> Work<u64> {
    let found = account(c, &put.account)?;
    let chat = chat(c, found.n, &put.chat)?;
    let rev = match &put.envelope {
        Some(sealed) => {
            let header = envelope(sealed, limits::DRAFT_BYTES, "draft")?;
            rings::kids(c, &found, &RingName::Chat(put.chat.clone()))?.lists(Sub::Meta, header.kid)?;
            header.rev
        }
        None => put.expected.saturating_add(1),
    };
    grows(rev, put.expected, chat.state.draft_v)?;
    match &put.envelope {
        Some(sealed) => {
            let sql = "INSERT OR REPLACE INTO drafts (chat, envelope) VALUES (?1, ?2)";
            run(c, sql, params![chat.n, sealed.as_bytes()])?;
        }
        None => {
            run(c, "DELETE FROM drafts WHERE chat = ?1", params![chat.n])?;
        }
    }
    run(c, "UPDATE chats SET draft_v = ?2 WHERE n = ?1", params![chat.n, rev])?;
    Ok(note(c, found.n, &Changed::Draft(put.chat.clone()))?)
}
