//! One write of a chat, and its deletion.
//!
//! ```text
//! account, chat, ring, items, lists ─▶ plan ─▶ chat, ring entry, items, envelopes, head, step ─▶ floor, manifest ─▶ feed
//! ```
//!
//! Everything is decided by what this transaction has read, and a failure at any place undoes all of it. The list is read
//! whole, since `live` is a hash of the whole list; it is read from the narrow table of items, without their envelopes.

use std::collections::BTreeMap;

#[cfg(test)]
use confidant_chat_format::List;
use confidant_chat_format::{ChatId, ItemId};
use rusqlite::{Connection, params};

use super::super::chats::{DeleteChat, Put, Write, Written};
use super::super::checks::check_write;
use super::super::plan::{ChatState, ItemState, PutPlan, Room, Seen, plan_delete, plan_write};
use super::super::rings::RingName;
use super::super::{Changed, StoreError};
use super::rows::{Account, account, digest_at, find_chat, note, number, one, parsed_at, run, value};
use super::{Work, lists, rings};

pub(super) fn write(c: &Connection, write: &Write) -> Work<Written> {
    let head = check_write(write)?;
    let found = account(c, &write.account)?;
    let chat = find_chat(c, found.n, &write.chat)?;
    let seen = look(c, &found, chat.map(|chat| (chat.n, chat.state)), write)?;
    let plan = plan_write(write, head, seen)?;
    let head = plan.head;
    let now = number(write.now.0);
    let n = match chat {
        Some(chat) => chat.n,
        None => create(c, found.n, &write.chat, now)?,
    };
    if let Some(entry) = &write.append {
        rings::put(c, &found, &RingName::Chat(write.chat.clone()), entry)?;
    }
    for (put, plan) in write.puts.iter().zip(&plan.puts) {
        put_item(c, n, put, plan, head.rev)?;
    }
    for item in &write.removes {
        remove_item(c, n, item, head.rev)?;
    }
    let (chain, hash) = (write.chain.as_bytes(), head.hash.as_bytes());
    let sql = "INSERT INTO steps (chat, rev, live, chain, hash) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(c, sql, params![n, head.rev, write.live.as_bytes(), chain, hash])?;
    let sql = "UPDATE chats SET rev = ?2, title_v = title_v + ?3, updated_at = max(updated_at, ?4), count = ?5, gone = ?6,
               last_seq = ?7, chain = ?8, hash = ?9, head = ?10 WHERE n = ?1";
    let ChatState { count, gone, last_seq, .. } = plan.chat;
    let sealed = write.head.as_bytes();
    run(c, sql, params![n, head.rev, plan.touches_title, now, count, gone, last_seq, chain, hash, sealed])?;
    let mut seq = note(c, found.n, &Changed::Chat(write.chat.clone()))?;
    if let Some((list, plan)) = write.list.as_ref().zip(plan.list.as_ref()) {
        lists::put(c, found.n, list, plan)?;
        seq = note(c, found.n, &Changed::List)?;
    }
    Ok(Written { rev: head.rev, seq })
}

/// What is there.
fn look(c: &Connection, account: &Account, chat: Option<(i64, ChatState)>, write: &Write) -> Work<Seen> {
    let (n, name) = (account.n, write.chat.as_str());
    let count = |sql: &str| value::<u32, _>(c, sql, params![n]);
    let room = if chat.is_some() {
        Room::default()
    } else {
        let sql = "SELECT 1 FROM deleted_chats WHERE account = ?1 AND chat = ?2";
        Room {
            is_deleted: one(c, sql, params![n, name], |_| Ok(()))?.is_some(),
            chats: count("SELECT count(*) FROM chats WHERE account = ?1")?,
            deleted: count("SELECT count(*) FROM deleted_chats WHERE account = ?1")?,
        }
    };
    let items = match chat {
        Some((chat, _)) => items(c, chat)?,
        None => BTreeMap::new(),
    };
    let mut seen = Seen {
        account: account.standing,
        chat: chat.map(|(_, state)| state),
        room,
        ring: rings::kids(c, account, &RingName::Chat(write.chat.clone()))?,
        items,
        removed: std::collections::BTreeSet::new(),
        list: None,
    };
    for put in write.puts.iter().filter(|put| !seen.items.contains_key(&put.item)) {
        let sql = "SELECT 1 FROM tombstones WHERE chat = ?1 AND item = ?2";
        let chat = chat.map_or(0, |(chat, _)| chat);
        if one(c, sql, params![chat, put.item.to_string()], |_| Ok(()))?.is_some() {
            seen.removed.insert(put.item.clone());
        }
    }
    if write.list.is_some() {
        seen.list = Some(lists::seen(c, account)?);
    }
    Ok(seen)
}

fn create(c: &Connection, account: i64, chat: &ChatId, now: i64) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO chats (account, chat, rev, title_v, draft_v, created_at, updated_at, opened_at, count, gone,
               last_seq, chain, hash, head) VALUES (?1, ?2, 0, 0, 0, ?3, ?3, ?3, 0, 0, 0, x'', x'', x'')";
    run(c, sql, params![account, chat.as_str(), now])?;
    Ok(c.last_insert_rowid())
}

fn put_item(c: &Connection, chat: i64, put: &Put, plan: &PutPlan, head: u32) -> rusqlite::Result<()> {
    let (item, bytes) = (put.item.to_string(), put.envelope.as_bytes());
    let hash = plan.hash.as_bytes();
    if plan.is_new {
        run(c, "INSERT INTO envelopes (chat, envelope) VALUES (?1, ?2)", params![chat, bytes])?;
        let envelope = c.last_insert_rowid();
        let sql = "INSERT INTO items (chat, item, hash, rev, put_at, seq, bytes, envelope)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        run(c, sql, params![chat, item, hash, plan.rev, head, plan.seq, bytes.len(), envelope]).map(drop)
    } else {
        let sql =
            "UPDATE items SET hash = ?3, rev = ?4, put_at = ?5, bytes = ?6 WHERE chat = ?1 AND item = ?2
                   RETURNING envelope";
        let envelope: i64 = value(c, sql, params![chat, item, hash, plan.rev, head, bytes.len()])?;
        run(c, "UPDATE envelopes SET envelope = ?2 WHERE n = ?1", params![envelope, bytes]).map(drop)
    }
}

fn remove_item(c: &Connection, chat: i64, item: &ItemId, head: u32) -> rusqlite::Result<()> {
    let item = item.to_string();
    let sql = "DELETE FROM items WHERE chat = ?1 AND item = ?2 RETURNING envelope";
    let envelope: i64 = value(c, sql, params![chat, item])?;
    run(c, "DELETE FROM envelopes WHERE n = ?1", params![envelope])?;
    let sql = "INSERT INTO tombstones (chat, item, removed_at) VALUES (?1, ?2, ?3)";
    run(c, sql, params![chat, item, head]).map(drop)
}

/// Every item of a chat, without its envelope.
fn items(c: &Connection, chat: i64) -> rusqlite::Result<BTreeMap<ItemId, ItemState>> {
    let mut items = c.prepare_cached("SELECT item, hash, rev, seq FROM items WHERE chat = ?1")?;
    items
        .query_map(params![chat], |row| {
            let state = ItemState { hash: digest_at(row, 1)?, rev: row.get(2)?, seq: row.get(3)? };
            Ok((parsed_at(row, 0, ItemId::parse)?, state))
        })?
        .collect()
}

/// Every item of a chat and the hash of its envelope.
#[cfg(test)]
pub(super) fn list(c: &Connection, chat: i64) -> rusqlite::Result<List> {
    Ok(items(c, chat)?.into_iter().map(|(item, state)| (item, state.hash)).collect())
}

pub(super) fn delete(c: &Connection, delete: &DeleteChat) -> Work<u64> {
    let found = account(c, &delete.account)?;
    let chat = find_chat(c, found.n, &delete.chat)?;
    plan_delete(delete, &found.standing, chat.map(|chat| chat.state))?;
    let chat = chat.ok_or(StoreError::NotFound)?;
    lists::put_list(c, &found, &delete.list)?;
    run(c, "DELETE FROM chats WHERE n = ?1", params![chat.n])?;
    let name = delete.chat.as_str();
    run(c, "DELETE FROM rings WHERE account = ?1 AND container = ?2 AND kind = 0", params![found.n, name])?;
    run(c, "INSERT INTO deleted_chats (account, chat) VALUES (?1, ?2)", params![found.n, name])?;
    note(c, found.n, &Changed::Deleted(delete.chat.clone()))?;
    Ok(note(c, found.n, &Changed::List)?)
}
