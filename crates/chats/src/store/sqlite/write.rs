//! One write of a chat, and its deletion.
//!
//! ```text
//! find account and chat ─▶ ring entry ─▶ items ─▶ list (id, hash) ─▶ live, chain ─▶ head, step ─▶ floor, manifest ─▶ feed
//! ```
//!
//! Every check is made on what the transaction itself has written. A refusal at any place undoes all of it. The list is read
//! whole, since `live` is a hash of the whole list; it is read from the narrow table of items, without their envelopes.

use confidant_chat_format::{ChatId, FieldName, ItemId, List, Refused};
use rusqlite::{Connection, params};

use super::super::chats::{DeleteChat, Put, Write, Written};
use super::super::checks::{Kids, Link, Sub, check_list, check_write, grows, has_shelf, item_envelope};
use super::super::rings::RingName;
use super::super::{Changed, Millis, StoreError, limits};
use super::rows::{
    Account, Chat, account, chat, digest_at, find_chat, note, number, one, parsed_at, run, value,
};
use super::{Work, lists, rings};

pub(super) fn write(c: &Connection, write: &Write) -> Work<Written> {
    let head = check_write(write)?;
    let found = account(c, &write.account)?;
    let mut chat = begin(c, &found, write)?;
    let of = RingName::Chat(write.chat.clone());
    let mut ring = rings::kids(c, &found, &of)?;
    if let Some(entry) = &write.append {
        found.not_frozen(write.now, chat.rev)?;
        rings::append(c, &found, &mut ring, (&of, entry), chat.rev)?;
    }
    ring.newest(head.kid)?;
    for put in &write.puts {
        put_item(c, &mut chat, put, &ring, head.rev)?;
    }
    for item in &write.removes {
        remove_item(c, &mut chat, item, head.rev)?;
    }
    let list = list(c, chat.n)?;
    check_list(&list, &chat.link, write)?;
    let (chain, hash) = (write.chain.as_bytes(), head.hash.as_bytes());
    let sql = "INSERT INTO steps (chat, rev, live, chain, hash) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(c, sql, params![chat.n, head.rev, write.live.as_bytes(), chain, hash])?;
    let sql = "UPDATE chats SET rev = ?2, title_v = title_v + ?3, updated_at = max(updated_at, ?4), count = ?5, gone = ?6,
               last_seq = ?7, chain = ?8, hash = ?9, head = ?10 WHERE n = ?1";
    run(
        c,
        sql,
        params![
            chat.n,
            head.rev,
            touches_title(write)?,
            number(write.now.0),
            chat.count,
            chat.gone,
            chat.last_seq,
            chain,
            hash,
            write.head.as_bytes()
        ],
    )?;
    let mut seq = note(c, found.n, &Changed::Chat(write.chat.clone()))?;
    if let Some(list) = &write.list {
        lists::put_list(c, &found, list)?;
        seq = note(c, found.n, &Changed::List)?;
    }
    Ok(Written { rev: head.rev, seq })
}

/// The chat that is written to, made if the write creates it.
fn begin(c: &Connection, account: &Account, write: &Write) -> Work<Chat> {
    match find_chat(c, account.n, &write.chat)? {
        Some(chat) if chat.rev == write.expected => Ok(chat),
        Some(chat) => Err(StoreError::Conflict { now: chat.rev }.into()),
        None if write.expected > 0 => Err(StoreError::NotFound.into()),
        None => {
            account.not_frozen(write.now, 0)?;
            create(c, account.n, &write.chat, write.now)
        }
    }
}

fn create(c: &Connection, account: i64, chat: &ChatId, now: Millis) -> Work<Chat> {
    let sql = "SELECT 1 FROM deleted_chats WHERE account = ?1 AND chat = ?2";
    if one(c, sql, params![account, chat.as_str()], |_| Ok(()))?.is_some() {
        return Err(StoreError::Conflict { now: 0 }.into());
    }
    let chats: u32 = value(c, "SELECT count(*) FROM chats WHERE account = ?1", params![account])?;
    let deleted: u32 = value(c, "SELECT count(*) FROM deleted_chats WHERE account = ?1", params![account])?;
    if chats >= limits::CHATS || chats.saturating_add(deleted) >= limits::CHATS_EVER {
        return Err(StoreError::TooMany("chats").into());
    }
    let sql = "INSERT INTO chats (account, chat, rev, title_v, draft_v, created_at, updated_at, opened_at, count, gone,
               last_seq, chain, hash, head) VALUES (?1, ?2, 0, 0, 0, ?3, ?3, ?3, 0, 0, 0, x'', x'', x'')";
    run(c, sql, params![account, chat.as_str(), number(now.0)])?;
    let n = c.last_insert_rowid();
    Ok(Chat { n, rev: 0, draft_v: 0, count: 0, gone: 0, last_seq: 0, link: Link::NONE })
}

fn put_item(c: &Connection, chat: &mut Chat, put: &Put, ring: &Kids, head: u32) -> Work<()> {
    let sealed = item_envelope(&put.item, &put.envelope)?;
    ring.lists(Sub::of(&put.item), sealed.kid)?;
    let conflict = StoreError::Conflict { now: chat.rev };
    let item = put.item.to_string();
    let sql = "SELECT rev, envelope, seq FROM items WHERE chat = ?1 AND item = ?2";
    let there = one(c, sql, params![chat.n, item], |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, i64>(1)?, row.get::<_, u32>(2)?))
    })?;
    let rev = there.map_or(0, |(rev, ..)| rev);
    if put.expected != rev {
        return Err(conflict.into());
    }
    grows(sealed.rev, put.expected, rev)?;
    let bytes = put.envelope.as_bytes();
    let (envelope, seq) = match there {
        Some((_, envelope, seq)) => {
            run(c, "UPDATE envelopes SET envelope = ?2 WHERE n = ?1", params![envelope, bytes])?;
            (envelope, seq)
        }
        None => {
            let sql = "SELECT 1 FROM tombstones WHERE chat = ?1 AND item = ?2";
            if one(c, sql, params![chat.n, item], |_| Ok(()))?.is_some() {
                return Err(conflict.into());
            }
            if chat.count.saturating_add(chat.gone) >= limits::ITEMS_EVER {
                return Err(StoreError::TooMany("items in this chat, deleted ones included").into());
            }
            run(c, "INSERT INTO envelopes (chat, envelope) VALUES (?1, ?2)", params![chat.n, bytes])?;
            chat.count += 1;
            chat.last_seq += 1;
            (c.last_insert_rowid(), chat.last_seq)
        }
    };
    let sql = "INSERT INTO items (chat, item, hash, rev, put_at, seq, bytes, envelope) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
               ON CONFLICT (chat, item) DO UPDATE SET hash = ?3, rev = ?4, put_at = ?5, bytes = ?7";
    run(c, sql, params![chat.n, item, sealed.hash.as_bytes(), sealed.rev, head, seq, bytes.len(), envelope])?;
    Ok(())
}

fn remove_item(c: &Connection, chat: &mut Chat, item: &ItemId, head: u32) -> Work<()> {
    let item = item.to_string();
    let sql = "DELETE FROM items WHERE chat = ?1 AND item = ?2 RETURNING envelope";
    let Some(envelope) = one(c, sql, params![chat.n, item], |row| row.get::<_, i64>(0))? else {
        return Err(StoreError::Conflict { now: chat.rev }.into());
    };
    run(c, "DELETE FROM envelopes WHERE n = ?1", params![envelope])?;
    let sql = "INSERT INTO tombstones (chat, item, removed_at) VALUES (?1, ?2, ?3)";
    run(c, sql, params![chat.n, item, head])?;
    chat.count = chat.count.saturating_sub(1);
    chat.gone += 1;
    Ok(())
}

/// Every item of a chat and the hash of its envelope.
pub(super) fn list(c: &Connection, chat: i64) -> rusqlite::Result<List> {
    let mut items = c.prepare_cached("SELECT item, hash FROM items WHERE chat = ?1")?;
    items
        .query_map(params![chat], |row| Ok((parsed_at(row, 0, ItemId::parse)?, digest_at(row, 1)?)))?
        .collect()
}

fn touches_title(write: &Write) -> std::result::Result<bool, Refused> {
    let title = ItemId::Field(FieldName::parse("title")?);
    Ok(write.puts.iter().any(|put| put.item == title) || write.removes.contains(&title))
}

pub(super) fn delete(c: &Connection, delete: &DeleteChat) -> Work<u64> {
    has_shelf(Some(&delete.list), &delete.chat)?;
    let found = account(c, &delete.account)?;
    let chat = chat(c, found.n, &delete.chat)?;
    found.not_frozen(delete.now, chat.rev)?;
    if chat.rev != delete.expected {
        return Err(StoreError::Conflict { now: chat.rev }.into());
    }
    lists::put_list(c, &found, &delete.list)?;
    run(c, "DELETE FROM chats WHERE n = ?1", params![chat.n])?;
    let name = delete.chat.as_str();
    run(c, "DELETE FROM rings WHERE account = ?1 AND container = ?2 AND kind = 0", params![found.n, name])?;
    run(c, "INSERT INTO deleted_chats (account, chat) VALUES (?1, ?2)", params![found.n, name])?;
    note(c, found.n, &Changed::Deleted(delete.chat.clone()))?;
    Ok(note(c, found.n, &Changed::List)?)
}
