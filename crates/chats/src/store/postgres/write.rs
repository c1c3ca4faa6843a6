//! One write of a chat, and its deletion: two round trips each.
//!
//! ```text
//! lock the account · chat, ring, items, lists ──▶ plan ──▶ chat, ring, items, envelopes, step, floors, manifest, feed · COMMIT
//! ```
//!
//! The list of items is read whole, since `live` is a hash of the whole list; it is read from the narrow table of items,
//! without their envelopes.

use std::collections::{BTreeMap, BTreeSet};

use confidant_chat_format::ItemId;
use confidant_postgres::{Ask, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::chats::{DeleteChat, Write, Written};
use super::super::checks::{Link, check_write};
use super::super::plan::{ChatState, ItemState, Room, Seen, WritePlan, plan_delete, plan_list, plan_write};
use super::super::{Changed, StoreError};
use super::Work;
use super::lists::{FLOORS, ListColumns, MANIFEST, PUT_FLOORS, PUT_MANIFEST, seen_list};
use super::rings::{APPEND, Columns, KIDS, kids};
use super::rows::{
    Account, LOCK, NOTE, Notes, account, all, damaged, digest_at, get, many, number, parsed_at, parts,
    u32_at, whose,
};

/// A chat as a write finds it.
pub(super) const CHAT: &str =
    "SELECT rev, draft_v, count, gone, last_seq, chain, hash, n FROM chats WHERE account = $1 AND chat = $2";
const ITEMS: &str = "SELECT item, hash, rev, seq FROM items
    WHERE chat = (SELECT n FROM chats WHERE account = $1 AND chat = $2)";
const REMOVED: &str = "SELECT item FROM tombstones
    WHERE chat = (SELECT n FROM chats WHERE account = $1 AND chat = $2) AND item = ANY($3)";
/// Whether there is room for a new chat, and its number. A number that is not used is lost, which nobody sees.
const ROOM: &str = "SELECT EXISTS (SELECT 1 FROM deleted_chats WHERE account = $1 AND chat = $2),
    (SELECT count(*) FROM chats WHERE account = $1), (SELECT count(*) FROM deleted_chats WHERE account = $1),
    nextval(pg_get_serial_sequence('chats', 'n'))";

const PUT_CHAT: &str = "INSERT INTO chats (n, account, chat, rev, title_v, draft_v, created_at, updated_at, opened_at,
        count, gone, last_seq, chain, hash, head)
    VALUES ($1, $2, $3, $4, $5, 0, $6, $6, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT (n) DO UPDATE SET rev = excluded.rev, title_v = chats.title_v + excluded.title_v,
        updated_at = greatest(chats.updated_at, excluded.updated_at), count = excluded.count, gone = excluded.gone,
        last_seq = excluded.last_seq, chain = excluded.chain, hash = excluded.hash, head = excluded.head";
const PUT_STEP: &str =
    "INSERT INTO steps (chat, rev, account, live, chain, hash) VALUES ($1, $2, $3, $4, $5, $6)";
const PUT_ITEMS: &str = "INSERT INTO items (chat, account, put_at, item, hash, rev, seq, bytes)
    SELECT $1, $2, $3, item, hash, rev, seq, bytes
    FROM unnest($4::text[], $5::bytea[], $6::bigint[], $7::bigint[], $8::bigint[]) AS u (item, hash, rev, seq, bytes)
    ON CONFLICT (chat, item) DO UPDATE SET hash = excluded.hash, rev = excluded.rev, put_at = excluded.put_at,
        bytes = excluded.bytes";
const PUT_ENVELOPES: &str = "INSERT INTO envelopes (chat, account, item, envelope)
    SELECT $1, $2, item, envelope FROM unnest($3::text[], $4::bytea[]) AS u (item, envelope)
    ON CONFLICT (chat, item) DO UPDATE SET envelope = excluded.envelope";
/// Envelopes go with their items.
const REMOVE: &str = "WITH gone AS (DELETE FROM items WHERE chat = $1 AND item = ANY($4))
    INSERT INTO tombstones (chat, account, removed_at, item) SELECT $1, $2, $3, unnest($4::text[])";

pub(super) async fn write(tx: &mut Transaction<'_>, write: &Write) -> Work<Written> {
    let head = check_write(write)?;
    let (account, n, seen) = look(tx, write).await?;
    let plan = plan_write(write, head, seen)?;
    put(tx, write, &account, n, &plan).await
}

/// What is there, and the chat's number.
async fn look(tx: &mut Transaction<'_>, write: &Write) -> Work<(Account, i64, Seen)> {
    let (id, chat, own, none) = (write.account.as_str(), write.chat.as_str(), 1_i64, 0_i64);
    let touched: Vec<String> = write.puts.iter().map(|put| put.item.to_string()).collect();
    let own_args: [&(dyn ToSql + Sync); 3] = [&id, &"", &own];
    let chat_args: [&(dyn ToSql + Sync); 2] = [&id, &chat];
    let (ring_args, removed_args): ([&(dyn ToSql + Sync); 3], [&(dyn ToSql + Sync); 3]) =
        ([&id, &chat, &none], [&id, &chat, &touched]);
    let mut asks = vec![
        whose(&chat_args[..1]),
        Ask(LOCK, &chat_args[..1]),
        Ask(CHAT, &chat_args),
        Ask(KIDS, &ring_args),
        Ask(ITEMS, &chat_args),
        Ask(REMOVED, &removed_args),
    ];
    if write.expected == 0 {
        asks.push(Ask(ROOM, &chat_args));
    }
    if write.list.is_some() {
        asks.extend([Ask(KIDS, &own_args), Ask(MANIFEST, &chat_args[..1]), Ask(FLOORS, &chat_args[..1])]);
    }
    let mut found = tx.run(&asks).await?;
    let lists = found.split_off(if write.expected == 0 { 7 } else { 6 });
    let rooms = found.split_off(6);
    let [_, there, chat, ring, items, removed] = parts(found)?;
    let account = account(&there)?;
    let generation = account.standing.generation;
    let (room, new) = match rooms.first().and_then(|rows| rows.first()) {
        Some(row) => {
            let room = Room { is_deleted: get(row, 0)?, chats: u32_at(row, 1)?, deleted: u32_at(row, 2)? };
            (room, get(row, 3)?)
        }
        None => (Room::default(), 0),
    };
    let n = chat.first().map_or(Ok(new), |row| get(row, 7))?;
    let list = match &lists[..] {
        [ring, manifest, floors] => Some(seen_list(kids(ring, generation)?, manifest, floors)?),
        _ => None,
    };
    let seen = Seen {
        account: account.standing,
        chat: state(&chat)?,
        room,
        ring: kids(&ring, generation)?,
        items: all(&items, item_at)?.into_iter().collect::<BTreeMap<_, _>>(),
        removed: all(&removed, |row| parsed_at(row, 0, ItemId::parse))?.into_iter().collect::<BTreeSet<_>>(),
        list,
    };
    Ok((account, n, seen))
}

fn item_at(row: &Row) -> Work<(ItemId, ItemState)> {
    let state = ItemState { hash: digest_at(row, 1)?, rev: u32_at(row, 2)?, seq: u32_at(row, 3)? };
    Ok((parsed_at(row, 0, ItemId::parse)?, state))
}

/// What [`CHAT`] found, if anything.
pub(super) fn state(rows: &[Row]) -> Work<Option<ChatState>> {
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(ChatState {
        rev: u32_at(row, 0)?,
        draft_v: u32_at(row, 1)?,
        count: u32_at(row, 2)?,
        gone: u32_at(row, 3)?,
        last_seq: u32_at(row, 4)?,
        link: Link { chain: digest_at(row, 5)?, envelope: digest_at(row, 6)? },
    }))
}

/// Items that are put, as columns.
struct Puts<'a> {
    items: Vec<String>,
    hashes: Vec<&'a [u8]>,
    revs: Vec<i64>,
    seqs: Vec<i64>,
    lengths: Vec<i64>,
    envelopes: Vec<&'a [u8]>,
}

impl<'a> Puts<'a> {
    fn new(write: &'a Write, plan: &'a WritePlan) -> Self {
        Self {
            items: write.puts.iter().map(|put| put.item.to_string()).collect(),
            hashes: plan.puts.iter().map(|put| put.hash.as_bytes().as_slice()).collect(),
            revs: plan.puts.iter().map(|put| i64::from(put.rev)).collect(),
            seqs: plan.puts.iter().map(|put| i64::from(put.seq)).collect(),
            lengths: write.puts.iter().map(|put| many(put.envelope.as_bytes().len())).collect(),
            envelopes: write.puts.iter().map(|put| put.envelope.as_bytes()).collect(),
        }
    }
}

async fn put(
    tx: &mut Transaction<'_>,
    write: &Write,
    account: &Account,
    n: i64,
    plan: &WritePlan,
) -> Work<Written> {
    let (id, chat, state) = (write.account.as_str(), write.chat.as_str(), &plan.chat);
    let (rev, generation) = (i64::from(plan.head.rev), i64::from(account.standing.generation));
    let (live, chain, hash) = (
        write.live.as_bytes().as_slice(),
        write.chain.as_bytes().as_slice(),
        plan.head.hash.as_bytes().as_slice(),
    );
    let (title, now, head) = (i64::from(plan.touches_title), number(write.now.0), write.head.as_bytes());
    let (count, gone, last) = (i64::from(state.count), i64::from(state.gone), i64::from(state.last_seq));
    let chat_args: [&(dyn ToSql + Sync); 12] =
        [&n, &id, &chat, &rev, &title, &now, &count, &gone, &last, &chain, &hash, &head];
    let step: [&(dyn ToSql + Sync); 6] = [&n, &rev, &id, &live, &chain, &hash];
    let mut asks = vec![Ask(PUT_CHAT, &chat_args), Ask(PUT_STEP, &step)];
    let of = super::super::rings::RingName::Chat(write.chat.clone());
    let entries = Columns::new(write.append.iter().map(|entry| (&of, entry)));
    let begin: [&(dyn ToSql + Sync); 2] = [&id, &generation];
    let append = [&begin[..], &entries.args()].concat();
    if write.append.is_some() {
        asks.push(Ask(APPEND, &append));
    }
    let puts = Puts::new(write, plan);
    let items: [&(dyn ToSql + Sync); 8] =
        [&n, &id, &rev, &puts.items, &puts.hashes, &puts.revs, &puts.seqs, &puts.lengths];
    let envelopes: [&(dyn ToSql + Sync); 4] = [&n, &id, &puts.items, &puts.envelopes];
    if !write.puts.is_empty() {
        asks.extend([Ask(PUT_ITEMS, &items), Ask(PUT_ENVELOPES, &envelopes)]);
    }
    let gone: Vec<String> = write.removes.iter().map(ToString::to_string).collect();
    let removes: [&(dyn ToSql + Sync); 4] = [&n, &id, &rev, &gone];
    if !gone.is_empty() {
        asks.push(Ask(REMOVE, &removes));
    }
    let mut changes = vec![Changed::Chat(write.chat.clone())];
    let lists = write.list.as_ref().zip(plan.list.as_ref());
    let lists = lists.map(|(list, plan)| ListColumns::new(id, list, plan));
    let lists = lists.as_ref().map(|columns| (columns.floors(), columns.manifest()));
    if let Some((floors, manifest)) = &lists {
        asks.extend([Ask(PUT_FLOORS, floors), Ask(PUT_MANIFEST, manifest)]);
        changes.push(Changed::List);
    }
    let notes = Notes::new(&write.account, account, &changes);
    let noted = notes.args();
    asks.push(Ask(NOTE, &noted));
    tx.finish(&asks).await?;
    Ok(Written { rev: plan.head.rev, seq: notes.newest() })
}

pub(super) async fn delete(tx: &mut Transaction<'_>, delete: &DeleteChat) -> Work<u64> {
    let (id, chat, own) = (delete.account.as_str(), delete.chat.as_str(), 1_i64);
    let found = tx
        .run(&[
            whose(&[&id]),
            Ask(LOCK, &[&id]),
            Ask(CHAT, &[&id, &chat]),
            Ask(KIDS, &[&id, &"", &own]),
            Ask(MANIFEST, &[&id]),
            Ask(FLOORS, &[&id]),
        ])
        .await?;
    let [_, there, found, ring, manifest, floors] = parts(found)?;
    let account = account(&there)?;
    plan_delete(delete, &account.standing, state(&found)?)?;
    let n: i64 = get(found.first().ok_or_else(damaged)?, 7)?;
    let seen = seen_list(kids(&ring, account.standing.generation)?, &manifest, &floors)?;
    let plan = plan_list(&delete.list, &seen)?;
    let columns = ListColumns::new(id, &delete.list, &plan);
    let changes = [Changed::Deleted(delete.chat.clone()), Changed::List];
    let notes = Notes::new(&delete.account, &account, &changes);
    tx.finish(&[
        Ask(PUT_FLOORS, &columns.floors()),
        Ask(PUT_MANIFEST, &columns.manifest()),
        Ask("DELETE FROM chats WHERE n = $1", &[&n]),
        Ask("DELETE FROM rings WHERE account = $1 AND container = $2 AND kind = 0", &[&id, &chat]),
        Ask("INSERT INTO deleted_chats (account, chat) VALUES ($1, $2)", &[&id, &chat]),
        Ask(NOTE, &notes.args()),
    ])
    .await?;
    Ok(notes.newest())
}

/// The number and state of a chat; else `not-found`.
pub(super) fn there(rows: &[Row]) -> Work<(i64, ChatState)> {
    let state = state(rows)?.ok_or(StoreError::NotFound)?;
    Ok((get(rows.first().ok_or_else(damaged)?, 7)?, state))
}
