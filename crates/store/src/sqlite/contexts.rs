//! The table `conversation_context`, and the capture log beside it.

use async_trait::async_trait;
use confidant_seal::Tag;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::data::SqliteStore;
use super::records::{self, Known};
use super::{kid_at, many, number, number_at, sealed_at, tag_at};
use crate::clock::Millis;
use crate::contexts::{
    CaptureRow, CapturesOf, ContextRow, ContextUpkeep, Contexts, ConversationName, Put, PutContext,
    WholeContext,
};
use crate::{PendingAudit, Result};

#[async_trait]
impl Contexts for SqliteStore {
    async fn context(&self, name: ConversationName) -> Result<Option<ContextRow>> {
        // As short as loading a log, so not worth a thread either.
        self.readers.with(|c| row_of(c, name))
    }

    async fn put_context(&self, put: PutContext) -> Result<Put> {
        self.writer.write_with(move |c, known| write(c, known, &put)).await
    }

    async fn captures(&self, of: CapturesOf) -> Result<Vec<CaptureRow>> {
        let list = move |c: &Connection| {
            let (filter, first, second) = match of {
                CapturesOf::Conversation(name) => {
                    ("tenant_id = ?1 AND conversation_id = ?2", name.tenant, name.conversation)
                }
                CapturesOf::Session(scope) => ("scope_tag = ?1 AND ?2 = ?2", scope, scope),
                CapturesOf::SessionOf { tenant, scope } => {
                    ("tenant_id = ?1 AND scope_tag = ?2", tenant, scope)
                }
                CapturesOf::Tenant(tenant) => ("tenant_id = ?1 AND ?2 = ?2", tenant, tenant),
            };
            let sql = format!(
                "SELECT tenant_id, conversation_id, request, scope_tag, person_tag, at, sealed
                 FROM concept_captures WHERE {filter} ORDER BY at, request"
            );
            let mut statement = c.prepare_cached(&sql)?;
            statement.query_map(params![first.as_bytes(), second.as_bytes()], capture)?.collect()
        };
        self.readers.read(list).await
    }

    async fn erase_context(&self, name: ConversationName, audit: Vec<PendingAudit>) -> Result<u64> {
        let erase = move |c: &Connection, known: &mut Known| {
            let gone = remove(c, name)?;
            records::record(c, known, &audit)?;
            Ok(gone)
        };
        self.writer.write_with(erase).await
    }

    async fn idle_contexts(&self, before: Millis, limit: usize) -> Result<Vec<ConversationName>> {
        let idle = move |c: &Connection| {
            let sql = "SELECT tenant_id, conversation_id FROM conversation_context
                       WHERE updated_at < ?1 AND archived_at IS NULL ORDER BY updated_at LIMIT ?2";
            let mut statement = c.prepare_cached(sql)?;
            let rows = statement.query_map(params![before.0, many(limit)], |row| {
                Ok(ConversationName { tenant: tag_at(row, 0)?, conversation: tag_at(row, 1)? })
            })?;
            rows.collect()
        };
        self.readers.read(idle).await
    }

    async fn adopt_context(
        &self,
        name: ConversationName,
        whole: WholeContext,
        _expires_at: Option<Millis>,
    ) -> Result<()> {
        let adopt = move |c: &Connection, _: &mut Known| {
            remove(c, name)?;
            let sql = "INSERT INTO conversation_context
                           (tenant_id, conversation_id, context_json, updated_at, archived_at, version, kid)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let (tenant, conversation) = (name.tenant.as_bytes(), name.conversation.as_bytes());
            let ContextRow { version, kid, content, updated_at, archived_at } = &whole.row;
            let (archived_at, version, kid) = (archived_at.map(|at| at.0), number(*version), *kid.as_bytes());
            let values = params![tenant, conversation, content, updated_at.0, archived_at, version, kid];
            c.prepare_cached(sql)?.execute(values)?;
            whole.captures.iter().try_for_each(|row| add_capture(c, row))
        };
        self.writer.write_with(adopt).await
    }
}

impl ContextUpkeep for SqliteStore {}

fn remove(c: &Connection, name: ConversationName) -> rusqlite::Result<u64> {
    let key = params![name.tenant.as_bytes(), name.conversation.as_bytes()];
    let sql = "DELETE FROM conversation_context WHERE tenant_id = ?1 AND conversation_id = ?2";
    c.prepare_cached(sql)?.execute(key)?;
    let sql = "DELETE FROM concept_captures WHERE tenant_id = ?1 AND conversation_id = ?2";
    Ok(c.prepare_cached(sql)?.execute(key)? as u64)
}

fn has_capture(c: &Connection, row: &CaptureRow) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM concept_captures WHERE tenant_id = ?1 AND conversation_id = ?2 AND request = ?3";
    let key = params![row.name.tenant.as_bytes(), row.name.conversation.as_bytes(), row.request.as_bytes()];
    c.prepare_cached(sql)?.exists(key)
}

fn add_capture(c: &Connection, row: &CaptureRow) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO concept_captures VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let bytes = |tag: Tag| *tag.as_bytes();
    let (tenant, conversation) = (bytes(row.name.tenant), bytes(row.name.conversation));
    let (request, scope, person) = (bytes(row.request), bytes(row.scope), bytes(row.person));
    let values = params![tenant, conversation, request, scope, person, row.at.0, row.sealed.as_bytes()];
    c.prepare_cached(sql)?.execute(values).map(drop)
}

fn row_of(c: &Connection, name: ConversationName) -> rusqlite::Result<Option<ContextRow>> {
    let sql = "SELECT version, kid, context_json, updated_at, archived_at FROM conversation_context
               WHERE tenant_id = ?1 AND conversation_id = ?2";
    let key = params![name.tenant.as_bytes(), name.conversation.as_bytes()];
    let row = |row: &Row<'_>| {
        Ok(ContextRow {
            version: number_at(row, 0)?,
            kid: kid_at(row, 1)?,
            content: sealed_at(row, 2)?.as_bytes().to_vec(),
            updated_at: Millis(row.get(3)?),
            archived_at: row.get::<_, Option<i64>>(4)?.map(Millis),
        })
    };
    c.prepare_cached(sql)?.query_row(key, row).optional()
}

fn write(c: &Connection, known: &mut Known, put: &PutContext) -> rusqlite::Result<Put> {
    let (tenant, conversation) = (*put.name.tenant.as_bytes(), *put.name.conversation.as_bytes());
    let fits = match row_of(c, put.name)? {
        None => put.expected == 0,
        Some(row) => row.version == put.expected && row.kid == put.kid,
    };
    if !fits {
        return Ok(Put::Conflict);
    }
    if let Some(row) = &put.capture
        && has_capture(c, row)?
    {
        return Ok(Put::Known);
    }
    let sql = "INSERT INTO conversation_context
                   (tenant_id, conversation_id, context_json, updated_at, archived_at, version, kid)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6 + 1, ?7)
               ON CONFLICT (tenant_id, conversation_id) DO UPDATE
               SET context_json = ?3, updated_at = ?4, archived_at = ?5, version = ?6 + 1";
    let (content, kid) = (&put.content, *put.kid.as_bytes());
    let archived_at = put.archived_at.map(|at| at.0);
    let values =
        params![tenant, conversation, content, put.updated_at.0, archived_at, number(put.expected), kid];
    c.prepare_cached(sql)?.execute(values)?;
    if let Some(whose) = put.forget {
        let sql = "DELETE FROM concept_captures
                   WHERE tenant_id = ?1 AND conversation_id = ?2 AND ?3 IN (scope_tag, request)";
        c.prepare_cached(sql)?.execute(params![tenant, conversation, whose.as_bytes()])?;
    }
    if let Some(row) = &put.capture {
        add_capture(c, row)?;
    }
    records::record(c, known, &put.audit)?;
    Ok(Put::Done)
}

fn capture(row: &Row<'_>) -> rusqlite::Result<CaptureRow> {
    Ok(CaptureRow {
        name: ConversationName { tenant: tag_at(row, 0)?, conversation: tag_at(row, 1)? },
        request: tag_at(row, 2)?,
        scope: tag_at(row, 3)?,
        person: tag_at(row, 4)?,
        at: Millis(row.get(5)?),
        sealed: sealed_at(row, 6)?,
    })
}
